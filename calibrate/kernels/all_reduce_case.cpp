// NCCL's all-reduce over NVLink or PCIe, with one process for all GPUs. The calls are captured into one CUDA graph that
// spans the GPUs (NCCL user guide, "Using NCCL with CUDA graphs"): the host launches once, so its speed is not
// measured.

#include <fmt/format.h>

#include "calibrate/kernels/cuda_case.h"
#include "calibrate/kernels/launchers.h"
#include "calibrate/kernels/nccl.h"
#include "calibrate/random_data.h"
#include "calibrate/reference.h"

namespace roofcast::calibrate::cuda {
namespace {

/// Makes a device current and restores the previous one.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    cuda::check(cudaGetDevice(&before_), "asking for the device");
    cuda::check(cudaSetDevice(device), "choosing a device");
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { (void)cudaSetDevice(before_); }

 private:
  int before_ = 0;
};

/// The buffers of one GPU.
struct Rank {
  DeviceMemory in, out;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Event> end;
};

class AllReduceCase final : public CudaCase {
 public:
  AllReduceCase(const Context& context, const Point& point, std::shared_ptr<const Nccl> nccl)
      : CudaCase(context),
        count_(static_cast<std::size_t>(point.number("elements"))),
        nccl_(std::move(nccl)),
        ranks_(static_cast<std::size_t>(point.number("gpus"))) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const OnDevice on(static_cast<int>(i));
      Rank& rank = ranks_[i];
      rank.stream = std::make_unique<Stream>();
      rank.end = std::make_unique<Event>();
      rank.in = DeviceMemory(count_ * 2);
      rank.out = DeviceMemory(count_ * 2);
      fill(*rank.stream, rank.in.as<void>(), count_, Fill::kBf16, kSeedX + static_cast<std::uint32_t>(i));
      rank.stream->wait();
      in_.push_back(rank.in.as<void>());
      out_.push_back(rank.out.as<void>());
      streams_.push_back(*rank.stream);
    }
    bytes_ = Bytes{2.0 * static_cast<double>(count_)};
    leave_warm();  // the input was just written by the GEMM whose result is reduced
  }
  ~AllReduceCase() override {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      (void)cudaSetDevice(static_cast<int>(i));
      ranks_[i] = Rank{};
    }
    (void)cudaSetDevice(context_.device);
  }
  std::string engine() const override { return "nccl-" + nccl_->version(); }
  std::string kernel() const override { return "ncclAllReduce, captured"; }
  std::string check() override {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const OnDevice on(static_cast<int>(i));
      poison(ranks_[i].out);
    }
    nccl_->all_reduce(in_, out_, count_, streams_);
    for (const Rank& rank : ranks_) rank.stream->wait();
    const std::vector<std::uint64_t> places = sample_places(count_, 32, 1);
    std::vector<double> want(places.size(), 0.0);
    for (std::size_t p = 0; p < places.size(); ++p) {
      for (std::uint32_t i = 0; i < ranks_.size(); ++i)
        want[p] += static_cast<double>(random_unit(kSeedX + i, places[p]));
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const OnDevice on(static_cast<int>(i));
      const std::string wrong = differs(fetch_bf16(ranks_[i].out.as<std::uint16_t>(), places), want, 0.02, 6);
      if (!wrong.empty()) return fmt::format("rank {}: {}", i, wrong);
    }
    return "";
  }

 private:
  /// Every rank's stream begins after the work in `stream`, and `stream` continues when all ranks have ended.
  void enqueue(cudaStream_t stream, int) override {
    fork_.record(stream);
    for (const cudaStream_t rank : streams_) fork_.hold_back(rank);
    nccl_->all_reduce(in_, out_, count_, streams_);
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      ranks_[i].end->record(streams_[i]);
      ranks_[i].end->hold_back(stream);
    }
  }

  std::size_t count_;
  std::shared_ptr<const Nccl> nccl_;
  std::vector<Rank> ranks_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::vector<cudaStream_t> streams_;
  Event fork_;  ///< on the first device
};

}  // namespace

std::unique_ptr<Case> make_all_reduce_case(const Context& context, const Point& point, NcclGroups& groups) {
  return std::make_unique<AllReduceCase>(context, point, groups.of(whole(point, "gpus")));
}

}  // namespace roofcast::calibrate::cuda
