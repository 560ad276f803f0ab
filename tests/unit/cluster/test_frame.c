/* Frames, their items, and the messages of the handshake. */
#include "lib/test.h"

#include "cluster/frame.h"
#include "cluster/handshake.h"

#define BODY_MAX 1000u

static size_t frame_of(uint8_t *out, const char *text, struct cl_frame_seal *seal)
{
    bytes body = bytes_str(text);
    cl_frame_header(out, CL_FRAME_BATCH, body, seal);
    memcpy(out + CL_FRAME_HEADER_BYTES, body.data, body.size);
    return CL_FRAME_HEADER_BYTES + body.size;
}

static void a_frame_is_read_when_all_of_it_is_there(void **state)
{
    struct cl_frame_seal out = cl_frame_seal(1, 2, true), in = out;
    uint8_t data[200];
    size_t n = frame_of(data, "hello", &out), size;
    struct cl_frame f;
    const char *why = NULL;
    (void)state;
    for (size_t have = 0; have < n; have++) {
        assert_int_equal(cl_frame_read(bytes_make(data, have), BODY_MAX, &in, &f, &size, &why),
                         ST_PENDING);
        assert_int_equal(size, have < CL_FRAME_HEADER_BYTES ? CL_FRAME_HEADER_BYTES : n);
    }
    assert_int_equal(cl_frame_read(bytes_make(data, sizeof data), BODY_MAX, &in, &f, &size, &why),
                     ST_OK);
    assert_int_equal(size, n);
    assert_int_equal(f.type, CL_FRAME_BATCH);
    assert_bytes(f.body, "hello");
}

