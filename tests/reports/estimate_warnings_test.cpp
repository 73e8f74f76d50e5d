#include <doctest/doctest.h>

#include "reports/estimate_report.h"
#include "sim/plan/scenario.h"
#include "sim/step/deployment.h"

using namespace roofcast;

TEST_CASE("estimate: a prompt longer than a step that the engine does not cut would be refused") {
  const auto warnings = [](const char* engine, int prompt) {
    const Scenario s =
        read_scenario(parse_config_text(std::string("model: llama-3.1-8b\ngpu: h100-sxm\nengine: ") + engine, "s.yaml"),
                      Fidelity::kCalibrated);
    EstimateRequest request;
    request.prompt_tokens = prompt;
    return reports::warnings_of(estimate(s.deployment, request), *s.deployment);
  };
  REQUIRE(warnings("{name: tgi, max_num_batched_tokens: 512}", 513).size() == 1);
  CHECK(warnings("{name: tgi, max_num_batched_tokens: 512}", 513).front() ==
        "prompts of 513 tokens are longer than a step of 512 (engine.max_num_batched_tokens), and tgi does not cut "
        "them: it would refuse them");
  CHECK(warnings("{name: tgi, max_num_batched_tokens: 512}", 512).empty());
  CHECK(warnings("{name: vllm, max_num_batched_tokens: 512}", 513).empty());
}
