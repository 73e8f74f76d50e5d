#include "reports/summary.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "reports/charts.h"
#include "reports/table.h"
#include "reports/validation_pairs.h"

namespace roofcast {
namespace {

using Lines = std::vector<std::string>;

std::string milliseconds(double ms) { return human_time(ms / 1e3); }

std::string deployment_of(const Json& j) {
  const double gpus = gpus_of(j);
  std::string out = fmt::format("{} on {:.0f} x {}", text_at(j, "model"), gpus, text_at(j, "gpu"));
  if (const std::string engine = text_at(j, "engine"); !engine.empty()) out += " under " + engine;
  if (const std::string weights = text_at(j, "precision.weights"); !weights.empty()) {
    out += fmt::format(", {} weights, {} KV cache", weights, text_at(j, "precision.kv_cache"));
  }
  return out;
}

/// The operators of one phase by share, largest first.
std::vector<std::pair<std::string, double>> largest_operators(const Json& j, const std::string& phase) {
  std::map<std::string, double> shares;
  if (j.contains("operators") && j["operators"].is_array()) {
    for (const Json& op : j["operators"]) {
      if (text_at(op, "phase") == phase) shares[text_at(op, "name")] += number_at(op, "share").value_or(0);
    }
  }
  std::vector<std::pair<std::string, double>> out(shares.begin(), shares.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

std::string bound_sentence(const Json& j, const char* phase, ResultKey bound_key, const char* name) {
  const std::string bound = text_at(j, bound_key);
  if (bound.empty()) return "";
  std::string out = fmt::format("{} is bound by {}", name, bound == "compute" ? "arithmetic" : bound);
  const auto largest = largest_operators(j, phase);
  for (std::size_t i = 0; i < largest.size() && i < 3; ++i) {
    out += fmt::format("{}{} {:.0f} %", i == 0 ? "; the largest parts are " : ", ", largest[i].first,
                       100 * largest[i].second);
  }
  return out + ".";
}

std::string range_of(const Json& j, ResultKey low_key, ResultKey high_key) {
  const auto low = number_at(j, low_key), high = number_at(j, high_key);
  if (!low || !high || *high <= *low) return "";
  return fmt::format(" ({} to {} with 90 %)", milliseconds(*low), milliseconds(*high));
}

Lines estimate_summary(const Json& j) {
  Lines out;
  const double batch = number_at(j, "batch").value_or(1);
  out.push_back(deployment_of(j) +
                fmt::format(": a batch of {:.0f} requests of {:.0f} prompt and {:.0f} output tokens.", batch,
                            number_at(j, "prompt_tokens").value_or(0), number_at(j, "output_tokens").value_or(0)));
  if (const auto ttft = number_at(j, "ttft_ms"), tpot = number_at(j, "tpot_ms"); ttft && tpot) {
    out.push_back(
        fmt::format("The first token comes after {}{}, then one every {}{}: {} tokens/s for each user, {} in all.",
                    milliseconds(*ttft), range_of(j, "ttft_ms_low", "ttft_ms_high"), milliseconds(*tpot),
                    range_of(j, "tpot_ms_low", "tpot_ms_high"), *tpot > 0 ? significant(1000 / *tpot, 3) : "-",
                    significant(number_at(j, "output_tokens_per_s").value_or(0), 4)));
  }
  for (const std::string& sentence : {bound_sentence(j, "prefill", "prefill.bound", "Prefill"),
                                      bound_sentence(j, "decode", "decode.bound", "Decode")}) {
    if (!sentence.empty()) out.push_back(sentence);
  }
  const auto weights = number_at(j, "memory.weight_bytes"), capacity = number_at(j, "memory.capacity_bytes"),
             cache = number_at(j, "memory.kv_cache_bytes");
  if (weights && capacity && cache) {
    const bool fits = !j["memory"].contains("fits") || j["memory"]["fits"] == true;
    out.push_back(fmt::format(
        "Of {} on each GPU the weights take {} and this batch's cache {}: {}.", human_bytes(*capacity),
        human_bytes(*weights), human_bytes(*cache),
        fits ? fmt::format("it fits, with room for {:.0f} such sequences or one of {:.0f} tokens",
                           number_at(j, "memory.max_batch").value_or(0), number_at(j, "memory.max_context").value_or(0))
             : "it does NOT fit"));
  }
  if (const auto usd = number_at(j, "cost.usd_per_million_output_tokens")) {
    out.push_back(fmt::format("A million output tokens cost {} USD at this batch.", significant(*usd, 3)));
  }
  return out;
}

Lines simulation_summary(const Json& j) {
  Lines out;
  const std::string workload = text_at(j, "workload");
  out.push_back(deployment_of(j) + (workload.empty() ? "." : fmt::format(", serving '{}'.", workload)));
  out.push_back(
      fmt::format("{:.0f} requests finished in {}{}: {} requests/s and {} output tokens/s.",
                  number_at(j, "completed").value_or(0), human_time(number_at(j, "duration").value_or(0)),
                  number_at(j, "failed").value_or(0) > 0 ? fmt::format(", {:.0f} failed", *number_at(j, "failed")) : "",
                  significant(number_at(j, "request_throughput").value_or(0), 3),
                  significant(number_at(j, "output_throughput").value_or(0), 4)));
  const auto ttft = number_at(j, "median_ttft_ms"), ttft99 = number_at(j, "p99_ttft_ms"),
             tpot = number_at(j, "median_tpot_ms"), tpot99 = number_at(j, "p99_tpot_ms");
  if (ttft && ttft99 && tpot && tpot99) {
    out.push_back(
        fmt::format("Half of them saw their first token within {} and 99 % within {}; a further token took {} (median) "
                    "and {} (p99).",
                    milliseconds(*ttft), milliseconds(*ttft99), milliseconds(*tpot), milliseconds(*tpot99)));
  }
  if (j.contains("objectives") && j["objectives"].is_array()) {
    for (const Json& o : j["objectives"]) {
      const auto limit = number_at(o, "limit_ms"), value = number_at(o, "value_ms");
      if (limit && value)
        out.push_back(fmt::format("The objective {} of {} is {}: {}.", text_at(o, "objective"), milliseconds(*limit),
                                  *value <= *limit ? "met" : "MISSED", milliseconds(*value)));
    }
  }
  const auto busy = number_at(j, "gpu_utilization"), mfu = number_at(j, "mfu"), mbu = number_at(j, "mbu"),
             kv = number_at(j, "kv_cache_peak_usage");
  if (busy && mfu && mbu && kv) {
    out.push_back(
        fmt::format("GPUs were busy {:.0f} % of the time, at {:.0f} % of their arithmetic and {:.0f} % of their memory "
                    "bandwidth; the KV cache was {:.0f} % full at its peak, with {:.0f} preemptions.",
                    100 * *busy, 100 * *mfu, 100 * *mbu, 100 * *kv, number_at(j, "preemptions").value_or(0)));
  }
  if (const auto usd = number_at(j, "cost.usd_per_million_output_tokens"))
    out.push_back(fmt::format("A million output tokens cost {} USD.", significant(*usd, 3)));
  return out;
}

Lines points_summary(const Result& r) {
  const std::vector<std::string> keys = varying_keys(r.points);
  std::string names;
  for (const std::string& key : keys) names += (names.empty() ? "" : ", ") + words_of_key(key);
  Lines out{fmt::format("{} points{}.", r.points.size(), names.empty() ? "" : " over " + names)};
  const ResultPoint* cheapest = nullptr;
  double best = 0;
  for (const ResultPoint& p : r.points) {
    const auto usd = number_at(p.result, "usd_per_million_output_tokens");
    if (usd && *usd > 0 && (cheapest == nullptr || *usd < best)) cheapest = &p, best = *usd;
  }
  if (cheapest != nullptr)
    out.push_back(fmt::format("The cheapest is {}, at {} USD per million output tokens.", point_label(*cheapest, keys),
                              significant(best, 3)));
  return out;
}

Lines comparison_summary(const Json& j) {
  Lines out{deployment_of(j) + fmt::format(", beside {} ({}).", text_at(j, "bench.file"), text_at(j, "bench.tool"))};
  for (const Json& finding : j["findings"]) {
    if (finding.is_string()) out.push_back(finding.get<std::string>());
  }
  return out;
}

Lines validation_summary(const Result& r) {
  Lines out;
  for (const ValidationPairs& v : validation_pairs(r)) {
    out.push_back(
        fmt::format("{}: {} rows, mean absolute error {:.1f} %, median {:.1f} %, {:.0f} % of the rows within 10 %.",
                    v.name, v.rows, v.mape, v.median, v.within_ten));
  }
  return out;
}

/// Decode bound by memory: by weights or by the cache?
void advise_decode(const Json& j, Lines& out) {
  const std::string bound = text_at(j, "decode.bound");
  const auto largest = largest_operators(j, "decode");
  const bool cache = !largest.empty() && largest.front().first.find("attention") != std::string::npos;
  if (bound == "memory" && cache) {
    out.push_back(
        "Reading the KV cache sets the pace of decode: an fp8 KV cache, a model with fewer KV heads or latent "
        "attention, or more GPUs a replica shorten it; quantizing weights hardly does.");
  } else if (bound == "memory") {
    out.push_back(
        "Reading weights sets the pace of decode: fewer bits a weight, tensor parallelism or speculative decoding "
        "shorten a step; a larger batch costs little time and raises throughput until arithmetic or the KV cache takes "
        "over.");
  } else if (bound == "compute") {
    out.push_back(
        "Decode is at the arithmetic limit: a larger batch no longer helps; fp8 activations or more GPUs do, "
        "speculation does not.");
  } else if (bound == "network") {
    out.push_back(
        "Communication sets the pace of decode: a lower tensor-parallel degree with more replicas, or GPUs of one "
        "NVLink domain.");
  } else if (bound == "host" || bound == "latency") {
    out.push_back(
        "Launches and the host set the pace of decode: CUDA graphs, asynchronous scheduling, a larger batch, or a "
        "smaller GPU.");
  }
}

}  // namespace

std::vector<std::string> summary_of(const Result& r) {
  switch (r.kind) {
    case ResultKind::kEstimate:
      return estimate_summary(r.json);
    case ResultKind::kSimulation:
      return simulation_summary(r.json);
    case ResultKind::kSweep:
    case ResultKind::kPlan:
    case ResultKind::kLadder:
      return points_summary(r);
    case ResultKind::kKernelRows:
    case ResultKind::kServingRows:
      return validation_summary(r);
    case ResultKind::kComparison:
      return comparison_summary(r.json);
    case ResultKind::kValidation:
    case ResultKind::kCalibration:
      return {};
    case ResultKind::kRequestRows:
      return {fmt::format("{} requests of one simulation.", r.table->rows())};
  }
  return {};
}

std::vector<std::string> advice_for(const Result& r) {
  Lines out;
  const Json& j = r.json;
  if (r.kind == ResultKind::kEstimate) {
    if (j["memory"].contains("fits") && j["memory"]["fits"] == false) {
      out.push_back(
          "It does not fit: more GPUs a replica (tp, pp), fewer bits for weights or cache, or a smaller batch or "
          "context.");
    }
    advise_decode(j, out);
    if (text_at(j, "prefill.bound") == "compute")
      out.push_back(
          "Prefill is at the arithmetic limit: fp8 activations, a prefix cache for shared prompts, or prefill workers "
          "of their own shorten the first token.");
  }
  if (r.kind == ResultKind::kSimulation) {
    const double queue = number_at(j, "p99_queue_ms").value_or(0), ttft = number_at(j, "p99_ttft_ms").value_or(0);
    if (queue > 0.5 * ttft && ttft > 0)
      out.push_back(
          "Most of the slowest first tokens is waiting in the queue: more replicas, a larger batch limit, or less "
          "load.");
    if (number_at(j, "kv_cache_peak_usage").value_or(0) > 0.95)
      out.push_back(
          "The KV cache fills up: an fp8 KV cache, more GPUs a replica, or a higher memory fraction let more requests "
          "run together.");
    if (number_at(j, "preemptions").value_or(0) > 0.01 * number_at(j, "completed").value_or(1e9))
      out.push_back("Preemptions repeat work: a lower batch limit or more cache memory avoids them.");
    const auto busy = number_at(j, "gpu_utilization");
    if (busy && *busy < 0.5) out.push_back("GPUs idle more than half of the time: the same load needs fewer of them.");
  }
  return out;
}

}  // namespace roofcast
