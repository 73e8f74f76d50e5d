#include "calibrate/cpu_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <thread>
#include <vector>

#include "base/error.h"
#include "calibrate/random_data.h"
#include "calibrate/reference.h"

namespace roofcast::calibrate {
namespace {

constexpr std::uint32_t kSeedA = 11, kSeedB = 12, kSeedC = 13;
constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

Seconds steady_now() {
  return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

std::vector<float> random_floats(std::size_t count, std::uint32_t seed) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = random_unit(seed, i);
  return out;
}

Element random_element(std::uint32_t seed, std::uint64_t offset) {
  return [=](std::uint64_t i) { return static_cast<double>(random_unit(seed, offset + i)); };
}

std::size_t size_of(const Point& point, std::string_view name) { return static_cast<std::size_t>(point.number(name)); }

class CpuCase : public Case {
 public:
  std::string engine() const override { return "roofcast-" ROOFCAST_VERSION; }
  std::string kernel() const override { return "plain C++"; }
  Flops flops() const override { return flops_; }
  Bytes bytes() const override { return bytes_; }
  Seconds time(int repeats) override {
    const Seconds start = steady_now();
    for (int i = 0; i < repeats; ++i) run();
    return (steady_now() - start) / repeats;
  }

 protected:
  virtual void run() = 0;
  Flops flops_{};
  Bytes bytes_{};
};

/// Sums, sets or copies words.
class Stream final : public CpuCase {
 public:
  explicit Stream(const Point& point)
      : kind_(point.word("kind")), in_(size_of(point, "bytes") / 8), out_(kind_ == "copy" ? in_.size() : 0) {
    for (std::size_t i = 0; i < in_.size(); ++i) in_[i] = random_bits(kSeedA, i);
    bytes_ = Bytes{static_cast<double>(in_.size() * 8) * (kind_ == "copy" ? 2.0 : 1.0)};
  }
  std::string check() override {
    run();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < in_.size(); ++i) sum += random_bits(kSeedA, i);
    if (kind_ == "read") return sum_ == sum ? "" : "the sum of the words is wrong";
    if (kind_ == "write") return in_.front() == rounds_ && in_.back() == rounds_ ? "" : "a word was not written";
    return out_ == in_ ? "" : "the copy differs";
  }

 private:
  void run() override {
    ++rounds_;
    if (kind_ == "read") {
      std::uint64_t sum = 0;
      for (const std::uint64_t word : in_) sum += word;
      sum_ = sum;
    } else if (kind_ == "write") {
      std::fill(in_.begin(), in_.end(), rounds_);
    } else {
      std::memcpy(out_.data(), in_.data(), in_.size() * 8);
    }
  }

  std::string kind_;
  std::vector<std::uint64_t> in_, out_;
  std::uint64_t rounds_ = 0;
  volatile std::uint64_t sum_ = 0;
};

/// y[m, n] = x[m, k] w[n, k]^T
class Product final : public CpuCase {
 public:
  explicit Product(const Point& point)
      : m_(size_of(point, "m")),
        n_(size_of(point, "n")),
        k_(size_of(point, "k")),
        x_(random_floats(m_ * k_, kSeedA)),
        w_(random_floats(n_ * k_, kSeedB)),
        y_(m_ * n_) {
    flops_ = Flops{2.0 * static_cast<double>(m_ * n_ * k_)};
    bytes_ = Bytes{4.0 * static_cast<double>(x_.size() + w_.size() + y_.size())};
  }
  std::string check() override {
    std::fill(y_.begin(), y_.end(), kPoison);
    run();
    std::vector<double> got, want;
    for (const std::uint64_t place : sample_places(y_.size(), 64, 1)) {
      got.push_back(static_cast<double>(y_[place]));
      want.push_back(
          reference_dot(k_, random_element(kSeedA, place / n_ * k_), random_element(kSeedB, place % n_ * k_)));
    }
    return differs(got, want, 1e-4, 16);
  }

 private:
  void run() override {
    for (std::size_t i = 0; i < m_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) {
        float sum = 0;
        for (std::size_t l = 0; l < k_; ++l) sum += x_[i * k_ + l] * w_[j * k_ + l];
        y_[i * n_ + j] = sum;
      }
    }
  }

  std::size_t m_, n_, k_;
  std::vector<float> x_, w_, y_;
};

