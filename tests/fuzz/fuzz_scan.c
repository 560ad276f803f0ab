/*
 * fuzz_scan — the scanner on any bytes: it ends, its slots lie inside the text and in order, its
 * key inside its room, and splitting a text and scanning the pieces holds the same.
 */
#include "base/arena.h"
#include "planner/plan.h"
#include "planner/scan.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct pl_scan *s, bytes text)
{
    struct err err;
    if (pl_scan(s, text, &err) != ST_OK || !s->cacheable)
        return;
    uint32_t at = 0;
    if (s->key_size > 2 * text.size + 16)
        abort();
    for (uint32_t i = 0; i < s->slot_count; i++) {
        const struct pl_slot *x = &s->slots[i];
        if (x->at < at || x->size == 0 || (size_t)x->at + x->size > text.size)
            abort();
        if (x->kind == PL_SLOT_STRING &&
            (x->size < 2 || text.data[x->at] != '\'' || text.data[x->at + x->size - 1] != '\''))
            abort();
        at = x->at + x->size;
    }
    for (uint32_t i = 0; i < s->repeat_count; i++) {
        const struct pl_repeat *r = &s->repeats[i];
        if (r->count < 2 || (uint64_t)r->first + (uint64_t)r->stride * r->count > s->slot_count)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pl_scan scan;
    struct arena a;
    bytes *pieces;
    unsigned count = 0;
    struct err err;
    uint8_t *copy = malloc(size + 1); /* exactly as large as the text, for ASan */
    if (copy == NULL)
        return 0;
    copy = realloc(copy, size == 0 ? 1 : size);
    memcpy(copy, data, size);
    bytes text = bytes_make(copy, size);
    check(&scan, text);
    arena_init(&a, 1024);
    if (pl_split(text, &a, &pieces, &count, &err) == ST_OK) {
        for (unsigned i = 0; i < count; i++)
            check(&scan, pieces[i]);
    }
    arena_fini(&a);
    free(copy);
    return 0;
}
