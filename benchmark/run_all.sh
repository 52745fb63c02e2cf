#!/bin/sh
# Runs the suite of files against nginx, all of it. Options are those of `cargo lab suite`.
set -eu
cd "$(dirname "$0")/.."
exec cargo lab suite S3 "$@"
