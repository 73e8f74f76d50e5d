#include <fmt/format.h>

#include "library/public_types.h"
#include "roofcast/estimate.h"
#include "roofcast/plan.h"
#include "roofcast/simulate.h"

namespace roofcast {
inline namespace v0 {
namespace {

Result result_of(const char* kind, library::Answer answer) {
  std::string text = library::text_of(answer);
  return Result(std::make_shared<const Result::State>(Result::State{kind, std::move(answer), std::move(text)}));
}

void require_positive(const char* name, int value, int most) {
  if (value < 1 || value > most) throw Error(fmt::format("{}: must be from 1 to {}, got {}", name, most, value));
}

}  // namespace

Result estimate(const Scenario& scenario, const EstimateOptions& options) {
  constexpr int kMostSequences = 1'000'000, kMostTokens = 100'000'000;
  require_positive("batch", options.batch, kMostSequences);
  require_positive("prompt_tokens", options.prompt_tokens, kMostTokens);
  require_positive("output_tokens", options.output_tokens, kMostTokens);
  if (options.context) require_positive("context", *options.context, kMostTokens);
  return with_public_errors([&] {
    return result_of("estimate", library::answer_estimate(scenario.tree().tree, options.fidelity == Fidelity::ideal,
                                                          {options.batch, options.prompt_tokens, options.output_tokens,
                                                           options.context.value_or(0)}));
  });
}

Result simulate(const Scenario& scenario, const SimulateOptions& options) {
  return with_public_errors([&] {
    return result_of("simulation",
                     library::answer_simulation(scenario.tree().tree, options.fidelity == Fidelity::ideal));
  });
}

Result plan(const Scenario& scenario, const PlanOptions& options) {
  return with_public_errors([&] {
    library::Answer answer = library::answer_plan(scenario.tree().tree, options.fidelity == Fidelity::ideal);
    const bool several = answer.json["kind"] == "services_plan";
    return result_of(several ? "services_plan" : "plan", std::move(answer));
  });
}

}  // namespace v0
}  // namespace roofcast
