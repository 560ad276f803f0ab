#include "ops.h"

#include "base/assert.h"
#include "base/codec.h"
#include "base/rcu.h"
#include "kv/handler.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define START_US INT64_C(1800000000000000)
#define WORDS_MAX 256u
#define EPOCH_US INT64_C(946684800000000)

/* -- the language ------------------------------------------------------------------------------ */

struct words {
    bytes word[WORDS_MAX];
    unsigned count, next;
};

static void split_words(const char *text, struct words *w)
{
    *w = (struct words){.count = 0};
    while (*text != 0) {
        size_t n = strcspn(text, " ");
        if (n > 0) {
            assert_true(w->count < WORDS_MAX);
            w->word[w->count++] = bytes_make(text, n);
        }
        text += n + (text[n] == ' ');
    }
}

static bool more(const struct words *w)
{
    return w->next < w->count;
}

static bool at_mark(const struct words *w, const char *mark)
{
    return more(w) && bytes_eq(w->word[w->next], bytes_str(mark));
}

static bool skip_mark(struct words *w, const char *mark)
{
    bool there = at_mark(w, mark);
    w->next += there;
    return there;
}

static bytes take_word(struct words *w)
{
    assert_true(more(w));
    return w->word[w->next++];
}

static bytes text_value(struct arena *a, bytes word)
{
    if (word.size > 1 && word.data[0] == '*') {
        size_t n =
            (size_t)strtoul(arena_strdup(a, bytes_make(word.data + 1, word.size - 1)), NULL, 10);
        uint8_t *p = arena_alloc(a, n + 1);
        memset(p, 'x', n);
        return bytes_make(p, n);
    }
    uint8_t *copy = arena_alloc(a, word.size + 1);
    size_t n = 0;
    for (size_t i = 0; i < word.size; i++) {
        bool zero =
            word.data[i] == '%' && i + 2 < word.size + 0 && memcmp(word.data + i, "%00", 3) == 0;
        copy[n++] = zero ? 0 : word.data[i];
        i += zero ? 2 : 0;
    }
    return bytes_make(copy, n);
}

static struct kv_datum parse_value(struct arena *a, enum kv_type type, bytes word)
{
    if (bytes_eq(word, BYTES_LIT("NULL")))
        return KV_NULL;
    if (bytes_eq(word, BYTES_LIT("DEFAULT")))
        return (struct kv_datum){.deflt = true};
    if (type == KV_TEXT || type == KV_BYTEA)
        return kv_text(text_value(a, word));
    if (type == KV_CHAR)
        return kv_int(word.size > 0 ? word.data[0] : 0);
    return kv_int(strtoll(arena_strdup(a, word), NULL, 10));
}

static unsigned column_of(const struct kv_table_def *def, bytes name)
{
    int c = kv_column_by_name(def, name);
    if (c < 0)
        fail_msg("no column %.*s", (int)name.size, (const char *)name.data);
    return (unsigned)c;
}

/* NAME OP VALUE: the operator is the first of the given that occurs. */
static bytes split_operator(bytes word, const char *const *ops, unsigned count, unsigned *op,
                            bytes *value)
{
    for (size_t i = 0; i < word.size; i++)
        for (unsigned o = 0; o < count; o++) {
            size_t n = strlen(ops[o]);
            if (i + n <= word.size && memcmp(word.data + i, ops[o], n) == 0) {
                *op = o;
                *value = bytes_make(word.data + i + n, word.size - i - n);
                return bytes_make(word.data, i);
            }
        }
    fail_msg("no operator in %.*s", (int)word.size, (const char *)word.data);
    return word;
}

static void parse_sets(struct words *w, struct arena *a, const struct kv_table_def *def,
                       struct kv_op *op)
{
    static const char *const ops[] = {"=@", "+=", ">=", "<=", "="};
    static const enum kv_set_kind kinds[] = {KV_SET_EXCLUDED, KV_SET_ADD, KV_SET_GREATEST,
                                             KV_SET_LEAST, KV_SET_VALUE};
    struct kv_set *sets = ARENA_ARRAY(a, struct kv_set, LIMIT_COLUMNS);
    while (more(w) && !at_mark(w, ":")) {
        unsigned o = 0;
        bytes value = BYTES_EMPTY;
        struct kv_set *s = &sets[op->set_count++];
        s->column = column_of(def, split_operator(take_word(w), ops, ARRAY_LEN(ops), &o, &value));
        s->kind = kinds[o];
        if (s->kind == KV_SET_EXCLUDED)
            s->from = column_of(def, value);
        else
            s->value = parse_value(a, def->columns[s->column].type, value);
    }
    op->sets = sets;
}

