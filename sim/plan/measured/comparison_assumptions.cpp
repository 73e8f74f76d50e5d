// Assumptions that a result file does not reveal, changed one at a time.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "sim/model/recipes.h"
#include "sim/plan/measured/comparison.h"
#include "sim/plan/parallel.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

struct Case {
  Deployment deployment;
  WorkloadSpec workload;
};

struct Known {
  const BenchRun& run;
  const ServingMetrics& predicted;
  int replicas;
};

/// `apply` returns the change in words; empty if it does not apply.
struct Change {
  const char* check;
  std::string (*apply)(Case&, const Known&);
};

void scale_gpu(GpuSpec& gpu, double factor) {
  gpu.memory_bandwidth *= factor;
  for (FlopsPerSecond& peak : gpu.dense) peak *= factor;
}

std::string budget(Case& c, int tokens) {
  EngineSpec& e = c.deployment.engine;
  if (tokens == e.max_num_batched_tokens || tokens < 128) return "";
  e.max_num_batched_tokens = tokens;
  return fmt::format("max_num_batched_tokens {}", tokens);
}

std::string format_switch(Dtype& format, const char* what) {
  const bool wide = format == Dtype::kBf16 || format == Dtype::kFp16;
  format = wide ? Dtype::kFp8 : Dtype::kBf16;
  return fmt::format("{} in {}", what, name_of(format));
}

/// All prompts cached: prompts without a shared prefix, sent to a server that has seen them, modelled as one long
/// prefix.
std::string all_cached(Case& c, const Known&) {
  WorkloadSpec& w = c.workload;
  if (w.arrivals.process == ArrivalSpec::Process::kTrace || w.turns > 1 || w.shared_prefix_tokens > 0) return "";
  c.deployment.engine.prefix_caching = true;
  w.shared_prefix_tokens = w.prompt_tokens.longest();
  return "every prompt found in the prefix cache";
}

std::string delay(Case& c, const Known& k) {
  const auto measured = k.run.value("mean_ttft_ms");
  if (!measured || *measured < 1.05 * k.predicted.ttft_ms.mean()) return "";
  const Seconds more = kMillisecond * (*measured - k.predicted.ttft_ms.mean());
  c.deployment.engine.host.request_latency += more;
  return fmt::format("{:.4g} ms more before the engine sees a request", more.in(kMillisecond));
}

/// A batch limit at the next power of two above the mean number of decoding sequences.
std::string limit_that_shows(Case& c, const Known& k) {
  const auto tpot = k.run.value("mean_tpot_ms") ? k.run.value("mean_tpot_ms") : k.run.value("median_tpot_ms");
  if (!tpot || k.run.duration_s <= 0 || k.run.output_tokens <= 0) return "";
  const double ranks = static_cast<double>(k.replicas) * c.deployment.sharding.attention_dp;
  const double together = k.run.output_tokens / k.run.duration_s * *tpot / 1e3 / ranks;
  const double limit = std::exp2(std::ceil(std::log2(std::max(1.0, together))));
  EngineSpec& e = c.deployment.engine;
  if (limit >= e.max_num_seqs || limit == std::max(1, e.max_num_seqs / 4)) return "";
  e.max_num_seqs = static_cast<int>(limit);
  return fmt::format("max_num_seqs {}", e.max_num_seqs);
}

