#!/usr/bin/env bash
# Tries the packages of ./dev package, and the wheel if there is one, on systems with nothing else: a minimal Debian 12
# that debootstrap makes, and a folder with busybox alone. Prints how long the first answer takes. Needs root.
# usage: packaging/try.sh [FOLDER]     (FOLDER keeps the Debian between calls; default: a temporary one)
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$PWD/build/packages
[ "$(id -u)" = 0 ] || { echo "try.sh: needs root, for chroot" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "try.sh: apt-get install debootstrap" >&2; exit 2; }
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
debian=$folder/debian
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

finish() {
  ! mountpoint -q "$debian/proc" || umount "$debian/proc"
  [ -n "${kept:-}" ] || rm -rf --one-file-system "$folder"
}
kept=${1:-}
trap finish EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
inside() { chroot "$debian" env DEBIAN_FRONTEND=noninteractive bash -c "$1"; }

try_deb() {
  local package=$1 started
  [ -x "$debian/usr/bin/apt-get" ] || debootstrap --variant=minbase bookworm "$debian" "$mirror" >&2
  mountpoint -q "$debian/proc" || mount -t proc proc "$debian/proc"
  inside "apt-get remove -y -q roofcast >/dev/null 2>&1 || true"
  cp "$package" "$debian/opt/roofcast.deb"
  started=$(date +%s)
  inside "apt-get update -q && apt-get install -y -q /opt/roofcast.deb" >&2
  inside "cd /tmp && roofcast simulate chat-70b-4xh100" | grep -q '^ttft_p99.*met' || fail "the demo of the Debian package"
  echo "Debian package: $(($(date +%s) - started)) s from apt-get update to the answer"
  inside "cd /tmp && roofcast sweep llama-2-13b-batch --store :memory:" | grep -q '^cheapest' || fail "a sweep"
  inside "roofcast estimate --model llama-3.1-8b --gpu H200 --format json --out /tmp/e.json 2>/dev/null &&
          roofcast report /tmp/e.json --out /tmp/e.html 2>/dev/null" && [ -s "$debian/tmp/e.html" ] || fail "a report"
  inside "zcat /usr/share/man/man1/roofcast-plan.1.gz" | grep -q '^.TH' || fail "the man page of plan"
  inside ". /usr/share/bash-completion/completions/roofcast; complete -p roofcast" >/dev/null || fail "the completion"
  inside "ROOFCAST_CONFIGS=/nowhere roofcast gpus" 2>/dev/null && fail "a folder without specs is no error"
  return 0
}

try_tarball() {
  local bare=$folder/bare program
  rm -rf "$bare"
  mkdir -p "$bare/tmp"
  tar -xzf "$1" -C "$bare"
  program=$(cd "$bare" && ls -d roofcast-*/bin/roofcast)
  chroot "$bare" "/$program" simulate chat-70b-4xh100 2>/dev/null | grep -q '^ttft_p99.*met' || fail "the demo of the tarball"
  echo "static tarball: answers in a folder with nothing else"
}

try_wheel() {
  inside "apt-get install -y -q --no-install-recommends python3-venv" >&2
  inside "apt-get remove -y -q roofcast libtbb12 libyaml-0-2 libfmt9 libnlopt0" >&2
  cp "$1" "$debian/opt/"
  inside "rm -rf /opt/venv && python3 -m venv /opt/venv && /opt/venv/bin/pip install -q /opt/$(basename "$1")" >&2
  inside "cd /tmp && /opt/venv/bin/python -c '
import roofcast
print(roofcast.estimate(model=\"llama-3.1-8b\", gpu=\"h100-sxm\").tpot_ms, roofcast.plan(\"chat-70b\").winner.gpu)'" |
    grep -q '^[0-9.]* [a-z]' || fail "the wheel"
  echo "wheel: answers in a new virtual environment"
}

shopt -s nullglob
found=("$packages"/roofcast_*_"$(dpkg --print-architecture)".deb)
[ ${#found[@]} -gt 0 ] || fail "no Debian package in build/packages: ./dev package"
try_deb "${found[-1]}"
for tarball in "$packages"/roofcast-*-linux-"$(uname -m)".tar.gz; do try_tarball "$tarball"; done
for wheel in build/wheel/roofcast-*-linux_"$(uname -m)".whl; do try_wheel "$wheel"; done
