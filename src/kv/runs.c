/*
 * Runs by their first key in a skip list; who was used last in two queues.
 *
 * A new run waits on *probation*, a quarter of the bytes: pages over a large directory that nobody
 * asks for twice push out each other alone. A run that is found again moves to the *kept* queue.
 *
 * Invariants
 *   U1  Runs are disjoint, and each is all that the store holds in its range, but for batches that
 *       are under way (runs.h).
 *   U2  A run is added only if no batch was under way at its moment and none has begun since.
 *   U3  The bytes of all runs are at most bytes_max; one that is lent counts until it is dropped.
 *
 * Threads: the lock guards everything but the contents of runs; nothing under it waits or calls out
 * but for the allocator.
 */
#include "kv/runs.h"
#include "base/assert.h"
#include "base/list.h"
#include "base/memory.h"
#include "kv/key.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LEVELS 12u
#define ENTRIES_MAX 256u
#define ENTRIES_MIN 16u
#define BYTES_MAX (48u << 10)
#define PROBATION_SHARE 4u

struct kv_run {
    _Atomic uint32_t refs;
    unsigned count, height;
    uint32_t from_size, to_size;
    size_t size; /* of the allocation */
    bool probation;
    struct list node; /* in its queue */
    struct kv_run *next[LEVELS];
    const uint32_t *ends; /* behind the bytes: ends of keys and values in turn */
    uint8_t data[];       /* from, entries; then to */
};

struct kv_runs {
    pthread_mutex_t lock;
    struct list kept, probation;
    uint64_t bytes, probation_bytes, bytes_max;
    uint64_t random;
    unsigned writers;
    uint64_t moment; /* changes when a batch begins or ends */
    struct kv_runs_stats stats;
    struct kv_run head; /* of the skip list; has no data */
};

struct kv_runs_writer {
    struct kv_runs *runs;
    size_t last_size, clear_size; /* no run begins between the two keys or covers one there */
    bool clear_to_end;
    uint8_t last[KV_KEY_MAX + 1], clear[KV_KEY_MAX + 1];
};

/* -- a run ------------------------------------------------------------------------------------- */

static bytes run_from(const struct kv_run *r)
{
    return bytes_make(r->data, r->from_size);
}

static size_t entries_end(const struct kv_run *r)
{
    return r->count > 0 ? r->ends[2 * r->count - 1] : r->from_size;
}

bytes kv_run_end(const struct kv_run *r)
{
    return bytes_make(r->data + entries_end(r), r->to_size);
}

bool kv_run_entry(const struct kv_run *r, unsigned at, bytes *key, bytes *value)
{
    size_t begin, middle;

    if (at >= r->count)
        return false;
    begin = at > 0 ? r->ends[2 * at - 1] : r->from_size;
    middle = r->ends[2 * at];
    *key = bytes_make(r->data + begin, middle - begin);
    *value = bytes_make(r->data + middle, r->ends[2 * at + 1] - middle);
    return true;
}

