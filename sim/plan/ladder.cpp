#include "sim/plan/ladder.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "sim/plan/estimate.h"
#include "sim/plan/fleet_cost.h"
#include "sim/plan/token_bill.h"
#include "sim/serve/scheduler.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// A technique may lower throughput to this fraction before it is left out: the noise of a short simulation.
constexpr double kNoise = 0.995;

ConfigTree set(const ConfigTree& tree, const std::string& assignment) {
  return with_assignment(tree, assignment, "ladder");
}
ConfigTree set(const ConfigTree& tree, std::string_view key, const ConfigTree& value) {
  return value ? with_value(tree, key, value, "ladder") : tree;
}
ConfigTree part(const ConfigTree& tree, std::string_view key) {
  const ConfigTree* found = tree->find(key);
  return found != nullptr && (*found)->kind != ConfigNode::Kind::kNull ? *found : nullptr;
}

/// The configuration of the scenario itself, which the rungs lead to.
struct Goal {
  ConfigTree tree;
  Scenario scenario;
  const Deployment& deployment() const { return *scenario.deployment; }
};

struct Step {
  const char *name, *help;
  ConfigTree (*apply)(const ConfigTree&, const Goal&, const LadderOptions&);
  bool served;    ///< simulated with all users
  bool optional;  ///< left out if it loses throughput
};

ConfigTree naive(const ConfigTree& tree, const Goal&, const LadderOptions&) {
  ConfigTree t = tree;
  for (const char* change :
       {"parallelism={tp: 1}", "speculation=null", "precision={weights: fp32, kv_cache: fp32}", "engine.kv_cache=false",
        "engine.attention_kernel=naive", "engine.scheduler=static", "engine.max_num_seqs=1", "engine.block_size=0",
        "engine.prefix_caching=false", "engine.cuda_graphs.enabled=false", "engine.async_scheduling=false"}) {
    t = set(t, change);
  }
  return t;
}

ConfigTree sixteen_bit(const ConfigTree& tree, const Goal& goal, const LadderOptions&) {
  return set(tree, goal.deployment().gpu.peak(Dtype::kBf16) > FlopsPerSecond(0) ? "precision=bf16" : "precision=fp16");
}
ConfigTree kv_cache(const ConfigTree& tree, const Goal&, const LadderOptions&) {
  return set(tree, "engine.kv_cache=true");
}
ConfigTree flash(const ConfigTree& tree, const Goal&, const LadderOptions&) {
  return set(tree, "engine.attention_kernel=flash");
}

/// The scenario's own formats if one is narrower than 16 bit, else fp8 if the GPU supports it, else AWQ.
ConfigTree quantized(const ConfigTree& tree, const Goal& goal, const LadderOptions&) {
  const Precision& p = goal.deployment().precision;
  if (std::min({element_bits(p.weights), element_bits(p.attention_weights), element_bits(p.expert_weights),
                element_bits(p.kv_cache)}) < 16) {
    const ConfigTree own = part(goal.tree, "precision");
    return own ? set(tree, "precision", own) : set(tree, "precision=null");
  }
  return set(tree, goal.deployment().gpu.peak(Dtype::kFp8) > FlopsPerSecond(0) ? "precision=fp8" : "precision=awq");
}
ConfigTree speculating(const ConfigTree& tree, const Goal& goal, const LadderOptions&) {
  const ConfigTree own = part(goal.tree, "speculation");
  return own ? set(tree, "speculation", own) : set(tree, "speculation={method: eagle, num_speculative_tokens: 4}");
}
ConfigTree static_batch(const ConfigTree& tree, const Goal&, const LadderOptions& o) {
  return set(tree, fmt::format("engine.max_num_seqs={}", o.concurrency));
}
ConfigTree continuous(const ConfigTree& tree, const Goal& goal, const LadderOptions&) {
  const EngineSpec& e = goal.deployment().engine;
  const std::string scheduler = continuous_scheduler(e.scheduler);
  ConfigTree t = set(tree, fmt::format("engine.max_num_seqs={}", scheduler == e.scheduler ? e.max_num_seqs : 256));
  t = set(t, fmt::format("engine.scheduler={}", scheduler));
  return set(t, fmt::format("engine.block_size={}", e.block_size > 0 ? e.block_size : 16));
}
ConfigTree prefix_caching(const ConfigTree& tree, const Goal&, const LadderOptions&) {
  return set(tree, "engine.prefix_caching=true");
}
ConfigTree graphs(const ConfigTree& tree, const Goal& goal, const LadderOptions&) {
  return set(set(tree, "engine.cuda_graphs.enabled=true"),
             fmt::format("engine.async_scheduling={}", goal.deployment().engine.async_scheduling));
}
/// The scenario's replicas and GPUs, two of a replica if it has one.
ConfigTree tensor_parallel(const ConfigTree& tree, const Goal& goal, const LadderOptions&) {
  const ConfigTree all = set(tree, "parallelism", part(goal.tree, "parallelism"));
  return goal.deployment().sharding.gpus() > 1 ? all : set(all, "parallelism.tp=2");
}