constexpr std::array kChanges{
    Change{"no --no-enable-prefix-caching in the launch command; prompts that repeat",
           [](Case& c, const Known& k) -> std::string {
             if (!c.deployment.engine.prefix_caching || k.predicted.cached_tokens <= 0) return "";
             c.deployment.engine.prefix_caching = false;
             return "no prefix caching";
           }},
    Change{"the same prompts sent before (an earlier run with the same seed) with prefix caching on", all_cached},
    Change{"a slow or busy CPU; an older engine; `calibrate host` fits it",
           [](Case& c, const Known&) -> std::string {
             c.deployment.engine.host.scale(2);
             return "host time x2";
           }},
    Change{"a fast CPU or a newer engine; `calibrate host` fits it",
           [](Case& c, const Known&) -> std::string {
             c.deployment.engine.host.scale(0.5);
             return "host time x0.5";
           }},
    Change{"network and proxies between client and server; a cold first request", delay},
    Change{"\"GPU KV cache size\" in the server's log; --gpu-memory-utilization; other processes on the GPU",
           [](Case& c, const Known&) -> std::string {
             c.deployment.memory.cache *= 0.5;
             return "KV cache x0.5";
           }},
    Change{"--kv-cache-dtype",
           [](Case& c, const Known&) -> std::string {
             return format_switch(c.deployment.precision.kv_cache, "KV cache");
           }},
    Change{"--max-num-batched-tokens",
           [](Case& c, const Known&) { return budget(c, c.deployment.engine.max_num_batched_tokens / 4); }},
    Change{"--max-num-batched-tokens",
           [](Case& c, const Known&) { return budget(c, c.deployment.engine.max_num_batched_tokens * 4); }},
    Change{"--max-num-seqs",
           [](Case& c, const Known&) -> std::string {
             c.deployment.engine.max_num_seqs = std::max(1, c.deployment.engine.max_num_seqs / 4);
             return fmt::format("max_num_seqs {}", c.deployment.engine.max_num_seqs);
           }},
    Change{"--max-num-seqs", limit_that_shows},
    Change{"--enforce-eager; \"Graph capturing finished\" in the server's log",
           [](Case& c, const Known&) -> std::string {
             if (!c.deployment.engine.graphs.enabled) return "";
             c.deployment.engine.graphs.enabled = false;
             return "no CUDA graphs";
           }},
    Change{"--async-scheduling",
           [](Case& c, const Known&) -> std::string {
             bool& overlapped = c.deployment.engine.async_scheduling;
             overlapped = !overlapped;
             return overlapped ? "host work overlapped with the GPU" : "host work not overlapped with the GPU";
           }},
    Change{"--enable-chunked-prefill",
           [](Case& c, const Known&) -> std::string {
             if (!c.deployment.engine.chunked_prefill) return "";
             c.deployment.engine.chunked_prefill = false;
             return "prompts not chunked";
           }},
    Change{"the checkpoint's quantization_config; --quantization",
           [](Case& c, const Known&) -> std::string {
             const Dtype now = c.deployment.precision.weights;
             const bool wide = now == Dtype::kBf16 || now == Dtype::kFp16;
             set_weights(c.deployment.precision, wide ? Dtype::kFp8 : Dtype::kBf16);
             choose_activations(c.deployment.precision, c.deployment.gpu);
             return fmt::format("weights in {}", name_of(c.deployment.precision.weights));
           }},
    Change{"nvidia-smi: clocks, power limit, temperature, other processes",
           [](Case& c, const Known&) -> std::string {
             scale_gpu(c.deployment.gpu, 0.8);
             return "GPU at 80 %";
           }},
    Change{"better kernels than the profile's were measured with",
           [](Case& c, const Known&) -> std::string {
             scale_gpu(c.deployment.gpu, 1.2);
             return "GPU at 120 %";
           }},
    Change{"nvidia-smi topo -m: GPUs that are not joined by NVLink",
           [](Case& c, const Known&) -> std::string {
             NodeSpec& node = c.deployment.gpu.node;
             if (c.deployment.sharding.gpus() == 1 || node.fabric_bandwidth <= node.pcie_bandwidth) return "";
             node.fabric_bandwidth = node.pcie_bandwidth;
             node.fabric = Fabric::kPcie;
             node.switch_reduces = false;
             return "links at PCIe speed";
           }},
};

struct Outcome {
  std::optional<Assumption> assumption;
  std::string left_out;
};

Outcome try_change(const Change& change, const Scenario& reference, const ServingMetrics& predicted,
                   const Comparison& comparison) {
  Case c{*reference.deployment, *reference.workload};
  const Bytes planned = c.deployment.memory.cache;
  Outcome out;
  const std::string what = change.apply(c, {comparison.run, predicted, reference.serving.replicas});
  if (what.empty()) return out;
  if (c.deployment.memory.cache == planned) c.deployment.memory = plan_memory(c.deployment);
  if (c.deployment.memory.infeasible) return {std::nullopt, what};
  const ServingMetrics m = simulate(std::make_shared<Deployment>(c.deployment), c.workload, reference.serving);
  if (m.completed == 0) return {std::nullopt, what};
  Assumption a{.change = what, .check = change.check, .predicted = figures_of(m, comparison.run)};
  a.distance = distance_of(a.predicted, comparison.measured);
  a.explains = comparison.distance > 0 ? 1 - a.distance / comparison.distance : 0;
  out.assumption = std::move(a);
  return out;
}

}  // namespace

void try_assumptions(const Scenario& reference, const ServingMetrics& predicted, Comparison& comparison) {
  std::array<Outcome, kChanges.size()> outcomes;
  parallel_for_each_index(
      kChanges.size(), [&](std::size_t i) { outcomes[i] = try_change(kChanges[i], reference, predicted, comparison); });
  for (Outcome& o : outcomes) {
    if (o.assumption) comparison.assumptions.push_back(std::move(*o.assumption));
    if (!o.left_out.empty()) comparison.not_tried.push_back(std::move(o.left_out));
  }
  std::stable_sort(comparison.assumptions.begin(), comparison.assumptions.end(),
                   [](const Assumption& a, const Assumption& b) { return a.explains > b.explains; });
}

}  // namespace roofcast