unsigned kv_run_seek(const struct kv_run *r, bytes key)
{
    unsigned low = 0, high = r->count;

    while (low < high) {
        unsigned middle = (low + high) / 2;
        bytes k = BYTES_EMPTY, v;

        (void)kv_run_entry(r, middle, &k, &v);
        if (bytes_cmp(k, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void kv_run_give_back(const struct kv_run *lent)
{
    struct kv_run *r = (struct kv_run *)lent;

    if (r != NULL && atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1)
        memory_free(MEMORY_RUNS, r, r->size);
}

/* -- the skip list: under the lock ------------------------------------------------------------- */

/* The last run of each level that begins before KEY, or at it if AT. */
static void path_to(struct kv_runs *c, bytes key, bool at, struct kv_run *path[LEVELS])
{
    struct kv_run *r = &c->head;

    for (unsigned level = LEVELS; level-- > 0;) {
        for (;;) {
            struct kv_run *next = r->next[level];
            int order = next == NULL ? 1 : bytes_cmp(run_from(next), key);

            if (order > 0 || (order == 0 && !at))
                break;
            r = next;
        }
        path[level] = r;
    }
}

/* The run that covers KEY or NULL, and the first one behind it. */
static struct kv_run *covering(struct kv_runs *c, bytes key, struct kv_run **next)
{
    struct kv_run *path[LEVELS];
    struct kv_run *r;

    path_to(c, key, true, path);
    r = path[0];
    *next = r->next[0];
    return r != &c->head && bytes_cmp(key, kv_run_end(r)) < 0 ? r : NULL;
}

static unsigned random_height(struct kv_runs *c)
{
    unsigned height = 1;

    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    for (uint64_t bits = c->random; (bits & 3) == 0 && height < LEVELS; bits >>= 2)
        height++;
    return height;
}

static void link_run(struct kv_runs *c, struct kv_run *r)
{
    struct kv_run *path[LEVELS];

    path_to(c, run_from(r), false, path);
    ASSERT_INV("U1", path[0] == &c->head || bytes_cmp(kv_run_end(path[0]), run_from(r)) <= 0);
    ASSERT_INV("U1", path[0]->next[0] == NULL ||
                         bytes_cmp(kv_run_end(r), run_from(path[0]->next[0])) <= 0);
    r->height = random_height(c);
    for (unsigned level = 0; level < r->height; level++) {
        r->next[level] = path[level]->next[level];
        path[level]->next[level] = r;
    }
    r->probation = true;
    list_push_front(&c->probation, &r->node);
    c->bytes += r->size;
    c->probation_bytes += r->size;
    c->stats.runs++;
}

static void drop(struct kv_runs *c, struct kv_run *r)
{
    struct kv_run *path[LEVELS];

    path_to(c, run_from(r), false, path);
    for (unsigned level = 0; level < r->height; level++) {
        ASSERT(path[level]->next[level] == r);
        path[level]->next[level] = r->next[level];
    }
    list_remove(&r->node);
    c->bytes -= r->size;
    if (r->probation)
        c->probation_bytes -= r->size;
    c->stats.runs--;
    kv_run_give_back(r);
}

static struct kv_run *oldest(struct list *queue)
{
    return list_empty(queue) ? NULL : CONTAINER_OF(queue->prev, struct kv_run, node);
}

/* U3 */
static void make_room(struct kv_runs *c, size_t size)
{
    while (c->bytes + size > c->bytes_max && c->stats.runs > 0) {
        bool enough = c->probation_bytes > c->bytes_max / PROBATION_SHARE;
        struct kv_run *r = oldest(enough ? &c->probation : &c->kept);

        if (r == NULL)
            r = oldest(enough ? &c->kept : &c->probation);
        drop(c, r);
        c->stats.evicted++;
    }
}

static void used(struct kv_runs *c, struct kv_run *r)
{
    list_remove(&r->node);
    list_push_front(&c->kept, &r->node);
    if (r->probation)
        c->probation_bytes -= r->size;
    r->probation = false;
}

/* -- the whole --------------------------------------------------------------------------------- */

struct kv_runs *kv_runs_new(uint64_t bytes_max)
{
    struct kv_runs *c = calloc(1, sizeof *c);

    ASSERT(c != NULL);
    pthread_mutex_init(&c->lock, NULL);
    list_init(&c->kept);
    list_init(&c->probation);
    c->bytes_max = bytes_max;
    c->random = 0x9e3779b97f4a7c15u;
    return c;
}

void kv_runs_clear(struct kv_runs *c)
{
    pthread_mutex_lock(&c->lock);
    ASSERT(c->writers == 0);
    c->moment++;
    while (c->head.next[0] != NULL)
        drop(c, c->head.next[0]);
    pthread_mutex_unlock(&c->lock);
}

void kv_runs_free(struct kv_runs *c)
{
    if (c == NULL)
        return;
    kv_runs_clear(c);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

const struct kv_run *kv_runs_find(struct kv_runs *c, bytes key, uint8_t *next_data, bytes *next)
{
    struct kv_run *behind;

    *next = BYTES_EMPTY;
    pthread_mutex_lock(&c->lock);
    struct kv_run *r = covering(c, key, &behind);
    if (r != NULL) {
        atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
        used(c, r);
        c->stats.hits++;
    } else {
        c->stats.misses++;
        if (behind != NULL) {
            memcpy(next_data, behind->data, behind->from_size);
            *next = bytes_make(next_data, behind->from_size);
        }
    }
    pthread_mutex_unlock(&c->lock);
    return r;
}

void kv_runs_stats(struct kv_runs *c, struct kv_runs_stats *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->stats;
    out->bytes = c->bytes;
    out->bytes_max = c->bytes_max;
    pthread_mutex_unlock(&c->lock);
}

/* -- making one -------------------------------------------------------------------------------- */

uint64_t kv_runs_moment(struct kv_runs *c)
{
    pthread_mutex_lock(&c->lock);
    uint64_t moment = c->moment;
    pthread_mutex_unlock(&c->lock);
    return moment;
}

static void maker_room(struct kv_run_maker *m, size_t more)
{
    size_t was = m->capacity;

    if (m->ends == NULL)
        m->ends = memory_new(MEMORY_SCRATCH, 2 * ENTRIES_MAX * sizeof *m->ends);
    if (m->size + more <= m->capacity)
        return;
    while (m->capacity < m->size + more)
        m->capacity = m->capacity > 0 ? 2 * m->capacity : 4096;
    m->data = realloc(m->data, m->capacity);
    ASSERT(m->data != NULL);
    memory_count(MEMORY_SCRATCH, (ptrdiff_t)(m->capacity - was));
}

static void maker_put(struct kv_run_maker *m, bytes b)
{
    memcpy(m->data + m->size, b.data, b.size);
    m->size += b.size;
}

void kv_run_begin(struct kv_run_maker *m, bytes from)
{
    ASSERT(from.size <= KV_KEY_MAX + 1);
    m->size = 0;
    m->count = 0;
    maker_room(m, from.size);
    maker_put(m, from);
    m->from_size = from.size;
}

bool kv_run_add(struct kv_run_maker *m, bytes key, bytes value)
{
    size_t size = key.size + value.size;

    if (m->count == ENTRIES_MAX || (m->count > 0 && m->size + size > BYTES_MAX))
        return false;
    maker_room(m, size);
    maker_put(m, key);
    m->ends[2 * m->count] = (uint32_t)m->size;
    maker_put(m, value);
    m->ends[2 * m->count + 1] = (uint32_t)m->size;
    m->count++;
    return true;
}

bytes kv_run_last(const struct kv_run_maker *m)
{
    size_t begin = m->count > 1 ? m->ends[2 * m->count - 3] : m->from_size;

    return m->count > 0 ? bytes_make(m->data + begin, m->ends[2 * m->count - 2] - begin)
                        : BYTES_EMPTY;
}

void kv_run_maker_fini(struct kv_run_maker *m)
{
    memory_count(MEMORY_SCRATCH, -(ptrdiff_t)m->capacity);
    free(m->data);
    if (m->ends != NULL)
        memory_free(MEMORY_SCRATCH, m->ends, 2 * ENTRIES_MAX * sizeof *m->ends);
    *m = (struct kv_run_maker){0};
}

static struct kv_run *run_new(const struct kv_run_maker *m, bytes to)
{
    size_t ends_at = (sizeof(struct kv_run) + m->size + to.size + 3) & ~(size_t)3;
    size_t size = ends_at + 2 * m->count * sizeof(uint32_t);
    struct kv_run *r = memory_new(MEMORY_RUNS, size);
    uint32_t *ends = (uint32_t *)((uint8_t *)r + ends_at);

    r->refs = 1;
    r->count = m->count;
    r->size = size;
    r->from_size = (uint32_t)m->from_size;
    r->to_size = (uint32_t)to.size;
    memcpy(ends, m->ends, 2 * m->count * sizeof *ends);
    r->ends = ends;
    memcpy(r->data, m->data, m->size);
    memcpy(r->data + m->size, to.data, to.size);
    return r;
}

static bool fit_together(const struct kv_run *r, const struct kv_run_maker *m)
{
    return r->count + m->count <= ENTRIES_MAX && entries_end(r) + m->size <= BYTES_MAX;
}

static void add_all(struct kv_run_maker *m, const struct kv_run *r)
{
    bytes key, value;

    for (unsigned i = 0; kv_run_entry(r, i, &key, &value); i++)
        (void)kv_run_add(m, key, value);
}

/* M becomes what LEFT and M hold together. */
static void join_left(const struct kv_run *left, struct kv_run_maker *m)
{
    struct kv_run_maker both = {0};
    size_t begin = m->from_size;

    kv_run_begin(&both, run_from(left));
    add_all(&both, left);
    for (unsigned i = 0; i < m->count; i++) {
        size_t middle = m->ends[2 * i], end = m->ends[2 * i + 1];

        (void)kv_run_add(&both, bytes_make(m->data + begin, middle - begin),
                         bytes_make(m->data + middle, end - middle));
        begin = end;
    }
    kv_run_maker_fini(m);
    *m = both;
}

/* Runs that others have kept meanwhile in M's range. */
static bool overlaps(struct kv_runs *c, const struct kv_run_maker *m, bytes to)
{
    struct kv_run *next;
    struct kv_run *there = covering(c, bytes_make(m->data, m->from_size), &next);

    return there != NULL || (next != NULL && bytes_cmp(run_from(next), to) < 0);
}

/* What is kept between two runs is kept however short it is, else pages would miss it for ever. */
static void keep(struct kv_runs *c, struct kv_run_maker *m, bytes to)
{
    struct kv_run *path[LEVELS];
    struct kv_run *left, *right, *drop_right = NULL;

    if (overlaps(c, m, to))
        return;
    path_to(c, bytes_make(m->data, m->from_size), false, path);
    left = path[0] != &c->head ? path[0] : NULL;
    right = path[0]->next[0];
    if (left != NULL && !bytes_eq(kv_run_end(left), bytes_make(m->data, m->from_size)))
        left = NULL;
    if (right != NULL && !bytes_eq(run_from(right), to))
        right = NULL;
    if (left == NULL && right == NULL && m->count < ENTRIES_MIN)
        return;
    if (right != NULL && fit_together(right, m)) {
        add_all(m, right);
        to = kv_run_end(right);
        drop_right = right;
    }
    if (left != NULL && fit_together(left, m)) {
        join_left(left, m);
        drop(c, left);
    }
    struct kv_run *r = run_new(m, to);
    if (drop_right != NULL)
        drop(c, drop_right); /* its end was copied */
    make_room(c, r->size);
    if (c->bytes + r->size > c->bytes_max) {
        kv_run_give_back(r);
        return;
    }
    link_run(c, r);
    c->stats.kept++;
}

void kv_run_keep(struct kv_runs *c, struct kv_run_maker *m, bytes to, uint64_t moment)
{
    if (m->count == 0)
        return;
    ASSERT(bytes_cmp(bytes_make(m->data, m->from_size), to) < 0);
    pthread_mutex_lock(&c->lock);
    if (c->writers == 0 && c->moment == moment) /* U2 */
        keep(c, m, to);
    pthread_mutex_unlock(&c->lock);
}

/* -- changes of the store ---------------------------------------------------------------------- */

struct kv_runs_writer *kv_runs_write_begin(struct kv_runs *c)
{
    struct kv_runs_writer *w = memory_new(MEMORY_FLUSHES, sizeof *w);

    w->runs = c;
    pthread_mutex_lock(&c->lock);
    c->writers++;
    c->moment++;
    pthread_mutex_unlock(&c->lock);
    return w;
}

/* Nothing is added while this writer is there, so what was clear stays clear. */
static bool is_clear(const struct kv_runs_writer *w, bytes key)
{
    if (bytes_cmp(key, bytes_make(w->last, w->last_size)) <= 0)
        return false;
    return w->clear_to_end || bytes_cmp(key, bytes_make(w->clear, w->clear_size)) < 0;
}

void kv_runs_touch(struct kv_runs_writer *w, bytes key)
{
    struct kv_runs *c = w->runs;
    struct kv_run *next;

    if (is_clear(w, key))
        return;
    ASSERT(key.size <= sizeof w->last);
    pthread_mutex_lock(&c->lock);
    struct kv_run *r = covering(c, key, &next);
    if (r != NULL) {
        drop(c, r);
        c->stats.dropped++;
    }
    w->clear_to_end = next == NULL;
    w->clear_size = next != NULL ? next->from_size : 0;
    if (next != NULL)
        memcpy(w->clear, next->data, next->from_size);
    pthread_mutex_unlock(&c->lock);
    memcpy(w->last, key.data, key.size);
    w->last_size = key.size;
}

void kv_runs_touch_all(struct kv_runs_writer *w)
{
    struct kv_runs *c = w->runs;

    pthread_mutex_lock(&c->lock);
    while (c->head.next[0] != NULL) {
        drop(c, c->head.next[0]);
        c->stats.dropped++;
    }
    pthread_mutex_unlock(&c->lock);
}

void kv_runs_write_end(struct kv_runs_writer *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->runs->lock);
    ASSERT(w->runs->writers > 0);
    w->runs->writers--;
    w->runs->moment++;
    pthread_mutex_unlock(&w->runs->lock);
    memory_free(MEMORY_FLUSHES, w, sizeof *w);
}
