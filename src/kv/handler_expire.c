/*
 * kv/handler_expire.c — takes expired objects away: a look that finds them, and the command.
 *
 * The look walks, rule by rule, over the objects that a rule is about, where the shard is led and
 * beside the commands. What it finds is a *stretch*: a range of keys with expired objects close
 * together. The command carries the two ends alone, so where keys begin with the time of creation
 * a record of some bytes takes away hundreds of objects, and elsewhere it is one for a key or a
 * few. It looks again at every object in the stretch, at the stamp of its log entry: nothing goes
 * that had not expired by then, and all replicas remove the same.
 *
 * Where keys go by time, what is behind many objects in a row that are alive is alive, too, and is
 * not looked at but by a walk that is `whole`.
 */
#include "base/assert.h"
#include "kv/handler.h"
#include "kv/lifecycle.h"

#define POSTGRES_EPOCH_UNIX_US INT64_C(946684800000000)
#define LOOK_OBJECTS 4096u    /* of one look */
#define STRETCH_OBJECTS 1024u /* in a stretch, expired or not */
#define STRETCH_GAP 8u        /* alive in a row within a stretch */
#define ALIVE_BY_TIME 256u    /* alive in a row: the rest of the rule's is, too */

/* -- the command ------------------------------------------------------------------------------- */

struct stretch {
    bytes keys[KV_EXPIRE_KEYS];
    unsigned count;
};

static status collect_expired(struct kv_run *r, const struct kv_rules *rules, int64_t now,
                              struct stretch *found)
{
    bytes key;
    struct kv_cell cell;
    struct kv_row row;
    status st = ST_OK;
    struct kv_txn_scan *scan = kv_txn_scan_open(r->t, r->op->lower, r->op->upper, false);
    for (unsigned seen = 0; seen < STRETCH_OBJECTS && found->count < KV_EXPIRE_KEYS; seen++) {
        st = kv_txn_scan_next(scan, &key, &cell);
        if (st != ST_OK)
            break;
        ST_GOTO(out, kv__cell_row(r->a, key, &cell, &row));
        if (kv_object_due(rules, &row) <= now)
            found->keys[found->count++] = arena_copy(r->a, key);
    }
out:
    kv_txn_scan_close(scan);
    return st == ST_END ? ST_OK : st;
}

status kv__expire(struct kv_run *r)
{
    struct stretch *found = ARENA_NEW(r->a, struct stretch);
    struct kv_rules rules;
    int64_t now = hlc_unix_us(kv__txn_stamp(r->t)) - POSTGRES_EPOCH_UNIX_US;
    if (!kv__bounds_are_ours(r))
        return err_set(r->err, ST_INVALID, "the range to expire is outside its table");
    if (bytes_cmp(r->op->lower, r->op->upper) >= 0 || kv__txn_stamp(r->t) == 0)
        return ST_OK;
    ST_TRY(kv_rules_load(r->t, r->a, r->op->lower, r->op->upper, &rules));
    ST_TRY(collect_expired(r, &rules, now, found));
    for (unsigned i = 0; i < found->count; i++)
        ST_TRY(kv_txn_delete(r->t, found->keys[i]));
    r->res->affected = found->count;
    return ST_OK;
}

/* -- the look ---------------------------------------------------------------------------------- */

struct look {
    struct kv_txn *t;
    struct arena *a;
    uint32_t ns;
    int64_t now;
    struct kv_expire_walk *w;
    struct kv_rules rules;
    bytes lower, upper; /* of the stretch */
    unsigned objects, expired, in_stretch, gap;
};

static bytes key_of_rule(const struct look *l, enum kv_table table, const struct kv_rule *rule)
{
    struct kv_datum cols[] = {kv_text(rule->bucket), kv_text(rule->prefix)};
    return kv_key_prefix(l->a, l->ns, table, cols, 2);
}

static void begin_rule(struct kv_expire_walk *w, bytes key)
{
    ASSERT(key.size <= sizeof w->rule);
    memcpy(w->rule, key.data, key.size);
    w->rule_size = key.size;
    w->at_size = 0;
    w->by_time = true;
    w->mtime = INT64_MIN;
    w->alive = 0;
}

/* The rule at which the walk stands, or the one behind it if that is gone; NULL past the last. */
static const struct kv_rule *rule_at(struct look *l)
{
    bytes at = bytes_make(l->w->rule, l->w->rule_size);
    for (unsigned i = 0; i < l->rules.count; i++) {
        bytes key = key_of_rule(l, KV_LIFECYCLE, &l->rules.rule[i]);
        int c = at.size == 0 ? 1 : bytes_cmp(key, at);
        if (c > 0)
            begin_rule(l->w, key);
        if (c >= 0)
            return &l->rules.rule[i];
    }
    return NULL;
}

