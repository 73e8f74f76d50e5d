#include "hw/kernels/experts/experts_kernel.h"

#include <algorithm>

namespace roofcast {

KernelFacts experts_facts(std::string_view name, std::string_view help, const Kernel* lender) {
  KernelFacts facts{.name = name, .help = help, .form = "equations-moe.md"};
  // For another generation: with 0.28, nine of ten rows of A100, H100, H200, B200 and L40S lie within the interval when
  // priced with each other's constants. For another kernel: docs/equations.md, "Intervals".
  facts.unexplained = {0.05, 0.28, 0.5};
  facts.lenders[0] = lender;
  return facts;
}

void follow_chip(ExpertsParameters& p, const CarryOverCase& to) {
  p.compute_fraction = share_beside_instructions(p.compute_fraction, to.ratios.instructions);
  p.compute_fraction = std::min(p.compute_fraction, to.how.matrix_limit);
}

}  // namespace roofcast