/* A damaged header is noticed before its size is believed, a damaged body when it is there. */
static void every_damaged_bit_is_noticed(void **state)
{
    struct cl_frame_seal out = cl_frame_seal(1, 2, true);
    uint8_t data[200];
    size_t n = frame_of(data, "hello", &out), size;
    struct cl_frame f;
    const char *why = NULL;
    (void)state;
    for (size_t bit = 0; bit < n * 8; bit++) {
        struct cl_frame_seal in = cl_frame_seal(1, 2, true);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(cl_frame_read(bytes_make(data, n), BODY_MAX, &in, &f, &size, &why),
                         ST_CORRUPT);
        assert_non_null(why);
        assert_int_equal(in.number, 0);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void a_frame_in_the_wrong_place_is_wrong(void **state)
{
    struct cl_frame_seal out = cl_frame_seal(1, 2, true);
    uint8_t first[200], second[200];
    size_t n = frame_of(first, "first", &out), size;
    size_t m = frame_of(second, "second", &out);
    struct cl_frame_seal seals[] = {cl_frame_seal(1, 3, true), cl_frame_seal(1, 2, false),
                                    cl_frame_seal(2, 1, true), CL_FRAME_SEAL_OPEN};
    struct cl_frame f;
    const char *why;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(seals); i++)
        assert_int_equal(cl_frame_read(bytes_make(first, n), BODY_MAX, &seals[i], &f, &size, &why),
                         ST_CORRUPT);
    struct cl_frame_seal in = cl_frame_seal(1, 2, true);
    assert_int_equal(cl_frame_read(bytes_make(second, m), BODY_MAX, &in, &f, &size, &why),
                     ST_CORRUPT); /* the first is missing */
    assert_int_equal(cl_frame_read(bytes_make(first, n), BODY_MAX, &in, &f, &size, &why), ST_OK);
    assert_int_equal(cl_frame_read(bytes_make(first, n), BODY_MAX, &in, &f, &size, &why),
                     ST_CORRUPT); /* twice */
    assert_int_equal(cl_frame_read(bytes_make(second, m), BODY_MAX, &in, &f, &size, &why), ST_OK);
}

static void a_frame_over_the_bound_is_refused_by_its_header(void **state)
{
    struct cl_frame_seal out = CL_FRAME_SEAL_OPEN, in = CL_FRAME_SEAL_OPEN;
    uint8_t data[200], *body = calloc(1, BODY_MAX + 1);
    size_t size;
    struct cl_frame f;
    const char *why;
    (void)state;
    cl_frame_header(data, CL_FRAME_BATCH, bytes_make(body, BODY_MAX + 1), &out);
    assert_int_equal(
        cl_frame_read(bytes_make(data, CL_FRAME_HEADER_BYTES), BODY_MAX, &in, &f, &size, &why),
        ST_CORRUPT);
    assert_string_equal(why, "frame size");
    free(body);
}

static const struct cl_item items[] = {
    {.kind = CL_ITEM_MESSAGE, .message = {1, UINT64_MAX, 3}, .payload = {(const uint8_t *)"m", 1}},
    {.kind = CL_ITEM_REQUEST, .request = {1u << 20, 7, 100}, .payload = {(const uint8_t *)"rq", 2}},
    {.kind = CL_ITEM_ANSWER, .answer = {1u << 20, ST_EXISTS}},
    {.kind = CL_ITEM_BEACON, .beacon = {1, 2, 3}, .payload = {(const uint8_t *)"groups", 6}},
    {.kind = CL_ITEM_CHUNK, .chunk = {4, 5, CL_CHUNK_LAST}, .payload = {(const uint8_t *)"c", 1}},
    {.kind = CL_ITEM_CREDIT, .credit = {4, 65536}},
};

static void items_come_back_as_they_were(void **state)
{
    struct obuf o, again;
    struct cl_item item;
    size_t count = 0;
    (void)state;
    obuf_init(&o);
    obuf_init(&again);
    for (size_t i = 0; i < ARRAY_LEN(items); i++) {
        size_t before = o.size;
        cl_item_put(&o, &items[i]);
        assert_true(o.size - before <= items[i].payload.size + CL_ITEM_BYTES_MAX);
    }
    struct reader r = reader_make(bytes_make(o.data, o.size));
    while (cl_item_next(&r, &item) == ST_OK) {
        assert_int_equal(item.kind, items[count].kind);
        assert_true(bytes_eq(item.payload, items[count].payload));
        cl_item_put(&again, &item);
        count++;
    }
    assert_int_equal(count, ARRAY_LEN(items));
    assert_int_equal(again.size, o.size);
    assert_memory_equal(again.data, o.data, o.size);
    /* Cut anywhere but between two items it is damage. */
    size_t whole = 0;
    for (size_t cut = 0; cut < o.size; cut++) {
        status st;
        r = reader_make(bytes_make(o.data, cut));
        while ((st = cl_item_next(&r, &item)) == ST_OK)
            ;
        whole += st == ST_END;
    }
    assert_int_equal(whole, ARRAY_LEN(items));
    obuf_fini(&o);
    obuf_fini(&again);
}

static struct cl_hello hello(uint64_t node)
{
    return (struct cl_hello){.cluster_id = 7,
                             .node_id = node,
                             .store_id = 100 + node,
                             .incarnation = 200 + node,
                             .protocol_min = 1,
                             .protocol_max = 3,
                             .expected_node_id = 3 - node,
                             .nonce = 300 + node,
                             .protocol = 2};
}

static void a_hello_comes_back_as_it_was(void **state)
{
    struct cl_hello in = hello(1), out;
    struct cl_refusal no = {.reason = CL_REFUSED_STORE, .text = "why"}, got;
    struct obuf o, again;
    (void)state;
    obuf_init(&o);
    cl_hello_put(&o, &in);
    assert_int_equal(cl_hello_get(bytes_make(o.data, o.size), &out), ST_OK);
    obuf_init(&again);
    cl_hello_put(&again, &out);
    assert_true(out.nonce == in.nonce && out.protocol == in.protocol);
    assert_true(bytes_eq(bytes_make(o.data, o.size), bytes_make(again.data, again.size)));
    obuf_fini(&again);
    assert_int_equal(cl_hello_get(BYTES_EMPTY, &out), ST_CORRUPT); /* nothing is in it */
    assert_int_equal(cl_hello_get(bytes_make(o.data, o.size - 3), &out), ST_CORRUPT);
    obuf_reset(&o);
    cl_refusal_put(&o, &no);
    assert_int_equal(cl_refusal_get(bytes_make(o.data, o.size), &got), ST_OK);
    assert_int_equal(got.reason, CL_REFUSED_STORE);
    assert_string_equal(got.text, "why");
    obuf_fini(&o);
}

static void each_rule_refuses_and_names_both_sides(void **state)
{
    struct cl_hello ours = hello(2), good = hello(1), bad;
    struct cl_refusal r;
    uint32_t protocol;
    (void)state;
    const struct cl_expected any = {.known = true, .first = true};
    const struct cl_expected same = {.known = true, .first = true, .store = 101};
    assert_int_equal(cl_hello_judge(&ours, &good, &any, &protocol, &r), CL_REFUSED_NOT);
    assert_int_equal(protocol, 3);
    assert_int_equal(cl_hello_judge(&ours, &good, &same, &protocol, &r), CL_REFUSED_NOT);
#define BAD(field, value, is_known, its_store, reason, told)                                       \
    do {                                                                                           \
        const struct cl_expected e = {.known = is_known, .first = true, .store = its_store};       \
        bad = good;                                                                                \
        bad.field = (value);                                                                       \
        assert_int_equal(cl_hello_judge(&ours, &bad, &e, &protocol, &r), reason);                  \
        assert_non_null(strstr(r.text, told));                                                     \
    } while (0)
    BAD(cluster_id, 8, true, 0, CL_REFUSED_CLUSTER, "cluster 0000000000000008");
    BAD(incarnation, ours.incarnation, true, 0, CL_REFUSED_SELF, "itself");
    BAD(node_id, 2, true, 0, CL_REFUSED_NODE, "two processes");
    BAD(expected_node_id, 5, true, 0, CL_REFUSED_NODE, "expected node 5");
    BAD(node_id, 9, false, 0, CL_REFUSED_NODE, "node 9 is not in the list");
    BAD(expected_store_id, 55, true, 0, CL_REFUSED_STORE, "expected store 0000000000000037");
    BAD(store_id, 55, true, 101, CL_REFUSED_STORE, "disk was replaced");
    BAD(protocol_min, 4, true, 0, CL_REFUSED_PROTOCOL, "speaks versions 1 to 3");
    BAD(protocol_max, 0, true, 0, CL_REFUSED_PROTOCOL, "node 1 1 to 0");
#undef BAD
}

/* A disk that was replaced is another replica, and says so; one that is not may not come later. */
static void another_store_stays_where_it_has_joined(void **state)
{
    const struct cl_expected late = {.known = true}, same = {.known = true, .store = 101};
    struct cl_hello ours = hello(2), theirs = hello(1);
    struct cl_refusal r;
    uint32_t protocol;
    (void)state;
    assert_int_equal(cl_hello_judge(&ours, &theirs, &late, &protocol, &r), CL_REFUSED_NODE);
    assert_non_null(strstr(r.text, "cluster.join"));
    theirs.replica_id = 7ull << 32 | 1;
    theirs.store_id = 55;
    assert_int_equal(cl_hello_judge(&ours, &theirs, &late, &protocol, &r), CL_REFUSED_NOT);
    assert_int_equal(cl_hello_judge(&ours, &theirs, &same, &protocol, &r), CL_REFUSED_NOT);
    ours.expected_store_id = 101;
    assert_int_equal(cl_hello_judge(&theirs, &ours, &late, &protocol, &r), CL_REFUSED_NODE);
    const struct cl_expected first = {.known = true, .first = true};
    assert_int_equal(cl_hello_judge(&theirs, &ours, &first, &protocol, &r), CL_REFUSED_NOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_is_read_when_all_of_it_is_there),
        cmocka_unit_test(every_damaged_bit_is_noticed),
        cmocka_unit_test(a_frame_in_the_wrong_place_is_wrong),
        cmocka_unit_test(a_frame_over_the_bound_is_refused_by_its_header),
        cmocka_unit_test(items_come_back_as_they_were),
        cmocka_unit_test(a_hello_comes_back_as_it_was),
        cmocka_unit_test(each_rule_refuses_and_names_both_sides),
        cmocka_unit_test(another_store_stays_where_it_has_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
