#include "sim/plan/measured/plausibility.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "sim/plan/parallel.h"
#include "sim/step/deployment.h"
#include "sim/step/step_model.h"

namespace roofcast {
namespace {

constexpr double kTolerance = 0.85;
constexpr double kSlowerThanMore = 1.5;
constexpr double kMostInFlight = 1.5;  ///< of the requests there are: means of unequal lengths are no means of products

struct Figures {
  double ttft, tpot;  ///< seconds
};

/// Why these figures beat the datasheet; empty if they do not.
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

/// Ideal times of one replica: lower bounds for any launch of it.
class DatasheetTimes {
 public:
  explicit DatasheetTimes(const MeasuredRun& run) : run_(run), ideal_(std::make_shared<Deployment>(*run.deployment)) {
    ideal_->fidelity = Fidelity::kIdeal;
    model_ = std::make_unique<StepModel>(ideal_);
  }

  double output_tokens() const { return run_.workload.output_tokens.mean(); }
  /// A decode step of this many sequences.
  double step(double sequences) {
    const int decodes = std::max(1, static_cast<int>(sequences));
    return model_->cost({.decodes = decodes, .decode_context = decodes * context(), .prefills = {}}).time.base();
  }
  /// One of several prompts that share a pass over the weights; 0 if prompts may be in the prefix cache.
  double prompt(double waiting) {
    const WorkloadSpec& w = run_.workload;
    if (ideal_->engine.prefix_caching && brings_prefixes(w)) return 0;
    constexpr double kTokens = 16384;  // weights read once for so many take hardly any time
    const double length = std::max(1.0, w.prompt_tokens.mean());
    const std::vector<PrefillChunk> prompts(
        static_cast<std::size_t>(std::clamp(std::min(waiting, kTokens / length), 1.0, 4096.0)),
        PrefillChunk{.tokens = static_cast<int>(length), .context_before = 0});
    return model_->cost({.prefills = prompts}).time.base() / static_cast<double>(prompts.size());
  }
  /// Seconds per request and replica with this many in flight. Prompts and decode steps may share passes, and the ranks
  /// and stages of a replica run in parallel.
  double share(double in_flight) {
    const Deployment& d = *ideal_;
    const double length = run_.workload.prompt_tokens.mean() + output_tokens();
    const double room = d.memory.max_batch(length, d.engine.block_size) * d.sharding.attention_dp;
    const double batch = std::max(1.0, std::min(in_flight, room));
    const double decodes = output_tokens() > 1 ? (output_tokens() - 1) * step(batch) / batch : 0.0;
    return std::max(prompt(in_flight) / d.sharding.attention_dp, decodes) / d.sharding.pp;
  }

 private:
  double context() const { return run_.workload.prompt_tokens.mean() + output_tokens() / 2; }

