/* Arenas: alignment, reset, hooks, limits, and what ASan sees of released memory. */
#include "lib/test.h"

#include "base/arena.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

static void allocations_are_aligned_and_distinct(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 300);
    uint8_t *last = NULL;
    for (size_t n = 0; n < 600; n++) {
        uint8_t *p = arena_alloc(&a, n);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_ptr_not_equal(p, last);
        memset(p, (int)n, n);
        last = p;
    }
    assert_true(a.held_bytes >= a.used_bytes);
    arena_fini(&a);
    assert_int_equal(a.held_bytes, 0);
}

static void reset_keeps_the_first_block_only(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 1024);
    void *first = arena_alloc(&a, 16);
    size_t held = a.held_bytes;
    for (int i = 0; i < 100; i++)
        arena_alloc(&a, 5000);
    assert_true(a.held_bytes > 500000);
    arena_reset(&a);
    assert_int_equal(a.held_bytes, held);
    assert_int_equal(a.used_bytes, 0);
    assert_ptr_equal(arena_alloc(&a, 16), first);
    arena_fini(&a);
}

static void trimmed_memory_is_free_again(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 1024);
    uint8_t *p = arena_alloc(&a, 500);
    memset(p, 7, 500);
    arena_trim(&a, p, 33);
    assert_int_equal(a.used_bytes, 48);
    assert_ptr_equal(arena_alloc(&a, 16), p + 48);
    uint8_t *q = arena_alloc(&a, 100);
    arena_trim(&a, q, 0);
    assert_ptr_not_equal(arena_alloc(&a, 1), q);
    assert_int_equal(p[32], 7);
    arena_fini(&a);
}

static char order[8];

static void note(void *arg)
{
    strncat(order, arg, 1);
}

static struct arena *hooked;

static void note_and_add(void *arg)
{
    note(arg);
    arena_on_reset(hooked, note, "z");
}

static void hooks_run_once_newest_first(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 0);
    hooked = &a;
    order[0] = '\0';
    arena_on_reset(&a, note, "a");
    arena_on_reset(&a, note_and_add, "b");
    arena_on_reset(&a, note, "c");
    arena_reset(&a);
    assert_string_equal(order, "cbza");
    arena_reset(&a);
    assert_string_equal(order, "cbza");
    arena_on_reset(&a, note, "d");
    arena_fini(&a);
    assert_string_equal(order, "cbzad");
}

static void zeroed_arena_can_be_finished(void **state)
{
    (void)state;
    struct arena a = {0};
    arena_fini(&a);
    assert_null(a.head);
}

static void try_alloc_respects_the_limit(void **state)
{
    (void)state;
    struct arena a;
    void *p;
    arena_init(&a, 256);
    a.limit_bytes = 1000;
    assert_int_equal(arena_try_alloc(&a, 1001, &p), ST_NO_MEMORY);
    assert_null(p);
    assert_int_equal(arena_try_alloc(&a, 900, &p), ST_OK);
    assert_int_equal(arena_try_alloc(&a, 200, &p), ST_NO_MEMORY);
    assert_int_equal(arena_try_alloc(&a, SIZE_MAX, &p), ST_NO_MEMORY);
    arena_reset(&a);
    assert_int_equal(arena_try_alloc(&a, 200, &p), ST_OK);
    arena_fini(&a);
}

static void text_helpers_copy(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 256);
    char src[] = "hello";
    bytes copy = arena_copy(&a, bytes_str(src));
    char *dup = arena_strdup(&a, bytes_str(src));
    src[0] = 'X';
    assert_bytes(copy, "hello");
    assert_string_equal(dup, "hello");
    assert_string_equal(arena_printf(&a, "%s-%d", "n", 42), "n-42");
    assert_int_equal(arena_copy(&a, BYTES_EMPTY).size, 0);
    int *zeros = ARENA_ARRAY(&a, int, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(zeros[i], 0);
    arena_fini(&a);
}

static void a_full_list_grows_and_keeps_its_items(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 256);
    int *list = NULL;
    unsigned capacity = 0;
    for (unsigned count = 0; count < 100; count++) {
        if (count == capacity)
            list = arena_grow(&a, list, sizeof *list, &capacity, 3);
        list[count] = (int)count;
    }
    assert_int_equal(capacity, 192);
    for (int i = 0; i < 100; i++)
        assert_int_equal(list[i], i);
    arena_fini(&a);
}

static void released_memory_is_poisoned_under_asan(void **state)
{
    (void)state;
#ifdef WITH_ASAN
    struct arena a;
    arena_init(&a, 256);
    uint8_t *p = arena_alloc(&a, 40);
    assert_false(__asan_address_is_poisoned(p + 39));
    assert_true(__asan_address_is_poisoned(p + 40));
    arena_reset(&a);
    assert_true(__asan_address_is_poisoned(p));
    p = arena_alloc(&a, 8);
    assert_false(__asan_address_is_poisoned(p));
    assert_true(__asan_address_is_poisoned(p + 16));
    arena_fini(&a);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_and_distinct),
        cmocka_unit_test(reset_keeps_the_first_block_only),
        cmocka_unit_test(trimmed_memory_is_free_again),
        cmocka_unit_test(hooks_run_once_newest_first),
        cmocka_unit_test(zeroed_arena_can_be_finished),
        cmocka_unit_test(try_alloc_respects_the_limit),
        cmocka_unit_test(text_helpers_copy),
        cmocka_unit_test(a_full_list_grows_and_keeps_its_items),
        cmocka_unit_test(released_memory_is_poisoned_under_asan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
