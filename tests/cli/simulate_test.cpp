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
