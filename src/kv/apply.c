/*
 * kv/apply.c — one committed log entry into the state.
 *
 * First everything is evaluated on a write set over the latest state; reads may find a cold block,
 * and then nothing has happened yet. Only then begins the command: publish what there is, end. So a
 * reader sees all of an entry or nothing, an entry that failed changes nothing but the applied
 * position, and evaluating again after a prefetch starts from the same state.
 *
 * Invariants
 * A1  Between kv_state_begin and kv_state_end nothing can fail.
 * A2  The outcome depends on state and entry alone.
 * A3  Stamps ascend; a shard's time never goes back.
 */
#include "base/codec.h"
#include "base/fault.h"
#include "kv/command.h"
#include "kv/dedup.h"
#include "kv/handler.h"

/* Statuses that are about this replica, not about the statement. */
static bool is_local(status st)
{
    return st == ST_COLD || st == ST_CORRUPT || st == ST_IO;
}

/* -- evaluating -------------------------------------------------------------------------------- */

static status eval_ops(struct kv_txn *t, bytes body, struct arena *a, struct kv_applied *out)
{
    struct reader in = reader_make(body);
    uint64_t count = get_varint(&in);
    int64_t affected = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct kv_op op;
        ST_TRY(kv_op_decode(&in, a, &op));
        out->failed_op = (unsigned)i;
        ST_TRY(kv_op_run(t, &op, a, &out->result, &out->err));
        affected += out->result.affected;
    }
    out->result.affected = affected;
    return codec_finish(&in);
}

static status eval_txn(struct kv_txn *t, const struct kv_command *c, struct kv_applied *out)
{
    if (c->snapshot > c->stamp)
        return ST_CORRUPT;
    if (c->stamp - c->snapshot > hlc_ms(LIMIT_TXN_MS))
        return err_set(&out->err, ST_TXN_TIMEOUT, "transaction exceeded its time limit of %u ms",
                       LIMIT_TXN_MS);
    return kv_txn_validate(t, c->body, c->snapshot, &out->err);
}

static status read_mark(struct kv_txn *t, bytes key, hlc_ts *out)
{
    struct kv_cell cell;
    *out = 0;
    status st = kv_txn_get(t, key, &cell);
    if (st == ST_NOT_FOUND)
        return ST_OK;
    ST_TRY(st);
    struct reader in = reader_make(cell.row);
    *out = get_u64(&in);
    return codec_finish(&in);
}

/* The records of BODY above the watermark of SOURCE for table BIT; then the watermark moves up. */
static status eval_items_of(struct kv_txn *t, unsigned bit, uint64_t source, struct reader in,
                            struct arena *a)
{
    bytes key = kv__key_mark(a, source, bit);
    hlc_ts mark, before = 0;
    ST_TRY(read_mark(t, key, &mark));
    hlc_ts taken = mark;
    struct kv__sums *sums = ARENA_NEW(a, struct kv__sums);
    uint64_t count = get_varint(&in);
    for (uint64_t i = 0; i < count; i++) {
        hlc_ts ts = get_u64(&in);
        bytes items = get_bytes(&in);
        if (in.bad || ts <= before || ts > HLC_MAX)
            return ST_CORRUPT;
        before = ts;
        if (ts <= mark) {
            MARK("items.taken_before");
            continue;
        }
        ST_TRY(kv__take_items(t, bit, ts, items, sums, a));
        taken = ts;
    }
    ST_TRY(codec_finish(&in));
    ST_TRY(kv__take_sums(t, sums, a));
    return taken > mark ? kv_txn_put(t, key, bytes_make(&taken, sizeof taken)) : ST_OK;
}

static status eval_items(struct kv_txn *t, bytes body, struct arena *a)
{
    struct reader in = reader_make(body);
    unsigned tables = get_u8(&in);
    uint64_t source = get_u64(&in);
    if (in.bad || tables == 0 || tables > (KV_ITEMS_QUOTA | KV_ITEMS_INDEX))
        return ST_CORRUPT;
    for (unsigned bit = KV_ITEMS_QUOTA; bit <= KV_ITEMS_INDEX; bit <<= 1)
        if (tables & bit)
            ST_TRY(eval_items_of(t, bit, source, in, a));
    return ST_OK;
}

static status decode_ack(bytes body, hlc_ts *out)
{
    struct reader in = reader_make(body);
    *out = get_u64(&in);
    return codec_finish(&in);
}

static status evaluate(struct kv_txn *t, const struct kv_command *c, struct arena *a,
                       struct kv_applied *out, hlc_ts *ack)
{
    switch (c->kind) {
    case KV_CMD_OPS: return eval_ops(t, c->body, a, out);
    case KV_CMD_TXN: return eval_txn(t, c, out);
    case KV_CMD_ITEMS: return eval_items(t, c->body, a);
    case KV_CMD_ACK: return decode_ack(c->body, ack);
    case KV_CMD_TICK: return ST_OK;
    }
    return ST_CORRUPT;
}

/* -- applying ---------------------------------------------------------------------------------- */

/* May C have been done before, and come again? Always told alike on all replicas. */
static bool may_come_again(const struct kv_command *c)
{
    return c->origin.again && !fault_point("dedup.broken");
}

/* A command that was done before, or may have been: nothing changes but the position. */
static status apply_again(struct kv_state *s, uint64_t index, uint64_t term,
                          const struct kv_command *c, struct arena *a, struct kv_applied *out)
{
    ST_TRY(kv_dedup_recall(s, &c->origin, c->stamp, a, out));
    kv_state_begin(s, index, term, c->stamp);
    kv_state_end(s);
    return ST_OK;
}

static status apply_first(struct kv_state *s, uint64_t index, uint64_t term,
                          const struct kv_command *c, enum kv_tier tier, struct arena *a,
                          struct kv_applied *out)
{
    struct kv_view view = {.state = s, .at = HLC_MAX, .tier = tier, .arena = a};
    hlc_ts ack = 0;
    struct kv_txn *t = kv_txn_new(a, &view);
    kv_txn_set_stamp(t, c->stamp);
    status st = evaluate(t, c, a, out, &ack);
    if (st == ST_COLD)
        out->cold_key = kv_txn_cold_key(t);
    if (is_local(st))
        return st;
    out->outcome = st;
    if (st != ST_OK) {
        err_default(&out->err, st);
        out->result = (struct kv_result){.scalar = KV_NULL};
    }

    kv_state_begin(s, index, term, c->stamp);
    if (st == ST_OK)
        kv_txn_publish(t);
    if (ack != 0)
        kv_state_queue_ack(s, ack);
    if (may_come_again(c))
        kv_dedup_remember(s, &c->origin, out);
    kv_state_end(s);
    return ST_OK;
}

status kv_apply(struct kv_state *s, uint64_t index, uint64_t term, bytes command, enum kv_tier tier,
                struct arena *a, struct kv_applied *out)
{
    struct kv_command c;
    out->result = (struct kv_result){.scalar = KV_NULL};
    out->failed_op = 0;
    err_clear(&out->err);
    ST_TRY(kv_command_decode(command, &c));
    if (c.stamp <= kv_state_record(s)->applied_ts)
        return ST_CORRUPT; /* A3 */
    if (may_come_again(&c)) {
        status st = apply_again(s, index, term, &c, a, out);
        if (st != ST_NOT_FOUND)
            return st;
    }
    return apply_first(s, index, term, &c, tier, a, out);
}
