#pragma once
// Kernels of routed experts. All share the equations of docs/equations-moe.md; the files in this folder have the
// differences.

#include <string_view>
#include <type_traits>
#include <utility>

#include "hw/kernel_of.h"
#include "hw/kernels/experts/experts_parameters.h"
#include "hw/kernels/moe.h"

namespace roofcast {

class KernelRules;

/// How a grouped GEMM chooses the height of its tiles.
enum class TileRule {
  kTuned,       ///< the fastest of the allowed heights
  kLocalMean,   ///< tokens of the whole group over the experts of one rank: too tall with expert parallelism
  kGlobalMean,  ///< mean tokens per expert
  kTwoSizes,    ///< the small size up to as many tokens as local experts, then the large size
  kShipped,     ///< tuned where vLLM ships a table of tiles for an A100, else its old default: two sizes, 64 columns;
                ///< on other GPUs the default of later releases, by the number of tokens
};

/// The rows that a kernel activates and sums.
enum class ExpertRows {
  kLocal,     ///< those of the rank's experts
  kAll,       ///< every choice of the group, local or not
  kZeroed,    ///< the same; rows of other ranks' experts are written as zeros
  kPlaced,    ///< those of the rank's experts; the exchange has placed them and will sum them
  kPadded,    ///< those of the rank's experts, padded to a tile per expert; copied from and summed to the rank's tokens
  kReserved,  ///< the same, with room for every choice and for a last tile of every expert, all of which is computed
};

/// Properties of a kernel that are not fitted. They come from the engines' sources. Where these do not say, the rule is
/// the one with the lowest error on left-out shapes.
struct ExpertTraits {
  TileRule rule = TileRule::kTuned;
  double rows_low = 16.0, rows_high = 128.0;  ///< smallest and largest tile
  double fill = 1.0;                          ///< share of the mean load that the tile height is chosen for
  ExpertRows rows = ExpertRows::kLocal;
  bool gathers = false;  ///< the first GEMM gathers its rows from the tokens
};

class ExpertsKernel : public Kernel {
 public:
  ExpertsKernel(const KernelFacts& facts, const ExpertTraits& traits)
      : Kernel(KernelKind::kExperts, facts), traits_(traits) {}
  const ExpertTraits& traits() const { return traits_; }
  virtual MoeParameters parameters(const ConstantsBlock& constants) const = 0;
  /// Constants from `values`, limited to those that the kernel has.
  virtual ConstantsBlock with_parameters(const MoeParameters& values, FitRecord record = {}) const = 0;

 private:
  ExpertTraits traits_;
};

/// Transfers the constants of every expert kernel to another GPU, beyond the rules of the single constants.
void follow_chip(ExpertsParameters& p, const CarryOverCase& to);

/// A kernel whose constants are a P: ExpertsParameters, plus the parts that the kernel has.
template <class P>
class ExpertsKernelOf : public KernelOf<P, ExpertsKernel> {
 public:
  using KernelOf<P, ExpertsKernel>::KernelOf;
  MoeParameters parameters(const ConstantsBlock& constants) const final {
    MoeParameters out;
    copy_parts<ExpertsParameters, GatheredRows, EmptyRows, ShortRows>(this->in(constants)->value, out);
    return out;
  }
  ConstantsBlock with_parameters(const MoeParameters& values, FitRecord record) const final {
    Fitted<P> fitted{{}, std::move(record)};
    copy_parts<ExpertsParameters, GatheredRows, EmptyRows, ShortRows>(values, fitted.value);
    return this->block_of(std::move(fitted));
  }

 protected:
  void follow(P& p, const CarryOverCase& to) const override { follow_chip(p, to); }

 private:
  template <class... Parts, class From, class To>
  static void copy_parts(const From& from, To& to) {
    const auto copy = [&]<class Part>(const Part*) {
      if constexpr (std::is_base_of_v<Part, From> && std::is_base_of_v<Part, To>)
        static_cast<Part&>(to) = static_cast<const Part&>(from);
    };
    (copy(static_cast<const Parts*>(nullptr)), ...);
  }
};

/// The table entry of an expert kernel.
KernelFacts experts_facts(std::string_view name, std::string_view help, const Kernel* lender = nullptr);

const ExpertsKernel& triton_experts();
const ExpertsKernel& triton_block_experts();
const ExpertsKernel& triton_mma_sync_experts();
const ExpertsKernel& oai_triton_experts();
const ExpertsKernel& rocm_experts();
const ExpertsKernel& marlin_experts();
const ExpertsKernel& marlin_blackwell_experts();
const ExpertsKernel& cutlass_experts();
const ExpertsKernel& cutlass_untuned_experts();
const ExpertsKernel& cutlass_mma_sync_experts();
const ExpertsKernel& cutlass_block_experts();
const ExpertsKernel& cutlass_nvfp4_experts();
const ExpertsKernel& cutlass_ungated_experts();
const ExpertsKernel& cutlass_ungated_fp8_experts();
const ExpertsKernel& cutlass_ungated_nvfp4_experts();
const ExpertsKernel& flashinfer_cutlass_block_experts();
const ExpertsKernel& flashinfer_cutlass_experts();
const ExpertsKernel& flashinfer_cutlass_nvfp4_experts();
const ExpertsKernel& deep_gemm_experts();
const ExpertsKernel& trtllm_gen_bf16_experts();
const ExpertsKernel& trtllm_gen_fp8_experts();
const ExpertsKernel& trtllm_gen_block_experts();
const ExpertsKernel& trtllm_gen_block_modular_experts();
const ExpertsKernel& trtllm_gen_nvfp4_experts();
const ExpertsKernel& trtllm_gen_mxfp4_experts();
const ExpertsKernel& trtllm_gen_mxfp8_experts();
const ExpertsKernel& trtllm_gen_mxfp4_trtllm_experts();
const ExpertsKernel& trtllm_gen_mxfp8_trtllm_experts();
const ExpertsKernel& deep_gemm_masked_experts();
const ExpertsKernel& deep_gemm_contiguous_experts();
const ExpertsKernel& deep_gemm_reserved_experts();
const ExpertsKernel& cutlass_wide_block_experts();
const ExpertsKernel& cutlass_wide_nvfp4_experts();
const ExpertsKernel& trtllm_gen_latency_experts();

/// The kernel of a layer and its constants: the first kernel named by the rules that was measured in the format of the
/// weights, else in the nearest format.
struct ExpertsChoice {
  const ExpertsKernel* kernel = nullptr;
  const ConstantsBlock* constants = nullptr;  ///< null: nothing was measured, the prior applies
  bool lent = false;                          ///< they belong to another kernel or format than requested
};
ExpertsChoice choose_experts(const MoeShape& shape, const Machine& machine);
/// The kernel named by the rules, measured or not.
const ExpertsKernel& named_experts(const MoeShape& shape, const GpuSpec& gpu, const KernelRules& rules);

/// The time for given constants. `repeated`: no other kernel runs between two calls, so weights that fit are found in
/// L2.
Cost moe_experts_with(const MoeShape& shape, const ExpertTraits& traits, const MoeParameters& parameters,
                      const GpuSpec& gpu, bool repeated = false);

}  // namespace roofcast
