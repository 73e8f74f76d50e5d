#include <algorithm>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "tests/base/temporary_folder.h"
#include "tests/cli/run_program.h"

using roofcast::TemporaryFolder;
using roofcast::testing::run_roofcast;

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

TEST_CASE("a plan gives the same answer twice, and a launch command") {
  const std::string plan = "plan configs/plans/offline-70b-2xh100.yaml ";
  const auto first = run_roofcast(plan + "--format json"), second = run_roofcast(plan + "--format json");
  CHECK(first.status == 0);
  CHECK(first.out == second.out);
  const auto command = run_roofcast(plan + "--emit vllm");
  CHECK(command.status == 0);
  CHECK(command.out.find("vllm serve meta-llama/Llama-3.1-70B") != std::string::npos);
}

TEST_CASE("every shipped sweep and plan runs") {
  for (const char* name : {"llama-2-13b-batch", "kv-cache", "roofline", "gpu-cost", "chat-rate", "speculation"}) {
    CHECK(run_roofcast(std::string("sweep ") + name + " --store :memory:").status == 0);
  }
  for (const char* name : {"qwen3-32b-h200", "qwen3-32b-h200-10ms", "chat-70b", "offline-70b-2xh100"}) {
    CHECK(run_roofcast(std::string("plan ") + name).status == 0);
  }
}
