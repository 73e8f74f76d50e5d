#pragma once
// Implements hw/kernel.h for a parameter struct, from the list of its fields.

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hw/kernel.h"
#include "hw/kernel_fwd.h"

namespace roofcast {

/// A kernel whose constants are a P. `Base` is the interface of its operator.
template <class P, class Base>
class KernelOf : public Base {
 public:
  using Base::Base;

  static ConstantsBlock block_of(Fitted<P> fitted) {
    auto held = std::make_shared<const Fitted<P>>(std::move(fitted));
    const FitRecord* record = &held->record;
    return {std::move(held), record};
  }
  static const Fitted<P>* in(const ConstantsBlock& block) { return static_cast<const Fitted<P>*>(block.values.get()); }

  std::vector<FieldFacts> fields() const override {
    std::vector<FieldFacts> out;
    for (const Parameter<P>& field : P::fields()) {
      out.push_back({field.name, field.low, field.high, field.transfer, field.meaning, field.fixed});
    }
    return out;
  }
  std::vector<double> numbers(const ConstantsBlock& block) const override {
    std::vector<double> out;
    for (const Parameter<P>& field : P::fields()) out.push_back(in(block)->value.*field.member);
    return out;
  }
  ConstantsBlock from_numbers(std::span<const double> values, FitRecord record = {}) const override {
    Fitted<P> fitted{{}, std::move(record)};
    std::size_t i = 0;
    for (const Parameter<P>& field : P::fields()) fitted.value.*field.member = values[i++];
    return block_of(std::move(fitted));
  }
  ConstantsBlock assumed(const GpuSpec& gpu, Dtype dtype) const override { return block_of({prior(gpu, dtype), {}}); }
  virtual P prior(const GpuSpec&, Dtype) const { return P{}; }
  ConstantsBlock defaults() const override { return block_of({P{}, {}}); }

  ConstantsBlock read(ConfigReader in) const override { return block_of(read_fitted<P>(std::move(in))); }

  ConstantsBlock carried_over(const ConstantsBlock& measured, const CarryOverCase& to) const override {
    Fitted<P> fitted = *in(measured);
    const auto within_bounds = [&](auto&& change) {
      for (const Parameter<P>& field : P::fields()) {
        double& value = fitted.value.*field.member;
        value = std::clamp(change(value, field.transfer), field.low, field.high);
      }
    };
    within_bounds([&](double value, Transfer transfer) { return transferred(value, transfer, to.ratios); });
    follow(fitted.value, to);
    within_bounds([](double value, Transfer) { return value; });
    if (to.how.same_kind) return block_of(std::move(fitted));
    fitted.record.provenance = Provenance::kCarriedOver;
    const Unexplained& added = this->facts().unexplained;
    widen(fitted.record, to.how.another_generation ? added.other_generation : added.same_generation);
    return block_of(std::move(fitted));
  }

 protected:
  /// Changes beyond the transfer rules of the single constants.
  virtual void follow(P&, const CarryOverCase&) const {}
};

}  // namespace roofcast
