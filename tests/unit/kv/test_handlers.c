/* Every handler and every error of SQL.md 4 that handlers give, as statements and answers. */
#include "ops.h"

#include "kv/handler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* -- create and mkdir -------------------------------------------------------------------------- */

static void file_gets_defaults(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=a"));
    EXPECT("0 a f 420 0 0 0 1 NULL NULL NULL NULL NULL NULL",
           get(s, "meta 0 a",
               "pid name type mode uid gid size nlink num_children parent rdev fid class attr"));
    char now[64];
    snprintf(now, sizeof now, "%lld", (long long)s->now);
    EXPECT(now, get(s, "meta 0 a", "ctime"));
    EXPECT("00000", run(s, "insert meta pid=0 name=b"));
    EXPECT("b f 1", returned(s, "name type nlink"));
    assert_int_equal(s->last.result.affected, 1);
}

static void returning_shows_the_seq_of_the_command(void **state)
{
    struct shard *s = *state;
    char seq[64];
    EXPECT("00000", run(s, "insert meta pid=0 name=a"));
    snprintf(seq, sizeof seq, "%llu", (unsigned long long)s->ts);
    EXPECT(seq, returned(s, "seq"));
    EXPECT(seq, get(s, "meta 0 a", "seq"));
}

static void mkdir_splits_entry_and_own_row(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17 uid=5"));
    EXPECT("17 d NULL NULL NULL NULL", returned(s, "id type mode uid num_children parent"));
    EXPECT("17 d NULL NULL NULL", get(s, "meta 0 d", "id type mode uid parent"));
    EXPECT("17 d 493 5 0 0 2",
           get(s, "meta 17 _attr_", "id type mode uid num_children parent nlink"));
    EXPECT("1", get(s, "meta 0 _attr_", "num_children"));
}

static void drawn_ids_of_directories_and_files_do_not_meet(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d | 0 e d | 0 f f | 0 g f"));
    int64_t d = s->last.result.rows[0].col[META_ID].i, e = s->last.result.rows[1].col[META_ID].i;
    int64_t f = s->last.result.rows[2].col[META_ID].i, g = s->last.result.rows[3].col[META_ID].i;
    assert_true(d >= (INT64_C(1) << 32) && d < (INT64_C(1) << 62));
    assert_true(e >= (INT64_C(1) << 32) && e < (INT64_C(1) << 62) && e != d);
    assert_int_equal(f, INT64_C(1) << 62);
    assert_int_equal(g, f + 1);
    EXPECT("00000", run(s, "insert meta pid=0 name=h"));
    assert_int_equal(s->last.result.rows[0].col[META_ID].i, g + 1);
}

/* Directories that one INSERT has found, among them one of its own; a missing one undoes it all. */
static void rows_of_one_insert_find_their_directories(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17 | 0 e d 18"));
    EXPECT("00000", run(s, "insert meta pid=17 name=a | 18 a | 17 b | 18 b | 17 c"));
    EXPECT("3", get(s, "meta 17 _attr_", "num_children"));
    EXPECT("2", get(s, "meta 18 _attr_", "num_children"));
    EXPECT("00000", run(s, "insert meta pid=0 name=g type=d id=19 | 19 a f 500 | 19 b f 501"));
    EXPECT("2", get(s, "meta 19 _attr_", "num_children"));
    EXPECT("23503", run(s, "insert meta pid=17 name=x | 99 x | 17 y"));
    EXPECT("3", get(s, "meta 17 _attr_", "num_children"));
    EXPECT("none", get(s, "meta 17 x", "name"));
    EXPECT("23505", run(s, "insert meta pid=18 name=z | 18 a"));
    EXPECT("2", get(s, "meta 18 _attr_", "num_children"));
}

static void create_refuses_bad_names(void **state)
{
    struct shard *s = *state;
    EXPECT("42939", run(s, "insert meta pid=0 name=_attr_"));
    EXPECT("22023", run(s, "insert meta pid=0 name="));
    EXPECT("22023", run(s, "insert meta pid=0 name=a/b"));
    EXPECT("22001", run(s, "insert meta pid=0 name=*256"));
    EXPECT("22021", run(s, "insert meta pid=0 name=a%00b"));
    EXPECT("00000", run(s, "insert meta pid=0 name=*255"));
    EXPECT("23502", run(s, "insert meta pid=NULL name=a"));
    assert_string_equal(s->last.err.column, "pid");
    EXPECT("23502", run(s, "insert meta pid=0"));
    assert_string_equal(s->last.err.column, "name");
    assert_string_equal(
        s->last.err.message,
        "null value in column \"name\" of relation \"meta\" violates not-null constraint");
}

