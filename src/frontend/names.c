/*
 * frontend/names.c — a session's statements and portals: made, found by name, dropped.
 *
 * Both are counted: a statement lives while a name or a portal refers to it, a portal while its
 * name or a run does. Names of statements are hashed, since a driver may keep thousands; portals
 * are few and in a list. The *unnamed* ones have the empty name; that statement stands beside the
 * table.
 */
#include "base/assert.h"
#include "base/memory.h"
#include "frontend/execute.h"
#include "frontend/session.h"
#include "frontend/session_pool.h"
#include <stdlib.h>

status fe_name(struct fe_session *s, bytes wire, struct arena *a, const char **out)
{
    if (wire.size == 0) {
        *out = "";
        return ST_OK;
    }
    ST_TRY(fe_utf8_check(wire, &fe_work(s)->err));
    size_t n = wire.size;
    if (n > LIMIT_IDENTIFIER_BYTES) {
        n = LIMIT_IDENTIFIER_BYTES;
        while (n > 0 && (wire.data[n] & 0xC0) == 0x80)
            n--;
    }
    *out = arena_strdup(a, bytes_make(wire.data, n));
    return ST_OK;
}

/* -- statements -------------------------------------------------------------------------------- */

static uint32_t hash_name(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name != '\0'; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

struct fe_statement *fe_statement_new(struct fe_session *s)
{
    struct fe_statement *st = fe_pool_take_statement(s->worker->pool);
    st->refs = 1;
    st->next = NULL;
    st->name = NULL;
    st->stmt = (struct pl_statement){0};
    st->constant = st->lends_rows = false;
    st->late = NULL;
    st->text = BYTES_EMPTY;
    st->encoder.fields = NULL;
    return st;
}

void fe_statement_unref(struct fe_session *s, struct fe_statement *st)
{
    if (st == NULL)
        return;
    ASSERT(st->refs > 0);
    if (--st->refs > 0)
        return;
    pl_plan_unref(st->stmt.plan);
    st->stmt.plan = NULL;
    arena_reset(&st->arena);
    fe_pool_give_statement(s->worker->pool, st);
}

static struct fe_statement **statement_slot(struct fe_session *s, const char *name)
{
    if (s->bucket_count == 0)
        return NULL;
    struct fe_statement **p = &s->buckets[hash_name(name) & (s->bucket_count - 1)];
    while (*p != NULL && strcmp((*p)->name, name) != 0)
        p = &(*p)->next;
    return p;
}

struct fe_statement *fe_statement_find(struct fe_session *s, const char *name)
{
    if (name[0] == '\0')
        return s->unnamed;
    struct fe_statement **p = statement_slot(s, name);
    return p != NULL ? *p : NULL;
}

static void grow_buckets(struct fe_session *s)
{
    unsigned count = s->bucket_count == 0 ? 8 : s->bucket_count * 4;
    struct fe_statement **fresh = memory_new(MEMORY_SESSIONS, count * sizeof *fresh);
    for (unsigned i = 0; i < s->bucket_count; i++)
        for (struct fe_statement *st = s->buckets[i], *next; st != NULL; st = next) {
            next = st->next;
            struct fe_statement **home = &fresh[hash_name(st->name) & (count - 1)];
            st->next = *home;
            *home = st;
        }
    memory_free(MEMORY_SESSIONS, s->buckets, s->bucket_count * sizeof *s->buckets);
    s->buckets = fresh;
    s->bucket_count = count;
}

status fe_statement_name(struct fe_session *s, struct fe_statement *st, const char *name)
{
    struct err *err = &fe_work(s)->err;
    if (name[0] == '\0') {
        fe_statement_unref(s, s->unnamed);
        s->unnamed = st;
        st->refs++;
        return ST_OK;
    }
    if (fe_statement_find(s, name) != NULL)
        return err_set_state(err, ST_EXISTS, "42P05", "prepared statement \"%s\" already exists",
                             name);
    if (s->statement_count >= FE_STATEMENTS_MAX)
        return err_set_state(err, ST_LIMIT, "54000", "too many prepared statements in one session");
    if (s->statement_count >= s->bucket_count * 2)
        grow_buckets(s);
    st->name = arena_strdup(&st->arena, bytes_str(name));
    struct fe_statement **home = &s->buckets[hash_name(name) & (s->bucket_count - 1)];
    st->next = *home;
    *home = st;
    st->refs++;
    s->statement_count++;
    return ST_OK;
}

bool fe_statement_drop(struct fe_session *s, const char *name)
{
    if (name[0] == '\0') {
        bool was = s->unnamed != NULL;
        fe_statement_unref(s, s->unnamed);
        s->unnamed = NULL;
        return was;
    }
    struct fe_statement **p = statement_slot(s, name);
    if (p == NULL || *p == NULL)
        return false;
    struct fe_statement *st = *p;
    *p = st->next;
    s->statement_count--;
    fe_statement_unref(s, st);
    return true;
}

void fe_statement_drop_all(struct fe_session *s)
{
    for (unsigned i = 0; i < s->bucket_count; i++)
        while (s->buckets[i] != NULL) {
            struct fe_statement *st = s->buckets[i];
            s->buckets[i] = st->next;
            fe_statement_unref(s, st);
        }
    s->statement_count = 0;
}

/* -- portals ----------------------------------------------------------------------------------- */

struct fe_portal *fe_portal_new(struct fe_session *s, struct fe_statement *st)
{
    struct fe_portal *p = fe_pool_take_portal(s->worker->pool);
    p->refs = 1;
    p->statement = st;
    st->refs++;
    p->level = s->savepoint_count;
    return p;
}

static void portal_clear(struct fe_portal *p)
{
    size_t from = offsetof(struct fe_portal, refs), to = offsetof(struct fe_portal, bound);
    memset((char *)p + from, 0, to - from);
}

void fe_portal_unref(struct fe_session *s, struct fe_portal *p)
{
    if (p == NULL)
        return;
    ASSERT(p->refs > 0);
    if (--p->refs > 0)
        return;
    fe_statement_unref(s, p->statement);
    fe_portal_unref(s, p->parent);
    arena_reset(&p->arena);
    arena_reset(&p->page);
    obuf_reset(&p->store);
    obuf_shrink(&p->store, 16u * 1024u);
    portal_clear(p);
    fe_pool_give_portal(s->worker->pool, p);
}

static struct fe_portal **portal_slot(struct fe_session *s, const char *name)
{
    struct fe_portal **p = &s->portals;
    while (*p != NULL && strcmp((*p)->name, name) != 0)
        p = &(*p)->next;
    return p;
}

struct fe_portal *fe_portal_find(struct fe_session *s, const char *name)
{
    return *portal_slot(s, name);
}

status fe_portal_absent(struct fe_session *s, const char *name)
{
    if (fe_portal_find(s, name) == NULL)
        return ST_OK;
    return err_set_state(&fe_work(s)->err, ST_EXISTS, "42P03", "cursor \"%s\" already exists",
                         name);
}

status fe_portal_name(struct fe_session *s, struct fe_portal *p, const char *name)
{
    struct err *err = &fe_work(s)->err;
    if (name[0] == '\0')
        fe_portal_drop(s, name);
    else
        ST_TRY(fe_portal_absent(s, name));
    if (s->portal_count >= FE_PORTALS_MAX)
        return err_set_state(err, ST_LIMIT, "54000", "too many open cursors in one session");
    p->name = arena_strdup(&p->arena, bytes_str(name));
    p->next = s->portals;
    s->portals = p;
    p->refs++;
    s->portal_count++;
    return ST_OK;
}

static void portal_unlink(struct fe_session *s, struct fe_portal **slot)
{
    struct fe_portal *p = *slot;
    *slot = p->next;
    p->next = NULL;
    p->dropped = true;
    s->portal_count--;
    fe_portal_unref(s, p);
}

bool fe_portal_drop(struct fe_session *s, const char *name)
{
    struct fe_portal **slot = portal_slot(s, name);
    if (*slot == NULL)
        return false;
    portal_unlink(s, slot);
    return true;
}

void fe_portal_drop_others(struct fe_session *s, const struct fe_portal *kept)
{
    for (struct fe_portal **p = &s->portals; *p != NULL;) {
        if (*p != kept)
            portal_unlink(s, p);
        else
            p = &(*p)->next;
    }
}

void fe_portal_drop_all(struct fe_session *s, bool all, unsigned level)
{
    for (struct fe_portal **p = &s->portals; *p != NULL;) {
        if ((all || !(*p)->hold) && (*p)->level >= level)
            portal_unlink(s, p);
        else
            p = &(*p)->next;
    }
}
