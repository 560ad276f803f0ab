/* Files of the environment, one contract for the real and the simulated one. */
#include "lib/test.h"

#include "base/arena.h"
#include "base/env_sim.h"
#include <sys/wait.h>
#include <unistd.h>

/* One contract, two environments: every test runs on the real one and on the simulated one. */
struct fixture {
    struct env *e;
    struct arena a;
    bool simulated;
    char dir[64];
};

static struct fixture fixture;

static int setup_os(void **state)
{
    fixture = (struct fixture){.e = env_os()};
    arena_init(&fixture.a, 1024);
    snprintf(fixture.dir, sizeof fixture.dir, "/tmp/metadb-test-env-XXXXXX");
    *state = &fixture;
    return mkdtemp(fixture.dir) != NULL ? 0 : -1;
}

static int setup_sim(void **state)
{
    fixture = (struct fixture){.e = env_sim_new(1), .simulated = true, .dir = "/data"};
    arena_init(&fixture.a, 1024);
    *state = &fixture;
    return fixture.e->ops->mkdir(fixture.e, fixture.dir) == ST_OK ? 0 : -1;
}

static void remove_one(void *arg, const char *name)
{
    struct fixture *f = arg;
    unlink(arena_printf(&f->a, "%s/%s", f->dir, name));
    rmdir(arena_printf(&f->a, "%s/%s", f->dir, name));
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->simulated) {
        env_sim_free(f->e);
    } else {
        assert_int_equal(f->e->ops->list(f->e, f->dir, remove_one, f), ST_OK);
        rmdir(f->dir);
    }
    arena_fini(&f->a);
    return 0;
}

static const char *path(struct fixture *f, const char *name)
{
    return arena_printf(&f->a, "%s/%s", f->dir, name);
}

static struct env_file *must_open(struct fixture *f, const char *name, int flags)
{
    struct env_file *file = NULL;
    assert_int_equal(f->e->ops->open(f->e, path(f, name), flags, &file), ST_OK);
    return file;
}

static void write_at(struct fixture *f, struct env_file *file, const char *text, uint64_t at)
{
    struct iovec iov[2] = {{(void *)(uintptr_t)text, 1},
                           {(void *)(uintptr_t)(text + 1), strlen(text) - 1}};
    assert_int_equal(f->e->ops->pwritev(f->e, file, iov, 2, at), ST_OK);
}

static bytes read_all(struct fixture *f, struct env_file *file)
{
    uint8_t *p = arena_alloc(&f->a, 8192);
    size_t got = 0;
    assert_int_equal(f->e->ops->pread(f->e, file, p, 8192, 0, &got), ST_OK);
    return bytes_make(p, got);
}

static void written_bytes_are_read_back(void **state)
{
    struct fixture *f = *state;
    struct env_file *file = must_open(f, "a", ENV_READ | ENV_WRITE | ENV_CREATE);
    write_at(f, file, "hello world", 0);
    write_at(f, file, "W", 6);
    assert_bytes(read_all(f, file), "hello World");
    char tail[16];
    size_t got = 99;
    assert_int_equal(f->e->ops->pread(f->e, file, tail, 16, 6, &got), ST_OK);
    assert_int_equal(got, 5);
    assert_int_equal(f->e->ops->pread(f->e, file, tail, 16, 600, &got), ST_OK);
    assert_int_equal(got, 0);
    assert_int_equal(f->e->ops->datasync(f->e, file), ST_OK);
    f->e->ops->close(f->e, file);
}

static void a_gap_and_a_zero_fill_read_as_zeros(void **state)
{
    struct fixture *f = *state;
    struct env_file *file = must_open(f, "a", ENV_READ | ENV_WRITE | ENV_CREATE);
    uint64_t size = 0;
    write_at(f, file, "xy", 4);
    assert_memory_equal(read_all(f, file).data, "\0\0\0\0xy", 6);
    assert_int_equal(f->e->ops->zero_fill(f->e, file, 5000), ST_OK);
    assert_int_equal(f->e->ops->size(f->e, file, &size), ST_OK);
    assert_int_equal(size, 5000);
    bytes all = read_all(f, file);
    assert_memory_equal(all.data, "\0\0\0\0xy\0", 7);
    for (size_t i = 6; i < 5000; i++)
        assert_int_equal(all.data[i], 0);
    assert_int_equal(f->e->ops->zero_fill(f->e, file, 10), ST_OK);
    assert_int_equal(f->e->ops->truncate(f->e, file, 5), ST_OK);
    assert_int_equal(f->e->ops->truncate(f->e, file, 7), ST_OK);
    all = read_all(f, file);
    assert_int_equal(all.size, 7);
    assert_memory_equal(all.data, "\0\0\0\0x\0\0", 7);
    f->e->ops->close(f->e, file);
}

