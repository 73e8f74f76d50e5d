#pragma once
// A kernel together with the benchmark loop that times it. Their constants are fitted together and written separately.

#include <utility>

#include "calibrate/gpu_file.h"
#include "hw/kernel.h"

namespace roofcast::calibrate {

class LoopedKernel final : public Kernel {
 public:
  LoopedKernel(const Kernel& kernel, const Kernel& loop)
      : Kernel(kernel.kind(), kernel.facts()), kernel_(kernel), loop_(loop) {}

  std::vector<FieldFacts> fields() const override;
  std::vector<double> numbers(const ConstantsBlock& block) const override;
  ConstantsBlock from_numbers(std::span<const double> values, FitRecord record) const override;
  /// {kernel: {...}, loop: {...}}
  ConstantsBlock read(ConfigReader in) const override;
  ConstantsBlock assumed(const GpuSpec& gpu, Dtype dtype) const override;
  ConstantsBlock defaults() const override;
  ConstantsBlock carried_over(const ConstantsBlock& measured, const CarryOverCase& to) const override;

  ConstantsBlock block_of(ConstantsBlock kernel, ConstantsBlock loop, FitRecord record = {}) const;
  static const ConstantsBlock& kernel_in(const ConstantsBlock& block);
  static const ConstantsBlock& loop_in(const ConstantsBlock& block);

  /// fit_kernel() of both, split into the block of the kernel and that of the loop.
  template <class Row, class Predict, class Group>
  std::pair<FittedConstants, FittedConstants> fit(Dtype dtype, const ConstantsBlock& prior, std::span<const Row> rows,
                                                  Predict predict, const FitOptions& options, Group group) const {
    return split_fit(
        fit_kernel(*this, dtype, prior, rows, predict, options, group, kept(options, dtype), beneath(options, dtype)),
        dtype);
  }

  std::pair<FittedConstants, FittedConstants> split_fit(const FittedConstants& both, Dtype dtype) const;

 private:
  ConstantsBlock joined(const ConstantsBlock& kernel, const ConstantsBlock& loop) const;
  /// The kept constants of both; null if `options` keep none.
  ConstantsBlock kept(const FitOptions& options, Dtype dtype) const;
  /// What both inherit; null if one of them inherits nothing: the fit of both then starts from priors.
  ConstantsBlock beneath(const FitOptions& options, Dtype dtype) const;

  const Kernel& kernel_;
  const Kernel& loop_;
};

}  // namespace roofcast::calibrate
