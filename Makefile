# A thin wrapper over CMake and the scripts of tools/ and tests/.
#
#   make run        build and start a single node on 127.0.0.1:7432, its data in ./data
#   make demo-sql   a short tour through psql, against the running node or a temporary one
#   make test       every test; the last line is "N passed, N failed"
#   make lint       the style checks alone

DATA ?= ./data
LISTEN ?= 127.0.0.1:7432
CONFIG ?=
HOST = $(firstword $(subst :, ,$(LISTEN)))
PORT = $(lastword $(subst :, ,$(LISTEN)))

.PHONY: all deps build run demo-sql test lint clean

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
	@tests/run-all

lint: deps
	@tools/lint

clean:
	rm -rf build
