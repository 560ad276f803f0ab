#include "fixture.h"
#include "base/assert.h"
#include "base/log.h"
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NS 1u

/* -- environment ------------------------------------------------------------------------------- */

static _Atomic uint64_t clock_offset_us;
static _Atomic int64_t wall_offset_us;
static _Atomic bool disk_full;
static struct env_ops test_ops;
static struct env test_env;

static int64_t test_unix_us(struct env *e)
{
    UNUSED(e);
    return env_unix_us(env_os()) + (int64_t)atomic_load(&clock_offset_us) +
           atomic_load(&wall_offset_us);
}

static uint64_t test_mono_us(struct env *e)
{
    UNUSED(e);
    return env_mono_us(env_os()) + atomic_load(&clock_offset_us);
}

static status test_lock(struct env *e, const char *path)
{
    UNUSED(e);
    UNUSED(path);
    return ST_OK;
}

static status test_zero_fill(struct env *e, struct env_file *f, uint64_t size)
{
    return atomic_load(&disk_full) ? ST_DISK_FULL : env_os()->ops->zero_fill(e, f, size);
}

void fx_disk_full(bool full)
{
    atomic_store(&disk_full, full);
}

struct env *fx_env(void)
{
    if (test_env.ops == NULL) {
        test_ops = *env_os()->ops;
        test_ops.unix_us = test_unix_us;
        test_ops.mono_us = test_mono_us;
        test_ops.lock = test_lock;
        test_ops.zero_fill = test_zero_fill;
        test_env.ops = &test_ops;
        test_env.net = env_os()->net;
    }
    return &test_env;
}

void fx_clock_advance(uint64_t us)
{
    atomic_fetch_add(&clock_offset_us, us);
}

void fx_clock_jump_wall(int64_t us)
{
    atomic_fetch_add(&wall_offset_us, us);
}

void fx_clock_reset(void)
{
    atomic_store(&wall_offset_us, 0);
    atomic_store(&clock_offset_us, 0);
}

/* -- node -------------------------------------------------------------------------------------- */

