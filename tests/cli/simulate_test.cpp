// What the flags of `simulate` say about a trace.

#include <doctest/doctest.h>

#include "tests/cli/run_program.h"

using roofcast::testing::run_roofcast;
using roofcast::testing::run_shell;
using roofcast::testing::Stream;

TEST_CASE("a trace given by a flag is known by its first line") {
  const auto result = run_shell(
      "f=$(mktemp) && echo '{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [1, 2]}' > "
      "\"$f\"; '" ROOFCAST_PROGRAM
      "' simulate configs/scenarios/chat-70b-4xh100.yaml --trace \"$f\" --format json; status=$?; rm \"$f\"; exit "
      "$status");
  CHECK(result.status == 0);
  CHECK(result.out.find("\"total_input_tokens\": 600") != std::string::npos);
}

TEST_CASE("a format of no trace is a slip") {
  const auto result =
      run_roofcast("simulate configs/scenarios/chat-70b-4xh100.yaml --trace-format mooncake", Stream::kErr);
  CHECK(result.status == 2);
  CHECK(result.out.starts_with("--trace-format:"));
}

TEST_CASE("simulate without a scenario lists the shipped ones") {
  const auto result = run_roofcast("simulate", Stream::kErr);
  CHECK(result.status == 2);
  CHECK(result.out.starts_with("simulate: which scenario? roofcast simulate SCENARIO.yaml, or a shipped one: "));
  CHECK(result.out.find("chat-70b-4xh100") != std::string::npos);
}

TEST_CASE("--set with a key that lacks its map names the whole path") {
  const auto hint = [](const std::string& set) {
    return run_roofcast("estimate --model llama-3.1-8b --gpu h100-sxm --set " + set, Stream::kErr).out;
  };
  CHECK(hint("max_num_seqs=4").find("; did you mean engine.max_num_seqs?\n") != std::string::npos);
  CHECK(hint("tp=2").find("; did you mean parallelism.tp (or --tp)?\n") != std::string::npos);
  CHECK(hint("batch=4").find("; did you mean --batch of estimate?\n") != std::string::npos);
  CHECK(hint("zzz=4").find("did you mean") == std::string::npos);
}

TEST_CASE("a run is written as a load generator's, and compared with itself") {
  const auto result = run_shell("f=$(mktemp) && '" ROOFCAST_PROGRAM
                                "' simulate chat-70b-4xh100 --set workload.requests=100 --bench-out \"$f\" "
                                "--bench-format guidellm >/dev/null 2>&1 && '" ROOFCAST_PROGRAM
                                "' compare chat-70b-4xh100 --set workload.requests=100 --bench \"$f\" "
                                "--format csv --columns ratio; status=$?; rm \"$f\"; exit $status");
  CHECK(result.status == 0);
  CHECK(result.out.starts_with("ratio\n1\n1\n"));  // duration, completed
  CHECK(run_roofcast("simulate chat-70b-4xh100 --bench-format aiperf", Stream::kErr).out ==
        "--bench-format: needs --bench-out FILE\n");
}
