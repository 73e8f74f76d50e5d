// The functions of the CUDA runtime that calibrate/kernels calls, in place of libcudart.

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "tests/cuda/stub.h"

namespace roofcast::stub {
namespace {

int g_calls = 0, g_fail_at = -1, g_error = 0;
bool g_lost = false, g_capturing = false;
int g_last = 0;  ///< what cudaGetLastError gives once
std::string g_failed;
std::map<void*, std::size_t> g_memory;
std::map<std::string, int> g_calls_of;

/// After which a process is of no further use.
bool ends_process(int error) { return error == cudaErrorLaunchFailure || error == cudaErrorIllegalAddress; }

}  // namespace

void reset() {
  g_calls = 0;
  g_fail_at = -1;
  g_error = g_last = 0;
  g_lost = g_capturing = false;
  g_failed.clear();
  g_calls_of.clear();
}
void fail_at(int call, int error) {
  g_fail_at = call;
  g_error = error;
}
int calls() { return g_calls; }
int calls(const std::string& function) { return g_calls_of[function]; }
const std::string& failed() { return g_failed; }

}  // namespace roofcast::stub

using namespace roofcast::stub;

extern "C" int roofcast_stub_answer(const char* function, bool of_runtime) {
  ++g_calls_of[function];
  const bool now = g_calls++ == g_fail_at;
  if (now) {
    g_failed = function;
    g_lost = of_runtime && ends_process(g_error);
  }
  const int answer = now || (g_lost && of_runtime) ? g_error : 0;
  if (answer != 0 && of_runtime) g_last = answer;
  return answer;
}

namespace {
cudaError_t answer(const char* function) { return static_cast<cudaError_t>(roofcast_stub_answer(function, true)); }
}  // namespace

#define ANSWER() \
  if (const cudaError_t error = answer(__func__); error != cudaSuccess) return error

// Large memory is never touched as a whole: it costs nothing.
cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  ANSWER();
  void* const at = mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return cudaErrorMemoryAllocation;
  g_memory[at] = std::max<std::size_t>(bytes, 1);
  *to = at;
  return cudaSuccess;
}
cudaError_t cudaFree(void* at) {
  if (at == nullptr) return cudaSuccess;
  const auto found = g_memory.find(at);
  if (found == g_memory.end()) std::abort();  // freed twice
  munmap(at, found->second);
  g_memory.erase(found);
  return answer(__func__);
}
cudaError_t cudaMallocHost(void** to, std::size_t bytes) {
  ANSWER();
  *to = std::calloc(bytes, 1);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* at) {
  std::free(at);
  return answer(__func__);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  ANSWER();
  std::memcpy(to, from, std::min<std::size_t>(bytes, 1 << 20));
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t) { return answer(__func__); }
cudaError_t cudaMemset(void*, int, std::size_t) { return answer(__func__); }
cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* total) {
  ANSWER();
  *left = std::size_t{80} << 30;
  *total = std::size_t{85} << 30;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  (void)answer(__func__);
  return static_cast<cudaError_t>(g_lost ? g_error : std::exchange(g_last, 0));
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory"
         : error == cudaErrorLaunchFailure  ? "unspecified launch failure"
                                            : "an error of the stub";
}
cudaError_t cudaDriverGetVersion(int* version) {
  ANSWER();
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  ANSWER();
  *count = 2;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  ANSWER();
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return answer(__func__); }
cudaError_t cudaDeviceSynchronize() { return answer(__func__); }
cudaError_t cudaDeviceGetPCIBusId(char* to, int size, int) {
  ANSWER();
  std::strncpy(to, "0000:01:00.0", static_cast<std::size_t>(size));
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  ANSWER();
  *p = {};
  std::strncpy(p->name, "stub", sizeof p->name - 1);
  p->major = 9;
  p->multiProcessorCount = 4;
  p->l2CacheSize = 1 << 20;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return answer(__func__); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  ANSWER();
  *stream = reinterpret_cast<cudaStream_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::free(stream);
  return answer(__func__);
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  if (g_capturing) std::abort();  // not allowed within a capture
  return answer(__func__);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return answer(__func__); }
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  if (g_capturing) std::abort();
  ANSWER();
  g_capturing = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  g_capturing = false;
  *graph = nullptr;
  ANSWER();
  *graph = reinterpret_cast<cudaGraph_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  if (graph == nullptr) std::abort();
  ANSWER();
  *made = reinterpret_cast<cudaGraphExec_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  std::free(graph);
  return answer(__func__);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t made) {
  std::free(made);
  return answer(__func__);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return answer(__func__); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t made, cudaStream_t) {
  if (made == nullptr) std::abort();
  return answer(__func__);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  ANSWER();
  *event = reinterpret_cast<cudaEvent_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::free(event);
  return answer(__func__);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (event == nullptr) std::abort();
  return answer(__func__);
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return answer(__func__); }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  ANSWER();
  *ms = 1.0f;
  return cudaSuccess;
}

// What nvcc's own code calls: kernels are known and not run. A launch that fails shows in cudaGetLastError.
extern "C" {
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*) {}
unsigned __cudaPushCallConfiguration(dim3, dim3, std::size_t, cudaStream_t) { return 0; }
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) { return cudaSuccess; }
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void*) {
  *kernel = nullptr;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return answer("cudaLaunchKernel");
}
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) { return answer(__func__); }
}