void fx_init(struct fixture *f)
{
    unsigned count;
    const struct config_setting *settings = cl_settings(&count);
    *f = (struct fixture){.failed = ST_OK};
    fx_disk_full(false); /* a test that failed may have left it */
    snprintf(f->dir, sizeof f->dir, "/tmp/metadb-unit.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->config = config_new(settings, count);
    fx_set(f, "memory.budget", "64MB");
    fx_set(f, "log.segment_bytes", "1MB");
    fx_set(f, "pool.threads", "2");
    fx_set(f, "recovery.flush_at_stop", "off"); /* a restart is to replay the log */
    log_set_level(LOG_LEVEL_ERROR);
}

void fx_set(struct fixture *f, const char *name, const char *value)
{
    struct err err;
    assert_int_equal(config_set(f->config, name, value, &err), ST_OK);
}

void fx_wipe(struct fixture *f)
{
    char command[192];
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", f->dir, f->dir);
    assert_int_equal(system(command), 0);
}

void fx_fini(struct fixture *f)
{
    char command[128];
    if (f->node != NULL)
        fx_close(f);
    config_free(f->config);
    snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
    fx_clock_reset();
}

status fx_try_open(struct fixture *f)
{
    err_clear(&f->err);
    return cl_node_open(fx_env(), f->config, f->dir, &f->node, &f->err);
}

struct events {
    struct fixture *f;
    sem_t ready;
};

static void on_ready(void *arg)
{
    struct events *e = arg;
    sem_post(&e->ready);
}

static struct events events;

static void on_failed(void *arg, status st)
{
    struct events *e = arg;
    e->f->failed = st;
    sem_post(&e->ready);
}

void fx_open(struct fixture *f)
{
    status st = fx_try_open(f);
    if (st != ST_OK)
        print_error("open: %s\n", f->err.message);
    assert_int_equal(st, ST_OK);
    events.f = f;
    sem_init(&events.ready, 0, 0);
    cl_node_start(f->node, on_ready, on_failed, &events);
    sem_wait(&events.ready);
}

status fx_wait_failed(struct fixture *f)
{
    sem_wait(&events.ready);
    return f->failed;
}

struct on_reactor {
    struct mail mail;
    void (*fn)(void *arg);
    void *arg;
    sem_t done;
};

static void deliver(struct mail *m)
{
    struct on_reactor *r = CONTAINER_OF(m, struct on_reactor, mail);
    r->fn(r->arg);
    sem_post(&r->done);
}

void fx_on_reactor(struct fixture *f, void (*fn)(void *arg), void *arg)
{
    struct on_reactor r = {.mail.deliver = deliver, .fn = fn, .arg = arg};
    sem_init(&r.done, 0, 0);
    mailbox_send(cl_node_reactor(f->node, 0)->mailbox, &r.mail);
    sem_wait(&r.done);
    sem_destroy(&r.done);
}

struct peek {
    const void *at;
    void *out;
    size_t size;
};

static void peek(void *arg)
{
    struct peek *p = arg;
    memcpy(p->out, p->at, p->size);
}

void fx_peek(struct fixture *f, const void *at, void *out, size_t size)
{
    struct peek p = {.at = at, .out = out, .size = size};
    fx_on_reactor(f, peek, &p);
}

static void post(void *arg)
{
    sem_post(arg);
}

struct stop {
    struct cl_node *node;
    sem_t stopped;
};

static void stop(void *arg)
{
    struct stop *s = arg;
    cl_node_stop(s->node, post, &s->stopped);
}

void fx_close_while(struct fixture *f, void (*meanwhile)(void))
{
    struct stop s = {.node = f->node};
    sem_init(&s.stopped, 0, 0);
    fx_on_reactor(f, stop, &s);
    if (meanwhile != NULL)
        meanwhile();
    sem_wait(&s.stopped);
    sem_destroy(&s.stopped);
    cl_node_close(f->node);
    f->node = NULL;
}

void fx_close(struct fixture *f)
{
    fx_close_while(f, NULL);
}

void fx_reopen(struct fixture *f)
{
    fx_close(f);
    fx_open(f);
}

/* -- client ------------------------------------------------------------------------------------ */

static void new_client(void *arg)
{
    struct fx_client *x = arg;
    x->c = cl_client_new(x->f->node, cl_node_reactor(x->f->node, 0), NS);
}

static void free_client(void *arg)
{
    struct fx_client *x = arg;
    cl_client_free(x->c);
}

void fx_client_init(struct fx_client *x, struct fixture *f)
{
    *x = (struct fx_client){.f = f};
    arena_init(&x->arena, 4096);
    fx_on_reactor(f, new_client, x);
}

void fx_client_fini(struct fx_client *x)
{
    fx_on_reactor(x->f, free_client, x);
    arena_fini(&x->arena);
}

struct request {
    struct fx_client *x;
    enum { REQ_OPS, REQ_READ, REQ_COMMIT, REQ_CALL } kind;
    const struct kv_op *const *ops;
    unsigned count;
    const struct kv_read *read;
    struct kv_read_pos pos;
    const struct cl_function *function;
    const struct kv_datum *args;
    status st;
    sem_t done;
};

static void request_step(struct request *r);

static void request_done(struct cl_call *call, status st)
{
    struct request *r = call->arg;
    r->st = st;
    if (r->kind == REQ_READ && st == ST_OK)
        request_step(r);
    else
        sem_post(&r->done);
}

static bool take_row(void *arg, const struct kv_row *row)
{
    struct fx_client *x = ((struct request *)arg)->x;
    const struct request *r = arg;
    bool numbers = r->read->kind == KV_READ_COUNT || r->read->kind == KV_READ_USAGE;
    if (x->row_count < ARRAY_LEN(x->rows) && numbers)
        x->rows[x->row_count] = *row;
    else if (x->row_count < ARRAY_LEN(x->rows))
        kv_row_copy(&x->arena, row, &x->rows[x->row_count]);
    x->row_count++;
    return true;
}

static void take_values(void *arg, const struct kv_datum *values)
{
    struct request *r = arg;
    struct fx_client *x = r->x;
    struct kv_row *row = &x->rows[x->row_count % ARRAY_LEN(x->rows)];
    for (unsigned i = 0; i < r->function->result_count; i++) {
        row->col[i] = values[i];
        if (r->function->result[i].type == KV_TEXT)
            row->col[i].b = arena_copy(&x->arena, values[i].b);
    }
    x->row_count++;
}

static void request_step(struct request *r)
{
    struct fx_client *x = r->x;
    do {
        switch (r->kind) {
        case REQ_OPS: r->st = cl_ops(x->c, &x->call, r->ops, r->count); break;
        case REQ_READ: r->st = cl_read(x->c, &x->call, r->read, &r->pos); break;
        case REQ_COMMIT: r->st = cl_commit(x->c, &x->call); break;
        case REQ_CALL:
            r->st = cl_function_run(r->function, x->c, &x->call, r->args, take_values, r);
            break;
        }
    } while (r->kind == REQ_READ && r->st == ST_OK);
    if (r->st != ST_PENDING)
        sem_post(&r->done);
    else if (x->cancel)
        cl_cancel(x->c);
}

static void request_start(void *arg)
{
    struct request *r = arg;
    struct fx_client *x = r->x;
    x->row_count = 0;
    x->call = (struct cl_call){.done = request_done,
                               .arg = r,
                               .arena = &x->arena,
                               .on_row = take_row,
                               .max_rows = 16,
                               .max_bytes = 1 << 20};
    request_step(r);
}

static status request(struct fx_client *x, struct request *r)
{
    r->x = x;
    sem_init(&r->done, 0, 0);
    fx_on_reactor(x->f, request_start, r);
    sem_wait(&r->done);
    sem_destroy(&r->done);
    return r->st;
}

status fx_ops(struct fx_client *x, const struct kv_op *const *ops, unsigned count)
{
    struct request r = {.kind = REQ_OPS, .ops = ops, .count = count};
    return request(x, &r);
}

status fx_op(struct fx_client *x, const struct kv_op *op)
{
    return fx_ops(x, &op, 1);
}

status fx_read(struct fx_client *x, const struct kv_read *read)
{
    struct request r = {.kind = REQ_READ, .read = read};
    return request(x, &r);
}

struct begin {
    struct fx_client *x;
    bool read_only;
};

static void begin(void *arg)
{
    struct begin *b = arg;
    cl_begin(b->x->c, b->read_only, 0);
}

void fx_begin(struct fx_client *x, bool read_only)
{
    struct begin b = {x, read_only};
    fx_on_reactor(x->f, begin, &b);
}

status fx_commit(struct fx_client *x)
{
    struct request r = {.kind = REQ_COMMIT};
    return request(x, &r);
}

static void rollback(void *arg)
{
    struct fx_client *x = arg;
    cl_rollback(x->c);
}

void fx_rollback(struct fx_client *x)
{
    fx_on_reactor(x->f, rollback, x);
}

status fx_call(struct fx_client *x, const char *function)
{
    return fx_call_with(x, function, NULL);
}

struct viewed {
    struct fixture *f;
    const char *name;
    void (*fn)(void *arg, const struct kv_datum *values);
    void *arg;
};

static void view(void *arg)
{
    const struct viewed *v = arg;
    unsigned count;
    const struct cl_view *all = cl_views(&count);
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(all[i].name, v->name) == 0)
            all[i].rows(v->f->node, v->fn, v->arg);
    }
}

