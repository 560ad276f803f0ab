#include "model.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NS 7u
#define STEP_US 1000

uint64_t model_random(struct model *m, uint64_t below)
{
    uint64_t z = (m->seed += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (z ^ (z >> 31)) % below;
}

static int by_key(const void *a, const void *b)
{
    return bytes_cmp(((const struct model_key *)a)->key, ((const struct model_key *)b)->key);
}

void model_init(struct model *m, uint64_t seed, unsigned log_max)
{
    unsigned n = 0;

    *m = (struct model){.seed = seed, .log_max = log_max, .ts = hlc_from_us(1000000)};
    arena_init(&m->arena, 65536);
    m->log = calloc(log_max, sizeof *m->log);
    assert_non_null(m->log);
    for (unsigned d = 0; d < MODEL_DIRS; d++) {
        m->keys[n++] = (struct model_key){.key = kv_key_attr(&m->arena, NS, d), .attr = true};
        for (unsigned i = 0; i < MODEL_NAMES; i++) {
            /* Names on both sides of _attr_. */
            char *name = arena_printf(&m->arena, i % 2 ? "a-file-%u" : "name-%u", i);

            m->keys[n++].key = kv_key_meta(&m->arena, NS, d, bytes_str(name));
        }
    }
    for (unsigned i = 0; i < MODEL_PLAIN; i++) {
        struct kv_datum col = kv_text(bytes_str(arena_printf(&m->arena, "key-%u", i)));

        m->keys[n++].key = kv_key_prefix(&m->arena, NS, KV_KV, &col, 1);
    }
    assert_int_equal(n, MODEL_KEYS);
    qsort(m->keys, n, sizeof m->keys[0], by_key);
}

void model_fini(struct model *m)
{
    arena_fini(&m->arena);
    free(m->log);
}

hlc_ts model_last_ts(const struct model *m)
{
    return m->ts;
}

static bytes encode(struct model *m, const struct kv_row *row)
{
    struct obuf o;
    bytes out;

    obuf_init(&o);
    kv_row_encode(row, &o);
    out = arena_copy(&m->arena, bytes_make(o.data, o.size));
    obuf_fini(&o);
    return out;
}

static bytes random_bytes(struct model *m, size_t max)
{
    size_t size = model_random(m, max);
    uint8_t *p = arena_alloc(&m->arena, size + 1);

    for (size_t i = 0; i < size; i++)
        p[i] = (uint8_t)model_random(m, 256);
    return bytes_make(p, size);
}

static bytes random_row(struct model *m, struct model_key *k)
{
    struct kv_row row = {.table = kv_key_table(k->key)};
    const struct kv_table_def *def = kv_table_def(row.table);

    for (unsigned c = 0; c < def->column_count; c++)
        row.col[c] = KV_NULL;
    if (row.table == KV_KV) {
        row.col[KVT_VALUE] = kv_text(random_bytes(m, 60));
        return encode(m, &row);
    }
    row.col[META_ID] = kv_int((int64_t)model_random(m, 1000000));
    row.col[META_TYPE] = kv_int(k->attr ? KV_TYPE_DIR : KV_TYPE_FILE);
    row.col[META_MODE] = kv_int((int64_t)model_random(m, 07777));
    if (k->attr) {
        bool alive = k->newest != NULL && !k->newest->deleted;

        /* A put holds the full aggregates of its moment; a time may also be set back. */
        if (!alive)
            k->children = k->mtime = k->ctime = 0;
        if (model_random(m, 3) == 0)
            k->mtime = (int64_t)model_random(m, 1000);
        row.col[META_NUM_CHILDREN] = kv_int(k->children);
        row.col[META_MTIME] = kv_int(k->mtime);
        row.col[META_CTIME] = kv_int(k->ctime);
    }
    return encode(m, &row);
}

static void version_add(struct model *m, struct model_key *k, bool deleted, bytes row)
{
    struct model_version *v = ARENA_NEW(&m->arena, struct model_version);

    *v = (struct model_version){.older = k->newest, .ts = m->ts, .deleted = deleted, .row = row};
    if (v->older != NULL && v->older->ts == v->ts)
        v->older = v->older->older;
    k->newest = v;
}

static void random_op(struct model *m, struct model_op *op)
{
    struct model_key *k;
    bool alive;

    op->key = (unsigned)model_random(m, MODEL_KEYS);
    k = &m->keys[op->key];
    alive = k->newest != NULL && !k->newest->deleted;
    op->fresh = !alive && model_random(m, 4) > 0;
    if (k->attr && model_random(m, 10) < 8) {
        op->kind = MODEL_DELTA;
        op->children = (int64_t)model_random(m, 7) - 3;
        op->mtime = model_random(m, 4) ? (int64_t)m->log_count * 3 : INT64_MIN;
        op->ctime = (int64_t)m->log_count * 3 - (int64_t)model_random(m, 100);
        if (alive) {
            k->children += op->children;
            k->mtime = op->mtime > k->mtime ? op->mtime : k->mtime;
            k->ctime = op->ctime > k->ctime ? op->ctime : k->ctime;
        }
        return;
    }
    if (alive && model_random(m, 2) == 0) {
        op->kind = MODEL_DELETE;
        op->fresh = false;
        version_add(m, k, true, BYTES_EMPTY);
        return;
    }
    op->kind = MODEL_PUT;
    op->row = random_row(m, k);
    version_add(m, k, false, op->row);
}

void model_step(struct model *m)
{
    struct model_command *c = &m->log[m->log_count];
    hlc_ts before = m->log_count > 0 ? m->log[m->log_count - 1].ts : 0;
    bool pushed = false;

    assert_true(m->log_count < m->log_max);
    m->ts += hlc_from_us(STEP_US) + model_random(m, 3);
    c->ts = m->ts;
    c->count = 1 + (unsigned)model_random(m, MODEL_OPS);
    for (unsigned i = 0; i < c->count; i++) {
        struct model_op *op = &c->ops[i];

        switch (model_random(m, 12)) {
        case 0:
            op->kind = MODEL_COUNTER;
            m->counter++;
            break;
        case 1:
            op->kind = MODEL_ACK;
            op->up_to = before - (before > 0 ? model_random(m, hlc_from_us(STEP_US * 40)) : 0);
            m->acked = op->up_to > m->acked ? op->up_to : m->acked;
            break;
        case 2:
        case 3:
            if (!pushed) {
                op->kind = MODEL_PUSH;
                op->row = random_bytes(m, 40);
                pushed = true;
                break;
            }
            /* fall through */
        default: random_op(m, op);
        }
    }
    m->log_count++;
}

static void apply(const struct model *m, struct kv_state *s, const struct model_op *op)
{
    bytes key = m->keys[op->key].key;

    switch (op->kind) {
    case MODEL_PUT: kv_state_put(s, key, op->row, op->fresh); break;
    case MODEL_DELETE: kv_state_delete(s, key, op->fresh); break;
    case MODEL_DELTA: kv_state_delta(s, key, op->children, op->mtime, op->ctime); break;
    case MODEL_PUSH: kv_state_queue_push(s, op->row); break;
    case MODEL_ACK: kv_state_queue_ack(s, op->up_to); break;
    case MODEL_COUNTER: kv_state_record_mut(s)->next_file_id++; break;
    }
}

void model_replay(const struct model *m, struct kv_state *s)
{
    for (uint64_t i = kv_state_record(s)->applied_index; i < m->log_count; i++) {
        const struct model_command *c = &m->log[i];

        kv_state_begin(s, i + 1, 1, c->ts);
        for (unsigned o = 0; o < c->count; o++)
            apply(m, s, &c->ops[o]);
        kv_state_end(s);
    }
}

static const struct model_version *visible(const struct model_key *k, hlc_ts at)
{
    const struct model_version *v = k->newest;

    while (v != NULL && v->ts > at)
        v = v->older;
    return v != NULL && !v->deleted ? v : NULL;
}

static void check_cell(const struct model_key *k, const struct model_version *v,
                       const struct kv_cell *cell)
{
    if (cell->ts != v->ts)
        fail_msg("stamp %llu, not %llu", (unsigned long long)cell->ts, (unsigned long long)v->ts);
    assert_int_equal(cell->aggregated, k->attr);
    if (!k->attr) {
        assert_true(bytes_eq(cell->row, v->row));
    } else if (!k->newest->deleted) {
        struct kv_row want, got;

        assert_int_equal(cell->num_children, k->children);
        assert_int_equal(cell->mtime, k->mtime);
        assert_int_equal(cell->ctime, k->ctime);
        assert_int_equal(kv_row_decode(KV_META, v->row, &want), ST_OK);
        assert_int_equal(kv_row_decode(KV_META, cell->row, &got), ST_OK);
        assert_int_equal(got.col[META_MODE].i, want.col[META_MODE].i);
    }
}

static void check_gets(struct model *m, const struct kv_view *v, hlc_ts at)
{
    for (unsigned i = 0; i < MODEL_KEYS; i++) {
        const struct model_version *want = visible(&m->keys[i], at);
        struct kv_cell cell;
        status st = kv_state_get(v, m->keys[i].key, &cell);

        assert_int_equal(st, want != NULL ? ST_OK : ST_NOT_FOUND);
        if (want != NULL)
            check_cell(&m->keys[i], want, &cell);
    }
}

/* Where a check of kv_scan_each stands among the model's keys. */
struct each_check {
    struct model *m;
    hlc_ts at;
    bool backwards;
    unsigned next, lower, upper; /* keys passed, of those in the range */
    unsigned stop_after;         /* entries until a rest */
};

static const struct model_key *each_next(struct each_check *e)
{
    while (e->next < e->upper - e->lower) {
        unsigned n = e->next++;
        const struct model_key *k = &e->m->keys[e->backwards ? e->upper - 1 - n : e->lower + n];

        if (visible(k, e->at) != NULL)
            return k;
    }
    return NULL;
}

static bool each_entry(void *arg, bytes key, const struct kv_cell *cell)
{
    struct each_check *e = arg;
    const struct model_key *k = each_next(e);

    assert_non_null(k);
    assert_true(bytes_eq(key, k->key));
    check_cell(k, visible(k, e->at), cell);
    return --e->stop_after > 0;
}

/* The same entries by kv_scan_each, with rests at random places and single steps between them. */
static void check_scan_each(struct model *m, const struct kv_view *v, hlc_ts at, bool backwards,
                            unsigned lower, unsigned upper)
{
    static const uint8_t first = 1, last = KV_QUEUE;
    struct each_check e = {
        .m = m, .at = at, .backwards = backwards, .lower = lower, .upper = upper};
    bool whole = lower == 0 && upper == MODEL_KEYS;
    bytes from = whole ? bytes_make(&first, 1) : m->keys[lower].key;
    bytes to = whole ? bytes_make(&last, 1) : m->keys[upper].key, key;
    struct kv_scan *scan = kv_scan_open(v, from, to, backwards);
    struct kv_cell cell;
    status st;

    do {
        e.stop_after = 1 + (unsigned)model_random(m, 20);
        st = kv_scan_each(scan, each_entry, &e);
        if (st == ST_OK && model_random(m, 3) == 0) {
            st = kv_scan_next(scan, &key, &cell);
            if (st == ST_OK)
                (void)each_entry(&e, key, &cell);
        }
    } while (st == ST_OK);
    assert_int_equal(st, ST_END);
    assert_null(each_next(&e));
    kv_scan_close(scan);
}

static void check_scan(struct model *m, const struct kv_view *v, hlc_ts at, bool backwards)
{
    static const uint8_t first = 1, last = KV_QUEUE;
    unsigned lower = 0, upper = MODEL_KEYS;
    bytes from = bytes_make(&first, 1), to = bytes_make(&last, 1), key;
    struct kv_scan *scan;
    struct kv_cell cell;

    if (model_random(m, 2) == 0) {
        lower = (unsigned)model_random(m, MODEL_KEYS);
        upper = lower + (unsigned)model_random(m, MODEL_KEYS - lower);
        from = m->keys[lower].key;
        to = m->keys[upper].key;
    }
    scan = kv_scan_open(v, from, to, backwards);
    for (unsigned n = 0; n < upper - lower; n++) {
        const struct model_key *k = &m->keys[backwards ? upper - 1 - n : lower + n];
        const struct model_version *want = visible(k, at);

        if (want == NULL)
            continue;
        assert_int_equal(kv_scan_next(scan, &key, &cell), ST_OK);
        assert_true(bytes_eq(key, k->key));
        check_cell(k, want, &cell);
    }
    assert_int_equal(kv_scan_next(scan, &key, &cell), ST_END);
    assert_int_equal(kv_scan_next(scan, &key, &cell), ST_END);
    kv_scan_close(scan);
    check_scan_each(m, v, at, backwards, lower, upper);
}

struct queue_check {
    const struct model *m;
    unsigned command;
};

/* The first push after the acknowledged stamp from command FROM on; NULL if none. */
static const struct model_op *next_push(const struct model *m, unsigned *from)
{
    for (; *from < m->log_count; ++*from) {
        const struct model_command *c = &m->log[*from];

        for (unsigned i = 0; i < c->count; i++)
            if (c->ops[i].kind == MODEL_PUSH && c->ts > m->acked)
                return &c->ops[i];
    }
    return NULL;
}

static bool check_record(void *arg, hlc_ts ts, bytes items)
{
    struct queue_check *q = arg;
    const struct model_op *want = next_push(q->m, &q->command);

    assert_non_null(want);
    assert_true(ts == q->m->log[q->command].ts);
    assert_true(bytes_eq(items, want->row));
    q->command++;
    return true;
}

void model_check_queue(const struct model *m, struct kv_state *s)
{
    struct queue_check q = {.m = m};

    kv_state_queue_each(s, 0, check_record, &q);
    assert_null(next_push(m, &q.command));
    assert_true(kv_state_record(s)->queue_acked == m->acked);
    assert_int_equal(kv_state_record(s)->next_file_id, m->counter);
}

void model_check(struct model *m, struct kv_state *s, hlc_ts at, bool pool)
{
    struct arena a;
    struct kv_view v = {.state = s, .at = at, .tier = KV_TIER_ANY, .pool = pool, .arena = &a};

    arena_init(&a, 4096);
    check_gets(m, &v, at);
    check_scan(m, &v, at, false);
    check_scan(m, &v, at, true);
    arena_fini(&a);
}
