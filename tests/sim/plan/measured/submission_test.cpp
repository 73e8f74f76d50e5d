#include "sim/plan/measured/submission.h"

#include <doctest/doctest.h>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"
#include "sim/plan/scenario.h"

using namespace roofcast;

namespace {

CsvTable table(const std::string& rows) {
  return CsvTable::parse("model,scenario,submitter,system,tokens_per_s,samples_per_s,target_qps\n" + rows, "r.csv");
}

}  // namespace

TEST_CASE("submission: an entry whose launch is public becomes a scenario") {
  const CsvTable entries = table(
      "llama2-70b-99,Offline,NVIDIA,B300-SXM-270GBx8_TRT,112954,413.714,440\n"
      "llama2-70b-99,Server,NVIDIA,B300-SXM-270GBx8_TRT,107318,393.11,400\n");
  const MeasuredRuns runs = read_measured_runs(entries);
  CHECK(runs.kind == RunKind::kSubmission);
  const MeasuredRun& offline = runs.runs[0];
  REQUIRE(offline.note == "");
  CHECK(offline.group == "llama-2-70b b300-sxm trtllm");
  CHECK(offline.serving.replicas == 8);  // of one GPU each
  CHECK(offline.deployment->precision.weights == Dtype::kNvfp4);
  CHECK(offline.deployment->precision.kv_cache == Dtype::kFp8);  // the recipe's
  CHECK(offline.deployment->engine.max_num_batched_tokens == 4608);
  CHECK(offline.workload.arrivals.process == ArrivalSpec::Process::kAllAtOnce);
  CHECK(offline.workload.requests == 290400);  // 440 /s for ten minutes, and a tenth more
  CHECK_FALSE(offline.workload.objectives);
  const MeasuredRun& server = runs.runs[1];
  REQUIRE(server.note == "");
  CHECK(server.workload.arrivals.rate == PerSecond(400));
  CHECK(server.workload.objectives);  // 2 s and 200 ms, of the workload
}

TEST_CASE("submission: what is not known says what") {
  const auto note = [](const std::string& row) { return read_measured_runs(table(row)).runs[0].note; };
  CHECK(note("llama2-70b-99,Offline,X,unheard-of,1,1,1\n").find("does not know the system 'unheard-of'") !=
        std::string::npos);
  CHECK(note("gpt-7,Offline,NVIDIA,B300-SXM-270GBx8_TRT,1,1,1\n").find("does not know this model") !=
        std::string::npos);
  CHECK(note("mixtral-8x7b,Interactive,NVIDIA,B300-SXM-270GBx8_TRT,1,1,1\n").find("no workload of this load") !=
        std::string::npos);
}
