#include "reports/estimate_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reports/machine_json.h"
#include "reports/provenance.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/table.h"
#include "reports/verdict.h"
#include "sim/plan/acceptance.h"
#include "sim/plan/front_end_load.h"
#include "sim/plan/prices.h"
#include "sim/plan/what_fits.h"
#include "sim/serve/media.h"
#include "sim/serve/scheduler.h"
#include "sim/step/deployment.h"

namespace roofcast::reports {
namespace {

double intensity(const Cost& cost) { return cost.bytes > Bytes(0) ? cost.flops / cost.bytes / FlopsPerByte(1) : 0.0; }

Json memory_json(const EstimateMemory& m) {
  return {{"weight_bytes", m.weights.base()},
          {"kv_cache_bytes_per_token", m.cache_per_token.base()},
          {"state_bytes_per_sequence", m.state_per_sequence.base()},
          {"kv_cache_bytes", m.cache.base()},
          {"activation_bytes", m.activations.base()},
          {"capacity_bytes", m.capacity.base()},
          {"fits", m.fits},
          {"max_batch", m.max_batch},
          {"max_context", m.max_context}};
}

Json step_json(const StepBreakdown& step, const char* time_key) {
  return {{time_key, step.time.in(kMillisecond)},
          {"flops", step.flops.base()},
          {"bytes", step.bytes.base()},
          {"host_ms", step.host_time.in(kMillisecond)},
          {"bound", name_of(step.bound)}};
}

void operators_json(Json& out, const char* phase, const StepBreakdown& step) {
  for (const OperatorTime& op : step.operators) {
    out.push_back({{"phase", phase},
                   {"name", op.name},
                   {"count", op.count},
                   {"flops", op.cost.flops.base()},
                   {"bytes", op.cost.bytes.base()},
                   {"arithmetic_intensity", intensity(op.cost)},
                   {"time_us", op.cost.time.in(kMicrosecond)},
                   {"bound", name_of(op.cost.bound)},
                   {"share", op.cost.time / step.time}});
  }
}

Json speculation_json(const SpeculationEstimate& s) {
  return {{"method", name_of(s.method)},
          {"num_speculative_tokens", s.drafts},
          {"acceptance", s.acceptance},
          {"tokens_per_step", s.tokens_per_step},
          {"tokens_per_step_bound", s.tokens_bound},
          {"plain_step_ms", s.plain_step.in(kMillisecond)},
          {"draft_ms", s.draft_time.in(kMillisecond)},
          {"verify_ms", s.verify_time.in(kMillisecond)},
          {"speedup", s.speedup},
          {"speedup_low", s.speedup_low},
          {"speedup_high", s.speedup_high},
          {"best_num_speculative_tokens", s.best_drafts},
          {"best_speedup", s.best_speedup}};
}

std::string speculation_line(const SpeculationEstimate& s) {
  if (s.method == SpeculationSpec::Method::kDiffusion)
    return fmt::format("diffusion, blocks of {}: {:.2f} tokens per pass of {} for {}: {:.2f}x", s.drafts + 1,
                       s.tokens_per_step, human_time(s.verify_time.base()), human_time(s.plain_step.base()), s.speedup);
  const std::string best = s.best_drafts == 0 ? "without it decoding is faster"
                                              : fmt::format("best k {}: {:.2f}x", s.best_drafts, s.best_speedup);
  return fmt::format(
      "{}, k {}, acceptance {}: {:.2f} tokens per step (k a + 1 = {:.2f}), drafts {} + verify {} for "
      "{}: {:.2f}x ({:.2f}x to {:.2f}x, 90 %, by acceptance); {}",
      name_of(s.method), s.drafts, acceptance_words(s.method, s.acceptance), s.tokens_per_step, s.tokens_bound,
      human_time(s.draft_time.base()), human_time(s.verify_time.base()), human_time(s.plain_step.base()), s.speedup,
      s.speedup_low, s.speedup_high, best);
}

/// Time of the encoders within the prefill.
Seconds encoding(const Estimate& e) {
  Seconds sum{};
  for (const OperatorTime& op : e.prefill.operators) {
    if (op.name.starts_with("encoder_")) sum += op.cost.time;
  }
  return sum;
}

std::string media_line(const Estimate& e) {
  std::string out;
  for (const EncoderWork& w : e.request.media)
    out += fmt::format("{:.0f} {}{} of {:.0f} tokens{} ({:.0f} patches), ", w.items, w.sound ? "audio clip" : "image",
                       w.items == 1 ? "" : "s", w.tokens, w.items == 1 ? "" : " each", w.sequences * w.patches);
  return out + fmt::format("encoded in {} of GPU time", human_time(encoding(e).base()));
}

double gpus_of(const Estimate& e, const Deployment& d) {
  return static_cast<double>(e.request.replicas) * d.sharding.gpus();
}

double sequences_of_rank(const Estimate& e, const Deployment& d) {
  return std::ceil(static_cast<double>(e.request.batch) / d.sharding.attention_dp);
}

std::string adapter_line(const Estimate& e, const Deployment& d) {
  return fmt::format("{} of rank {}, slots of {} per GPU for {}; a step hits {}", d.adapters->count, d.adapters->rank,
                     human_bytes(d.memory.adapters.base()), d.adapters->slots,
                     significant(AdapterHits(*d.adapters).of(sequences_of_rank(e, d)), 3));
}

/// Adds the request to a record.
void add_question(const Estimate& e, const Deployment& d, Json& out) {
  out.update(deployment_json(d));
  out["batch"] = e.request.batch + e.waiting;
  out["prompt_tokens"] = e.request.prompt_tokens;
  out["output_tokens"] = e.request.output_tokens;
}

}  // namespace

std::vector<std::string> warnings_of(const Estimate& e, const Deployment& d) {
  const EstimateRequest& r = e.request;
  std::vector<std::string> out;
  if (!e.memory.fits) out.push_back(e.memory.reason + (d.memory.infeasible ? what_would_fit(d) : ""));
  if (e.waiting > 0)
    out.push_back(
        fmt::format("a batch of {} is more than {} runs at a time ({}, {}): all figures are of {}, and the "
                    "other {} wait until these have ended",
                    r.batch + e.waiting, d.engine.name, r.batch,
                    d.memory.max_sequences < d.engine.max_num_seqs ? "the limit of its cache" : "engine.max_num_seqs",
                    r.batch, e.waiting));
  if (d.adapters) {
    const double named = AdapterHits(*d.adapters).named(sequences_of_rank(e, d));
    if (named > d.adapters->slots)
      out.push_back(fmt::format("{} sequences name about {:.0f} adapters, and {} have a slot: the others would wait",
                                r.batch, named, d.adapters->slots));
  }
  const double running = std::ceil(sequences_of_rank(e, d) / std::max(1, d.sharding.pp));
  const GraphSettings& graphs = d.engine.graphs;
  if (graphs.enabled && running > graphs.max_batch && d.fidelity != Fidelity::kIdeal && e.decode.bound == Bound::kHost)
    out.push_back(fmt::format(
        "no CUDA graph holds a decode step of {:g} sequences per rank, so the host launches its kernels one by "
        "one, and binds; graphs hold {} (engine.cuda_graphs.max_batch)",
        running, graphs.max_batch));
  const int ranks = std::max(d.sharding.tp, d.sharding.ep), domain = d.gpu.node.fabric_domain;
  if (ranks > domain && domain > d.gpu.node.gpus_per_node)  // for single nodes this is usual
    out.push_back(
        fmt::format("{} GPUs exchange data in every layer, and the NVLink domain of {} has {}: the rest "
                    "crosses the network",
                    ranks, d.gpu.name, domain));
  const double longest = d.engine.max_model_len > 0 ? d.engine.max_model_len : d.model.max_context;
  const double tokens =
      std::max(static_cast<double>(r.prompt_tokens) + r.output_tokens, static_cast<double>(r.context.value_or(0)));
  if (longest > 0 && tokens > longest)
    out.push_back(fmt::format("{} tokens are more than {} ({:.0f}): an engine would refuse them", tokens,
                              d.engine.max_model_len > 0 ? "engine.max_model_len" : "the context of " + d.model.name,
                              longest));
  const std::int64_t uncut = make_scheduler(d.engine.scheduler)->uncut_tokens(d.engine.max_num_batched_tokens);
  if (d.fidelity != Fidelity::kIdeal && !d.engine.chunked_prefill && r.prompt_tokens > uncut)
    out.push_back(
        fmt::format("prompts of {} tokens are longer than a step of {} (engine.max_num_batched_tokens), and {} "
                    "does not cut them: it would refuse them",
                    r.prompt_tokens, uncut, d.engine.name));
  return out;
}

namespace {

void add_lines(VerdictTable& table, const char* phase, const StepBreakdown& step) {
  std::vector<OperatorTime> lines = step.operators;
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.cost.time > b.cost.time; });
  for (const OperatorTime& op : lines) {
    table.rows.push_back({op.name, phase, plain_number(op.count), human_count(op.cost.flops.base()),
                          human_bytes(op.cost.bytes.base()), significant(intensity(op.cost), 3),
                          human_time(op.cost.time.base()), fmt::format("{:.1f} %", 100.0 * (op.cost.time / step.time)),
                          std::string(name_of(op.cost.bound))});
  }
  if (step.host_time / step.time > 0.001) {
    table.rows.push_back({"host and launches", phase, "", "", "", "", human_time(step.host_time.base()),
                          fmt::format("{:.1f} %", 100.0 * (step.host_time / step.time)), "host"});
  }
}

