#include "calibrate/kernels/cublas_lt.h"

#include <fmt/format.h>

namespace roofcast::cuda {
namespace {

cudaDataType_t input_type(ProductFormat format) {
  switch (format) {
    case ProductFormat::kBf16:
      return CUDA_R_16BF;
    case ProductFormat::kFp16:
      return CUDA_R_16F;
    case ProductFormat::kFp8:
      return CUDA_R_8F_E4M3;
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
  throw Unsupported(text);
}

CublasLt::CublasLt() : library_({"libcublasLt.so.13", "libcublasLt.so"}) {
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
  if (!whole) throw Unsupported("libcublasLt.so.13 was not found");
  check(create(&handle), "starting");
  version = get_version();
}

CublasLt::~CublasLt() {
  if (handle) (void)destroy_(handle);
}

std::size_t input_bytes(ProductFormat format) {
  return format == ProductFormat::kBf16 || format == ProductFormat::kFp16 ? 2 : 1;
}
std::size_t output_bytes(ProductFormat format) { return format == ProductFormat::kInt8 ? 4 : 2; }

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
  if (format == ProductFormat::kFp8 && context.capability() < 89)
    throw Unsupported("fp8 products need compute capability 8.9");
  describe(format);
  choose();
}

/// fp8 with fast accumulation and a scale a tensor, as engines call it.
void LtProduct::describe(ProductFormat format) {
  cublasLtMatmulDesc_t made = nullptr;
  check(
      lib_->desc_create(&made, integer_ ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F, integer_ ? CUDA_R_32I : CUDA_R_32F),
      "describing a product");
  desc_.reset(made);
  const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
  check(lib_->desc_set(made, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), "describing a product");
  check(lib_->desc_set(made, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof plain), "describing a product");
  if (format != ProductFormat::kFp8) return;
  const float ones[2] = {1.0f, 1.0f};
  upload(scales_, ones, sizeof ones);
  const float* const scale = scales_.as<float>();
  const std::int8_t fast = 1;
  check(lib_->desc_set(made, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, sizeof scale), "describing a product");
  check(lib_->desc_set(made, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scale, sizeof scale), "describing a product");
  check(lib_->desc_set(made, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast), "describing a product");
}

void LtProduct::choose() {
  cublasLtMatmulPreference_t made = nullptr;
  check(lib_->preference_create(&made), "choosing a kernel");
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(&cublasLtMatmulPreferenceDestroy)> preference(
      made, lib_->preference_destroy);
  const std::size_t workspace = context_.workspace.bytes();
  check(lib_->preference_set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
        "choosing a kernel");
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  check(lib_->heuristic(lib_->handle, desc_.get(), w_.get(), x_.get(), y_.get(), y_.get(), made, 1, &found, &count),
        "choosing a kernel");
  if (count == 0) throw Unsupported("cuBLASLt has no kernel for this product");
  check(found.state, "choosing a kernel");
  algo_ = found.algo;
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

std::string LtProduct::kernel() const {
  const auto get = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
    std::int32_t value = -1;
    std::size_t written = 0;
    const cublasStatus_t status = lib_->algo_get(&algo_, attribute, &value, sizeof value, &written);
    return status == CUBLAS_STATUS_SUCCESS ? value : -1;
  };
  return fmt::format("cublasLt {} algorithm {} tile {} split {}", lib_->version, get(CUBLASLT_ALGO_CONFIG_ID),
                     get(CUBLASLT_ALGO_CONFIG_TILE_ID), get(CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
}

}  // namespace roofcast::cuda
