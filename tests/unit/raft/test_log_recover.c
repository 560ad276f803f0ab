/*
 * raft/log_recover.c: where a log ends, and what is damage. One image is made once; each case
 * damages a copy of it on a fresh disk and opens that.
 */
#include "log_fixture.h"

#define SEGMENT1 "stream/000000000001.log"
#define SEGMENT2 "stream/000000000002.log"

/* Group 0 has three entries, one batch each, durable; then one write brought two batches with
 * entries 4 and 5, and nothing was written after it. */
struct image {
    uint8_t *data;
    size_t size;
    uint64_t last_write, second_batch, end; /* offsets */
};

static void image_make(struct image *image, size_t entry_size)
{
    struct fixture f;
    fixture_init(&f, 20);
    fixture_open(&f);
    for (uint64_t i = 1; i <= 3; i++)
        fixture_store_entries(&f, 0, i, 1, 1, entry_size);
    image->last_write = f.log->newest->end;
    for (uint64_t i = 4; i <= 5; i++) {
        assert_int_equal(fixture_append(&f, 0, i, 1, 1, entry_size), ST_OK);
        raft_log_submit(f.log);
    }
    assert_true(raft_log_step(f.log));
    image->end = f.log->newest->end;
    image->second_batch = image->last_write + raft__batch_disk_bytes(32 + entry_size);
    image->data = file_read(f.env, SEGMENT1, &image->size);
    fixture_crash(&f);
    fixture_fini(&f);
}

static void image_place(const struct image *image, struct fixture *f, const uint8_t *data,
                        size_t size)
{
    fixture_init(f, 21);
    (void)image;
    assert_int_equal(f->env->ops->mkdir(f->env, "stream"), ST_OK);
    file_write(f->env, SEGMENT1, data, size);
    f->env->ops->sync_dir(f->env, "stream");
}

/* Opens a damaged copy whose first bad byte is at BAD, at or above the last durable offset; then
 * reopens, writes on and reopens again: what was cut never comes back. */
static void check_cut(const struct image *image, const uint8_t *data, size_t size, uint64_t bad)
{
    struct fixture f;
    uint64_t last = bad < image->second_batch ? 3 : bad < image->end ? 4 : 5;

    image_place(image, &f, data, size);
    fixture_open(&f);
    assert_int_equal(f.got->groups[0].last, last);
    memcpy(f.sent, f.got, sizeof *f.sent);
    f.next_tag = 1000;
    /* The open itself wrote a block, which may end right where a stale batch begins. */
    fixture_crash(&f);
    fixture_open(&f);
    model_check_equal(f.got, f.sent);
    /* The new batch has the size of a stale one, so it ends where the other stale one begins. */
    fixture_store_entries(&f, 0, last + 1, 2, 1, 40);
    fixture_crash(&f);
    fixture_open(&f);
    model_check_equal(f.got, f.sent);
    fixture_fini(&f);
}

static void torn_tail_opens_at_every_byte(void **state)
{
    struct image image;
    (void)state;
    image_make(&image, 40);
    for (uint64_t at = image.last_write; at < image.end; at++) {
        uint8_t before = image.data[at];
        image.data[at] = (uint8_t)(before ^ 0x41); /* all behind it stays whole */
        check_cut(&image, image.data, image.size, at);
        image.data[at] = before;
    }
    free(image.data);
}

static void zeroed_tail_opens_at_every_byte(void **state)
{
    struct image image;
    (void)state;
    image_make(&image, 40);
    uint8_t *copy = malloc(image.size);
    for (uint64_t at = image.last_write; at <= image.end; at++) {
        memcpy(copy, image.data, image.size);
        memset(copy + at, 0, image.size - at);
        uint64_t bad = at;
        while (bad < image.end && image.data[bad] == 0)
            bad++;
        check_cut(&image, copy, image.size, bad);
    }
    free(copy);
    free(image.data);
}

static void shortened_file_opens_at_every_byte(void **state)
{
    struct image image;
    (void)state;
    image_make(&image, 40);
    for (uint64_t at = image.last_write; at <= image.end; at++)
        check_cut(&image, image.data, at, at);
    free(image.data);
}