VerdictTable operator_table(const Estimate& e) {
  VerdictTable table{.columns = {"operator", "phase", "calls", "FLOP", "bytes", "FLOP/B", "time", "share", "bound"},
                     .rows = {}};
  add_lines(table, "prefill", e.prefill);
  add_lines(table, "decode", e.decode);
  return table;
}

std::string ranged(Seconds value, const Interval& interval, bool ideal) {
  if (ideal) return human_time(value.base());
  return fmt::format("{}   ({} to {}, 90 %)", human_time(value.base()), human_time(interval.low.base()),
                     human_time(interval.high.base()));
}

/// The difference to decode alone is due to prefill steps in between.
std::string steady_line(const SteadyLoad& steady) {
  if (!steady.left_out.empty()) return "left out: " + steady.left_out;
  std::string out = fmt::format("{} output tokens/s and TPOT {} with prefills between decode steps, as in simulate",
                                significant(steady.output_tokens_per_s), human_time(steady.tpot.base()));
  if (steady.front_end_share >= kFrontEndBinds) out += "; the front end binds (engine.api_servers)";
  return out;
}

std::string balance_line(const ExpertBalance& b, const Sharding& s) {
  const std::string fullest =
      fmt::format("the most loaded of {} GPUs gets {:.2f} x the mean in a decode step", s.ep, b.placed);
  if (s.expert_copies() == 0) return fullest;
  return fmt::format("{}, {:.2f} x without the {} redundant experts", fullest, b.as_drawn, s.expert_copies());
}

