#!/usr/bin/env bash
# Runs the program of the arm64 tarball in an emulator, and compares what it answers with the program of this machine, byte
# by byte. Needs qemu-user-static.
# usage: packaging/same-bytes.sh [PROGRAM]     (default: build/release/roofcast)
set -euo pipefail
cd "$(dirname "$0")/.."
here=$(realpath "${1:-build/release/roofcast}")
emulator=$(command -v qemu-aarch64-static) || { echo "same-bytes.sh: apt-get install qemu-user-static" >&2; exit 2; }
tarball=$(ls -t build/packages/roofcast-*-linux-aarch64.tar.gz 2>/dev/null | head -n 1 || true)  # the newest
[ -n "$tarball" ] || { echo "same-bytes.sh: no tarball in build/packages: ./dev package arm64" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -xzf "$tarball" -C "$folder"
there=$(ls -d "$folder"/roofcast-*/bin/roofcast)
file -b "$there" | cut -d, -f1-5

different=0 compared=0
same() {
  local ended_here=0 ended_there=0
  "$here" "$@" >"$folder/here" 2>/dev/null || ended_here=$?
  "$emulator" "$there" "$@" >"$folder/there" 2>/dev/null || ended_there=$?
  compared=$((compared + 1))
  if [ "$ended_here" = "$ended_there" ] && [ -s "$folder/here" ] && cmp -s "$folder/here" "$folder/there"; then
    echo "same, $(wc -c <"$folder/here") bytes: roofcast $*"
  else
    echo "DIFFERENT, exit codes $ended_here and $ended_there: roofcast $*"
    diff "$folder/here" "$folder/there" | head -4 || true
    different=$((different + 1))
  fi
}
same estimate --model llama-3.1-70b --gpu h100-sxm --tp 4 --batch 64 --format json
same estimate --model deepseek-v3 --gpu gb200 --attention-dp 8 --ep 8 --batch 256 --format json
same estimate --model qwen3-30b-a3b --gpu b200-sxm --weights nvfp4 --batch 16 --format csv
same estimate --model llama-3.1-8b --gpu mi300x --engine sglang --batch 32
same simulate chat-70b-4xh100 --format json
same simulate kv-offload --format json
same simulate tenants-8b --format csv
same ladder chat-70b-4xh100 --format json
same plan chat-70b --format json
same sweep llama-2-13b-batch --store :memory: --format csv
same models --format csv
same gpus --format json
echo "$((compared - different)) of $compared answers are the same bytes"
[ "$different" = 0 ]
