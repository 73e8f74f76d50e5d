#include "calibrate/kernels/products.cuh"

#include "base/error.h"
#include "calibrate/kernels/cuda_runtime.h"
#include "calibrate/kernels/launchers.h"

namespace roofcast::calibrate::cuda {
namespace {

void require_skinny(int m, int n, int k) {
  SIM_CHECK(m >= 1 && m <= 16 && n % kernels::kSkinnyRows == 0 && k % kernels::kSkinnyStep == 0, "a skinny product");
}

}  // namespace

void skinny_product(cudaStream_t stream, const Bf16* x, const Bf16* w, Bf16* y, int m, int n, int k) {
  require_skinny(m, n, k);
  const int blocks = n / kernels::kSkinnyRows;
  if (m <= 8) {
    kernels::skinny_kernel<1>
        <<<blocks, kernels::kSkinnyThreads, kernels::kSkinnySharedBytes<1>, stream>>>(x, w, y, m, n, k);
  } else {
    kernels::skinny_kernel<2>
        <<<blocks, kernels::kSkinnyThreads, kernels::kSkinnySharedBytes<2>, stream>>>(x, w, y, m, n, k);
  }
  check(cudaGetLastError(), "launching a skinny product");
}

void int4_product(cudaStream_t stream, const Bf16* x, const std::uint32_t* w, const Bf16* scale, Bf16* y, int m, int n,
                  int k) {
  require_skinny(m, n, k);
  const int blocks = n / kernels::kSkinnyRows;
  if (m <= 8) {
    kernels::int4_kernel<1>
        <<<blocks, kernels::kSkinnyThreads, kernels::kSkinnySharedBytes<1>, stream>>>(x, w, scale, y, m, n, k);
  } else {
    kernels::int4_kernel<2>
        <<<blocks, kernels::kSkinnyThreads, kernels::kSkinnySharedBytes<2>, stream>>>(x, w, scale, y, m, n, k);
  }
  check(cudaGetLastError(), "launching a 4-bit product");
}

void expert_product(cudaStream_t stream, const Bf16* x, const Bf16* w, Bf16* y, const int* tiles, int count, int n,
                    int k) {
  static_assert(sizeof(kernels::ExpertTile) == 3 * sizeof(int) && kernels::kExpertRows == kExpertTileRows);
  SIM_CHECK(n % kernels::kExpertColumns == 0 && k % kernels::kExpertStep == 0, "a product of experts");
  kernels::expert_kernel<<<dim3(n / kernels::kExpertColumns, count), kernels::kExpertThreads,
                           kernels::kExpertSharedBytes, stream>>>(
      x, w, y, reinterpret_cast<const kernels::ExpertTile*>(tiles), n, k);
  check(cudaGetLastError(), "launching the experts");
}

}  // namespace roofcast::calibrate::cuda