/// A single sequence is limited by the model's context, whatever the cache holds.
std::string room_line(const EstimateMemory& m, const Deployment& d) {
  const double context = d.engine.max_model_len > 0 ? d.engine.max_model_len : d.model.max_context;
  const std::string batch = fmt::format("{:.0f} such sequence{}", m.max_batch, m.max_batch == 1 ? "" : "s");
  if (context <= 0 || m.max_context <= context) return fmt::format("{}; one of {:.0f} tokens", batch, m.max_context);
  return fmt::format("{}; one of {:.0f} tokens, {}", batch, context,
                     d.engine.max_model_len > 0 ? "the engine's limit" : "the model's context");
}

Json cost_json(const Estimate& e) {
  return {{"usd_per_hour", e.cost.usd_per_hour},
          {"usd_per_million_input_tokens", e.cost.usd_per_million_input_tokens},
          {"usd_per_million_cached_input_tokens", e.cost.usd_per_million_cached_input_tokens},
          {"usd_per_million_output_tokens", e.cost.usd_per_million_output_tokens},
          {"usd_per_million_total_tokens", e.cost.usd_per_million_total_tokens},
          {"joules_per_output_token", e.cost.joules_per_output_token}};
}

ResultVerdict verdict_of(const Estimate& e, const Deployment& d) {
  const bool ideal = d.fidelity == Fidelity::kIdeal;
  const EstimateMemory& m = e.memory;
  std::string out = deployment_line(d) + "\n";
  if (e.request.replicas > 1)
    out += fmt::format("{} replicas; throughput and cost of all, times and memory of one\n", e.request.replicas);
  const std::string waiting = e.waiting > 0 ? fmt::format(" of {}, the others wait", e.request.batch + e.waiting) : "";
  out += fmt::format("batch {}{}, {} prompt tokens, {} output tokens\n", e.request.batch, waiting,
                     e.request.prompt_tokens, e.request.output_tokens);
  ResultVerdict verdict;
  verdict.add("", out);
  out.clear();
  const auto line = [&](const char* name, const std::string& value) { out += fmt::format("{:<22}{}\n", name, value); };
  line("TTFT", ranged(e.ttft, e.ttft_interval, ideal));
  line("TPOT", ranged(e.tpot, e.tpot_interval, ideal));
  line("request latency", human_time(e.request_latency.base()));
  line("output tokens/s", fmt::format("{} decoding, {} over whole requests", significant(e.output_tokens_per_s),
                                      significant(e.request_tokens_per_s)));
  if (e.steady) line("under steady load", steady_line(*e.steady));
  if (!e.request.media.empty()) line("encoders", media_line(e));
  if (!ideal) line("front end", human_time(e.front_end.base()) + " of TTFT, until the engine sees the prompts");
  line("prefill", fmt::format("{}, bound by {}", human_time(e.prefill.time.base()), name_of(e.prefill.bound)));
  line("decode step", fmt::format("{}, bound by {}", human_time(e.decode.time.base()), name_of(e.decode.bound)));
  if (e.speculation) line("speculation", speculation_line(*e.speculation));
  if (e.expert_balance) line("experts", balance_line(*e.expert_balance, d.sharding));
  if (d.adapters) line("adapters", adapter_line(e, d));
  line("memory per GPU",
       fmt::format("weights {}, KV cache {} ({} per token), activations {}, of {}{}", human_bytes(m.weights.base()),
                   human_bytes(m.cache.base()), human_bytes(m.cache_per_token.base()),
                   human_bytes(m.activations.base()), human_bytes(m.capacity.base()), m.fits ? "" : ": DOES NOT FIT"));
  line("room for", room_line(m, d));
  line("cost", cost_line(cost_json(e)));
  const Bill bill = cheapest_bill(d, e.request.replicas);
  line("price", price_line(d, bill.decode.quote));
  if (const std::string paid = paid_line(bill, gpus_of(e, d)); !paid.empty()) line("bill", paid);
  line("provenance", provenance_line(d));
  for (const std::string& assumption : d.model.assumptions) line("assumed", assumption);
  for (const std::string& warning : warnings_of(e, d)) line("warning", warning);
  verdict.add("", out);
  verdict.add("", operator_table(e));
  return verdict;
}

}  // namespace