static void open_flags_decide(void **state)
{
    struct fixture *f = *state;
    struct env_file *file = NULL;
    assert_int_equal(f->e->ops->open(f->e, path(f, "no"), ENV_READ, &file), ST_NOT_FOUND);
    assert_null(file);
    f->e->ops->close(f->e, NULL);
    file = must_open(f, "a", ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE);
    f->e->ops->close(f->e, file);
    assert_int_equal(
        f->e->ops->open(f->e, path(f, "a"), ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &file),
        ST_EXISTS);
    assert_int_equal(f->e->ops->open(f->e, path(f, "no/b"), ENV_CREATE | ENV_WRITE, &file),
                     ST_NOT_FOUND);
}

static void collect(void *arg, const char *name)
{
    strcat(arg, name);
    strcat(arg, ";");
}

static void names_can_be_moved_and_removed(void **state)
{
    struct fixture *f = *state;
    char names[64] = "";
    f->e->ops->close(f->e, must_open(f, "a", ENV_WRITE | ENV_CREATE));
    assert_int_equal(f->e->ops->mkdir(f->e, path(f, "d")), ST_OK);
    assert_int_equal(f->e->ops->mkdir(f->e, path(f, "d")), ST_EXISTS);
    assert_int_equal(f->e->ops->rename(f->e, path(f, "a"), path(f, "d/b")), ST_OK);
    assert_int_equal(f->e->ops->rename(f->e, path(f, "a"), path(f, "c")), ST_NOT_FOUND);
    assert_int_equal(f->e->ops->list(f->e, path(f, "d"), collect, names), ST_OK);
    assert_string_equal(names, "b;");
    assert_int_equal(f->e->ops->unlink(f->e, path(f, "d/b")), ST_OK);
    assert_int_equal(f->e->ops->unlink(f->e, path(f, "d/b")), ST_NOT_FOUND);
    assert_int_equal(f->e->ops->sync_dir(f->e, f->dir), ST_OK);
    names[0] = '\0';
    assert_int_equal(f->e->ops->list(f->e, f->dir, collect, names), ST_OK);
    assert_string_equal(names, "d;");
    assert_int_equal(f->e->ops->list(f->e, path(f, "no"), collect, names), ST_NOT_FOUND);
}

static void small_files_are_replaced_whole(void **state)
{
    struct fixture *f = *state;
    bytes content;
    assert_int_equal(env_write_file(f->e, f->dir, "id", BYTES_LIT("long first text")), ST_OK);
    assert_int_equal(env_write_file(f->e, f->dir, "id", BYTES_LIT("second")), ST_OK);
    assert_int_equal(env_read_file(f->e, &f->a, path(f, "id"), &content), ST_OK);
    assert_bytes(content, "second");
    assert_int_equal(env_write_file(f->e, f->dir, "empty", BYTES_EMPTY), ST_OK);
    assert_int_equal(env_read_file(f->e, &f->a, path(f, "empty"), &content), ST_OK);
    assert_int_equal(content.size, 0);
    assert_int_equal(env_read_file(f->e, &f->a, path(f, "no"), &content), ST_NOT_FOUND);
}

static void a_lock_excludes_the_next(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(f->e->ops->lock(f->e, path(f, "LOCK")), ST_OK);
    assert_int_equal(f->e->ops->lock(f->e, path(f, "LOCK")), ST_LOCKED);
    assert_int_equal(f->e->ops->lock(f->e, path(f, "OTHER")), ST_OK);
}

static void clocks_and_randomness_work(void **state)
{
    struct fixture *f = *state;
    uint64_t before = env_mono_us(f->e);
    assert_true(env_mono_us(f->e) >= before);
    assert_true(env_unix_us(f->e) > 1700000000000000);
    assert_true(env_random64(f->e) != env_random64(f->e));
}

int main(void)
{
#define OS(name)                                                                                   \
    {                                                                                              \
#name " (os)", name, setup_os, teardown, NULL                                              \
    }
#define SIM(name)                                                                                  \
    {                                                                                              \
#name " (sim)", name, setup_sim, teardown, NULL                                            \
    }
#define BOTH(name) OS(name), SIM(name)
    const struct CMUnitTest tests[] = {
        BOTH(written_bytes_are_read_back),
        BOTH(a_gap_and_a_zero_fill_read_as_zeros),
        BOTH(open_flags_decide),
        BOTH(names_can_be_moved_and_removed),
        BOTH(small_files_are_replaced_whole),
        BOTH(a_lock_excludes_the_next),
        BOTH(clocks_and_randomness_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
