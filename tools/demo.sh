#!/usr/bin/env bash
# Builds the project, compiles a small trained model for the CPU, an A100 and an H100, shows what the compiler decided,
# and lets the model continue a prompt on the CPU. Bundles are left in out/demo.
set -euo pipefail
case "${1:-}" in
  -h | --help) sed -n '2,3s/^# //p' "$0"; echo "usage: tools/demo.sh [PROMPT]"; exit 0 ;;
esac
prompt=${1:-In the beginning God created the heaven}
cd "$(dirname "$0")/.."
tools/setup.sh
. tools/build.sh
build_preset release grokc grokrun groktok_sentencepiece

bin=build/release/bin
model=test/models/tiny-hash
mkdir -p out/demo
for target in cpu a100-sxm4-40gb h100-sxm; do
  say "grokc compile --config $model --weights $model --target $target -o out/demo/$target.grok"
  $bin/grokc compile --config $model --weights $model --target "$target" -o "out/demo/$target.grok"
done
for target in a100-sxm4-40gb h100-sxm; do
  say "grokc inspect out/demo/$target.grok"
  $bin/grokc inspect "out/demo/$target.grok"
done
say "grokrun generate out/demo/cpu.grok --device cpu -n 40 --prompt \"$prompt\""
$bin/grokrun generate out/demo/cpu.grok --device cpu -n 40 --prompt "$prompt"
