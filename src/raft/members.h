/*
 * raft/members.h — who belongs to a group, and the codec of that list.
 *
 * A membership entry holds the whole list, not a difference: what is in force at an index is the
 * last such entry at or below it. Votes and commits count voters only; a learner gets the log.
 */
#ifndef RAFT_MEMBERS_H
#define RAFT_MEMBERS_H

#include "base/buf.h"
#include "base/codec.h"
#include "base/status.h"

#define RAFT_VOTERS_MAX 7u
#define RAFT_MEMBERS_MAX 12u

enum raft_member_role { RAFT_VOTER = 1, RAFT_LEARNER = 2 };

struct raft_member {
    uint64_t id; /* of the replica; never 0; one whose disk is lost never comes back under it */
    enum raft_member_role role;
};

struct raft_members {
    unsigned count;
    struct raft_member at[RAFT_MEMBERS_MAX];
};

enum raft_change_kind {
    RAFT_ADD_LEARNER = 1,
    RAFT_ADD_VOTER, /* adds, or promotes a learner */
    RAFT_DEMOTE,    /* a voter becomes a learner */
    RAFT_REMOVE,
};

unsigned raft_members_voters(const struct raft_members *m);
/* Position of ID, or RAFT_MEMBERS_MAX. */
unsigned raft_members_find(const struct raft_members *m, uint64_t id);
bool raft_members_equal(const struct raft_members *a, const struct raft_members *b);
/* OUT is M after one change. ST_EXISTS: it is so already; ST_NOT_FOUND: no such member; ST_LIMIT:
 * too many; ST_INVALID: id 0, or no voter would remain. */
NODISCARD status raft_members_change(const struct raft_members *m, enum raft_change_kind kind,
                                     uint64_t id, struct raft_members *out);

void raft_members_put(struct obuf *out, const struct raft_members *m);
/* A list that cannot be sets R->bad. */
void raft_members_get(struct reader *r, struct raft_members *out);
/* One reference, the caller's. */
struct buf *raft_members_encode(const struct raft_members *m);
/* ST_CORRUPT if it is not a membership list. */
NODISCARD status raft_members_decode(bytes src, struct raft_members *out);

#endif
