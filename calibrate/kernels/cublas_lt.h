#pragma once
// GEMMs by cuBLASLt, which is loaded at first use, with the first kernel that its heuristic returns: the one that
// engines run.

#include <cublasLt.h>

#include <memory>
#include <string>

#include "calibrate/kernels/cuda_runtime.h"
#include "calibrate/kernels/library.h"

namespace roofcast::calibrate::cuda {

/// The library's functions. Throws Unsupported if the library is missing.
class CublasLt {
 public:
  CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;
  ~CublasLt();

  cublasLtHandle_t handle = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) algo_get = nullptr;
  std::size_t version = 0;

 private:
  Library library_;
  decltype(&cublasLtDestroy) destroy_ = nullptr;
};

/// Throws Unsupported, OutOfMemory or Failed; the message names the step.
void check(cublasStatus_t status, const char* what);

/// kFp8Block: one scale per 128 of k for each row of x, and per 128 x 128 of w, on Hopper. kNvfp4: one scale per 16 of
/// k, on Blackwell. Supported since cuBLASLt 12.9 and 12.8.
enum class ProductFormat { kBf16, kFp16, kFp8, kFp8Block, kNvfp4, kInt8 };
double input_bytes(ProductFormat format);        ///< per element of x and w
std::size_t output_bytes(ProductFormat format);  ///< per element of y: int32 for int8, 2 bytes for all others

/// y[m, n] = x[m, k] w[n, k]^T, all row-major. cuBLAS reads this as the column-major y^T[n, m] = w^T^T x^T.
class LtProduct {
 public:
  LtProduct(std::shared_ptr<const CublasLt> lib, const Context& context, ProductFormat format, int m, int n, int k);

  void run(cudaStream_t stream, const void* x, const void* w, void* y) const;
  std::string engine() const;  ///< "cublaslt-13.1.0"
  std::string kernel() const;  ///< "algorithm 66 tile 20 split 1"

 private:
  using Desc = std::unique_ptr<cublasLtMatmulDescOpaque_t, decltype(&cublasLtMatmulDescDestroy)>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, decltype(&cublasLtMatrixLayoutDestroy)>;
  Layout layout(cudaDataType_t type, int columns, int rows) const;
  void describe(ProductFormat format);
  void scale(ProductFormat format, int m, int n, int k);
  void choose();

  std::shared_ptr<const CublasLt> lib_;
  const Context& context_;
  bool integer_;
  Desc desc_;
  Layout w_, x_, y_;
  cublasLtMatmulAlgo_t algo_{};
  DeviceMemory w_scales_, x_scales_;  ///< all 1, so that their order does not matter
};

}  // namespace roofcast::calibrate::cuda
