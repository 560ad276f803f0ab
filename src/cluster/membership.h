/*
 * cluster/membership.h — who belongs to a shard, changed while it serves.
 *
 *   cl_member_add     learner ── caught up ──▶ voter      by whoever leads meanwhile
 *   cl_member_remove  gone, at once
 *
 * The list is an entry of the shard's log, in force when it is appended, and one member differs at
 * a time (raft/member.c). What an added replica gets is the log or a snapshot, as any follower. A
 * replica that was removed keeps what it has; its node says so and does nothing with it.
 *
 * Owner: reactor 0 (role_shard).
 */
#ifndef CLUSTER_MEMBERSHIP_H
#define CLUSTER_MEMBERSHIP_H

#include "cluster/host.h"

enum cl_standing { CL_STANDING_NONE, CL_STANDING_LEARNER, CL_STANDING_VOTER };
/* What NODE is in S: by what is committed, or by what is in force. */
enum cl_standing cl_member_standing(const struct cl_shard *s, uint64_t node, bool committed);
const char *cl_standing_name(enum cl_standing standing); /* "none", "learner", "voter" */

/* S leads here. NODE shall have a replica; one that is a learner already stays one until it has
 * caught up. ST_INVALID: 42710 it has one, 42704 the node is not listed; ST_LOCKED: 55006 a change
 * or transfer is under way, 55000 the node is not there, or has a replica on a disk that it lost;
 * ST_LIMIT (54000); ST_DISK_FULL, ST_NO_MEMORY. */
NODISCARD status cl_member_add(struct cl_shard *s, uint64_t node, struct err *err);
/* S leads here. NODE shall have none. ST_INVALID: 42704 it has none; ST_LOCKED: 55006 as above,
 * 55000 this node leads, or too few of the others are there to be a majority; as above. */
NODISCARD status cl_member_remove(struct cl_shard *s, uint64_t node, struct err *err);

/* Once in a while: learners that have caught up become voters. */
void cl_members_maintain(struct cl_host *h);
/* Has S, which leads here, a learner? */
bool cl_members_waiting(const struct cl_shard *s);

/* FROM, which is no member, asks for votes: it is told who the members are. */
void cl_member_tell(struct cl_shard *s, uint64_t from);
/* Is it such a word? Then it is taken: S does not belong, if it is newer than what S knows. */
bool cl_member_told(struct cl_shard *s, uint64_t node, bytes payload);

#endif
