#pragma once
// Sums of operator times, cached by an integer key.

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "sim/step/operator_cost.h"

namespace roofcast {

/// The sum of several operators.
struct OperatorSum {
  double seconds = std::numeric_limits<double>::quiet_NaN();
  double flops = 0, bytes = 0;
  double launches = 0;     ///< host launches in an eager step
  double kernels = 0;      ///< kernels in a CUDA graph
  double collectives = 0;  ///< calls in which ranks synchronize
  bool known() const { return !std::isnan(seconds); }
  /// Adds `share` of the work of another part, and `starts` of its launches.
  void add(const OperatorSum& more, double share = 1.0, double starts = 1.0) {
    seconds += more.seconds * share;
    flops += more.flops * share;
    bytes += more.bytes * share;
    launches += more.launches * starts;
    kernels += more.kernels * share;
    collectives += more.collectives * share;
  }
};
OperatorSum sum_of(const std::vector<Operator>& operators, const Machine& machine);

/// Operators and the cost of one call of each.
struct PricedOperators {
  std::vector<Operator> operators;
  std::vector<Cost> costs;
  mutable std::vector<double> discrepancies = {};  ///< discrepancy_of() each, once a breakdown has asked; NaN: not yet
};
PricedOperators price(std::vector<Operator> operators, const Machine& machine);
OperatorSum sum_of(const PricedOperators& priced, const Machine& machine);
OperatorSum between(const OperatorSum& a, const OperatorSum& b, double t);

/// Caches sums by an integer key; each is priced once. Memory is allocated in pages of 4 KiB around the keys in use.
template <class Sum = OperatorSum>
class RememberedSums {
 public:
  Sum& at(std::size_t i, const auto& price) {
    if (i / kPage < pages_.size() && pages_[i / kPage]) {
      if (Sum& sum = (*pages_[i / kPage])[i % kPage]; sum.known()) return sum;
    }
    return add(i, price);
  }

 private:
  [[gnu::noinline]] Sum& add(std::size_t i, const auto& price) {
    if (pages_.size() <= i / kPage) pages_.resize(i / kPage + 1);
    auto& page = pages_[i / kPage];
    if (!page) page = std::make_unique<Page>();
    Sum& sum = (*page)[i % kPage];
    return sum = price();
  }
  static constexpr std::size_t kPage = std::bit_floor(4096 / sizeof(Sum));
  using Page = std::array<Sum, kPage>;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace roofcast
