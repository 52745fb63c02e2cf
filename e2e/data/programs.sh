#!/bin/bash
# Programs of other people that read a served folder, each with what it must get. `programs.sh TRY` runs one, with the variables
# URL (of the server), SITE (the folder that it serves, with lists) and an empty working folder. Exit status 77: it can't run here.
# A line `#: TRY | packages | commands` comes before each: the packages of Debian that have the commands.
set -eu

same() { cmp "$1" "$2"; }
# Writes 3 MB that no program can compress or find twice.
large() { [ -e "$SITE/large.bin" ] || head -c 3000000 /dev/urandom > "$SITE/large.bin"; }
# Writes files whose names and places are hard to link to.
names() {
    mkdir -p "$SITE/names/sub/deep" "$SITE/names/with space"
    for name in plain.txt my:file 100%.txt 'a+b&c.txt' 'h#h?q.txt' "it's" ü.txt sub/deep/x 'with space/a b.txt' '~tilde' '(1) [2]'; do
        echo "the content of $name" > "$SITE/names/$name"
    done
}
# Mounts with FUSE, by a command that stays in the foreground, and compares the tree.
mounted() {
    [ -e /dev/fuse ] || exit 77
    mkdir mount
    "$@" mount &
    program=$!
    for _ in $(seq 100); do mountpoint -q mount && break; sleep 0.1; done
    status=0
    diff -r "$SITE/names" mount || status=1
    umount mount || fusermount3 -u mount
    wait $program || true
    return $status
}

#: apt-flat | dpkg-dev apt-utils | apt-get dpkg-scanpackages apt-ftparchive
try_apt_flat() {
    mkdir -p tree/DEBIAN "$SITE/deb" lists/partial cache/archives/partial
    printf 'Package: tried\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: a\n' > tree/DEBIAN/control
    dpkg-deb --build tree "$SITE/deb/tried_1_all.deb"
    (cd "$SITE/deb" && dpkg-scanpackages . > Packages && apt-ftparchive release . > Release)
    echo "deb [trusted=yes] $URL/deb/ ./" > sources
    touch status
    options="-o Dir::Etc::SourceList=$PWD/sources -o Dir::Etc::SourceParts=/none -o Dir::State::Lists=$PWD/lists
        -o Dir::State::status=$PWD/status -o Dir::Cache=$PWD/cache -o APT::Sandbox::User=root -o Acquire::http::Proxy=DIRECT"
    apt-get $options update
    apt-get $options download tried
    same tried_1_all.deb "$SITE/deb/tried_1_all.deb"
}

#: dnf | dnf createrepo-c | dnf createrepo_c
try_dnf() {
    mkdir -p "$SITE/rpm"
    createrepo_c "$SITE/rpm"
    dnf --repofrompath="tried,$URL/rpm" --repo=tried --setopt="cachedir=$PWD/cache" --setopt=proxy= --nogpgcheck makecache
}

#: pip-index | python3-pip | pip3 python3
try_pip_index() {
    mkdir -p "$SITE/simple/tried" wheel/tried wheel/tried-1.dist-info
    touch wheel/tried/__init__.py
    printf 'Metadata-Version: 2.1\nName: tried\nVersion: 1\n' > wheel/tried-1.dist-info/METADATA
    printf 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n' > wheel/tried-1.dist-info/WHEEL
    touch wheel/tried-1.dist-info/RECORD
    (cd wheel && python3 -m zipfile -c "$SITE/simple/tried/tried-1-py3-none-any.whl" tried tried-1.dist-info)
    for place in "--index-url $URL/simple/" "--no-index --find-links $URL/simple/tried/"; do
        python3 -m pip download --isolated --no-deps --no-cache-dir --disable-pip-version-check $place -d got tried
        same got/*.whl "$SITE"/simple/tried/*.whl
        rm -r got
    done
}

#: git-clone | git | git
try_git_clone() {
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
    git init --quiet work
    for number in $(seq 20); do
        echo "$number" > "work/$number"
        git -C work add .
        git -C work commit --quiet -m "$number"
    done
    git clone --quiet --bare work "$SITE/repo.git"
    git -C "$SITE/repo.git" update-server-info
    git clone "$URL/repo.git" got
    [ "$(git -C got log --oneline | wc -l)" = 20 ]
    git -C got fetch
}

#: urllib | python3 | python3
try_urllib() {
    names
    python3 - "$URL/names" "$SITE/names" <<'PYTHON'
import email, http.client, pathlib, sys, urllib.parse, urllib.request
url, site = sys.argv[1], pathlib.Path(sys.argv[2])
for path in ["sub/../plain.txt", "./plain.txt", "sub/./deep/%2E%2e/../ü.txt", "100%.txt"]:
    path = urllib.parse.quote(path, safe="/%.")
    got = urllib.request.urlopen(f"{url}/{path}").read()
    assert got == (site / path.split("/")[-1].replace("%C3%BC", "ü")).read_bytes(), path
parts = urllib.parse.urlsplit(url)
client = http.client.HTTPConnection(parts.netloc)
client.request("GET", "/names/plain.txt", headers={"Range": "bytes=0-3,10-13"})
response = client.getresponse()
head = f"Content-Type: {response.getheader('content-type')}\r\n\r\n".encode()
message = email.message_from_bytes(head + response.read())
content = (site / "plain.txt").read_bytes()
assert [part.get_payload(decode=True) for part in message.get_payload()] == [content[:4], content[10:14]]
PYTHON
}

#: busybox-wget | busybox | busybox
try_busybox_wget() {
    names
    large
    busybox wget -q -O one "$URL/names/sub/../plain.txt"
    busybox wget -q -O two "$URL/./names/./plain.txt"
    same one "$SITE/names/plain.txt"
    same two "$SITE/names/plain.txt"
    head -c 1000000 "$SITE/large.bin" > part
    busybox wget -q -c -O part "$URL/large.bin"
    same part "$SITE/large.bin"
}

#: curl | curl | curl
try_curl() {
    names
    for path in ./plain.txt sub/../plain.txt sub/%2e%2E/plain.txt ü.txt 100%.txt 'a+b&c.txt' "it's" my:file; do
        curl --fail --silent --path-as-is --globoff --noproxy '*' -o got "$URL/names/$path"
        grep -q 'the content of' got
    done
}

#: wget-mirror | wget | wget
try_wget_mirror() {
    names
    large
    for _ in 1 2; do wget --no-proxy -q -m -np -nH --reject-regex '[?]' "$URL/names/"; done
    rm -f names/index.html names/*/index.html names/*/*/index.html
    diff -r "$SITE/names" names
    head -c 1000000 "$SITE/large.bin" > large.bin
    wget --no-proxy -q -c "$URL/large.bin"
    same large.bin "$SITE/large.bin"
}

