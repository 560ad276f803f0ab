/*
 * Bytes from another node as parts of a snapshot. Nothing may crash, whatever is refused may change
 * nothing, and what is installed must give a state that can be read.
 *
 * Sum and number of each part are put right, so that the input reaches entries, keys and the
 * record: it is one part's kind and body after the other, each behind its size (2 bytes).
 */
#include "base/assert.h"
#include "base/rcu.h"
#include "kv/snapshot_internal.h"

#include <stdlib.h>

static const struct kv_snapshot_id id = {.index = 7, .term = 1};

static struct kv_state *state_open(struct kv_store *store, enum kv_table t)
{
    struct kv_state_options options = {.shard = 1, .memtable_bytes = 1u << 20, .table = t};
    struct kv_state *s;
    struct err err;
    ASSERT(kv_state_open(store, &options, &s, &err) == ST_OK);
    return s;
}

static status load_one(struct kv_load *l, uint64_t number, bytes kind_and_body)
{
    struct obuf o;
    obuf_init(&o);
    put_u64(&o, 0);
    put_u64(&o, number);
    obuf_put(&o, kind_and_body.data, kind_and_body.size);
    uint64_t sum = kv__part_sum(bytes_make(o.data, o.size), id.index, number);
    memcpy(o.data, &sum, sizeof sum);
    status st = kv_load_part(l, bytes_make(o.data, o.size));
    obuf_fini(&o);
    return st;
}

static status load(struct kv_load *l, const uint8_t *data, size_t size)
{
    struct reader r = reader_make(bytes_make(data, size));
    status st = ST_OK;
    for (uint64_t number = 0; st == ST_OK; number++) {
        size_t part = get_u16(&r), left = (size_t)(r.end - r.next);
        if (r.bad)
            return ST_CORRUPT;
        st = load_one(l, number, get_raw(&r, part < left ? part : left));
    }
    return st;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    UNUSED(argc);
    UNUSED(argv);
    rcu_thread_register();
    rcu_online();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct kv_store *store = kv_store_new_mem();
    struct kv_state *s = state_open(store, data[0] % 2 ? KV_META : 0);
    struct kv_load *l;
    uint64_t hash = 0, after = 0;
    ASSERT(kv_state_hash(s, NULL, &hash) == ST_OK);
    ASSERT(kv_load_new(s, "", id, BYTES_EMPTY, &l) == ST_OK);
    status st = load(l, data + 1, size - 1);
    if (st == ST_END)
        st = kv_load_install(l);
    if (st == ST_OK) {
        kv_load_take(l);
        st = kv_state_hash(s, NULL, &after);
        ASSERT(st == ST_OK || st == ST_CORRUPT); /* sums do not tell what rows may be */
    } else {
        kv_load_free(l);
        ASSERT(kv_state_hash(s, NULL, &after) == ST_OK && after == hash);
    }
    kv_state_close(s);
    kv_store_close(store);
    rcu_quiescent();
    return 0;
}
