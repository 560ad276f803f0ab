/* Long pages: whole, in order, of one snapshot, whichever threads read them; a cancel ends them. */
#include "cluster/long_reads.h"
#include "fixture.h"
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define DIRECTORY 100
#define ENTRIES 300u
#define LISTERS 8u
#define RETENTION_US 6000000u

/* One client that lists the directory in one page. What is in here belongs to the call while it is
 * pending. */
struct lister {
    struct world *w;
    struct cl_client *c;
    struct cl_call call;
    struct arena arena;
    struct kv_read read;
    struct kv_read_pos pos;
    char last[64];
    unsigned rows, out_of_order;
    status st;
};

struct world {
    struct fixture f;
    struct fx_client writer;
    struct lister listers[LISTERS];
    unsigned count;
    bool cancel;
    sem_t done;
};

static struct world *world_new(const char *readers)
{
    struct world *w = calloc(1, sizeof *w);
    fx_init(&w->f);
    fx_set(&w->f, "pool.readers", readers);
    fx_open(&w->f);
    fx_client_init(&w->writer, &w->f);
    sem_init(&w->done, 0, 0);
    struct arena *a = &w->writer.arena;
    assert_int_equal(fx_op(&w->writer, fx_create(a, 0, "d", 'd', DIRECTORY)), ST_OK);
    for (unsigned i = 0; i < ENTRIES; i++) {
        char name[16];
        snprintf(name, sizeof name, "e%05u", i);
        assert_int_equal(fx_op(&w->writer, fx_create(a, DIRECTORY, name, 'f', 1000 + i)), ST_OK);
    }
    return w;
}

static void clients_new(void *arg)
{
    struct world *w = arg;
    for (unsigned i = 0; i < LISTERS; i++) {
        w->listers[i].w = w;
        w->listers[i].c = cl_client_new(w->f.node, cl_node_reactor(w->f.node, 0), 1);
        arena_init(&w->listers[i].arena, 1024);
    }
}

static void clients_free(void *arg)
{
    struct world *w = arg;
    for (unsigned i = 0; i < LISTERS; i++) {
        cl_client_free(w->listers[i].c);
        arena_fini(&w->listers[i].arena);
    }
}

static void world_free(struct world *w)
{
    fx_client_fini(&w->writer);
    sem_destroy(&w->done);
    fx_fini(&w->f);
    free(w);
}

/* On any thread, as the call allows. */
static bool on_row(void *arg, const struct kv_row *row)
{
    struct lister *l = arg;
    bytes name = row->col[META_NAME].b;
    assert_true(name.size < sizeof l->last);
    l->out_of_order += l->rows > 0 && bytes_cmp(bytes_str(l->last), name) >= 0;
    memcpy(l->last, name.data, name.size);
    l->last[name.size] = '\0';
    l->rows++;
    return true;
}

static void on_done(struct cl_call *call, status st)
{
    struct lister *l = call->arg;
    l->st = st;
    sem_post(&l->w->done);
}

static void start_one(struct lister *l)
{
    struct kv_datum col = kv_int(DIRECTORY);
    arena_reset(&l->arena);
    l->pos = (struct kv_read_pos){0};
    l->rows = l->out_of_order = 0;
    l->call = (struct cl_call){.done = on_done,
                               .arg = l,
                               .arena = &l->arena,
                               .on_row = on_row,
                               .anywhere = true,
                               .max_rows = 10000,
                               .max_bytes = 1 << 20};
    bytes lower = kv_key_prefix(&l->arena, 1, KV_META, &col, 1);
    l->read = (struct kv_read){.kind = KV_READ_RANGE,
                               .table = KV_META,
                               .ns = 1,
                               .lower = lower,
                               .upper = kv_key_after_prefix(&l->arena, lower),
                               .limit = -1};
    l->st = cl_read(l->c, &l->call, &l->read, &l->pos);
    if (l->st != ST_PENDING)
        sem_post(&l->w->done);
    else if (l->w->cancel)
        cl_cancel(l->c);
}

