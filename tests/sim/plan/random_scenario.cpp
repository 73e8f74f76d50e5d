#include "tests/sim/plan/random_scenario.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "sim/plan/all_cores.h"
#include "sim/plan/estimate.h"
#include "sim/plan/metrics_list.h"
#include "sim/plan/scenario.h"
#include "sim/plan/spec_cache.h"
#include "sim/step/deployment.h"

namespace roofcast::testing {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::string of(std::initializer_list<const char*> words) {
    return words.begin()[random_.uniform_integer(0, static_cast<std::int64_t>(words.size()) - 1)];
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return random_.uniform_integer(low, high); }
  bool chance(double p) { return random_.uniform() < p; }

 private:
  Random random_;
};

std::string length(Draw& d, std::int64_t most) {
  const std::int64_t value = d.between(1, most);
  if (d.chance(0.4)) return fmt::format("{{distribution: fixed, value: {}}}", value);
  if (d.chance(0.5)) return fmt::format("{{distribution: uniform, min: {}, max: {}}}", value, value + most);
  return fmt::format("{{distribution: lognormal, mean: {}, p50: {}, max: {}}}", 2 * value, value, 8 * most);
}

std::string arrivals(Draw& d) {
  const std::string process = d.of({"poisson", "poisson", "gamma", "constant", "closed_loop", "all_at_once"});
  if (process == "closed_loop") return fmt::format("{{process: closed_loop, concurrency: {}}}", d.between(1, 40));
  if (process == "all_at_once") return "{process: all_at_once}";
  return fmt::format("{{process: {}, rate: {} /s{}}}", process, d.of({"0.3", "2", "8", "40", "300"}),
                     process == "gamma" ? ", cv: 2.5" : "");
}

std::string engine(Draw& d) {
  std::string out = "{name: " + d.of({"vllm", "sglang", "trtllm", "hf-transformers", "llama-cpp", "tgi", "lmdeploy",
                                      "exllamav2", "exllamav3", "mlx", "ollama", "vllm@0.12", "vllm@0.6", "vllm@0.19",
                                      "sglang@0.4.6", "trtllm@0.20"});
  if (d.chance(0.4)) out += fmt::format(", max_num_seqs: {}", d.of({"1", "3", "16", "200"}));
  if (d.chance(0.3)) out += fmt::format(", max_num_batched_tokens: {}", d.of({"512", "2048", "8192"}));
  if (d.chance(0.2)) out += fmt::format(", prefix_caching: {}", d.of({"true", "false"}));
  if (d.chance(0.2)) out += fmt::format(", async_scheduling: {}", d.of({"true", "false"}));
  if (d.chance(0.15)) out += ", kv_offload: 4 GB";
  if (d.chance(0.15)) out += ", preemption: swap";
  if (d.chance(0.2)) out += ", gpu_memory_utilization: 0.6";
  if (d.chance(0.1)) out += fmt::format(", victim: {}", d.of({"newest", "fewest_outputs"}));
  if (d.chance(0.1)) out += fmt::format(", block_size: {}", d.of({"0", "32", "64"}));
  if (d.chance(0.1)) out += fmt::format(", stream_interval: {}", d.of({"2", "5"}));
  if (d.chance(0.1)) out += ", cuda_graphs: {enabled: false}";
  if (d.chance(0.08)) out += fmt::format(", chunked_prefill: {}", d.of({"true", "false"}));
  if (d.chance(0.05)) out += ", sampling: top_p";
  if (d.chance(0.05)) out += ", front_end: dynamo";
  if (d.chance(0.05)) out += ", attention_kernel: naive";
  if (d.chance(0.08)) out += ", kv_tiers: [{name: pool, capacity: 1 TB, bandwidth: 6 GB/s, shared: true}]";
  return out + "}";
}

std::string fleet(Draw& d) {
  std::string out;
  if (d.chance(0.15)) out += "failures: {mtbf: 90 s, repair: 20 s}\n";
  if (d.chance(0.15)) {
    out += "autoscaling: {min: 1, max: 4, interval: 5 s, cold_start: 3 s}\n";
  } else if (d.chance(0.15)) {
    out += "disaggregation: {prefill: {parallelism: {replicas: 2}}}\n";
  }
  return out;
}

/// How a replica is spread over GPUs.
std::string parallelism(Draw& d, const std::string& model) {
  const bool experts = model.find("a3b") != std::string::npos || model.find("gpt-oss") != std::string::npos ||
                       model.find("deepseek") != std::string::npos;
  std::string out = fmt::format("replicas: {}", d.of({"1", "1", "2", "3"}));
  if (d.chance(0.1)) out += ", pp: 2";
  if (experts && d.chance(0.3)) return out + ", tp: 1, attention_dp: 4, ep: 4";
  const std::string tp = d.of({"1", "1", "2", "4", "8"});
  out += ", tp: " + tp;
  return experts && d.chance(0.3) ? out + ", ep: " + tp : out;
}

