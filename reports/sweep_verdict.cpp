#include "reports/sweep_verdict.h"

#include <fmt/format.h>

#include "reports/charts.h"
#include "reports/html_text.h"
#include "reports/table.h"

namespace roofcast {
namespace {

std::optional<bool> truth_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? std::optional<bool>(found->get<bool>()) : std::nullopt;
}

bool fits(const Json& metrics) { return truth_at(metrics, "fits").value_or(true); }
bool saturated(const Json& metrics) { return truth_at(metrics, "saturated").value_or(false); }
bool meets(const Json& metrics) { return truth_at(metrics, "objectives_met").value_or(true); }

}  // namespace

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
    const auto usd = number_at(metrics, "usd_per_million_output_tokens"),
               rate = number_at(metrics, "output_tokens_per_s_per_gpu");
    if (usd && *usd > 0) cheapest_.take(usd, keys);
    if (rate && *rate > 0) busiest_.take(-*rate, keys);
    quickest_.take(number_at(metrics, kTpot), keys);
  }
}

std::string SweepVerdict::label(const Keys& keys) const {
  std::string out;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i < varies_.size() && varies_[i])
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", words_of_key(keys[i].first), keys[i].second);
  }
  return out.empty() ? "the one point" : out;
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
  if (cheapest_.value)
    text += fmt::format("cheapest: {}, {} USD per million output tokens\n", label(cheapest_.keys),
                        significant(*cheapest_.value, 3));
  if (busiest_.value)
    text += fmt::format("highest throughput per GPU: {}, {} output tokens/s per GPU\n", label(busiest_.keys),
                        significant(-*busiest_.value, 4));
  if (quickest_.value)
    text += fmt::format("quickest: {}, TPOT {}\n", label(quickest_.keys), human_time(*quickest_.value / 1e3));
  ResultVerdict out;
  out.add("", text);
  return out;
}

}  // namespace roofcast
