#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "base/read_file.h"
#include "tests/base/temporary_folder.h"
#include "tests/cli/run_program.h"

using roofcast::TemporaryFolder;
using roofcast::testing::run_roofcast;
using roofcast::testing::run_shell;
using roofcast::testing::RunResult;
using roofcast::testing::Stream;

TEST_CASE("a sweep that is killed again and again ends with the same table") {
  const TemporaryFolder folder;
  const std::string sweep =
      folder.write("s.yaml",
                   "scenario: {model: llama-2-7b, gpu: h100-sxm, output_tokens: 16}\n"
                   "grid: {batch: {from: 1, to: 40, step: 1}, prompt_tokens: {from: 100, to: 4000, step: 100}}\n");
  const std::string store = folder.path() + "/s.sqlite";
  // Wherever the kills fall, before the first point, amid them or after the last, nothing may be lost or wrong.
  for (const char* after : {"0.02", "0.05", "0.1", "0.2"}) {
    const std::string killed = std::string("timeout -s KILL ") + after + " '" ROOFCAST_PROGRAM "' sweep '" + sweep +
                               "' --store '" + store + "' >/dev/null 2>&1";
    (void)!std::system(killed.c_str());
  }
  const auto resumed = run_roofcast("sweep '" + sweep + "' --store '" + store + "' --format csv");
  const auto whole = run_roofcast("sweep '" + sweep + "' --store :memory: --format csv");
  CHECK(resumed.status == 0);
  CHECK(whole.status == 0);
  CHECK(std::count(whole.out.begin(), whole.out.end(), '\n') == 1601);  // 40 x 40 and a header
  CHECK(resumed.out == whole.out);
}

TEST_CASE("a sweep of estimates says which keys only a simulation asks for") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& run) {
    const std::string sweep = folder.write(
        "s.yaml",
        "scenario: {model: llama-2-7b, gpu: h100-sxm, workload: {requests: 3, prompt_tokens: 9, output_tokens: 2}}\n" +
            run + "grid: {policy: [fcfs, fair]}\n");
    return run_roofcast("sweep '" + sweep + "' --store :memory:", Stream::kErr).out;
  };
  CHECK(said("").find("policy changes nothing in an estimate; 'run: simulate' plays requests\n") == 0);
  CHECK(said("run: simulate\n").find("changes nothing in an estimate") == std::string::npos);
}

TEST_CASE("a sweep says which of its keys change no result") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& scenario, const std::string& grid) {
    const std::string sweep =
        folder.write("s.yaml", "scenario: {model: llama-2-7b, gpu: h100-sxm, " + scenario + "}\n" + grid);
    return run_roofcast("sweep '" + sweep + "' --store :memory:", Stream::kErr).out;
  };
  const std::string load =
      "workload: {requests: 3, prompt_tokens: 9, output_tokens: 2, arrivals: {process: poisson, rate: 1 /s}}";
  const std::string rates = said(load, "grid: {workload.arrivals.rate: [1 /s, 9 /s], batch: [1, 2]}\n");
  CHECK(rates.find("workload.arrivals.rate changes nothing in these points; 'run: simulate' plays") == 0);
  CHECK(rates.find("batch changes") == std::string::npos);
  CHECK(said(load, "run: simulate\ngrid: {workload.arrivals.rate: [1 /s, 9 /s]}\n").find("changes nothing") ==
        std::string::npos);
  const std::string drafts = "grid: {speculation.num_speculative_tokens: [1, 2], ";
  CHECK(said("speculation: {method: none}", drafts + "batch: [1, 2]}\n")
            .find("speculation.num_speculative_tokens changes nothing in these points\n") == 0);
  // It acts in some points.
  CHECK(said("speculation: {method: none}", drafts + "speculation.method: [none, ngram]}\n").find("changes nothing") ==
        std::string::npos);
  // Keys that change together are told together; points that do not fit tell nothing.
  CHECK(said("speculation: {method: none}",
             "zip: {speculation.num_speculative_tokens: [1, 2], router: [round_robin, "
             "least_loaded]}\n")
            .find("speculation.num_speculative_tokens and router changes nothing") != std::string::npos);
  CHECK(
      said("workload: {requests: 3, prompt_tokens: 9, output_tokens: 2}, engine: {name: vllm, reserved_memory: 99 GB}",
           "run: simulate\ngrid: {seed: [1, 2]}\n")
          .find("changes nothing") == std::string::npos);
  // Settings of the scenario itself: what only a simulation asks for, and what is idle in every point.
  CHECK(said("policy: fair", "grid: {batch: [1, 8]}\n").find("policy changes nothing in an estimate;") == 0);
  const std::string sums = "engine: {name: vllm, fused_all_reduce: true}";
  CHECK(said(sums, "grid: {batch: [1, 8]}\n").find("engine.fused_all_reduce changes nothing here: ") == 0);
  CHECK(said(sums, "grid: {parallelism.tp: [1, 8]}\n").find("engine.fused_all_reduce") == std::string::npos);
}

