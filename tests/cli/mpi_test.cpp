// mpirun roofcast sweep, where Open MPI is.

#include <cstdlib>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "tests/base/temporary_folder.h"
#include "tests/cli/run_program.h"

using roofcast::TemporaryFolder;
using roofcast::testing::run_roofcast;
using roofcast::testing::run_shell;
using roofcast::testing::RunResult;

namespace {

/// Whether mpirun runs here and the program was built with it; says so if not.
bool have_mpirun() {
  const auto module = std::filesystem::path(ROOFCAST_PROGRAM).parent_path() / "roofcast_mpi.so";
  const bool there = std::filesystem::exists(module) &&
                     run_shell("timeout 20 mpirun --oversubscribe --allow-run-as-root -n 2 true").status == 0;
  if (!there) MESSAGE("SKIPPED: no Open MPI (mpirun, libopenmpi-dev)");
  return there;
}

// Open MPI keeps memory at its end, which the leak checker would count against us.
const std::string kMpirun =
    "ASAN_OPTIONS=detect_leaks=0 timeout -s KILL 60 mpirun --oversubscribe --allow-run-as-root -n 3 '" ROOFCAST_PROGRAM
    "' ";

}  // namespace

TEST_CASE("mpirun: several ranks give the table of one") {
  if (!have_mpirun()) return;
  const TemporaryFolder folder;
  const std::string sweep =
      folder.write("s.yaml",
                   "scenario: {model: llama-2-7b, gpu: h100-sxm, output_tokens: 16}\n"
                   "grid: {batch: {from: 1, to: 30, step: 1}, prompt_tokens: {from: 100, to: 1000, step: 100}}\n");
  const std::string store = folder.path() + "/s.sqlite";
  const RunResult ranks = run_shell(kMpirun + "sweep '" + sweep + "' --store '" + store + "' --format csv");
  const RunResult alone = run_roofcast("sweep '" + sweep + "' --store :memory: --format csv");
  CHECK(ranks.status == 0);
  CHECK(alone.status == 0);
  CHECK(ranks.out == alone.out);
  const RunResult again =
      run_roofcast("sweep '" + sweep + "' --store '" + store + "'", roofcast::testing::Stream::kErr);
  CHECK(again.out.find("300 points: 0 run") != std::string::npos);
  CHECK(run_shell(kMpirun + "sweep nothing-of-this-name").status == 2);
}

TEST_CASE("mpirun: a rank that is killed costs its points only, which the next run does") {
  if (!have_mpirun()) return;
  if (run_shell("command -v pgrep").status != 0) {
    MESSAGE("SKIPPED: no pgrep (procps)");
    return;
  }
  const TemporaryFolder folder;
  const std::string sweep = folder.write(
      "s.yaml",
      "scenario: {model: llama-3.1-8b, gpu: h100-sxm, workload: {arrivals: {process: poisson, rate: 20 /s}, "
      "prompt_tokens: {distribution: lognormal, mean: 500, p50: 400, max: 4000}, output_tokens: {distribution: "
      "lognormal, mean: 200, p50: 150, max: 1000}, requests: 3000}}\nrun: simulate\ngrid: {seed: {from: 1, to: 40, "
      "step: "
      "1}}\n");
  const std::string store = folder.path() + "/s.sqlite";
  // The youngest of the job's processes is a rank above 0; mpirun then ends the others.
  const std::string killer =
      "(for i in $(seq 500); do sleep 0.02; mpi=$(pgrep -P $job) && rank=$(pgrep -n -P $mpi) && [ -s '" + store +
      "-wal' ] && kill -9 $rank && break; done)";
  const RunResult killed = run_shell(
      "ASAN_OPTIONS=detect_leaks=0 timeout -s KILL 60 mpirun --oversubscribe --allow-run-as-root -n 3 "
      "'" ROOFCAST_PROGRAM "' sweep '" +
      sweep + "' --store '" + store + "' & job=$!; " + killer + "; wait $job");
  CHECK(killed.status != 0);
  const RunResult resumed = run_shell(kMpirun + "sweep '" + sweep + "' --store '" + store + "' --format csv");
  const RunResult whole = run_roofcast("sweep '" + sweep + "' --store :memory: --format csv");
  CHECK(resumed.status == 0);
  CHECK(resumed.out == whole.out);
}
