/*
 * Random histories of a namespace against a naive one, and against the invariants of DESIGN.md 11:
 * the tree is a tree, num_children, nlink, quota and index equal a recount. Along the way: seals,
 * flushes, every read of a command cold once, items in batches of any size and more than once, and
 * a second shard that takes the same log with other seals and flushes and must end the same.
 */
#include "ops.h"

#include "base/rcu.h"
#include "kv/handler.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define INODES_MAX 4000
#define ENTRIES_MAX 4000
#define NAMES 5u
#define TEXT (1u << 16)

/* -- the naive namespace ----------------------------------------------------------------------- */

struct inode {
    int64_t id, uid, size, fid, parent; /* fid 0: none */
    char type;
    bool split, live;
    unsigned links;
};
struct entry {
    int64_t pid;
    char name[8];
    int inode; /* -1: gone */
};
struct world {
    struct inode inodes[INODES_MAX];
    struct entry entries[ENTRIES_MAX];
    int inode_count, entry_count;
    int64_t next_id;
    uint64_t seed;
};

static uint64_t draw(struct world *w, uint64_t below)
{
    return kv__random(99, w->seed++) % below;
}

static int find_dir(const struct world *w, int64_t id)
{
    for (int i = 0; i < w->inode_count; i++)
        if (w->inodes[i].live && w->inodes[i].type == 'd' && w->inodes[i].id == id)
            return i;
    return -1;
}

static int find_entry(const struct world *w, int64_t pid, const char *name)
{
    for (int i = 0; i < w->entry_count; i++)
        if (w->entries[i].inode >= 0 && w->entries[i].pid == pid &&
            strcmp(w->entries[i].name, name) == 0)
            return i;
    return -1;
}

static int children(const struct world *w, int64_t pid)
{
    int n = 0;
    for (int i = 0; i < w->entry_count; i++)
        n += w->entries[i].inode >= 0 && w->entries[i].pid == pid;
    return n;
}

static void add_entry(struct world *w, int64_t pid, const char *name, int inode)
{
    assert_true(w->entry_count < ENTRIES_MAX);
    struct entry *e = &w->entries[w->entry_count++];
    *e = (struct entry){.pid = pid, .inode = inode};
    snprintf(e->name, sizeof e->name, "%s", name);
}

static int add_inode(struct world *w, char type, int64_t id, int64_t parent)
{
    assert_true(w->inode_count < INODES_MAX);
    w->inodes[w->inode_count] = (struct inode){
        .id = id, .type = type, .parent = parent, .live = true, .split = type == 'd', .links = 1};
    return w->inode_count++;
}

static void world_init(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->seed = seed * 1000003;
    w->next_id = 100;
    (void)add_inode(w, 'd', 0, 0);
}

static void drop_entry(struct world *w, int e)
{
    struct inode *n = &w->inodes[w->entries[e].inode];
    w->entries[e].inode = -1;
    if (n->type == 'd' || --n->links == 0)
        n->live = false;
}

/* Is directory ID the one at AT or above it? */
static bool is_above(const struct world *w, int64_t id, int64_t at)
{
    while (at != id && at != 0)
        at = w->inodes[find_dir(w, at)].parent;
    return at == id;
}

/* -- random statements: text, what the naive namespace answers, and its new state ---------------
 * */

static const char *name_of(uint64_t n)
{
    static const char *const names[] = {"a", "b", "c", "d", "zz"};
    return names[n % NAMES];
}

static int64_t some_dir(struct world *w)
{
    if (draw(w, 20) == 0)
        return 77; /* there is none */
    for (;;) {
        const struct inode *n = &w->inodes[draw(w, (uint64_t)w->inode_count)];
        if (n->type == 'd' && (n->live || draw(w, 10) == 0))
            return n->id;
    }
}