static void create_refuses_bad_values(void **state)
{
    struct shard *s = *state;
    static const char *const with_default[] = {"id",    "type",  "mode",  "uid",   "gid",  "size",
                                               "nlink", "atime", "mtime", "ctime", "btime"};
    for (unsigned i = 0; i < ARRAY_LEN(with_default); i++) {
        char text[64];
        snprintf(text, sizeof text, "insert meta pid=0 name=a %s=NULL", with_default[i]);
        EXPECT("23502", run(s, text));
        assert_string_equal(s->last.err.column, with_default[i]);
    }
    EXPECT("22023", run(s, "insert meta pid=0 name=a type=x"));
    EXPECT("22003", run(s, "insert meta pid=0 name=a mode=4096"));
    EXPECT("22003", run(s, "insert meta pid=0 name=a mode=-1"));
    EXPECT("22003", run(s, "insert meta pid=0 name=a size=-1"));
    EXPECT("22003", run(s, "insert meta pid=0 name=a nlink=0"));
    EXPECT("22003", run(s, "insert meta pid=0 name=a nlink=2147483648"));
    EXPECT("22003", run(s, "insert meta pid=0 name=a class=40000"));
    EXPECT("22001", run(s, "insert meta pid=0 name=a attr=*65537"));
    EXPECT("428C9", run(s, "insert meta pid=0 name=a seq=5"));
    EXPECT("428C9", run(s, "insert meta pid=0 name=a parent=NULL"));
    EXPECT("428C9", run(s, "insert meta pid=0 name=a num_children=1"));
    EXPECT("22003", run(s, "insert meta pid=0 name=a type=d id=0"));
    EXPECT("none", get(s, "meta 0 a", "id"));
    EXPECT(
        "00000",
        run(s,
            "insert meta pid=0 name=a mode=4095 attr=*65536 seq=DEFAULT class=NULL mtime=DEFAULT"));
}

static void create_needs_its_directory(void **state)
{
    struct shard *s = *state;
    EXPECT("23503", run(s, "insert meta pid=17 name=a"));
    assert_string_equal(s->last.err.message,
                        "insert or update on table \"meta\" violates foreign key "
                        "constraint \"meta_pid_fkey\"");
    assert_string_equal(s->last.err.detail, "Key (pid)=(17) is not present in table \"meta\".");
    assert_string_equal(s->last.err.constraint, "meta_pid_fkey");
    /* A file with links has a row (id, _attr_), but is no directory. */
    EXPECT("00000", run(s, "insert meta pid=0 name=f id=99"));
    EXPECT("00000", run(s, "link 0 f 0 g"));
    EXPECT("23503", run(s, "insert meta pid=99 name=a"));
}

static void existing_name_is_refused_as_postgresql_does(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=a.txt"));
    EXPECT("23505", run(s, "insert meta pid=0 name=a.txt type=d"));
    assert_string_equal(s->last.err.message,
                        "duplicate key value violates unique constraint \"meta_pkey\"");
    assert_string_equal(s->last.err.detail, "Key (pid, name)=(0, a.txt) already exists.");
    assert_string_equal(s->last.err.schema, "public");
    assert_string_equal(s->last.err.table, "meta");
    assert_string_equal(s->last.err.constraint, "meta_pkey");
    EXPECT("1", get(s, "meta 0 _attr_", "num_children"));
}

static void id_of_a_directory_must_be_free(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17"));
    EXPECT("23505", run(s, "insert meta pid=0 name=e type=d id=17"));
    assert_string_equal(s->last.err.constraint, "meta_id_key");
    assert_string_equal(s->last.err.detail, "Key (id)=(17) already exists.");
}

static void on_conflict_do_nothing_counts_only_new_rows(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=b"));
    EXPECT("00000", run(s, "insert meta pid=0 name=a | 0 b | 0 c | 0 a : nothing"));
    assert_int_equal(s->last.result.affected, 2);
    EXPECT("a | c", returned(s, "name"));
    EXPECT("3", get(s, "meta 0 _attr_", "num_children"));
}

static void failed_row_undoes_the_statement(void **state)
{
    struct shard *s = *state;
    EXPECT("23505", run(s, "insert meta pid=0 name=a | 0 b | 0 a"));
    EXPECT("none", get(s, "meta 0 a", "id"));
    EXPECT("0", get(s, "meta 0 _attr_", "num_children"));
    EXPECT("00000", run(s, "insert meta pid=0 name=x"));
    assert_int_equal(s->last.result.rows[0].col[META_ID].i, INT64_C(1)
                                                                << 62); /* ids were not used up */
}

static void rows_see_the_rows_before_them(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17 | 17 e d 18 | 18 f f 19"));
    EXPECT("1", get(s, "meta 17 _attr_", "num_children"));
    EXPECT("1", get(s, "meta 18 _attr_", "num_children"));
}

static void operations_of_a_command_are_one_unit(void **state)
{
    struct shard *s = *state;
    const char *bad[] = {"insert meta pid=0 name=a", "insert meta pid=0 name=a"};
    const char *good[] = {"insert meta pid=0 name=d type=d id=17",
                          "insert meta pid=17 name=a | 17 b", "delete meta 17 b"};
    EXPECT("23505", run_all(s, bad, 2));
    assert_int_equal(s->last.failed_op, 1);
    EXPECT("none", get(s, "meta 0 a", "id"));
    EXPECT("00000", run_all(s, good, 3));
    assert_int_equal(s->last.result.affected, 4);
    EXPECT("b", returned(s, "name"));
    EXPECT("1", get(s, "meta 17 _attr_", "num_children"));
}

/* -- update ------------------------------------------------------------------------------------ */

