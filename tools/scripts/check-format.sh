#!/usr/bin/env bash
# Checks that every C and C++ file is as clang-format-22 writes it; --fix rewrites them.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t files < <(git ls-files '*.h' '*.c' '*.cpp')
if [ "${1:-}" = --fix ]; then
  clang-format-22 -i "${files[@]}"
  exit 0
fi
bad=()
for file in "${files[@]}"; do
  clang-format-22 --dry-run -Werror "$file" 2>/dev/null || bad+=("$file")
done
if [ ${#bad[@]} -gt 0 ]; then
  printf 'error: %s: not as clang-format-22 writes it\n' "${bad[@]}" >&2
  echo "run tools/scripts/check-format.sh --fix" >&2
  exit 1
fi
