# Sourced by lanes that need a server: lane_server PRESET sets port and pid; lane_stop ends it and looks
# at what the sanitizers said. Lines of other programs are passed on by lane_lines, with a name before.

lane_dir=$(mktemp -d)
pid=
lane_failed=0

lane_cleanup() {
    [ -n "$pid" ] && kill "$pid" 2>/dev/null
    rm -rf "$lane_dir"
}
trap lane_cleanup EXIT

# lane_shared PATH: where it is, or nothing.
lane_shared() {
    local root=${METADB_SHARED:-$PWD/../shared}
    [ -d "$root/$1" ] && (cd "$root/$1" && pwd)
}

# lane_server PRESET [FLAG...]: builds, starts on a free port, waits until it says that it is ready.
lane_server() {
    local preset=$1 log=build/test-logs/lane-build-$1.log
    shift
    mkdir -p build/test-logs
    if ! { { [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset"; } &&
        cmake --build "build/$preset" --target metadb -j "$(nproc)"; } >"$log" 2>&1; then
        tail -n 20 "$log"
        echo "FAIL server-build see $log"
        exit 1
    fi
    ulimit -n 8192 2>/dev/null
    # The server takes METADB_* for settings; those of the tests are none.
    local unset=()
    for name in $(compgen -e METADB_); do
        [ "$name" = METADB_FAULT ] || unset+=(-u "$name")
    done
    ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
        LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp:print_suppressions=0 \
        env "${unset[@]}" "build/$preset/src/metadb" start --data "$lane_dir/data" --listen 127.0.0.1:0 "$@" \
        >"$lane_dir/out" 2>"$lane_dir/err" </dev/null &
    pid=$!
    for _ in $(seq 600); do
        grep -qs ready "$lane_dir/out" && break
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    port=$(sed -n 's/.*ready on [^ ]*:\([0-9]*\) .*/\1/p' "$lane_dir/out")
    if [ -z "$port" ]; then
        tail -n 20 "$lane_dir/err"
        echo "FAIL server-start it did not say that it is ready"
        exit 1
    fi
}

# lane_lines NAME COMMAND...: its ok, FAIL and skip lines; a failure without a line is one, too.
lane_lines() {
    local name=$1 rc
    shift
    "$@" >"$lane_dir/lines" 2>&1
    rc=$?
    grep -E '^(ok|FAIL|skip) ' "$lane_dir/lines"
    if [ $rc -ne 0 ] && ! grep -q '^FAIL ' "$lane_dir/lines"; then
        tail -n 5 "$lane_dir/lines"
        echo "FAIL $name exit status $rc"
    fi
}

# The server must end by itself when asked to, with nothing to say about memory.
lane_stop() {
    kill "$pid" 2>/dev/null
    local rc
    wait "$pid"
    rc=$?
    pid=
    if [ $rc -eq 0 ] && ! grep -qE 'Sanitizer|runtime error|assertion' "$lane_dir/err"; then
        echo "ok server-stop"
    else
        grep -E -A 15 'Sanitizer|runtime error|assertion' "$lane_dir/err" | head -n 60
        echo "FAIL server-stop exit status $rc"
    fi
}
