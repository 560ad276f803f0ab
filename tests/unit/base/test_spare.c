/* A descriptor kept back: who waits is dropped when there is no other; a lost one comes back. */
#include "lib/test.h"

#include "base/spare.h"
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    struct loop *loop;
    struct spare *spare;
    int listener, client, free_fd;
    unsigned again;
    struct rlimit before;
} f;

static void on_again(void *arg)
{
    (void)arg;
    f.again++;
    loop_stop(f.loop);
}

static int lowest_free(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

static int setup(void **state)
{
    (void)state;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    f.again = 0;
    f.loop = loop_new();
    f.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(f.listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(f.listener, 8), 0);
    assert_int_equal(getsockname(f.listener, (struct sockaddr *)&a, &size), 0);
    f.client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(f.client, (struct sockaddr *)&a, sizeof a), 0);
    f.free_fd = lowest_free();
    f.spare = spare_new(f.loop, "test", on_again, NULL);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &f.before), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &f.before), 0);
    spare_free(f.spare);
    close(f.client);
    close(f.listener);
    loop_free(f.loop);
    return 0;
}

/* Descriptors below LIMIT only. */
static void limit(int limit)
{
    struct rlimit low = f.before;
    low.rlim_cur = (rlim_t)limit;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
}

static void client_is_dropped(void)
{
    char c;
    assert_int_equal(read(f.client, &c, 1), 0);
}

static void who_waits_is_dropped(void **state)
{
    (void)state;
    limit(f.free_fd + 1); /* up to the spare one */
    assert_int_equal(accept(f.listener, NULL, NULL), -1);
    assert_int_equal(spare_use(f.spare, f.listener), SPARE_DROPPED);
    client_is_dropped();
    assert_int_equal(spare_use(f.spare, f.listener), SPARE_NOBODY);
    assert_int_equal(lowest_free(), -1); /* it is kept again */
    assert_int_equal(f.again, 0);
}

/* The limit falls below the spare one, as if another thread had taken its number. */
static void a_lost_one_comes_back(void **state)
{
    (void)state;
    limit(f.free_fd);
    assert_int_equal(spare_use(f.spare, f.listener), SPARE_GONE);
    struct pollfd p = {.fd = f.client, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0); /* it still waits */
    limit(f.free_fd + 1);
    loop_run(f.loop);
    assert_int_equal(f.again, 1);
    assert_int_equal(spare_use(f.spare, f.listener), SPARE_DROPPED);
    client_is_dropped();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_waits_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lost_one_comes_back, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
