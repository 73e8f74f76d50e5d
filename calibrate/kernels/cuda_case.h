#pragma once
// Shared by all cases on a GPU: a CUDA graph of calls, timed by events, with data that are not in L2.

#include <memory>
#include <string>
#include <vector>

#include "calibrate/kernels/cublas_lt.h"
#include "calibrate/kernels/cuda_runtime.h"
#include "calibrate/kernels/nccl.h"
#include "calibrate/start_gate.h"

namespace roofcast::calibrate::cuda {

class CudaCase : public Case {
 public:
  explicit CudaCase(const Context& context) : context_(context) {}
  std::string engine() const override { return "roofcast-" ROOFCAST_VERSION; }
  Flops flops() const override { return flops_; }
  Bytes bytes() const override { return bytes_; }
  /// Times a graph of `repeats` calls, slot after slot. Before that, L2 is flushed unless the case is to find it warm,
  /// and the device is kept busy until everything is queued, so that no host launch is timed.
  Seconds time(int repeats) override;
  /// `count` such graphs back to back, with an event after each.
  std::vector<Seconds> series(int repeats, int count, Seconds call, const std::function<void()>& meanwhile) override;

 protected:
  /// One call on slot `slot`.
  virtual void enqueue(cudaStream_t stream, int slot) = 0;
  /// Returns the number of slots of this size such that a slot has left L2 when it is used again: four times L2 in
  /// total, at most 300.
  int rotate(std::size_t slot_bytes);
  void leave_warm() { cold_ = false; }
  /// Runs one call on slot 0 and waits for it.
  void run_once();

  const Context& context_;
  Flops flops_{};
  Bytes bytes_{};

 private:
  void capture(int repeats);
  int slots_ = 1, captured_ = 0;
  bool cold_ = true;
  Graph graph_;
  StartGate gate_;
};

inline constexpr std::uint32_t kSeedX = 101, kSeedW = 102, kSeedV = 103, kSeedScale = 104;

/// Reads twice the size of L2, so that L2 has no earlier lines, nor any that must be written back.
void flush(const Context& context);
inline constexpr int kFlushBlocksPerSm = 4;

int whole(const Point& point, std::string_view name);  ///< as an int; throws Unsupported if out of range

// The factory functions of the cases, one per file. They throw Unsupported for points of other cases.
std::unique_ptr<Case> make_memory_case(const Context& context, const Point& point);       // stream, copy, launch
std::unique_ptr<Case> make_rate_case(const Context& context, const Point& point);         // tensor_rate
std::unique_ptr<Case> make_elementwise_case(const Context& context, const Point& point);  // elementwise
std::unique_ptr<Case> make_attention_case(const Context& context, const Point& point);
std::unique_ptr<Case> make_product_case(const Context& context, const Point& point,
                                        std::shared_ptr<const CublasLt> lib);
std::unique_ptr<Case> make_expert_case(const Context& context, const Point& point);  // moe
std::unique_ptr<Case> make_decode_step(const Context& context, const Point& point, std::shared_ptr<const CublasLt> lib);
std::unique_ptr<Case> make_all_reduce_case(const Context& context, const Point& point, NcclGroups& groups);

}  // namespace roofcast::calibrate::cuda
