/*
 * cluster/views_density.c — metadb.delete_density, metadb.compactions, metadb.store.
 */
#include "base/assert.h"
#include "cluster/compact.h"
#include "cluster/views_internal.h"

const struct cl_view_column cl__delete_density_columns[] = {
    {"shard", KV_INT8},         {"table", KV_TEXT},      {"first", KV_TEXT},   {"last", KV_TEXT},
    {"entries", KV_INT8},       {"tombstones", KV_INT8}, {"skipped", KV_INT8}, {"state", KV_TEXT},
    {"newest", KV_TIMESTAMPTZ}, {"due", KV_TIMESTAMPTZ}};

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

/* When a dense range may be compacted, as far as it does not wait for others. */
static struct kv_datum due(const struct cl_node *n)
{
    uint64_t now = loop_now_us(n->reactors[0].loop), next = cl_compact_next_us(n->compact);
    if (n->options.compact_mode != CL_COMPACT_LOCAL)
        return KV_NULL;
    return kv_int(cl__timestamptz(env_unix_us(n->env) + (int64_t)(next > now ? next - now : 0)));
}

static void range_row(const struct cl_shard *s, struct arena *a, const struct kv_density_range *r,
                      const char *state, cl_emit *emit, void *arg)
{
    const struct kv_density_counts *c = &r->counts;
    struct kv_datum row[] = {cl__count(s->id),
                             cl__text(table_name(r->first)),
                             cl__key_text(a, r->first),
                             cl__key_text(a, r->last),
                             cl__count(c->entries),
                             cl__count(c->tombstones),
                             cl__count(c->skipped),
                             cl__text(state),
                             c->newest != 0 ? kv_int(cl__timestamptz(hlc_unix_us(c->newest)))
                                            : KV_NULL,
                             r->dense ? due(s->node) : KV_NULL};
    _Static_assert(ARRAY_LEN(row) == CL__delete_density_COUNT, "one value per column");
    emit(arg, row);
}

static void shard_rows(const struct cl_shard *s, struct arena *a, cl_emit *emit, void *arg)
{
    struct kv_density_range r;
    struct cl_compact_stats stats;
    cl_compact_stats(s->node->compact, s, a, &stats);
    if (stats.running && stats.range.first.size > 0)
        range_row(s, a, &stats.range, "running", emit, arg);
    for (unsigned i = 0; kv_density_at(kv_state_density(s->state), i, a, &r); i++) {
        range_row(s, a, &r, r.dense ? "dense" : r.refused ? "sparse" : "few", emit, arg);
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

/* -- compactions ------------------------------------------------------------------------------- */

const struct cl_view_column cl__compactions_columns[] = {
    {"shard", KV_INT8},      {"table", KV_TEXT},         {"mode", KV_TEXT},
    {"state", KV_TEXT},      {"compactions", KV_INT8},   {"tombstones", KV_INT8},
    {"bytes_read", KV_INT8}, {"bytes_written", KV_INT8}, {"duration", KV_INTERVAL},
    {"sparse", KV_INT8},     {"stale", KV_INT8}};

void cl__compactions_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    struct arena a;
    arena_init(&a, 4096);
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        const struct cl_shard *s = n->shards[i];
        struct cl_compact_stats c;
        cl_compact_stats(n->compact, s, &a, &c);
        struct kv_datum row[] = {
            cl__count(s->id),
            cl__text(s->name),
            cl__text(n->options.compact_mode == CL_COMPACT_LOCAL ? "local" : "global"),
            cl__text(c.running ? "running" : "idle"),
            cl__count(c.done),
            cl__count(c.tombstones),
            cl__count(c.bytes_read),
            cl__count(c.bytes_written),
            cl__count(c.us),
            cl__count(c.sparse),
            cl__count(c.stale)};
        _Static_assert(ARRAY_LEN(row) == CL__compactions_COUNT, "one value per column");
        emit(arg, row);
    }
    arena_fini(&a);
}

/* -- store ------------------------------------------------------------------------------------- */

const struct cl_view_column cl__store_columns[] = {{"name", KV_TEXT}, {"value", KV_INT8}};

void cl__store_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    struct kv_store_stats s;
    kv_store_stats(n->store, &s);
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {{"files", s.files},
               {"bytes", s.disk_bytes},
               {"entries", s.entries},
               {"tombstones", s.tombstones},
               {"keys_written", s.keys_written},
               {"keys_deleted", s.keys_deleted},
               {"batches", s.batches},
               {"flushes", s.flushes},
               {"gets", s.gets},
               {"gets_cold", s.gets_cold},
               {"iterators", s.iters},
               {"seeks", s.seeks},
               {"compactions", s.compactions},
               {"compaction_bytes_read", s.compaction_read},
               {"compaction_bytes_written", s.compaction_written}};
    for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
        struct kv_datum row[] = {cl__text(all[i].name), cl__count(all[i].value)};
        _Static_assert(ARRAY_LEN(row) == CL__store_COUNT, "one value per column");
        emit(arg, row);
    }
}