/// Attention with an online softmax. Each of `queries` sees `context` keys; in a prompt, only those up to its own.
class Attention final : public CpuCase {
 public:
  Attention(const Point& point, bool prompt)
      : batch_(size_of(point, "batch")),
        heads_(size_of(point, "heads")),
        kv_heads_(size_of(point, "kv_heads")),
        d_(size_of(point, "head_dim")),
        context_(size_of(point, prompt ? "seq_len" : "context_len")),
        queries_(prompt ? context_ : 1),
        q_(random_floats(batch_ * queries_ * heads_ * d_, kSeedA)),
        k_(random_floats(batch_ * kv_heads_ * context_ * d_, kSeedB)),
        v_(random_floats(k_.size(), kSeedC)),
        out_(q_.size()) {
    double pairs = 0;
    for (std::size_t i = 0; i < queries_; ++i) pairs += static_cast<double>(visible(i));
    flops_ = Flops{4.0 * pairs * static_cast<double>(batch_ * heads_ * d_)};
    bytes_ = Bytes{4.0 * static_cast<double>(2 * q_.size() + 2 * k_.size())};
  }
  std::string check() override {
    std::fill(out_.begin(), out_.end(), kPoison);
    run();
    std::vector<double> got, want;
    for (const std::uint64_t row : sample_places(batch_ * queries_ * heads_, 8, 1)) {
      const std::size_t cache = cache_of(row);
      const std::vector<double> one =
          reference_attention(d_, visible(row / heads_ % queries_), random_element(kSeedA, row * d_),
                              random_element(kSeedB, cache), random_element(kSeedC, cache));
      want.insert(want.end(), one.begin(), one.end());
      for (std::size_t i = 0; i < d_; ++i) got.push_back(static_cast<double>(out_[row * d_ + i]));
    }
    return differs(got, want, 1e-3, 16);
  }

 private:
  std::size_t visible(std::size_t query) const { return context_ - queries_ + query + 1; }
  /// Index of the first key of a row (sequence, query, head).
  std::size_t cache_of(std::size_t row) const {
    const std::size_t head = row % heads_ * kv_heads_ / heads_, sequence = row / heads_ / queries_;
    return (sequence * kv_heads_ + head) * context_ * d_;
  }
  void run() override {
    for (std::size_t row = 0; row < batch_ * queries_ * heads_; ++row) {
      const float* q = &q_[row * d_];
      float* out = &out_[row * d_];
      std::fill(out, out + d_, 0.0f);
      float highest = -std::numeric_limits<float>::infinity(), total = 0;
      for (std::size_t t = 0; t < visible(row / heads_ % queries_); ++t) {
        const std::size_t at = cache_of(row) + t * d_;
        float score = 0;
        for (std::size_t i = 0; i < d_; ++i) score += q[i] * k_[at + i];
        score /= std::sqrt(static_cast<float>(d_));
        const float higher = std::max(highest, score), keep = std::exp(highest - higher),
                    weight = std::exp(score - higher);
        for (std::size_t i = 0; i < d_; ++i) out[i] = out[i] * keep + weight * v_[at + i];
        total = total * keep + weight;
        highest = higher;
      }
      for (std::size_t i = 0; i < d_; ++i) out[i] /= total;
    }
  }

  std::size_t batch_, heads_, kv_heads_, d_, context_, queries_;
  std::vector<float> q_, k_, v_, out_;
};

class CpuBackend final : public Backend {
 public:
  Device device() const override {
    const auto bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
    return {.name = "CPU, one core",
            .driver = "",
            .cuda = "",
            .compute_capability = "",
            .sm_count = 1,
            .devices = 1,
            .memory_bytes = bytes,
            .l2_bytes = 1 << 20};
  }
  DeviceState state() override { return {}; }
  bool knows(const std::string& op) const override {
    return op == "stream" || op == "gemm" || op == "attention_decode" || op == "attention_prefill";
  }
  std::unique_ptr<Case> prepare(const Point& point) override {
    if (!knows(point.op) || (point.op != "stream" && point.dtype != "bf16"))
      throw Unsupported(fmt::format("the CPU backend does not support {} in {}", point.op, point.dtype));
    try {
      if (point.op == "stream") return std::make_unique<Stream>(point);
      if (point.op == "gemm") return std::make_unique<Product>(point);
      return std::make_unique<Attention>(point, point.op == "attention_prefill");
    } catch (const std::bad_alloc&) {
      throw OutOfMemory("not enough memory for " + point.key());
    }
  }
  Seconds now() const override { return steady_now(); }
};

}  // namespace

std::unique_ptr<Backend> open_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace roofcast::calibrate
