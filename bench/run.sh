#!/bin/sh
# Makes .venv-bench with FDB and the Fieldstone that `make build` left, builds bench/floor, and measures.
# Arguments go to bench/run.py: `bench/run.sh --quick`, `bench/run.sh --only flush`, `bench/run.sh --help`.
set -eu
cd "$(dirname "$0")/.."
venv=.venv-bench

if ! cmp -s bench/requirements.txt "$venv/requirements.txt" 2>/dev/null; then
    "${PYTHON:-python3}" -m venv "$venv"
    echo '*' >"$venv/.gitignore"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r bench/requirements.txt
    cp bench/requirements.txt "$venv/requirements.txt"
fi

# The wheel is packed from what `make build` compiled; nothing is compiled again.
if [ -e .venv/.built ]; then
    if [ ! -e "$venv/.fieldstone" ] || [ .venv/.built -nt "$venv/.fieldstone" ]; then
        rm -rf "$venv/wheels"
        PATH="$PWD/.venv/bin:$PATH" PYO3_PYTHON="$PWD/.venv/bin/python" .venv/bin/python -m pip wheel --quiet \
            --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$venv/wheels" .
        "$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$venv"/wheels/*.whl
        touch "$venv/.fieldstone"
    fi
else
    echo "bench: run 'make build' first to measure Fieldstone" >&2
fi

cargo build --release --quiet --locked -p fieldstone-array --examples
cargo build --release --quiet --locked -p fieldstone-slots --example slots
cargo build --release --quiet --locked -p fieldstone-capi
cargo build --release --quiet --locked -p fieldstone --example sharing --example graph_scan
cargo build --release --quiet --locked --manifest-path bench/floor/Cargo.toml --target-dir bench/floor/target
exec "$venv/bin/python" bench/run.py "$@"