void fx_view(struct fixture *f, const char *name,
             void (*fn)(void *arg, const struct kv_datum *values), void *arg)
{
    struct viewed v = {f, name, fn, arg};
    fx_on_reactor(f, view, &v);
}

status fx_call_with(struct fx_client *x, const char *function, const struct kv_datum *args)
{
    unsigned count;
    const struct cl_function *all = cl_functions(&count);
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(all[i].name, function) != 0)
            continue;
        struct request r = {.kind = REQ_CALL, .function = &all[i], .args = args};
        return request(x, &r);
    }
    fail_msg("no function %s", function);
    return ST_INTERNAL;
}

/* -- operations -------------------------------------------------------------------------------- */

static struct kv_op *new_op(struct arena *a, enum kv_op_kind kind, enum kv_table table)
{
    static _Atomic uint64_t seed = 1;
    struct kv_op *op = ARENA_NEW(a, struct kv_op);
    op->kind = kind;
    op->table = table;
    op->ns = NS;
    op->now = cl__timestamptz(env_unix_us(fx_env()));
    op->seed = atomic_fetch_add(&seed, 1);
    return op;
}

static struct kv_datum text(const char *s)
{
    return kv_text(bytes_str(s));
}

struct kv_op *fx_create(struct arena *a, int64_t pid, const char *name, char type, int64_t id)
{
    static const unsigned columns[] = {META_PID, META_NAME, META_ID, META_TYPE};
    struct kv_op *op = new_op(a, KV_OP_INSERT, KV_META);
    struct kv_datum *v = ARENA_ARRAY(a, struct kv_datum, 4);
    v[0] = kv_int(pid);
    v[1] = text(name);
    v[2] = kv_int(id);
    v[3] = kv_int(type);
    op->columns = columns;
    op->column_count = 4;
    op->values = v;
    op->row_count = 1;
    return op;
}

