/*
 * base/env_sim.c — the simulated environment: clocks, randomness, a disk with directories.
 *
 * Vocabulary: a *node* is a file or a directory. A directory has two sets of entries: the *current*
 * one, which the process sees, and the *durable* one, which a power cut goes back to. A *change*
 * is one create, mkdir, rename or unlink that is current and not yet durable; it consists of one or
 * two *edits* (directory, name, new target or none), which become durable together.
 *
 * sync_dir(D) makes durable the changes that touch D, and before them the earlier changes that
 * touch a name which those touch. A power cut makes a random prefix of the remaining changes
 * durable, as a journal would, and forgets the rest. Syncing a file's data does not sync its name:
 * a program that forgets sync_dir fails here, though some file systems would forgive it.
 *
 * Invariants
 *   E1  `changes` applied in order to the durable entries gives the current entries.
 *   E2  A node is freed only when no entry, change, open file or lock refers to it.
 *
 * Threads: one at a time; time passes only by env_sim_advance.
 */
#include "base/env_sim.h"
#include "base/assert.h"
#include "base/list.h"
#include "base/sim_file.h"
#include <stdio.h>
#include <stdlib.h>

#define START_UNIX_US 1800000000000000 /* 2027-01-15 */
#define START_MONO_US 1000000u
#define NAME_BYTES 256u

struct node;

struct entry {
    char name[NAME_BYTES];
    struct node *target;
};

struct entries {
    struct entry *items;
    size_t count, capacity;
};

struct node {
    struct list all;
    bool is_dir, marked, locked;
    struct entries current, durable; /* of a directory */
    struct sim_file file;
};

struct edit {
    struct node *dir;
    char name[NAME_BYTES];
    struct node *target; /* NULL: the name goes away */
};

struct change {
    struct edit edits[2];
    unsigned count;
    bool selected; /* scratch of sync_dir */
};

struct env_file {
    struct list open;
    struct node *node; /* NULL after a power cut or kill */
    bool writable;
};

struct sim {
    struct env env;
    struct list nodes, open;
    struct node *root;
    struct change *changes;
    size_t change_count, change_capacity;
    int64_t unix_us;
    uint64_t mono_us;
    struct sim_random program, disk;
    status next_sync;
    uint64_t capacity;
    unsigned calls_left; /* writing calls until the power goes; 0: it stays */
    bool dark;           /* it went */
    bool lies;           /* syncs do nothing */
    void (*lost)(void *arg);
    void *lost_arg;
};

static struct sim *sim_of(struct env *e)
{
    return CONTAINER_OF(e, struct sim, env);
}

static void *must(void *p)
{
    if (p == NULL) {
        fprintf(stderr, "metadb: out of memory (simulated disk)\n");
        abort();
    }
    return p;
}

static struct entry *entry_find(const struct entries *es, const char *name)
{
    for (size_t i = 0; i < es->count; i++) {
        if (strcmp(es->items[i].name, name) == 0)
            return &es->items[i];
    }
    return NULL;
}

static void entries_apply(struct entries *es, const struct edit *edit)
{
    struct entry *e = entry_find(es, edit->name);
    if (edit->target == NULL) {
        if (e != NULL)
            *e = es->items[--es->count];
        return;
    }
    if (e == NULL) {
        if (es->count == es->capacity) {
            es->capacity = es->capacity == 0 ? 8 : es->capacity * 2;
            es->items = must(realloc(es->items, es->capacity * sizeof *es->items));
        }
        e = &es->items[es->count++];
        memcpy(e->name, edit->name, NAME_BYTES);
    }
    e->target = edit->target;
}

static void entries_copy(struct entries *to, const struct entries *from)
{
    to->count = 0;
    for (size_t i = 0; i < from->count; i++) {
        struct edit edit = {.target = from->items[i].target};
        memcpy(edit.name, from->items[i].name, NAME_BYTES);
        entries_apply(to, &edit);
    }
}

static struct node *node_new(struct sim *s, bool is_dir)
{
    struct node *n = must(calloc(1, sizeof *n));
    n->is_dir = is_dir;
    sim_file_init(&n->file);
    list_push_back(&s->nodes, &n->all);
    return n;
}

static void node_free(struct node *n)
{
    list_remove(&n->all);
    sim_file_fini(&n->file);
    free(n->current.items);
    free(n->durable.items);
    free(n);
}

