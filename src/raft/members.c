/*
 * raft/members.c — lists of members: a change, and the bytes.
 *
 *   u8 version (1)  varint count  then per member: varint id, u8 role
 *
 * A list that was decoded is sound: one to RAFT_MEMBERS_MAX members, ids different and not 0, one
 * to RAFT_VOTERS_MAX voters.
 */
#include "raft/members.h"

#include "base/assert.h"

#define MEMBERS_VERSION 1u

unsigned raft_members_voters(const struct raft_members *m)
{
    unsigned voters = 0;
    for (unsigned i = 0; i < m->count; i++)
        voters += m->at[i].role == RAFT_VOTER;
    return voters;
}

unsigned raft_members_find(const struct raft_members *m, uint64_t id)
{
    for (unsigned i = 0; i < m->count; i++) {
        if (m->at[i].id == id)
            return i;
    }
    return RAFT_MEMBERS_MAX;
}

bool raft_members_equal(const struct raft_members *a, const struct raft_members *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++) {
        if (a->at[i].id != b->at[i].id || a->at[i].role != b->at[i].role)
            return false;
    }
    return true;
}

static status member_set(struct raft_members *m, unsigned at, uint64_t id,
                         enum raft_member_role role)
{
    if (at == RAFT_MEMBERS_MAX) {
        if (m->count == RAFT_MEMBERS_MAX)
            return ST_LIMIT;
        at = m->count++;
    } else if (m->at[at].role == role) {
        return ST_EXISTS;
    }
    m->at[at] = (struct raft_member){.id = id, .role = role};
    return raft_members_voters(m) <= RAFT_VOTERS_MAX ? ST_OK : ST_LIMIT;
}

status raft_members_change(const struct raft_members *m, enum raft_change_kind kind, uint64_t id,
                           struct raft_members *out)
{
    unsigned at = raft_members_find(m, id);

    *out = *m;
    if (id == 0)
        return ST_INVALID;
    switch (kind) {
    case RAFT_ADD_LEARNER:
        if (at != RAFT_MEMBERS_MAX)
            return ST_EXISTS;
        return member_set(out, at, id, RAFT_LEARNER);
    case RAFT_ADD_VOTER: return member_set(out, at, id, RAFT_VOTER);
    case RAFT_DEMOTE:
    case RAFT_REMOVE: break;
    default: return ST_INVALID;
    }
    if (at == RAFT_MEMBERS_MAX)
        return ST_NOT_FOUND;
    if (kind == RAFT_DEMOTE) {
        ST_TRY(member_set(out, at, id, RAFT_LEARNER));
    } else {
        out->count--;
        for (unsigned i = at; i < out->count; i++)
            out->at[i] = out->at[i + 1];
    }
    return raft_members_voters(out) > 0 ? ST_OK : ST_INVALID;
}

void raft_members_put(struct obuf *out, const struct raft_members *m)
{
    ASSERT(m->count <= RAFT_MEMBERS_MAX);
    put_u8(out, MEMBERS_VERSION);
    put_varint(out, m->count);
    for (unsigned i = 0; i < m->count; i++) {
        put_varint(out, m->at[i].id);
        put_u8(out, (uint8_t)m->at[i].role);
    }
}

static bool members_sound(const struct raft_members *m)
{
    for (unsigned i = 0; i < m->count; i++) {
        if (m->at[i].id == 0 || raft_members_find(m, m->at[i].id) != i)
            return false;
        if (m->at[i].role != RAFT_VOTER && m->at[i].role != RAFT_LEARNER)
            return false;
    }
    unsigned voters = raft_members_voters(m);
    return voters >= 1 && voters <= RAFT_VOTERS_MAX;
}

void raft_members_get(struct reader *r, struct raft_members *out)
{
    *out = (struct raft_members){0};
    if (get_u8(r) != MEMBERS_VERSION)
        r->bad = true;
    uint64_t count = get_varint(r);
    if (r->bad || count > RAFT_MEMBERS_MAX) {
        r->bad = true;
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        out->at[i].id = get_varint(r);
        out->at[i].role = (enum raft_member_role)get_u8(r);
    }
    out->count = (unsigned)count;
    if (!members_sound(out))
        r->bad = true;
}

struct buf *raft_members_encode(const struct raft_members *m)
{
    struct obuf out;
    obuf_init(&out);
    raft_members_put(&out, m);
    struct buf *b = buf_copy(bytes_make(out.data, out.size));
    obuf_fini(&out);
    return b;
}

status raft_members_decode(bytes src, struct raft_members *out)
{
    struct reader r = reader_make(src);
    raft_members_get(&r, out);
    return codec_finish(&r);
}
