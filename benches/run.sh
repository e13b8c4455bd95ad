#!/bin/sh
# Builds the program as users get it, static, and measures it: benches/run.sh, or one bench: benches/run.sh --bench scan
set -eu
cd "$(dirname "$0")/.."
target=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" cargo build --quiet --profile dist --target "$target"
FORKHESTRA_BENCH_BIN=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/$target/dist/forkhestra cargo bench --quiet "$@"
