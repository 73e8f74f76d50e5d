#include "calibrate/looped_kernel.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>

namespace roofcast::calibrate {
namespace {

struct Both {
  ConstantsBlock kernel, loop;
  FitRecord record;
};
const Both& in(const ConstantsBlock& block) { return *static_cast<const Both*>(block.values.get()); }

template <class T>
std::vector<T> joined_lists(std::vector<T> first, const std::vector<T>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

const ConstantsBlock& LoopedKernel::kernel_in(const ConstantsBlock& block) { return in(block).kernel; }
const ConstantsBlock& LoopedKernel::loop_in(const ConstantsBlock& block) { return in(block).loop; }

std::vector<FieldFacts> LoopedKernel::fields() const { return joined_lists(kernel_.fields(), loop_.fields()); }

std::vector<double> LoopedKernel::numbers(const ConstantsBlock& block) const {
  return joined_lists(kernel_.numbers(in(block).kernel), loop_.numbers(in(block).loop));
}

ConstantsBlock LoopedKernel::from_numbers(std::span<const double> values, FitRecord record) const {
  const std::size_t own = kernel_.fields().size();
  return block_of(kernel_.from_numbers(values.first(own)), loop_.from_numbers(values.subspan(own)), std::move(record));
}

ConstantsBlock LoopedKernel::read(ConfigReader in) const {
  const ConstantsBlock kernel = kernel_.read(in.child("kernel")), loop = loop_.read(in.child("loop"));
  in.finish();
  return joined(kernel, loop);
}

ConstantsBlock LoopedKernel::joined(const ConstantsBlock& kernel, const ConstantsBlock& loop) const {
  FitRecord record = *kernel.record;
  record.standard_errors.resize(kernel_.fields().size());
  std::vector<double> more = loop.record->standard_errors;
  more.resize(loop_.fields().size());
  record.standard_errors = joined_lists(std::move(record.standard_errors), more);
  return block_of(kernel, loop, std::move(record));
}

ConstantsBlock LoopedKernel::assumed(const GpuSpec& gpu, Dtype dtype) const {
  return block_of(kernel_.assumed(gpu, dtype), loop_.assumed(gpu, dtype));
}

ConstantsBlock LoopedKernel::defaults() const { return block_of(kernel_.defaults(), loop_.defaults()); }

ConstantsBlock LoopedKernel::carried_over(const ConstantsBlock& measured, const CarryOverCase& to) const {
  const Both& both = in(measured);
  return block_of(kernel_.carried_over(both.kernel, to), loop_.carried_over(both.loop, to), both.record);
}

ConstantsBlock LoopedKernel::block_of(ConstantsBlock kernel, ConstantsBlock loop, FitRecord record) const {
  auto held = std::make_shared<const Both>(Both{std::move(kernel), std::move(loop), std::move(record)});
  const FitRecord* kept = &held->record;
  return {std::move(held), kept};
}

std::pair<FittedConstants, FittedConstants> LoopedKernel::split_fit(const FittedConstants& both, Dtype dtype) const {
  const auto own = static_cast<std::ptrdiff_t>(kernel_.fields().size());
  const auto part = [&](const Kernel& kernel, auto cut) {
    FittedConstants out = both;
    out.block = place_of(kernel, dtype);
    cut(out.values), cut(out.fields), cut(out.record.standard_errors);
    return out;
  };
  const auto head = [own](auto& all) {
    if (!all.empty()) all.erase(all.begin() + own, all.end());
  };
  const auto tail = [own](auto& all) {
    if (!all.empty()) all.erase(all.begin(), all.begin() + own);
  };
  return {part(kernel_, head), part(loop_, tail)};
}

ConstantsBlock LoopedKernel::kept(const FitOptions& options, Dtype dtype) const {
  if (!options.kept) return {};
  return joined(fit_detail::kept_block(options, place_of(kernel_, dtype)),
                fit_detail::kept_block(options, place_of(loop_, dtype)));
}

ConstantsBlock LoopedKernel::beneath(const FitOptions& options, Dtype dtype) const {
  const ConstantsBlock kernel = fit_detail::block_beneath(options, place_of(kernel_, dtype)),
                       loop = fit_detail::block_beneath(options, place_of(loop_, dtype));
  return kernel && loop ? joined(kernel, loop) : ConstantsBlock{};
}

}  // namespace roofcast::calibrate