static void parse_filters(struct words *w, struct arena *a, const struct kv_table_def *def,
                          struct kv_op *op)
{
    static const char *const ops[] = {"!=", "=", "<", ">", "~"};
    static const enum kv_cmp cmps[] = {KV_NE, KV_EQ, KV_LT, KV_GT, KV_IS_NULL};
    struct kv_filter *filters = ARENA_ARRAY(a, struct kv_filter, LIMIT_COLUMNS);
    while (more(w)) {
        unsigned o = 0;
        bytes value = BYTES_EMPTY;
        struct kv_filter *f = &filters[op->filter_count++];
        f->column = column_of(def, split_operator(take_word(w), ops, ARRAY_LEN(ops), &o, &value));
        f->cmp = cmps[o];
        if (f->cmp != KV_IS_NULL)
            f->value = parse_value(a, def->columns[f->column].type, value);
    }
    op->filters = filters;
}

static void parse_insert(struct words *w, struct arena *a, const struct kv_table_def *def,
                         struct kv_op *op)
{
    static const char *const ops[] = {"="};
    unsigned *columns = ARENA_ARRAY(a, unsigned, LIMIT_COLUMNS);
    struct kv_datum *values = ARENA_ARRAY(a, struct kv_datum, WORDS_MAX);
    unsigned count = 0;
    op->row_count = 1;
    while (more(w) && !at_mark(w, ":")) {
        if (skip_mark(w, "|")) {
            op->row_count++;
            continue;
        }
        bytes value = take_word(w);
        if (op->row_count == 1) {
            unsigned o = 0;
            columns[op->column_count++] = column_of(def, split_operator(value, ops, 1, &o, &value));
        }
        values[count] = parse_value(a, def->columns[columns[count % op->column_count]].type, value);
        count++;
    }
    assert_int_equal(count, op->row_count * op->column_count);
    op->columns = columns;
    op->values = values;
    if (!skip_mark(w, ":"))
        return;
    if (skip_mark(w, "nothing")) {
        op->conflict = KV_CONFLICT_NOTHING;
        return;
    }
    assert_true(skip_mark(w, "update"));
    op->conflict = KV_CONFLICT_UPDATE;
    parse_sets(w, a, def, op);
}

static void parse_keys(struct words *w, struct arena *a, const struct kv_table_def *def,
                       struct kv_op *op)
{
    struct kv_datum *keys = ARENA_ARRAY(a, struct kv_datum, WORDS_MAX);
    unsigned count = 0;
    while (more(w) && !at_mark(w, ":")) {
        keys[count] = parse_value(a, def->columns[count % def->key_count].type, take_word(w));
        count++;
    }
    op->keys = keys;
    op->key_count = count / def->key_count;
}

static bytes range_key(struct arena *a, const struct kv_op *op, int64_t pid, bytes word)
{
    struct kv_datum d = kv_text(word);
    return op->table == KV_META ? kv_key_meta(a, op->ns, pid, word)
                                : kv_key_prefix(a, op->ns, op->table, &d, 1);
}

static int64_t take_number(struct words *w, struct arena *a)
{
    return strtoll(arena_strdup(a, take_word(w)), NULL, 10);
}

static void parse_range(struct words *w, struct arena *a, struct kv_op *op)
{
    int64_t pid = op->table == KV_META ? take_number(w, a) : 0;
    op->lower = range_key(a, op, pid, take_word(w));
    op->upper = range_key(a, op, pid, take_word(w));
}

static void parse_paths(struct words *w, struct arena *a, struct kv_op *op)
{
    op->table = KV_META;
    op->pid = take_number(w, a);
    op->name = more(w) ? text_value(a, take_word(w)) : BYTES_EMPTY;
    if (more(w) && !at_mark(w, ":")) {
        op->new_pid = take_number(w, a);
        op->new_name = more(w) ? text_value(a, take_word(w)) : BYTES_EMPTY;
    }
}

