/* The files of a new data directory outlive a power cut right after they were made. */
#include "lib/test.h"

#include "base/env_sim.h"
#include "cluster/identity.h"

static struct cl_identity open_at(struct env *env, const char *dir)
{
    struct cl_identity id;
    struct err err;
    err_clear(&err);
    status st = cl_identity_open(env, dir, 1, &id, &err);
    if (st != ST_OK)
        print_message("%s\n", err.message);
    assert_int_equal(st, ST_OK);
    return id;
}

static void directory_just_made_survives_a_power_cut(void **state)
{
    static const char *const dirs[] = {"data", "a/b/data", "/a/b/data/", "a//b"};
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct env *env = env_sim_new(seed);
        const char *dir = dirs[seed % 4];
        struct cl_identity made = open_at(env, dir);
        env_sim_power_cut(env);
        struct cl_identity found = open_at(env, dir);
        assert_true(made.store_id == found.store_id);
        env_sim_free(env);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directory_just_made_survives_a_power_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
