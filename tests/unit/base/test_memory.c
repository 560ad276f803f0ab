/* Counters of memory: what is taken and given back, whoever does it. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static int64_t held(enum memory_use use)
{
    int64_t all[MEMORY_USES];
    memory_held(all);
    return all[use];
}

static void *free_block(void *arg)
{
    buf_unref(arg);
    return NULL;
}

static void sum_is_right_when_another_thread_frees(void **state)
{
    (void)state;
    int64_t before = held(MEMORY_BLOCKS);
    struct buf *b = buf_copy(bytes_str("0123456789"));
    assert_int_equal(held(MEMORY_BLOCKS) - before, sizeof *b + 10);
    (void)buf_ref(b);
    buf_unref(b);
    assert_int_equal(held(MEMORY_BLOCKS) - before, sizeof *b + 10);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, free_block, b), 0);
    pthread_join(t, NULL);
    assert_int_equal(held(MEMORY_BLOCKS), before); /* and the thread is gone */
}

static void arena_counts_under_its_use(void **state)
{
    (void)state;
    int64_t plans = held(MEMORY_PLANS), scratch = held(MEMORY_SCRATCH);
    struct arena a, b;
    arena_init(&a, 1000);
    arena_init(&b, 1000);
    a.use = MEMORY_PLANS;
    for (unsigned i = 0; i < 100; i++) {
        (void)arena_alloc(&a, 700);
        (void)arena_alloc(&b, 70);
    }
    assert_int_equal(held(MEMORY_PLANS) - plans, a.held_bytes);
    assert_int_equal(held(MEMORY_SCRATCH) - scratch, b.held_bytes);
    arena_reset(&a);
    assert_int_equal(held(MEMORY_PLANS) - plans, a.held_bytes);
    arena_fini(&a);
    arena_fini(&b);
    assert_int_equal(held(MEMORY_PLANS), plans);
    assert_int_equal(held(MEMORY_SCRATCH), scratch);
}

static void buffer_counts_what_it_has_room_for(void **state)
{
    (void)state;
    int64_t before = held(MEMORY_BUFFERS);
    struct obuf o;
    obuf_init(&o);
    for (unsigned i = 0; i < 1000; i++)
        obuf_put(&o, "0123456789", 10);
    assert_int_equal(held(MEMORY_BUFFERS) - before, o.capacity);
    obuf_reset(&o);
    assert_int_equal(held(MEMORY_BUFFERS) - before, o.capacity);
    obuf_fini(&o);
    assert_int_equal(held(MEMORY_BUFFERS), before);
    obuf_fini(&o);
    assert_int_equal(held(MEMORY_BUFFERS), before);
}

static void new_is_zero_and_every_use_has_a_name(void **state)
{
    (void)state;
    for (unsigned u = 0; u < MEMORY_USES; u++) {
        int64_t before = held(u);
        char *p = memory_new(u, 64);
        for (unsigned i = 0; i < 64; i++)
            assert_int_equal(p[i], 0);
        assert_int_equal(held(u) - before, 64);
        memory_free(u, p, 64);
        memory_free(u, NULL, 64);
        assert_int_equal(held(u), before);
        assert_non_null(memory_use_name(u));
    }
}

static void process_has_what_was_allocated(void **state)
{
    (void)state;
    enum { SIZE = 64 << 20 };
    struct memory_process before, after;
    memory_process(&before);
    char *p = malloc(SIZE);
    assert_non_null(p);
    memset(p, 1, SIZE);
    memory_process(&after);
    assert_true(after.resident >= before.resident + SIZE / 2);
    assert_true(after.resident < UINT64_C(1) << 50);
#ifndef SANITIZED /* their allocators say nothing */
    assert_true(after.allocated >= before.allocated + SIZE);
    assert_true(after.active >= before.active + SIZE);
#endif
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_is_right_when_another_thread_frees),
        cmocka_unit_test(arena_counts_under_its_use),
        cmocka_unit_test(buffer_counts_what_it_has_room_for),
        cmocka_unit_test(new_is_zero_and_every_use_has_a_name),
        cmocka_unit_test(process_has_what_was_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
