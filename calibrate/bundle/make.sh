#!/bin/sh
# make.sh PROGRAM CONFIGS FOLDER: a folder that measures a GPU on a machine that has nothing but a driver. The program
# comes with every library it is linked with, the C library and its loader too, for the machine's may be older. cuBLASLt
# and NCCL (0.5 and 0.2 GB) stay out: they are looked for on the machine.
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
# what glibc opens at run time for exceptions in threads, and what the static CUDA runtime asks for
for name in libpthread.so.0 libdl.so.2 librt.so.1; do
  found=$(ldconfig -p 2>/dev/null | awk -v name="$name" '$1 == name && /x86-64/ { print $NF; exit }')
  [ -n "$found" ] && cp -L "$found" "$to/lib/$name"
done
cp -R "$configs" "$to/configs"
cp "$here/run.sh" "$to/run.sh"
chmod +x "$to/run.sh"
git -C "$here" describe --always --dirty 2>/dev/null >"$to/VERSION" || echo unknown >"$to/VERSION"
size=$(du -sm "$to" | cut -f1)
[ "$size" -lt 60 ] || { echo "make.sh: the folder has $size MB, and 60 are the most" >&2; exit 1; }
echo "$to: $size MB" >&2