static const struct {
    const char *word;
    enum kv_op_kind kind;
    enum kv_move_mode move;
} verbs[] = {
    {"insert", KV_OP_INSERT, 0},
    {"update", KV_OP_UPDATE, 0},
    {"delete", KV_OP_DELETE, 0},
    {"range", KV_OP_DELETE_RANGE, 0},
    {"lock", KV_OP_LOCK, 0},
    {"move", KV_OP_MOVE, KV_MOVE_NOREPLACE},
    {"replace", KV_OP_MOVE, KV_MOVE_REPLACE},
    {"exchange", KV_OP_MOVE, KV_MOVE_EXCHANGE},
    {"rename", KV_OP_MOVE, KV_MOVE_RENAME},
    {"link", KV_OP_LINK, 0},
    {"mkpath", KV_OP_MAKE_PATH, 0},
    {"detach", KV_OP_DETACH, 0},
    {"bootstrap", KV_OP_BOOTSTRAP, 0},
    {"reclaim", KV_OP_RECLAIM, 0},
};

static void parse_verb(bytes word, struct kv_op *op)
{
    for (unsigned i = 0; i < ARRAY_LEN(verbs); i++)
        if (bytes_eq(word, bytes_str(verbs[i].word))) {
            op->kind = verbs[i].kind;
            op->move = verbs[i].move;
            return;
        }
    fail_msg("no statement begins with %.*s", (int)word.size, (const char *)word.data);
}

void parse_op(struct shard *s, struct arena *a, const char *text, struct kv_op *op)
{
    struct words w;
    split_words(arena_strdup(a, bytes_str(text)), &w);
    *op = (struct kv_op){
        .table = KV_META, .ns = s->ns, .now = s->now, .seed = s->seed++, .want_rows = true};
    parse_verb(take_word(&w), op);
    if (op->kind == KV_OP_BOOTSTRAP)
        return;
    if (op->kind == KV_OP_RECLAIM) {
        op->pid = strtoll(arena_strdup(a, take_word(&w)), NULL, 10);
        return;
    }
    if (op->kind == KV_OP_MOVE || op->kind == KV_OP_LINK || op->kind == KV_OP_MAKE_PATH ||
        op->kind == KV_OP_DETACH) {
        parse_paths(&w, a, op);
        if (skip_mark(&w, ":"))
            parse_filters(&w, a, kv_table_def(KV_META), op);
        return;
    }
    const struct kv_table_def *def = kv_table_by_name(take_word(&w));
    assert_non_null(def);
    op->table = def->table;
    if (op->kind == KV_OP_INSERT) {
        parse_insert(&w, a, def, op);
    } else if (op->kind == KV_OP_DELETE_RANGE) {
        parse_range(&w, a, op);
    } else {
        parse_keys(&w, a, def, op);
        if (op->kind == KV_OP_UPDATE && skip_mark(&w, ":"))
            parse_sets(&w, a, def, op);
        if (skip_mark(&w, ":"))
            parse_filters(&w, a, def, op);
    }
}

/* -- a store with cold reads ------------------------------------------------------------------- */

/* Passes everything on, but the COUNTDOWNth read at KV_TIER_CACHE is cold. */
struct cold_store {
    struct kv_store store;
    struct kv_store *inner;
    unsigned countdown; /* 0: nothing is cold */
};
struct cold_iter {
    struct kv_store_iter iter;
    struct kv_store_iter *inner;
    struct cold_store *store;
    bool cache;
};

static bool is_cold(struct cold_store *s, bool cache)
{
    return cache && s->countdown > 0 && --s->countdown == 0;
}

static void cold_iter_free(struct kv_store_iter *it)
{
    kv_store_iter_free(((struct cold_iter *)it)->inner);
    free(it);
}

static status cold_seek(struct kv_store_iter *it, bytes key)
{
    struct cold_iter *c = (struct cold_iter *)it;
    return is_cold(c->store, c->cache) ? ST_COLD : kv_store_iter_seek(c->inner, key);
}