static void mark(struct node *n)
{
    if (n == NULL || n->marked)
        return;
    n->marked = true;
    for (size_t i = 0; i < n->current.count; i++)
        mark(n->current.items[i].target);
    for (size_t i = 0; i < n->durable.count; i++)
        mark(n->durable.items[i].target);
}

/* Frees what nothing refers to (E2). */
static void sweep(struct sim *s)
{
    mark(s->root);
    for (size_t i = 0; i < s->change_count; i++) {
        for (unsigned k = 0; k < s->changes[i].count; k++) {
            mark(s->changes[i].edits[k].dir);
            mark(s->changes[i].edits[k].target);
        }
    }
    LIST_FOR_EACH(it, &s->open) {
        mark(CONTAINER_OF(it, struct env_file, open)->node);
    }
    LIST_FOR_EACH_SAFE(it, after, &s->nodes) {
        struct node *n = CONTAINER_OF(it, struct node, all);
        if (!n->marked && !n->locked)
            node_free(n);
    }
    LIST_FOR_EACH(it, &s->nodes) {
        CONTAINER_OF(it, struct node, all)->marked = false;
    }
}

/* Walks to the directory that holds PATH's last component and copies that component to NAME, which
 * is empty if PATH is the root. */
static status walk(struct sim *s, const char *path, struct node **dir, char name[NAME_BYTES])
{
    *dir = s->root;
    name[0] = '\0';
    for (const char *p = path; *p != '\0';) {
        size_t n = strcspn(p, "/");
        bool skip = n == 0 || (n == 1 && p[0] == '.');
        if (!skip && name[0] != '\0') {
            struct entry *e = entry_find(&(*dir)->current, name);
            if (e == NULL || !e->target->is_dir)
                return ST_NOT_FOUND;
            *dir = e->target;
        }
        if (n >= NAME_BYTES)
            return ST_IO;
        if (!skip) {
            memcpy(name, p, n);
            name[n] = '\0';
        }
        p += n + (p[n] == '/');
    }
    return ST_OK;
}

static struct node *child(struct sim *s, struct node *dir, const char *name)
{
    if (name[0] == '\0')
        return s->root;
    struct entry *e = entry_find(&dir->current, name);
    return e != NULL ? e->target : NULL;
}

static status lookup(struct sim *s, const char *path, struct node **out)
{
    struct node *dir;
    char name[NAME_BYTES];
    ST_TRY(walk(s, path, &dir, name));
    *out = child(s, dir, name);
    return *out != NULL ? ST_OK : ST_NOT_FOUND;
}

static struct change *change_begin(struct sim *s)
{
    if (s->change_count == s->change_capacity) {
        s->change_capacity = s->change_capacity == 0 ? 8 : s->change_capacity * 2;
        s->changes = must(realloc(s->changes, s->change_capacity * sizeof *s->changes));
    }
    struct change *c = &s->changes[s->change_count++];
    *c = (struct change){0};
    return c;
}

/* Adds an edit and makes it current. */
static void change_edit(struct change *c, struct node *dir, const char *name, struct node *target)
{
    struct edit *e = &c->edits[c->count++];
    e->dir = dir;
    snprintf(e->name, sizeof e->name, "%s", name);
    e->target = target;
    entries_apply(&dir->current, e);
}

static void change_make_durable(const struct change *c)
{
    for (unsigned i = 0; i < c->count; i++)
        entries_apply(&c->edits[i].dir->durable, &c->edits[i]);
}

static bool share_a_name(const struct change *a, const struct change *b)
{
    for (unsigned i = 0; i < a->count; i++) {
        for (unsigned k = 0; k < b->count; k++) {
            if (a->edits[i].dir == b->edits[k].dir &&
                strcmp(a->edits[i].name, b->edits[k].name) == 0)
                return true;
        }
    }
    return false;
}

/* Selects the changes that touch DIR and, going backwards, those that a selected one builds on. */
static void select_changes(struct sim *s, const struct node *dir)
{
    for (size_t i = s->change_count; i > 0; i--) {
        struct change *c = &s->changes[i - 1];
        c->selected = c->edits[0].dir == dir || (c->count > 1 && c->edits[1].dir == dir);
        for (size_t k = i; k < s->change_count && !c->selected; k++)
            c->selected = s->changes[k].selected && share_a_name(c, &s->changes[k]);
    }
}

