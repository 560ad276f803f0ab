/*
 * kv/dedup.c — remembering answers: a ring in order of stamps, and a map from the id to the entry.
 *
 * An entry is incarnation(8) sequence(8) answer; its stamp is that of the command.
 *
 * Invariants
 *   D1  The map holds the entries of the ring and nothing else.
 *   D2  A command's `since` is below its first stamp, and what left the ring has a stamp at or
 *       below answers_dropped: so a command that is not refused and not found was never done.
 *   D3  The entries above the last seal are those that the next generation will carry.
 */
#include "kv/dedup.h"
#include "base/assert.h"
#include "base/codec.h"
#include "base/fault.h"
#include "kv/answer.h"
#include "kv/state_internal.h"

#define ID_BYTES 16u
/* What an entry takes besides its bytes. */
#define ENTRY_BYTES 96u

_Static_assert(ID_BYTES == sizeof(uint64_t) * 2, "an id is two numbers");

static bytes id_of_entry(const struct buf *entry)
{
    return bytes_make(entry->data, ID_BYTES);
}

static void id_of_origin(const struct kv_origin *o, uint8_t out[ID_BYTES])
{
    memcpy(out, &o->incarnation, 8);
    memcpy(out + 8, &o->sequence, 8);
}

/* -- the ring and its map ---------------------------------------------------------------------- */

static uint64_t held_bytes(const struct kv__dedup *d)
{
    return d->ring.byte_count + d->ring.count * ENTRY_BYTES;
}

void kv__dedup_add_take(struct kv__dedup *d, hlc_ts ts, struct buf *entry)
{
    ASSERT(entry->size >= ID_BYTES);
    kv__queue_push_take(&d->ring, ts, entry);
    void *before = hash_put(&d->by_id, id_of_entry(entry), entry);
    ASSERT_INV("D1", before == NULL);
}

/* The oldest one leaves; its stamp. */
static hlc_ts drop_oldest(struct kv__dedup *d)
{
    const struct kv__queued *oldest = kv__queue_at(&d->ring, 0);
    hlc_ts ts = oldest->ts;
    void *entry = hash_remove(&d->by_id, id_of_entry(oldest->items));
    ASSERT_INV("D1", entry == oldest->items);
    kv__queue_drop(&d->ring, ts);
    return ts;
}

void kv__dedup_fini(struct kv__dedup *d)
{
    hash_fini(&d->by_id);
    kv__queue_fini(&d->ring);
}

void kv__dedup_init(struct kv__dedup *d)
{
    *d = (struct kv__dedup){.ring = {.ring = NULL}};
    hash_init(&d->by_id);
}

status kv__dedup_load(struct kv_store *store, uint64_t shard, const struct kv_shard_record *record,
                      struct kv__dedup *out)
{
    kv__dedup_init(out);
    ST_TRY(kv__queue_load(store, KV__RING_ANSWERS, shard, record->answers_dropped,
                          record->applied_ts, &out->ring));
    for (size_t i = 0; i < out->ring.count; i++) {
        struct buf *entry = kv__queue_at(&out->ring, i)->items;
        if (entry->size < ID_BYTES || hash_put(&out->by_id, id_of_entry(entry), entry) != NULL)
            return ST_CORRUPT;
    }
    return ST_OK;
}

/* -- commands ---------------------------------------------------------------------------------- */

static void say_unknown(struct kv_applied *out, const char *why)
{
    out->result = (struct kv_result){.scalar = KV_NULL};
    out->outcome =
        err_set(&out->err, ST_OUTCOME_UNKNOWN, "the outcome of the statement is unknown");
    err_detail(&out->err, "%s", why);
    err_hint(&out->err, "It may have taken effect. Look before repeating it.");
}

status kv_dedup_recall(const struct kv_state *s, const struct kv_origin *origin, hlc_ts stamp,
                       struct arena *a, struct kv_applied *out)
{
    uint8_t id[ID_BYTES];
    id_of_origin(origin, id);
    const struct buf *entry = hash_get(&s->dedup.by_id, bytes_make(id, ID_BYTES));
    if (entry != NULL) {
        MARK("dedup.done_before");
        return kv_answer_decode(bytes_make(entry->data + ID_BYTES, entry->size - ID_BYTES), a, out);
    }
    if (origin->since >= s->record.answers_dropped && origin->since < stamp)
        return ST_NOT_FOUND; /* D2 */
    MARK("dedup.forgotten");
    say_unknown(out, "It was made longer ago than answers are remembered.");
    return ST_OK;
}

static struct buf *entry_new(const struct kv_origin *origin, const struct kv_applied *answer)
{
    uint8_t id[ID_BYTES];
    struct obuf o;
    struct buf *entry;
    id_of_origin(origin, id);
    obuf_init(&o);
    obuf_put(&o, id, ID_BYTES);
    kv_answer_encode(answer, &o);
    if (o.size > ID_BYTES + KV_DEDUP_ANSWER_MAX) {
        struct kv_applied unknown;
        say_unknown(&unknown, "It was done, but its answer was too long to be remembered.");
        unknown.failed_op = 0;
        o.size = ID_BYTES;
        kv_answer_encode(&unknown, &o);
    }
    entry = buf_copy(bytes_make(o.data, o.size));
    obuf_fini(&o);
    return entry;
}

static bool over_bounds(const struct kv__dedup *d, hlc_ts now)
{
    hlc_ts window = hlc_ms(KV_DEDUP_SECONDS * 1000);
    return d->ring.count > KV_DEDUP_COUNT_MAX || held_bytes(d) > KV_DEDUP_BYTES_MAX ||
           (now > window && kv__queue_at(&d->ring, 0)->ts < now - window);
}

void kv_dedup_remember(struct kv_state *s, const struct kv_origin *origin,
                       const struct kv_applied *answer)
{
    struct kv__dedup *d = &s->dedup;
    hlc_ts now = s->next.applied_ts;
    ASSERT(s->in_command);
    s->dirty = true;
    kv__dedup_add_take(d, now, entry_new(origin, answer));
    while (d->ring.count > 1 && over_bounds(d, now))
        s->record.answers_dropped = drop_oldest(d);
}

void kv_dedup_stats(const struct kv_state *s, struct kv_dedup_stats *out)
{
    *out = (struct kv_dedup_stats){.answers = s->dedup.ring.count,
                                   .bytes = held_bytes(&s->dedup),
                                   .dropped = s->record.answers_dropped};
}