static status cold_seek_before(struct kv_store_iter *it, bytes key)
{
    struct cold_iter *c = (struct cold_iter *)it;
    return is_cold(c->store, c->cache) ? ST_COLD : kv_store_iter_seek_before(c->inner, key);
}

static status cold_next(struct kv_store_iter *it)
{
    struct cold_iter *c = (struct cold_iter *)it;
    return is_cold(c->store, c->cache) ? ST_COLD : kv_store_iter_next(c->inner);
}

static status cold_prev(struct kv_store_iter *it)
{
    struct cold_iter *c = (struct cold_iter *)it;
    return is_cold(c->store, c->cache) ? ST_COLD : kv_store_iter_prev(c->inner);
}

static bytes cold_key(const struct kv_store_iter *it)
{
    return kv_store_iter_key(((const struct cold_iter *)it)->inner);
}

static bytes cold_value(const struct kv_store_iter *it)
{
    return kv_store_iter_value(((const struct cold_iter *)it)->inner);
}

static const struct kv_store_iter_ops cold_iter_ops = {.free = cold_iter_free,
                                                       .seek = cold_seek,
                                                       .seek_before = cold_seek_before,
                                                       .next = cold_next,
                                                       .prev = cold_prev,
                                                       .key = cold_key,
                                                       .value = cold_value};

static struct kv_store *inner_of(struct kv_store *s)
{
    return ((struct cold_store *)s)->inner;
}

static void cold_close(struct kv_store *s)
{
    kv_store_close(inner_of(s));
    free(s);
}

static status cold_get(struct kv_store *s, bytes key, enum kv_tier tier, struct arena *a,
                       bytes *out)
{
    if (is_cold((struct cold_store *)s, kv_tier_is_cache(tier)))
        return ST_COLD;
    return kv_store_get(inner_of(s), key, tier, a, out);
}

static struct kv_store_iter *cold_iter_new(struct kv_store *s, bytes lower, bytes upper,
                                           enum kv_tier tier)
{
    struct cold_iter *it = calloc(1, sizeof *it);
    assert_non_null(it);
    it->iter.ops = &cold_iter_ops;
    it->inner = kv_store_iter_new(inner_of(s), lower, upper, tier);
    it->store = (struct cold_store *)s;
    it->cache = kv_tier_is_cache(tier);
    return &it->iter;
}

static struct kv_store_batch *cold_batch_new(struct kv_store *s)
{
    return kv_store_batch_new(inner_of(s));
}

static status cold_write(struct kv_store *s, struct kv_store_batch *b)
{
    return kv_store_write(inner_of(s), b);
}

static status cold_flush(struct kv_store *s)
{
    return kv_store_flush(inner_of(s));
}

static void cold_compact(struct kv_store *s, bytes lower, bytes upper)
{
    kv_store_compact(inner_of(s), lower, upper);
}

static void cold_stats(struct kv_store *s, struct kv_store_stats *out)
{
    kv_store_stats(inner_of(s), out);
}

static struct kv_store *cold_store_new(void)
{
    static const struct kv_store_ops ops = {.close = cold_close,
                                            .get = cold_get,
                                            .iter_new = cold_iter_new,
                                            .batch_new = cold_batch_new,
                                            .write = cold_write,
                                            .flush = cold_flush,
                                            .compact = cold_compact,
                                            .stats = cold_stats};
    struct cold_store *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->store.ops = &ops;
    s->inner = kv_store_new_mem();
    kv_store_keep_runs(&s->store, 64 << 10);
    return &s->store;
}

/* -- the shard --------------------------------------------------------------------------------- */

static const struct kv_state_options options = {
    .shard = 1, .memtable_bytes = 1u << 24, .retention_us = SHARD_RETENTION_COMMANDS};

void shard_reopen(struct shard *s)
{
    struct err err;
    kv_state_close(s->state);
    assert_int_equal(kv_state_open(s->store, &options, &s->state, &err), ST_OK);
}