Json estimate_json(const Estimate& e, const Deployment& d) {
  Json out = result_head(ResultKind::kEstimate);
  add_question(e, d, out);
  out["waiting"] = e.waiting;
  out["memory"] = memory_json(e.memory);
  if (d.adapters) {
    out["memory"]["adapter_bytes"] = d.memory.adapters.base();
    out["adapters_hit"] = AdapterHits(*d.adapters).of(sequences_of_rank(e, d));
  }
  if (!e.request.media.empty()) {
    out["media_tokens"] = media_tokens(e.request.media);
    out["prefill_encoder_ms"] = encoding(e).in(kMillisecond);
  }
  out["prefill"] = step_json(e.prefill, "time_ms");
  out["prefill"]["steps"] = e.prefill_steps;
  out["decode"] = step_json(e.decode, "step_ms");
  out["ttft_ms"] = e.ttft.in(kMillisecond);
  out["ttft_ms_low"] = e.ttft_interval.low.in(kMillisecond);
  out["ttft_ms_high"] = e.ttft_interval.high.in(kMillisecond);
  out["front_end_ms"] = e.front_end.in(kMillisecond);
  out["tpot_ms"] = e.tpot.in(kMillisecond);
  out["tpot_ms_low"] = e.tpot_interval.low.in(kMillisecond);
  out["tpot_ms_high"] = e.tpot_interval.high.in(kMillisecond);
  out["request_latency_ms"] = e.request_latency.in(kMillisecond);
  out["output_tokens_per_s"] = e.output_tokens_per_s;
  out["request_output_tokens_per_s"] = e.request_tokens_per_s;
  if (e.speculation) out["speculation"] = speculation_json(*e.speculation);
  if (e.steady && e.steady->left_out.empty()) {
    out["steady"] = {{"tpot_ms", e.steady->tpot.in(kMillisecond)},
                     {"output_tokens_per_s", e.steady->output_tokens_per_s},
                     {"front_end_utilization", e.steady->front_end_share}};
  }
  if (e.expert_balance) {
    out["expert_balance"] = {{"fullest_over_mean", e.expert_balance->placed},
                             {"without_redundant_experts", e.expert_balance->as_drawn},
                             {"redundant_experts", d.sharding.expert_copies()}};
  }
  Json operators = Json::array();
  operators_json(operators, "prefill", e.prefill);
  operators_json(operators, "decode", e.decode);
  out["operators"] = std::move(operators);
  out["cost"] = cost_json(e);
  const Bill bill = cheapest_bill(d, e.request.replicas);
  out["cost"]["paid_gpus"] = bill.paid_gpus();
  out["price"] = price_json(bill.decode.quote);
  out["machine"] = machine_json(d);
  out["memory_by_context"] =
      memory_by_context_json(d, e.request.batch, e.request.prompt_tokens + e.request.output_tokens);
  out["provenance"] = provenance_json(d);
  out["warnings"] = warnings_of(e, d);
  out["verdict"] = verdict_json(verdict_of(e, d));
  return out;
}

std::string estimate_report(const Estimate& e, const Deployment& d, const std::string& format, const Json& question) {
  if (format == "json") return result_text(estimate_json(e, d), question);
  if (format != "csv") return verdict_text(verdict_of(e, d));
  Json record;
  add_question(e, d, record);
  add_metrics(metrics_of(e, d), record);
  return records_csv(Json::array({record}));
}

}  // namespace roofcast::reports
