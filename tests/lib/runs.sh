# Sourced by lanes that run programs of several minutes: one result line per program.

# lane_build PRESET TARGET...: configures once; a failed build ends the lane.
lane_build() {
    local preset=$1 log=build/test-logs/lane-build-$1.log
    shift
    mkdir -p build/test-logs
    if ! { { [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset"; } &&
        cmake --build "build/$preset" -j "$(nproc)" --target "$@"; } >"$log" 2>&1; then
        tail -n 20 "$log"
        echo "FAIL lane-build see $log"
        exit 1
    fi
}

# lane_run NAME PROGRAM ARGUMENT...: status 0 is ok, 77 is skipped, anything else a failure.
lane_run() {
    local name=$1 log=build/test-logs/$1.log begin=$SECONDS rc
    shift
    timeout -k 20 1500 "$@" >"$log" 2>&1
    rc=$?
    sed 's/^/  /' "$log" | tail -n 45
    case $rc in
        0) echo "ok $name $((SECONDS - begin)) s" ;;
        77) echo "skip $name $(tail -n 1 "$log")" ;;
        *) echo "FAIL $name status $rc, see $log" ;;
    esac
}