static const char *random_create(struct world *w, char *text)
{
    int64_t pid = some_dir(w), id = w->next_id++;
    const char *name = name_of(draw(w, NAMES));
    char type = draw(w, 3) == 0 ? 'd' : 'f';
    int64_t uid = (int64_t)draw(w, 3), size = type == 'd' ? 0 : (int64_t)draw(w, 100),
            fid = (int64_t)draw(w, 4);
    if (type == 'd' && draw(w, 10) == 0)
        id = some_dir(w);
    char fid_text[32] = "NULL";
    if (fid != 0)
        snprintf(fid_text, sizeof fid_text, "%" PRId64, fid);
    snprintf(text, 256,
             "insert meta pid=%" PRId64 " name=%s type=%c id=%" PRId64 " uid=%" PRId64
             " size=%" PRId64 " fid=%s",
             pid, name, type, id, uid, size, fid_text);
    if (find_dir(w, pid) < 0)
        return "23503";
    if (find_entry(w, pid, name) >= 0)
        return "23505";
    if (type == 'd' && id == 0)
        return "22003";
    if (type == 'd' && find_dir(w, id) >= 0)
        return "23505";
    int i = add_inode(w, type, id, pid);
    w->inodes[i].uid = uid;
    w->inodes[i].size = size;
    w->inodes[i].fid = fid;
    add_entry(w, pid, name, i);
    return "00000";
}

static const char *random_remove(struct world *w, char *text)
{
    int64_t pid = some_dir(w);
    const char *name = name_of(draw(w, NAMES));
    snprintf(text, 256, "delete meta %" PRId64 " %s", pid, name);
    int e = find_entry(w, pid, name);
    if (e < 0)
        return "00000";
    const struct inode *n = &w->inodes[w->entries[e].inode];
    if (n->type == 'd' && children(w, n->id) > 0)
        return "2BP01";
    drop_entry(w, e);
    return "00000";
}

static const char *random_range(struct world *w, char *text)
{
    int64_t pid = some_dir(w);
    snprintf(text, 256, "range meta %" PRId64 " b e", pid);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < w->entry_count; i++) {
            const struct entry *e = &w->entries[i];
            if (e->inode < 0 || e->pid != pid || strcmp(e->name, "b") < 0 ||
                strcmp(e->name, "e") >= 0)
                continue;
            if (pass == 0 && w->inodes[e->inode].type == 'd')
                return "2BP01";
            if (pass == 1)
                drop_entry(w, i);
        }
    return "00000";
}

static const char *random_update(struct world *w, char *text)
{
    int64_t pid = some_dir(w), value = 1 + (int64_t)draw(w, 3);
    const char *name = name_of(draw(w, NAMES));
    unsigned column = (unsigned)draw(w, 3);
    static const char *const columns[] = {"uid", "size", "fid"};
    snprintf(text, 256, "update meta %" PRId64 " %s : %s=%" PRId64, pid, name, columns[column],
             value);
    int e = find_entry(w, pid, name);
    if (e < 0)
        return "00000";
    struct inode *n = &w->inodes[w->entries[e].inode];
    if (column == 2 && n->split && n->type == 'f')
        return "0A000";
    *(column == 0 ? &n->uid : column == 1 ? &n->size : &n->fid) = value;
    return "00000";
}

static const char *random_link(struct world *w, char *text)
{
    int64_t pid = some_dir(w), new_pid = some_dir(w);
    const char *name = name_of(draw(w, NAMES)), *new_name = name_of(draw(w, NAMES));
    snprintf(text, 256, "link %" PRId64 " %s %" PRId64 " %s", pid, name, new_pid, new_name);
    int e = find_entry(w, pid, name);
    if (e < 0)
        return "P0002";
    int i = w->entries[e].inode;
    if (w->inodes[i].type == 'd')
        return "42809";
    if (find_dir(w, new_pid) < 0)
        return "23503";
    if (find_entry(w, new_pid, new_name) >= 0)
        return "23505";
    w->inodes[i].split = true;
    w->inodes[i].links++;
    add_entry(w, new_pid, new_name, i);
    return "00000";
}

static const char *replace_entry(struct world *w, int e, int target)
{
    const struct inode *n = &w->inodes[w->entries[e].inode],
                       *m = &w->inodes[w->entries[target].inode];
    if (n == m)
        return "same";
    if (n->type != m->type)
        return "42809";
    if (m->type == 'd' && children(w, m->id) > 0)
        return "2BP01";
    drop_entry(w, target);
    return "00000";
}

