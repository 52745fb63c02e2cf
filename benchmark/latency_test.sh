#!/bin/sh
# Runs the suite of files against nginx, its steps of latency alone. Options are those of `cargo lab suite`.
set -eu
cd "$(dirname "$0")/.."
exec cargo lab suite S3 --only latency "$@"
