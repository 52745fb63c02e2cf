#!/usr/bin/env bash
# Builds our programs (profile `dist`) with a profile of how they run and prints their folder. Without a profile of these sources
# and this compiler it records one first, on both drivers, or on those that are named: `lab/guided.sh epoll`.
#
# A profile trained on one request makes that request fast and others slow: this is no benchmark. Every response is checked for
# status and length, and a wrong one ends the training without a profile.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}

sources=(Cargo.lock Cargo.toml crates ':!crates/*/tests')
programs=(--package shearwater-cli --bins --package shearwater --example kinds --example plaintext)
host=$(rustc -vV | sed -n 's/^host: //p')
pgo=$CARGO_TARGET_DIR/pgo

# Lets a load run long enough for some thousand requests.
lab=("$CARGO_TARGET_DIR/release/lab" load --duration 50ms)

fail() {
    printf 'error: %s\nhelp: %s\n' "$1" "$2" >&2
    exit 1
}

key() {
    { rustc -vV; git ls-files --stage -- "${sources[@]}"; git diff -- "${sources[@]}"; } | sha256sum | cut -c1-16
}

# Builds with one compiler flag more into a folder. A named target keeps the flag off build scripts.
build() {
    RUSTFLAGS="${RUSTFLAGS:-} $1" cargo build --quiet --profile dist --target "$host" --target-dir "$2" "${programs[@]}" >&2
}

# Sends a request (URL, status, further options) on one connection and on many, pipelined, and on connections that end.
load() {
    local url=$1 status=$2 shape
    shift 2
    for shape in "-c 1" "-c 32" "-c 16 --pipeline 8" "-c 32 --requests-per-connection 10"; do
        # shellcheck disable=SC2086 # A shape is several words.
        "${lab[@]}" "$url" $shape --expect-status "$status" "$@" "${headers[@]}" > /dev/null
    done
}

train_files() {
    local path etag
    for path in "" about/ app.js icon.png photo.jpg; do
        load "$1$path" 200
        load "$1$path?v=17637&utm_source=mail" 200
        load "$1$path" 200 -X HEAD
        etag=$(curl -sI "${headers[@]}" "$1$path" | tr -d '\r' | sed -n 's/^etag: //Ip')
        load "$1$path" 304 -H "If-None-Match: $etag"
    done
    load "$1photo.jpg" 206 -H "Range: bytes=100-"
    load "$1favicon.ico" 404
    load "$1icon.png" 405 -X DELETE
}

train_handlers() {
    local path body
    for path in "${@:2}"; do
        load "$1$path" 200
        load "$1$path?q=a+b&page=2" 200
        load "$1$path" 200 -X HEAD
    done
    [[ " $* " == *" fast-text "* ]] || return 0
    for path in post-body take-body; do
        for body in 40 5000; do
            "${lab[@]}" "$1$path" -c 32 --body-bytes $body "${headers[@]}" > /dev/null
        done
    done
}

# Runs one worker of a program (threads that count at the same place lose counts), trains it with the headers of each client, and
# waits for its end, at which it writes its trace.
train() {
    local driver=$1 program=$2 address=127.0.0.1:$((20000 + RANDOM % 10000)) client line
    local headers=()
    shift 2
    if [ "$program" = shearwater ]; then
        "$built/$program" "$files" --listen=$address --workers=1 --driver="$driver" > /dev/null &
    else
        SHEARWATER_LISTEN=$address SHEARWATER_WORKERS=1 SHEARWATER_DRIVER=$driver "$built/$program" > /dev/null &
    fi
    server=$!
    trap 'kill $server; rm -rf "$files"' EXIT
    until curl -s "http://$address/" > /dev/null; do
        kill -0 $server 2> /dev/null || fail "$program doesn't start with --driver=$driver" "without io_uring: lab/guided.sh epoll"
        sleep 0.1
    done
    while IFS= read -r -d '' client; do
        headers=()
        while IFS= read -r line; do [ -z "$line" ] || headers+=(-H "$line"); done <<< "$client"
        if [ "$program" = shearwater ]; then train_files "http://$address/"; else train_handlers "http://$address/" "$@"; fi
    done < <(sed -z 's/\n\n/\n\x00/g; s/$/\x00/' lab/guided-clients.txt)
    kill -TERM $server
    wait $server
    trap 'rm -rf "$files"' EXIT
}

record() {
    local profile=$1 merge driver
    merge=$(rustc --print target-libdir)/../bin/llvm-profdata
    [ -x "$merge" ] || fail "llvm-profdata is missing" "rustup component add llvm-tools"
    command -v curl > /dev/null || fail "curl is missing" "apt-get install curl"
    shift
    # Cargo rebuilds where a flag changes, not where the file that it names does.
    rm -rf "$pgo/traces" "$pgo/use"
    cargo build --quiet --release --package lab >&2
    build "-Cprofile-generate=$pgo/traces" "$pgo/generate"
    built=$pgo/generate/$host/dist
    files=$(mktemp -d)
    mkdir "$files/about"
    head -c 1024 < <(yes 'a line of a page') > "$files/index.html"
    head -c 6400 < <(yes 'a line of another page') > "$files/about/index.html"
    head -c 40000 < <(yes 'a line of a script') > "$files/app.js"
    head -c 700 /dev/urandom > "$files/icon.png"
    head -c 150000 /dev/urandom > "$files/photo.jpg"
    gzip -k "$files/about/index.html" "$files/app.js"
    # The validators of a new file change, and with them the length of its responses.
    sleep 11
    for driver in "$@"; do
        train "$driver" shearwater
        train "$driver" examples/kinds plaintext fast-text asynctext asyncturn coroutine corouturn json-text
        train "$driver" examples/plaintext plaintext item/00 item/31 item/63 json
    done
    "$merge" merge --output "$pgo/merged" "$pgo/traces"
    mv "$pgo/merged" "$profile"
}

profile=$pgo/$(key).profdata
[ $# -gt 0 ] || set -- epoll uring
for driver in "$@"; do
    [[ $driver =~ ^(epoll|uring)$ ]] || fail "no driver \`$driver\`" "lab/guided.sh [epoll] [uring]"
done
[ -f "$profile" ] || record "$profile" "$@"
build "-Cprofile-use=$profile" "$pgo/use"
echo "$pgo/use/$host/dist"