static void update_sets_and_computes(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=a size=5 uid=7"));
    s->now += 10;
    EXPECT("00000", run(s, "update meta 0 a : size+=3 uid>=5 gid>=9 mtime<=3 class+=1 rdev>=4"));
    EXPECT("8 7 9 3 NULL 4", get(s, "meta 0 a", "size uid gid mtime class rdev"));
    char now[64];
    snprintf(now, sizeof now, "%lld", (long long)s->now);
    EXPECT(now, get(s, "meta 0 a", "ctime"));
    EXPECT("00000", run(s, "update meta 0 a : ctime=12 size=DEFAULT"));
    EXPECT("12 0", get(s, "meta 0 a", "ctime size"));
    EXPECT("00000", run(s, "update meta 0 nobody : size=1"));
    assert_int_equal(s->last.result.affected, 0);
    EXPECT("00000", run(s, "update meta 0 NULL : size=1"));
    assert_int_equal(s->last.result.affected, 0);
}

static void update_refuses_what_it_must(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=a size=5 | 0 f 6"));
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17"));
    EXPECT("22003", run(s, "update meta 0 a : mode=4096"));
    EXPECT("22003", run(s, "update meta 0 a : size+=9223372036854775807"));
    EXPECT("22003", run(s, "update meta 0 a : nlink+=2147483647"));
    EXPECT("22003", run(s, "update meta 0 a : size+=-6"));
    EXPECT("23502", run(s, "update meta 0 a : uid=NULL"));
    EXPECT("22001", run(s, "update meta 0 a : attr=*65537"));
    EXPECT("428C9", run(s, "update meta 0 a : seq=1"));
    EXPECT("428C9", run(s, "update meta 0 a : num_children=1"));
    EXPECT("0A000", run(s, "update meta 0 a : type=d"));
    EXPECT("0A000", run(s, "update meta 0 a : pid=17"));
    EXPECT("0A000", run(s, "update meta 0 d : id=18"));
    EXPECT("0A000", run(s, "update meta 17 _attr_ : id=18"));
    EXPECT("00000", run(s, "link 0 f 0 g"));
    EXPECT("0A000", run(s, "update meta 0 f : nlink=5"));
    EXPECT("0A000", run(s, "update meta 0 f : fid=5"));
    EXPECT("5 420", get(s, "meta 0 a", "size mode"));
    EXPECT("00000", run(s, "update meta 0 a : id=5"));
    EXPECT("5", get(s, "meta 0 a", "id"));
}

static void update_of_a_directory_reaches_its_own_row(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17"));
    EXPECT("00000", run(s, "insert meta pid=17 name=a"));
    EXPECT("00000", run(s, "update meta 0 d : mode=448 uid=3"));
    EXPECT("0 d 17 448 3 1", returned(s, "pid name id mode uid num_children"));
    EXPECT("NULL NULL", get(s, "meta 0 d", "mode uid"));
    EXPECT("448 3 1 0", get(s, "meta 17 _attr_", "mode uid num_children parent"));
    EXPECT("00000", run(s, "update meta 17 _attr_ : gid=4"));
    EXPECT("448 3 4 1", get(s, "meta 17 _attr_", "mode uid gid num_children"));
}

static void compare_and_set_by_seq(void **state)
{
    struct shard *s = *state;
    char text[128];
    EXPECT("00000", run(s, "insert meta pid=0 name=a | 0 b"));
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17"));
    snprintf(text, sizeof text, "update meta 0 a : size=1 : seq=%s", get(s, "meta 0 a", "seq"));
    EXPECT("00000", run(s, text));
    assert_int_equal(s->last.result.affected, 1);
    EXPECT("00000", run(s, text));
    assert_int_equal(s->last.result.affected, 0);
    /* A directory: the entry's seq follows changes through the entry. */
    for (unsigned i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "update meta 0 d : uid=1 : seq=%s", get(s, "meta 0 d", "seq"));
        EXPECT("00000", run(s, text));
        assert_int_equal(s->last.result.affected, 1);
    }
    EXPECT("00000", run(s, text));
    assert_int_equal(s->last.result.affected, 0);
    snprintf(text, sizeof text, "delete meta 0 b : seq=%s", get(s, "meta 0 a", "seq"));
    EXPECT("00000", run(s, text));
    assert_int_equal(s->last.result.affected, 0);
}

static void times_of_a_directory_follow_and_can_be_set(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17 mtime=100 ctime=100"));
    EXPECT("100 100 0", get(s, "meta 17 _attr_", "mtime ctime num_children"));
    s->now = 500;
    EXPECT("00000", run(s, "insert meta pid=17 name=a"));
    EXPECT("500 500 1", get(s, "meta 17 _attr_", "mtime ctime num_children"));
    EXPECT("00000", run(s, "update meta 17 _attr_ : mtime=200"));
    EXPECT("200 500 1", get(s, "meta 17 _attr_", "mtime ctime num_children"));
    s->now = 600;
    EXPECT("00000", run(s, "delete meta 17 a"));
    EXPECT("600 600 0", get(s, "meta 17 _attr_", "mtime ctime num_children"));
    char seq[64];
    snprintf(seq, sizeof seq, "%s", get(s, "meta 17 _attr_", "seq"));
    EXPECT("00000", run(s, "insert meta pid=17 name=b"));
    EXPECT(seq, get(s, "meta 17 _attr_", "seq")); /* counting is no new version */
}

