# Sourced by demo.sh and test.sh: installs what is missing and builds a preset, quietly and with progress.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# say TEXT: a heading of the script's own.
say() { printf '\n== %s\n' "$*"; }

# One line for every tenth of the work, and whatever is not progress: warnings and errors.
show_progress() {
  awk -F'[][/ ]' '/^\[[0-9]+\/[0-9]+\]/ {
      tenth = int(10 * $2 / $3)
      if (tenth != last) { print $2 " of " $3 " steps"; fflush() }
      last = tenth
      next
    }
    !/^ninja: Entering directory/ { print; fflush() }'
}

# build_preset PRESET [TARGET...]: configures (output kept in a log, shown only on failure) and builds.
build_preset() {
  local preset=$1 log="build/$1/configure.log"
  shift
  mkdir -p "build/$preset"
  say "Building (preset $preset, $(nproc) cores)"
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    echo "error: cmake could not configure preset $preset" >&2
    exit 1
  fi
  # On a terminal ninja draws a progress line of its own.
  if [ -t 1 ]; then
    ninja -C "build/$preset" "${@:-all}"
  else
    ninja -C "build/$preset" "${@:-all}" | show_progress
  fi
}
