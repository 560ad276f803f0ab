/*
 * cluster/views_density.c — metadb.delete_density.
 */
#include "base/assert.h"
#include "cluster/views_internal.h"

const struct cl_view_column cl__delete_density_columns[] = {
    {"shard", KV_INT8},   {"table", KV_TEXT},   {"first", KV_TEXT},
    {"last", KV_TEXT},    {"entries", KV_INT8}, {"tombstones", KV_INT8},
    {"skipped", KV_INT8}, {"state", KV_TEXT},   {"newest", KV_TIMESTAMPTZ}};

/* TEXT with what is not printable as \xNN: a bound may end inside a character. */
static void put_printable(struct obuf *o, bytes text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c >= ' ' && c < 0x7f) {
            obuf_u8(o, c);
        } else {
            const char escaped[] = {'\\', 'x', digits[c >> 4], digits[c & 15]};
            obuf_put(o, escaped, sizeof escaped);
        }
    }
}

struct kv_datum cl__key_text(struct arena *a, bytes key)
{
    struct obuf o;
    struct kv_row row;
    uint32_t ns;
    obuf_init(&o);
    const struct kv_table_def *def = kv_table_def(kv_key_table(key));
    if (def == NULL || kv_key_decode(a, key, &ns, &row) != ST_OK) {
        put_printable(&o, key);
    } else {
        for (unsigned i = 0; i < def->key_count; i++) {
            if (i > 0)
                obuf_u8(&o, '/');
            if (def->columns[i].type == KV_TEXT)
                put_printable(&o, row.col[i].b);
            else
                put_printable(&o, bytes_str(arena_printf(a, "%lld", (long long)row.col[i].i)));
        }
    }
    struct kv_datum text = kv_text(arena_copy(a, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return text;
}

static const char *table_name(bytes key)
{
    const struct kv_table_def *def = kv_table_def(kv_key_table(key));
    return def != NULL ? def->name : "of the shard";
}

static void shard_rows(const struct cl_shard *s, struct arena *a, cl_emit *emit, void *arg)
{
    struct kv_density_range r;
    for (unsigned i = 0; kv_density_at(kv_state_density(s->state), i, a, &r); i++) {
        const struct kv_density_counts *c = &r.counts;
        struct kv_datum row[] = {cl__count(s->id),
                                 cl__text(table_name(r.first)),
                                 cl__key_text(a, r.first),
                                 cl__key_text(a, r.last),
                                 cl__count(c->entries),
                                 cl__count(c->tombstones),
                                 cl__count(c->skipped),
                                 cl__text(r.dense     ? "dense"
                                          : r.refused ? "sparse"
                                                      : "few"),
                                 c->newest != 0 ? kv_int(cl__timestamptz(hlc_unix_us(c->newest)))
                                                : KV_NULL};
        _Static_assert(ARRAY_LEN(row) == CL__delete_density_COUNT, "one value per column");
        emit(arg, row);
        arena_reset(a);
    }
}

void cl__delete_density_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    struct arena a;
    arena_init(&a, 4096);
    for (unsigned i = 0; i < CL_SHARDS; i++)
        shard_rows(n->shards[i], &a, emit, arg);
    arena_fini(&a);
}
