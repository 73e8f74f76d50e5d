#include "reports/simulation_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "reports/provenance.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/table.h"
#include "reports/verdict.h"
#include "sim/plan/failures.h"
#include "sim/plan/fleet_cost.h"
#include "sim/plan/front_end_load.h"
#include "sim/plan/prices.h"
#include "sim/plan/sample_value.h"
#include "sim/plan/steady_rate.h"
#include "sim/plan/system_spread.h"
#include "sim/plan/token_bill.h"
#include "sim/serve/scheduler.h"
#include "sim/step/deployment.h"
#include "sim/step/streaming.h"

namespace roofcast::reports {
namespace {

struct Named {
  const char* name;
  const Distribution* values;
};
std::array<Named, 4> latencies(const ServingMetrics& m) {
  return {{{"ttft", &m.ttft_ms}, {"tpot", &m.tpot_ms}, {"itl", &m.itl_ms}, {"e2el", &m.e2el_ms}}};
}

Json objectives_json(const ServingMetrics& m, const Scenario& s) {
  Json out = Json::array();
  for (const Objective& o : s.objectives) {
    const Seconds value = observed(o, m);
    out.push_back({{"objective", o.name()},
                   {"limit_ms", o.limit.in(kMillisecond)},
                   {"value_ms", sample_value(distribution_of(o, m), value.in(kMillisecond))},
                   {"met", meets(o, m)}});
  }
  return out;
}

/// Whether clients give up or queues are limited.
bool may_fail(const Scenario& s) { return s.serving.max_queue > 0 || (s.workload && !s.workload->patience.endless()); }

/// Results per kind of client.
Json clients_json(const ServingMetrics& m, const Scenario& s) {
  Json out = Json::array();
  for (std::size_t i = 0; i < m.clients.size(); ++i) {
    const ClientMetrics& c = m.clients[i];
    Json line{{"name", s.workload->clients[i].name},
              {"completed", c.completed},
              {"total_input_tokens", c.input_tokens},
              {"total_output_tokens", c.output_tokens}};
    for (const auto& [name, d] : {std::pair{"ttft", &c.ttft_ms}, {"tpot", &c.tpot_ms}, {"e2el", &c.e2el_ms}}) {
      line[fmt::format("mean_{}_ms", name)] = sample_value(*d, d->mean());
      line[fmt::format("p99_{}_ms", name)] = sample_value(*d, d->percentile(99));
    }
    if (!s.serving.client_objectives.empty() && c.ended() > 0) line["good_share"] = c.good_requests / c.ended();
    out.push_back(std::move(line));
  }
  return out;
}

/// Paid GPU seconds; without autoscaling, all replicas all the time.
double gpu_seconds(const ServingMetrics& m, const Scenario& s) {
  const FleetSpec& fleet = s.serving.fleet;
  const double seconds = m.duration.base();
  double sum = (fleet.autoscaling ? m.replica_seconds : s.serving.replicas * seconds) * s.deployment->sharding.gpus();
  if (const auto& disaggregation = s.serving.disaggregation) {
    const double prefill =
        fleet.prefill_autoscaling ? m.prefill_replica_seconds : disaggregation->prefill_replicas * seconds;
    sum += prefill * disaggregation->prefill->sharding.gpus();
  }
  return sum;
}

/// Starts and stops of replicas.
Json fleet_json(const ServingMetrics& m, const Scenario& s) {
  const FleetSpec& fleet = s.serving.fleet;
  Json out = {{"cold_start_s", fleet.cold_start.base()}, {"replica_starts", m.replica_starts}};
  if (fleet.prefill_cold_start) out["prefill_cold_start_s"] = fleet.prefill_cold_start->base();
  if (fleet.autoscaling) {
    out["min_replicas"] = fleet.autoscaling->min;
    out["max_replicas"] = fleet.autoscaling->max;
    out["mean_replicas"] = paid_replicas(m, s.serving.replicas);
    out["most_replicas"] = m.most_replicas;
    out["replica_hours"] = m.replica_seconds / 3600.0;
  }
  if (fleet.prefill_autoscaling && s.serving.disaggregation) {
    out["min_prefill_replicas"] = fleet.prefill_autoscaling->min;
    out["max_prefill_replicas"] = fleet.prefill_autoscaling->max;
    out["mean_prefill_replicas"] = paid_prefill_replicas(m, s.serving.disaggregation->prefill_replicas);
    out["most_prefill_replicas"] = m.most_prefill_replicas;
    out["prefill_replica_hours"] = m.prefill_replica_seconds / 3600.0;
  }
  if (fleet.scaled()) out["gpu_hours"] = gpu_seconds(m, s) / 3600.0;
  if (fleet.failures) {
    out["replica_failures"] = m.replica_failures;
    out["requeued"] = m.requeued;
    out["lost"] = m.lost;
  }
  return out;
}

/// The deployment and its settings.
Json setup_json(const Scenario& s, const FleetCost& cost) {
  Json out = deployment_json(*s.deployment);
  out["replicas"] = s.serving.replicas;
  if (s.serving.disaggregation) {
    out["disaggregation"] = {{"prefill", deployment_json(*s.serving.disaggregation->prefill)},
                             {"prefill_replicas", s.serving.disaggregation->prefill_replicas},
                             {"transfer_bytes_per_s", transfer_bandwidth(*s.deployment, s.serving).base()}};
  }
  out["gpus"] = cost.gpus;
  out["workload"] = s.workload ? s.workload->name : "";
  out["seed"] = s.serving.seed;
  return out;
}

/// Adds what clients saw, with the keys of `vllm bench serve`.
void add_client_metrics(const ServingMetrics& m, const Scenario& s, Json& out) {
  const double seconds = m.duration.base();
  out["duration"] = seconds;
  out["completed"] = m.completed;
  out["failed"] = m.failed;
  if (m.cancelled + m.rejected > 0 || may_fail(s)) {
    out["cancelled"] = m.cancelled;
    out["rejected"] = m.rejected;
    out["cancelled_output_tokens"] = m.cancelled_tokens;
  }
  out["saturated"] = m.load.saturated;
  if (m.load.offered > PerSecond(0)) out["offered_request_rate"] = m.load.offered.base();
  out["total_input_tokens"] = m.input_tokens;
  out["total_output_tokens"] = m.output_tokens;
  const auto rate = [&](double count) { return seconds > 0 ? count / seconds : 0.0; };
  out["request_throughput"] = rate(static_cast<double>(m.completed));
  out["request_goodput"] = rate(m.good_requests);
  out["output_throughput"] = rate(m.output_tokens);
  if (const double steady = s.workload ? steady_output_rate(*s.workload, m) : 0.0; steady > 0)
    out["steady_output_throughput"] = steady;
  out["total_token_throughput"] = rate(m.input_tokens + m.output_tokens);
  for (const Named& l : latencies(m)) {
    const Distribution& d = *l.values;
    out[fmt::format("mean_{}_ms", l.name)] = sample_value(d, d.mean());
    out[fmt::format("median_{}_ms", l.name)] = sample_value(d, d.percentile(50));
    out[fmt::format("std_{}_ms", l.name)] = sample_value(d, d.stddev());
    out[fmt::format("p90_{}_ms", l.name)] = sample_value(d, d.percentile(90));
    out[fmt::format("p99_{}_ms", l.name)] = sample_value(d, d.percentile(99));
  }
  out["mean_queue_ms"] = sample_value(m.queue_ms, m.queue_ms.mean());
  out["p99_queue_ms"] = sample_value(m.queue_ms, m.queue_ms.percentile(99));
}

FrontEndLoad front_end_load(const ServingMetrics& m, const Scenario& s) {
  return roofcast::front_end_load(m, *s.deployment, s.serving, s.workload ? s.workload->prompt_text : 1.0);
}

double cache_waste(const ServingMetrics& m) { return std::max(0.0, 1.0 - m.kv_filled / m.kv_held); }
double padding_share(const ServingMetrics& m) {
  return m.computed_tokens > 0 ? m.padding_tokens / m.computed_tokens : 0.0;
}
std::string waste_text(const ServingMetrics& m) {
  std::string text;
  if (m.kv_held > 0) text = fmt::format(", {:.1f} % of the allocated cache empty", 100 * cache_waste(m));
  if (m.padding_tokens > 0) text += fmt::format("; {:.1f} % of computed tokens are padding", 100 * padding_share(m));
  return text;
}

double hit_rate(const AdapterMetrics& a) {
  return a.starts > 0 ? 1.0 - static_cast<double>(a.loads) / static_cast<double>(a.starts) : 0.0;
}

Json adapters_json(const AdapterMetrics& a) {
  return {
      {"hit_rate", hit_rate(a)}, {"loads", a.loads}, {"disk_reads", a.disk_reads}, {"loaded_bytes", a.loaded_bytes}};
}

/// Adds the work of the GPUs and their caches.
void add_engine_metrics(const ServingMetrics& m, const Scenario& s, const FleetCost& cost, Json& out) {
  out["gpu_utilization"] = cost.busy_share;
  const FrontEndLoad front_end = front_end_load(m, s);
  out["front_end_ms"] = front_end.idle.in(kMillisecond);
  out["front_end_utilization"] = front_end.busier();
  out["kv_cache_peak_usage"] = m.kv_peak_usage;
  if (m.kv_held > 0) out["kv_cache_waste"] = cache_waste(m);
  out["padding_share"] = padding_share(m);
  out["preemptions"] = m.preemptions;
  out["prefix_cache_hit_rate"] = m.prefix_cache_hit_rate();
  if (s.deployment->engine.kv_offload > Bytes(0)) {
    out["kv_offload"] = {{"hit_rate", m.input_tokens > 0 ? m.offload_loaded_tokens / m.input_tokens : 0.0},
                         {"loaded_bytes", m.offload_loaded_bytes},
                         {"stored_bytes", m.offload_stored_bytes}};
  }
  if (s.deployment->adapters) out["adapters"] = adapters_json(m.adapters);
  if (m.ttfat_ms.count() > 0) {
    out["mean_ttfat_ms"] = m.ttfat_ms.mean();
    out["p99_ttfat_ms"] = m.ttfat_ms.percentile(99);
  }
  if (!s.deployment->engine.kv_tiers.empty())
    out["kv_tiers"] = {{"hit_rate", m.input_tokens > 0 ? m.tier_tokens / m.input_tokens : 0.0}};
  if (m.sample_tokens > 0)
    out["samples"] = {{"generated_tokens", m.sample_tokens}, {"dropped_tokens", m.dropped_sample_tokens}};
  out["mfu"] = cost.mfu;
  out["mbu"] = cost.mbu;
  if (m.drafted_tokens > 0) {
    out["spec_decode_acceptance_rate"] = m.accepted_tokens / m.drafted_tokens;
  }
  out["energy_joules"] = cost.energy.value;
  const double watts = mean_power(cost, m).value;
  const LogSpread power = power_spread(*s.deployment);
  out["mean_power_watts"] = watts;
  out["mean_power_watts_low"] = watts * std::exp(power.low);
  out["mean_power_watts_high"] = std::min(watts * std::exp(power.high), std::max(watts, cost.board_power.value));
}

/// The one row of the CSV.
Json record_json(const ServingMetrics& m, const Scenario& s) {
  Json out = deployment_json(*s.deployment);
  out["replicas"] = s.serving.replicas;
  out["workload"] = s.workload ? s.workload->name : "";
  out["seed"] = s.serving.seed;
  add_metrics(metrics_of(m, s), out);
  return out;
}

VerdictTable clients_table(const ServingMetrics& m, const Scenario& s) {
  constexpr std::size_t kShown = 20;
  VerdictTable table{.columns = {"clients", "requests", "mean TTFT", "p99 TTFT", "mean TPOT", "p99 TPOT"}, .rows = {}};
  std::vector<std::size_t> order(m.clients.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() > kShown) {  // those with the most requests, as listed
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return m.clients[a].completed > m.clients[b].completed; });
    order.resize(kShown);
    std::sort(order.begin(), order.end());
  }
  if (!s.serving.client_objectives.empty()) table.columns.emplace_back("within limits");
  for (const std::size_t i : order) {
    const ClientMetrics& c = m.clients[i];
    table.rows.push_back({s.workload->clients[i].name, std::to_string(c.completed), significant(c.ttft_ms.mean()),
                          significant(c.ttft_ms.percentile(99)), significant(c.tpot_ms.mean()),
                          significant(c.tpot_ms.percentile(99))});
    if (!s.serving.client_objectives.empty())
      table.rows.back().push_back(c.ended() > 0 ? fmt::format("{:.1f} %", 100 * c.good_requests / c.ended()) : "");
  }
  table.in_all = m.clients.size();
  return table;
}

