#pragma once
// Kernels of routed experts: one form, docs/equations-moe.md. What differs is in the files beside this one.

#include <string_view>
#include <type_traits>
#include <utility>

#include "hw/kernel_of.h"
#include "hw/kernels/experts/experts_parameters.h"
#include "hw/kernels/moe.h"

namespace roofcast {

class KernelRules;

/// How a grouped GEMM picks the rows of its tiles.
enum class TileRule {
  kTuned,       ///< the fastest of those allowed
  kLocalMean,   ///< tokens of the whole group over the experts of one rank: too tall under expert parallelism
  kGlobalMean,  ///< tokens of an expert on average
  kTwoSizes,    ///< the smaller up to as many tokens as local experts, then the larger
  kShipped,     ///< tuned where vLLM ships a table of tiles for an A100, else its default: the two sizes, 64 columns;
                ///< elsewhere the default of later releases, by the tokens
};

/// Rows that a kernel activates and sums.
enum class ExpertRows {
  kLocal,   ///< those of the rank's experts
  kAll,     ///< every choice of the group, local or not
  kZeroed,  ///< the same, and zeros are written for those that are not local
  kPlaced,  ///< those of the rank's experts, which the exchange brought into place and will sum
  kPadded,  ///< those of the rank's experts, each expert's padded to a tile; copied from and summed to the tokens held
  kReserved,  ///< the same, with room for every choice and for a last tile of every expert, all of which is computed
};

/// Facts of a kernel, which are not fitted. They come from the engines' sources. Where these do not say, the rule is
/// the one that does best on shapes left out.
struct ExpertTraits {
  TileRule rule = TileRule::kTuned;
  double rows_low = 16.0, rows_high = 128.0;  ///< smallest and largest tile
  double fill = 1.0;                          ///< share of the mean load that the rule sizes for
  ExpertRows rows = ExpertRows::kLocal;
  bool gathers = false;  ///< the first product reads its rows where the tokens lie
};

class ExpertsKernel : public Kernel {
 public:
  ExpertsKernel(const KernelFacts& facts, const ExpertTraits& traits)
      : Kernel(KernelKind::kExperts, facts), traits_(traits) {}
  const ExpertTraits& traits() const { return traits_; }
  virtual MoeParameters parameters(const ConstantsBlock& constants) const = 0;
  /// These constants, limited to those that the kernel has.
  virtual ConstantsBlock with_parameters(const MoeParameters& values, FitRecord record = {}) const = 0;

 private:
  ExpertTraits traits_;
};

/// How the constants of every kernel carry over to another GPU, beyond their own rules.
void follow_chip(ExpertsParameters& p, const CarryOverCase& to);

/// A kernel whose constants are a P: ExpertsParameters and those of the further parts that the kernel has.
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

/// What the table says of a kernel of experts.
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

/// The kernel of a layer and its constants: the first that the rules name and that was measured in the format of the
/// weights, else in the nearest format.
struct ExpertsChoice {
  const ExpertsKernel* kernel = nullptr;
  const ConstantsBlock* constants = nullptr;  ///< null: nothing was measured, the prior holds
  bool lent = false;                          ///< they are of another kernel or format than asked for
};
ExpertsChoice choose_experts(const MoeShape& shape, const Machine& machine);
/// The kernel that the rules name, measured or not.
const ExpertsKernel& named_experts(const MoeShape& shape, const GpuSpec& gpu, const KernelRules& rules);

/// The time under given constants. `repeated`: nothing runs between two calls, so that weights are found in L2 where
/// they fit.
Cost moe_experts_with(const MoeShape& shape, const ExpertTraits& traits, const MoeParameters& parameters,
                      const GpuSpec& gpu, bool repeated = false);

}  // namespace roofcast
