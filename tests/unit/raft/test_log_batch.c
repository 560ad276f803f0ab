/* raft/log_batch.c and log_segment.c: the bytes of records, batches and segment headers. */
#include "log_fixture.h"

/* A sealed batch as it would stand in the file. */
static uint8_t *bytes_of(struct raft__batch *b, size_t *size)
{
    *size = (size_t)raft__batch_disk_bytes(b->payload_bytes);
    uint8_t *data = malloc(*size);
    memset(data, 0xaa, *size);
    raft__batch_copy(b, data);
    return data;
}

struct collected {
    struct raft__record records[16];
    size_t count;
};

static status collect(void *arg, const struct raft__record *rec)
{
    struct collected *c = arg;
    c->records[c->count++] = *rec;
    return ST_OK;
}

static struct raft__batch *sample(size_t data_size)
{
    struct raft__batch *b = raft__batch_new(RAFT__BATCH_DATA);
    struct raft_entry e[2] = {{.index = 8, .term = 3, .kind = RAFT_ENTRY_NOOP},
                              {.index = 9, .term = 3, .kind = RAFT_ENTRY_COMMAND}};
    e[1].data = buf_new(data_size);
    memset(e[1].data->data, 0x5a, data_size);
    raft__batch_hard_state(b, 1, (struct raft_hard_state){3, 2});
    raft__batch_entries(b, 1, e, 2);
    raft__batch_cut(b, 2, 77);
    buf_unref(e[1].data);
    raft__batch_seal(b, 11, (struct raft__position){1, 1024}, 5, (struct raft__position){1, 512});
    return b;
}

static void batch_decodes_to_its_records(void **state)
{
    static const size_t sizes[] = {0,    1, 300, 456, RAFT__INLINE_BYTES, RAFT__INLINE_BYTES + 1,
                                   70000};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct raft__batch *b = sample(sizes[i]);
        struct raft__batch_header h;
        struct collected c = {0};
        size_t size;
        uint8_t *data = bytes_of(b, &size);

        assert_true(raft__header_decode(data, 11, 1024, &h));
        assert_int_equal(h.sequence, 5);
        assert_int_equal(h.durable.offset, 512);
        bytes rest = bytes_make(data + RAFT__HEADER_BYTES, size - RAFT__HEADER_BYTES);
        assert_true(raft__payload_valid(&h, rest, 11, 1024));
        bytes payload = bytes_make(rest.data, h.payload_bytes);
        assert_int_equal(raft__records_decode(payload, h.record_count, collect, &c), ST_OK);
        assert_int_equal(c.count, 4);
        assert_int_equal(c.records[0].index, 2);
        assert_int_equal(c.records[1].kind, RAFT_ENTRY_NOOP);
        assert_int_equal(c.records[2].index, 9);
        assert_int_equal(c.records[2].data.size, sizes[i]);
        assert_int_equal(c.records[3].index, 77);
        free(data);
        raft__batch_free(b);
    }
}

static void batch_is_valid_in_its_place_only(void **state)
{
    struct raft__batch *b = sample(300);
    struct raft__batch_header h;
    size_t size;
    uint8_t *data = bytes_of(b, &size);
    (void)state;
    assert_false(raft__header_decode(data, 12, 1024, &h));
    assert_false(raft__header_decode(data, 11, 1536, &h));
    assert_true(raft__header_decode(data, 11, 1024, &h));
    bytes rest = bytes_make(data + RAFT__HEADER_BYTES, size - RAFT__HEADER_BYTES);
    assert_false(raft__payload_valid(&h, rest, 12, 1024));
    assert_false(raft__payload_valid(&h, rest, 11, 512));
    free(data);
    raft__batch_free(b);
}

static void malformed_records_are_corrupt(void **state)
{
    struct raft__batch *b = sample(300);
    struct collected c = {0};
    size_t size;
    uint8_t *data = bytes_of(b, &size), *payload = data + RAFT__HEADER_BYTES;
    size_t n = (size_t)b->payload_bytes;
    (void)state;
    assert_int_equal(raft__records_decode(bytes_make(payload, n), 4, collect, &c), ST_OK);
    assert_int_equal(raft__records_decode(bytes_make(payload, n), 3, collect, &c), ST_CORRUPT);
    assert_int_equal(raft__records_decode(bytes_make(payload, n), 5, collect, &c), ST_CORRUPT);
    assert_int_equal(raft__records_decode(bytes_make(payload, n - 1), 4, collect, &c), ST_CORRUPT);
    /* type, kind, reserved; length of a hard state, which has no data */
    static const size_t places[] = {0, 33, 2, 4};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        c.count = 0;
        payload[places[i]] ^= 0x20;
        assert_int_equal(raft__records_decode(bytes_make(payload, n), 4, collect, &c), ST_CORRUPT);
        payload[places[i]] ^= 0x20;
    }
    free(data);
    raft__batch_free(b);
}

static void seed_depends_on_every_part_of_the_identity(void **state)
{
    const struct raft__identity id = {
        .cluster_id = 1, .store_id = 2, .number = 3, .generation = 4, .stream = 5, .format = 1};
    struct raft__identity other;
    (void)state;
#define CHECK_DIFFERS(field)                                                                       \
    other = id;                                                                                    \
    other.field++;                                                                                 \
    assert_int_not_equal(raft__segment_seed(&id), raft__segment_seed(&other))
    CHECK_DIFFERS(cluster_id);
    CHECK_DIFFERS(store_id);
    CHECK_DIFFERS(stream);
    CHECK_DIFFERS(number);
    CHECK_DIFFERS(generation);
}

static void segment_header_survives_and_any_flip_is_seen(void **state)
{
    const struct raft__identity id = {
        .cluster_id = 1, .store_id = 2, .number = 3, .generation = 4, .stream = 5, .format = 1};
    struct raft__identity got = {0};
    uint8_t block[RAFT__BLOCK];
    (void)state;
    raft__segment_header_encode(block, &id);
    assert_true(raft__segment_header_decode(block, &got));
    assert_memory_equal(&got, &id, sizeof id);
    for (size_t i = 0; i < sizeof block; i++) {
        block[i] ^= 1;
        assert_false(raft__segment_header_decode(block, &got));
        block[i] ^= 1;
    }
}

static void only_exact_names_are_segments(void **state)
{
    uint64_t n = 0;
    (void)state;
    assert_true(raft__segment_name("000000000042.log", &n));
    assert_int_equal(n, 42);
    assert_true(raft__segment_name("1000000000000.log", &n));
    assert_true(raft__spare_name("spare-000000000007", &n));
    assert_int_equal(n, 7);
    assert_false(raft__segment_name("42.log", &n));
    assert_false(raft__segment_name("000000000042.log.bak", &n));
    assert_false(raft__segment_name("x000000000042.log", &n));
    assert_false(raft__segment_name("99999999999999999999.log", &n));
    assert_false(raft__spare_name("spare-000000000007.log", &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_decodes_to_its_records),
        cmocka_unit_test(batch_is_valid_in_its_place_only),
        cmocka_unit_test(malformed_records_are_corrupt),
        cmocka_unit_test(seed_depends_on_every_part_of_the_identity),
        cmocka_unit_test(segment_header_survives_and_any_flip_is_seen),
        cmocka_unit_test(only_exact_names_are_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