static void lost_first_sector_with_a_whole_batch_behind_it_is_cut(void **state)
{
    struct image image;
    (void)state;
    image_make(&image, 40);
    memset(image.data + image.last_write, 0, RAFT__BLOCK);
    check_cut(&image, image.data, image.size, image.last_write);
    free(image.data);
}

struct names {
    char text[1024];
};

static void names_add(void *arg, const char *name)
{
    struct names *n = arg;
    strncat(n->text, name, sizeof n->text - strlen(n->text) - 2);
    strcat(n->text, " ");
}

/* Opens a damaged copy that must be refused, and compares the disk before and after. */
static void check_refused(const struct image *image, const uint8_t *data, status expected)
{
    struct fixture f;
    struct names before = {{0}}, after = {{0}};
    size_t size;

    image_place(image, &f, data, image->size);
    assert_int_equal(f.env->ops->list(f.env, "stream", names_add, &before), ST_OK);
    assert_int_equal(fixture_try_open(&f), expected);
    assert_int_equal(f.err.code, expected);
    assert_non_null(strstr(f.err.message, "000000000001.log"));
    assert_int_equal(f.env->ops->list(f.env, "stream", names_add, &after), ST_OK);
    assert_string_equal(before.text, after.text);
    uint8_t *now = file_read(f.env, SEGMENT1, &size);
    assert_int_equal(size, image->size);
    assert_memory_equal(now, data, size);
    free(now);
    fixture_fini(&f);
}

static void damage_below_the_durable_offset_is_refused_at_every_byte(void **state)
{
    struct image image;
    (void)state;
    image_make(&image, 40);
    for (uint64_t at = 0; at < image.last_write; at++) {
        image.data[at] ^= 0x10;
        check_refused(&image, image.data, ST_CORRUPT);
        image.data[at] ^= 0x10;
    }
    free(image.data);
}

static void damage_is_seen_by_the_header_of_a_torn_batch(void **state)
{
    struct image image;
    (void)state;
    image_make(&image, 40);
    /* Both batches of the last write lost their payload; the first one's header still tells. */
    image.data[image.last_write + RAFT__HEADER_BYTES + 1] ^= 1;
    image.data[image.second_batch + RAFT__HEADER_BYTES + 1] ^= 1;
    image.data[image.last_write - RAFT__BLOCK + 100] ^= 1;
    check_refused(&image, image.data, ST_CORRUPT);
    free(image.data);
}

static void zeroed_block_below_the_durable_offset_is_refused(void **state)
{
    struct image image;
    (void)state;
    image_make(&image, 40);
    uint8_t *copy = malloc(image.size);
    for (uint64_t at = 0; at < image.last_write; at += RAFT__BLOCK) {
        memcpy(copy, image.data, image.size);
        memset(copy + at, 0, RAFT__BLOCK);
        check_refused(&image, copy, ST_CORRUPT);
    }
    free(copy);
    free(image.data);
}

static void clean_close_certifies_the_last_write(void **state)
{
    struct fixture f;
    size_t size;
    (void)state;
    fixture_init(&f, 22);
    fixture_open(&f);
    fixture_store_entries(&f, 0, 1, 1, 1, 40);
    uint64_t end = f.log->newest->end;
    raft_log_close(f.log);
    uint8_t *data = file_read(f.env, SEGMENT1, &size);
    data[end - 1] ^= 1;
    file_write(f.env, SEGMENT1, data, size);
    free(data);
    assert_int_equal(fixture_try_open(&f), ST_CORRUPT);
    fixture_fini(&f);
}

static void open_certifies_what_it_recovered(void **state)
{
    struct image image;
    struct fixture f;
    size_t size;
    (void)state;
    image_make(&image, 40);
    image_place(&image, &f, image.data, image.size);
    fixture_open(&f);
    fixture_crash(&f);
    uint8_t *data = file_read(f.env, SEGMENT1, &size);
    data[image.second_batch + 60] ^= 1; /* may be cut before that open, is damage after it */
    file_write(f.env, SEGMENT1, data, size);
    assert_int_equal(fixture_try_open(&f), ST_CORRUPT);
    fixture_fini(&f);
    free(data);
    free(image.data);
}