TEST_CASE("a document that a point's numbers come from is edited: the point is run again") {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return folder.path() + "/" + name; };
  std::filesystem::copy(ROOFCAST_SOURCE_DIR "/configs", path("configs"), std::filesystem::copy_options::recursive);
  std::filesystem::create_directory(path("draft"));
  std::filesystem::copy(ROOFCAST_SOURCE_DIR "/tests/data/hf_configs/Qwen__Qwen3-8B.json", path("draft/config.json"));
  folder.write("accepted.csv", "accepted_tokens\n1\n2\n");
  folder.write("trace", "arrival_s,prompt_tokens,output_tokens\n0,50,5\n");
  const std::string sweep = folder.write(
      "s.yaml", "scenario:\n  model: qwen3-32b\n  gpu: h200-sxm\n  speculation: {method: draft_model, model: " +
                    path("draft/config.json") + ", acceptance: {file: " + path("accepted.csv") +
                    "}}\n  workload: {arrivals: {process: trace, file: " + path("trace") +
                    "}}\nrun: simulate\ngrid: {parallelism.tp: [1]}\n");
  const auto run = [&] {
    return run_shell("cd '" + folder.path() + "' && ROOFCAST_CONFIGS=configs '" ROOFCAST_PROGRAM "' sweep s.yaml",
                     Stream::kErr)
        .out;
  };
  CHECK(run().find("1 points: 1 run") == 0);
  CHECK(run().find("1 points: 0 run") == 0);
  const auto edited = [&](const std::string& file, const std::string& from, const std::string& to) {
    CAPTURE(file);
    std::string text = roofcast::read_file(path(file), 1'000'000);
    REQUIRE(text.find(from) != std::string::npos);
    folder.write(file, text.replace(text.find(from), from.size(), to));
    CHECK(run().find("1 points: 1 run") == 0);
  };
  edited("configs/models/qwen3-32b.yaml", "vocab_size: 151936", "vocab_size: 151937");
  edited("configs/hardware/h200-sxm.yaml", "memory_bandwidth: 4", "memory_bandwidth: 5");
  edited("configs/engines/vllm.yaml", "step_time: ", "step_time: 1");  // the engine is not named
  edited("draft/config.json", "\"num_hidden_layers\": 36", "\"num_hidden_layers\": 60");
  edited("accepted.csv", "2", "3");
  edited("trace", "0,50,5", "0,50,6");
}

