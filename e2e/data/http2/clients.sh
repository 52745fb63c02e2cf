#!/bin/bash
# Clients of HTTP/2 made by other people, each with what it must get. `clients.sh TRY` runs one in an empty working folder, with the
# variables CLEAR and TLS (the origins of the same site, in clear and with a certificate that nobody has signed), SITE (its folder)
# and DATA (this script's folder). Exit status 77: it can't run here.
# A line `#: TRY | packages | commands` comes before each: the packages of Debian that have the commands.
set -eu

same() { cmp "$1" "$2"; }
# Compares the downloads of the 40 small files and the large one, which were saved under their names.
same_as_site() {
    for number in $(seq 0 39); do same "$1/$number.txt" "$SITE/$number.txt"; done
    same "$1/large.bin" "$SITE/large.bin"
}

#: curl | curl | curl
try_curl() {
    curl --version | grep -q HTTP2 || exit 77
    for origin in "$CLEAR" "$TLS"; do
        mode=--http2
        [ "$origin" = "$CLEAR" ] && mode=--http2-prior-knowledge
        rm -rf got && mkdir got
        if [ "$origin" = "$TLS" ]; then
            (cd got && curl -sSfk --noproxy '*' $mode --parallel --parallel-max 40 --remote-name-all -w '%{http_version}\n' \
                "$origin/[0-39].txt" "$origin/large.bin") > versions
        else
            # In clear, curl 7.88 fails with the second request of a connection, to Go's server too.
            for name in $(seq -f %g.txt 0 39) large.bin; do
                curl -sSf --noproxy '*' $mode -o "got/$name" -w '%{http_version}\n' "$origin/$name"
            done > versions
        fi
        [ "$(sort versions | uniq -c | tr -s ' ')" = " 41 2" ]
        same_as_site got
        # A range, a condition, and a file that is missing.
        curl -sSfk --noproxy '*' $mode -r 1000-1999 "$origin/large.bin" | same - <(tail -c +1001 "$SITE/large.bin" | head -c 1000)
        curl -sSk --noproxy '*' $mode -D head -o /dev/null "$origin/0.txt"
        tag=$(sed -n 's/^etag: \(.*\)\r$/\1/p' head)
        [ -n "$tag" ]
        [ "$(curl -sSk --noproxy '*' $mode -H "If-None-Match: $tag" -w '%{http_code}' "$origin/0.txt")" = 304 ]
        [ "$(curl -sSk --noproxy '*' $mode -o /dev/null -w '%{http_code}' "$origin/missing")" = 404 ]
    done
}

#: nghttp | nghttp2-client | nghttp
try_nghttp() {
    for origin in "$CLEAR" "$TLS"; do
        for name in $(seq -f %g.txt 0 39) large.bin; do
            nghttp --no-verify-peer "$origin/$name" > got
            same got "$SITE/$name"
        done
        # 400 streams of one connection, each with a single frame, because nghttp mixes the content of streams.
        nghttp --no-verify-peer -m 400 "$origin/line.txt" > got
        for _ in $(seq 400); do cat "$SITE/line.txt"; done | same got -
        # Padding, header blocks that continue, and small windows.
        nghttp --no-verify-peer --padding=100 --continuation -w 16 -W 16 "$origin/large.bin" > got
        same got "$SITE/large.bin"
    done
}

#: h2load | nghttp2-client | h2load
try_h2load() {
    bytes=$(wc -c < "$SITE/1.txt")
    for origin in "$CLEAR" "$TLS"; do
        h2load -n 20000 -c 20 -m 50 "$origin/1.txt" > report
        grep -q '^requests: 20000 total, 20000 started, 20000 done, 20000 succeeded, 0 failed, 0 errored, 0 timeout' report
        grep -q '^status codes: 20000 2xx' report
        grep -q "($((bytes * 20000))) data" report
    done
}

#: node | nodejs | node
try_node() {
    for origin in "$CLEAR" "$TLS"; do
        rm -rf got && mkdir got
        node "$DATA/client.mjs" "$origin" got
        same_as_site got
    done
}

#: go | golang-go | go
try_go() {
    cp "$DATA/client.go" client.go
    # From version 1.24 on it has HTTP/2 in clear.
    go run client.go --version || exit 77
    for origin in "$CLEAR" "$TLS"; do
        rm -rf got && mkdir got
        go run client.go "$origin" got
        same_as_site got
    done
}

#: python | python3-pip | python3
try_python() {
    python3 -m pip install -q --no-warn-script-location --target lib 'httpx[http2]' || exit 77
    for origin in "$CLEAR" "$TLS"; do
        rm -rf got && mkdir got
        PYTHONPATH=lib python3 "$DATA/client.py" "$origin" got
        same_as_site got
    done
}

#: chromium | chromium | chromium
try_chromium() {
    cp "$DATA/page.html" "$SITE/page.html"
    chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --ignore-certificate-errors --no-proxy-server \
        --user-data-dir="$PWD/profile" --virtual-time-budget=30000 --dump-dom "$TLS/page.html" > dom
    for number in $(seq 0 39); do printf '%s ' "$(sha256sum < "$SITE/$number.txt" | cut -d ' ' -f 1)"; done > sums
    # The sums of all bodies, the protocols, and the number of resources that needed another connection.
    [ "$(sed -n 's/.*<pre id="sums">\([^<]*\)<.*/\1/p' dom)" = "$(cat sums)" ]
    [ "$(sed -n 's/.*<pre id="protocols">\([^<]*\)<.*/\1/p' dom)" = h2 ]
    [ "$(sed -n 's/.*<pre id="connections">\([^<]*\)<.*/\1/p' dom)" = 0 ]
}

set -x
"try_$(echo "$1" | tr - _)"
