# A thin wrapper over CMake and the scripts of tools/ and tests/.
#
#   make run        build and start a single node on 127.0.0.1:7432, its data in ./data
#   make demo-sql   a short tour through psql, against the running node or a temporary one
#   make test       every test; the last line is "N passed, N failed"
#   make crash      200 kills under load, damaged logs, full disks; make power: 200 power cuts
#   make differential  2,000 sequences of messages, answered as PostgreSQL 15 answers them
#   make demo       three nodes on this machine, until Ctrl-C; make cluster-soak: 15 minutes of faults
#   make soak       simulated nodes, seed after seed, SOAK_HOURS=1; goes on where it was stopped
#   make store-soak  10^7 random steps on the store against an array; goes on where it was stopped
#   make lint       the style checks alone
#   make bench      metadb beside PostgreSQL, Redis and etcd, in less than 15 minutes; bench-quick: 4
#   make gate       instructions and calls per statement against bench/gates/baseline.txt

DATA ?= ./data
LISTEN ?= 127.0.0.1:7432
CONFIG ?=
BENCH_OUT ?= build/bench.txt
HOST = $(firstword $(subst :, ,$(LISTEN)))
PORT = $(lastword $(subst :, ,$(LISTEN)))

.PHONY: all deps build run demo-sql test crash power cluster-soak demo differential soak store-soak lint bench-deps bench bench-quick gate clean

all: build

deps:
	@tools/deps

build: deps
	@[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
	@cmake --build build/release

run: build
	@echo "connect with: psql -h $(HOST) -p $(PORT) -U metadb metadb"
	@exec build/release/metadb start --data $(DATA) --listen $(LISTEN) $(if $(CONFIG),--config $(CONFIG))

demo-sql: build
	@tools/demo-sql $(HOST) $(PORT)

test: deps
	@tools/deps clients
	@tests/run-all

crash: deps
	@METADB_CRASH_KILLS=200 tests/lanes/50-crash

power: deps
	@METADB_POWER_CUTS=200 tests/lanes/55-power

differential: deps
	@METADB_DIFFERENTIAL_COUNT=2000 tests/lanes/42-differential

demo: build
	@exec build/release/metadb demo

cluster-soak: deps
	@METADB_CLUSTER_MINUTES=15 tests/lanes/52-cluster

SOAK_HOURS ?= 1
soak: deps
	@tests/sim/soak $(SOAK_HOURS)

STORE_SECONDS ?= 170
STORE_SEED ?= 1
store-soak: deps
	@[ -f build/debug/build.ninja ] || cmake --preset debug >/dev/null
	@cmake --build build/debug --target test_kv_store >/dev/null
	@METADB_STORE_STEPS=10000000 METADB_STORE_SECONDS=$(STORE_SECONDS) METADB_STORE_SEED=$(STORE_SEED) \
	    METADB_STORE_DIR=build/store-soak-$(STORE_SEED) build/debug/tests/unit/kv/test_kv_store

lint: deps
	@tools/lint

bench-deps:
	@tools/deps bench

bench: build bench-deps
	@bench/run --minutes 14.5 --out $(BENCH_OUT)

bench-quick: build bench-deps
	@bench/run --quick --minutes 3.5 --out $(BENCH_OUT)

gate: build
	@bench/gate

clean:
	rm -rf build