static const char *exchange_entries(struct world *w, int e, int other)
{
    struct entry *a = &w->entries[e], *b = &w->entries[other];
    struct inode *n = &w->inodes[a->inode], *m = &w->inodes[b->inode];
    if (m->type == 'd' && a->pid != b->pid && is_above(w, m->id, a->pid))
        return "MD001";
    int i = a->inode;
    a->inode = b->inode;
    b->inode = i;
    n->parent = n->type == 'd' ? b->pid : 0;
    m->parent = m->type == 'd' ? a->pid : 0;
    return "00000";
}

static const char *random_move(struct world *w, char *text)
{
    static const char *const verbs[] = {"move", "replace", "exchange", "rename"};
    unsigned verb = (unsigned)draw(w, 4);
    int64_t pid = some_dir(w), new_pid = some_dir(w);
    const char *name = name_of(draw(w, NAMES)), *new_name = name_of(draw(w, NAMES));
    snprintf(text, 256, "%s %" PRId64 " %s %" PRId64 " %s", verbs[verb], pid, name, new_pid,
             new_name);
    int e = find_entry(w, pid, name);
    if (e < 0)
        return verb == 3 ? "00000" : "P0002";
    struct inode *n = &w->inodes[w->entries[e].inode];
    if (find_dir(w, new_pid) < 0)
        return "23503";
    int target = find_entry(w, new_pid, new_name);
    if (target == e)
        return "00000";
    if (n->type == 'd' && pid != new_pid && is_above(w, n->id, new_pid))
        return "MD001";
    if (target < 0 && verb == 2)
        return "P0002";
    if (target >= 0 && (verb == 0 || verb == 3))
        return "23505";
    if (target >= 0 && verb == 2)
        return exchange_entries(w, e, target);
    if (target >= 0) {
        const char *st = replace_entry(w, e, target);
        if (strcmp(st, "00000") != 0)
            return strcmp(st, "same") == 0 ? "00000" : st;
    }
    w->entries[e].pid = new_pid;
    snprintf(w->entries[e].name, sizeof w->entries[e].name, "%s", new_name);
    if (n->type == 'd')
        n->parent = new_pid;
    return "00000";
}

static const char *random_statement(struct world *w, char *text)
{
    switch (draw(w, 12)) {
    case 0:
    case 1:
    case 2:
    case 3: return random_create(w, text);
    case 4:
    case 5: return random_remove(w, text);
    case 6:
    case 7:
    case 8: return random_move(w, text);
    case 9: return random_link(w, text);
    case 10: return draw(w, 3) == 0 ? random_range(w, text) : random_remove(w, text);
    default: return random_update(w, text);
    }
}

/* -- comparing --------------------------------------------------------------------------------- */

struct line {
    int64_t pid;
    char name[8];
    char text[120];
};

static int compare_lines(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void attr_text(const struct world *w, const struct inode *n, char *text, size_t size)
{
    char num[32] = "NULL", parent[32] = "NULL", fid[32] = "NULL";
    if (n->type == 'd')
        snprintf(num, sizeof num, "%d", children(w, n->id));
    if (n->type == 'd' && n->id != 0)
        snprintf(parent, sizeof parent, "%" PRId64, n->parent);
    if (n->fid != 0)
        snprintf(fid, sizeof fid, "%" PRId64, n->fid);
    snprintf(text, size, "%" PRId64 " %c %" PRId64 " %" PRId64 " %u %s %s %s", n->id, n->type,
             n->uid, n->size, n->type == 'd' ? 2 : n->links, num, parent, fid);
}

/* All rows of meta as the naive namespace has them. */
static const char *world_text(const struct world *w)
{
    static char out[TEXT];
    static struct line lines[INODES_MAX + ENTRIES_MAX];
    int count = 0;
    for (int i = 0; i < w->inode_count; i++)
        if (w->inodes[i].live && w->inodes[i].split) {
            struct line *l = &lines[count++];
            *l = (struct line){.pid = w->inodes[i].id, .name = "_attr_"};
            attr_text(w, &w->inodes[i], l->text, sizeof l->text);
        }
    for (int i = 0; i < w->entry_count; i++) {
        const struct entry *e = &w->entries[i];
        if (e->inode < 0)
            continue;
        const struct inode *n = &w->inodes[e->inode];
        struct line *l = &lines[count++];
        *l = (struct line){.pid = e->pid};
        snprintf(l->name, sizeof l->name, "%s", e->name);
        if (n->split)
            snprintf(l->text, sizeof l->text, "%" PRId64 " %c NULL NULL NULL NULL NULL NULL", n->id,
                     n->type);
        else
            attr_text(w, n, l->text, sizeof l->text);
    }
    qsort(lines, (size_t)count, sizeof lines[0], compare_lines);
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%" PRId64 " %s %s", i > 0 ? " | " : "",
                              lines[i].pid, lines[i].name, lines[i].text);
    return out;
}

