#include "calibrate/kernels/cuda_runtime.h"

#include <fmt/format.h>

#include "base/error.h"
#include "calibrate/reference.h"

namespace roofcast::calibrate::cuda {

namespace {

/// Whether no further CUDA work is possible: after these errors "any further CUDA work will return the same error"
/// (CUDA runtime API, cudaError_t), or there is no device.
bool ends_process(cudaError_t status) {
  switch (status) {
    case cudaErrorInitializationError:
    case cudaErrorCudartUnloading:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoDevice:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorContained:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // clears the error, so that the next call does not report it again
  const std::string text = fmt::format("CUDA: {}: {}", what, cudaGetErrorString(status));
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  if (ends_process(status)) throw Unavailable(text);
  throw Failed(text);
}

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const cudaError_t status = cudaMalloc(&data_, bytes);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    std::size_t left = 0, total = 0;
    (void)cudaMemGetInfo(&left, &total);
    throw OutOfMemory(fmt::format("{:.2f} GB do not fit the {:.2f} GB that are free", static_cast<double>(bytes) / 1e9,
                                  static_cast<double>(left) / 1e9));
  }
  check(status, "allocating memory");
}

Seconds Event::since(const Event& start) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "timing");
  return static_cast<double>(milliseconds) * kMillisecond;
}

void Graph::finish(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "ending a graph");
  if (!graph) throw Failed("CUDA: ending a graph: the graph is empty");
  const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
  (void)cudaGraphDestroy(graph);
  if (status != cudaSuccess) executable_ = nullptr;
  check(status, "instantiating a graph");
  check(cudaGraphUpload(executable_, stream), "uploading a graph");
}

void Graph::reset() {
  if (executable_) (void)cudaGraphExecDestroy(executable_);
  executable_ = nullptr;
}

std::vector<double> fetch_bf16(const std::uint16_t* from, const std::vector<std::uint64_t>& places) {
  std::vector<double> out;
  for (const double bits : fetch(from, places)) out.push_back(bf16_value(static_cast<std::uint16_t>(bits)));
  return out;
}

void upload(DeviceMemory& to, const void* from, std::size_t bytes) {
  to = DeviceMemory(bytes);
  check(cudaMemcpy(to.as<void>(), from, bytes, cudaMemcpyHostToDevice), "copying to the device");
}

void poison(const DeviceMemory& memory) {
  if (memory.bytes() == 0) return;
  check(cudaMemset(memory.as<void>(), 0xFF, memory.bytes()), "poisoning an output");
  check(cudaDeviceSynchronize(), "poisoning an output");
}

}  // namespace roofcast::calibrate::cuda
