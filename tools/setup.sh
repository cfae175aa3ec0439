#!/usr/bin/env bash
# Installs the Debian 12 packages that building and testing need, if any is missing. Changes nothing otherwise.
set -euo pipefail

packages=(
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools clang-22 libclang-22-dev libclang-rt-22-dev
  clang-format-22 clang-tidy-22 ccache ninja-build cmake pkg-config
  nlohmann-json3-dev libabsl-dev libgtest-dev libsentencepiece-dev libcli11-dev libssl-dev libpcre2-dev
  zlib1g-dev libzstd-dev python3 python3-psutil
)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "error: found no apt-get; this script knows Debian 12. On another system install LLVM, Clang and MLIR 22.1, CMake 3.25," \
    "Ninja, Abseil, nlohmann_json 3.11, CLI11, GoogleTest, SentencePiece, OpenSSL and PCRE2 yourself, then run cmake --preset release" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done

run=(env DEBIAN_FRONTEND=noninteractive apt-get -q)
[ "$(id -u)" -eq 0 ] || run=(sudo "${run[@]}")
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# A browser for the tests of reports, which are skipped by name where there is none.
install_browser() {
  command -v chromium-headless-shell chromium google-chrome >/dev/null && return
  command -v "${run[0]}" >/dev/null && "${run[@]}" install -y --no-install-recommends chromium-headless-shell >"$log" 2>&1 ||
    echo "found no way to install chromium-headless-shell; reports are not looked at in a browser"
}

if [ ${#missing[@]} -eq 0 ]; then
  install_browser
  exit 0
fi
if ! command -v "${run[0]}" >/dev/null; then
  echo "error: found neither root nor sudo; as root, run: apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "Installing ${#missing[@]} packages: ${missing[*]}"
if ! { "${run[@]}" update && "${run[@]}" install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "error: apt-get could not install ${missing[*]}; LLVM 22.1 is in Debian 12's security archive, which sources.list must name" >&2
  exit 1
fi
install_browser