static const char *state_text(struct shard *s)
{
    return all(s, "meta", "pid name id type uid size nlink num_children parent fid");
}

/* Rows that are not zero of quota, and secondary_index, by a recount of the naive namespace. */
static void check_aux(const struct world *w, struct shard *s)
{
    char expected[4096] = "", got[4096] = "";
    size_t n = 0;
    for (int64_t uid = 0; uid < 8; uid++) {
        int64_t dirs = 0, files = 0, size = 0;
        for (int i = 1; i < w->inode_count; i++) {
            const struct inode *o = &w->inodes[i];
            if (!o->live || o->uid != uid)
                continue;
            dirs += o->type == 'd';
            files += o->type != 'd';
            size += o->size;
        }
        const int64_t values[] = {dirs, files, size};
        static const char *const names[] = {"#DIR", "#FILE", "#SIZE"};
        for (unsigned k = 0; k < 3; k++)
            if (values[k] != 0)
                n += (size_t)snprintf(expected + n, sizeof expected - n,
                                      "%" PRId64 " %s %" PRId64 " | ", uid, names[k], values[k]);
    }
    n = 0;
    char *quota = strdup(all(s, "quota", "uid name value"));
    for (char *at = quota, *save = NULL; (at = strtok_r(at, "|", &save)) != NULL; at = NULL) {
        while (*at == ' ')
            at++;
        char *end = at + strlen(at);
        while (end > at && end[-1] == ' ')
            *--end = 0;
        if (*at != 0 && strcmp(strrchr(at, ' '), " 0") != 0)
            n += (size_t)snprintf(got + n, sizeof got - n, "%s | ", at);
    }
    free(quota);
    assert_string_equal(got, expected);

    static struct line lines[ENTRIES_MAX];
    int count = 0;
    for (int i = 0; i < w->entry_count; i++) {
        const struct entry *e = &w->entries[i];
        if (e->inode < 0 || w->inodes[e->inode].type == 'd' || w->inodes[e->inode].fid == 0)
            continue;
        struct line *l = &lines[count++];
        *l = (struct line){.pid = w->inodes[e->inode].fid * 100000 + e->pid};
        snprintf(l->name, sizeof l->name, "%s", e->name);
        snprintf(l->text, sizeof l->text, "%" PRId64 " %" PRId64 " %s %" PRId64,
                 w->inodes[e->inode].fid, e->pid, e->name, w->inodes[e->inode].id);
    }
    qsort(lines, (size_t)count, sizeof lines[0], compare_lines);
    static char index[TEXT];
    n = 0;
    index[0] = 0;
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(index + n, sizeof index - n, "%s%s", i > 0 ? " | " : "",
                              lines[i].text);
    EXPECT(index, all(s, "secondary_index", "fid pid name id"));
}

static void deliver_all(struct world *w, struct shard *s)
{
    while (kv_state_queue_length(s->state) > 0) {
        if (draw(w, 3) == 0)
            s->delivered = 0; /* what was sent is sent again */
        deliver(s, 1 + (unsigned)draw(w, 7), draw(w, 2) == 0);
        if (s->delivered >= kv_state_applied_ts(s->state))
            break;
        if (draw(w, 4) == 0)
            deliver(s, 200, true);
    }
}

