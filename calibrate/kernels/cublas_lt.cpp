#include "calibrate/kernels/cublas_lt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace roofcast::calibrate::cuda {
namespace {

cudaDataType_t input_type(ProductFormat format) {
  switch (format) {
    case ProductFormat::kBf16:
      return CUDA_R_16BF;
    case ProductFormat::kFp16:
      return CUDA_R_16F;
    case ProductFormat::kFp8:
    case ProductFormat::kFp8Block:
      return CUDA_R_8F_E4M3;
    case ProductFormat::kNvfp4:
      return CUDA_R_4F_E2M1;
    case ProductFormat::kInt8:
      return CUDA_R_8I;
  }
  throw Unsupported("a format without a CUDA type");
}

cudaDataType_t output_type(ProductFormat format) {
  if (format == ProductFormat::kInt8) return CUDA_R_32I;
  return format == ProductFormat::kFp16 ? CUDA_R_16F : CUDA_R_16BF;
}

}  // namespace

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text = fmt::format("cuBLASLt: {}: status {}", what, static_cast<int>(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemory(text);
  const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
                       status == CUBLAS_STATUS_ARCH_MISMATCH;
  if (refused) throw Unsupported(text);
  throw Failed(text);
}

CublasLt::CublasLt() : library_({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}) {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtGetVersion) get_version = nullptr;
  library_.find("cublasLtCreate", create);
  library_.find("cublasLtGetVersion", get_version);
  library_.find("cublasLtDestroy", destroy_);
  library_.find("cublasLtMatmul", matmul);
  library_.find("cublasLtMatmulAlgoGetHeuristic", heuristic);
  library_.find("cublasLtMatmulDescCreate", desc_create);
  library_.find("cublasLtMatmulDescDestroy", desc_destroy);
  library_.find("cublasLtMatmulDescSetAttribute", desc_set);
  library_.find("cublasLtMatrixLayoutCreate", layout_create);
  library_.find("cublasLtMatrixLayoutDestroy", layout_destroy);
  library_.find("cublasLtMatmulPreferenceCreate", preference_create);
  library_.find("cublasLtMatmulPreferenceDestroy", preference_destroy);
  library_.find("cublasLtMatmulPreferenceSetAttribute", preference_set);
  library_.find("cublasLtMatmulAlgoConfigGetAttribute", algo_get);
  const bool whole = create && get_version && destroy_ && matmul && heuristic && desc_create && desc_destroy &&
                     desc_set && layout_create && layout_destroy && preference_create && preference_destroy &&
                     preference_set && algo_get;
  if (!whole) throw Unsupported("libcublasLt.so.13 or .12 was not found");
  check(create(&handle), "starting");
  version = get_version();
}

CublasLt::~CublasLt() {
  if (handle) (void)destroy_(handle);
}

double input_bytes(ProductFormat format) {
  if (format == ProductFormat::kNvfp4) return 0.5;
  return format == ProductFormat::kBf16 || format == ProductFormat::kFp16 ? 2.0 : 1.0;
}
std::size_t output_bytes(ProductFormat format) { return format == ProductFormat::kInt8 ? 4 : 2; }

namespace {

/// Checks the compute capability for the format, and the row alignment of 16 bytes that cuBLASLt needs below 16 bits.
void require(ProductFormat format, const Context& context, int n, int k) {
  if (format == ProductFormat::kFp8 && context.capability() < 89)
    throw Unsupported("fp8 products need compute capability 8.9");
  if (format == ProductFormat::kFp8Block && context.properties.major != 9)
    throw Unsupported("cuBLASLt supports block fp8 only on compute capability 9.0");
  if (format == ProductFormat::kNvfp4 && context.properties.major < 10)
    throw Unsupported("nvfp4 products need compute capability 10.0");
  if (input_bytes(format) < 2.0 && (n % 16 != 0 || k % (format == ProductFormat::kNvfp4 ? 32 : 16) != 0))
    throw Unsupported("rows must be a multiple of 16 bytes");
}

}  // namespace

LtProduct::Layout LtProduct::layout(cudaDataType_t type, int columns, int rows) const {
  cublasLtMatrixLayout_t made = nullptr;
  check(
      lib_->layout_create(&made, type, static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows), columns),
      "describing a matrix");
  return {made, lib_->layout_destroy};
}

LtProduct::LtProduct(std::shared_ptr<const CublasLt> lib, const Context& context, ProductFormat format, int m, int n,
                     int k)
    : lib_(std::move(lib)),
      context_(context),
      integer_(format == ProductFormat::kInt8),
      desc_(nullptr, lib_->desc_destroy),
      w_(layout(input_type(format), k, n)),
      x_(layout(input_type(format), k, m)),
      y_(layout(output_type(format), n, m)) {
  require(format, context, n, k);
  describe(format);
  scale(format, m, n, k);
  choose();
}