std::string own_load(Draw& d) {
  std::string out = fmt::format("  arrivals: {}\n  prompt_tokens: {}\n  output_tokens: {}\n  requests: {}\n",
                                arrivals(d), length(d, 3000), length(d, 200), d.between(20, 150));
  if (d.chance(0.2)) out += fmt::format("  warmup_requests: {}\n", d.between(1, 15));
  if (d.chance(0.25))
    out += fmt::format("  timeout: {}\n", d.of({"20 ms", "1 s", "{first_token: 500 ms, total: 4 s}"}));
  if (d.chance(0.2)) out += "  priorities: [0.2, 0.3, 0.5]\n";
  if (d.chance(0.2)) out += "  turns: 3\n";
  if (d.chance(0.1)) out += "  shared_prefix_tokens: 100\n  prefix_groups: 3\n";
  if (d.chance(0.06)) out += fmt::format("  samples: {}\n", d.of({"{n: 3}", "{n: 1, best_of: 4}"}));
  if (d.chance(0.06)) out += "  thinking: {tokens: 80, budget: 60}\n";
  if (d.chance(0.06)) out += "  guided: 0.5\n";
  if (d.chance(0.06)) out += "  rate_limit: {requests: 90 /min, burst: 2 s}\n";
  return out;
}

/// Kinds of clients, or a benchmark's client.
std::string other_load(Draw& d) {
  if (d.chance(0.4))
    return fmt::format("  client: {}\n  concurrency: {}\n  prompt_tokens: {}\n  output_tokens: {}\n  requests: {}\n",
                       d.of({"vllm-bench", "inferencex", "aiperf", "sglang-bench"}), d.between(1, 30),
                       d.between(8, 2000), d.between(2, 90), d.between(20, 90));
  return fmt::format(
      "  clients:\n    - {{name: a, arrivals: {{process: poisson, rate: 4 /s}}, prompt_tokens: {}, output_tokens: {}, "
      "turns: {}}}\n    - {{name: b, arrivals: {{process: gamma, rate: 1 /s, cv: 2}}, prompt_tokens: {}, "
      "output_tokens: {}, priority: 1}}\n  requests: {}\n",
      length(d, 2000), length(d, 100), d.between(1, 3), length(d, 3000), length(d, 30), d.between(20, 120));
}

class Recorder final : public Observer {
 public:
  void on_request(const RequestRecord& r) override { rows.push_back(r); }
  std::vector<RequestRecord> rows;
};

double metric(const MetricsList& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return std::get<double>(value);
  }
  return -1;
}

/// Holds `a <= b` but for rounding to picoseconds and sums of doubles.
bool at_most(double a, double b) { return a <= b + 1e-6 * std::max(1.0, std::abs(b)); }

/// The first that does not hold.
class Claims {
 public:
  template <class... Numbers>
  void claim(bool holds, std::string_view text, Numbers... numbers) {
    if (!holds && broken_.empty()) broken_ = fmt::vformat(text, fmt::make_format_args(numbers...));
  }
  const std::string& broken() const { return broken_; }

 private:
  std::string broken_;
};

void check_rows(const ServingMetrics& m, const Scenario& s, const std::vector<RequestRecord>& rows, Claims& c) {
  c.claim(static_cast<std::int64_t>(rows.size()) == m.completed, "{} rows of {} completed", rows.size(), m.completed);
  double in = 0, out = 0;
  for (const RequestRecord& r : rows) {
    in += r.prompt_tokens, out += r.output_tokens;
    const double queue = r.queue.base(), ttft = r.ttft.base(), e2el = r.e2el.base();
    c.claim(queue >= 0 && at_most(queue, ttft) && at_most(ttft, e2el), "queue {} <= TTFT {} <= E2EL {}", queue, ttft,
            e2el);
    c.claim(r.cached_tokens >= 0 && r.cached_tokens < r.prompt_tokens, "{} of {} tokens cached", r.cached_tokens,
            r.prompt_tokens);
  }
  if (s.workload->samples.several()) return;  // of several answers each is counted
  c.claim(in == m.input_tokens && out == m.output_tokens, "tokens {} and {} of {} and {}", in, out, m.input_tokens,
          m.output_tokens);
}