/* -- delete ------------------------------------------------------------------------------------ */

static void delete_by_keys(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=a | 0 b | 0 c"));
    EXPECT("00000", run(s, "delete meta 0 a 0 x 0 c 0 c"));
    assert_int_equal(s->last.result.affected, 2);
    EXPECT("a | c", returned(s, "name"));
    EXPECT("1", get(s, "meta 0 _attr_", "num_children"));
    EXPECT("00000", run(s, "delete meta 0 b : type=d"));
    assert_int_equal(s->last.result.affected, 0);
    EXPECT("42939", run(s, "delete meta 0 _attr_"));
}

static void directory_must_be_empty(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17 | 17 e d 18"));
    EXPECT("2BP01", run(s, "delete meta 0 d"));
    EXPECT("00000", run(s, "delete meta 17 e"));
    EXPECT("00000", run(s, "delete meta 0 d"));
    EXPECT("none", get(s, "meta 17 _attr_", "id"));
    EXPECT("0", get(s, "meta 0 _attr_", "num_children"));
    EXPECT("23503", run(s, "insert meta pid=17 name=a"));
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17"));
    EXPECT("0", get(s, "meta 17 _attr_", "num_children"));
}

static void range_spares_the_own_row_and_refuses_directories(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17"));
    EXPECT("00000", run(s, "insert meta pid=17 name=A | 17 b | 17 c | 17 z"));
    EXPECT("00000", run(s, "link 17 c 17 cc"));
    EXPECT("00000", run(s, "range meta 17 A d"));
    assert_int_equal(s->last.result.affected, 4);
    EXPECT("1", get(s, "meta 17 _attr_", "num_children"));
    EXPECT("0 _attr_ | 0 d | 17 _attr_ | 17 z", all(s, "meta", "pid name"));
    EXPECT("00000", run(s, "insert meta pid=17 name=y type=d"));
    EXPECT("2BP01", run(s, "range meta 17 a zz"));
    EXPECT("2", get(s, "meta 17 _attr_", "num_children"));
    EXPECT("00000", run(s, "range meta 17 z a"));
    assert_int_equal(s->last.result.affected, 0);
}

/* -- move -------------------------------------------------------------------------------------- */

static void rename_moves_an_entry(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17"));
    EXPECT("00000", run(s, "insert meta pid=0 name=a id=5 size=9"));
    EXPECT("00000", run(s, "rename 0 a 17 b"));
    EXPECT("17 b 5 9", returned(s, "pid name id size"));
    EXPECT("none", get(s, "meta 0 a", "id"));
    EXPECT("1", get(s, "meta 0 _attr_", "num_children"));
    EXPECT("1", get(s, "meta 17 _attr_", "num_children"));
    EXPECT("00000", run(s, "rename 17 b 17 c"));
    EXPECT("1", get(s, "meta 17 _attr_", "num_children"));
    EXPECT("00000", run(s, "rename 17 nobody 17 d"));
    assert_int_equal(s->last.result.affected, 0);
    EXPECT("00000", run(s, "rename 17 c 17 c"));
    assert_int_equal(s->last.result.affected, 1);
    EXPECT("00000", run(s, "rename 17 c 0 e : seq=1"));
    assert_int_equal(s->last.result.affected, 0);
}

static void rename_refuses_what_it_must(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17 | 0 e d 18"));
    EXPECT("00000", run(s, "insert meta pid=0 name=a"));
    EXPECT("23505", run(s, "rename 0 a 0 d"));
    EXPECT("23505", run(s, "move 0 a 0 e"));
    EXPECT("23503", run(s, "rename 0 a 99 a"));
    EXPECT("42939", run(s, "rename 0 a 0 _attr_"));
    EXPECT("42939", run(s, "rename 0 _attr_ 17 x"));
    EXPECT("22023", run(s, "rename 0 a 0"));
    EXPECT("P0002", run(s, "move 0 nobody 0 x"));
    EXPECT("P0002", run(s, "exchange 0 a 0 nobody"));
}

static void move_of_a_directory_updates_its_parent(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17 | 0 e d 18 | 17 f d 19"));
    EXPECT("00000", run(s, "move 17 f 18 g"));
    assert_int_equal(s->last.result.scalar.i, 19);
    EXPECT("18", get(s, "meta 19 _attr_", "parent"));
    EXPECT("0", get(s, "meta 17 _attr_", "num_children"));
    EXPECT("1", get(s, "meta 18 _attr_", "num_children"));
}

