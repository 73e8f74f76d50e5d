// Claims about systems, on the scenarios that ship for them, ideal: what they find in calibrated mode is in
// docs/lectures.md.

#include "base/config_library.h"
#include "lecture.h"

using namespace lecture;

namespace {

ServingMetrics run(const std::string& name, const std::vector<std::string>& changes = {}) {
  ConfigTree tree = load_named("scenarios", name, {});
  for (const std::string& change : changes) tree = with_assignment(tree, change, "test");
  const Scenario s = read_scenario(tree, Fidelity::kIdeal);
  return simulate(s.deployment, *s.workload, s.serving);
}

double throughput(const ServingMetrics& m) { return m.output_tokens / m.duration.base(); }

}  // namespace

TEST_CASE("continuous batching: 2 to 5 times and more, the wider the batch the more a static one waits") {
  const auto gain = [](const std::string& slots) {
    return throughput(run("claim-continuous-batching", {"engine.max_num_seqs=" + slots})) /
           throughput(run("claim-continuous-batching", {"engine.max_num_seqs=" + slots, "engine.scheduler=static"}));
  };
  const double narrow = gain("8"), wide = gain("64");
  CHECK(narrow > 2.0);
  CHECK(wide > narrow);
  CHECK(wide < 8.0);  // a static batch of 64 computes four padding tokens for each that counts
}

TEST_CASE("paging: 2 to 4 times over slots of 2,048 tokens") {
  const double gain =
      throughput(run("claim-4x-by-paging")) / throughput(run("claim-4x-by-paging", {"engine.block_size=0"}));
  CHECK(gain > 2.0);
  CHECK(gain < 5.0);
}

TEST_CASE("32 requests at once: 85 % cheaper and more") {
  const double gain = throughput(run("claim-85-percent-cheaper")) /
                      throughput(run("claim-85-percent-cheaper", {"workload.arrivals.concurrency=1"}));
  CHECK(1 - 1 / gain > 0.85);
}

TEST_CASE("prefix caching: 1,800 of 2,000 tokens are found, 90 % less the first request and the tail of a block") {
  const ServingMetrics m = run("claim-prefix-caching");
  CHECK(m.cached_tokens / m.input_tokens == within(0.9, 0.01));
  CHECK(run("claim-prefix-caching", {"engine.prefix_caching=false"}).cached_tokens == 0);
}

TEST_CASE("no draft on two H100s: a batch job fills them anyway") {
  // 70B in fp8: speculation gains least where batches are largest
  const auto gain = [](const std::string& batch) {
    const std::vector<std::string> few{"engine.max_num_seqs=" + batch, "workload.requests=64"};
    std::vector<std::string> more = few;
    more.push_back("speculation={method: eagle}");
    return throughput(run("offline-70b-2xh100", more)) / throughput(run("offline-70b-2xh100", few));
  };
  CHECK(gain("1") > 2.0);
  CHECK(gain("64") < gain("1"));
}
