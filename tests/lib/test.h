/* tests/lib/test.h — cmocka with what it needs before it. Included first by every unit test. */
#ifndef TESTS_LIB_TEST_H
#define TESTS_LIB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define assert_bytes(b, text)                                                                      \
    do {                                                                                           \
        bytes assert_bytes_ = (b);                                                                 \
        assert_int_equal(assert_bytes_.size, strlen(text));                                        \
        assert_memory_equal(assert_bytes_.data, (text), strlen(text));                             \
    } while (0)

#endif