static void move_never_makes_a_loop(void **state)
{
    struct shard *s = *state;
    EXPECT("00000",
           run(s, "insert meta pid=0 name=d type=d id=17 | 17 e d 18 | 18 f d 19 | 0 z d 20"));
    EXPECT("MD001", run(s, "rename 0 d 17 x"));
    EXPECT("MD001", run(s, "move 0 d 19 x"));
    EXPECT("MD001", run(s, "replace 0 d 18 f"));
    EXPECT("MD001", run(s, "exchange 0 d 18 f"));
    EXPECT("MD001", run(s, "exchange 18 f 0 d"));
    EXPECT("00000", run(s, "exchange 18 f 0 z"));
    EXPECT("18 | 0", (run(s, "update meta 20 _attr_ 19 _attr_ : uid=0"), returned(s, "parent")));
    EXPECT("00000", run(s, "move 0 z 0 g : type=x"));
}

static void replace_follows_posix(void **state)
{
    struct shard *s = *state;
    EXPECT(
        "00000",
        run(s, "insert meta pid=0 name=d type=d id=17 | 0 e d 18 | 0 a f 1 | 0 b f 2 | 18 x f 3"));
    EXPECT("42809", run(s, "replace 0 a 0 d"));
    EXPECT("42809", run(s, "replace 0 d 0 a"));
    EXPECT("2BP01", run(s, "replace 0 d 0 e"));
    EXPECT("00000", run(s, "replace 0 a 0 b"));
    EXPECT("1", get(s, "meta 0 b", "id"));
    EXPECT("3", get(s, "meta 0 _attr_", "num_children"));
    EXPECT("00000", run(s, "replace 0 e 0 d"));
    EXPECT("18", get(s, "meta 0 d", "id"));
    EXPECT("none", get(s, "meta 17 _attr_", "id"));
    EXPECT("2", get(s, "meta 0 _attr_", "num_children"));
    EXPECT("00000", run(s, "link 0 b 0 c"));
    EXPECT("00000", run(s, "replace 0 b 0 c"));
    EXPECT("1", get(s, "meta 0 b", "id"));
    EXPECT("1", get(s, "meta 0 c", "id"));
    EXPECT("2", get(s, "meta 1 _attr_", "nlink"));
}

static void exchange_swaps_two_entries(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17 | 17 a f 1 | 0 e d 18"));
    EXPECT("00000", run(s, "exchange 17 a 0 e"));
    EXPECT("18 d", get(s, "meta 17 a", "id type"));
    EXPECT("1 f 0", get(s, "meta 0 e", "id type size"));
    EXPECT("17", get(s, "meta 18 _attr_", "parent"));
    EXPECT("2", get(s, "meta 0 _attr_", "num_children"));
    EXPECT("1", get(s, "meta 17 _attr_", "num_children"));
}

/* -- link, make_path, detach ------------------------------------------------------------------- */

static void link_moves_attributes_to_the_own_row(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=a id=5 size=9 uid=3"));
    EXPECT("00000", run(s, "link 0 a 0 b"));
    assert_int_equal(s->last.result.scalar.i, 2);
    EXPECT("5 f NULL NULL", get(s, "meta 0 a", "id type size nlink"));
    EXPECT("5 f NULL NULL", get(s, "meta 0 b", "id type size nlink"));
    EXPECT("5 f 9 3 2 NULL NULL",
           get(s, "meta 5 _attr_", "id type size uid nlink num_children parent"));
    EXPECT("00000", run(s, "update meta 0 b : size=10"));
    EXPECT("0 b 5 10 2", returned(s, "pid name id size nlink"));
    EXPECT("00000", run(s, "delete meta 0 a"));
    EXPECT("10 1", get(s, "meta 5 _attr_", "size nlink"));
    EXPECT("00000", run(s, "delete meta 0 b"));
    EXPECT("none", get(s, "meta 5 _attr_", "size"));
    EXPECT("0", get(s, "meta 0 _attr_", "num_children"));
}

static void link_refuses_what_it_must(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17 | 0 a f 17 | 0 b f 2"));
    EXPECT("42809", run(s, "link 0 d 0 e"));
    EXPECT("23505", run(s, "link 0 b 0 a"));
    EXPECT("23503", run(s, "link 0 b 9 a"));
    EXPECT("P0002", run(s, "link 0 nobody 0 c"));
    EXPECT("42939", run(s, "link 0 b 0 _attr_"));
    EXPECT("23505", run(s, "link 0 a 0 c")); /* its id is a directory's */
    assert_string_equal(s->last.err.constraint, "meta_id_key");
    EXPECT("2 0", get(s, "meta 0 b", "id size"));
}

static void make_path_makes_what_is_missing(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "mkpath 0 /a//b/./c"));
    int64_t c = s->last.result.scalar.i;
    EXPECT("00000", run(s, "mkpath 0 a/b/../b/c/"));
    assert_int_equal(s->last.result.scalar.i, c);
    EXPECT("00000", run(s, "mkpath 0 /"));
    assert_int_equal(s->last.result.scalar.i, 0);
    EXPECT("00000", run(s, "mkpath 0 ../.."));
    assert_int_equal(s->last.result.scalar.i, 0);
    EXPECT("00000", run(s, "insert meta pid=0 name=f"));
    EXPECT("42809", run(s, "mkpath 0 f/x"));
    EXPECT("42809", run(s, "mkpath 0 f"));
    EXPECT("42939", run(s, "mkpath 0 new/_attr_"));
    EXPECT("none", get(s, "meta 0 new", "id"));
    EXPECT("23503", run(s, "mkpath 99 a"));
    EXPECT("22001", run(s, "mkpath 0 *5000"));
    EXPECT("2", get(s, "meta 0 _attr_", "num_children"));
}