/* Before each call that writes: is there power for it? */
static status powered(struct sim *s)
{
    if (s->calls_left > 0 && --s->calls_left == 0) {
        s->dark = true;
        s->lost(s->lost_arg);
    }
    return s->dark ? ST_IO : ST_OK;
}

static status take_sync_result(struct sim *s)
{
    status st = s->next_sync;
    s->next_sync = ST_OK;
    return st;
}

static status sim_sync_dir(struct env *e, const char *path)
{
    struct sim *s = sim_of(e);
    struct node *dir = NULL;
    ST_TRY(lookup(s, path, &dir));
    if (!dir->is_dir)
        return ST_NOT_FOUND;
    ST_TRY(powered(s));
    ST_TRY(take_sync_result(s));
    if (s->lies)
        return ST_OK;
    select_changes(s, dir);
    size_t kept = 0;
    for (size_t i = 0; i < s->change_count; i++) {
        if (s->changes[i].selected)
            change_make_durable(&s->changes[i]);
        else
            s->changes[kept++] = s->changes[i];
    }
    s->change_count = kept;
    sweep(s);
    return ST_OK;
}

static status sim_rename(struct env *e, const char *from, const char *to)
{
    struct sim *s = sim_of(e);
    struct node *from_dir, *to_dir;
    char from_name[NAME_BYTES], to_name[NAME_BYTES];
    ST_TRY(powered(s));
    ST_TRY(walk(s, from, &from_dir, from_name));
    ST_TRY(walk(s, to, &to_dir, to_name));
    struct node *n = child(s, from_dir, from_name);
    struct node *target = child(s, to_dir, to_name);
    if (n == NULL)
        return ST_NOT_FOUND;
    if (n == target)
        return ST_OK;
    if (n == s->root || (target != NULL && target->is_dir))
        return ST_IO;
    struct change *c = change_begin(s);
    change_edit(c, from_dir, from_name, NULL);
    change_edit(c, to_dir, to_name, n);
    return ST_OK;
}

static status sim_unlink(struct env *e, const char *path)
{
    struct sim *s = sim_of(e);
    struct node *dir;
    char name[NAME_BYTES];
    ST_TRY(powered(s));
    ST_TRY(walk(s, path, &dir, name));
    struct node *n = child(s, dir, name);
    if (n == NULL)
        return ST_NOT_FOUND;
    if (n->is_dir)
        return ST_IO;
    change_edit(change_begin(s), dir, name, NULL);
    return ST_OK;
}

static status sim_mkdir(struct env *e, const char *path)
{
    struct sim *s = sim_of(e);
    struct node *dir;
    char name[NAME_BYTES];
    ST_TRY(powered(s));
    ST_TRY(walk(s, path, &dir, name));
    if (child(s, dir, name) != NULL)
        return ST_EXISTS;
    change_edit(change_begin(s), dir, name, node_new(s, true));
    return ST_OK;
}

/* Over a copy of the names, so that FN may remove what it is told of. */
static status sim_list(struct env *e, const char *path, void (*fn)(void *, const char *name),
                       void *arg)
{
    struct node *dir = NULL;
    ST_TRY(lookup(sim_of(e), path, &dir));
    if (!dir->is_dir)
        return ST_NOT_FOUND;
    struct entries copy = {0};
    entries_copy(&copy, &dir->current);
    for (size_t i = 0; i < copy.count; i++)
        fn(arg, copy.items[i].name);
    free(copy.items);
    return ST_OK;
}

/* The file at PATH, made if it is missing and FLAGS say so. */
static status find_or_create(struct sim *s, const char *path, int flags, struct node **out)
{
    struct node *dir;
    char name[NAME_BYTES];
    ST_TRY(walk(s, path, &dir, name));
    struct node *n = child(s, dir, name);
    if (n == NULL && !(flags & ENV_CREATE))
        return ST_NOT_FOUND;
    if (n != NULL && (flags & ENV_CREATE) && (flags & ENV_EXCLUSIVE))
        return ST_EXISTS;
    if (n != NULL && n->is_dir)
        return ST_IO;
    if (n == NULL) {
        n = node_new(s, false);
        change_edit(change_begin(s), dir, name, n);
    }
    *out = n;
    return ST_OK;
}

