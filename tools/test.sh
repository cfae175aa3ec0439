#!/usr/bin/env bash
# Builds the project and runs every test; the last line counts them. With --ci, also what only CI runs: the same suite
# in a build with the address and undefined-behaviour sanitizers, what has threads in one with the thread sanitizer, a
# short run of every fuzz target, and the format of every C and C++ file.
set -euo pipefail
ci=
case "${1:-}" in
  --ci) ci=1 ;;
  -h | --help) sed -n '2,4s/^# //p' "$0"; echo "usage: tools/test.sh [--ci]"; exit 0 ;;
  "") ;;
  *) echo "error: found argument '$1', expected --ci or nothing" >&2; exit 1 ;;
esac
cd "$(dirname "$0")/.."
tools/setup.sh
. tools/build.sh

build_preset release
suites=(build/release/test)
status=0
if [ -n "$ci" ]; then
  build_preset asan
  build_preset tsan
  build_preset fuzz grok-fuzz
  suites+=(build/asan/test build/tsan/test/{runtime,serve} build/tsan/test/unit/{api,bundle,cpu,serve,service} build/fuzz/test/fuzz)
  say "Checking the format of every file"
  tools/scripts/check-format.sh || status=1
fi
say "Testing"
python3 test/run_tests.py --lit /usr/lib/llvm-22/bin/lit "${suites[@]}" || status=1
exit $status