/// Lines of a name and its value.
class Lines {
 public:
  void add(const char* name, const std::string& value) { text_ += fmt::format("{:<24}{}\n", name, value); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string setup_text(const Scenario& s) {
  const std::string line = deployment_line(*s.deployment);
  if (const auto& split = s.serving.disaggregation)
    return fmt::format("decode: {} x {}\nprefill: {} x {}\n", s.serving.replicas, line, split->prefill_replicas,
                       deployment_line(*split->prefill));
  return s.serving.replicas > 1 ? fmt::format("{}, {} replicas\n", line, s.serving.replicas) : line + "\n";
}

void add_request_lines(const ServingMetrics& m, const Scenario& s, const Json& json, Lines& lines) {
  const auto number = [&](const char* key) { return significant(json[key].get<double>(), 4); };
  lines.add("requests",
            fmt::format("{} completed, {} failed, in {}", m.completed, m.failed, human_time(m.duration.base())));
  if (m.failed > 0)
    lines.add(
        "FAILED",
        failure_words(m, *s.deployment, s.serving.disaggregation ? s.serving.disaggregation->prefill.get() : nullptr) +
            (m.cancelled_tokens > 0 ? fmt::format("; {} output tokens wasted", human_count(m.cancelled_tokens)) : ""));
  if (m.completed == 0) return;
  lines.add("tokens", fmt::format("{} in, {} out", human_count(m.input_tokens), human_count(m.output_tokens)));
  lines.add("throughput",
            fmt::format("{} requests/s, {} output tokens/s, {} tokens/s in all", number("request_throughput"),
                        number("output_throughput"), number("total_token_throughput")));
  if (make_scheduler(s.deployment->engine.scheduler)->pads())
    lines.add("responses", "of a batch return together, at e2el; ttft is when their first tokens are computed");
  if (m.load.saturated) lines.add("SATURATED", saturation_words(m));
  if (!s.objectives.empty()) lines.add("goodput", fmt::format("{} requests/s", number("request_goodput")));
}

void add_cache_lines(const ServingMetrics& m, const Scenario& s, const Json& json, Lines& lines) {
  lines.add("KV cache",
            fmt::format("{:.1f} % of the pool at its peak, {} preemptions, {:.1f} % of prompt tokens found cached{}",
                        100 * m.kv_peak_usage, m.preemptions, 100 * json["prefix_cache_hit_rate"].get<double>(),
                        waste_text(m)));
  if (s.deployment->engine.kv_offload > Bytes(0)) {
    lines.add("host memory",
              fmt::format("{:.1f} % of prompt tokens loaded back, {:.2f} GB in and {:.2f} GB out per GPU",
                          100 * json["kv_offload"]["hit_rate"].get<double>(), m.offload_loaded_bytes / 1e9,
                          m.offload_stored_bytes / 1e9));
  }
}

void add_tier_line(const ServingMetrics& m, const Scenario& s, const Json& json, Lines& lines) {
  if (s.deployment->engine.kv_tiers.empty()) return;
  std::string names;
  for (const KvTier& tier : s.deployment->engine.kv_tiers) names += (names.empty() ? "" : ", ") + tier.name;
  lines.add("tiers",
            fmt::format("{:.1f} % of prompt tokens from {}; {:.2f} GB per GPU with what host memory had",
                        100 * json["kv_tiers"]["hit_rate"].get<double>(), names, m.offload_loaded_bytes / 1e9));
}

void add_sample_line(const ServingMetrics& m, Lines& lines) {
  if (m.sample_tokens <= 0) return;
  lines.add("samples", fmt::format("{} tokens generated in parallel, {:.1f} % of them not returned",
                                   human_count(m.sample_tokens), 100 * m.dropped_sample_tokens / m.sample_tokens));
}

void add_adapter_line(const ServingMetrics& m, const Scenario& s, Lines& lines) {
  if (!s.deployment->adapters) return;
  const AdapterMetrics& a = m.adapters;
  lines.add("adapters", fmt::format("{:.1f} % of starts found theirs in one of {} slots; {} loads, {:.2f} GB per GPU{}",
                                    100 * hit_rate(a), s.deployment->adapters->slots, a.loads, a.loaded_bytes / 1e9,
                                    a.disk_reads > 0 ? fmt::format(", {} of them from disk", a.disk_reads) : ""));
}

void add_fleet_lines(const ServingMetrics& m, const Scenario& s, Lines& lines) {
  const FleetSpec& fleet = s.serving.fleet;
  const auto& disaggregation = s.serving.disaggregation;
  const auto add = [&](const char* what, double mean, int most, double seconds, std::int64_t starts, Seconds cold) {
    lines.add(what,
              fmt::format("{} on average ({} at most), {} replica-hours, {} cold starts of {}", significant(mean, 3),
                          most, significant(seconds / 3600.0, 4), starts, human_time(cold.base())));
  };
  if (fleet.prefill_autoscaling && disaggregation)
    add("prefill workers", paid_prefill_replicas(m, disaggregation->prefill_replicas), m.most_prefill_replicas,
        m.prefill_replica_seconds, m.prefill_replica_starts, fleet.prefill_cold_start.value_or(fleet.cold_start));
  if (fleet.autoscaling)
    add(disaggregation ? "decode workers" : "replicas", paid_replicas(m, s.serving.replicas), m.most_replicas,
        m.replica_seconds, m.replica_starts - m.prefill_replica_starts, fleet.cold_start);
  if (s.serving.fleet.failures) {
    lines.add("failures", fmt::format("{} of replicas; {} requests moved to others, {} lost", m.replica_failures,
                                      m.requeued, m.lost));
  }
}

void add_gpu_lines(const Json& json, Lines& lines) {
  const auto percent = [&](const char* key) { return 100 * json[key].get<double>(); };
  lines.add("GPUs", fmt::format("busy {:.1f} %, MFU {:.1f} %, MBU {:.1f} %", percent("gpu_utilization"), percent("mfu"),
                                percent("mbu")));
  lines.add("cost", cost_line(json["cost"]));
  if (!std::isfinite(json["mean_power_watts"].get<double>())) {
    lines.add("power", "not known: the GPU's file has no board_power");
    return;
  }
  const auto watts = [&](const char* key) { return significant(json[key].get<double>(), 3); };
  lines.add("power", fmt::format("{} W on average ({} to {} W, 90 %)", watts("mean_power_watts"),
                                 watts("mean_power_watts_low"), watts("mean_power_watts_high")));
}

/// The front end's part of TTFT. If it is busy nearly all the time, it is the bottleneck, and the line says what helps.
std::string front_end_line(const ServingMetrics& m, const Scenario& s) {
  const FrontEndLoad share = front_end_load(m, s);
  const std::string own = share.idle > Seconds(0)
                              ? fmt::format("{} of each queue and TTFT, until the engine sees a prompt of mean length",
                                            human_time(share.idle.base()))
                              : "";
  if (share.busier() < kFrontEndBinds) return own;
  const auto& disaggregation = s.serving.disaggregation;
  const bool intake = share.intake > share.sending;
  const Deployment& d = intake && disaggregation ? *disaggregation->prefill : *s.deployment;
  const int servers = d.engine.front_ends(d.sharding);
  const Seconds each = intake ? share.prompt : streaming_time(d.engine);
  return fmt::format(
      "{}{}busy {:.0f} %{}: it binds, not the GPUs. {} {} for a {}; engine.api_servers sets how many there are", own,
      own.empty() ? "" : "; ", 100 * share.busier(), intake ? " taking in prompts" : "",
      servers == 1 ? "One server takes" : fmt::format("{} servers take", servers), human_time(each.base()),
      intake ? "prompt" : "token");
}

VerdictTable latency_table(const ServingMetrics& m) {
  VerdictTable table{.columns = {"ms", "mean", "median", "p90", "p99"}, .rows = {}};
  for (const Named& l : latencies(m)) {
    const Distribution& d = *l.values;
    const auto cell = [&](double statistic) { return significant(sample_value(d, statistic)); };
    table.rows.push_back(
        {l.name, cell(d.mean()), cell(d.percentile(50)), cell(d.percentile(90)), cell(d.percentile(99))});
  }
  return table;
}

Json to_json(const ServingMetrics& m, const Scenario& s) {
  const FleetCost cost = fleet_cost(m, *s.deployment, s.serving.replicas, s.serving.disaggregation);
  Json out = result_head(ResultKind::kSimulation);
  out.update(setup_json(s, cost));
  add_client_metrics(m, s, out);
  add_engine_metrics(m, s, cost, out);
  if (!m.clients.empty()) out["clients"] = clients_json(m, s);
  if (s.serving.fleet.active()) out["fleet"] = fleet_json(m, s);
  const auto& disaggregation = s.serving.disaggregation;
  const TokenBill bill = token_bill(cost.usd_per_hour * m.duration.in(kHour), m, s, s.serving.replicas,
                                    disaggregation ? disaggregation->prefill_replicas : 0);
  out["price"] = price_json(cost.bill.decode.quote);
  out["cost"] = {{"usd_per_hour", cost.usd_per_hour},
                 {"usd", cost.usd_per_hour * m.duration.in(kHour)},
                 {"paid_gpus", cost.bill.paid_gpus()},
                 {"usd_per_million_input_tokens", bill.usd_per_million_input},
                 {"usd_per_million_cached_input_tokens", bill.usd_per_million_cached_input},
                 {"usd_per_million_output_tokens", bill.usd_per_million_output},
                 {"usd_per_million_total_tokens", bill.usd_per_million_total},
                 {"joules_per_output_token", cost.joules_per_output_token}};
  out["iterations"] = m.iterations;
  if (!s.objectives.empty()) out["objectives"] = objectives_json(m, s);
  out["provenance"] = provenance_json(*s.deployment);
  return out;
}

std::string objectives_text(const ServingMetrics& m, const Scenario& s) {
  std::string out;
  for (const Objective& o : s.objectives) {
    const Seconds value = observed(o, m);
    if (m.completed == 0) {
      out += fmt::format("{}: MISSED, no request completed\n", o.name());
      continue;
    }
    out += fmt::format("{}: {} of {}: {}\n", o.name(), human_time(value.base()), human_time(o.limit.base()),
                       value > o.limit ? "MISSED"
                       : !serves_enough(m)
                           ? fmt::format("MISSED, {} requests failed; met by those that completed", m.failed)
                       : m.load.saturated ? "met by this run, but the queue grows"
                                          : "met");
  }
  return out;
}

void add_intervals(const std::vector<MetricInterval>& uncertain, Json& out) {
  for (const MetricInterval& i : uncertain) {
    out[i.metric + "_low"] = i.low;
    out[i.metric + "_high"] = i.high;
  }
}

VerdictTable uncertain_table(const std::vector<MetricInterval>& uncertain) {
  VerdictTable table{.columns = {"90 % interval", "low", "high"}, .rows = {}};
  for (const MetricInterval& i : uncertain) table.rows.push_back({i.metric, significant(i.low), significant(i.high)});
  return table;
}

/// `json`: the result's own numbers.
ResultVerdict verdict_of(const ServingMetrics& m, const Scenario& s, const Json& json,
                         const std::vector<MetricInterval>& uncertain) {
  Lines lines;
  add_request_lines(m, s, json, lines);
  ResultVerdict verdict;
  if (m.completed == 0) {  // nothing was served: there is no latency, no throughput and no cost of it
    lines.add("provenance", provenance_line(*s.deployment));
    verdict.add("", setup_text(s));
    verdict.add("", lines.text());
    if (!s.objectives.empty()) verdict.add("", objectives_text(m, s));
    return verdict;
  }
  add_cache_lines(m, s, json, lines);
  add_adapter_line(m, s, lines);
  add_tier_line(m, s, json, lines);
  if (m.ttfat_ms.count() > 0)
    lines.add("thinking", fmt::format("first token of the answer after {} ms on average, p99 {}",
                                      significant(m.ttfat_ms.mean()), significant(m.ttfat_ms.percentile(99))));
  add_sample_line(m, lines);
  add_fleet_lines(m, s, lines);
  add_gpu_lines(json, lines);
  if (const std::string front_end = front_end_line(m, s); !front_end.empty()) lines.add("front end", front_end);
  const FleetCost cost = fleet_cost(m, *s.deployment, s.serving.replicas, s.serving.disaggregation);
  const auto& disaggregation = s.serving.disaggregation;
  lines.add("price", bill_line(*s.deployment, disaggregation ? disaggregation->prefill.get() : nullptr, cost.bill));
  if (const std::string paid = paid_line(cost.bill, cost.gpus); !paid.empty()) lines.add("bill", paid);
  lines.add("steps", std::to_string(m.iterations));
  lines.add("provenance", provenance_line(*s.deployment));
  verdict.add("", setup_text(s));
  verdict.add("", lines.text());
  verdict.add("", latency_table(m));
  if (!m.clients.empty()) verdict.add("", clients_table(m, s));
  if (!s.objectives.empty()) verdict.add("", objectives_text(m, s));
  if (!uncertain.empty()) verdict.add("", uncertain_table(uncertain));
  return verdict;
}

}  // namespace

std::string saturation_words(const ServingMetrics& m) {
  return fmt::format(
      "{} requests/s arrive, {} were served in this run; latencies grow with its length. A plan with search: {{goal: "
      "throughput}} finds the load that the deployment holds",
      significant(m.load.offered.base()), significant(static_cast<double>(m.completed) / m.duration.base()));
}

nlohmann::ordered_json simulation_json(const ServingMetrics& m, const Scenario& s,
                                       const nlohmann::ordered_json& over_time,
                                       const std::vector<MetricInterval>& uncertain) {
  Json out = to_json(m, s);
  const ResultVerdict verdict = verdict_of(m, s, out, uncertain);
  add_intervals(uncertain, out);
  if (!over_time.is_null()) out["intervals"] = over_time;
  out["verdict"] = verdict_json(verdict);
  return out;
}

std::string simulation_report(const ServingMetrics& m, const Scenario& s, const std::string& format,
                              const nlohmann::ordered_json& over_time, const std::vector<MetricInterval>& uncertain,
                              const nlohmann::ordered_json& question) {
  if (format == "json") return result_text(simulation_json(m, s, over_time, uncertain), question);
  const Json all = to_json(m, s);
  if (format == "table") return verdict_text(verdict_of(m, s, all, uncertain));
  // Deployment and metrics as in a sweep's row, then the other numbers of the JSON.
  Json row = record_json(m, s);
  for (const auto& [key, value] : all.items()) {
    if (value.is_number() && key != "schema" && !row.contains(key)) row[key] = value;
  }
  add_intervals(uncertain, row);
  return records_csv(Json::array({row}));
}

std::string request_csv_header() { return fmt::format("{}\n", fmt::join(result_keys::kRequestColumns, ",")); }

std::string request_csv_line(const RequestRecord& r) {
  const std::string tpot = r.in_turn() > 1 ? fmt::format("{:.4f}", r.tpot().in(kMillisecond)) : "";
  return fmt::format("{},{:.6f},{},{},{:.4f},{},{:.4f},{:.4f},{},{},{}\n", r.id, r.arrival.base(), r.prompt_tokens,
                     r.output_tokens, r.ttft.in(kMillisecond), tpot, r.e2el.in(kMillisecond), r.queue.in(kMillisecond),
                     r.cached_tokens, r.preemptions, r.replica);
}

}  // namespace roofcast::reports