/* Two segments and a few batches in the second. */
static void two_segments(struct fixture *f)
{
    fixture_init(f, 23);
    fixture_open(f);
    for (uint64_t i = 1; f->log->newest->number == 1 || i % 8; i++)
        fixture_store_entries(f, 0, i, 1, 1, 400);
    assert_int_equal(f->log->newest->number, 2);
}

static void flip(struct fixture *f, const char *path, uint64_t at)
{
    size_t size;
    uint8_t *data = file_read(f->env, path, &size);
    assert_true(at < size);
    data[at] ^= 1;
    file_write(f->env, path, data, size);
    free(data);
}

static void damage_at_the_end_of_an_older_segment_is_refused(void **state)
{
    (void)state;
    for (int back = 1; back < 1024; back += 101) {
        struct fixture f;
        two_segments(&f);
        uint64_t end = f.log->oldest->end;
        fixture_crash(&f);
        flip(&f, SEGMENT1, end - (uint64_t)back);
        assert_int_equal(fixture_try_open(&f), ST_CORRUPT);
        assert_non_null(strstr(f.err.message, "000000000001.log is damaged at offset"));
        fixture_fini(&f);
    }
}

static void damaged_segment_header_is_refused(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < RAFT__BLOCK; at += 7) {
        struct fixture f;
        two_segments(&f);
        fixture_crash(&f);
        flip(&f, at % 2 ? SEGMENT1 : SEGMENT2, at);
        assert_int_equal(fixture_try_open(&f), ST_CORRUPT);
        fixture_fini(&f);
    }
}

static bool exists(struct fixture *f, const char *path)
{
    struct env_file *file;
    status st = f->env->ops->open(f->env, path, ENV_READ, &file);
    if (st == ST_OK)
        f->env->ops->close(f->env, file);
    return st == ST_OK;
}

static void segment_behind_the_end_begins_a_new_life(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, 26);
    fixture_open(&f);
    fixture_run(&f);
    uint64_t index = 1;
    while (f.log->newest->size - f.log->newest->end > 2 * RAFT__BLOCK)
        fixture_store_entries(&f, 0, index++, 1, 1, 400);
    memcpy(f.got, f.sent, sizeof *f.got);
    struct model *stored = calloc(1, sizeof *stored);
    memcpy(stored, f.sent, sizeof *stored);
    /* The first write into segment 2 is whole but its checkpoint, and was never reported. */
    assert_int_equal(fixture_append(&f, 0, index, 1, 1, 2000), ST_OK);
    env_sim_fail_next_sync(f.env, ST_IO);
    raft_log_submit(f.log);
    fixture_run(&f);
    assert_int_equal(f.log->newest->number, 2);
    fixture_crash(&f);
    flip(&f, SEGMENT2, RAFT__BLOCK + 60);
    fixture_open(&f);
    model_check_equal(f.got, stored);
    assert_false(exists(&f, SEGMENT2));
    assert_true(exists(&f, "stream/spare-000000000002"));
    fixture_run(&f);
    assert_true(exists(&f, SEGMENT2));
    assert_int_equal(f.log->next->generation, 2);
    memcpy(f.sent, stored, sizeof *f.sent);
    fixture_store_entries(&f, 0, index, 2, 1, 2000);
    fixture_crash(&f);
    fixture_open(&f);
    model_check_equal(f.got, f.sent);
    free(stored);
    fixture_fini(&f);
}

static void batch_out_of_sequence_ends_the_log(void **state)
{
    (void)state;
    for (uint64_t skip = 0; skip <= 2; skip++) {
        struct image image;
        struct fixture f;
        image_make(&image, 40);
        const struct raft__identity id = {
            .cluster_id = 0xc1, .store_id = 0x51, .stream = 3, .number = 1, .generation = 1};
        struct raft__batch_header last;
        uint64_t seed = raft__segment_seed(&id);
        assert_true(
            raft__header_decode(image.data + image.second_batch, seed, image.second_batch, &last));
        struct raft__batch *b = raft__batch_new(RAFT__BATCH_DATA);
        raft__batch_hard_state(b, 2, (struct raft_hard_state){9, 9});
        raft__batch_seal(b, seed, (struct raft__position){1, image.end}, last.sequence + skip,
                         (struct raft__position){1, RAFT__BLOCK});
        memcpy(image.data + image.end, b->head.data, b->head.size);
        raft__batch_free(b);
        image_place(&image, &f, image.data, image.size);
        fixture_open(&f);
        assert_int_equal(f.got->groups[2].hard.term, skip == 1 ? 9 : 0);
        fixture_fini(&f);
        free(image.data);
    }
}

