#pragma once
// Shared by the kernels of matrix products; each kernel has a file of its own in this folder. Source of their form:
// docs/equations-gemm.md.

#include "hw/kernel_of.h"
#include "hw/kernels/gemm.h"
#include "hw/kernels/gemm/gemm_parameters.h"
#include "hw/kernels/gemm/tiles.h"

namespace roofcast {

class MatmulKernel : public Kernel {
 public:
  explicit MatmulKernel(const KernelFacts& facts) : Kernel(KernelKind::kGemm, facts) {}
  virtual const GemmParameters& parameters(const ConstantsBlock& constants) const = 0;
  /// These constants, limited to those that the kernel has.
  virtual ConstantsBlock with_parameters(const GemmParameters& values, FitRecord record = {}) const = 0;
  /// Tiles that the library has for C[m,n] over k.
  virtual GemmTiling tiling(const GpuSpec& gpu, double m, double n, double k) const = 0;
  /// Whether it supports this format on this GPU. Asked only of kernels that an engine was told to use.
  virtual bool runs(const GpuSpec&, Dtype) const { return true; }
  /// Whether cuBLASLt runs it. Then rows of the library alone determine its constants.
  virtual bool is_cublaslt() const { return false; }
  /// Most rows for which memory alone decides, without tiles.
  virtual double rows_without_tiles() const { return 0.0; }
  /// Most rows for which the kernel is a GEMV, without the pipeline and its prologue.
  virtual double gemv_rows() const { return 0.0; }
  /// Least time of a product, equal for every number of rows, as a share of the peak; 0: none.
  virtual double least_share_of_peak() const { return 0.0; }

  /// Assumed constants before a measurement. `wide`: the constants of 16-bit products on the same GPU, if known; they
  /// provide launch, bandwidth and clocks.
  GemmParameters prior_beside(const GpuSpec& gpu, const GemmParameters* wide) const;

 protected:
  /// Differences from 16-bit products.
  virtual void adjust(GemmParameters& prior, const GpuSpec&) const { prior.gemv_us = 0.0; }
};

/// How a product's constants carry over to another GPU, beyond the rules of the single constants.
void follow_chip(GemmParameters& p, const CarryOverCase& to);

/// A product kernel whose constants are a P, derived from GemmParameters.
template <class P>
class MatmulKernelOf : public KernelOf<P, MatmulKernel> {
 public:
  using KernelOf<P, MatmulKernel>::KernelOf;
  const GemmParameters& parameters(const ConstantsBlock& constants) const final { return this->in(constants)->value; }
  ConstantsBlock with_parameters(const GemmParameters& values, FitRecord record) const final {
    P mine{values};
    Fitted<P> fitted{{}, std::move(record)};
    for (const Parameter<P>& field : P::fields()) fitted.value.*field.member = mine.*field.member;
    return this->block_of(std::move(fitted));
  }
  P prior(const GpuSpec& gpu, Dtype) const override { return P{this->prior_beside(gpu, nullptr)}; }

 protected:
  void follow(P& p, const CarryOverCase& to) const override { follow_chip(p, to); }
};

inline constexpr Unexplained kGemmUnexplained{0.05, 0.27, 0.2};
inline constexpr std::string_view kGemmForm = "equations-gemm.md";

const MatmulKernel& cublaslt();
const MatmulKernel& cublaslt_mma_sync();
const MatmulKernel& cublaslt_fp8();
const MatmulKernel& cublaslt_mma_sync_fp8();
const MatmulKernel& cutlass_fp8();
const MatmulKernel& cutlass_mma_sync_fp8();
const MatmulKernel& deep_gemm();
const MatmulKernel& deep_gemm_trtllm();
const MatmulKernel& blockwise_fp8();
const MatmulKernel& trtllm_gen_gemm();
const MatmulKernel& cutlass_nvfp4();
const MatmulKernel& cutlass_nvfp4_untuned();
const MatmulKernel& cutlass_int8();
const MatmulKernel& weight_only();
const MatmulKernel& hipblaslt();
const MatmulKernel& hipblaslt_fp8();

/// A served model's weights are cold: those of other layers were used in between.
inline constexpr double kColdWeights = 1e9;
/// The conditions under which a product runs.
struct GemmRun {
  double weight_copies = kColdWeights;  ///< sets of weights that are read in turn
  bool cool = false;                    ///< the power limit has not yet lowered the clock
};
/// The time under given constants. Source: docs/equations-gemm.md.
Cost gemm_with(const GemmShape& shape, const MatmulKernel& kernel, const GemmParameters& constants, const GpuSpec& gpu,
               const GemmRun& run = {});

/// The kernel's own block in a format, else that of 16-bit products, which stand in for it; either may be null.
const ConstantsBlock& gemm_block_in_force(const MatmulKernel& kernel, Dtype block, const GpuSpec& gpu,
                                          const Efficiency& efficiency);
/// The kernel's constants on a machine: measured, else its prior given the measured 16-bit products.
GemmParameters gemm_constants(const MatmulKernel& kernel, Dtype block, const GpuSpec& gpu,
                              const Efficiency& efficiency);

}  // namespace roofcast