/* All in one turn. */
static void start_all(void *arg)
{
    struct world *w = arg;
    for (unsigned i = 0; i < w->count; i++)
        start_one(&w->listers[i]);
}

static void list(struct world *w, unsigned count)
{
    w->count = count;
    fx_on_reactor(&w->f, start_all, w);
}

static void wait_all(struct world *w)
{
    for (unsigned i = 0; i < w->count; i++)
        sem_wait(&w->done);
}

static void check_all(const struct world *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        assert_int_equal(w->listers[i].st, ST_END);
        assert_int_equal(w->listers[i].rows, ENTRIES + 1); /* and _attr_ */
        assert_int_equal(w->listers[i].out_of_order, 0);
    }
}

/* Each transaction takes one entry away and makes another: any snapshot has the same number. */
static void replace_one(struct world *w, unsigned turn)
{
    struct arena *a = &w->writer.arena;
    char old[16], new[16];
    snprintf(old, sizeof old, "e%05u%s", turn % ENTRIES, turn / ENTRIES % 2 ? "x" : "");
    snprintf(new, sizeof new, "e%05u%s", turn % ENTRIES, turn / ENTRIES % 2 ? "" : "x");
    fx_begin(&w->writer, false);
    assert_int_equal(fx_op(&w->writer, fx_remove(a, DIRECTORY, old)), ST_OK);
    assert_int_equal(fx_op(&w->writer, fx_create(a, DIRECTORY, new, 'f', 5000 + turn)), ST_OK);
    assert_int_equal(fx_commit(&w->writer), ST_OK);
}

static void list_while_writing(const char *readers)
{
    struct world *w = world_new(readers);
    fx_on_reactor(&w->f, clients_new, w);
    for (unsigned turn = 0; turn < 200; turn++) {
        list(w, 1 + turn % LISTERS);
        replace_one(w, turn);
        wait_all(w);
        check_all(w);
        if (turn % 50 == 49) {
            fx_clock_advance(RETENTION_US + 1000000u); /* no page is under way */
            assert_int_equal(fx_call(&w->writer, "flush"), ST_OK);
        }
    }
    fx_on_reactor(&w->f, clients_free, w);
    world_free(w);
}

static void pages_are_snapshots_on_several_threads(void **unused)
{
    (void)unused;
    list_while_writing("3");
}

static void pages_are_snapshots_on_the_reactor_alone(void **unused)
{
    (void)unused;
    list_while_writing("0");
}

static void cancelled_pages_end(void **unused)
{
    (void)unused;
    struct world *w = world_new("2");
    fx_on_reactor(&w->f, clients_new, w);
    for (unsigned turn = 0; turn < 100; turn++) {
        w->cancel = true;
        list(w, LISTERS);
        wait_all(w);
        for (unsigned i = 0; i < LISTERS; i++) {
            assert_int_equal(w->listers[i].st, ST_CANCELLED);
            assert_true(w->listers[i].rows <= ENTRIES);
        }
        w->cancel = false;
        list(w, 2);
        wait_all(w);
        check_all(w);
    }
    fx_on_reactor(&w->f, clients_free, w);
    world_free(w);
}

/* The timer of the node may make one of these turns a busy one. */
static void lone_page_stays_on_the_reactor(void **unused)
{
    (void)unused;
    struct world *w = world_new("2");
    unsigned trips = 0;
    fx_on_reactor(&w->f, clients_new, w);
    for (unsigned turn = 0; turn < 40; turn++) {
        list(w, 1);
        wait_all(w);
        check_all(w);
        trips += w->listers[0].call.stats.pool_trips > 0;
    }
    assert_true(trips < 20);
    fx_on_reactor(&w->f, clients_free, w);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_snapshots_on_several_threads),
        cmocka_unit_test(pages_are_snapshots_on_the_reactor_alone),
        cmocka_unit_test(cancelled_pages_end),
        cmocka_unit_test(lone_page_stays_on_the_reactor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
