/*
 * Statements and what becomes of them, from tests/data/planner/: each case is a text, maybe lines
 * with declared types and parameters, a line of dashes, and the line that planned_show gives.
 * `test_plan
 * --rewrite` writes the files anew; what changed is then for the eye.
 */
#include "planner_fixture.h"

#include <dirent.h>

static bool rewrite;

struct file_case {
    char text[70000];
    uint32_t types[16];
    const char *params[16];
    char param_text[70000];
};

static void read_types(struct file_case *c, char *line)
{
    unsigned n = 0;
    for (char *p = strtok_r(line, " \n", &line); p != NULL && n < 15;
         p = strtok_r(NULL, " \n", &line))
        c->types[n++] = strcmp(p, "-") == 0 ? OID_UNKNOWN : pl_type_by_name(p);
    c->types[n] = 0;
}

static void read_params(struct file_case *c, const char *line)
{
    unsigned n = 0;
    snprintf(c->param_text, sizeof(c->param_text), "%s", line);
    char *p = c->param_text;
    p[strcspn(p, "\n")] = '\0';
    while (n < 15) {
        c->params[n++] = p;
        char *bar = strchr(p, '|');
        if (bar == NULL)
            break;
        *bar = '\0';
        p = bar + 1;
    }
    c->params[n] = NULL;
}

static const char *run(struct planned *f, struct file_case *c)
{
    size_t n = strlen(c->text);
    while (n > 0 && c->text[n - 1] == '\n')
        c->text[--n] = '\0';
    return planned_show(f, c->text, c->types[0] == 0 ? NULL : c->types,
                        c->params[0] == NULL ? NULL : c->params);
}

/* A case is planned twice: the second time it comes out of the cache and must be the same. */
static void check_file(const char *path)
{
    struct planned f;
    FILE *in = fopen(path, "r");
    char *out = NULL, line[70000];
    size_t out_size = 0, cases = 0, failed = 0;
    FILE *anew = open_memstream(&out, &out_size);
    struct file_case *c = calloc(1, sizeof(*c));
    assert_non_null(in);
    planned_init(&f);
    while (fgets(line, sizeof(line), in) != NULL) {
        if (c->text[0] == '\0' && (line[0] == '#' || line[0] == '\n')) {
            fputs(line, anew);
        } else if (strncmp(line, "types: ", 7) == 0) {
            fputs(line, anew);
            read_types(c, line + 7);
        } else if (strncmp(line, "params: ", 8) == 0) {
            fputs(line, anew);
            read_params(c, line + 8);
        } else if (strcmp(line, "----\n") == 0) {
            fputs(line, anew);
            char *first = strdup(run(&f, c));
            const char *second = run(&f, c);
            char want[70000] = "";
            if (fgets(want, sizeof(want), in) != NULL)
                want[strcspn(want, "\n")] = '\0';
            fprintf(anew, "%s\n", first);
            cases++;
            if (!rewrite && strcmp(want, first) != 0) {
                failed++;
                print_error("%s\n  want %s\n  got  %s\n", c->text, want, first);
            }
            if (strcmp(first, second) != 0) {
                failed++;
                print_error("%s\n  first  %s\n  cached %s\n", c->text, first, second);
            }
            free(first);
            memset(c, 0, sizeof(*c));
        } else {
            fputs(line, anew);
            strncat(c->text, line, sizeof(c->text) - strlen(c->text) - 1);
        }
    }
    fclose(in);
    fclose(anew);
    if (rewrite) {
        FILE *to = fopen(path, "w");
        fwrite(out, 1, out_size, to);
        fclose(to);
    }
    free(out);
    free(c);
    planned_fini(&f);
    assert_true(cases > 0);
    assert_int_equal(failed, 0);
}

static void statements_become_what_the_files_say(void **state)
{
    (void)state;
    DIR *d = opendir(DATA_DIR);
    unsigned files = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[512];
        if (strstr(e->d_name, ".txt") == NULL)
            continue;
        snprintf(path, sizeof(path), "%s/%s", DATA_DIR, e->d_name);
        check_file(path);
        files++;
    }
    closedir(d);
    assert_true(files > 0);
}

/* The example of every pattern in the catalogue is planned as that pattern. */
static void every_pattern_plans_its_example(void **state)
{
    (void)state;
    struct planned f;
    planned_init(&f);
    for (int id = PATTERN_NONE + 1; id < PATTERN_COUNT; id++) {
        const char *text = pl__pattern_example((enum pl_pattern_id)id);
        if (planned_run(&f, text, NULL, NULL) != ST_OK)
            fail_msg("%s: %s", text, f.err.message);
        const struct pl_pattern *p = f.r.out.plan->pattern;
        assert_non_null(p);
        assert_string_equal(p->name, pl__pattern((enum pl_pattern_id)id)->name);
        assert_true(f.r.out.plan->fingerprint != 0);
    }
    planned_fini(&f);
}

int main(int argc, char **argv)
{
    rewrite = argc > 1 && strcmp(argv[1], "--rewrite") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_become_what_the_files_say),
        cmocka_unit_test(every_pattern_plans_its_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
