/*
 * planner/relations/session_rows.c — the server's sessions: pg_stat_activity and its kin, and the
 * functions that end what a session does.
 *
 * The sessions were written down before the query began (pl_context.sessions). What a session of
 * another role does is for superusers to see, and to end; who is there is for everybody.
 */
#include "planner/relations/pg_rows.h"

#define N cell_null()
#define I(x) cell_int((int64_t)(x))
#define T(x) cell_str(x)
#define EMIT(b, ...)                                                                               \
    do {                                                                                           \
        const struct cell cells_[] = {__VA_ARGS__};                                                \
        rel_emit((b), cells_, ARRAY_LEN(cells_));                                                  \
    } while (0)

/* Those that there are; without a server, the asking one alone. */
static const struct pl_sessions *sessions_of(struct rel_env *env)
{
    const struct pl_context *ctx = env->ctx;
    if (ctx->sessions)
        return ctx->sessions;
    struct pl_session *s = ARENA_NEW(env->arena, struct pl_session);
    *s = (struct pl_session){.number = ctx->backend_pid,
                             .user = ctx->user,
                             .database = ctx->database,
                             .application_name = ctx->application_name,
                             .state = PL_SESSION_ACTIVE,
                             .transaction_start = ctx->now,
                             .query_start = ctx->now};
    struct pl_sessions *all = ARENA_NEW(env->arena, struct pl_sessions);
    *all = (struct pl_sessions){.rows = s, .count = 1};
    return all;
}

static struct cell time_or_null(int64_t t)
{
    return t ? I(t) : N;
}

static struct cell database_oid(struct rel_env *env, const char *name)
{
    unsigned count;
    const struct rel_database *d = rel__database_list(env, &count);
    for (unsigned i = 0; i < count; i++)
        if (name && strcmp(d[i].name, name) == 0)
            return I(d[i].oid);
    return N;
}

static struct cell role_oid(struct rel_env *env, const char *name)
{
    unsigned count;
    const struct rel_role *r = rel__role_list(env, &count);
    for (unsigned i = 0; i < count; i++)
        if (name && strcmp(r[i].name, name) == 0)
            return I(r[i].oid);
    return N;
}

/* May the asking session see what S does? */
static bool may_see(struct rel_env *env, const struct pl_session *s)
{
    const char *me = env->ctx->user;
    return (me && s->user && strcmp(me, s->user) == 0) || rel__session_is_superuser(env);
}

void rel__stat_activity(struct rel_build *b)
{
    static const char *const states[] = {
        [PL_SESSION_IDLE] = "idle",
        [PL_SESSION_ACTIVE] = "active",
        [PL_SESSION_IDLE_IN_TRANSACTION] = "idle in transaction",
        [PL_SESSION_IDLE_IN_FAILED] = "idle in transaction (aborted)",
    };
    const struct pl_sessions *all = sessions_of(b->env);
    for (unsigned i = 0; i < all->count; i++) {
        const struct pl_session *s = &all->rows[i];
        struct cell database = database_oid(b->env, s->database), role = role_oid(b->env, s->user);
        if (!may_see(b->env, s)) {
            EMIT(b, database, T(s->database), I(s->number), N, role, T(s->user),
                 T(s->application_name), N, N, N, N, N, N, N, N, N, N, N, N, N,
                 T("<insufficient privilege>"), N);
            continue;
        }
        EMIT(b, database, T(s->database), I(s->number), N, role, T(s->user), T(s->application_name),
             T(s->client_address), N, s->client_address ? I(s->client_port) : N,
             time_or_null(s->since), time_or_null(s->transaction_start),
             time_or_null(s->query_start), time_or_null(s->state_change), T(s->wait_type),
             T(s->wait_event), T(states[s->state]), N, N, N, cell_bytes(s->query),
             T("client backend"));
    }
}

void rel__stat_ssl(struct rel_build *b)
{
    const struct pl_sessions *all = sessions_of(b->env);
    for (unsigned i = 0; i < all->count; i++)
        EMIT(b, I(all->rows[i].number), I(all->rows[i].tls), N, N, N, N, N, N);
}

/* Sessions are counted; what else PostgreSQL keeps is not kept. */
void rel__stat_database(struct rel_build *b)
{
    unsigned count;
    const struct rel_database *d = rel__database_list(b->env, &count);
    const struct pl_sessions *all = sessions_of(b->env);
    for (unsigned i = 0; i < count; i++) {
        int64_t here = 0;
        for (unsigned k = 0; k < all->count; k++)
            here += all->rows[k].database && strcmp(all->rows[k].database, d[i].name) == 0;
        EMIT(b, I(d[i].oid), T(d[i].name), I(here), N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N,
             N, N, N, N, N, N, N, N, N);
    }
}

bool rel__is_of_sessions(void (*rows)(struct rel_build *b))
{
    return rows == rel__stat_activity || rows == rel__stat_ssl || rows == rel__stat_database;
}

/* ---- signals ---- */

static bool denied(struct rel_env *env, const struct pl_session *s, bool terminate)
{
    if (s->superuser)
        return rel_fail(env, ST_DENIED, "42501", "must be a superuser to %s superuser %s",
                        terminate ? "terminate" : "cancel", terminate ? "process" : "query");
    return rel_fail(env, ST_DENIED, "42501",
                    "must be a member of the role whose %s or member of pg_signal_backend",
                    terminate ? "process is being terminated" : "query is being canceled");
}

static bool send_signal(struct rel_env *env, int64_t number, bool terminate, struct cell *out)
{
    const struct pl_sessions *all = sessions_of(env);
    const struct pl_session *s = NULL;
    for (unsigned i = 0; i < all->count; i++)
        if (all->rows[i].number == number)
            s = &all->rows[i];
    *out = I(s != NULL);
    if (!s) {
        if (env->ctx->warn)
            env->ctx->warn(env->ctx->arg,
                           arena_printf(env->arena, "PID %lld is not a PostgreSQL backend process",
                                        (long long)number));
        return true;
    }
    if (s->superuser ? !rel__session_is_superuser(env) : !may_see(env, s))
        return denied(env, s, terminate);
    if (!env->ctx->signal)
        return rel_fail(env, ST_UNSUPPORTED, "0A000", "there are no sessions here");
    env->ctx->signal(env->ctx->arg, s->number, terminate);
    return true;
}

static bool fn_cancel_backend(struct rel_env *env, const struct cell *args, unsigned count,
                              struct cell *out)
{
    UNUSED(count);
    return send_signal(env, args[0].i, false, out);
}
static bool fn_terminate_backend(struct rel_env *env, const struct cell *args, unsigned count,
                                 struct cell *out)
{
    if (count > 1 && args[1].i < 0)
        return rel_fail(env, ST_INVALID, "22023", "\"timeout\" must not be negative");
    if (count > 1 && args[1].i > 0)
        return rel_fail(env, ST_UNSUPPORTED, "0A000",
                        "waiting for the end of a session is not supported here");
    return send_signal(env, args[0].i, true, out);
}

bool rel__signals(rel_call *call)
{
    return call == fn_cancel_backend || call == fn_terminate_backend;
}

const struct rel_function rel_session_functions[] = {
    {"pg_cancel_backend", "i", OID_BOOL, false, fn_cancel_backend},
    {"pg_terminate_backend", "i?i", OID_BOOL, false, fn_terminate_backend},
};
const unsigned rel_session_function_count = ARRAY_LEN(rel_session_functions);