/* A statement in parts gives each part a seed; that they are related must not show in the draws. */
static void related_seeds_draw_different_numbers(void **state)
{
    UNUSED(state);
    for (uint64_t i = 0; i < 100; i++)
        for (uint64_t k = 0; k < 100; k++)
            assert_true(kv__random(5, i) != kv__random(5 + UINT64_C(0x9e3779b97f4a7c15), k));
}

static void detached_tree_is_out_of_reach(void **state)
{
    struct shard *s = *state;
    EXPECT("00000",
           run(s, "insert meta pid=0 name=d type=d id=17 | 17 e d 18 | 0 z d 20 | 0 f f 1"));
    EXPECT("00000", run(s, "detach 0 d"));
    assert_int_equal(s->last.result.scalar.i, 17);
    EXPECT("none", get(s, "meta 0 d", "id"));
    EXPECT("2", get(s, "meta 0 _attr_", "num_children"));
    EXPECT("23503", run(s, "insert meta pid=17 name=a"));
    EXPECT("23503", run(s, "move 0 z 18 z"));
    EXPECT("23503", run(s, "move 0 f 17 f"));
    EXPECT("00000", run(s, "detach 0 f"));
    EXPECT("none", get(s, "meta 0 f", "id"));
    EXPECT("P0002", run(s, "detach 0 f"));
}

/* -- kv and object ----------------------------------------------------------------------------- */

static void kv_upsert(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert kv key=a value=1"));
    EXPECT("23505", run(s, "insert kv key=a value=2"));
    assert_string_equal(s->last.err.constraint, "kv_pkey");
    assert_string_equal(s->last.err.detail, "Key (key)=(a) already exists.");
    EXPECT("00000", run(s, "insert kv key=a value=2 : nothing"));
    assert_int_equal(s->last.result.affected, 0);
    EXPECT("00000", run(s, "insert kv key=a value=3 | b 4 : update value=@value"));
    assert_int_equal(s->last.result.affected, 2);
    EXPECT("a 3 | b 4", all(s, "kv", "key value"));
    EXPECT("21000", run(s, "insert kv key=c value=1 | c 2 : update value=@value"));
    EXPECT("23502", run(s, "insert kv key=NULL value=1"));
    EXPECT("22001", run(s, "insert kv key=*1025"));
    EXPECT("22023", run(s, "insert kv key="));
    EXPECT("22021", run(s, "insert kv key=a%00"));
    EXPECT("22001", run(s, "insert kv key=v value=*1048577"));
    EXPECT("00000", run(s, "insert kv key=*1024 value=*1048576"));
    EXPECT("428C9", run(s, "insert kv key=z seq=1"));
    EXPECT("0A000", run(s, "update kv a : key=b"));
}

static void kv_expires(void **state)
{
    struct shard *s = *state;
    char text[128];
    snprintf(text, sizeof text, "insert kv key=a value=1 expires_at=%lld", (long long)s->now + 10);
    EXPECT("00000", run(s, text));
    EXPECT("23505", run(s, "insert kv key=a value=2"));
    s->now += 10;
    EXPECT("00000", run(s, "update kv a : value=3"));
    assert_int_equal(s->last.result.affected, 0);
    EXPECT("00000", run(s, "insert kv key=a value=2"));
    EXPECT("a 2 NULL", all(s, "kv", "key value expires_at"));
    snprintf(text, sizeof text, "update kv a : expires_at=%lld", (long long)s->now);
    EXPECT("00000", run(s, text));
    EXPECT("00000", run(s, "delete kv a"));
    assert_int_equal(s->last.result.affected, 0);
    EXPECT("", all(s, "kv", "key"));
}

static void kv_update_and_remove(void **state)
{
    struct shard *s = *state;
    char text[128];
    EXPECT("00000", run(s, "insert kv key=a value=1 | b 2 | c 3 | d 4"));
    snprintf(text, sizeof text, "update kv a : value=9 : seq=%s", get(s, "kv a", "seq"));
    EXPECT("00000", run(s, text));
    EXPECT("a 9", returned(s, "key value"));
    EXPECT("00000", run(s, text));
    assert_int_equal(s->last.result.affected, 0);
    EXPECT("00000", run(s, "range kv b d"));
    assert_int_equal(s->last.result.affected, 2);
    EXPECT("00000", run(s, "delete kv d NULL x : value=4"));
    EXPECT("a", all(s, "kv", "key"));
}

static void object_put_and_remove(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert object bucket=b key=k/1 size=5 etag=e"));
    EXPECT("23505", run(s, "insert object bucket=b key=k/1"));
    assert_string_equal(s->last.err.detail, "Key (bucket, key)=(b, k/1) already exists.");
    EXPECT("00000",
           run(s, "insert object bucket=b key=k/1 size=6 etag=f : update size=@size etag=@etag"));
    EXPECT("b k/1 6 f NULL", all(s, "object", "bucket key size etag attr"));
    EXPECT("22003", run(s, "insert object bucket=b key=x size=-1"));
    EXPECT("22023", run(s, "insert object bucket= key=x"));
    EXPECT("00000", run(s, "delete object b k/1"));
    assert_int_equal(s->last.result.affected, 1);
    EXPECT("00000", run(s, "insert lifecycle bucket=b prefix= expire_after=5"));
    EXPECT("b  5", all(s, "lifecycle", "bucket prefix expire_after"));
}

