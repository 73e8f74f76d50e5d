// Streams, copies over PCIe, and launches.

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "calibrate/grid.h"
#include "calibrate/kernels/cuda_case.h"
#include "calibrate/kernels/launchers.h"
#include "calibrate/random_data.h"
#include "calibrate/reference.h"

namespace roofcast::calibrate::cuda {
namespace {

Seconds host_now() {
  return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

/// Reads, writes or copies. Data of up to half of L2 stay there, to measure its bandwidth.
class StreamCase final : public CudaCase {
 public:
  StreamCase(const Context& context, const Point& point)
      : CudaCase(context),
        kind_(point.word("kind")),
        size_(static_cast<std::size_t>(point.number("bytes")) / 16 * 16),
        blocks_(whole(point, "blocks")),
        sums_(read_sums(blocks_) * sizeof(std::uint32_t)) {
    const bool reads = kind_ != "write", writes = kind_ != "read";
    if (size_ == 0) throw Unsupported("nothing to stream");
    if (reads) {
      in_ = DeviceMemory(size_);
      fill(context_.stream, in_.as<void>(), size_ / 4, Fill::kWords, kSeedX);
    }
    if (writes) out_ = DeviceMemory(size_);
    context_.stream.wait();
    const double set = static_cast<double>(size_) * ((reads ? 1 : 0) + (writes ? 1 : 0));
    if (set <= 0.5 * static_cast<double>(context_.l2_bytes())) {
      leave_warm();
      rounds_ = rounds_in_l2(Bytes{set});
    }
    bytes_ = Bytes{set * rounds_};
  }
  std::string kernel() const override {
    return fmt::format("{} blocks of 512 threads, 16 bytes per access, {} rounds per launch", blocks_, rounds_);
  }
  std::string check() override {
    poison(sums_);
    if (out_.bytes() > 0) poison(out_);
    run_once();
    if (kind_ == "read") return check_read();
    const std::vector<std::uint64_t> places = sample_places(size_ / 4, 64, 1);
    const std::vector<double> got = fetch(out_.as<std::uint32_t>(), places);
    std::vector<double> want;
    for (const std::uint64_t i : places)
      want.push_back(kind_ == "copy" ? random_bits(kSeedX, i)
                     : i % 4 == 3    ? kPattern + static_cast<std::uint32_t>(rounds_ - 1)
                                     : static_cast<std::uint32_t>(i / 4));
    return differs(got, want, 1e-12, 50);
  }

 private:
  static constexpr std::uint32_t kPattern = 0xC0FFEEu;

  /// Checks the first 4 MiB, because all of it would take the CPU too long.
  std::string check_read() {
    const std::size_t part = std::min<std::size_t>(size_, 4 << 20);
    read(context_.stream, blocks_, in_.as<void>(), part, sums_.as<std::uint32_t>(), 3);
    context_.stream.wait();
    std::vector<std::uint32_t> sums(read_sums(blocks_));
    cuda::check(cudaMemcpy(sums.data(), sums_.as<void>(), sums.size() * 4, cudaMemcpyDeviceToHost), "reading a result");
    std::uint32_t all = 0;
    for (const std::uint32_t sum : sums) all ^= sum;
    for (std::size_t i = 0; i < part / 4; ++i) all ^= random_bits(kSeedX, i);
    return all == 0 ? "" : "the exclusive or of all words is wrong";
  }
  void enqueue(cudaStream_t stream, int) override {
    if (kind_ == "read") return read(stream, blocks_, in_.as<void>(), size_, sums_.as<std::uint32_t>(), rounds_);
    if (kind_ == "write") return write(stream, blocks_, out_.as<void>(), size_, kPattern, rounds_);
    copy(stream, blocks_, in_.as<void>(), out_.as<void>(), size_, rounds_);
  }

  std::string kind_;
  std::size_t size_;
  int blocks_, rounds_ = 1;
  DeviceMemory sums_, in_, out_;
};

/// cudaMemcpyAsync between host and device, timed by the host's clock.
class CopyCase final : public CudaCase {
 public:
  CopyCase(const Context& context, const Point& point)
      : CudaCase(context),
        up_(point.word("direction") == "host_to_device"),
        pinned_(point.word("memory") == "pinned"),
        size_(static_cast<std::size_t>(point.number("bytes"))),
        device_(size_),
        plain_(pinned_ ? 0 : size_) {
    if (pinned_) cuda::check(cudaMallocHost(&locked_, size_), "allocating pinned memory");
    for (std::size_t i = 0; i < size_; ++i) host()[i] = static_cast<unsigned char>(random_bits(kSeedX, i));
    bytes_ = Bytes{static_cast<double>(size_)};
  }
  CopyCase(const CopyCase&) = delete;
  CopyCase& operator=(const CopyCase&) = delete;
  ~CopyCase() override { (void)cudaFreeHost(locked_); }
  std::string kernel() const override { return "cudaMemcpyAsync"; }
  std::string check() override {
    const std::vector<unsigned char> want(host(), host() + size_);
    poison(device_);
    cuda::check(cudaMemcpy(device_.as<void>(), host(), size_, cudaMemcpyHostToDevice), "copying");
    std::memset(host(), 0, size_);
    cuda::check(cudaMemcpy(host(), device_.as<void>(), size_, cudaMemcpyDeviceToHost), "copying");
    return std::memcmp(host(), want.data(), size_) == 0 ? "" : "the copied data differ";
  }
  Seconds time(int repeats) override {
    const Seconds start = host_now();
    for (int i = 0; i < repeats; ++i) {
      enqueue(context_.stream, 0);
      context_.stream.wait();
    }
    return (host_now() - start) / repeats;
  }

 private:
  unsigned char* host() { return pinned_ ? static_cast<unsigned char*>(locked_) : plain_.data(); }
  void enqueue(cudaStream_t stream, int) override {
    void* const device = device_.as<void>();
    cuda::check(up_ ? cudaMemcpyAsync(device, host(), size_, cudaMemcpyHostToDevice, stream)
                    : cudaMemcpyAsync(host(), device, size_, cudaMemcpyDeviceToHost, stream),
                "copying");
  }

  bool up_, pinned_;
  std::size_t size_;
  DeviceMemory device_;
  std::vector<unsigned char> plain_;
  void* locked_ = nullptr;
};

/// An empty kernel: launched from the host one by one, as a graph of one node, and as one of many nodes in a graph.
class LaunchCase final : public CudaCase {
 public:
  LaunchCase(const Context& context, const Point& point) : CudaCase(context), kind_(point.word("kind")) {
    leave_warm();
    if (kind_ == "graph") one_.capture(context_.stream, [&] { empty_kernel(context_.stream); });
  }
  std::string kernel() const override { return "empty"; }
  std::string check() override { return ""; }
  Seconds time(int repeats) override {
    if (kind_ == "graph_node") return CudaCase::time(repeats);
    context_.stream.wait();
    const Seconds start = host_now();
    for (int i = 0; i < repeats; ++i) {
      if (kind_ == "graph") {
        one_.launch(context_.stream);
      } else {
        empty_kernel(context_.stream);
      }
    }
    context_.stream.wait();
    return (host_now() - start) / repeats;
  }

 private:
  void enqueue(cudaStream_t stream, int) override { empty_kernel(stream); }

  std::string kind_;
  Graph one_;
};

}  // namespace

std::unique_ptr<Case> make_memory_case(const Context& context, const Point& point) {
  if (point.op == "stream") return std::make_unique<StreamCase>(context, point);
  if (point.op == "copy") return std::make_unique<CopyCase>(context, point);
  return std::make_unique<LaunchCase>(context, point);
}

}  // namespace roofcast::calibrate::cuda