/* Is what the state holds a tree with right counts, whatever happened? */
static void check_tree(struct shard *s)
{
    struct arena a;
    struct kv_view view = {.state = s->state, .at = HLC_MAX, .tier = KV_TIER_ANY, .arena = &a};
    arena_init(&a, 65536);
    struct kv_txn *t = kv_txn_new(&a, &view);
    struct kv_row *rows = ARENA_ARRAY(&a, struct kv_row, 4096);
    unsigned count = 0;
    bytes lower = kv_key_prefix(&a, s->ns, KV_META, NULL, 0), key;
    struct kv_cell cell;
    status st;
    struct kv_txn_scan *scan = kv_txn_scan_open(t, lower, kv_key_after_prefix(&a, lower), false);
    while ((st = kv_txn_scan_next(scan, &key, &cell)) == ST_OK) {
        struct kv_row row;
        assert_true(count < 4096);
        assert_int_equal(kv__cell_row(&a, key, &cell, &row), ST_OK);
        kv_row_copy(&a, &row, &rows[count++]);
    }
    kv_txn_scan_close(scan);
    for (unsigned i = 0; i < count; i++) {
        const struct kv_row *r = &rows[i];
        int64_t entries = 0, names = 0, id = r->col[META_ID].i;
        bool own = bytes_eq(r->col[META_NAME].b, KV_ATTR_NAME), parent_there = false;
        for (unsigned j = 0; j < count; j++) {
            bool j_own = bytes_eq(rows[j].col[META_NAME].b, KV_ATTR_NAME);
            entries += !j_own && rows[j].col[META_PID].i == id;
            names += !j_own && rows[j].col[META_ID].i == id;
            parent_there |= j_own && rows[j].col[META_ID].i == r->col[META_PID].i &&
                            rows[j].col[META_TYPE].i == 'd';
            if (own && r->col[META_TYPE].i == 'd' && !j_own && rows[j].col[META_ID].i == id)
                assert_int_equal(r->col[META_PARENT].i, rows[j].col[META_PID].i);
        }
        if (!own)
            assert_true(parent_there);
        if (own && r->col[META_TYPE].i == 'd') {
            assert_int_equal(r->col[META_NUM_CHILDREN].i, entries);
            assert_int_equal(names, id == 0 ? 0 : 1);
        }
        if (own && r->col[META_TYPE].i != 'd')
            assert_int_equal(r->col[META_NLINK].i, names);
    }
    /* From every directory the root is reached. */
    for (unsigned i = 0; i < count; i++) {
        int64_t at = rows[i].col[META_PID].i;
        if (bytes_eq(rows[i].col[META_NAME].b, KV_ATTR_NAME) && rows[i].col[META_TYPE].i != 'd')
            continue;
        unsigned steps = 0;
        while (at != 0) {
            struct kv_row up;
            assert_true(++steps < 4096);
            assert_int_equal(kv__get_row(t, &a, kv_key_attr(&a, s->ns, at), &up), ST_OK);
            at = up.col[META_PARENT].i;
        }
    }
    arena_fini(&a);
}

/* -- the tests --------------------------------------------------------------------------------- */

static struct world world, saved;

static void seal_sometimes(struct shard *s)
{
    uint64_t bits = kv__random(5, s->index);
    if (bits % 5 == 0)
        shard_seal(s, bits % 3 == 0);
}

static void flush_old_sometimes(struct shard *s)
{
    if (kv__random(6, s->index) % 7 == 0)
        shard_seal_and_flush_old(s);
}

static void history(uint64_t seed, unsigned steps, bool sweep)
{
    struct shard s, twin;
    char text[256];
    shard_open(&s);
    world_init(&world, seed);
    for (unsigned i = 0; i < steps; i++) {
        s.now++;
        s.sweep = sweep && i % 3 == 0;
        const char *expected = random_statement(&world, text);
        const char *got = run(&s, text);
        s.sweep = false;
        if (strcmp(expected, got) != 0)
            fail_msg("seed %" PRIu64 " step %u: %s: expected %s, got %s (%s)", seed, i, text,
                     expected, got, s.last.err.message);
        if (draw(&world, 8) == 0)
            shard_seal(&s, draw(&world, 2) == 0);
        if (draw(&world, 10) == 0)
            deliver(&s, 1 + (unsigned)draw(&world, 5), draw(&world, 2) == 0);
        if (i % 25 == 0)
            assert_string_equal(state_text(&s), world_text(&world));
    }
    deliver_all(&world, &s);
    assert_string_equal(state_text(&s), world_text(&world));
    check_aux(&world, &s);
    check_tree(&s);
    assert_true(!sweep || s.colds > steps / 4);

    shard_open(&twin);
    shard_replay(&twin, &s, seal_sometimes);
    assert_int_equal(shard_hash(&twin), shard_hash(&s));
    assert_string_equal(state_text(&twin), world_text(&world));
    shard_close(&twin);
    shard_close(&s);
    rcu_quiescent();
}

