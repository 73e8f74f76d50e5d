#include "hw/kernels/experts/experts_kernel.h"

#include <algorithm>
#include <array>

namespace roofcast {

KernelFacts experts_facts(std::string_view name, std::string_view help, const Kernel* lender) {
  KernelFacts facts{.name = name, .help = help, .form = "equations-moe.md"};
  facts.unexplained = {0.05, 0.35, 0.5};
  facts.lenders[0] = lender;
  return facts;
}

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
       "slowdown of a product whose inner dimension is not a multiple of 16 (Triton)"},
      {"short_row_bandwidth", &P::short_row_bandwidth, 0.2, 1.0, kKept,
       "of the bandwidth, where tiles read their weights in rows of 64 bytes (vLLM's default tiles on Ampere)"},
      {"memory_step_us", &P::memory_step_us, 0.0, 4.0, kKept,
       "latency of one step of the inner dimension (the same tiles)"},
  }};
  return kFields;
}

std::vector<FieldFacts> ExpertsKernel::fields() const {
  std::vector<FieldFacts> all = KernelOf::fields();
  const std::span<const Parameter<MoeParameters>> members = MoeParameters::fields();
  for (std::size_t i = 0; i < all.size(); ++i) all[i].held = !has(members[i].member);
  return all;
}

bool ExpertsKernel::has(double MoeParameters::*constant) const {
  using P = MoeParameters;
  if (constant == &P::empty_row_loss) return !traits_.gathers && traits_.rows_high >= 256.0;
  // Launches of a padded layer run ahead of the GPU, or the host is what a benchmark times.
  if (constant == &P::launch_us) return traits_.rows != ExpertRows::kPadded;
  return constant != &P::gather_loss && constant != &P::unaligned_slowdown && constant != &P::short_row_bandwidth &&
         constant != &P::memory_step_us;
}

void ExpertsKernel::follow(MoeParameters& p, const CarryOverCase& to) const {
  p.compute_fraction = share_beside_instructions(p.compute_fraction, to.ratios.instructions);
  p.compute_fraction = std::min(p.compute_fraction, to.how.matrix_limit);
}

}  // namespace roofcast
