#include "reports/provenance.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/plan/scenario.h"

using namespace roofcast;
using namespace roofcast::reports;

namespace {

std::shared_ptr<const Deployment> deployed(const std::string& text) {
  return read_scenario(parse_config_text(text, "s.yaml"), Fidelity::kCalibrated).deployment;
}
bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("deployment line: experts in a format of their own are named") {
  const auto line = [](const char* text) { return deployment_line(*deployed(text)); };
  CHECK(says(line("{model: kimi-k2.5, gpu: b200-sxm, parallelism: {tp: 8}}"), ", int4 experts, bf16 weights, "));
  CHECK(says(line("{model: gpt-oss-20b, gpu: h100-sxm}"), "mxfp4"));
  CHECK(says(line("{model: qwen3-30b-a3b, gpu: h100-sxm}"), ", bf16 weights, "));
  CHECK_FALSE(says(line("{model: qwen3-30b-a3b, gpu: h100-sxm}"), "experts"));
}

TEST_CASE("provenance: whose kernels were measured, and a release that nobody named") {
  const auto json = [](const char* engine) {
    return provenance_json(*deployed(fmt::format("{{model: llama-3.1-8b, gpu: h100-sxm, engine: {}}}", engine)));
  };
  const auto same = json("trtllm@1.3"), other = json("vllm@0.12"), bare = json("trtllm");
  CHECK(same.at("kernels_release").get<std::string>().starts_with("trtllm-1.3"));
  CHECK_FALSE(same.contains("kernels_of_another_release"));
  CHECK_FALSE(same.contains("engine_version_assumed"));
  CHECK(other.at("kernels_release") == "vllm-0.24.0");
  CHECK(other.at("kernels_of_another_release") == true);
  CHECK(bare.at("engine_version_assumed") == true);
  CHECK(says(provenance_line(*deployed("{model: llama-3.1-8b, gpu: h100-sxm, engine: trtllm}")),
             "no release given: the newest known is assumed"));
}

TEST_CASE("bill: more GPUs may be paid for than are used") {
  // One instance of 8 of the only provider that reserves H100s; two replicas of tp 4 fill it.
  const auto d = deployed("{model: llama-3.1-70b, gpu: h100-sxm, parallelism: {tp: 4}, price: reserved_1y}");
  const Bill one = cheapest_bill(*d, 1), two = cheapest_bill(*d, 2);
  REQUIRE(one.paid_gpus() == 8);
  CHECK(paid_line(one, 4) == "8 GPUs are paid for: instances are rented whole");
  CHECK(paid_line(two, 8) == "");
}