/* Behind KEY, and behind the rule itself if END. */
static void go_on(struct kv_expire_walk *w, bytes key)
{
    ASSERT(key.size < sizeof w->at);
    memcpy(w->at, key.data, key.size);
    w->at[key.size] = 0;
    w->at_size = key.size + 1;
}

/* An object of the rule. False: the stretch ends before it, or the rest need not be looked at. */
static bool take_object(struct look *l, bytes key, const struct kv_row *row)
{
    struct kv_expire_walk *w = l->w;
    int64_t due = kv_object_due(&l->rules, row);
    const struct kv_datum *mtime = &row->col[OBJECT_MTIME];
    l->in_stretch += l->expired > 0;
    if (due <= l->now) {
        if (l->expired++ == 0)
            l->lower = arena_copy(l->a, key);
        l->upper = kv_key_successor(l->a, key);
        l->gap = w->alive = 0;
    } else {
        if (l->expired > 0 && ++l->gap > STRETCH_GAP)
            return false;
        w->due = due < w->due ? due : w->due;
        w->alive++;
    }
    w->by_time = w->by_time && !mtime->null && mtime->i >= w->mtime;
    w->mtime = mtime->null ? w->mtime : mtime->i;
    go_on(w, key);
    return l->expired < KV_EXPIRE_KEYS && l->in_stretch + 1 < STRETCH_OBJECTS &&
           (w->whole || !w->by_time || w->alive < ALIVE_BY_TIME);
}

/* Objects of RULE from where the walk stands. ST_OK: a stretch, or enough was looked at. ST_END:
 * the rule's are done, and there may be a stretch, too. */
static status look_at_rule(struct look *l, const struct kv_rule *rule)
{
    struct kv_expire_walk *w = l->w;
    bytes key, first = key_of_rule(l, KV_OBJECT, rule);
    bytes lower = w->at_size > 0 ? arena_copy(l->a, bytes_make(w->at, w->at_size)) : first;
    struct kv_cell cell;
    struct kv_row row;
    status st = ST_OK;
    struct kv_txn_scan *scan =
        kv_txn_scan_open(l->t, lower, kv_key_after_prefix(l->a, first), false);
    do {
        if (l->objects++ == LOOK_OBJECTS)
            break;
        st = kv_txn_scan_next(scan, &key, &cell);
        if (st == ST_OK)
            st = kv__cell_row(l->a, key, &cell, &row);
    } while (st == ST_OK && take_object(l, key, &row));
    kv_txn_scan_close(scan);
    bool rest_alive = w->by_time && !w->whole && w->alive >= ALIVE_BY_TIME;
    return st == ST_OK && rest_alive && l->expired == 0 ? ST_END : st;
}

/* The first moment at which an object that is put from now on can expire. */
static int64_t next_due(const struct look *l, int64_t due)
{
    for (unsigned i = 0; i < l->rules.count; i++) {
        int64_t at;
        if (!__builtin_add_overflow(l->now, l->rules.rule[i].after, &at) && at < due)
            due = at;
    }
    return due;
}

static status walk_rules(struct look *l)
{
    const struct kv_rule *rule;
    while ((rule = rule_at(l)) != NULL) {
        status st = look_at_rule(l, rule);
        if (st != ST_END)
            return st;
        begin_rule(l->w, kv_key_successor(l->a, bytes_make(l->w->rule, l->w->rule_size)));
        if (l->expired > 0)
            return ST_OK;
    }
    return ST_END;
}

status kv_expire_find(const struct kv_view *view, uint32_t ns, int64_t now,
                      struct kv_expire_walk *w, bytes *lower, bytes *upper)
{
    struct look l = {
        .t = kv_txn_new(view->arena, view), .a = view->arena, .ns = ns, .now = now, .w = w};
    bytes all = kv__key_hidden(l.a, KV_OBJECT, ns, BYTES_EMPTY);
    ST_TRY(kv_rules_load(l.t, l.a, all, kv_key_after_prefix(l.a, all), &l.rules));
    if (w->rule_size == 0)
        w->due = INT64_MAX;
    status st = walk_rules(&l);
    *lower = l.lower;
    *upper = l.upper;
    if (st == ST_END) {
        int64_t due = next_due(&l, w->due);
        *w = (struct kv_expire_walk){.whole = w->whole, .due = due};
    }
    return st;
}
