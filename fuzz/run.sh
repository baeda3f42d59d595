#!/bin/sh
# Runs parsers under coverage guidance: run.sh [seconds] [further libFuzzer options]. TARGET=parsers, the default, are those
# of containers, TARGET=stores those of stores.
# Needs a Rust toolchain (stable does) and a C++ compiler. A finding is left in artifacts/.
set -e
cd "$(dirname "$0")"
seconds=${1:-1200}
[ $# -gt 0 ] && shift
target=${TARGET:-parsers}
case $target in
    parsers) seeds=seeds ;;
    *) seeds=store_seeds ;;
esac
level="-Cllvm-args=-sanitizer-coverage"
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module $level-level=4 $level-inline-8bit-counters $level-pc-table $level-trace-compares -Ccodegen-units=1" \
    cargo build --release --bin "$target" --target-dir ../target/fuzz --target "$(rustc -vV | sed -n 's/^host: //p')"
mkdir -p "corpus/$target" artifacts
[ "${BUILD_ONLY:-}" ] && exit
exec ../target/fuzz/*/release/"$target" "corpus/$target" "$seeds" -artifact_prefix=artifacts/ -max_total_time="$seconds" \
    -rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=10 -max_len=20480 -print_final_stats=1 "$@"