static void missing_segment_is_refused(void **state)
{
    struct fixture f;
    (void)state;
    two_segments(&f);
    fixture_run(&f); /* prepares segment 3 */
    fixture_crash(&f);
    assert_int_equal(f.env->ops->unlink(f.env, SEGMENT2), ST_OK);
    assert_int_equal(fixture_try_open(&f), ST_CORRUPT);
    assert_non_null(strstr(f.err.message, "000000000002.log is missing"));
    fixture_fini(&f);
}

static void missing_oldest_segment_is_not_taken_for_a_cut(void **state)
{
    struct fixture f;
    (void)state;
    two_segments(&f);
    fixture_crash(&f);
    assert_int_equal(f.env->ops->unlink(f.env, SEGMENT1), ST_OK);
    /* The log itself begins with a checkpoint and is whole; who replays it sees the gap. */
    struct raft_config config = {.self = 1,
                                 .members = {.count = 1, .at = {{1, RAFT_VOTER}}},
                                 .election_ms = 10,
                                 .heartbeat_ms = 1};
    struct raft *raft = raft_new(&config, (struct raft_hard_state){1, 1}, 0, 0);
    assert_int_equal(fixture_try_open(&f), ST_OK);
    uint64_t first = 1;
    while (f.got->groups[0].entries[first].term == 0)
        first++;
    const struct raft_entry e = {.index = first, .term = 1, .kind = RAFT_ENTRY_NOOP};
    assert_int_equal(raft_restore_entry(raft, &e), ST_CORRUPT);
    raft_free(raft);
    fixture_fini(&f);
}

static void other_identity_is_refused_by_name(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        struct fixture f;
        two_segments(&f);
        fixture_crash(&f);
        f.options.cluster_id += which == 0;
        f.options.store_id += which == 1;
        f.options.stream += which == 2;
        assert_int_equal(fixture_try_open(&f), ST_INVALID);
        assert_non_null(strstr(f.err.message, "belongs to"));
        fixture_fini(&f);
    }
}

static void records_of_an_earlier_life_of_a_file_are_not_valid(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, 24);
    fixture_open(&f);
    /* Segments full of batches of one size are recycled; the new life writes batches of the same
     * size, so old ones lie exactly where a next batch would. */
    uint64_t index = 1;
    while (f.log->newest->generation < 3) {
        fixture_store_entries(&f, 0, index++, 1, 1, 400);
        raft_log_cut(f.log, 0, index - 1);
        assert_true(index < INDEXES);
    }
    fixture_store_entries(&f, 0, index++, 1, 1, 400);
    fixture_crash(&f);
    fixture_open(&f);
    model_check_equal(f.got, f.sent);
    assert_int_equal(f.got->groups[0].last, index - 1);
    fixture_fini(&f);
}

static void unsynced_tail_is_made_durable_before_anybody_acts_on_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct fixture f;
        fixture_init(&f, seed);
        fixture_open(&f);
        fixture_store_entries(&f, 0, 1, 1, 1, 40);
        assert_int_equal(fixture_append(&f, 0, 2, 1, 1, 2000), ST_OK);
        env_sim_fail_next_sync(f.env, ST_IO); /* written, never synced */
        raft_log_submit(f.log);
        fixture_run(&f);
        fixture_crash(&f); /* the kernel lives on, and so does its page cache */
        fixture_open(&f);
        assert_int_equal(f.got->groups[0].last, 2);
        env_sim_power_cut(f.env);
        raft__log_abandon(f.log);
        fixture_open(&f);
        model_check_equal(f.got, f.sent);
        fixture_fini(&f);
    }
}