void shard_open(struct shard *s)
{
    struct err err;
    memset(s, 0, sizeof *s);
    s->store = cold_store_new();
    assert_int_equal(kv_state_open(s->store, &options, &s->state, &err), ST_OK);
    arena_init(&s->arena, 4096);
    obuf_init(&s->command);
    obuf_init(&s->log);
    s->ts = hlc_from_us(START_US);
    s->now = START_US - EPOCH_US;
    s->seed = 42;
    s->ns = 1;
    EXPECT("00000", run(s, "bootstrap"));
}

void shard_close(struct shard *s)
{
    kv_state_close(s->state);
    kv_store_close(s->store);
    arena_fini(&s->arena);
    obuf_fini(&s->command);
    obuf_fini(&s->log);
}

int shard_setup(void **state)
{
    static struct shard shard;
    shard_open(&shard);
    *state = &shard;
    return 0;
}

int shard_teardown(void **state)
{
    shard_close(*state);
    rcu_quiescent();
    return 0;
}

void tests_begin(void)
{
    rcu_thread_register();
    rcu_online();
}

int tests_end(int failed)
{
    rcu_offline();
    rcu_barrier_all();
    rcu_barrier_all(); /* a released list releases memtables, which are deferred again */
    rcu_thread_unregister();
    return failed;
}

/* Applies a stamped command as the next entry. With s->sweep the first read of it from the store is
 * cold, then in a second try the second, and so on until a try meets no cold read; no try but the
 * last may change anything. */
static void apply_stamped(struct shard *s, bytes command)
{
    struct cold_store *store = (struct cold_store *)s->store;
    uint64_t before = s->sweep ? shard_hash(s) : 0;
    status st;
    for (unsigned n = 1;; n++) {
        store->countdown = s->sweep ? n : 0;
        arena_reset(&s->arena);
        st = kv_apply(s->state, s->index + 1, 1, command, KV_TIER_CACHE, &s->arena, &s->last);
        store->countdown = 0;
        if (st != ST_COLD)
            break;
        assert_true(s->last.cold_key.size > 0);
        assert_int_equal(shard_hash(s), before);
        assert_int_equal(kv_state_record(s->state)->applied_index, s->index);
        s->colds++;
    }
    assert_int_equal(st, ST_OK);
    s->index++;
    put_u32(&s->log, (uint32_t)command.size);
    obuf_put(&s->log, command.data, command.size);
    assert_int_equal(s->last.outcome == ST_OK, s->last.err.code == ST_OK);
}

const char *apply_bytes(struct shard *s, bytes command)
{
    obuf_reset(&s->command);
    obuf_put(&s->command, command.data, command.size);
    s->ts += 1u << HLC_LOGICAL_BITS;
    kv_command_stamp(s->command.data, s->ts);
    apply_stamped(s, bytes_make(s->command.data, s->command.size));
    return s->last.outcome == ST_OK ? "00000" : s->last.err.sqlstate;
}

void shard_replay(struct shard *s, const struct shard *other, void (*between)(struct shard *s))
{
    struct reader in = reader_make(bytes_make(other->log.data, other->log.size));
    for (uint64_t i = 1; in.next < in.end; i++) {
        uint32_t size = get_u32(&in);
        bytes command = get_raw(&in, size);
        assert_false(in.bad);
        if (i <= s->index)
            continue;
        apply_stamped(s, command);
        between(s);
    }
}

const char *run_all(struct shard *s, const char *const *statements, unsigned count)
{
    struct arena a;
    struct obuf out;
    const struct kv_op *ops[16];
    assert_true(count <= ARRAY_LEN(ops));
    arena_init(&a, 4096);
    obuf_init(&out);
    for (unsigned i = 0; i < count; i++) {
        struct kv_op *op = ARENA_NEW(&a, struct kv_op);
        parse_op(s, &a, statements[i], op);
        ops[i] = op;
    }
    kv_command_ops(&out, ops, count, (struct kv_origin){.incarnation = 1, .sequence = s->index});
    const char *state = apply_bytes(s, bytes_make(out.data, out.size));
    obuf_fini(&out);
    arena_fini(&a);
    return state;
}

const char *run(struct shard *s, const char *statement)
{
    return run_all(s, &statement, 1);
}

