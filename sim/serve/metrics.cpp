#include "sim/serve/metrics.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace roofcast {
namespace {

/// Bin i holds [kSmallest * kWidth^i, kSmallest * kWidth^(i+1)).
constexpr double kSmallest = 1e-6;
constexpr double kWidth = 1.001;
constexpr std::size_t kBins = 41448;  // ln(1e18) / ln(1.001): up to 1e12

std::size_t bin_of(double value) {
  const double place = std::log(value / kSmallest) / std::log(kWidth);
  return std::min(static_cast<std::size_t>(std::max(place, 0.0)), kBins - 1);
}

double start_of(double bin) { return kSmallest * std::exp(bin * std::log(kWidth)); }

}  // namespace

void Distribution::add(double value, double weight) {
  SIM_CHECK(std::isfinite(value) && value >= 0.0 && weight >= 0.0, "a distribution takes numbers from 0 up");
  if (weight == 0.0) return;
  min_ = count_ == 0.0 ? value : std::min(min_, value);
  max_ = count_ == 0.0 ? value : std::max(max_, value);
  // Welford 1962, weighted: the squares grow by w (x - mean before)(x - mean after), which avoids cancellation.
  const double before = count_ == 0.0 ? value : sum_ / count_;
  count_ += weight;
  sum_ += weight * value;
  squares_ += weight * (value - before) * (value - sum_ / count_);
  store(value, weight);
}

void Distribution::store(double value, double weight) {
  if (!bins_.empty()) return add_to_bin(value, weight);
  if (!exact_.empty() && exact_.back().value == value) {
    exact_.back().weight += weight;
    return;
  }
  sorted_ = sorted_ && (exact_.empty() || exact_.back().value < value);
  exact_.push_back({value, weight});
  if (exact_.size() > kExact) spill();
}

void Distribution::add_to_bin(double value, double weight) {
  if (value < kSmallest) {
    zero_weight_ += weight;
  } else {
    bins_[bin_of(value)] += weight;
  }
}

void Distribution::spill() {
  bins_.assign(kBins, 0.0);
  for (const Entry& entry : exact_) add_to_bin(entry.value, entry.weight);
  exact_ = {};
}

double Distribution::stddev() const { return count_ > 0.0 ? std::sqrt(std::max(squares_, 0.0) / count_) : 0.0; }

/// With n values x[0] <= .. <= x[n-1], numpy's default: rank r = p/100 (n - 1), and
/// x[floor r] + (r - floor r) (x[floor r + 1] - x[floor r]).
double Distribution::percentile(double p) const {
  SIM_CHECK(p >= 0.0 && p <= 100.0, "a percentile is between 0 and 100");
  if (count_ == 0.0) return 0.0;
  const double rank = p / 100.0 * std::max(count_ - 1.0, 0.0);
  if (!bins_.empty()) return binned_order_statistic(rank);
  const double low = std::floor(rank);
  const auto [below, above] = exact_order_statistics(low);
  return rank == low ? below : below + (rank - low) * (above - below);
}

/// x[index] and x[index + 1]: the values at which the cumulative weight first exceeds the index.
std::pair<double, double> Distribution::exact_order_statistics(double index) const {
  if (!sorted_) {
    std::sort(exact_.begin(), exact_.end(), [](const Entry& a, const Entry& b) { return a.value < b.value; });
    sorted_ = true;
  }
  double passed = 0.0;
  std::optional<double> first;
  for (const Entry& entry : exact_) {
    passed += entry.weight;
    if (passed <= index) continue;
    if (!first) first = entry.value;
    if (passed > index + 1.0) return {*first, entry.value};
  }
  return {first.value_or(max_), max_};
}

/// The same from the histogram, with values spread evenly over their bin on a log scale.
double Distribution::binned_order_statistic(double index) const {
  double passed = zero_weight_;
  if (passed > index) return min_;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    if (bins_[i] > 0.0 && passed + bins_[i] > index) {
      const double share = (index - passed + 0.5) / bins_[i];
      return std::clamp(start_of(static_cast<double>(i) + std::clamp(share, 0.0, 1.0)), min_, max_);
    }
    passed += bins_[i];
  }
  return max_;
}

double Distribution::count_at_most(double value) const {
  if (value >= max_) return count_;
  double sum = 0;
  if (bins_.empty()) {
    for (const Entry& entry : exact_) sum += entry.value <= value ? entry.weight : 0.0;
    return sum;
  }
  if (value < kSmallest) return zero_weight_;
  sum = zero_weight_;
  for (std::size_t i = 0; i <= bin_of(value); ++i) sum += bins_[i];
  return sum;
}

void Distribution::merge(const Distribution& other) {
  SIM_CHECK(&other != this, "a distribution is merged with another one");
  if (other.count_ == 0.0) return;
  if (count_ == 0.0) {
    *this = other;
    return;
  }
  // Chan, Golub and LeVeque 1979: merges the sums of squares of two sets.
  const double apart = other.mean() - mean();
  squares_ += other.squares_ + apart * apart * count_ * other.count_ / (count_ + other.count_);
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  if (!other.bins_.empty() && bins_.empty()) spill();
  for (const Entry& entry : other.exact_) store(entry.value, entry.weight);
  for (std::size_t i = 0; i < other.bins_.size(); ++i) bins_[i] += other.bins_[i];
  zero_weight_ += other.zero_weight_;
}

}  // namespace roofcast
