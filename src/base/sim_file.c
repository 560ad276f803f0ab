/*
 * base/sim_file.c — file contents with undo and redo.
 *
 * Contents are 4 KiB pages; a page of zeros that was never written is not stored, so that a
 * zero-filled log segment costs nothing. Every write and resize since the last sync is kept as an
 * *operation* with the bytes before and after. A power cut undoes them all, newest first, which
 * yields the synced contents, and then redoes a random part of them, oldest first:
 *
 *   dropped   1/3   nothing of it reached the disk
 *   torn      1/3   each 512-byte sector of it reached the disk or not
 *   whole     1/3
 *
 * After a failed sync an operation is *doomed*: the kernel has marked its pages clean, so a later
 * sync does not write them again. It stays in the list until the power cut decides. Operations
 * behind it that were synced are marked `durable` and always redone.
 *
 * Invariants
 *   S1  Bytes at and behind `size` are zero in every page.
 *   S2  Undoing all operations gives the contents that every power cut must keep.
 */
#include "base/sim_file.h"
#include "base/assert.h"
#include <stdio.h>
#include <stdlib.h>

#define PAGE_BYTES 4096u
#define SECTOR_BYTES 512u

struct sim_op {
    bool resize; /* else a write of N bytes at AT */
    bool doomed, durable;
    uint64_t at;
    size_t n;
    uint64_t size_before, size_after;
    uint8_t *before, *after; /* N bytes each; a resize has BEFORE only, of what it cut off */
};

static void *must(void *p)
{
    if (p == NULL) {
        fprintf(stderr, "metadb: out of memory (simulated disk)\n");
        abort();
    }
    return p;
}