static void format_datum(char *out, size_t size, enum kv_type type, const struct kv_datum *d)
{
    if (d->null)
        snprintf(out, size, "NULL");
    else if (type == KV_TEXT || type == KV_BYTEA)
        snprintf(out, size, "%.*s", (int)d->b.size, (const char *)d->b.data);
    else if (type == KV_CHAR)
        snprintf(out, size, "%c", (char)d->i);
    else
        snprintf(out, size, "%" PRId64, d->i);
}

void format_row(char *out, size_t size, const struct kv_row *row, const char *columns)
{
    const struct kv_table_def *def = kv_table_def(row->table);
    struct words w;
    split_words(columns, &w);
    out[0] = 0;
    while (more(&w)) {
        unsigned c = column_of(def, take_word(&w));
        size_t n = strlen(out);
        if (n > 0 && n + 1 < size)
            out[n++] = ' ';
        format_datum(out + n, size - n, def->columns[c].type, &row->col[c]);
    }
}

static const char *get_through(struct kv_txn *t, struct arena *a, struct shard *s, const char *key,
                               const char *columns)
{
    struct kv_op op;
    struct kv_row row;
    parse_op(s, a, arena_printf(a, "lock %s", key), &op);
    status st = kv__get_row(
        t, a, kv_key_prefix(a, op.ns, op.table, op.keys, kv_table_def(op.table)->key_count), &row);
    if (st == ST_NOT_FOUND)
        return "none";
    assert_int_equal(st, ST_OK);
    format_row(s->text, sizeof s->text, &row, columns);
    return s->text;
}

static struct kv_txn *latest(struct shard *s, struct arena *a)
{
    struct kv_view view = {.state = s->state, .at = HLC_MAX, .tier = KV_TIER_ANY, .arena = a};
    return kv_txn_new(a, &view);
}

const char *get(struct shard *s, const char *key, const char *columns)
{
    struct arena a;
    arena_init(&a, 4096);
    const char *text = get_through(latest(s, &a), &a, s, key, columns);
    arena_fini(&a);
    return text;
}

const char *returned(struct shard *s, const char *columns)
{
    size_t n = 0;
    s->text[0] = 0;
    for (unsigned i = 0; i < s->last.result.row_count; i++) {
        if (i > 0)
            n += (size_t)snprintf(s->text + n, sizeof s->text - n, " | ");
        format_row(s->text + n, sizeof s->text - n, &s->last.result.rows[i], columns);
        n += strlen(s->text + n);
    }
    return s->text;
}

const char *all(struct shard *s, const char *table, const char *columns)
{
    struct arena a;
    struct kv_cell cell;
    bytes key;
    status st;
    size_t n = 0;
    const struct kv_table_def *def = kv_table_by_name(bytes_str(table));
    arena_init(&a, 4096);
    bytes lower = kv_key_prefix(&a, s->ns, def->table, NULL, 0);
    struct kv_txn_scan *scan =
        kv_txn_scan_open(latest(s, &a), lower, kv_key_after_prefix(&a, lower), false);
    s->text[0] = 0;
    while ((st = kv_txn_scan_next(scan, &key, &cell)) == ST_OK) {
        struct kv_row row;
        assert_int_equal(kv__cell_row(&a, key, &cell, &row), ST_OK);
        if (n > 0)
            n += (size_t)snprintf(s->text + n, sizeof s->text - n, " | ");
        format_row(s->text + n, sizeof s->text - n, &row, columns);
        n += strlen(s->text + n);
    }
    assert_int_equal(st, ST_END);
    kv_txn_scan_close(scan);
    arena_fini(&a);
    return s->text;
}

void shard_cold_after(struct shard *s, unsigned n)
{
    ((struct cold_store *)s->store)->countdown = n;
}

uint64_t shard_hash(struct shard *s)
{
    uint64_t h = 0;
    assert_int_equal(kv_state_hash(s->state, NULL, &h), ST_OK);
    return h;
}

static void flush_due(struct shard *s, hlc_ts log_time)
{
    struct kv_flush *f;
    while ((f = kv_flush_new(s->state, log_time)) != NULL) {
        status st = kv_flush_run(f);
        kv_flush_done(f, st);
        assert_int_equal(st, ST_OK);
    }
}

void shard_seal(struct shard *s, bool flush)
{
    kv_state_seal(s->state, true);
    if (flush)
        flush_due(s, HLC_MAX - 1);
}

