#!/usr/bin/env bash
# Kills roofcast at random moments, TIMES for each command, and checks that what it leaves is what it would have made.
#   tests/kill.sh PROGRAM TIMES
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1") times=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
hit=0 bad=0
fail() { echo "NOT THE SAME: $*" >&2; bad=$((bad + 1)); }

# Runs a command and kills it after up to SECONDS; counts the kills that hit it.
killed_within() {
  local seconds=$1 status=0
  shift
  local after
  after=$(awk -v most="$seconds" -v seed="$RANDOM" 'BEGIN { srand(seed); print 0.005 + rand() * most }')
  { timeout -s KILL "$after" "$@" >/dev/null 2>&1 || status=$?; } 2>/dev/null  # bash tells of each kill
  if [ "$status" = 137 ]; then hit=$((hit + 1)); fi
}

cat > "$work/sweep.yaml" <<'YAML'
scenario:
  model: llama-3.1-8b
  gpu: h100-sxm
  workload: {arrivals: {process: poisson, rate: 8 /s}, requests: 400, prompt_tokens: 500, output_tokens: 60}
run: simulate
grid: {workload.arrivals.rate: [2 /s, 5 /s, 9 /s, 14 /s], parallelism.tp: [1, 2], seed: {from: 1, to: 12, step: 1}}
YAML
"$program" sweep "$work/sweep.yaml" --store :memory: --format csv --out "$work/whole.csv" 2>/dev/null
for ((i = 0; i < times; ++i)); do
  if ((i % 4 == 0)); then rm -f "$work/s.sqlite"*; fi
  killed_within 0.4 "$program" sweep "$work/sweep.yaml" --store "$work/s.sqlite" --format csv --out "$work/s.csv"
  if [ -e "$work/s.csv" ] && ! cmp -s "$work/s.csv" "$work/whole.csv"; then fail "the table of a sweep that was killed"; fi
  if ((i % 4 == 3)); then
    "$program" sweep "$work/sweep.yaml" --store "$work/s.sqlite" --format csv --out "$work/s.csv" 2>/dev/null
    cmp -s "$work/s.csv" "$work/whole.csv" || fail "a sweep that was resumed"
  fi
done

# A result that stood there stays whole: the one before, or the new one.
replaced() {
  local name=$1 seconds=$2
  shift 2
  "$@" --out "$work/$name" >/dev/null 2>&1  # a page holds its command line
  mv "$work/$name" "$work/$name.new"
  echo before > "$work/$name.before"
  for ((i = 0; i < times; ++i)); do
    cp "$work/$name.before" "$work/$name"
    killed_within "$seconds" "$@" --out "$work/$name"
    cmp -s "$work/$name" "$work/$name.before" || cmp -s "$work/$name" "$work/$name.new" || fail "$*"
  done
}
"$program" sweep "$work/sweep.yaml" --store "$work/r.sqlite" >/dev/null 2>&1
replaced plan.json 0.5 "$program" plan configs/plans/chat-70b.yaml --format json
replaced page.html 0.1 "$program" report "$work/r.sqlite"
replaced rows.csv 0.1 "$program" simulate configs/scenarios/chat-70b-4xh100.yaml --format csv
fit=(calibrate fit tests/data/kernels/h100-sxm/gated_delta_net.csv tests/data/kernels/h100-sxm/nccl.csv --gpu h100-sxm --engine vllm --starts 1)
replaced gpu.yaml 0.15 "$program" "${fit[@]}"

# A folder of constants: its file is the one before, or the new one.
constants=configs/hardware/efficiency/h100-sxm-vllm.yaml
mkdir "$work/folder" "$work/fitted"
cp $constants "$work/fitted"
"$program" "${fit[@]}" --efficiency-dir "$work/fitted" >/dev/null 2>&1
for ((i = 0; i < times; ++i)); do
  cp $constants "$work/folder"
  killed_within 0.15 "$program" "${fit[@]}" --efficiency-dir "$work/folder"
  left=$work/folder/$(basename $constants)
  cmp -s "$left" $constants || cmp -s "$left" "$work/fitted/$(basename $constants)" || fail "constants that were fitted"
done

echo "$hit kills hit a running command; $bad results were not the same"
[ "$bad" = 0 ]
