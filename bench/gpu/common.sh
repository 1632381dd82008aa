# shellcheck shell=bash
# What the scripts of this folder share: where pragma is, and whether there is a GPU. Sourced, not run. BACKEND (default cuda) names
# another backend; with cpu the scripts themselves can be tried where there is no GPU.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
pragma=${PRAGMA:-$root/build/bin/pragma}
backend=${BACKEND:-cuda}

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

need_device() {
  [ -x "$pragma" ] || fail "there is no $pragma: build it (scripts/build), or set PRAGMA"
  [ "$backend" = cuda ] || return 0
  command -v nvidia-smi > /dev/null || fail "no GPU to run on: nvidia-smi is not installed"
  [[ $'\n'$(timeout 60 nvidia-smi -L) == *$'\n'"GPU 0"* ]] || fail "no GPU to run on: nvidia-smi lists none"
}

# Runs a command for at most so many seconds; says so when it did not end.
bounded() {
  local seconds=$1 status=0
  shift
  timeout --kill-after=30 "$seconds" "$@" || status=$?
  [ "$status" -ne 124 ] || echo "$(basename "$0"): stopped after $seconds s: $*" >&2
  return "$status"
}
