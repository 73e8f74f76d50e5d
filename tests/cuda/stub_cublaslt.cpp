// libcublasLt.so.13 of the stub.

#include <cublasLt.h>

#include <cstdlib>
#include <new>

#include "tests/cuda/stub.h"

namespace {
/// The n-th error of a library is one it has: CUBLAS_STATUS_EXECUTION_FAILED, whatever the runtime would have said.
cublasStatus_t answer(const char* function) {
  return roofcast_stub_answer(function, false) == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
template <class Handle>
cublasStatus_t make(Handle* to, const char* function) {
  const cublasStatus_t status = answer(function);
  if (status == CUBLAS_STATUS_SUCCESS) *to = static_cast<Handle>(std::malloc(1));
  return status;
}
cublasStatus_t free_it(void* what, const char* function) {
  std::free(what);
  return answer(function);
}
}  // namespace

extern "C" {
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return make(handle, __func__); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return free_it(handle, __func__); }
size_t cublasLtGetVersion() { return 130100; }
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
                              const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t,
                              void*, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
  return answer(__func__);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t found[],
                                              int* count) {
  found[0].state = CUBLAS_STATUS_NOT_SUPPORTED;  // the first does not always do
  found[1].state = CUBLAS_STATUS_SUCCESS;
  *count = 2;
  return answer(__func__);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* to, cublasComputeType_t, cudaDataType_t) {
  return make(to, __func__);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t what) { return free_it(what, __func__); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*,
                                              size_t) {
  return answer(__func__);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* to, cudaDataType, uint64_t, uint64_t, int64_t) {
  return make(to, __func__);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t what) { return free_it(what, __func__); }
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* to) { return make(to, __func__); }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t what) { return free_it(what, __func__); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return answer(__func__);
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t*, cublasLtMatmulAlgoConfigAttributes_t,
                                                    void*, size_t, size_t*) {
  return answer(__func__);
}
}