static status sim_open(struct env *e, const char *path, int flags, struct env_file **out)
{
    struct sim *s = sim_of(e);
    struct node *n = NULL;
    *out = NULL;
    if (flags & ENV_CREATE)
        ST_TRY(powered(s));
    ST_TRY(find_or_create(s, path, flags, &n));
    struct env_file *f = must(calloc(1, sizeof *f));
    f->node = n;
    f->writable = (flags & ENV_WRITE) != 0;
    list_push_back(&s->open, &f->open);
    *out = f;
    return ST_OK;
}

static void sim_close(struct env *e, struct env_file *f)
{
    UNUSED(e);
    if (f == NULL)
        return;
    list_remove(&f->open);
    free(f);
}

static status sim_pread(struct env *e, struct env_file *f, void *dst, size_t n, uint64_t at,
                        size_t *got)
{
    UNUSED(e);
    *got = 0;
    if (f->node == NULL)
        return ST_IO;
    *got = sim_file_read(&f->node->file, dst, n, at);
    return ST_OK;
}

/* Would the disk be over its capacity if this file grew to SIZE? */
static bool is_full(const struct sim *s, const struct node *grown, uint64_t size)
{
    if (s->capacity == 0 || size <= grown->file.size)
        return false;
    uint64_t used = 0;
    LIST_FOR_EACH(it, &s->nodes) {
        used += CONTAINER_OF(it, struct node, all)->file.size;
    }
    return used - grown->file.size + size > s->capacity;
}

static status sim_pwritev(struct env *e, struct env_file *f, const struct iovec *iov, int count,
                          uint64_t at)
{
    if (f->node == NULL || !f->writable)
        return ST_IO;
    size_t n = 0;
    for (int i = 0; i < count; i++)
        n += iov[i].iov_len;
    if (is_full(sim_of(e), f->node, at + n))
        return ST_DISK_FULL;
    /* One operation, so that it is torn as a whole and not piece by piece. */
    uint8_t *all = must(malloc(n > 0 ? n : 1));
    size_t done = 0;
    for (int i = 0; i < count; i++) {
        if (iov[i].iov_len > 0)
            memcpy(all + done, iov[i].iov_base, iov[i].iov_len);
        done += iov[i].iov_len;
    }
    /* Without power some of it may have reached the disk: the power cut decides. */
    bool lit = !sim_of(e)->dark;
    status st = powered(sim_of(e));
    if (lit)
        sim_file_write(&f->node->file, all, n, at);
    free(all);
    return st;
}

static status sim_datasync(struct env *e, struct env_file *f)
{
    if (f->node == NULL)
        return ST_IO;
    ST_TRY(powered(sim_of(e)));
    status st = take_sync_result(sim_of(e));
    if (st == ST_OK && sim_of(e)->lies)
        return ST_OK;
    if (st == ST_OK)
        sim_file_sync(&f->node->file);
    else
        sim_file_sync_failed(&f->node->file);
    return st;
}

static status sim_truncate(struct env *e, struct env_file *f, uint64_t size)
{
    if (f->node == NULL || !f->writable)
        return ST_IO;
    if (is_full(sim_of(e), f->node, size))
        return ST_DISK_FULL;
    ST_TRY(powered(sim_of(e)));
    sim_file_resize(&f->node->file, size);
    return ST_OK;
}

static status sim_size(struct env *e, struct env_file *f, uint64_t *out)
{
    UNUSED(e);
    if (f->node == NULL)
        return ST_IO;
    *out = f->node->file.size;
    return ST_OK;
}

static status sim_zero_fill(struct env *e, struct env_file *f, uint64_t size)
{
    if (f->node == NULL)
        return ST_IO;
    if (size <= f->node->file.size)
        return ST_OK;
    ST_TRY(sim_truncate(e, f, size));
    return sim_datasync(e, f);
}

static status sim_lock(struct env *e, const char *path)
{
    struct node *n = NULL;
    ST_TRY(find_or_create(sim_of(e), path, ENV_CREATE, &n));
    if (n->locked)
        return ST_LOCKED;
    n->locked = true;
    return ST_OK;
}

static int64_t sim_unix_us(struct env *e)
{
    return sim_of(e)->unix_us;
}

static uint64_t sim_mono_us(struct env *e)
{
    return sim_of(e)->mono_us;
}

