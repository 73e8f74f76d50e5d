#!/bin/sh
# make.sh PROGRAM CONFIGS FOLDER: makes a folder that measures a GPU on a machine with nothing but a driver. It contains
# the program with all its libraries, including the C library and its loader, because the machine's may be older.
# cuBLASLt and NCCL (0.5 and 0.2 GB) are not included; they are searched for on the machine.
set -eu
program=$1 configs=$2 to=$3
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$to"
mkdir -p "$to/bin" "$to/lib"
cp "$program" "$to/bin/roofcast"
strip "$to/bin/roofcast" 2>/dev/null || true
ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\/.*ld-linux/ { print $1 }' | while read -r library; do
  cp -L "$library" "$to/lib/$(basename "$library")"
done
[ -x "$to/lib/ld-linux-x86-64.so.2" ] || { echo "make.sh: only for x86-64 Linux" >&2; exit 1; }
# opened by glibc at run time for exceptions in threads, and required by the static CUDA runtime
for name in libpthread.so.0 libdl.so.2 librt.so.1; do
  found=$(ldconfig -p 2>/dev/null | awk -v name="$name" '$1 == name && /x86-64/ { print $NF; exit }')
  [ -n "$found" ] && cp -L "$found" "$to/lib/$name"
done
cp -R "$configs" "$to/configs"
cp "$here/run.sh" "$to/run.sh"
chmod +x "$to/run.sh"
git -C "$here" describe --always --dirty 2>/dev/null >"$to/VERSION" || echo unknown >"$to/VERSION"
size=$(du -sm "$to" | cut -f1)
[ "$size" -lt 60 ] || { echo "make.sh: the folder has $size MB; the limit is 60" >&2; exit 1; }
echo "$to: $size MB" >&2