TEST_CASE("the counts of experts are edited: the point is run again") {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& tokens) {
    std::string counts = "expert,tokens\n0," + tokens + "\n";
    for (int expert = 1; expert < 128; ++expert)
      counts += std::to_string(expert) + "," + std::to_string(400 + 10 * expert) + "\n";
    folder.write("counts", counts);
    return run_shell("cd '" + folder.path() + "' && '" ROOFCAST_PROGRAM "' sweep s.yaml", Stream::kErr).out;
  };
  folder.write("s.yaml",
               "scenario: {model: qwen3-30b-a3b, gpu: h100-sxm, routing: {counts: counts}}\ngrid: {batch: [16]}\n");
  CHECK(run("500").find("1 points: 1 run") == 0);
  CHECK(run("500").find("1 points: 0 run") == 0);
  CHECK(run("501").find("1 points: 1 run") == 0);
}

TEST_CASE("Ctrl-C ends a sweep within a second, whatever its points do") {
  const TemporaryFolder folder;
  const std::string sweep = folder.write("s.yaml",
                                         "scenario: {model: llama-3.1-8b, gpu: h100-sxm, workload: {arrivals: "
                                         "{process: all_at_once}, requests: 50000000,\n"
                                         "           prompt_tokens: 5, output_tokens: 5}}\nrun: "
                                         "simulate\ngrid: {parallelism.tp: [1]}\n");
  const RunResult result =
      run_shell("s=$(date +%s%N); timeout -s INT 0.5 '" ROOFCAST_PROGRAM "' sweep '" + sweep + "' --store '" +
                folder.path() + "/s.sqlite'; e=$(date +%s%N); echo $(( (e - s) / 1000000 ))");
  CHECK(std::stoi(result.out) >= 500);  // it was under way
  CHECK(std::stoi(result.out) < 2000);  // ms: 500 until the signal, 700 until it ends, and a busy machine
}

TEST_CASE("SIGTERM ends a sweep with 128 + 15, whether its points end within the grace or not") {
  const TemporaryFolder folder;
  const auto ends = [&](const std::string& requests) {
    const std::string sweep =
        folder.write("s.yaml",
                     "scenario: {model: llama-3.1-8b, gpu: h100-sxm, workload: {arrivals: {process: all_at_once}, "
                     "requests: " +
                         requests +
                         ",\n           prompt_tokens: 5, output_tokens: 5}}\n"
                         "run: simulate\ngrid: {seed: {from: 1, to: 400, step: 1}}\n");
    const std::string store = folder.path() + "/" + requests + ".sqlite";
    // The handlers are set as soon as there is a store; a program that has gone is told by `kill`.
    return run_shell("'" ROOFCAST_PROGRAM "' sweep '" + sweep + "' --store '" + store +
                         "' & for i in $(seq 200); do [ -s '" + store +
                         "' ] && break; sleep 0.05; done; sleep 0.3; kill -TERM $! 2>&1 || echo gone >&2; wait $!; "
                         "echo status $? >&2",
                     Stream::kErr)
        .out;
  };
  const std::string quick = ends("50000"), slow = ends("50000000");
  CAPTURE(quick);
  CAPTURE(slow);
  CHECK(quick.find("of 400 points are in") != std::string::npos);
  CHECK(slow.find("interrupted: finished points are kept") != std::string::npos);
  for (const std::string& said : {quick, slow}) {
    CHECK(said.ends_with("status 143\n"));
    CHECK(said.find("gone") == std::string::npos);
  }
}

TEST_CASE("a sweep in the background goes on when Ctrl-C ends another program") {
  const TemporaryFolder folder;  // a shell starts what runs behind it with SIGINT ignored
  const std::string sweep = folder.write(
      "s.yaml",
      "scenario: {model: llama-3.1-8b, gpu: h100-sxm, workload: {arrivals: {process: all_at_once}, requests: 2000000,\n"
      "           prompt_tokens: 5, output_tokens: 5}}\nrun: simulate\ngrid: {seed: [1, 2]}\n");
  const RunResult result =
      run_shell("'" ROOFCAST_PROGRAM "' sweep '" + sweep +
                "' --store :memory: --format csv & sleep 0.2; kill -INT $! || echo gone; wait $!; echo $?");
  CHECK(result.out.ends_with("\n0\n"));
  CHECK(result.out.find("gone") == std::string::npos);
}