constexpr Step kSteps[] = {
    {"naive fp32", "no KV cache, N x N attention, one request at a time", naive, false, false},
    {"16 bit", "weights and products in 16 bit", sixteen_bit, false, false},
    {"KV cache", "keys and values are kept", kv_cache, false, false},
    {"FlashAttention", "tiles in SRAM, no N x N matrix", flash, false, false},
    {"quantization", "fewer bits a weight", quantized, false, true},
    {"speculation", "drafts verified in one pass", speculating, false, true},
    {"static batching", "whole batches, contiguous cache", static_batch, true, false},
    {"continuous batching", "requests join and leave at any step, paged cache", continuous, true, false},
    {"prefix caching", "shared prefixes are computed once", prefix_caching, true, true},
    {"CUDA graphs", "a step is launched at once", graphs, true, true},
    {"tensor parallel", "the model on several GPUs", tensor_parallel, true, true},
};

/// The workload's mean lengths as one request at a time.
EstimateRequest mean_request(const Scenario& scenario, int batch) {
  const WorkloadSpec& w = *scenario.workload;
  return {.batch = batch,
          .prompt_tokens = std::max(1, static_cast<int>(std::lround(w.prompt_tokens.mean()))),
          .output_tokens = std::max(1, static_cast<int>(std::lround(w.output_tokens.mean()))),
          .context = std::nullopt,
          .speculation = scenario.serving.speculation,
          .media = w.encoded};
}

void measure_alone(const Scenario& scenario, Rung& rung) {
  const Estimate e = estimate(scenario.deployment, mean_request(scenario, 1));
  rung.fits = e.memory.fits;
  if (!e.memory.fits) rung.note = "does not fit: " + e.memory.reason;
  rung.ttft = e.ttft;
  rung.tpot = e.tpot;
  rung.latency = e.request_latency;
  rung.output_tokens_per_s = e.request_tokens_per_s;
  rung.memory = e.memory.weights + e.memory.cache;
  rung.usd_per_million_output_tokens = e.cost.usd_per_million_output_tokens;
  rung.usd_per_million_total_tokens = e.cost.usd_per_million_total_tokens;
  rung.bound = e.decode.bound;
}

void measure_served(const Scenario& scenario, const LadderOptions& options, Rung& rung) {
  const Deployment& d = *scenario.deployment;
  rung.simulated = true;
  rung.memory = d.memory.weights;
  if (d.memory.infeasible) {
    rung.fits = rung.has_numbers = false;
    rung.note = d.memory.infeasible->reason;
    return;
  }
  WorkloadSpec w = *scenario.workload;
  w.arrivals = ArrivalSpec{.process = ArrivalSpec::Process::kClosedLoop,
                           .concurrency = options.concurrency,
                           .trace_file = {},
                           .trace_format = {}};
  w.duration.reset();
  w.start = Seconds(0);
  w.requests = options.requests > 0 ? options.requests : 4 * options.concurrency;
  w.warmup_requests = 0;
  const ServingMetrics m = simulate(scenario.deployment, w, scenario.serving);
  if (m.completed == 0) {
    rung.has_numbers = false;
    rung.note = "no request fits beside the weights";
    return;
  }
  rung.ttft = m.ttft_ms.mean() * kMillisecond;
  rung.tpot = m.tpot_ms.mean() * kMillisecond;
  rung.latency = m.e2el_ms.mean() * kMillisecond;
  rung.output_tokens_per_s = m.output_tokens / m.duration.base();
  rung.memory += d.memory.cache * m.kv_peak_usage + d.memory.states;
  const int replicas = scenario.serving.replicas;
  const double usd = fleet_cost(m, d, replicas).usd_per_hour * m.duration.in(kHour);
  const TokenBill bill = token_bill(usd, m, scenario, replicas, 0);
  rung.usd_per_million_output_tokens = bill.usd_per_million_output;
  rung.usd_per_million_total_tokens = bill.usd_per_million_total;
  const double decoding = rung.output_tokens_per_s * rung.tpot.base();  // Little's law
  const int batch = std::clamp(static_cast<int>(std::lround(decoding)), 1, options.concurrency);
  rung.bound = estimate(scenario.deployment, mean_request(scenario, batch)).decode.bound;
}

