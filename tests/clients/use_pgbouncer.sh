#!/usr/bin/env bash
# PgBouncer between psql, pgbench and the server: pooling by transaction and by session.
set -u
unset PGCHANNELBINDING # the way to PgBouncer is in the clear
folder=$(mktemp -d)
bouncer=
failed=0
cleanup() {
    [ -n "$bouncer" ] && kill "$bouncer" 2>/dev/null && wait "$bouncer" 2>/dev/null
    rm -rf "$folder"
}
trap cleanup EXIT

ok() { echo "ok pgbouncer $1"; }
fail() { echo "FAIL pgbouncer $1 $(printf '%s' "$2" | tr '\n' ' ' | cut -c1-300)"; failed=1; }
# is STEP GOT WANT
is() { if [ "$2" = "$3" ]; then ok "$1"; else fail "$1" "got <$2> want <$3>"; fi; }

unpacked=$(cd "$(dirname "$0")/../.." && pwd)/build/clients/usr/sbin
export PATH=$PATH:/usr/sbin:$unpacked
command -v pgbouncer >/dev/null || { fail install "pgbouncer is not installed"; exit 1; }

# free_port: one that nobody listens on
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# bouncer_start MODE POOL_SIZE: to the server of the environment; its own port is in $door
bouncer_start() {
    door=$(free_port)
    cat >"$folder/pgbouncer.ini" <<EOF
[databases]
$PGDATABASE = host=127.0.0.1 port=$PGPORT dbname=$PGDATABASE
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $door
unix_socket_dir =
auth_type = trust
auth_file = $folder/users
admin_users = $PGUSER
pool_mode = $1
default_pool_size = $2
max_client_conn = 100
server_check_delay = 0
server_tls_sslmode = ${TLS_MODE}
${TLS_CA:+server_tls_ca_file = $folder/ca.pem}
EOF
    printf '"%s" "%s"\n' "$PGUSER" "${PGPASSWORD:-}" >"$folder/users"
    [ -n "${TLS_CA:-}" ] && cp "$TLS_CA" "$folder/ca.pem"
    chmod -R a+rX "$folder"
    local as=()
    [ "$(id -u)" -eq 0 ] && as=(-u nobody) # it does not run as root
    pgbouncer -q "${as[@]}" "$folder/pgbouncer.ini" >"$folder/log" 2>&1 &
    bouncer=$!
    for _ in $(seq 100); do
        PGSSLMODE=disable pg_isready -q -h 127.0.0.1 -p "$door" && return
        kill -0 "$bouncer" 2>/dev/null || break
        sleep 0.1
    done
    fail "start-$1" "$(tail -n 3 "$folder/log")"
    exit 1
}
bouncer_stop() {
    kill "$bouncer"
    wait "$bouncer" 2>/dev/null
    bouncer=
}
# through [ARGUMENT...]: psql by way of the bouncer
through() { PGSSLMODE=disable psql -XAtq -h 127.0.0.1 -p "$door" "$@" 2>&1; }

TLS_MODE=disable
TLS_CA=
[ "${PGSSLMODE:-disable}" = disable ] || { TLS_MODE=verify-ca; TLS_CA=$PGSSLROOTCERT; }

directory=$((200000000000000 + $$ * 1000000))
through_server() { psql -XAtq "$@"; }
through_server -c "INSERT INTO meta (pid, name, id, type) VALUES (0, 'client_pgbouncer_$$', $directory, 'd')"

bouncer_start transaction 2
is select "$(through -c 'SELECT 1')" 1
is settings-of-each-client \
    "$(for i in 1 2 3 4 5 6; do
        PGTZ=Etc/GMT-$i PGAPPNAME=app$i through -c 'SHOW application_name' -c 'SHOW TimeZone' &
    done | sort | tr '\n' ' ')" \
    "Etc/GMT-1 Etc/GMT-2 Etc/GMT-3 Etc/GMT-4 Etc/GMT-5 Etc/GMT-6 app1 app2 app3 app4 app5 app6 "
