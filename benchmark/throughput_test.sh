#!/bin/sh
# Runs the suite of files against nginx, its steps of throughput alone. Options are those of `cargo lab suite`.
set -eu
cd "$(dirname "$0")/.."
exec cargo lab suite S3 --only throughput "$@"
