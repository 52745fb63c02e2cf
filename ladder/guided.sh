#!/usr/bin/env bash
# Rung 11: builds the ladder with a profile of how its last rungs run, and with another allocator; prints the folder. The method is
# that of lab/guided.sh, explained in docs/profile-guided.md: build with counters, train, build again by what they counted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
host=$(rustc -vV | sed -n 's/^host: //p')
pgo=$target/ladder-guided
sources=(Cargo.lock Cargo.toml ladder/Cargo.toml ladder/src ladder/guided.sh)
key=$({ rustc -vV; git ls-files --stage -- "${sources[@]}"; git diff -- "${sources[@]}"; } | sha256sum | cut -c1-16)
profile=$pgo/$key.profdata
merge=$(rustc --print target-libdir)/../bin/llvm-profdata

fail() {
    printf 'error: %s\nhelp: %s\n' "$1" "$2" >&2
    exit 1
}

# Builds with one compiler flag more into a folder. A named target keeps the flag off build scripts.
build() {
    RUSTFLAGS="${RUSTFLAGS:-} $1" cargo build --quiet --release --target "$host" --target-dir "$2" \
        --package ladder --features mimalloc >&2
}

# Sends requests of several clients, alone and side by side, pipelined, and on connections that end. A wrong response ends it.
load() {
    local shape words line
    for shape in "-c 1" "-c 32" "-c 16 --pipeline 8" "-c 32 --requests-per-connection 1"; do
        while IFS= read -r -d '' client; do
            words=()
            while IFS= read -r line; do [ -z "$line" ] || words+=(-H "$line"); done <<< "$client"
            # shellcheck disable=SC2086 # A shape is several words.
            "$target/release/lab" load "$1" $shape --duration 50ms "${words[@]}" > /dev/null
        done < <(sed -z 's/\n\n/\n\x00/g; s/$/\x00/' lab/guided-clients.txt)
    done
    "$target/release/lab" load "$1other" --duration 50ms --expect-status 404 > /dev/null
    "$target/release/lab" load "$1" --duration 50ms --body-bytes 40-5000 > /dev/null
}

# Runs a rung on one core (threads that count at the same place lose counts) until its input ends, at which it writes its trace.
train() {
    local address=127.0.0.1:$((20000 + RANDOM % 10000)) input server
    exec {input}> >(exec taskset -c 0 "$pgo/generate/$host/release/ladder" run "$1" --listen $address --until-eof 2> /dev/null)
    server=$!
    until (: < "/dev/tcp/${address/:/\/}") 2> /dev/null; do
        kill -0 $server 2> /dev/null || fail "the rung $1 doesn't start" "cargo ladder run $1"
        sleep 0.1
    done
    load "http://$address/"
    exec {input}>&-
    wait $server
}

record() {
    [ -x "$merge" ] || fail "llvm-profdata is missing" "rustup component add llvm-tools"
    # Cargo rebuilds where a flag changes, not where the file that it names does.
    rm -rf "$pgo/traces" "$pgo/use"
    cargo build --quiet --release --package lab >&2
    build "-Cprofile-generate=$pgo/traces" "$pgo/generate"
    for rung in cores prebuilt io-uring; do train $rung; done
    "$merge" merge --output "$pgo/merged" "$pgo/traces"
    mv "$pgo/merged" "$profile"
}

[ -f "$profile" ] || record
build "-Cprofile-use=$profile" "$pgo/use"
echo "$pgo/use/$host/release"
