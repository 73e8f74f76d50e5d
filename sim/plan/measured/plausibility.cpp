#include "sim/plan/measured/plausibility.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "sim/plan/parallel.h"
#include "sim/step/step_model.h"

namespace roofcast {
namespace {

constexpr double kTolerance = 0.85;
constexpr double kSlowerThanMore = 1.5;

struct Figures {
  double ttft, tpot;  ///< seconds
};

/// Why the datasheet forbids these figures; empty where it does not.
std::string datasheet_doubt(const MeasuredRun& run, const Figures& f) {
  auto ideal = std::make_shared<Deployment>(*run.deployment);
  ideal->fidelity = Fidelity::kIdeal;
  const double isl = run.workload.prompt_tokens.mean(), osl = run.workload.output_tokens.mean();
  const double users = static_cast<double>(run.workload.arrivals.concurrency) / std::max(1, run.serving.replicas);
  const double latency = f.ttft + osl * f.tpot;
  StepModel model(ideal);
  if (f.tpot > 0 && osl > 1) {
    const int decodes = std::max(1, static_cast<int>(std::floor(users * osl * f.tpot / latency)));
    const double step =
        model.cost({.decodes = decodes, .decode_context = decodes * (isl + osl / 2), .prefills = {}}).time.base();
    if (f.tpot < kTolerance * step)
      return fmt::format("TPOT of {:.2f} ms is below the {:.2f} ms that {} sequences take by the datasheet",
                         f.tpot * 1e3, step * 1e3, decodes);
  }
  const bool apart = run.serving.disaggregation.has_value();
  const std::array<PrefillChunk, 1> prompt{{{.tokens = static_cast<int>(isl), .context_before = 0}}};
  const bool cached = run.deployment->engine.prefix_caching && run.workload.shared_prefix_tokens > 0;
  if (f.ttft <= 0 || apart || cached) return "";
  const double prefill = model.cost({.prefills = prompt}).time.base();
  const double ranks = run.deployment->sharding.attention_dp;
  if (f.ttft < kTolerance * prefill)
    return fmt::format("TTFT of {:.1f} ms is below the {:.1f} ms that one prompt takes by the datasheet", f.ttft * 1e3,
                       prefill * 1e3);
  if (latency < kTolerance * users / ranks * prefill)
    return fmt::format("a latency of {:.2f} s is below the {:.2f} s that {:.0f} prompts take by the datasheet", latency,
                       users / ranks * prefill, users);
  return "";
}

/// Runs that differ by their load alone.
std::string settings_of(const CsvTable& table, const MeasuredRun& run) {
  std::string key = run.classes.version + "|" + run.classes.harness;
  for (std::string_view name :
       {"model", "gpu", "engine_version", "weight_dtype", "moe_weight_dtype", "kv_dtype", "isl", "osl", "tp", "pp",
        "attention_dp", "moe_ep", "speculation", "moe_backend", "attention_backend"}) {
    const auto at = table.find(name);
    key += "|" + (at ? std::string(table.at(run.row, *at)) : std::string());
  }
  return key;
}

}  // namespace

void mark_implausible(MeasuredRuns& runs, const CsvTable& table) {
  if (!closed_loop(runs.kind)) return;
  const auto doubt = [](MeasuredRun& run, std::string why) {
    if (why.empty() || !run.doubt.empty()) return;
    run.doubt = std::move(why);
    run.scored = false;
  };
  const auto figures = [&](const MeasuredRun& run) {
    return Figures{measured_value(table, run.row, "ttft_ms") * 1e-3, measured_value(table, run.row, "tpot_ms") * 1e-3};
  };
  std::vector<std::string> found(runs.runs.size());
  parallel_for_each_index(found.size(), [&](std::size_t i) {
    const MeasuredRun& run = runs.runs[i];
    if (run.scored && run.note.empty()) found[i] = datasheet_doubt(run, figures(run));
  });
  std::map<std::string, std::vector<MeasuredRun*>> alike;
  for (std::size_t i = 0; i < found.size(); ++i) {
    MeasuredRun& run = runs.runs[i];
    if (run.scored && run.note.empty() && runs.kind == RunKind::kAggregated)
      alike[settings_of(table, run)].push_back(&run);
    doubt(run, std::move(found[i]));
  }
  for (auto& [settings, members] : alike) {
    for (MeasuredRun* run : members) {
      const double tpot = figures(*run).tpot;
      for (const MeasuredRun* other : members) {
        const double more = figures(*other).tpot;
        const bool busier = other->workload.arrivals.concurrency >= 2 * run->workload.arrivals.concurrency;
        if (busier && more > 0 && tpot > kSlowerThanMore * more)
          doubt(*run,
                fmt::format("TPOT of {:.2f} ms with {} in flight, {:.2f} ms with {}", tpot * 1e3,
                            run->workload.arrivals.concurrency, more * 1e3, other->workload.arrivals.concurrency));
      }
    }
  }
}

}  // namespace roofcast