/* splitmix64, Steele, Lea and Flood 2014 */
uint64_t sim_random_next(struct sim_random *r)
{
    uint64_t z = r->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t sim_random_below(struct sim_random *r, uint64_t bound)
{
    return sim_random_next(r) % bound;
}

static void free_op(struct sim_op *op)
{
    free(op->before);
    free(op->after);
}

void sim_file_init(struct sim_file *f)
{
    *f = (struct sim_file){0};
}

void sim_file_fini(struct sim_file *f)
{
    for (size_t i = 0; i < f->page_count; i++)
        free(f->pages[i]);
    for (size_t i = 0; i < f->op_count; i++)
        free_op(&f->ops[i]);
    free(f->pages);
    free(f->ops);
    sim_file_init(f);
}

/* The page's memory, made if it is missing. */
static uint8_t *page_at(struct sim_file *f, size_t index)
{
    if (index >= f->page_count) {
        size_t count = index + 1 > f->page_count * 2 ? index + 1 : f->page_count * 2;
        f->pages = must(realloc(f->pages, count * sizeof *f->pages));
        for (size_t i = f->page_count; i < count; i++)
            f->pages[i] = NULL;
        f->page_count = count;
    }
    if (f->pages[index] == NULL)
        f->pages[index] = must(calloc(1, PAGE_BYTES));
    return f->pages[index];
}

/* What is left of the page that AT falls into, at most N. */
static size_t piece(uint64_t at, size_t n)
{
    size_t left = PAGE_BYTES - (size_t)(at % PAGE_BYTES);
    return n < left ? n : left;
}

/* Reads without regard to the size; zeros where nothing is stored. */
static void load(const struct sim_file *f, uint8_t *dst, size_t n, uint64_t at)
{
    for (size_t done = 0; done < n;) {
        size_t index = (size_t)((at + done) / PAGE_BYTES);
        size_t some = piece(at + done, n - done);
        if (index < f->page_count && f->pages[index] != NULL)
            memcpy(dst + done, f->pages[index] + (at + done) % PAGE_BYTES, some);
        else
            memset(dst + done, 0, some);
        done += some;
    }
}

static void store(struct sim_file *f, const uint8_t *src, size_t n, uint64_t at)
{
    for (size_t done = 0; done < n;) {
        size_t some = piece(at + done, n - done);
        uint8_t *page = page_at(f, (size_t)((at + done) / PAGE_BYTES));
        memcpy(page + (at + done) % PAGE_BYTES, src + done, some);
        done += some;
    }
}

static void set_size(struct sim_file *f, uint64_t size)
{
    for (size_t i = (size_t)(size / PAGE_BYTES); size < f->size && i < f->page_count; i++) {
        size_t keep = (uint64_t)i * PAGE_BYTES < size ? (size_t)(size % PAGE_BYTES) : 0;
        if (f->pages[i] != NULL)
            memset(f->pages[i] + keep, 0, PAGE_BYTES - keep); /* S1 */
    }
    f->size = size;
}

static struct sim_op *add_op(struct sim_file *f)
{
    if (f->op_count == f->op_capacity) {
        f->op_capacity = f->op_capacity == 0 ? 8 : f->op_capacity * 2;
        f->ops = must(realloc(f->ops, f->op_capacity * sizeof *f->ops));
    }
    struct sim_op *op = &f->ops[f->op_count++];
    *op = (struct sim_op){.size_before = f->size};
    return op;
}

static uint8_t *copy_of(const struct sim_file *f, size_t n, uint64_t at)
{
    uint8_t *p = must(malloc(n > 0 ? n : 1));
    load(f, p, n, at);
    return p;
}

size_t sim_file_read(const struct sim_file *f, void *dst, size_t n, uint64_t at)
{
    if (at >= f->size)
        return 0;
    size_t have = f->size - at < n ? (size_t)(f->size - at) : n;
    load(f, dst, have, at);
    return have;
}

void sim_file_write(struct sim_file *f, const void *src, size_t n, uint64_t at)
{
    if (n == 0)
        return;
    struct sim_op *op = add_op(f);
    op->at = at;
    op->n = n;
    op->size_after = at + n > f->size ? at + n : f->size;
    op->before = copy_of(f, n, at);
    op->after = must(malloc(n));
    memcpy(op->after, src, n);
    store(f, src, n, at);
    f->size = op->size_after;
}

void sim_file_resize(struct sim_file *f, uint64_t size)
{
    if (size == f->size)
        return;
    struct sim_op *op = add_op(f);
    op->resize = true;
    op->size_after = size;
    if (size < f->size) {
        op->at = size;
        op->n = (size_t)(f->size - size);
        op->before = copy_of(f, op->n, size);
    }
    set_size(f, size);
}

static void forget_ops(struct sim_file *f)
{
    for (size_t i = 0; i < f->op_count; i++)
        free_op(&f->ops[i]);
    f->op_count = 0;
}

void sim_file_sync(struct sim_file *f)
{
    bool any_doomed = false;
    for (size_t i = 0; i < f->op_count; i++) {
        any_doomed |= f->ops[i].doomed;
        f->ops[i].durable = !f->ops[i].doomed;
    }
    if (!any_doomed)
        forget_ops(f);
}

void sim_file_sync_failed(struct sim_file *f)
{
    for (size_t i = 0; i < f->op_count; i++)
        f->ops[i].doomed = !f->ops[i].durable;
}

void sim_file_settle(struct sim_file *f)
{
    forget_ops(f);
}

static void undo(struct sim_file *f, const struct sim_op *op)
{
    if (op->n > 0)
        store(f, op->before, op->n, op->at);
    if (op->resize)
        f->size = op->size_before;
    else
        set_size(f, op->size_before);
}

static void grow_to(struct sim_file *f, uint64_t size)
{
    if (size > f->size)
        f->size = size;
}

/* Sectors are those of the file, so the first and last piece of an unaligned write are shorter. */
static void redo_torn(struct sim_file *f, const struct sim_op *op, struct sim_random *r)
{
    for (size_t done = 0; done < op->n;) {
        size_t left = SECTOR_BYTES - (size_t)((op->at + done) % SECTOR_BYTES);
        size_t some = op->n - done < left ? op->n - done : left;
        if (sim_random_below(r, 2) == 0) {
            store(f, op->after + done, some, op->at + done);
            grow_to(f, op->at + done + some);
        }
        done += some;
    }
}

static void redo(struct sim_file *f, const struct sim_op *op)
{
    if (op->resize) {
        set_size(f, op->size_after);
        return;
    }
    store(f, op->after, op->n, op->at);
    grow_to(f, op->at + op->n);
}

void sim_file_power_cut(struct sim_file *f, struct sim_random *r)
{
    for (size_t i = f->op_count; i > 0; i--)
        undo(f, &f->ops[i - 1]);
    for (size_t i = 0; i < f->op_count; i++) {
        const struct sim_op *op = &f->ops[i];
        uint64_t fate = op->durable ? 2 : sim_random_below(r, 3);
        if (fate == 2)
            redo(f, op);
        else if (fate == 1 && !op->resize)
            redo_torn(f, op, r);
    }
    forget_ops(f);
}
