/* The files of a new data directory outlive a power cut right after they were made. */
#include "lib/test.h"

#include "base/env_sim.h"
#include "cluster/identity.h"

static struct cl_identity open_at(struct env *env, const char *dir)
{
    const struct cl_identity wanted = {0};
    struct cl_identity id;
    struct err err;
    err_clear(&err);
    status st = cl_identity_open(env, dir, 1, &wanted, &id, &err);
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

static void a_directory_of_another_node_is_refused(void **state)
{
    const struct cl_identity wanted = {.cluster_id = 7040, .node_id = 3};
    const struct cl_identity others[] = {{.cluster_id = 7041, .node_id = 3},
                                         {.cluster_id = 7040, .node_id = 2}};
    struct env *env = env_sim_new(1);
    struct cl_identity id = {0};
    struct err err = {0};
    (void)state;
    assert_int_equal(cl_identity_open(env, "data", 1, &wanted, &id, &err), ST_OK);
    assert_int_equal(id.cluster_id, 7040);
    assert_int_equal(id.node_id, 3);
    for (unsigned i = 0; i < 2; i++) {
        env_sim_kill(env);
        assert_int_equal(cl_identity_open(env, "data", 1, &others[i], &id, &err), ST_INVALID);
        assert_non_null(strstr(err.message, i == 0 ? "cluster 7041" : "node 2"));
    }
    env_sim_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_of_another_node_is_refused),
        cmocka_unit_test(directory_just_made_survives_a_power_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
