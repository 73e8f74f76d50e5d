#include "reports/sweep_verdict.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "reports/charts.h"
#include "reports/html_text.h"
#include "reports/table.h"

namespace roofcast::reports {
namespace {

std::optional<bool> truth_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? std::optional<bool>(found->get<bool>()) : std::nullopt;
}

bool fits(const Json& metrics) { return truth_at(metrics, "fits").value_or(true); }
bool saturated(const Json& metrics) { return truth_at(metrics, "saturated").value_or(false); }
bool meets(const Json& metrics) { return truth_at(metrics, "objectives_met").value_or(true); }

constexpr std::size_t kMostWorks = 4;  // with a best of each in words

}  // namespace

bool is_work_key(std::string_view dotted_key) {
  constexpr std::array<std::string_view, 4> kWork{"prompt_tokens", "output_tokens", "input_tokens", "context"};
  // The model, not its draft model; a whole workload, not its rate.
  if (dotted_key == "model" || dotted_key.starts_with("model.") || dotted_key == "workload") return true;
  while (!dotted_key.empty()) {
    const std::size_t dot = std::min(dotted_key.find('.'), dotted_key.size());
    if (std::find(kWork.begin(), kWork.end(), dotted_key.substr(0, dot)) != kWork.end()) return true;
    dotted_key.remove_prefix(std::min(dot + 1, dotted_key.size()));
  }
  return false;
}

bool is_usable(const Json& metrics) {
  return metrics.is_object() && fits(metrics) && !saturated(metrics) && meets(metrics);
}

void SweepVerdict::Best::take(std::optional<double> other, const Keys& of) {
  if (!other || (value && *other >= *value)) return;
  value = other;
  keys = of;
}

void SweepVerdict::add(const Keys& keys, const Json& metrics) {
  ++points_;
  if (first_.empty()) first_ = keys, varies_.assign(keys.size(), false);
  for (std::size_t i = 0; i < std::min(keys.size(), first_.size()); ++i) {
    if (keys[i] != first_[i]) varies_[i] = true;
  }
  if (!metrics.is_object()) {
    ++impossible_;
    return;
  }
  objectives_ |= truth_at(metrics, "objectives_met").has_value();
  if (!fits(metrics)) {
    ++unfit_;
  } else if (saturated(metrics)) {
    ++saturated_;
  } else if (!meets(metrics)) {
    ++missed_;
  } else {
    std::string work;
    for (const auto& [name, value] : keys)
      if (is_work_key(name)) work += value + "\n";
    const auto [at, fresh] = bests_.try_emplace(work);
    if (fresh) works_.push_back(work), at->second.keys = keys;
    const auto usd = number_at(metrics, "usd_per_million_total_tokens"),
               rate = number_at(metrics, "output_tokens_per_s_per_gpu");
    if (usd && *usd > 0) at->second.cheapest.take(usd, keys);
    if (rate && *rate > 0) at->second.busiest.take(-*rate, keys);
    at->second.quickest.take(number_at(metrics, kTpot), keys);
  }
}

std::string SweepVerdict::label(const Keys& keys, bool work) const {
  std::string out;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i < varies_.size() && varies_[i] && is_work_key(keys[i].first) == work)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", words_of_key(keys[i].first), keys[i].second);
  }
  return out.empty() && !work ? "the one point" : out;
}

ResultVerdict SweepVerdict::verdict() const {
  const std::size_t usable = points_ - impossible_ - unfit_ - saturated_ - missed_;
  std::string names;
  for (std::size_t i = 0; i < first_.size(); ++i) {
    if (varies_[i]) names += (names.empty() ? "" : ", ") + words_of_key(first_[i].first);
  }
  std::string what = model_;
  if (!gpu_.empty()) what += what.empty() ? gpu_ : " on " + gpu_;
  std::string text =
      fmt::format("{}{} point{}{}: {} {}", what.empty() ? "" : shortened(what, 120) + ": ", points_,
                  points_ == 1 ? "" : "s", names.empty() ? "" : " over " + names, usable,
                  objectives_ ? (usable == 1 ? "meets the objectives" : "meet the objectives") : "can be run");
  const auto count = [&](std::size_t n, const char* one, const char* what) {
    if (n > 0) text += fmt::format(", {} {}", n, n == 1 ? one : what);
  };
  count(unfit_, "does not fit", "do not fit");
  count(saturated_, "is saturated", "are saturated");
  count(missed_, "misses the objectives", "miss the objectives");
  count(impossible_, "is not possible", "are not possible");
  text += "\n";
  for (std::size_t i = 0; i < std::min(works_.size(), kMostWorks); ++i) {
    const Bests& best = bests_.at(works_[i]);
    const std::string of = works_.size() > 1 ? ", " + label(best.keys, true) : "";
    if (best.cheapest.value)
      text += fmt::format("cheapest{}: {}, {} USD per million tokens, input and output\n", of,
                          label(best.cheapest.keys, false), significant(*best.cheapest.value, 3));
    if (best.busiest.value)
      text += fmt::format("highest throughput per GPU{}: {}, {} output tokens/s per GPU\n", of,
                          label(best.busiest.keys, false), significant(-*best.busiest.value, 4));
    if (best.quickest.value)
      text += fmt::format("quickest{}: {}, TPOT {}\n", of, label(best.quickest.keys, false),
                          human_time(*best.quickest.value / 1e3));
  }
  if (works_.size() > kMostWorks)
    text += fmt::format("{} more kinds of request are not compared: what is cheapest for one is not for another\n",
                        works_.size() - kMostWorks);
  ResultVerdict out;
  out.add("", text);
  return out;
}

}  // namespace roofcast::reports
