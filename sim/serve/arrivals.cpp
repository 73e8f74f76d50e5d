#include "sim/serve/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <vector>

#include "base/text.h"
#include "sim/serve/overlaid.h"
#include "sim/serve/traces.h"

namespace roofcast {
namespace {

using Process = ArrivalSpec::Process;

/// In the order of Process.
constexpr std::array<std::string_view, 6> kProcesses = {"poisson",     "gamma",       "constant",
                                                        "closed_loop", "all_at_once", "trace"};

PerSecond positive_rate(ConfigReader& in) {
  const PerSecond rate = in.rate("rate");
  if (rate <= PerSecond(0.0)) in.fail("rate", "'rate' must be more than 0");
  return rate;
}

/// `cv`, or `burstiness` as `vllm bench serve` calls the shape of the gamma distribution: cv = 1/sqrt(shape).
double gap_variation(ConfigReader& in) {
  if (!in.has("burstiness")) return in.number("cv", Range{1e-3, 1e3});
  if (in.has("cv")) in.fail("burstiness", "give 'cv' or 'burstiness' (cv = 1 / sqrt(burstiness)), not both");
  return 1.0 / std::sqrt(in.number("burstiness", Range{1e-6, 1e6}));
}

void parse_trace(ConfigReader& in, ArrivalSpec& arrivals) {
  arrivals.trace_file = beside(in.text("file"), in.location_of("file"));
  if (std::error_code unknown; !std::filesystem::exists(arrivals.trace_file, unknown)) {
    in.fail("file", fmt::format("no such file '{}'", arrivals.trace_file));
  }
  std::vector<std::string_view> formats;
  for (const TraceFormat& format : trace_formats()) formats.push_back(format.name);
  if (in.has("format")) {
    arrivals.trace_format = formats[in.choice("format", formats)];
  } else {
    in.ignore("format");
  }
  arrivals.trace = shared_trace(arrivals.trace_file, arrivals.trace_format);
  arrivals.rate_scale = in.number("rate_scale", 1.0, Range{1e-9, 1e9});
  arrivals.loop = static_cast<int>(in.integer("loop", 1, Range{1.0, 1e6}));
}

/// `profile: [0.2, 0.1, .., 1.8]`: the rate in equal slices of `profile_period`, relative to each other; `rate` is
/// their mean.
void parse_profile(ConfigReader& in, ArrivalSpec& arrivals) {
  arrivals.profile = in.numbers("profile", Range{0.0, 1e9});
  if (!in.has("profile_period")) in.ignore("profile_period");
  if (arrivals.profile.empty()) return;
  const double sum = std::accumulate(arrivals.profile.begin(), arrivals.profile.end(), 0.0);
  if (sum <= 0) in.fail("profile", "the rates of 'profile' must not all be 0");
  for (double& level : arrivals.profile) level *= static_cast<double>(arrivals.profile.size()) / sum;
  arrivals.profile_period = in.time("profile_period", arrivals.profile_period);
  if (arrivals.profile_period < Seconds(1)) in.fail("profile_period", "'profile_period' must be at least 1 s");
}

/// Rejects remaining keys and names the arrival process to which each belongs.
void refuse_keys_of_others(ConfigReader& in, Process process) {
  struct Key {
    std::string_view name, of;
    std::initializer_list<Process> takes;
  };
  using enum ArrivalSpec::Process;  // not by the alias: clang 14 refuses it
  static const std::array<Key, 12> kKeys{
      {{"rate", "poisson, gamma and constant arrivals", {kPoisson, kGamma, kConstant}},
       {"cv", "gamma arrivals", {kGamma}},
       {"burstiness", "gamma arrivals", {kGamma}},
       {"profile", "arrivals with a 'rate'", {kPoisson, kGamma, kConstant}},
       {"profile_period", "arrivals with a 'rate'", {kPoisson, kGamma, kConstant}},
       {"concurrency", "closed_loop arrivals", {kClosedLoop}},
       {"think_time", "arrivals with a 'rate' and of closed_loop ones", {kPoisson, kGamma, kConstant, kClosedLoop}},
       {"send_delay", "closed_loop and all_at_once arrivals", {kClosedLoop, kAllAtOnce}},
       {"file", "a trace", {kTrace}},
       {"format", "a trace", {kTrace}},
       {"rate_scale", "a trace", {kTrace}},
       {"loop", "a trace", {kTrace}}}};
  static constexpr std::array<std::string_view, 6> kOwn = {"'rate'",        "'rate' and 'cv'",      "'rate'",
                                                           "'concurrency'", "no rate and no users", "'rate_scale'"};
  const auto place = static_cast<std::size_t>(process);
  for (const Key& key : kKeys) {
    if (!in.has(key.name) || is_overlaid(in, "process", key.name)) continue;
    if (std::find(key.takes.begin(), key.takes.end(), process) == key.takes.end())
      in.fail(key.name,
              fmt::format("'{}' belongs to {}; {} arrivals have {}", key.name, key.of, kProcesses[place], kOwn[place]));
  }
}

/// Pauses are drawn in whole milliseconds; a pause of a day ends the session.
constexpr Seconds kShortestPause{1e-3}, kLongestPause{86400};
constexpr LengthLimits kPauseLimits{.longest = 86'400'000, .default_max = 86'400'000};

/// A key of a distribution that is a time, converted to milliseconds; `mu` is shifted by ln(1000).
ConfigTree in_milliseconds(ConfigReader& law, const std::string& key) {
  constexpr std::array<std::string_view, 5> kTimes{"value", "min", "max", "mean", "p50"};
  if (!law.has(key)) return law.tree(key);
  if (key == "mu") return make_scalar(fmt::format("{}", law.number(key) + std::log(1000.0)), law.location_of(key));
  if (std::find(kTimes.begin(), kTimes.end(), key) == kTimes.end()) return law.tree(key);
  const Seconds time = law.time(key);
  if (time < kShortestPause || time > kLongestPause) law.fail(key, "must be between 1 ms and 24 h");
  const double ms = time.in(kMillisecond);
  return make_scalar(key == "mean" || key == "p50" ? fmt::format("{}", ms) : fmt::format("{:.0f}", ms),
                     law.location_of(key));
}

/// `think_time: 11 s` is the mean of exponential pauses. Length distributions work too, with times instead of numbers:
/// `{distribution: lognormal, mean: 40 s, p50: 10 s, max: 600 s}`.
void parse_pauses(ConfigReader& in, const std::string& key, Seconds& mean, std::optional<LengthSpec>& pauses) {
  const ConfigTree tree = in.has(key) ? in.tree(key) : nullptr;
  if (!tree || tree->kind != ConfigNode::Kind::kMap) {
    mean = in.time(key, Seconds(0.0));
    return;
  }
  ConfigReader law = in.child(key);
  std::vector<ConfigNode::Entry> entries;
  for (const ConfigNode::Entry& entry : tree->entries)
    entries.push_back({entry.key, entry.key_location, in_milliseconds(law, entry.key)});
  pauses = parse_length(ConfigReader(make_map(std::move(entries), tree->location), "pauses in ms"), kPauseLimits);
  mean = Seconds(pauses->mean() / 1000);
}

}  // namespace

ArrivalSpec parse_arrivals(ConfigReader in) {
  constexpr double kMostUsers = 1e7;
  ArrivalSpec arrivals;
  arrivals.process = static_cast<Process>(in.choice("process", kProcesses));
  switch (arrivals.process) {
    case Process::kPoisson:
    case Process::kConstant:
      arrivals.rate = positive_rate(in);
      break;
    case Process::kGamma:
      arrivals.rate = positive_rate(in);
      arrivals.cv = gap_variation(in);
      break;
    case Process::kClosedLoop:
      arrivals.concurrency = static_cast<int>(in.integer("concurrency", Range{1.0, kMostUsers}));
      break;
    case Process::kAllAtOnce:
      break;
    case Process::kTrace:
      parse_trace(in, arrivals);
      break;
  }
  if (arrivals.rate > PerSecond(0)) parse_profile(in, arrivals);
  if (arrivals.process != Process::kTrace && arrivals.process != Process::kAllAtOnce) {
    parse_pauses(in, "think_time", arrivals.think_time, arrivals.pauses);
  }
  if (arrivals.process == Process::kClosedLoop || arrivals.process == Process::kAllAtOnce)
    parse_pauses(in, "send_delay", arrivals.send_delay, arrivals.send_delays);
  ignore_overlaid(in, "process",
                  {"rate", "cv", "burstiness", "concurrency", "think_time", "send_delay", "file", "format",
                   "rate_scale", "loop", "profile", "profile_period"});
  refuse_keys_of_others(in, arrivals.process);
  in.finish();
  return arrivals;
}

Seconds draw_pause(Seconds mean, const std::optional<LengthSpec>& law, Random& random) {
  if (law) return Seconds(law->draw(random) / 1000.0);
  return mean > Seconds(0) ? Seconds(random.exponential(mean.base())) : Seconds(0);
}

ArrivalClock::ArrivalClock(const ArrivalSpec& arrivals, Random random, Seconds start)
    : arrivals_(arrivals), random_(random), start_(start) {
  const double slice =
      arrivals_.profile_period.base() / static_cast<double>(std::max<std::size_t>(1, arrivals_.profile.size()));
  for (const double level : arrivals_.profile)
    passed_.push_back((passed_.empty() ? 0.0 : passed_.back()) + level * slice);
  begin_ = now_ = even(start.base());
}

/// The integral of the profile from 0 to `time`.
double ArrivalClock::even(double time) const {
  if (passed_.empty()) return time;
  const double period = arrivals_.profile_period.base(), slices = static_cast<double>(passed_.size());
  const double times = std::floor(time / period), at = (time - times * period) / period * slices;
  const auto i = std::min(static_cast<std::size_t>(at), passed_.size() - 1);
  const double inside = (at - static_cast<double>(i)) * period / slices * arrivals_.profile[i];
  return times * passed_.back() + (i == 0 ? 0.0 : passed_[i - 1]) + inside;
}

/// The slice of a period in which the even time `rest` is reached.
std::size_t ArrivalClock::slice_at(double rest) const {
  return static_cast<std::size_t>(std::min<std::ptrdiff_t>(
      std::upper_bound(passed_.begin(), passed_.end(), rest) - passed_.begin(), std::ssize(passed_) - 1));
}

/// Draws from the gap distribution at the end of the last gap. A Weibull gap is mean / Gamma(1 + 1/k) * E^(1/k), E
/// exponential.
double ArrivalClock::gap(double mean) {
  using Law = ArrivalSpec::Gaps::Law;
  // Gaps of shape 1/cv^2 and mean 1/rate: Var/mean^2 = 1/shape = cv^2.
  ArrivalSpec::Gaps gaps{.law = Law::kGamma, .shape = 1.0 / (arrivals_.cv * arrivals_.cv)};
  if (!arrivals_.gaps.empty()) gaps = arrivals_.gaps[slice_at(std::fmod(now_, passed_.back()))];
  switch (gaps.law) {
    case Law::kExponential:
      break;
    case Law::kGamma:
      return random_.gamma(gaps.shape, mean / gaps.shape);
    case Law::kWeibull:
      return mean / std::tgamma(1 + 1 / gaps.shape) * std::pow(random_.exponential(1.0), 1 / gaps.shape);
  }
  return random_.exponential(mean);
}

/// The inverse of the profile's integral, which grows by one period per period.
double ArrivalClock::stretched(double even) const {
  if (passed_.empty()) return even;
  const double period = passed_.back(), times = std::floor(even / period), rest = even - times * period;
  const std::size_t i = slice_at(rest);
  const double length = arrivals_.profile_period.base() / static_cast<double>(passed_.size());
  const double before = i == 0 ? 0.0 : passed_[i - 1], level = arrivals_.profile[i];
  const double inside = level > 0 ? (rest - before) / level : 0.0;
  return times * arrivals_.profile_period.base() + static_cast<double>(i) * length + std::min(inside, length);
}

Seconds ArrivalClock::next() {
  const double mean_gap = arrivals_.rate > PerSecond(0.0) ? 1.0 / arrivals_.rate.base() : 0.0;
  switch (arrivals_.process) {
    case Process::kPoisson:
      now_ += random_.exponential(mean_gap);
      break;
    case Process::kGamma:
      now_ += gap(mean_gap);
      break;
    case Process::kConstant:
      now_ = begin_ + static_cast<double>(sent_) * mean_gap;  // a product, so that ten million gaps do not drift
      break;
    case Process::kClosedLoop:
    case Process::kAllAtOnce:
    case Process::kTrace:
      break;
  }
  ++sent_;
  return std::max(Seconds(stretched(now_)) - start_, Seconds(0));
}

}  // namespace roofcast
