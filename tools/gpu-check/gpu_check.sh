#!/usr/bin/env bash
# Checks the compiler's GPU code on a machine with a GPU: `prepare` where the compiler is, `run` where the GPU is.
# See docs/gpu-check.md.
set -euo pipefail
if ! command -v python3 >/dev/null; then
  echo "error: found no python3, expected one (3.9 or later, no packages)" >&2
  exit 1
fi
exec python3 -B "$(dirname "$0")/gpu_check.py" "$@"