static void failed_recovery_can_be_repeated(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct fixture f;
        two_segments(&f);
        assert_int_equal(fixture_append(&f, 0, f.sent->groups[0].last + 1, 1, 6, 900), ST_OK);
        struct model *stored = calloc(1, sizeof *stored);
        memcpy(stored, f.sent, sizeof *stored);
        stored->groups[0].last -= 6;
        raft_log_submit(f.log);
        env_sim_fail_next_sync(f.env, ST_IO);
        fixture_run(&f);
        env_sim_power_cut(f.env);
        raft__log_abandon(f.log);
        f.log = NULL;
        for (uint64_t i = 0; i < seed % 4; i++) {
            env_sim_fail_next_sync(f.env, ST_IO);
            assert_int_equal(fixture_try_open(&f), ST_IO);
            env_sim_power_cut(f.env);
        }
        fixture_open(&f);
        model_check_holds(f.got, stored);
        free(stored);
        fixture_fini(&f);
    }
}

static void lines_add(void *arg, const char *line)
{
    struct names *n = arg;
    if (strlen(n->text) + strlen(line) + 2 < sizeof n->text) {
        strcat(n->text, line);
        strcat(n->text, "\n");
    }
}

static void inspect_prints_records_and_changes_nothing(void **state)
{
    struct fixture f;
    struct names lines = {{0}};
    struct err err;
    size_t size, again;
    (void)state;
    fixture_init(&f, 25);
    fixture_open(&f);
    fixture_hard_state(&f, 1, 2, 9);
    fixture_store_entries(&f, 1, 1, 2, 1, 33);
    raft_log_cut(f.log, 1, 1);
    fixture_store(&f);
    fixture_crash(&f);
    uint8_t *before = file_read(f.env, SEGMENT1, &size);
    assert_int_equal(raft_log_inspect(f.env, "stream", lines_add, &lines, &err), ST_OK);
    assert_non_null(strstr(lines.text, "hard_state group=1 term=2 vote=9\n"));
    assert_non_null(strstr(lines.text, "entry group=1 index=1 term=2 kind=command bytes=33\n"));
    assert_non_null(strstr(lines.text, "cut group=1 index=1\n"));
    assert_non_null(strstr(lines.text, "end segment=1 offset="));
    uint8_t *after = file_read(f.env, SEGMENT1, &again);
    assert_int_equal(size, again);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
    flip(&f, SEGMENT1, RAFT__BLOCK + 3);
    assert_int_equal(raft_log_inspect(f.env, "stream", lines_add, &lines, &err), ST_CORRUPT);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torn_tail_opens_at_every_byte),
        cmocka_unit_test(zeroed_tail_opens_at_every_byte),
        cmocka_unit_test(shortened_file_opens_at_every_byte),
        cmocka_unit_test(lost_first_sector_with_a_whole_batch_behind_it_is_cut),
        cmocka_unit_test(damage_below_the_durable_offset_is_refused_at_every_byte),
        cmocka_unit_test(damage_is_seen_by_the_header_of_a_torn_batch),
        cmocka_unit_test(zeroed_block_below_the_durable_offset_is_refused),
        cmocka_unit_test(clean_close_certifies_the_last_write),
        cmocka_unit_test(open_certifies_what_it_recovered),
        cmocka_unit_test(damage_at_the_end_of_an_older_segment_is_refused),
        cmocka_unit_test(damaged_segment_header_is_refused),
        cmocka_unit_test(segment_behind_the_end_begins_a_new_life),
        cmocka_unit_test(batch_out_of_sequence_ends_the_log),
        cmocka_unit_test(missing_segment_is_refused),
        cmocka_unit_test(missing_oldest_segment_is_not_taken_for_a_cut),
        cmocka_unit_test(other_identity_is_refused_by_name),
        cmocka_unit_test(records_of_an_earlier_life_of_a_file_are_not_valid),
        cmocka_unit_test(unsynced_tail_is_made_durable_before_anybody_acts_on_it),
        cmocka_unit_test(failed_recovery_can_be_repeated),
        cmocka_unit_test(inspect_prints_records_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
