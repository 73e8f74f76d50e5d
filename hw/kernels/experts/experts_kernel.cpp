#include "hw/kernels/experts/experts_kernel.h"

#include <algorithm>
#include <array>

namespace roofcast {

std::span<const Parameter<MoeParameters>> MoeParameters::fields() {
  using P = MoeParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 15> kFields{{
      {"launch_us", &P::launch_us, 0.0, 120.0, kCycles, "launches, routing and sorting of one layer"},
      {"launch_us_per_expert", &P::launch_us_per_expert, 0.0, 0.5, kCycles,
       "pointers and offsets of each local expert"},
      {"ns_per_assignment", &P::ns_per_assignment, 0.0, 20.0, kCycles,
       "sorting and permuting one (token, expert) pair"},
      {"bandwidth_fraction", &P::bandwidth_fraction, 0.04, 1.0, kMemoryShare,
       "share of the memory bandwidth that the products reach"},
      {"compute_fraction", &P::compute_fraction, 0.03, 1.0, kKept, "share of the peak that endless tiles reach"},
      {"activation_passes", &P::activation_passes, 0.2, 6.0, kKept,
       "times the activations' traffic goes through memory"},
      {"tile_overhead_rows", &P::tile_overhead_rows, 0.0, 200.0, kKept, "rows whose time every tile loses"},
      {"tile_us", &P::tile_us, 0.0, 20.0, kCycles, "prologue and epilogue of a tile"},
      {"expert_map_us", &P::expert_map_us, 0.0, 60.0, kCycles,
       "mapping experts to ranks, under expert parallelism alone"},
      {"router_us_per_choice", &P::router_us_per_choice, 0.0, 6.0, kCycles, "the router, for each of the top k"},
      {"gather_loss", &P::gather_loss, 0.0, 2.0, kKept,
       "more of tiles that wait for rows which they gather from no L2 (Triton)"},
      {"empty_row_loss", &P::empty_row_loss, 0.0, 2.0, kKept,
       "more of a tile's row beyond its expert's tokens than of a full one (tiles of up to 256 rows)"},
      {"unaligned_slowdown", &P::unaligned_slowdown, 1.0, 10.0, kKept,
       "times that a product takes longer whose inner dimension is no multiple of 16 (Triton)"},
      {"short_row_bandwidth", &P::short_row_bandwidth, 0.2, 1.0, kKept,
       "of the bandwidth, where tiles read their weights in rows of 64 bytes (vLLM's default tiles on Ampere)"},
      {"memory_step_us", &P::memory_step_us, 0.0, 4.0, kKept,
       "latency of one step of the inner dimension (the same tiles)"},
  }};
  return kFields;
}

std::vector<FieldFacts> ExpertsKernel::fields() const {
  std::vector<FieldFacts> all = KernelOf::fields();
  for (FieldFacts& field : all) {
    const std::string_view name = field.name;
    if (name == "gather_loss" || name == "unaligned_slowdown") field.held = !traits_.gathers;
    if (name == "empty_row_loss") field.held = traits_.gathers || traits_.rows_high < 256.0;
    // Launches of a padded layer run ahead of the GPU, or the host is what a benchmark times.
    if (name == "launch_us" && traits_.rows == ExpertRows::kPadded) field.held = true;
    if (name == "short_row_bandwidth" || name == "memory_step_us") field.held = traits_.rule != TileRule::kShipped;
  }
  return all;
}

/// What an SM of an H100 or H200 is left with in products that Triton reads element by element: 7.5 TFLOP/s over the
/// slowdown of 4.9-5.0 fitted there. It is bound by instructions, not by matrix units, and so is the same elsewhere.
constexpr double kUnalignedFlopsPerSm = 1.5e12;

MoeParameters ExpertsKernel::prior(const GpuSpec& gpu, Dtype) const {
  MoeParameters p;
  if (traits_.gathers) {
    const double per_sm = gpu.peak(Dtype::kBf16).base() / gpu.sm_count;
    p.unaligned_slowdown = std::clamp(per_sm / kUnalignedFlopsPerSm, 1.0, 10.0);
  }
  if (traits_.rule == TileRule::kShipped) p.short_row_bandwidth = 0.7, p.memory_step_us = 0.5;
  if (name() == "cutlass_untuned_experts") p.bandwidth_fraction = p.compute_fraction = 0.18, p.tile_us = 7.0;
  return p;
}

/// Triton's loads of single elements take instructions, as many a cycle everywhere: the faster the matrix units, the
/// more it loses by them. 1: a kernel without them.
void ExpertsKernel::follow(MoeParameters& p, const CarryOverCase& to) const {
  if (p.unaligned_slowdown > 1.0)
    p.unaligned_slowdown = std::clamp(p.unaligned_slowdown * to.ratios.operations, 1.0, 10.0);
  p.compute_fraction = share_beside_instructions(p.compute_fraction, to.ratios.instructions);
  p.compute_fraction = std::min(p.compute_fraction, to.how.matrix_limit);
}

}  // namespace roofcast
