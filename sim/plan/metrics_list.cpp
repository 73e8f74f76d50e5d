#include "sim/plan/metrics_list.h"

#include <algorithm>
#include <array>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/from_chars.h"
#include "sim/plan/fleet_cost.h"
#include "sim/plan/sample_value.h"
#include "sim/plan/token_bill.h"
#include "sim/step/deployment.h"

namespace roofcast {

MetricsList metrics_of(const Estimate& e, const Deployment& d) {
  const double users = static_cast<double>(e.request.batch) * e.request.replicas,
               gpus = d.sharding.gpus() * e.request.replicas;
  MetricsList out{
      {"fits", e.memory.fits},
      {"gpus", gpus},
      {"ttft_ms", e.ttft.in(kMillisecond)},
      {"tpot_ms", e.tpot.in(kMillisecond)},
      {"ttft_ms_low", e.ttft_interval.low.in(kMillisecond)},
      {"ttft_ms_high", e.ttft_interval.high.in(kMillisecond)},
      {"tpot_ms_low", e.tpot_interval.low.in(kMillisecond)},
      {"tpot_ms_high", e.tpot_interval.high.in(kMillisecond)},
      {"request_latency_ms", e.request_latency.in(kMillisecond)},
      {"output_tokens_per_s", e.output_tokens_per_s},
      {"output_tokens_per_s_per_user", e.output_tokens_per_s / users},
      {"output_tokens_per_s_per_gpu", e.output_tokens_per_s / gpus},
      {"request_output_tokens_per_s", e.request_tokens_per_s},
      {"prefill_bound", std::string(name_of(e.prefill.bound))},
      {"decode_bound", std::string(name_of(e.decode.bound))},
      {"decode_step_ms", e.decode.time.in(kMillisecond)},
      {"decode_arithmetic_intensity", e.decode.bytes > Bytes(0) ? e.decode.flops.base() / e.decode.bytes.base() : 0.0},
      {"weight_bytes", e.memory.weights.base()},
      {"kv_cache_bytes_per_token", e.memory.cache_per_token.base()},
      {"kv_cache_bytes", e.memory.cache.base()},
      {"max_batch", e.memory.max_batch},
      {"max_context", e.memory.max_context},
      {"usd_per_hour", e.cost.usd_per_hour},
      {"usd_per_million_input_tokens", e.cost.usd_per_million_input_tokens},
      {"usd_per_million_cached_input_tokens", e.cost.usd_per_million_cached_input_tokens},
      {"usd_per_million_output_tokens", e.cost.usd_per_million_output_tokens},
      {"usd_per_million_total_tokens", e.cost.usd_per_million_total_tokens},
      {"joules_per_output_token", e.cost.joules_per_output_token}};
  out.emplace_back("engine_version", d.engine.version);
  out.emplace_back("paid_gpus", cheapest_bill(d, e.request.replicas).paid_gpus());
  if (e.waiting > 0) out.emplace_back("waiting", static_cast<double>(e.waiting));
  if (!e.memory.fits) out.emplace_back("reason", e.memory.reason);
  return out;
}

MetricsList metrics_of(const ServingMetrics& m, const Scenario& s) {
  const double seconds = std::max(m.duration.base(), 1e-12);
  const FleetCost cost = fleet_cost(m, *s.deployment, s.serving.replicas, s.serving.disaggregation);
  const auto& apart = s.serving.disaggregation;
  const TokenBill bill = token_bill(cost.usd_per_hour * m.duration.in(kHour), m, s, s.serving.replicas,
                                    apart ? apart->prefill_replicas : 0);
  const double gpus = cost.gpus;
  MetricsList out{{"fits", true},
                  {"gpus", gpus},
                  {"duration", m.duration.base()},
                  {"completed", static_cast<double>(m.completed)},
                  {"failed", static_cast<double>(m.failed)},
                  {"cancelled", static_cast<double>(m.cancelled)},
                  {"rejected", static_cast<double>(m.rejected)},
                  {"saturated", m.load.saturated},
                  {"request_throughput", static_cast<double>(m.completed) / seconds},
                  {"request_goodput", m.good_requests / seconds},
                  {"output_throughput", m.output_tokens / seconds},
                  {"total_token_throughput", (m.input_tokens + m.output_tokens) / seconds},
                  {"output_tokens_per_s_per_gpu", m.output_tokens / seconds / gpus}};
  const std::array<std::pair<const char*, const Distribution*>, 4> latencies{
      {{"ttft", &m.ttft_ms}, {"tpot", &m.tpot_ms}, {"itl", &m.itl_ms}, {"e2el", &m.e2el_ms}}};
  for (const auto& [name, distribution] : latencies) {
    const Distribution& values = *distribution;
    const auto put = [&](std::string key, double statistic) {
      out.emplace_back(std::move(key), sample_value(values, statistic));
    };
    put(fmt::format("mean_{}_ms", name), values.mean());
    put(fmt::format("median_{}_ms", name), values.percentile(50));
    put(fmt::format("p90_{}_ms", name), values.percentile(90));
    put(fmt::format("p99_{}_ms", name), values.percentile(99));
  }
  out.insert(out.end(), {{"p99_queue_ms", sample_value(m.queue_ms, m.queue_ms.percentile(99))},
                         {"gpu_utilization", cost.busy_share},
                         {"mfu", cost.mfu},
                         {"mbu", cost.mbu},
                         {"kv_cache_peak_usage", m.kv_peak_usage},
                         {"preemptions", static_cast<double>(m.preemptions)},
                         {"usd_per_hour", cost.usd_per_hour},
                         {"usd_per_million_input_tokens", bill.usd_per_million_input},
                         {"usd_per_million_cached_input_tokens", bill.usd_per_million_cached_input},
                         {"usd_per_million_output_tokens", bill.usd_per_million_output},
                         {"usd_per_million_total_tokens", bill.usd_per_million_total},
                         {"joules_per_output_token", cost.joules_per_output_token}});
  bool met = true;
  for (const Objective& o : s.objectives) met = met && meets(o, m);
  if (!s.objectives.empty()) out.emplace_back("objectives_met", met);
  out.insert(out.end(), {{"engine_version", s.deployment->engine.version},
                         {"paid_gpus", cost.bill.paid_gpus()},
                         {"total_input_tokens", m.input_tokens},
                         {"total_output_tokens", m.output_tokens},
                         {"prefix_cache_hit_rate", m.prefix_cache_hit_rate()}});
  return out;
}

std::string to_text(const MetricsList& metrics) {
  fmt::memory_buffer out;
  const auto add = [&](std::string_view text) { out.append(text); };
  for (const auto& [name, value] : metrics) {
    add(name);
    if (const double* number = std::get_if<double>(&value)) {
      // The shortest text that reads back the same.
      fmt::format_to(fmt::appender(out), FMT_COMPILE("={}\n"), *number);
    } else if (const bool* truth = std::get_if<bool>(&value)) {
      add(*truth ? "=true\n" : "=false\n");
    } else {
      std::string text = std::get<std::string>(value);
      std::replace(text.begin(), text.end(), '\n', ' ');
      add("='"), add(text), add("\n");
    }
  }
  return fmt::to_string(out);
}

std::optional<std::pair<std::string_view, std::string_view>> next_metric(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const std::size_t end = text.find('\n'), equals = text.find('=');
  if (end == std::string_view::npos || equals == std::string_view::npos || equals + 1 >= end)
    throw ConfigError("a result in the store is damaged");
  const std::pair line{text.substr(0, equals), text.substr(equals + 1, end - equals - 1)};
  text.remove_prefix(end + 1);
  return line;
}

double metric_number(std::string_view value) {
  double number = 0;
  const auto [stop, error] = from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || stop != value.data() + value.size())
    throw ConfigError("a result in the store is damaged");
  return number;
}

MetricsList metrics_from_text(std::string_view text) {
  MetricsList out;
  while (const auto line = next_metric(text)) {
    std::string name(line->first);
    const std::string_view value = line->second;
    if (value[0] == '\'') {
      out.emplace_back(std::move(name), std::string(value.substr(1)));
    } else if (value == "true" || value == "false") {
      out.emplace_back(std::move(name), value == "true");
    } else {
      out.emplace_back(std::move(name), metric_number(value));
    }
  }
  return out;
}

}  // namespace roofcast
