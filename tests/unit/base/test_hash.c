/* The hash map against a naive model; the intrusive list keeps its order. */
#include "lib/test.h"

#include "base/hash.h"
#include "base/list.h"

#define KEYS 500

static char names[KEYS][8];
static int values[KEYS];

/* Random puts and removes against an array as the model. */
static void agrees_with_a_model(void **state)
{
    (void)state;
    struct hash h;
    bool present[KEYS] = {0};
    size_t count = 0;
    uint64_t seed = 7;
    hash_init(&h);
    for (int i = 0; i < KEYS; i++)
        snprintf(names[i], sizeof names[i], "k%d", i);
    for (int step = 0; step < 20000; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned k = (unsigned)(seed >> 33) % KEYS;
        bytes key = bytes_str(names[k]);
        assert_ptr_equal(hash_get(&h, key), present[k] ? &values[k] : NULL);
        if ((seed >> 60) % 2 == 0) {
            assert_ptr_equal(hash_put(&h, key, &values[k]), present[k] ? &values[k] : NULL);
            count += !present[k];
            present[k] = true;
        } else {
            assert_ptr_equal(hash_remove(&h, key), present[k] ? &values[k] : NULL);
            count -= present[k];
            present[k] = false;
        }
        assert_int_equal(h.count, count);
    }
    size_t at = 0, seen = 0;
    while (hash_next(&h, &at) != NULL)
        seen++;
    assert_int_equal(seen, count);
    hash_fini(&h);
}

static void empty_map_answers(void **state)
{
    (void)state;
    struct hash h;
    size_t at = 0;
    hash_init(&h);
    assert_null(hash_get(&h, BYTES_LIT("x")));
    assert_null(hash_remove(&h, BYTES_LIT("x")));
    assert_null(hash_next(&h, &at));
    hash_fini(&h);
}

static void list_keeps_order(void **state)
{
    (void)state;
    struct list head, a, b, c;
    list_init(&head);
    assert_null(list_pop_front(&head));
    list_push_back(&head, &b);
    list_push_back(&head, &c);
    list_push_front(&head, &a);
    list_remove(&b);
    list_remove(&b);
    unsigned n = 0;
    LIST_FOR_EACH_SAFE(it, after, &head) {
        list_remove(it);
        n++;
    }
    assert_int_equal(n, 2);
    assert_true(list_empty(&head));
    list_push_back(&head, &c);
    assert_ptr_equal(list_pop_front(&head), &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_model),
        cmocka_unit_test(empty_map_answers),
        cmocka_unit_test(list_keeps_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