static void tables_of_the_server_are_read_only(void **state)
{
    struct shard *s = *state;
    EXPECT("42501", run(s, "insert quota uid=1 name=a value=1"));
    EXPECT("42501", run(s, "delete secondary_index 1 0 a"));
    EXPECT("0A000", run(s, "insert meta pid=0 name=a : update size=1"));
}

/* RECLAIM until nothing of the trash is left; the number of commands. */
static unsigned reclaim_all(struct shard *s)
{
    unsigned commands = 0;
    int64_t id;
    for (;;) {
        struct kv_view v = {.state = s->state, .at = HLC_MAX, .tier = KV_TIER_ANY};
        char text[64];
        struct arena a;
        arena_init(&a, 512);
        v.arena = &a;
        status st = kv_trash_find(&v, s->ns, &id);
        arena_fini(&a);
        if (st == ST_NOT_FOUND)
            return commands;
        assert_int_equal(st, ST_OK);
        snprintf(text, sizeof text, "reclaim %lld", (long long)id);
        EXPECT("00000", run(s, text));
        assert_true(++commands < 1000);
    }
}

static void reclaim_takes_a_detached_tree_in_slices(void **state)
{
    struct shard *s = *state;
    char text[128];
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17 | 17 e d 18 | 18 g d 19"));
    EXPECT("00000", run(s, "insert meta pid=0 name=keep type=f id=21 uid=1 size=3"));
    for (unsigned i = 0; i < 600; i++) {
        snprintf(text, sizeof text, "insert meta pid=18 name=f%u type=f id=%u uid=1 size=2 fid=%u",
                 i, 1000 + i, 1000 + i);
        EXPECT("00000", run(s, text));
    }
    EXPECT("00000", run(s, "insert meta pid=19 name=x type=f id=900 uid=1 size=5"));
    EXPECT("00000", run(s, "link 19 x 0 y"));
    EXPECT("00000", run(s, "detach 0 d"));
    unsigned commands = reclaim_all(s);
    assert_true(commands >= 5); /* 603 entries at 256 a command, and three directories */
    EXPECT("1", get(s, "meta 900 _attr_", "nlink"));
    EXPECT("2", get(s, "meta 0 _attr_", "num_children"));
    EXPECT("0 _attr_ | 0 keep | 0 y | 900 _attr_", all(s, "meta", "pid name"));
    while (kv_state_queue_length(s->state) > 0)
        deliver(s, 200, true);
    EXPECT("0 #DIR 0 | 1 #FILE 2 | 1 #SIZE 8", all(s, "quota", "uid name value"));
    EXPECT("", all(s, "secondary_index", "fid"));
    EXPECT("00000", run(s, "reclaim 17")); /* a command that comes twice does nothing */
    assert_int_equal(s->last.result.affected, 0);
}

/* -- items ------------------------------------------------------------------------------------- */

static void quota_survives_sizes_beyond_bigint(void **state)
{
    struct shard *s = *state;

    EXPECT("00000", run(s, "insert meta pid=0 name=a type=f id=21 uid=9 size=6"));
    EXPECT("00000", run(s, "insert meta pid=0 name=b type=f id=22 uid=9 size=9223372036854775807"));
    deliver(s, 100, true);
    EXPECT("00000", run(s, "delete meta 0 b"));
    deliver(s, 100, true);
    EXPECT("9 #FILE 1 | 9 #SIZE 6", all(s, "quota", "uid name value"));
}

static void quota_follows_inodes(void **state)
{
    struct shard *s = *state;
    EXPECT(
        "00000",
        run(s,
            "insert meta pid=0 name=d type=d id=17 uid=1 size=0 | 17 a f 1 1 10 | 17 b f 2 2 20"));
    deliver(s, 100, true);
    EXPECT("1 #DIR 1 | 1 #FILE 1 | 1 #SIZE 10 | 2 #FILE 1 | 2 #SIZE 20",
           all(s, "quota", "uid name value"));
    EXPECT("00000", run(s, "update meta 17 a : uid=2 size=15"));
    EXPECT("00000", run(s, "link 17 b 17 c"));
    EXPECT("00000", run(s, "update meta 17 c : size+=1"));
    EXPECT("00000", run(s, "update meta 0 d : uid=3"));
    deliver(s, 100, true);
    EXPECT("1 #DIR 0 | 1 #FILE 0 | 1 #SIZE 0 | 2 #FILE 2 | 2 #SIZE 36 | 3 #DIR 1",
           all(s, "quota", "uid name value"));
    EXPECT("00000", run(s, "delete meta 17 b 17 c 17 a 0 d"));
    deliver(s, 100, true);
    EXPECT("1 #DIR 0 | 1 #FILE 0 | 1 #SIZE 0 | 2 #FILE 0 | 2 #SIZE 0 | 3 #DIR 0",
           all(s, "quota", "uid name value"));
    assert_int_equal(kv_state_queue_length(s->state), 0);
}

