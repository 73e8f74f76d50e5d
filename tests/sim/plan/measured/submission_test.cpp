#include "sim/plan/measured/submission.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "sim/plan/measured/row_scenario.h"
#include "sim/plan/scenario.h"
#include "sim/step/deployment.h"

using namespace roofcast;

namespace {

/// The scenario of an entry of MLPerf Inference.
ConfigTree entry(const std::string& load, const std::string& system, const std::string& rate,
                 const std::string& model = "deepseek-r1") {
  const CsvTable table = CsvTable::parse("model,scenario,submitter,system,tokens_per_s,target_qps\n" + model + "," +
                                             load + ",Somebody," + system + ",1," + rate + "\n",
                                         "entries.csv");
  const RunColumns columns(table);
  return submission_scenario(recipe_of_row(columns, 0), columns, 0);
}
Scenario read(const ConfigTree& tree) { return read_scenario(tree, Fidelity::kCalibrated); }

constexpr const char* kEight = "X_B200-SXM-180GBx8_TRT";
constexpr const char* kRack = "GB200-NVL72_GB200-186GB_aarch64x72_TRT";

}  // namespace

/// Limits of a batch and a step are those of one rank: eight ranks of 512 sequences run 4,096 at once.
TEST_CASE("an entry is launched as its submitter's files say, with the limits of one rank") {
  const Scenario s = read(entry("Offline", kEight, "12"));
  CHECK(s.deployment->sharding.attention_dp == 8);
  CHECK(s.deployment->engine.max_num_seqs == 512);
  CHECK(s.deployment->engine.max_num_batched_tokens == 4608);
  CHECK(s.deployment->max_sequences() == 4096);
  CHECK(s.deployment->engine.scheduler == "decode_first");
  CHECK(s.serving.replicas == 1);
  CHECK(read(entry("Offline", kRack, "10")).serving.replicas == 9);  // 72 GPUs / 8 ranks
}

/// 140,416 = 32 x 4,388 samples were asked for. At 300 samples/s ten minutes and a tenth make 1.1 x 600 x 300 of them.
TEST_CASE("an offline run sends what its submitter asked for, or ten minutes of what it expected") {
  CHECK(read(entry("Offline", kEight, "12")).workload->requests == 140416);
  CHECK(read(entry("Offline", kEight, "300")).workload->requests == 198000);
  // Nobody's number: the benchmark's own 24,576, or 1.1 x 600 x 376.
  CHECK(read(entry("Offline", "X_B300x8_TRT", "1", "llama2-70b-99")).workload->requests == 24576);
  CHECK(read(entry("Offline", "X_B300x8_TRT", "376", "llama2-70b-99")).workload->requests == 248160);
}

/// 105,312 samples at 14 a second take 7,522 s; ten minutes are the least.
TEST_CASE("a server run lasts until its samples are sent") {
  CHECK(read(entry("Server", kEight, "14")).workload->duration->base() == doctest::Approx(7522));
  CHECK(read(entry("Server", kEight, "1000")).workload->duration->base() == doctest::Approx(600));
  CHECK(read(entry("Server", "X_B300x8_TRT", "376", "llama2-70b-99")).workload->duration->base() == 600);
}

TEST_CASE("an entry whose launch nobody published is refused") {
  CHECK_THROWS_WITH_AS(entry("Interactive", kRack, "64"),
                       doctest::Contains("how deepseek-r1 was launched on gb200 is not public"), ConfigError);
  CHECK_THROWS_WITH_AS(entry("Offline", "unheard-of", "64"), doctest::Contains("does not know the system"),
                       ConfigError);
}