void check_metrics(const ServingMetrics& m, const Scenario& s, Claims& c) {
  const WorkloadSpec& w = *s.workload;
  c.claim(m.completed + m.failed == w.requests, "{} + {} of {} requests", m.completed, m.failed, w.requests);
  c.claim(m.cancelled + m.rejected + m.lost <= m.failed, "{} + {} + {} of {} failed", m.cancelled, m.rejected, m.lost,
          m.failed);
  for (const Distribution* d : {&m.ttft_ms, &m.tpot_ms, &m.itl_ms, &m.e2el_ms, &m.queue_ms}) {
    double last = d->min();
    for (const double p : {0.0, 10.0, 50.0, 90.0, 99.0, 100.0}) {
      c.claim(at_most(last, d->percentile(p)), "p{}: {} after {}", p, d->percentile(p), last);
      last = d->percentile(p);
    }
    c.claim(at_most(last, d->max()) && at_most(d->min(), d->mean()) && at_most(d->mean(), d->max()),
            "mean {} between {} and {}", d->mean(), d->min(), d->max());
  }
  const MetricsList all = metrics_of(m, s);
  for (const char* share : {"mfu", "mbu", "gpu_utilization", "kv_cache_peak_usage"}) {
    const double value = metric(all, share);
    c.claim(value >= 0 && at_most(value, 1), "{} is {}", share, value);
  }
  c.claim(at_most(metric(all, "request_goodput"), metric(all, "request_throughput")), "goodput above throughput");
  for (const auto& [name, value] : all) {
    const bool unpriced = (name.starts_with("usd_per_") && s.deployment->offers.empty()) ||
                          (name.starts_with("joules_per_") && s.deployment->gpu.board_power.value <= 0);
    const bool unsampled = m.completed == 0 || (m.tpot_ms.count() <= 0 && name.find("_tpot_") != std::string::npos) ||
                           (m.itl_ms.count() <= 0 && name.find("_itl_") != std::string::npos);
    if (const double* number = std::get_if<double>(&value))
      c.claim((std::isfinite(*number) && *number >= 0) || ((unsampled || unpriced) && std::isnan(*number)), "{} is {}",
              name, *number);
  }
  // A closed loop never has more in flight than users: the sum of their times is at most users x duration.
  if (w.arrivals.process == ArrivalSpec::Process::kClosedLoop && w.warmup_requests == 0) {
    const double busy = m.e2el_ms.mean() / 1000 * m.e2el_ms.count();
    c.claim(at_most(busy, w.arrivals.concurrency * m.duration.base()), "{} s of requests, {} users, {} s", busy,
            w.arrivals.concurrency, m.duration.base());
  }
}

/// One request alone takes what the estimate says, and what the front end adds.
void check_zero_load(const Scenario& s, Claims& c) {
  const auto p = s.workload->prompt_tokens.constant(), o = s.workload->output_tokens.constant();
  const WorkloadSpec& w = *s.workload;
  const bool alone = w.clients.empty() && !w.samples.several() && !w.thinking;
  const bool plain = alone && !s.serving.speculation.active() && !s.serving.disaggregation && !s.serving.fleet.active();
  if (!p || !o || !plain || *p + *o > s.deployment->model.max_context) return;
  WorkloadSpec one = *s.workload;
  one.arrivals = {};
  one.requests = 1;
  one.warmup_requests = 0;
  one.patience = {};
  const ServingMetrics m = simulate(s.deployment, one, s.serving);
  EstimateRequest request;
  request.prompt_tokens = *p, request.output_tokens = *o;
  const Estimate e = estimate(s.deployment, request);
  if (m.completed == 0 || !e.memory.fits) return;
  const double simulated = m.ttft_ms.mean(), estimated = e.ttft.in(kMillisecond);
  c.claim(simulated >= 0.97 * estimated, "TTFT of one request {} ms, estimated {} ms", simulated, estimated);
  if (*o > 8) {
    const double step = m.tpot_ms.mean(), expected = e.tpot.in(kMillisecond);
    c.claim(std::abs(step - expected) <= 0.05 * expected, "TPOT of one request {} ms, estimated {} ms", step, expected);
  }
}

