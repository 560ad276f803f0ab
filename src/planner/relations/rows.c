/*
 * planner/relations/rows.c — a relation's rows as one block of cells, whatever their source.
 *
 * Sources: a generator of this folder; the snapshot, for metadb.*; none.
 */
#include "planner/relations/pg_rows.h"

#include <stdlib.h>

void rel_emit(struct rel_build *b, const struct cell *cells, unsigned count)
{
    ASSERT(count == b->rel->column_count);
    if (b->row_count == b->row_capacity)
        b->cells =
            arena_grow(b->arena, b->cells, sizeof(struct cell) * count, &b->row_capacity, 64);
    memcpy(b->cells + b->row_count * count, cells, sizeof(struct cell) * count);
    b->row_count++;
}

/* metadb.settings as others than superusers see it: column 0 is the name. */
static void leave_out_private(struct rel_build *b)
{
    unsigned width = b->rel->column_count;
    size_t kept = 0;
    struct cell *all = arena_alloc(b->arena, sizeof(struct cell) * width * (b->row_count + 1));
    for (size_t i = 0; i < b->row_count; i++) {
        const struct cell *row = b->cells + i * width;
        if (!rel__setting_is_private(rel_cell_str(b->env, &row[0])))
            memcpy(all + kept++ * width, row, sizeof(struct cell) * width);
    }
    b->cells = all; /* the copy is the snapshot's */
    b->row_count = kept;
}

void rel_build_rows(struct rel_build *b, struct rel_env *env, const struct rel *rel)
{
    *b = (struct rel_build){.rel = rel, .env = env, .arena = env->arena};
    if (rel->rows) {
        rel->rows(b);
        return;
    }
    for (unsigned i = 0; env->snap && i < env->snap->table_count; i++) {
        const struct rel_table_copy *t = &env->snap->tables[i];
        if (t->rel != rel)
            continue;
        b->cells = t->cells;
        b->row_count = t->row_count;
    }
    if (rel->view && strcmp(rel->name, "settings") == 0 && !rel__session_is_superuser(env))
        leave_out_private(b);
}