static void random_histories_match_the_naive_namespace(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++)
        history(seed, 600, false);
}

static void cold_reads_leave_no_trace(void **state)
{
    (void)state;
    for (uint64_t seed = 101; seed <= 104; seed++)
        history(seed, 250, true);
}

/* One transaction at a time: statements see the naive namespace move with them. */
static void transactions_match_the_naive_namespace(void **state)
{
    (void)state;
    struct shard s;
    char text[256];
    shard_open(&s);
    world_init(&world, 77);
    for (unsigned i = 0; i < 250; i++) {
        struct session t;
        unsigned count = 1 + (unsigned)draw(&world, 6);
        saved = world;
        s.now++;
        session_begin(&t, &s);
        for (unsigned k = 0; k < count; k++) {
            bool undo = draw(&world, 5) == 0;
            kv_txn_mark mark = kv_txn_save(t.txn);
            static struct world before;
            before = world;
            const char *expected = random_statement(&world, text);
            const char *got = session_run(&t, text);
            if (strcmp(expected, got) != 0)
                fail_msg("transaction %u: %s: expected %s, got %s (%s)", i, text, expected, got,
                         t.err.message);
            if (undo) {
                uint64_t seed = world.seed;
                kv_txn_rollback_to(t.txn, mark);
                world = before;
                world.seed = seed;
            }
        }
        if (draw(&world, 4) == 0) {
            uint64_t seed = world.seed;
            session_rollback(&t);
            world = saved;
            world.seed = seed;
        } else {
            EXPECT("00000", session_commit(&t));
        }
        if (draw(&world, 6) == 0)
            shard_seal(&s, draw(&world, 2) == 0);
        assert_string_equal(state_text(&s), world_text(&world));
    }
    deliver_all(&world, &s);
    check_aux(&world, &s);
    check_tree(&s);
    shard_close(&s);
    rcu_quiescent();
}

/* Several at once: some commit, some conflict; what is left is a namespace in any case. */
static void concurrent_transactions_leave_a_tree(void **state)
{
    (void)state;
    unsigned conflicts = 0, commits = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct shard s, twin;
        struct session t[3];
        bool open[3] = {false};
        char text[256];
        shard_open(&s);
        world_init(&world, seed + 500);
        for (unsigned i = 0; i < 400; i++) {
            unsigned k = (unsigned)draw(&world, 4);
            s.now++;
            (void)random_statement(&world, text); /* the world only proposes */
            if (k == 3) {
                (void)run(&s, text);
                continue;
            }
            if (open[k] && s.ts - t[k].snapshot > (SHARD_RETENTION_COMMANDS - 1)
                                                      << HLC_LOGICAL_BITS) {
                session_rollback(&t[k]); /* older than what memory keeps */
                open[k] = false;
            }
            if (!open[k])
                session_begin(&t[k], &s);
            open[k] = true;
            s.sweep = i % 4 == 0;
            (void)session_run(&t[k], text);
            if (draw(&world, 3) == 0) {
                bool committed = strcmp(session_commit(&t[k]), "00000") == 0;
                commits += committed;
                conflicts += !committed;
                open[k] = false;
            }
            s.sweep = false;
            if (draw(&world, 10) == 0)
                shard_seal_and_flush_old(&s);
            if (i % 50 == 0)
                check_tree(&s);
        }
        for (unsigned k = 0; k < 3; k++)
            if (open[k])
                session_rollback(&t[k]);
        check_tree(&s);
        shard_open(&twin);
        shard_replay(&twin, &s, flush_old_sometimes);
        assert_int_equal(shard_hash(&twin), shard_hash(&s));
        shard_close(&twin);
        shard_close(&s);
        rcu_quiescent();
    }
    assert_true(conflicts > 20);
    assert_true(commits > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_histories_match_the_naive_namespace),
        cmocka_unit_test(cold_reads_leave_no_trace),
        cmocka_unit_test(transactions_match_the_naive_namespace),
        cmocka_unit_test(concurrent_transactions_leave_a_tree),
    };
    return run_shard_tests(tests);
}
