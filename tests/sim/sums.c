/* sim/sums.c — see sums.h. */
#include "sim/sums.h"
#include "base/assert.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 96

void sums_init(struct sums *s)
{
    memset(s, 0, sizeof *s);
    s->least_done = s->least_faults = s->least_leaders = UINT64_MAX;
}

void sums_fini(struct sums *s)
{
    for (unsigned i = 0; i < s->mark_count; i++)
        free(s->marks[i].name);
}

static void least(uint64_t *number, uint64_t candidate)
{
    *number = candidate < *number ? candidate : *number;
}

void sums_add(struct sums *s, const struct run_report *r)
{
    for (unsigned i = 0; i < TROUBLE_KINDS; i++)
        s->sum.faults[i] += r->faults[i];
#define X(name) s->sum.name += r->name;
    RUN_COUNTS(X)
#undef X
    least(&s->least_done, run_done(r));
    least(&s->least_faults, run_faults(r));
    least(&s->least_leaders, r->leaders);
}

void sums_mark(struct sums *s, const char *name, uint64_t count)
{
    for (unsigned i = 0; i < s->mark_count; i++) {
        if (strcmp(s->marks[i].name, name) == 0) {
            s->marks[i].count += count;
            return;
        }
    }
    ASSERT(s->mark_count < SUMS_MARKS_MAX);
    s->marks[s->mark_count].name = strdup(name);
    ASSERT(s->marks[s->mark_count].name != NULL);
    s->marks[s->mark_count++].count = count;
}

void sums_print(const struct sums *s)
{
    const struct run_report *r = &s->sum;
    printf("seeds %" PRIu64 ", virtual seconds %" PRIu64 "\nfaults: %" PRIu64 ", of them", s->seeds,
           r->virtual_us / 1000000u, run_faults(r));
    for (unsigned i = 0; i < TROUBLE_KINDS; i++)
        printf(" %s %" PRIu64, trouble_names[i], r->faults[i]);
    printf("\nmessages: repeated %" PRIu64 " reordered %" PRIu64 "\n", r->repeated, r->reordered);
    printf("nodes: leaders %" PRIu64 " restarts %" PRIu64 " disks lost %" PRIu64 " flushes %" PRIu64
           " cuts %" PRIu64 " snapshots offered %" PRIu64 " installed %" PRIu64 "\n",
           r->leaders, r->restarts, r->lost, r->flushes, r->cuts, r->offered, r->installed);
    printf("requests: %" PRIu64 " done %" PRIu64 " refused %" PRIu64 " unknown %" PRIu64
           ", rows read %" PRIu64 ", transactions %" PRIu64 " committed %" PRIu64
           ", histories undecided %" PRIu64 "\n",
           r->asked, run_done(r), r->refused, r->unknown, r->rows, r->txns, r->committed,
           r->undecided);
    if (s->least_done != UINT64_MAX)
        printf("least of a seed: done %" PRIu64 " faults %" PRIu64 " leaders %" PRIu64 "\n",
               s->least_done, s->least_faults, s->least_leaders);
}

/* -- files ------------------------------------------------------------------------------------- */

static bool take_fault(struct sums *s, const char *kind, uint64_t number)
{
    for (unsigned i = 0; i < TROUBLE_KINDS; i++) {
        if (strcmp(trouble_names[i], kind) == 0) {
            s->sum.faults[i] += number;
            return true;
        }
    }
    return false;
}

static bool take(struct sums *s, const char *name, uint64_t number)
{
    if (strncmp(name, "mark.", 5) == 0) {
        sums_mark(s, name + 5, number);
        return true;
    }
    if (strncmp(name, "fault.", 6) == 0)
        return take_fault(s, name + 6, number);
#define X(field)                                                                                   \
    if (strcmp(name, #field) == 0) {                                                               \
        s->sum.field += number;                                                                    \
        return true;                                                                               \
    }
    RUN_COUNTS(X)
#undef X
    if (strcmp(name, "seeds") == 0)
        s->seeds += number;
    else if (strcmp(name, "failed") == 0)
        s->failed += number;
    else if (strcmp(name, "least_done") == 0)
        least(&s->least_done, number);
    else if (strcmp(name, "least_faults") == 0)
        least(&s->least_faults, number);
    else if (strcmp(name, "least_leaders") == 0)
        least(&s->least_leaders, number);
    else
        return false;
    return true;
}

bool sums_load(struct sums *s, const char *file)
{
    FILE *in = fopen(file, "r");
    char name[NAME_BYTES];
    uint64_t number;
    int got;
    bool good = true;
    if (in == NULL)
        return errno == ENOENT;
    while (good && (got = fscanf(in, "%95s %" SCNu64, name, &number)) != EOF)
        good = got == 2 && take(s, name, number);
    good &= ferror(in) == 0;
    fclose(in);
    return good;
}

bool sums_save(const struct sums *s, const char *file)
{
    FILE *out = fopen(file, "w");
    if (out == NULL)
        return false;
    fprintf(out, "seeds %" PRIu64 "\nfailed %" PRIu64 "\n", s->seeds, s->failed);
    fprintf(out, "least_done %" PRIu64 "\nleast_faults %" PRIu64 "\nleast_leaders %" PRIu64 "\n",
            s->least_done, s->least_faults, s->least_leaders);
#define X(field) fprintf(out, #field " %" PRIu64 "\n", s->sum.field);
    RUN_COUNTS(X)
#undef X
    for (unsigned i = 0; i < TROUBLE_KINDS; i++)
        fprintf(out, "fault.%s %" PRIu64 "\n", trouble_names[i], s->sum.faults[i]);
    for (unsigned i = 0; i < s->mark_count; i++)
        fprintf(out, "mark.%s %" PRIu64 "\n", s->marks[i].name, s->marks[i].count);
    bool good = ferror(out) == 0;
    return fclose(out) == 0 && good;
}