struct kv_op *fx_create_full(struct arena *a, int64_t pid, const char *name, int64_t id,
                             int64_t uid, int64_t size, int64_t fid)
{
    static const unsigned columns[] = {META_PID, META_NAME, META_ID, META_UID, META_SIZE, META_FID};
    struct kv_op *op = new_op(a, KV_OP_INSERT, KV_META);
    struct kv_datum *v = ARENA_ARRAY(a, struct kv_datum, 6);
    v[0] = kv_int(pid);
    v[1] = text(name);
    v[2] = kv_int(id);
    v[3] = kv_int(uid);
    v[4] = kv_int(size);
    v[5] = kv_int(fid);
    op->columns = columns;
    op->column_count = 6;
    op->values = v;
    op->row_count = 1;
    return op;
}

static void set_meta_key(struct arena *a, struct kv_op *op, int64_t pid, const char *name)
{
    struct kv_datum *k = ARENA_ARRAY(a, struct kv_datum, 2);
    k[0] = kv_int(pid);
    k[1] = text(name);
    op->keys = k;
    op->key_count = 1;
}

struct kv_op *fx_remove(struct arena *a, int64_t pid, const char *name)
{
    struct kv_op *op = new_op(a, KV_OP_DELETE, KV_META);
    set_meta_key(a, op, pid, name);
    return op;
}

struct kv_op *fx_lock(struct arena *a, int64_t pid, const char *name)
{
    struct kv_op *op = new_op(a, KV_OP_LOCK, KV_META);
    set_meta_key(a, op, pid, name);
    return op;
}

struct kv_op *fx_set_size(struct arena *a, int64_t pid, const char *name, int64_t size)
{
    struct kv_op *op = new_op(a, KV_OP_UPDATE, KV_META);
    struct kv_set *set = ARENA_NEW(a, struct kv_set);
    *set = (struct kv_set){.column = META_SIZE, .kind = KV_SET_VALUE, .value = kv_int(size)};
    set_meta_key(a, op, pid, name);
    op->sets = set;
    op->set_count = 1;
    return op;
}

struct kv_op *fx_kv_put(struct arena *a, const char *key, const char *value)
{
    static const unsigned columns[] = {KVT_KEY, KVT_VALUE};
    struct kv_op *op = new_op(a, KV_OP_INSERT, KV_KV);
    struct kv_datum *v = ARENA_ARRAY(a, struct kv_datum, 2);
    struct kv_set *set = ARENA_NEW(a, struct kv_set);
    v[0] = text(key);
    v[1] = text(value);
    *set = (struct kv_set){.column = KVT_VALUE, .kind = KV_SET_EXCLUDED, .from = KVT_VALUE};
    op->columns = columns;
    op->column_count = 2;
    op->values = v;
    op->row_count = 1;
    op->conflict = KV_CONFLICT_UPDATE;
    op->sets = set;
    op->set_count = 1;
    return op;
}

static status lookup(struct fx_client *x, enum kv_table t, const struct kv_datum *cols, unsigned n)
{
    bytes key = kv_key_prefix(&x->arena, NS, t, cols, n);
    struct kv_read r = {.kind = KV_READ_POINTS,
                        .table = t,
                        .ns = NS,
                        .points = &key,
                        .point_count = 1,
                        .limit = -1};
    return fx_read(x, &r);
}

status fx_lookup(struct fx_client *x, int64_t pid, const char *name)
{
    struct kv_datum cols[] = {kv_int(pid), text(name)};
    return lookup(x, KV_META, cols, 2);
}

status fx_lookup_kv(struct fx_client *x, const char *key)
{
    struct kv_datum cols[] = {text(key)};
    return lookup(x, KV_KV, cols, 1);
}

int64_t fx_quota(struct fx_client *x, int64_t uid, const char *name)
{
    struct kv_datum cols[] = {kv_int(uid), text(name)};
    assert_int_equal(lookup(x, KV_QUOTA, cols, 2), ST_END);
    return x->row_count == 0 ? 0 : x->rows[0].col[QUOTA_VALUE].i;
}

unsigned fx_list(struct fx_client *x, int64_t pid)
{
    struct kv_datum col = kv_int(pid);
    bytes lower = kv_key_prefix(&x->arena, NS, KV_META, &col, 1);
    struct kv_filter no_attr = {.column = META_NAME, .cmp = KV_NE, .value = kv_text(KV_ATTR_NAME)};
    struct kv_read r = {.kind = KV_READ_RANGE,
                        .table = KV_META,
                        .ns = NS,
                        .lower = lower,
                        .upper = kv_key_after_prefix(&x->arena, lower),
                        .filters = &no_attr,
                        .filter_count = 1,
                        .limit = -1};
    assert_int_equal(fx_read(x, &r), ST_END);
    return x->row_count;
}