static void sim_random(struct env *e, void *out, size_t n)
{
    for (size_t done = 0; done < n;) {
        uint64_t v = sim_random_next(&sim_of(e)->program);
        size_t some = n - done < sizeof v ? n - done : sizeof v;
        memcpy((char *)out + done, &v, some);
        done += some;
    }
}

static const struct env_ops sim_ops = {
    .unix_us = sim_unix_us,
    .mono_us = sim_mono_us,
    .random = sim_random,
    .open = sim_open,
    .close = sim_close,
    .pread = sim_pread,
    .pwritev = sim_pwritev,
    .datasync = sim_datasync,
    .truncate = sim_truncate,
    .size = sim_size,
    .zero_fill = sim_zero_fill,
    .rename = sim_rename,
    .unlink = sim_unlink,
    .mkdir = sim_mkdir,
    .sync_dir = sim_sync_dir,
    .list = sim_list,
    .lock = sim_lock,
};

struct env *env_sim_new(uint64_t seed)
{
    struct sim *s = must(calloc(1, sizeof *s));
    s->env.ops = &sim_ops;
    list_init(&s->nodes);
    list_init(&s->open);
    s->root = node_new(s, true);
    s->unix_us = START_UNIX_US;
    s->mono_us = START_MONO_US;
    s->program.state = seed;
    s->disk.state = ~seed;
    return &s->env;
}

void env_sim_free(struct env *e)
{
    if (e == NULL)
        return;
    struct sim *s = sim_of(e);
    struct list *it;
    while ((it = list_pop_front(&s->open)) != NULL)
        free(CONTAINER_OF(it, struct env_file, open));
    while (!list_empty(&s->nodes))
        node_free(CONTAINER_OF(s->nodes.next, struct node, all));
    free(s->changes);
    free(s);
}

void env_sim_advance(struct env *e, uint64_t us)
{
    sim_of(e)->mono_us += us;
    sim_of(e)->unix_us += (int64_t)us;
}

void env_sim_jump_wall(struct env *e, int64_t us)
{
    sim_of(e)->unix_us += us;
}

void env_sim_kill(struct env *e)
{
    struct sim *s = sim_of(e);
    LIST_FOR_EACH(it, &s->open) {
        CONTAINER_OF(it, struct env_file, open)->node = NULL;
    }
    LIST_FOR_EACH(it, &s->nodes) {
        CONTAINER_OF(it, struct node, all)->locked = false;
    }
    s->next_sync = ST_OK;
    s->calls_left = 0;
    s->dark = false;
    sweep(s);
}

void env_sim_power_cut(struct env *e)
{
    struct sim *s = sim_of(e);
    size_t kept = (size_t)sim_random_below(&s->disk, s->change_count + 1);
    for (size_t i = 0; i < kept; i++)
        change_make_durable(&s->changes[i]);
    s->change_count = 0;
    LIST_FOR_EACH(it, &s->nodes) {
        struct node *n = CONTAINER_OF(it, struct node, all);
        if (n->is_dir)
            entries_copy(&n->current, &n->durable);
        else
            sim_file_power_cut(&n->file, &s->disk);
    }
    env_sim_kill(e);
}

void env_sim_fail_next_sync(struct env *e, status st)
{
    sim_of(e)->next_sync = st;
}

void env_sim_set_capacity(struct env *e, uint64_t max_bytes)
{
    sim_of(e)->capacity = max_bytes;
}

void env_sim_lose_power_at(struct env *e, unsigned calls, void (*lost)(void *arg), void *arg)
{
    struct sim *s = sim_of(e);
    s->calls_left = calls;
    s->lost = lost;
    s->lost_arg = arg;
}

void env_sim_lie(struct env *e, bool lies)
{
    sim_of(e)->lies = lies;
}

void env_sim_wipe(struct env *e)
{
    struct sim *s = sim_of(e);
    s->change_count = 0;
    s->root->current.count = s->root->durable.count = 0;
    s->lies = false;
    sweep(s);
}

void env_sim_settle(struct env *e)
{
    struct sim *s = sim_of(e);
    for (size_t i = 0; i < s->change_count; i++)
        change_make_durable(&s->changes[i]);
    s->change_count = 0;
    LIST_FOR_EACH(it, &s->nodes) {
        sim_file_settle(&CONTAINER_OF(it, struct node, all)->file);
    }
    sweep(s);
}
