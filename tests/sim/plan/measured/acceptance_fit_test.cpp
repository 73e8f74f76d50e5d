#include "sim/plan/measured/acceptance_fit.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"

using namespace roofcast;

namespace {

CsvTable table(double tpot_ms, const std::string& speculation = "mtp", const std::string& suspect = "0") {
  return CsvTable::parse(
      fmt::format("model,gpu,engine,engine_version,protocol,speculation,num_speculative_tokens,weight_dtype,isl,osl,"
                  "concurrency,tp,pp,attention_dp,moe_tp,moe_ep,ttft_ms,tpot_ms,suspect\n"
                  "deepseek-v3,h200-sxm,trtllm,1.2,inferencex,{},3,fp8_block,256,512,4,8,1,1,8,1,100,{:.6f},{}\n",
                  speculation, tpot_ms, suspect),
      "runs.csv");
}

}  // namespace

TEST_CASE("acceptance: the one that made a run is found again") {
  MeasuredRuns runs = read_measured_runs(table(1));
  REQUIRE(runs.runs.size() == 1);
  MeasuredRun run = runs.runs[0];
  REQUIRE(run.note == "");
  CHECK_FALSE(run.scored);
  CHECK(run.serving.speculation.num_speculative_tokens == 3);
  const auto pricer = make_model_pricer(run.deployment);
  run.serving.speculation.acceptance = {0.6};
  const CsvTable measured = table(predict_run(run, *pricer).tpot_ms);
  const auto fits = fit_acceptance(read_measured_runs(measured), measured);
  REQUIRE(fits.size() == 1);
  CHECK(fits[0].acceptance == doctest::Approx(0.6).epsilon(0.02));
  const auto groups = acceptance_by_group(fits);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].drafts == 3);
  CHECK(groups[0].tokens_per_step == doctest::Approx(1 + 0.6 + 0.36 + 0.216).epsilon(0.05));
}

TEST_CASE("acceptance: runs beyond both ends say so; none at all is refused") {
  CHECK(fit_acceptance(read_measured_runs(table(1e4)), table(1e4))[0].below);
  CHECK(fit_acceptance(read_measured_runs(table(0.01)), table(0.01))[0].above);
  CHECK_THROWS_AS(fit_acceptance(read_measured_runs(table(5, "none")), table(5, "none")), ConfigError);
  CHECK_THROWS_AS(fit_acceptance(read_measured_runs(table(5, "mtp", "1")), table(5, "mtp", "1")), ConfigError);
}
