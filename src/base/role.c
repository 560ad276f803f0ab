/* base/role.c — the tokens of role.h, which only the compiler looks at. */
#include "base/role.h"

struct thread_role role_net, role_shard, role_log, role_bg;