void shard_seal_and_flush_old(struct shard *s)
{
    kv_state_seal(s->state, true);
    flush_due(s, kv_state_applied_ts(s->state));
}

/* -- items ------------------------------------------------------------------------------------- */

#define BATCH_MAX 256u

struct batch {
    struct arena a;
    struct kv_queue_record records[BATCH_MAX];
    unsigned count, max;
};

static bool take_record(void *arg, hlc_ts ts, bytes items)
{
    struct batch *b = arg;
    b->records[b->count++] = (struct kv_queue_record){.ts = ts, .items = arena_copy(&b->a, items)};
    return b->count < b->max;
}

void deliver(struct shard *s, unsigned count, bool ack)
{
    struct batch b = {.max = count < BATCH_MAX ? count : BATCH_MAX};
    struct obuf out;
    arena_init(&b.a, 4096);
    obuf_init(&out);
    kv_state_queue_each(s->state, s->delivered, take_record, &b);
    if (b.count > 0) {
        s->delivered = b.records[b.count - 1].ts;
        kv_command_items(&out, KV_ITEMS_QUOTA | KV_ITEMS_INDEX, 1, b.records, b.count,
                         (struct kv_origin){0});
        EXPECT("00000", apply_bytes(s, bytes_make(out.data, out.size)));
        if (ack) {
            obuf_reset(&out);
            kv_command_ack(&out, s->delivered, (struct kv_origin){0});
            EXPECT("00000", apply_bytes(s, bytes_make(out.data, out.size)));
        }
    }
    obuf_fini(&out);
    arena_fini(&b.a);
}

/* -- sessions ---------------------------------------------------------------------------------- */

void session_begin(struct session *t, struct shard *s)
{
    memset(t, 0, sizeof *t);
    t->shard = s;
    arena_init(&t->arena, 4096);
    t->snapshot = kv_state_applied_ts(s->state);
    struct kv_view view = {
        .state = s->state, .at = t->snapshot, .tier = KV_TIER_ANY, .arena = &t->arena};
    t->txn = kv_txn_new(&t->arena, &view);
}

const char *session_run(struct session *t, const char *statement)
{
    struct kv_op op;
    parse_op(t->shard, &t->arena, statement, &op);
    status st = kv_op_run(t->txn, &op, &t->arena, &t->result, &t->err);
    t->shard->last.result = t->result;
    return st == ST_OK ? "00000" : t->err.sqlstate;
}

const char *session_get(struct session *t, const char *key, const char *columns)
{
    return get_through(t->txn, &t->arena, t->shard, key, columns);
}

static bool add_name(void *arg, const struct kv_row *row)
{
    struct shard *s = arg;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%s%.*s", n > 0 ? " " : "",
             (int)row->col[META_NAME].b.size, (const char *)row->col[META_NAME].b.data);
    return true;
}

const char *session_list(struct session *t, int64_t pid, bool backwards)
{
    struct kv_datum d = kv_int(pid);
    bytes lower = kv_key_prefix(&t->arena, t->shard->ns, KV_META, &d, 1);
    struct kv_read r = {.kind = KV_READ_RANGE,
                        .table = KV_META,
                        .ns = t->shard->ns,
                        .lower = lower,
                        .upper = kv_key_after_prefix(&t->arena, lower),
                        .backwards = backwards,
                        .limit = -1};
    struct kv_read_pos pos = {0};
    struct err err;
    status st;
    t->shard->text[0] = 0;
    while ((st = kv_read_page(t->txn, &r, &pos, &t->arena, 3, 1u << 20, add_name, t->shard,
                              &err)) == ST_OK)
        ;
    assert_int_equal(st, ST_END);
    return t->shard->text;
}

const char *session_commit(struct session *t)
{
    struct obuf out;
    obuf_init(&out);
    kv_command_txn(&out, t->txn, t->snapshot, (struct kv_origin){0});
    const char *state = apply_bytes(t->shard, bytes_make(out.data, out.size));
    obuf_fini(&out);
    arena_fini(&t->arena);
    return state;
}

void session_rollback(struct session *t)
{
    arena_fini(&t->arena);
}
