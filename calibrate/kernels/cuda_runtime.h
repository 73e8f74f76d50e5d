#pragma once
// The CUDA runtime with exceptions for errors and memory that frees itself. Used only in this folder.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/backend.h"

namespace roofcast::calibrate::cuda {

/// Throws OutOfMemory for a failed allocation, Unavailable if this process can no longer use the device, else Failed:
/// "CUDA: what: why".
void check(cudaError_t status, const char* what);

class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory() { (void)cudaFree(data_); }

  std::size_t bytes() const { return bytes_; }
  template <class T>
  T* as(std::size_t byte_offset = 0) const {
    return reinterpret_cast<T*>(static_cast<char*>(data_) + byte_offset);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { (void)cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "running kernels"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "making an event"); }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (event_) (void)cudaEventDestroy(event_);
  }
  void record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "recording an event"); }
  void wait() const { check(cudaEventSynchronize(event_), "running kernels"); }
  void hold_back(cudaStream_t stream) const { check(cudaStreamWaitEvent(stream, event_, 0), "joining streams"); }
  Seconds since(const Event& start) const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// Work captured from a stream and launched as one graph.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { reset(); }

  template <class Enqueue>
  void capture(cudaStream_t stream, Enqueue enqueue) {
    reset();
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a graph");
    try {
      enqueue();
    } catch (...) {
      cudaGraph_t half = nullptr;
      (void)cudaStreamEndCapture(stream, &half);
      if (half) (void)cudaGraphDestroy(half);
      throw;
    }
    finish(stream);
  }
  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream), "launching a graph"); }

 private:
  void finish(cudaStream_t stream);
  void reset();

  cudaGraphExec_t executable_ = nullptr;
};

/// Shared by all cases on one device.
struct Context {
  int device = 0;
  cudaDeviceProp properties{};
  Stream stream;
  Event start, stop;
  DeviceMemory flush;       ///< twice the size of L2: reading it evicts everything else
  DeviceMemory flush_sums;  ///< the result of that read
  DeviceMemory workspace;   ///< for library kernels, 32 MiB
  int sms() const { return properties.multiProcessorCount; }
  std::size_t l2_bytes() const { return static_cast<std::size_t>(properties.l2CacheSize); }
  int capability() const { return 10 * properties.major + properties.minor; }  ///< 90
};

/// Values on the device as doubles, copied one by one.
std::vector<double> fetch_bf16(const std::uint16_t* from, const std::vector<std::uint64_t>& places);
template <class T>
std::vector<double> fetch(const T* from, const std::vector<std::uint64_t>& places) {
  std::vector<double> out;
  for (const std::uint64_t place : places) {
    T value{};
    check(cudaMemcpy(&value, from + place, sizeof(T), cudaMemcpyDeviceToHost), "reading a result");
    out.push_back(static_cast<double>(value));
  }
  return out;
}

void upload(DeviceMemory& to, const void* from, std::size_t bytes);
/// Sets every byte to 0xFF: NaN in any float format.
void poison(const DeviceMemory& memory);

inline std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

}  // namespace roofcast::calibrate::cuda