#: lftp-mirror | lftp | lftp
try_lftp_mirror() {
    names
    large
    # It takes a leading tilde for a home folder, in every server's list.
    rm "$SITE/names/~tilde"
    lftp -c "set net:max-retries 2; set http:proxy ''; open $URL; mirror /names got; pget -n 4 large.bin"
    diff -r "$SITE/names" got
    same large.bin "$SITE/large.bin"
    lftp -c "set http:proxy ''; open $URL; cls -l /" | grep -q '3000000.*large.bin'
}

#: rclone | rclone | rclone
try_rclone() {
    names
    large
    rclone sync ":http,url='$URL':names" got
    diff -r "$SITE/names" got
    rclone sync -v ":http,url='$URL':names" got 2>&1 | grep -q 'nothing to transfer\|Checks:  *11 / 11'
    rclone copyto --multi-thread-cutoff 1M --multi-thread-streams 4 ":http,url='$URL':large.bin" large.bin
    same large.bin "$SITE/large.bin"
}

#: rclone-mount | rclone fuse3 | rclone fusermount3
try_rclone_mount() {
    names
    mounted rclone mount ":http,url='$URL':names"
}

#: httpdirfs | httpdirfs fuse3 | httpdirfs fusermount3
try_httpdirfs() {
    names
    mounted httpdirfs -f "$URL/names/"
}

#: davfs2 | davfs2 | mount.davfs
try_davfs2() {
    # The server has no WebDAV, and the program says so instead of waiting.
    printf '\n\n' | mount.davfs "$URL/" . > said 2>&1 && return 1
    grep -qi 'webdav\|405' said
}

#: aria2 | aria2 | aria2c
try_aria2() {
    large
    aria2c -q --all-proxy= -x 4 -s 4 -k 1M -d got "$URL/large.bin"
    same got/large.bin "$SITE/large.bin"
    head -c 1000000 "$SITE/large.bin" > large.bin
    aria2c -q --all-proxy= -c "$URL/large.bin"
    same large.bin "$SITE/large.bin"
}

#: axel | axel | axel
try_axel() {
    large
    axel -q -n 4 -o got "$URL/large.bin"
    same got "$SITE/large.bin"
}

#: httrack | httrack | httrack
try_httrack() {
    names
    httrack -q -O got -r4 "$URL/names/sub/"
    find got -name 'x*' | grep -q deep
}

#: zsync | zsync | zsync zsyncmake
try_zsync() {
    large
    zsyncmake -u large.bin -o "$SITE/large.bin.zsync" "$SITE/large.bin"
    (head -c 1000000 "$SITE/large.bin" && head -c 500 /dev/urandom && tail -c 1500000 "$SITE/large.bin") > shifted
    # Holes far from each other: a request of many ranges.
    cp "$SITE/large.bin" holes
    for at in $(seq 1 20); do printf 'another' | dd of=holes bs=1 seek=$((at * 140000)) conv=notrunc status=none; done
    for old in shifted holes; do
        zsync -q -i $old -o "got-$old" "$URL/large.bin.zsync"
        same "got-$old" "$SITE/large.bin"
    done
}

#: zchunk | zchunk | zck zckdl unzck
try_zchunk() {
    seq 1 200000 > "$SITE/numbers"
    zck -o "$SITE/numbers.zck" "$SITE/numbers"
    seq 1 100000 > old
    zck -o old.zck old
    zckdl -q -s old.zck "$URL/numbers.zck"
    unzck -c numbers.zck | cmp - "$SITE/numbers"
}

#: casync | casync | casync
try_casync() {
    names
    casync make --without=privileged --store="$SITE/default.castr" "$SITE/names.caidx" "$SITE/names"
    casync extract --without=privileged --store="$URL/default.castr" "$URL/names.caidx" got
    diff -r "$SITE/names" got
}

unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
export HOME="$PWD"
"try_${1//-/_}"