class Climber {
 public:
  Climber(Goal goal, Fidelity fidelity, const LadderOptions& options)
      : goal_(std::move(goal)), fidelity_(fidelity), options_(options) {}

  Ladder climb() {
    const WorkloadSpec& w = *goal_.scenario.workload;
    Ladder ladder{.model = goal_.deployment().model.name,
                  .gpu = goal_.deployment().gpu.name,
                  .prompt_tokens = w.prompt_tokens.mean(),
                  .output_tokens = w.output_tokens.mean(),
                  .options = options_,
                  .rungs = {}};
    ConfigTree tree = goal_.tree;
    for (const Step& step : kSteps) {
      ConfigTree next = step.apply(tree, goal_, options_);
      Rung rung = measure(step, next);
      if (step.served && part(next, "speculation")) try_without_speculation(step, next, rung);
      compare(rung);
      const bool loses = step.optional && rung.has_numbers && rung.throughput_gain < kNoise;
      if (loses) {
        rung.note += (rung.note.empty() ? "" : "; ") + std::string("loses here, left out from the next rung on");
      } else {
        tree = next;
        if (rung.has_numbers) last_ = rung;
      }
      if (!first_ && rung.has_numbers) first_ = rung;
      ladder.rungs.push_back(std::move(rung));
    }
    return ladder;
  }

 private:
  Rung measure(const Step& step, const ConfigTree& tree) const {
    const Scenario scenario = read_scenario(tree, fidelity_);
    Rung rung{.name = step.name, .help = step.help, .note = {}};
    rung.gpus = scenario.deployment->sharding.gpus() * scenario.serving.replicas;
    if (step.served) {
      measure_served(scenario, options_, rung);
    } else {
      measure_alone(scenario, rung);
    }
    return rung;
  }

  /// Verification of k + 1 positions stops paying off once the batch saturates the GPU.
  void try_without_speculation(const Step& step, ConfigTree& tree, Rung& rung) const {
    const ConfigTree plain = set(tree, "speculation=null");
    Rung without = measure(step, plain);
    if (!without.has_numbers || (rung.has_numbers && rung.output_tokens_per_s >= without.output_tokens_per_s)) return;
    without.note = rung.has_numbers ? fmt::format("without speculation, which leaves {:.2f}x at this batch",
                                                  rung.output_tokens_per_s / without.output_tokens_per_s)
                                    : "without speculation, whose drafter does not fit beside the weights";
    rung = std::move(without);
    tree = plain;
  }

  void compare(Rung& rung) const {
    if (!rung.has_numbers || !last_) return;
    rung.throughput_gain = rung.output_tokens_per_s / last_->output_tokens_per_s;
    rung.latency_gain = last_->latency / rung.latency;
    rung.cost_gain = last_->usd_per_million_total_tokens / rung.usd_per_million_total_tokens;
    rung.total_gain = rung.output_tokens_per_s / first_->output_tokens_per_s;
  }

  Goal goal_;
  Fidelity fidelity_;
  LadderOptions options_;
  std::optional<Rung> first_, last_;
};

}  // namespace

Ladder climb(const ConfigTree& scenario, Fidelity fidelity, const LadderOptions& options) {
  ConfigTree tree = part(scenario, "engine") ? scenario : set(scenario, "engine=vllm");
  Goal goal{tree, read_scenario(tree, fidelity)};
  if (!goal.scenario.workload) throw ConfigError(scenario->location, "a ladder needs a 'workload'");
  if (goal.deployment().engine.max_model_len == 0) {  // a contiguous slot is as long as the longest request can be
    const WorkloadSpec& w = *goal.scenario.workload;
    goal.tree =
        set(tree, fmt::format("engine.max_model_len={}", w.prompt_tokens.longest() + w.output_tokens.longest()));
  }
  return Climber(std::move(goal), fidelity, options).climb();
}

}  // namespace roofcast