insert="INSERT INTO meta (pid, name) VALUES ($directory,"
is rolled-back "$(through -c 'BEGIN' -c "$insert 'a')" -c 'SELECT 1/0 FROM nothere' -c 'COMMIT' \
    -c "SELECT count(*) FROM meta WHERE pid = $directory AND name <> '_attr_'" | tail -n 1)" 0
# A client that is gone inside a transaction: the bouncer ends the connection, nothing of it stays.
through -c 'BEGIN' -c "$insert 'b')" >/dev/null
is gone-inside "$(through -c "SELECT count(*) FROM meta WHERE pid = $directory AND name <> '_attr_'")" 0
is committed "$(through -c "BEGIN; $insert 'c'); COMMIT; SELECT count(*) FROM meta WHERE pid = $directory AND name <> '_attr_'")" 1
is copy "$(printf '%s\tx1\n%s\tx2\n' "$directory" "$directory" | through -c 'COPY meta (pid, name) FROM STDIN' \
    -c "SELECT count(*) FROM meta WHERE pid = $directory AND name LIKE 'x%'")" 2
PGSSLMODE=disable psql -XAtq -h 127.0.0.1 -p "$door" -c 'SELECT pg_sleep(60)' >"$folder/slow" 2>&1 &
slow=$!
# It starts at some time: asked to stop again and again until it does, once it is psql.
until [ "$(cat /proc/$slow/comm 2>/dev/null)" = psql ]; do sleep 0.05; done
while kill -INT $slow 2>/dev/null; do sleep 0.2; done
wait $slow
grep -q 'canceling statement due to user request' "$folder/slow" && ok cancel || fail cancel "$(cat "$folder/slow")"

cat >"$folder/script" <<EOF
\\set n random(1, 5)
BEGIN;
SELECT name, size FROM meta WHERE pid = $directory AND name > 'a' AND name < 'z' ORDER BY name LIMIT :n;
SELECT name FROM meta WHERE pid = $directory AND name = 'c';
END;
EOF
for mode in simple extended; do
    PGSSLMODE=disable pgbench -n -M $mode -f "$folder/script" -c 10 -j 2 -t 50 -h 127.0.0.1 -p "$door" >"$folder/pgbench" 2>&1 &&
        grep -q 'actually processed: 500/500' "$folder/pgbench" && ok "pgbench-$mode" || fail "pgbench-$mode" "$(tail -n 5 "$folder/pgbench")"
done
is few-server-connections "$(through -d pgbouncer -c 'SHOW SERVERS' | grep -c "^S|$PGUSER|$PGDATABASE|" | awk '{print ($1 >= 1 && $1 <= 2)}')" 1
bouncer_stop

bouncer_start session 1
is session-prepares "$(through -c "PREPARE p AS SELECT name FROM meta WHERE pid = $directory AND name = \$1" -c "EXECUTE p ('c')" -c "SET application_name = 'left'")" c
# DISCARD ALL at release: nothing of the last client is left on the one connection.
is session-discards "$(through -c 'EXECUTE p (1)' -c 'SHOW application_name' | tr '\n' ' ')" 'ERROR:  prepared statement "p" does not exist psql '
PGSSLMODE=disable pgbench -n -M prepared -f "$folder/script" -c 1 -t 50 -h 127.0.0.1 -p "$door" >"$folder/pgbench" 2>&1 &&
    grep -q 'actually processed: 50/50' "$folder/pgbench" && ok pgbench-prepared || fail pgbench-prepared "$(tail -n 5 "$folder/pgbench")"
bouncer_stop

through_server -c "DELETE FROM meta WHERE pid = $directory AND name >= 'a' AND name < 'z'" -c "DELETE FROM meta WHERE pid = 0 AND name = 'client_pgbouncer_$$'"
exit $failed
