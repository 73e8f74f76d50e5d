#!/usr/bin/env bash
# How long and how large long simulations and sweeps get: a table for docs/security.md, and what must hold of it.
#   tests/soak.sh PROGRAM [SHARE]     SHARE: of the requests and points, in percent (100)
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1") share=${2:-100}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
part() { echo $(($1 * share / 100)); }
fail() { echo "soak: $*" >&2; bad=1; }

declare -A seconds megabytes
# Runs a command; user time and peak memory by the name of the case.
measured() {
  local name=$1
  shift
  python3 - "$work/usage" "$@" <<'PY' || fail "$name: $(tail -1 "$work/usage.err")"
import resource, subprocess, sys
done = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=open(sys.argv[1] + ".err", "w"))
used = resource.getrusage(resource.RUSAGE_CHILDREN)
open(sys.argv[1], "w").write(f"{used.ru_utime + used.ru_stime:.1f} {used.ru_maxrss / 1024:.0f}\n")
sys.exit(done.returncode)
PY
  read -r "seconds[$name]" "megabytes[$name]" <"$work/usage"
  printf '| %s | %s s | %s MB |\n' "$name" "${seconds[$name]}" "${megabytes[$name]}"
}

# A scenario of so many requests; further lines replace or add keys of the workload and beside it.
scenario() {
  local requests=$1 arrivals=$2 lengths=$3
  shift 3
  printf 'model: llama-3.1-8b\ngpu: h100-sxm\nengine: vllm\n%s\nworkload:\n  arrivals: {%s}\n  requests: %s\n%s\n' \
    "${*:-}" "$arrivals" "$requests" "$lengths"
}
chat='  prompt_tokens: {distribution: lognormal, mean: 1155, p50: 1020, max: 8192}
  output_tokens: {distribution: lognormal, mean: 211, p50: 129, max: 1000}'
short='  prompt_tokens: {distribution: fixed, value: 128}
  output_tokens: {distribution: fixed, value: 32}'
run() { measured "$1" "$program" simulate "$work/s.yaml" --format json --out "$work/out.json"; }

echo "| case | time of one core | memory |"
echo "|---|---|---|"
for requests in 100000 1000000 10000000; do
  requests=$(part $requests)
  scenario "$requests" "process: poisson, rate: 24 /s" "$chat" "parallelism: {replicas: 4}" >"$work/s.yaml"
  run "$requests chat requests on 4 replicas"
  counts+=("$requests chat requests on 4 replicas")
done
scenario "$(part 300000)" "process: closed_loop, concurrency: 100000" "$short" "parallelism: {replicas: 100}" >"$work/s.yaml"
run "100000 users at once, $(part 300000) requests, 100 replicas"
scenario "$(part 1000000)" "process: poisson, rate: 6000 /s" "$chat" "parallelism: {replicas: 1000}" >"$work/s.yaml"
run "$(part 1000000) chat requests on 1000 replicas"
# A week of ten requests a second, whose rate follows the day.
python3 - "$work/week.csv" "$(part 6048000)" <<'PY'
import math, random, sys
draw = random.Random(1)
with open(sys.argv[1], "w") as out:
    out.write("arrival_s,prompt_tokens,output_tokens\n")
    at = 0.0
    for _ in range(int(sys.argv[2])):
        at += draw.expovariate(10 * (1 + 0.6 * math.sin(at / 86400 * 2 * math.pi)))
        out.write(f"{at:.3f},{min(8000, int(draw.lognormvariate(6.5, 0.8)) + 1)},{min(1000, int(draw.lognormvariate(4.8, 0.8)) + 1)}\n")
PY
printf 'model: llama-3.1-8b\ngpu: h100-sxm\nengine: vllm\nparallelism: {replicas: 4}\nworkload:\n  arrivals: {process: trace, file: week.csv}\n' >"$work/s.yaml"
run "trace of a week, $(part 6048000) requests, 4 replicas"
printf 'name: soak\nscenario: {model: llama-3.1-8b, gpu: h100-sxm}\nrun: estimate\ngrid:\n  batch: {from: 1, to: 1000, step: 1}\n  prompt_tokens: {from: 8, to: %s, step: 8}\n' "$((8 * 10 * share))" >"$work/sweep.yaml"
measured "sweep of $((10 * share))000 estimates" "$program" sweep "$work/sweep.yaml" --yes --store "$work/s.sqlite" --format csv --out "$work/sweep.csv"

for name in "${!megabytes[@]}"; do
  [ "${megabytes[$name]}" -lt 1000 ] || fail "$name takes ${megabytes[$name]} MB: more than 1 GB"
done
# Ten times the requests take ten times the time, not more: measured from where the start does not count.
awk -v some="${seconds[${counts[1]}]}" -v many="${seconds[${counts[2]}]}" 'BEGIN { exit !(some < 0.5 || many < 13 * some) }' ||
  fail "time grows faster than the requests: ${seconds[${counts[1]}]} s, then ${seconds[${counts[2]}]} s for ten times as many"
exit $bad