/// A GPU with twice the FLOP/s and bandwidth is not slower, and no GPU is faster than its datasheet.
void check_faster_gpu(const Scenario& s, Claims& c) {
  auto fast = std::make_shared<Deployment>(*s.deployment);
  for (FlopsPerSecond& peak : fast->gpu.dense) peak = peak * 2.0;
  fast->gpu.memory_bandwidth = fast->gpu.memory_bandwidth * 2.0;
  const Estimate slow = estimate(s.deployment, {}), quick = estimate(fast, {});
  c.claim(quick.ttft <= slow.ttft * 1.02 && quick.tpot <= slow.tpot * 1.02, "twice the GPU: TPOT {} ms after {} ms",
          quick.tpot.in(kMillisecond), slow.tpot.in(kMillisecond));
  const Seconds moved = slow.decode.bytes / s.deployment->gpu.memory_bandwidth;
  c.claim(at_most(moved.base(), slow.decode.time.base()), "a decode step of {} ms moves bytes of {} ms",
          slow.decode.time.in(kMillisecond), moved.in(kMillisecond));
  for (const auto& [value, range] : {std::pair{slow.ttft, slow.ttft_interval}, {slow.tpot, slow.tpot_interval}})
    c.claim(range.low <= value && value <= range.high, "{} s outside of {} to {} s", value.base(), range.low.base(),
            range.high.base());
}

}  // namespace

std::string random_scenario(std::uint64_t seed) {
  Draw d(seed);
  const std::string model =
      d.of({"llama-3.1-8b", "llama-3.1-8b", "llama-3.2-1b", "qwen3-30b-a3b", "gemma-3-27b", "mamba-2.8b", "gpt-oss-20b",
            "deepseek-v2", "deepseek-v2-lite", "jamba-1.5-mini", "zamba2-2.7b", "mistral-7b", "opt-13b"});
  const std::string gpu = d.of({"h100-sxm", "a100-sxm", "b200-sxm", "l40s", "mi300x", "h200-sxm", "gb200", "rtx-4090",
                                "apple-m3-max", "epyc-9654", "tpu-v6e", "t4"});
  const bool host = gpu.starts_with("apple") || gpu.starts_with("epyc");
  std::string out = fmt::format("model: {}\ngpu: {}\nengine: {}\nparallelism: {{{}}}\nforce_unsupported: {}\n", model,
                                gpu, host ? d.of({"llama-cpp", "mlx", "ollama"}) : engine(d),
                                host ? "tp: 1" : parallelism(d, model), d.of({"true", "true", "false"}));
  if (d.chance(0.3))
    out += fmt::format("precision: {}\n",
                       d.of({"fp8", "awq", "int8", "bf16", "gptq", "llm_int8", "gguf_q4_k_m", "{kv_cache: fp8}"}));
  if (d.chance(0.06)) out += fmt::format("recipe: {}\n", d.of({"inferencex", "aiconfigurator", "splitwise"}));
  if (d.chance(0.05)) out += "adapters: {count: 20, rank: 16, slots: 4}\n";
  if (d.chance(0.4))
    out += fmt::format("router: {}\n",
                       d.of({"round_robin", "least_loaded", "prefix_aware", "kv_aware", "consistent_hash"}));
  if (d.chance(0.3)) out += fmt::format("policy: {}\n", d.of({"fcfs", "priority", "shortest_first", "fair"}));
  if (d.chance(0.2)) out += fmt::format("max_queue: {}\n", d.of({"1", "10"}));
  if (d.chance(0.2))
    out += fmt::format("speculation: {{method: {}, num_speculative_tokens: {}}}\n",
                       d.of({"eagle", "ngram", "medusa", "suffix", "mtp"}), d.between(1, 5));
  out += fleet(d);
  out += fmt::format("seed: {}\nworkload:\n", d.between(0, 99));
  if (d.chance(0.15)) {
    out += other_load(d);
  } else {
    out += own_load(d);
  }
  if (d.chance(0.5)) out += "objectives: {ttft_p99: 2 s, tpot_p99: 50 ms}\n";
  return out;
}

std::string broken_invariant(const std::string& text, SpecCache& specs) {
  Claims claims;
  try {
    const Scenario s = read_scenario(parse_config_text(text, "random.yaml"), Fidelity::kCalibrated, specs);
    if (s.deployment->memory.infeasible) return "";
    Recorder seen;
    const ServingMetrics m = simulate(s.deployment, *s.workload, s.serving, &seen);
    check_rows(m, s, seen.rows, claims);
    check_metrics(m, s, claims);
    ServingOptions on_cores = s.serving;
    on_cores.cores = all_cores();
    const std::string again = to_text(metrics_of(simulate(s.deployment, *s.workload, on_cores), s));
    claims.claim(again == to_text(metrics_of(m, s)), "another run, on all cores, has other numbers");
    check_zero_load(s, claims);
    check_faster_gpu(s, claims);
  } catch (const ConfigError&) {
    return "";
  }
  return claims.broken().empty() ? "" : text + "-> " + claims.broken();
}

}  // namespace roofcast::testing