  const MeasuredRun& run_;
  std::shared_ptr<Deployment> ideal_;
  std::unique_ptr<StepModel> model_;
};

/// What a metric of a table measures, if it is judged: a latency, or output tokens a second of all replicas.
std::string metric_doubt(const MeasuredRun& run, std::string_view metric, double value, double in_flight) {
  if (!(value > 0)) return "";
  DatasheetTimes least(run);
  const auto below = [&](std::string_view name, double seconds, double bound, const char* of) {
    return seconds < kTolerance * bound ? fmt::format("{} of {:.2f} ms is below the {:.2f} ms that {} by the datasheet",
                                                      name, seconds * 1e3, bound * 1e3, of)
                                        : std::string();
  };
  const Sharding& sharding = run.deployment->sharding;
  if (metric == "ttft_ms") return below("TTFT", value * 1e-3, least.prompt(1), "one prompt takes");
  if (metric == "tpot_ms" || metric == "itl_ms" || metric == "median_itl_ms")
    return below(metric == "tpot_ms" ? "TPOT" : "ITL", value * 1e-3, least.step(1), "a decode step takes");
  double seconds = 0;  // a request and replica
  if (metric == "e2e_ms") {
    const double alone = least.prompt(1) + (least.output_tokens() - 1) * least.step(1);
    if (std::string why = below("a batch", value * 1e-3, alone, "one of its requests takes"); !why.empty()) return why;
    seconds = value * 1e-3 / in_flight;
  } else {
    double rate = value / std::max(1, run.serving.replicas);
    if (metric == "tokens_per_s_per_gpu") rate = value * sharding.gpus();
    if (metric == "total_tokens_per_s")
      rate *= least.output_tokens() / (least.output_tokens() + run.workload.prompt_tokens.mean());
    seconds = least.output_tokens() / rate;
  }
  return below("a request", seconds, least.share(in_flight), "its share of a replica takes");
}

/// Little's law and the watts of a server at a steady batch.
std::string steady_doubt(const CsvTable& table, const MeasuredRun& run) {
  const auto of = [&](std::string_view column) { return measured_value(table, run.row, column); };
  const double rate = of("output_tokens_per_s"), itl = of("median_itl_ms") * 1e-3, watts = of("power_w");
  const double batch = run.workload.arrivals.concurrency;
  if (rate * itl > kMostInFlight * batch)
    return fmt::format(
        "{:.0f} tokens/s with gaps of {:.1f} ms need {:.0f} sequences at a time, of which there are {:.0f}", rate,
        itl * 1e3, rate * itl, batch);
  const GpuSpec& gpu = run.deployment->gpu;
  const double gpus = run.deployment->sharding.gpus() * std::max(1, run.serving.replicas);
  if (watts > 0 && gpu.board_power.value > 0 && kTolerance * watts > gpus * gpu.board_power.value)
    return fmt::format("{:.0f} W are above the {:.0f} W of the boards", watts, gpus * gpu.board_power.value);
  if (watts > 0 && watts < kTolerance * gpus * gpu.idle_power.value)
    return fmt::format("{:.0f} W are below the {:.0f} W of idle boards", watts, gpus * gpu.idle_power.value);
  const double joules = of("joules_per_output_token"), product = joules * rate;
  if (joules > 0 && rate > 0 && watts > 0 && (product < kTolerance * watts || kTolerance * product > watts))
    return fmt::format("{:.3g} J per token and {:.0f} tokens/s make {:.0f} W, not {:.0f} W", joules, rate, product,
                       watts);
  return "";
}

/// The doubts of a table without closed loops.
std::string table_doubt(RunKind kind, const CsvTable& table, const MeasuredRun& run) {
  const double replicas = std::max(1, run.serving.replicas);
  // With a rate or a duration, the number in flight is limited only by memory.
  const bool counted = kind != RunKind::kSubmission && run.workload.requests > 0 && !run.workload.duration;
  const double in_flight = kind == RunKind::kSteady ? run.workload.arrivals.concurrency / replicas
                           : counted                ? static_cast<double>(run.workload.requests) / replicas
                                                    : 1e9;
  const auto of = [&](std::string_view metric, std::string_view column) {
    return metric_doubt(run, metric, measured_value(table, run.row, column), std::max(1.0, in_flight));
  };
  if (kind == RunKind::kSteady) {
    std::string why = of("median_itl_ms", "median_itl_ms");
    if (why.empty()) why = of("output_tokens_per_s", "output_tokens_per_s");
    return why.empty() ? steady_doubt(table, run) : why;
  }
  if (kind == RunKind::kSubmission) {
    std::string why = of("tokens_per_s", "tokens_per_s");
    return why.empty() ? of("ttft_ms", "mean_ttft_ms") : why;
  }
  static constexpr std::array<std::string_view, 8> kJudged{"ttft_ms",
                                                           "tpot_ms",
                                                           "itl_ms",
                                                           "e2e_ms",
                                                           "tokens_per_s",
                                                           "total_tokens_per_s",
                                                           "output_tokens_per_s",
                                                           "tokens_per_s_per_gpu"};
  const bool judged = std::find(kJudged.begin(), kJudged.end(), run.metric) != kJudged.end();
  return judged ? of(run.metric, "value") : "";
}

/// Names batches of a table that take much longer than a larger one, all else equal.
void doubt_slow_batches(MeasuredRuns& runs, const CsvTable& table, const auto& doubt) {
  const auto column = table.find("batch");
  if (!column || runs.kind != RunKind::kStatic) return;
  std::map<std::string, std::vector<MeasuredRun*>> alike;
  for (MeasuredRun& run : runs.runs) {
    if (!run.scored || !run.note.empty() || !run.metric.ends_with("_ms")) continue;
    std::string key;
    for (std::size_t i = 0; i < table.columns().size(); ++i) {
      const std::string& name = table.columns()[i];
      if (i != *column && name != "id" && name != "value" && name != "note" && !name.starts_with("predicted_"))
        key += std::string(table.at(run.row, i)) + "|";
    }
    alike[key].push_back(&run);
  }
  const auto of = [&](const MeasuredRun& run, std::string_view name) { return measured_value(table, run.row, name); };
  for (auto& [key, members] : alike) {
    for (MeasuredRun* run : members) {
      for (const MeasuredRun* other : members) {
        const double own = of(*run, "value"), more = of(*other, "value");
        if (of(*other, "batch") >= 2 * of(*run, "batch") && more > 0 && own > kSlowerThanMore * more)
          doubt(*run, fmt::format("{} of {:.2f} in a batch of {:.0f}, {:.2f} in one of {:.0f}", run->metric, own,
                                  of(*run, "batch"), more, of(*other, "batch")));
      }
    }
  }
}

/// Settings of runs that differ only in their load.
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

Figures figures_of(const CsvTable& table, const MeasuredRun& run) {
  return {measured_value(table, run.row, "ttft_ms") * 1e-3, measured_value(table, run.row, "tpot_ms") * 1e-3};
}

/// How runs that differ only in their load contradict each other; empty if they do not.
std::string contradiction_of(const std::vector<MeasuredRun*>& runs, const CsvTable& table) {
  for (const MeasuredRun* run : runs) {
    if (!run->doubt.empty()) continue;
    const double tpot = figures_of(table, *run).tpot;
    for (const MeasuredRun* other : runs) {
      if (!other->doubt.empty()) continue;
      const double more = figures_of(table, *other).tpot;
      const auto users = run->workload.arrivals.concurrency, busier = other->workload.arrivals.concurrency;
      if (busier >= 2 * users && more > 0 && tpot > kSlowerThanMore * more)
        return fmt::format("its series contradicts itself: TPOT of {:.2f} ms with {} in flight, {:.2f} ms with {}",
                           tpot * 1e3, users, more * 1e3, busier);
    }
  }
  return "";
}

}  // namespace

void mark_implausible(MeasuredRuns& runs, const CsvTable& table) {
  const auto doubt = [](MeasuredRun& run, std::string why) {
    if (why.empty() || !run.doubt.empty()) return;
    run.doubt = std::move(why);
    run.scored = false;
  };
  std::vector<std::string> found(runs.runs.size());
  parallel_for_each_index(found.size(), [&](std::size_t i) {
    const MeasuredRun& run = runs.runs[i];
    if (!run.scored || !run.note.empty()) return;
    found[i] =
        closed_loop(runs.kind) ? datasheet_doubt(run, figures_of(table, run)) : table_doubt(runs.kind, table, run);
  });
  std::map<std::string, std::vector<MeasuredRun*>> alike;
  for (std::size_t i = 0; i < found.size(); ++i) {
    MeasuredRun& run = runs.runs[i];
    if (run.scored && run.note.empty() && runs.kind == RunKind::kAggregated)
      alike[settings_of(table, run)].push_back(&run);
    doubt(run, std::move(found[i]));
  }
  doubt_slow_batches(runs, table, doubt);
  for (auto& [settings, members] : alike) {
    const std::string why = contradiction_of(members, table);
    for (MeasuredRun* run : members) doubt(*run, why);
  }
}

std::string published_doubt(const Scenario& s, double ttft_ms, double tpot_ms, double output_tokens_per_s) {
  using Process = ArrivalSpec::Process;
  const WorkloadSpec& w = *s.workload;
  const Process process = w.arrivals.process;
  if (!w.clients.empty() || process == Process::kTrace || s.serving.speculation.active()) return "";
  MeasuredRun run;
  run.deployment = std::make_shared<Deployment>(*s.deployment);
  run.workload = w;
  run.serving = s.serving;
  const double users = process == Process::kClosedLoop  ? w.arrivals.concurrency
                       : process == Process::kAllAtOnce ? static_cast<double>(w.requests)
                                                        : 1e9;
  const double each = std::max(1.0, users / std::max(1, s.serving.replicas));
  for (const auto& [metric, value] : {std::pair{"ttft_ms", ttft_ms},
                                      {"tpot_ms", tpot_ms},
                                      {"output_tokens_per_s", s.serving.disaggregation ? 0.0 : output_tokens_per_s}}) {
    if (std::string why = metric_doubt(run, metric, value, each); !why.empty()) return why;
  }
  const double osl = w.output_tokens.mean(), latency = (ttft_ms + (osl - 1) * tpot_ms) * 1e-3;
  const double in_flight = output_tokens_per_s / osl * latency;
  if (ttft_ms > 0 && tpot_ms > 0 && in_flight > kMostInFlight * users)
    return fmt::format(
        "{:.0f} tokens/s at a latency of {:.2f} s need {:.0f} requests at a time, of which there are {:.0f}",
        output_tokens_per_s, latency, in_flight, users);
  return "";
}

}  // namespace roofcast