void LtProduct::describe(ProductFormat format) {
  cublasLtMatmulDesc_t made = nullptr;
  check(
      lib_->desc_create(&made, integer_ ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F, integer_ ? CUDA_R_32I : CUDA_R_32F),
      "describing a product");
  desc_.reset(made);
  const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;  // the only layout for formats below 16 bits
  check(lib_->desc_set(made, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), "describing a product");
  check(lib_->desc_set(made, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof plain), "describing a product");
  if (format != ProductFormat::kFp8) return;
  const std::int8_t fast = 1;  // fast accumulation, as used by engines
  check(lib_->desc_set(made, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast), "describing a product");
}

/// Scales of 1: fp8 has one fp32 scale per tensor, block fp8 fp32 scales, nvfp4 e4m3 scales, whose 1 is 0x38, one per
/// 16 of k, in tiles of 128 rows by 4 scales (cuBLAS documentation, "Narrow precision data types usage").
void LtProduct::scale(ProductFormat format, int m, int n, int k) {
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(lib_->desc_set(desc_.get(), attribute, &value, sizeof value), "scaling a product");
  };
  const auto up = [](std::int64_t value, std::int64_t to) { return static_cast<std::size_t>(round_up(value, to)); };
  if (format == ProductFormat::kNvfp4) {
    const auto fill_ones = [&](DeviceMemory& to, int rows) {
      const std::vector<std::uint8_t> ones(up(rows, 128) * (up(k, 64) / 16), 0x38);
      upload(to, ones.data(), ones.size());
    };
    fill_ones(w_scales_, n);
    fill_ones(x_scales_, m);
  } else if (format == ProductFormat::kFp8 || format == ProductFormat::kFp8Block) {
    const bool blocks = format == ProductFormat::kFp8Block;
    const auto fill_ones = [&](DeviceMemory& to, std::size_t count) {
      const std::vector<float> ones(count, 1.0f);
      upload(to, ones.data(), count * sizeof(float));
    };
    const std::size_t along = up(k, 128) / 128;
    fill_ones(w_scales_, blocks ? up(static_cast<std::int64_t>(along), 4) * (up(n, 128) / 128) : 1);
    fill_ones(x_scales_, blocks ? along * up(m, 4) : 1);
  } else {
    return;
  }
  set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(w_scales_.as<void>()));
  set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(x_scales_.as<void>()));
#if CUBLAS_VERSION >= 120900
  if (format == ProductFormat::kNvfp4) {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, std::int32_t{CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3});
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, std::int32_t{CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3});
  }
  if (format == ProductFormat::kFp8Block) {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, std::int32_t{CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F});
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, std::int32_t{CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F});
  }
#else
  if (format != ProductFormat::kFp8) throw Unsupported("block scales need cublasLt.h of CUDA 12.9");
#endif
}

void LtProduct::choose() {
  cublasLtMatmulPreference_t made = nullptr;
  check(lib_->preference_create(&made), "choosing a kernel");
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(&cublasLtMatmulPreferenceDestroy)> preference(
      made, lib_->preference_destroy);
  const std::size_t workspace = context_.workspace.bytes();
  check(lib_->preference_set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
        "choosing a kernel");
  std::array<cublasLtMatmulHeuristicResult_t, 8> found{};
  int count = 0;
  const cublasStatus_t status = lib_->heuristic(lib_->handle, desc_.get(), w_.get(), x_.get(), y_.get(), y_.get(), made,
                                                static_cast<int>(found.size()), found.data(), &count);
  // PyTorch and the engines use the first algorithm that can run.
  const auto* const end = found.cbegin() + std::clamp(count, 0, static_cast<int>(found.size()));
  const auto* const first =
      std::find_if(found.cbegin(), end, [](const auto& one) { return one.state == CUBLAS_STATUS_SUCCESS; });
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status, "choosing a kernel");
  if (status != CUBLAS_STATUS_SUCCESS || first == end) throw Unsupported("cuBLASLt has no kernel for this product");
  algo_ = first->algo;
}

void LtProduct::run(cudaStream_t stream, const void* x, const void* w, void* y) const {
  const float one = 1.0f, zero = 0.0f;
  const std::int32_t one_integer = 1, zero_integer = 0;
  const void* const alpha = integer_ ? static_cast<const void*>(&one_integer) : &one;
  const void* const beta = integer_ ? static_cast<const void*>(&zero_integer) : &zero;
  check(lib_->matmul(lib_->handle, desc_.get(), alpha, w, w_.get(), x, x_.get(), beta, y, y_.get(), y, y_.get(), &algo_,
                     context_.workspace.as<void>(), context_.workspace.bytes(), stream),
        "running a product");
}

std::string LtProduct::engine() const {
  const std::size_t v = lib_->version;  // 130100
  return fmt::format("cublaslt-{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

std::string LtProduct::kernel() const {
  const auto get = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
    std::int32_t value = -1;
    std::size_t written = 0;
    const cublasStatus_t status = lib_->algo_get(&algo_, attribute, &value, sizeof value, &written);
    return status == CUBLAS_STATUS_SUCCESS ? value : -1;
  };
  return fmt::format("algorithm {} tile {} split {}", get(CUBLASLT_ALGO_CONFIG_ID), get(CUBLASLT_ALGO_CONFIG_TILE_ID),
                     get(CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
}

}  // namespace roofcast::calibrate::cuda
