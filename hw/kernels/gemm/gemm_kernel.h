#pragma once
// Shared by the GEMM kernels; each kernel has its own file in this folder. Source of the equations:
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
  /// Constants from `values`, limited to those that the kernel has.
  virtual ConstantsBlock with_parameters(const GemmParameters& values, FitRecord record = {}) const = 0;
  /// The library's tiles for C[m,n] over k.
  virtual GemmTiling tiling(const GpuSpec& gpu, double m, double n, double k) const = 0;
  /// Whether it supports this format on this GPU. Called only for kernels that an engine is configured to use.
  virtual bool runs(const GpuSpec&, Dtype) const { return true; }
  /// Whether it is a cuBLASLt kernel. Its constants are then determined only by rows of that library.
  virtual bool is_cublaslt() const { return false; }
  /// Most rows for which only memory bandwidth matters, without tiles.
  virtual double rows_without_tiles() const { return 0.0; }
  /// Most rows for which the kernel is a GEMV, without a pipeline and its prologue.
  virtual double gemv_rows() const { return 0.0; }
  /// Minimum time of a GEMM, the same for every number of rows, as a share of the peak; 0: none.
  virtual double least_share_of_peak() const { return 0.0; }

  /// Assumed constants before a measurement. `wide`: the constants of 16-bit GEMMs on the same GPU, if known; launch,
  /// bandwidth and clocks are taken from them.
  GemmParameters prior_beside(const GpuSpec& gpu, const GemmParameters* wide) const;

 protected:
  /// Differences from 16-bit GEMMs.
  virtual void adjust(GemmParameters& prior, const GpuSpec&) const { prior.gemv_us = 0.0; }
};

/// Transfers a GEMM's constants to another GPU, beyond the rules of the single constants.
void follow_chip(GemmParameters& p, const CarryOverCase& to);

/// A GEMM kernel whose constants are a P, derived from GemmParameters.
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

/// A served model's weights are cold: other layers' weights were read in between.
inline constexpr double kColdWeights = 1e9;
/// The conditions under which a GEMM runs.
struct GemmRun {
  double weight_copies = kColdWeights;  ///< sets of weights that are read in turn
  bool cool = false;                    ///< the power limit has not lowered the clock yet
};
/// The time for given constants. Source: docs/equations-gemm.md.
Cost gemm_with(const GemmShape& shape, const MatmulKernel& kernel, const GemmParameters& constants, const GpuSpec& gpu,
               const GemmRun& run = {});

/// The kernel's own block in a format, else the block of 16-bit GEMMs, which stands in for it. Either may be null.
const ConstantsBlock& gemm_block_in_force(const MatmulKernel& kernel, Dtype block, const GpuSpec& gpu,
                                          const Efficiency& efficiency);
/// The kernel's constants on a machine: the measured ones, else its prior given the measured 16-bit GEMMs.
GemmParameters gemm_constants(const MatmulKernel& kernel, Dtype block, const GpuSpec& gpu,
                              const Efficiency& efficiency);

}  // namespace roofcast
