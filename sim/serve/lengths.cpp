// Distributions of prompt and output lengths.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <numbers>
#include <numeric>
#include <tuple>

#include "base/csv.h"
#include "base/lines.h"
#include "base/overloaded.h"
#include "base/read_file.h"
#include "base/text.h"
#include "sim/serve/overlaid.h"
#include "sim/serve/workload.h"

namespace roofcast {
namespace {

constexpr std::size_t kLargestLengthFile = 1u << 28;

/// P(X > x) of a standard normal.
double normal_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

double lognormal_tail(const LengthSpec::Lognormal& law, double x) {
  const double log_x = std::log(x);
  if (law.sigma == 0.0) return log_x < law.mu ? 1.0 : 0.0;
  return normal_tail((log_x - law.mu) / law.sigma);
}

/// Mean of X clamped to [a, b], X lognormal, before rounding. With za = (ln a - mu)/s and zb likewise:
///   a P(X < a) + b P(X > b) + exp(mu + s^2/2) (Phi(zb - s) - Phi(za - s))
/// where the last term is the partial expectation of the lognormal.
double held_mean(double mu, double sigma, double a, double b) {
  if (sigma == 0.0) return std::clamp(std::exp(mu), a, b);
  const double za = (std::log(a) - mu) / sigma, zb = (std::log(b) - mu) / sigma;
  const double inside = normal_tail(za - sigma) - normal_tail(zb - sigma);
  return a * normal_tail(-za) + b * normal_tail(zb) + std::exp(mu + sigma * sigma / 2.0) * inside;
}

/// Mean of the rounded length: min + sum of P(length > k) for k = min .. max - 1, where P(length > k) = P(X >= k +
/// 1/2). Beyond kSummed terms the integral of P(X > x) replaces the sum, which is its midpoint rule. The error is the
/// change of the density over 24, below 1e-5 tokens for sigma > 0.01.
double rounded_mean(const LengthSpec::Lognormal& law) {
  constexpr int kSummed = 16384;
  double sum = law.min;
  for (int k = law.min; k < law.max; ++k) {
    if (k - law.min == kSummed && law.sigma > 0.01) return sum + held_mean(law.mu, law.sigma, k, law.max) - k;
    const double tail = lognormal_tail(law, k + 0.5);
    if (tail < 1e-18) break;
    sum += tail;
  }
  return sum;
}

/// The same, cached per distribution: a search needs it at every load.
double remembered_mean(const LengthSpec::Lognormal& law) {
  constexpr std::size_t kMost = 4096;
  static std::mutex mutex;
  static std::map<std::tuple<double, double, int, int>, double> means;
  const std::tuple key{law.mu, law.sigma, law.min, law.max};
  {
    const std::lock_guard lock(mutex);
    if (const auto known = means.find(key); known != means.end()) return known->second;
  }
  const double mean = rounded_mean(law);
  const std::lock_guard lock(mutex);
  if (means.size() >= kMost) means.clear();
  means.emplace(key, mean);
  return mean;
}

/// The x in [low, high] at which the increasing `f` reaches `target`, by bisection to full precision.
template <typename Rising>
double solve_rising(Rising f, double target, double low, double high) {
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (f(middle) < target ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

int held_length(double tokens, int min, int max) {
  if (!(tokens > min)) return min;
  return tokens >= max ? max : static_cast<int>(std::lround(tokens));
}

/// `mean` and `p50`: mu = ln p50, and sigma such that the mean of the clamped lengths is `mean`. That mean grows with
/// sigma from p50 up to a maximum, where clamping at max dominates; larger means are impossible.
LengthSpec::Lognormal from_median(ConfigReader& in, double mean, int min, int max) {
  const double p50 = in.number("p50", Range{static_cast<double>(min), static_cast<double>(max)});
  if (mean < p50)
    in.fail("mean", fmt::format("'mean' of a lognormal must be at least its 'p50', got {} < {}", mean, p50));
  const double mu = std::log(p50);
  const auto mean_at = [&](double sigma) { return held_mean(mu, sigma, min, max); };
  double top = 0.0;
  while (top < 8.0 && mean_at(top) < mean) top += 0.01;
  if (top >= 8.0) {
    in.fail("mean", fmt::format("no lognormal with p50 {} that is cut at {} has the mean {}", p50, max, mean));
  }
  const double sigma = mean == p50 ? 0.0 : solve_rising(mean_at, mean, std::max(0.0, top - 0.01), top);
  return {mu, sigma, min, max};
}

/// `mean` and `cv`: sigma^2 = ln(1 + cv^2), the relation without clamping; mu from the clamped mean.
LengthSpec::Lognormal from_variation(ConfigReader& in, double mean, int min, int max) {
  const double cv = in.number("cv", Range{0.0, 100.0});
  const double sigma = std::sqrt(std::log1p(cv * cv));
  const double reach = 10.0 * sigma + 1.0;
  const auto mean_at = [&](double mu) { return held_mean(mu, sigma, min, max); };
  return {solve_rising(mean_at, mean, std::log(min) - reach, std::log(max) + reach), sigma, min, max};
}

LengthSpec::Lognormal parse_lognormal(ConfigReader& in, const LengthLimits& limits) {
  const Range range{1.0, static_cast<double>(limits.longest)};
  const int min = static_cast<int>(in.integer("min", 1, range));
  const int max = static_cast<int>(in.integer("max", limits.default_max, range));
  if (min > max) in.fail("max", fmt::format("'max' must be at least 'min', got {} < {}", max, min));
  const bool overlaid = in.has("mean") && in.location_of("mu").path.str() != in.location_of("distribution").path.str();
  if (in.has("mu") && !overlaid) {
    const double mu = in.number("mu", Range{-50.0, 50.0});
    return {mu, in.number("sigma", Range{0.0, 20.0}), min, max};
  }
  const double mean = in.number("mean", Range{static_cast<double>(min), static_cast<double>(max)});
  if (in.has("cv")) return from_variation(in, mean, min, max);
  if (in.has("p50")) return from_median(in, mean, min, max);
  in.ignore("p50");
  in.ignore("cv");
  in.fail("distribution", "a lognormal needs 'mean' and 'p50', 'mean' and 'cv', or 'mu' and 'sigma'");
}

int length_of(std::string_view text, const SourceLocation& location, const LengthLimits& limits) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  if (fault != std::errc{} || stop != end || value < 1 || value > limits.longest) {
    throw ConfigError(location, fmt::format("a length must be a whole number of tokens, at least 1, got '{}'", text));
  }
  return value;
}

/// One integer per line, or the `column` of a CSV.
LengthSpec::Empirical read_lengths(const std::string& path, const std::string& column, const LengthLimits& limits) {
  LengthSpec::Empirical law;
  if (!column.empty()) {
    const CsvTable table = CsvTable::read_file(path);
    const std::size_t at = table.column(column);
    for (std::size_t row = 0; row < table.rows(); ++row) {
      law.values.push_back(length_of(trim(table.at(row, at)), table.location(row, at), limits));
    }
  } else {
    const std::string text = read_file(path, kLargestLengthFile);
    each_line(text, [&](std::string_view row, int line) {
      const std::string_view value = trim(row);
      if (!value.empty()) law.values.push_back(length_of(value, SourceLocation{path, line}, limits));
    });
  }
  if (law.values.empty()) throw ConfigError(SourceLocation{path}, "holds no lengths");
  return law;
}

}  // namespace

std::string beside(const std::string& file, const SourceLocation& named_at) {
  const std::filesystem::path path(file);
  if (path.is_absolute() || named_at.path.empty() || named_at.path.str().starts_with("-")) return file;
  return (std::filesystem::path(named_at.path.str()).parent_path() / path).lexically_normal().string();
}

int LengthSpec::draw(Random& random) const {
  return extra +
         std::visit(Overloaded{[](const Fixed& known) { return known.value; },
                               [&](const Uniform& known) {
                                 return static_cast<int>(random.uniform_integer(known.min, known.max));
                               },
                               [&](const Lognormal& known) {
                                 return held_length(random.lognormal(known.mu, known.sigma), known.min, known.max);
                               },
                               [&](const Empirical& known) {
                                 const auto last = static_cast<std::int64_t>(known.values.size()) - 1;
                                 return known.values[static_cast<std::size_t>(random.uniform_integer(0, last))];
                               }},
                    law);
}

double LengthSpec::mean() const {
  return extra +
         std::visit(Overloaded{[](const Fixed& known) { return static_cast<double>(known.value); },
                               [](const Uniform& known) { return (static_cast<double>(known.min) + known.max) / 2.0; },
                               [](const Lognormal& known) { return remembered_mean(known); },
                               [](const Empirical& known) {
                                 const double sum = std::accumulate(known.values.begin(), known.values.end(), 0.0);
                                 return sum / static_cast<double>(known.values.size());
                               }},
                    law);
}

int LengthSpec::longest() const {
  return extra + std::visit(Overloaded{[](const Fixed& known) { return known.value; },
                                       [](const Uniform& known) { return known.max; },
                                       [](const Lognormal& known) { return known.max; },
                                       [](const Empirical& known) {
                                         return *std::max_element(known.values.begin(), known.values.end());
                                       }},
                            law);
}

int LengthSpec::shortest() const {
  return extra + std::visit(Overloaded{[](const Fixed& known) { return known.value; },
                                       [](const Uniform& known) { return known.min; },
                                       [](const Lognormal& known) { return known.min; },
                                       [](const Empirical& known) {
                                         return *std::min_element(known.values.begin(), known.values.end());
                                       }},
                            law);
}

std::optional<int> LengthSpec::constant() const {
  const auto* fixed = std::get_if<Fixed>(&law);
  return fixed != nullptr ? std::optional(extra + fixed->value) : std::nullopt;
}

LengthSpec parse_length(ConfigReader in, const LengthLimits& limits) {
  constexpr std::array<std::string_view, 4> kLaws = {"fixed", "uniform", "lognormal", "empirical"};
  const Range tokens{1.0, static_cast<double>(limits.longest)};
  LengthSpec length;
  switch (in.choice("distribution", kLaws)) {
    case 0:
      length.law = LengthSpec::Fixed{static_cast<int>(in.integer("value", tokens))};
      break;
    case 1: {
      const int min = static_cast<int>(in.integer("min", tokens)), max = static_cast<int>(in.integer("max", tokens));
      if (min > max) in.fail("max", fmt::format("'max' must be at least 'min', got {} < {}", max, min));
      length.law = LengthSpec::Uniform{min, max};
      break;
    }
    case 2:
      length.law = parse_lognormal(in, limits);
      break;
    default: {
      const std::string path = beside(in.text("file"), in.location_of("file"));
      if (std::error_code unknown; !std::filesystem::exists(path, unknown))
        in.fail("file", fmt::format("no such file '{}'", path));
      length.law = read_lengths(path, in.text("column", ""), limits);
    }
  }
  ignore_overlaid(in, "distribution", {"value", "min", "max", "mean", "p50", "cv", "mu", "sigma", "file", "column"});
  in.finish();
  return length;
}

}  // namespace roofcast
