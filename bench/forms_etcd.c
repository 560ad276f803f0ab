/*
 * bench/forms_etcd.c — the work on etcd, without the counter: an upper bound, not the same work.
 *
 * etcd has no increment. An exact num_children needs a read, a guard on its revision and a retry
 * for each conflict; here a mutation puts the directory's attributes blindly, so that nothing
 * conflicts.
 */
#include "workload.h"

#define ROW(kind) kind ",420,1000,1000,0,1700000000000000,1700000000000000,$i"

const struct form forms_etcd[] = {
    {"create", "nocounter", 1, {"txn !m/$p/$n +m/$p/$n=" ROW("f") " +a/$p=$i"}},
    {"mkdir", "nocounter", 1, {"txn !m/$p/$n +m/$p/$n=" ROW("d") " +a/$i=$p +a/$p=$i"}},
    {"delete", "nocounter", 1, {"txn ?m/$p/$n -m/$p/$n +a/$p=$i"}},
    {"rmdir", "nocounter", 1, {"txn ?m/$p/$n -a/$i -m/$p/$n +a/$p=$i"}},
    {"rename",
     "nocounter",
     1,
     {"txn ?m/$p/$n !m/$d/$n -m/$p/$n +m/$d/$n=" ROW("f") " +a/$p=$i +a/$d=$i"}},
    {"dirstat", "", 1, {"range a/$p"}},
    {"lookup", "", 1, {"range m/$p/$n"}},
    {"listdir", "", 1000, {"page m/$p/$a m/$p0 1000"}},
    {"upsert", "", 0, {"put $k $v"}},
    {0},
};
