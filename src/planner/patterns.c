/*
 * planner/patterns.c — the catalogue as a table, and how often and how fast each pattern ran.
 *
 * Counters belong to one planner and are written by its reactor alone; pl_patterns_rows reads those
 * of all planners from reactor 0. A count may be a moment old; none is torn (aligned 64-bit
 * stores), and histograms are merged as their header allows. Planners are found through a fixed
 * table of slots.
 *
 * Fingerprints shown are those of the examples, computed once at first use.
 */
#include "planner/patterns.h"

#include "base/histogram.h"
#include "planner/catalog.h"
#include "planner/parse.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_PLANNERS 256

static const struct pl_pattern patterns[PATTERN_COUNT] = {
#define PATTERN(id, n, h, s, t, e) [id] = {.name = n, .template_text = t, .handler = h, .scope = s},
#include "planner/patterns.def"
#undef PATTERN
};
static const char *const examples[PATTERN_COUNT] = {
#define PATTERN(id, n, h, s, t, e) [id] = e,
#include "planner/patterns.def"
#undef PATTERN
};

struct pl__stats {
    struct {
        _Atomic uint64_t calls, errors;
        struct histogram *us; /* NULL until the first call; published with release */
    } pattern[PATTERN_COUNT];
};

static _Atomic(struct pl__stats *) all[MAX_PLANNERS];

static bool is_pattern(enum pl_pattern_id id)
{
    return id > PATTERN_NONE && id < PATTERN_COUNT;
}

const struct pl_pattern *pl__pattern(enum pl_pattern_id id)
{
    return is_pattern(id) ? &patterns[id] : NULL;
}

const char *pl__pattern_example(enum pl_pattern_id id)
{
    return examples[id];
}

struct pl__stats *pl__stats_new(void)
{
    struct pl__stats *s = calloc(1, sizeof(*s));
    for (unsigned i = 0; s != NULL && i < MAX_PLANNERS; i++) {
        struct pl__stats *none = NULL;
        if (atomic_compare_exchange_strong(&all[i], &none, s))
            break;
    }
    return s;
}

void pl__stats_free(struct pl__stats *s)
{
    if (s == NULL)
        return;
    for (unsigned i = 0; i < MAX_PLANNERS; i++) {
        struct pl__stats *me = s;
        if (atomic_compare_exchange_strong(&all[i], &me, NULL))
            break;
    }
    for (unsigned i = 0; i < PATTERN_COUNT; i++)
        free(s->pattern[i].us);
    free(s);
}

void pl__stats_count(struct pl__stats *s, enum pl_pattern_id id, uint64_t us, status st)
{
    if (!is_pattern(id))
        return;
    atomic_fetch_add_explicit(&s->pattern[id].calls, 1, memory_order_relaxed);
    if (st != ST_OK && st != ST_END)
        atomic_fetch_add_explicit(&s->pattern[id].errors, 1, memory_order_relaxed);
    struct histogram *h = s->pattern[id].us;
    if (h == NULL) {
        h = malloc(sizeof(*h));
        if (h == NULL)
            return;
        histogram_init(h);
        __atomic_store_n(&s->pattern[id].us, h, __ATOMIC_RELEASE);
    }
    histogram_add(h, us);
}

void pl_patterns_rows(void (*emit)(void *arg, const struct kv_datum *values), void *arg)
{
    static uint64_t fingerprints[PATTERN_COUNT]; /* reactor 0 only */
    for (unsigned id = PATTERN_NONE + 1; id < PATTERN_COUNT; id++) {
        if (fingerprints[id] == 0)
            fingerprints[id] = pl__fingerprint(examples[id]);
        uint64_t calls = 0, errors = 0;
        struct histogram sum;
        histogram_init(&sum);
        for (unsigned i = 0; i < MAX_PLANNERS; i++) {
            struct pl__stats *s = atomic_load(&all[i]);
            if (s == NULL)
                continue;
            calls += atomic_load_explicit(&s->pattern[id].calls, memory_order_relaxed);
            errors += atomic_load_explicit(&s->pattern[id].errors, memory_order_relaxed);
            const struct histogram *h = __atomic_load_n(&s->pattern[id].us, __ATOMIC_ACQUIRE);
            if (h != NULL)
                histogram_merge(&sum, h);
        }
        char fp[20];
        snprintf(fp, sizeof(fp), "%016" PRIx64, fingerprints[id]);
        struct kv_datum row[PL_PATTERNS_COLUMNS] = {
            kv_text(bytes_str(patterns[id].name)),
            kv_text(bytes_str(patterns[id].template_text)),
            kv_text(bytes_str(fp)),
            kv_text(bytes_str(patterns[id].handler)),
            kv_text(bytes_str(patterns[id].scope)),
            kv_int((int64_t)calls),
            kv_int((int64_t)histogram_percentile(&sum, 50)),
            kv_int((int64_t)histogram_percentile(&sum, 99)),
            kv_int((int64_t)errors),
        };
        emit(arg, row);
    }
}