TEST_CASE("a store that cannot be written is read all the same") {
  const TemporaryFolder folder;
  folder.write("s.yaml", "scenario: {model: llama-2-7b, gpu: h100-sxm}\ngrid: {batch: [1, 2, 4]}\n");
  const std::string in = "cd '" + folder.path() + "' && '" ROOFCAST_PROGRAM "' ";
  CHECK(run_shell(in + "sweep s.yaml").status == 0);
  std::filesystem::permissions(folder.path() + "/s.sqlite", std::filesystem::perms::owner_read);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const RunResult page = run_shell(in + "report s.sqlite"), again = run_shell(in + "sweep s.yaml", Stream::kErr);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  CHECK(page.status == 0);
  if (getuid() == 0) return;  // root may write all the same
  CHECK(again.status == 2);
  CHECK(again.out.find("may not be written; --store names another") != std::string::npos);
}

TEST_CASE("the shards of a sweep, killed and resumed, merge into the table of the whole") {
  const TemporaryFolder folder;
  const std::string sweep =
      folder.write("s.yaml",
                   "scenario: {model: llama-2-7b, gpu: h100-sxm, output_tokens: 16}\n"
                   "grid: {batch: {from: 1, to: 20, step: 1}, prompt_tokens: {from: 100, to: 1000, step: 100}}\n"
                   "where: [batch != 7]\n");
  const std::string run = "cd '" + folder.path() + "' && ", program = "'" ROOFCAST_PROGRAM "' sweep '" + sweep + "' ";
  // Both shards at once; the second is killed somewhere and started again.
  const std::string second = program + "--shard 2/2 >/dev/null";
  CHECK(run_shell(run + "{ timeout -s KILL 0.05 " + second + "; " + second + "; } & cd '" + folder.path() + "' && " +
                  program + "--shard 1/2; wait $!")
            .status == 0);
  const RunResult merged = run_shell(run + program + "--merge s.*-of-2.sqlite --format csv");
  const RunResult whole = run_roofcast("sweep '" + sweep + "' --store :memory: --format csv");
  CHECK(merged.status == 0);
  CHECK(merged.out == whole.out);
  // again, with the merged store among those that the pattern finds
  const RunResult again = run_shell(run + program + "--merge *.sqlite", Stream::kErr);
  CHECK(again.out.find("190 points: 0 run") != std::string::npos);
}

TEST_CASE("a launcher's rank is a shard with a store of its own") {
  const TemporaryFolder folder;
  const std::string sweep =
      folder.write("s.yaml", "scenario: {model: llama-2-7b, gpu: h100-sxm}\ngrid: {batch: [1, 2, 3, 4, 5]}\n");
  const std::string store = folder.path() + "/r.sqlite",
                    run = " '" ROOFCAST_PROGRAM "' sweep '" + sweep + "' --store '";
  const auto say = [&](const std::string& variables, const std::string& flags = "") {
    return run_shell(variables + run + store + "' " + flags, Stream::kErr).out;
  };
  // 5 points by 2: 3 and 2
  CHECK(say("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2").find("shard 1/2: 3 points: 3 run") == 0);
  CHECK(say("PMI_RANK=1 PMI_SIZE=2").find("shard 2/2: 2 points: 2 run") == 0);
  CHECK(say("SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2").find("shard 2/2: 2 points: 0 run") == 0);
  CHECK(say("SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1").find("5 points: 5 run") == 0);
  CHECK(say("SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_NTASKS=2").find("i from 1 to 2") != std::string::npos);
  CHECK(say("SLURM_PROCID=0 SLURM_NTASKS=4").find("5 points: 0 run") == 0);  // a batch script is no rank
  CHECK(say("PMI_RANK=abc PMI_SIZE=2").find("PMI_RANK=abc, PMI_SIZE=2: the rank must be a whole number") !=
        std::string::npos);
  CHECK(say("PMI_RANK=0 PMI_SIZE=2", "--out table").find("--out: 2 ranks cannot write one file") != std::string::npos);
  const std::string shards = folder.path() + "/r.1-of-2.sqlite " + folder.path() + "/r.2-of-2.sqlite";
  CHECK(
      run_shell("PMI_RANK=0 PMI_SIZE=2 '" ROOFCAST_PROGRAM "' sweep '" + sweep + "' --store :memory: --merge " + shards,
                Stream::kErr)
          .out.find("5 points: 0 run") == 0);
}

