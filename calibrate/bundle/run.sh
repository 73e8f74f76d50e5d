#!/bin/sh
# Measures this machine's GPU, fits its constants, compares them with the measurements and draws plots. Measurements are
# kept whatever happens: later steps run even if one fails, and the next run continues from the existing data.
set -u
here=$(cd "$(dirname "$0")" && pwd)
budget=3min out= backend=cuda device=0 gpu= only=

usage() {
  cat <<'TEXT'
usage: ./run.sh [--budget 3min] [--out FOLDER] [--gpu NAME|FILE.yaml] [--device N] [--only OP,...] [--backend cuda|cpu]
  --budget   time for measuring: under 2min the coarse grid, under 6min the default one, else the fine one
  --out      FOLDER for measurements.jsonl, gpu.yaml, fit.txt, show.txt, validate.txt, estimate.txt, plots/, log.txt
             (default: results); a second run with it measures the missing points
  --gpu      GPU whose datasheet applies (default: the shipped GPU with the same SMs and memory)
  --device   N: CUDA device number
  --only     measure only these operators: stream, launch, copy, tensor_rate, gemm, attention_decode, ...
TEXT
}
fail() {
  echo "run.sh: $1" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --budget | --out | --gpu | --device | --only | --backend)
      [ $# -ge 2 ] || fail "$1: needs a value"
      eval "$(echo "$1" | cut -c3-)=\$2"
      shift 2
      ;;
    *) usage >&2; fail "unknown flag '$1'" ;;
  esac
done
out=${out:-results}
mkdir -p "$out/plots" || fail "--out: cannot make '$out'"
out=$(cd "$out" && pwd)
log=$out/log.txt
data=$out/measurements.jsonl

# The program uses the libraries beside it, whatever the machine has; only those of CUDA are the machine's.
cuda_libraries() {
  for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu /usr/lib64; do
    [ -e "$folder/libcublasLt.so.13" ] || [ -e "$folder/libcublasLt.so.12" ] && echo "$folder"
  done
  for python in python3 python; do
    command -v "$python" >/dev/null 2>&1 || continue
    "$python" - <<'PYTHON' 2>/dev/null
import glob, os, site, sys
for root in site.getsitepackages() + [site.getusersitepackages()] + sys.path:
    for name in glob.glob(os.path.join(root, "nvidia", "*", "lib")):
        print(name)
PYTHON
    break
  done
}
path=$here/lib
for folder in $(cuda_libraries | sort -u); do path=$path:$folder; done
roofcast() {
  ROOFCAST_CONFIGS=$here/configs "$here/lib/ld-linux-x86-64.so.2" \
    --library-path "$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$here/bin/roofcast" "$@"
}
note() { echo "$(date -u +%H:%M:%S) $*" | tee -a "$log" >&2; }

# A step whose output goes to a file. It reports failure, but other steps do not depend on it.
step() {
  file=$out/$1
  shift
  note "roofcast $*"
  if roofcast "$@" >"$file.part" 2>>"$log"; then
    mv "$file.part" "$file"
  else
    status=$?
    rm -f "$file.part"
    note "failed with status $status; see $log"
    failed=1
    return "$status"
  fi
}

failed=0 stopped=0 status=3
trap 'stopped=1' INT TERM
note "roofcast $(cat "$here/VERSION" 2>/dev/null), $(uname -sr), budget $budget"
command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L 2>&1 | tee -a "$log" >&2

# A lost device ends a process. The point that lost it is recorded, so the next process skips it.
count() { if [ -f "$data" ]; then wc -l <"$data"; else echo 0; fi; }
try=0
while [ "$stopped" = 0 ]; do
  before=$(count)
  roofcast calibrate measure --backend "$backend" --device "$device" --budget "$budget" --out "$data" --resume \
    ${only:+--only "$only"} 2>>"$log"
  status=$?
  tail -n 1 "$log" >&2
  try=$((try + 1))
  # 3: the device was lost, or there is none
  [ "$status" = 3 ] && [ "$(count)" -gt "$before" ] && [ "$try" -lt 5 ] || break
  note "the device was lost; continuing without the point that lost it"
done
trap - INT TERM
[ "$status" = 0 ] || failed=1
[ -s "$data" ] || { note "nothing was measured"; exit "${status:-3}"; }
note "$(wc -l <"$data") points in $data"

step show.txt calibrate show "$data" --svg "$out/plots"
if step fit.txt calibrate fit "$data" ${gpu:+--gpu "$gpu"} --out "$out/gpu.yaml"; then
  step validate.txt validate kernels --gpu "$out/gpu.yaml" --data "$data"
  step constants.txt calibrate show "$data" --gpu "$out/gpu.yaml" --svg "$out/plots"
  step estimate.txt estimate --model llama-3.1-8b --gpu "$out/gpu.yaml"
fi
note "results in $out"
[ "$stopped" = 1 ] && exit 130
exit "$failed"