/* More users in a batch than it sums at a time, each several times and far apart. */
static void quota_of_many_users_in_one_batch_adds_up(void **state)
{
    struct shard *s = *state;
    char text[128];
    for (unsigned i = 0; i < 600; i++) {
        snprintf(text, sizeof text, "insert meta pid=0 name=f%u type=f uid=%u size=%u", i,
                 i % 150 + 1, i);
        EXPECT("00000", run(s, text));
        if (i % 150 == 0) {
            snprintf(text, sizeof text, "delete meta 0 f%u", i);
            EXPECT("00000", run(s, text));
        }
    }
    while (kv_state_queue_length(s->state) > 0)
        deliver(s, 199, true);
    EXPECT("0", get(s, "quota 1 #FILE", "value"));
    EXPECT("0", get(s, "quota 1 #SIZE", "value"));
    for (unsigned uid = 2; uid <= 150; uid++) {
        char key[64], want[64];
        snprintf(key, sizeof key, "quota %u #SIZE", uid);
        snprintf(want, sizeof want, "%u", 4 * (uid - 1) + 150 + 300 + 450);
        assert_string_equal(want, get(s, key, "value"));
        snprintf(key, sizeof key, "quota %u #FILE", uid);
        EXPECT("4", get(s, key, "value"));
    }
}

static void index_follows_entries(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=a id=1 fid=7 | 0 b 2 7 | 0 c 3 NULL"));
    deliver(s, 100, true);
    EXPECT("7 0 a 1 | 7 0 b 2", all(s, "secondary_index", "fid pid name id"));
    EXPECT("00000", run(s, "rename 0 a 0 d"));
    EXPECT("00000", run(s, "update meta 0 b : fid=8"));
    EXPECT("00000", run(s, "update meta 0 c : fid=9"));
    EXPECT("00000", run(s, "link 0 d 0 e"));
    deliver(s, 100, true);
    EXPECT("7 0 d 1 | 7 0 e 1 | 8 0 b 2 | 9 0 c 3", all(s, "secondary_index", "fid pid name id"));
    EXPECT("00000", run(s, "exchange 0 b 0 c"));
    EXPECT("00000", run(s, "replace 0 d 0 b"));
    EXPECT("00000", run(s, "delete meta 0 e"));
    EXPECT("00000", run(s, "update meta 0 c : fid=NULL"));
    deliver(s, 100, true);
    EXPECT("7 0 b 1", all(s, "secondary_index", "fid pid name id"));
}

static void items_count_once_however_often_they_come(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=a size=5"));
    EXPECT("00000", run(s, "insert meta pid=0 name=b size=6"));
    deliver(s, 1, false);
    s->delivered = 0;
    deliver(s, 100, false);
    s->delivered = 0;
    deliver(s, 100, true);
    EXPECT("0 #FILE 2 | 0 #SIZE 11", all(s, "quota", "uid name value"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, shard_setup, shard_teardown)
        T(file_gets_defaults),
        T(returning_shows_the_seq_of_the_command),
        T(mkdir_splits_entry_and_own_row),
        T(drawn_ids_of_directories_and_files_do_not_meet),
        T(rows_of_one_insert_find_their_directories),
        T(create_refuses_bad_names),
        T(create_refuses_bad_values),
        T(create_needs_its_directory),
        T(existing_name_is_refused_as_postgresql_does),
        T(id_of_a_directory_must_be_free),
        T(on_conflict_do_nothing_counts_only_new_rows),
        T(failed_row_undoes_the_statement),
        T(rows_see_the_rows_before_them),
        T(operations_of_a_command_are_one_unit),
        T(update_sets_and_computes),
        T(update_refuses_what_it_must),
        T(update_of_a_directory_reaches_its_own_row),
        T(compare_and_set_by_seq),
        T(times_of_a_directory_follow_and_can_be_set),
        T(delete_by_keys),
        T(directory_must_be_empty),
        T(range_spares_the_own_row_and_refuses_directories),
        T(rename_moves_an_entry),
        T(rename_refuses_what_it_must),
        T(move_of_a_directory_updates_its_parent),
        T(move_never_makes_a_loop),
        T(replace_follows_posix),
        T(exchange_swaps_two_entries),
        T(link_moves_attributes_to_the_own_row),
        T(link_refuses_what_it_must),
        T(make_path_makes_what_is_missing),
        T(related_seeds_draw_different_numbers),
        T(detached_tree_is_out_of_reach),
        T(reclaim_takes_a_detached_tree_in_slices),
        T(kv_upsert),
        T(kv_expires),
        T(kv_update_and_remove),
        T(object_put_and_remove),
        T(tables_of_the_server_are_read_only),
        T(quota_follows_inodes),
        T(quota_survives_sizes_beyond_bigint),
        T(quota_of_many_users_in_one_batch_adds_up),
        T(index_follows_entries),
        T(items_count_once_however_often_they_come),
    };
    return run_shard_tests(tests);
}