TEST_CASE("a sweep that runs out of space reports it, keeps its points and continues from there") {
  const TemporaryFolder folder;
  const std::string sweep =
      folder.write("s.yaml",
                   "scenario: {model: llama-2-7b, gpu: h100-sxm, output_tokens: 16}\n"
                   "grid: {batch: {from: 1, to: 30, step: 1}, prompt_tokens: {from: 100, to: 2000, step: 100}}\n");
  const std::string store = folder.path() + "/s.sqlite", run = "sweep '" + sweep + "' --store '" + store + "'";
  // A limit of 1000 blocks of 512 bytes on any file stands for the full disk: one full transaction fits, two do not.
  const RunResult full = run_shell("ulimit -f 1000 && '" ROOFCAST_PROGRAM "' " + run, Stream::kErr);
  CAPTURE(full.out);
  CHECK(full.status == 2);
  CHECK(full.out.find("finished points are kept") != std::string::npos);
  const RunResult resumed = run_roofcast(run, Stream::kErr);
  CHECK(resumed.status == 0);
  CHECK(resumed.out.find("600 points: 600 run") == std::string::npos);
  CHECK(run_roofcast(run + " --format csv").out ==
        run_roofcast("sweep '" + sweep + "' --store :memory: --format csv").out);
}

TEST_CASE("a second sweep on the same store is an error and changes nothing") {
  const TemporaryFolder folder;
  const std::string slow = folder.write(
      "slow.yaml",
      "scenario: {model: llama-3.1-8b, gpu: h100-sxm, workload: {arrivals: {process: poisson, rate: 20 /s}, "
      "prompt_tokens: {distribution: fixed, value: 500}, output_tokens: {distribution: uniform, min: 1, max: 400}, "
      "requests: 100000}}\nrun: simulate\ngrid: {seed: {from: 1, to: 1000, step: 1}}\n");
  const std::string store = folder.path() + "/s.sqlite";
  const std::string first =
      "'" ROOFCAST_PROGRAM "' sweep '" + slow + "' --store '" + store + "' >/dev/null 2>&1 & first=$!; ";
  const std::string wait = "for i in $(seq 100); do [ -s '" + store + "-wal' ] && break; sleep 0.02; done; ";
  const std::string second = "'" ROOFCAST_PROGRAM "' sweep '" + slow + "' --store '" + store + "'; status=$?; ";
  const RunResult refused = run_shell(first + wait + second + "kill -9 $first; exit $status", Stream::kErr);
  CHECK(refused.status == 2);
  CHECK(refused.out.find("in use by another process") != std::string::npos);
}

TEST_CASE("a plan gives the same answer twice, and a launch command") {
  const std::string plan = "plan configs/plans/qwen3-32b-h200-10ms.yaml ";
  const auto first = run_roofcast(plan + "--format json"), second = run_roofcast(plan + "--format json");
  CHECK(first.status == 0);
  CHECK(first.out == second.out);
  const auto command = run_roofcast(plan + "--emit trtllm");
  CHECK(command.status == 0);
  CHECK(command.out.find("trtllm-serve Qwen3-32B-fp8") != std::string::npos);
  CHECK(run_roofcast(plan + "--emit vllm").status == 2);  // it is planned for TensorRT-LLM
}
