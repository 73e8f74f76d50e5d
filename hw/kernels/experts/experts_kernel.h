#pragma once
// Kernels of routed experts: one form, docs/equations-moe.md. What differs is in the files beside this one.

#include <span>
#include <vector>

#include "hw/kernel_of.h"
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

struct MoeParameters {
  double launch_us = 20.0;
  double launch_us_per_expert = 0.02;
  double ns_per_assignment = 0.5;
  double bandwidth_fraction = 0.88;
  double compute_fraction = 0.9;
  double activation_passes = 1.0;
  double tile_overhead_rows = 15.0;
  double tile_us = 1.2;
  double expert_map_us = 0.0;
  double router_us_per_choice = 0.0;
  double gather_loss = 0.0;
  double empty_row_loss = 0.0;
  double unaligned_slowdown = 1.0;
  double short_row_bandwidth = 1.0;
  double memory_step_us = 0.0;
  static std::span<const Parameter<MoeParameters>> fields();
};

class ExpertsKernel : public KernelOf<MoeParameters> {
 public:
  ExpertsKernel(const KernelFacts& facts, const ExpertTraits& traits)
      : KernelOf(KernelKind::kExperts, facts), traits_(traits) {}
  const ExpertTraits& traits() const { return traits_; }
  /// Constants of what the kernel does not do are held.
  std::vector<FieldFacts> fields() const override;

 protected:
  /// Does the kernel do what this constant stands for?
  virtual bool has(double MoeParameters::*constant) const;
  void follow(MoeParameters& p, const CarryOverCase& to) const override;

 private:
  ExpertTraits traits_;
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
const ExpertsKernel& cutlass_wide_block_experts();
const ExpertsKernel& cutlass_wide_nvfp4_experts();
const ExpertsKernel& trtllm_gen_latency_experts();

/// The kernel of a layer and its constants: the first that the rules name and that was measured in the format of the
/// weights, else in the nearest format.
struct ExpertsChoice {
  const ExpertsKernel* kernel = nullptr;
  const Fitted<MoeParameters>* fitted = nullptr;  ///< null: nothing was measured, the prior holds
  bool lent = false;                              ///< they are of another kernel or format than asked for
};
ExpertsChoice choose_experts(const MoeShape& shape, const Machine& machine);
/// The kernel that the rules name, measured or not.
const ExpertsKernel& named_experts(const MoeShape& shape, const GpuSpec& gpu, const KernelRules& rules);

/// The time under given constants. `repeated`: nothing runs between two calls, so that weights are found in L2 where
/// they fit.
Cost moe_experts_with(const MoeShape& shape, const ExpertTraits& traits, const MoeParameters& parameters,
                      const GpuSpec& gpu, bool repeated = false);

}  // namespace roofcast
