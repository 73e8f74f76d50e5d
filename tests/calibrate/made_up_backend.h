#pragma once
// A device whose kernels take as long as a test says, with noise, on a clock of its own: a run of minutes takes none.

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "calibrate/backend.h"

namespace roofcast {
using namespace calibrate;

struct MadeUpDevice {
  Device device{.name = "made up",
                .driver = "1",
                .cuda = "13.0",
                .compute_capability = "9.0",
                .sm_count = 132,
                .devices = 1,
                .memory_bytes = 85.0e9,
                .l2_bytes = 50e6};
  std::function<Seconds(const Point&)> time = [](const Point&) { return 10.0 * kMicrosecond; };
  double noise = 0.0;                                                     ///< relative standard deviation of a call
  std::function<bool(int sample)> throttled = [](int) { return false; };  ///< such samples take 1.3 times as long
  std::set<std::string> too_large, wrong, unknown, refused;               ///< keys of points
  std::string engine = "roofcast-test";
  /// A power limit: after so much time at work the clock falls, and with it the time of a call grows by `slower`; idle
  /// for half as long, it rises again. Zero: none.
  Seconds heats_in{};
  double slower = 1.25;
  Seconds flag_lag{};  ///< a reading of throttled() is so old
  Seconds preparation{1e-3};
};

class MadeUpBackend final : public Backend {
 public:
  explicit MadeUpBackend(MadeUpDevice what) : what_(std::move(what)) {}

  Device device() const override { return what_.device; }
  DeviceState state() override {
    return {.sm_clock_mhz = hot() ? 1980 / what_.slower : 1980, .temperature_c = 40, .throttled = throttled()};
  }
  bool throttled() override { return throttled_ || flag_at(now_ - what_.flag_lag); }
  bool sees_throttling() const override { return true; }
  void wait(Seconds time) override {
    now_ += time;
    heat_ = std::max(Seconds{}, heat_ - 2.0 * time);
    note_flag();
  }
  bool knows(const std::string&) const override { return true; }
  Seconds now() const override { return now_; }
  std::unique_ptr<Case> prepare(const Point& point) override {
    now_ += what_.preparation;
    ++prepared;
    if (what_.too_large.contains(point.key())) throw OutOfMemory("too large");
    if (what_.refused.contains(point.key())) throw Failed("CUDA: launching: invalid argument");
    if (what_.unknown.contains(point.key())) throw Unsupported("no such kernel");
    return std::make_unique<MadeUpCase>(*this, point);
  }

  int prepared = 0, samples = 0;

 private:
  class MadeUpCase final : public Case {
   public:
    MadeUpCase(MadeUpBackend& backend, Point point) : backend_(backend), point_(std::move(point)) {}
    std::string engine() const override { return backend_.what_.engine; }
    std::string kernel() const override { return "made up"; }
    Flops flops() const override { return Flops{1e6}; }
    Bytes bytes() const override { return Bytes{1e6}; }
    std::string check() override { return backend_.what_.wrong.contains(point_.key()) ? "element 3 differs" : ""; }
    Seconds time(int repeats) override {
      MadeUpDevice& what = backend_.what_;
      backend_.throttled_ = what.throttled(backend_.samples++);
      const double factor =
          std::max(0.2, 1.0 + what.noise * backend_.random_.normal()) * (backend_.throttled_ ? 1.3 : 1.0);
      const Seconds call = what.time(point_) * factor * (backend_.hot() ? what.slower : 1.0);
      backend_.work(call * repeats);
      return call;
    }

   private:
    MadeUpBackend& backend_;
    Point point_;
  };

  bool hot() const { return what_.heats_in > Seconds{} && heat_ >= what_.heats_in; }
  void work(Seconds time) {
    now_ += time;
    if (what_.heats_in > Seconds{}) heat_ = std::min(heat_ + time, 1.5 * what_.heats_in);
    note_flag();
  }
  void note_flag() {
    if (flags_.empty() || flags_.back().second != hot()) flags_.emplace_back(now_, hot());
  }
  bool flag_at(Seconds when) const {
    bool flag = false;
    for (const auto& [since, value] : flags_) {
      if (since <= when) flag = value;
    }
    return flag;
  }

  MadeUpDevice what_;
  Seconds heat_{};
  std::vector<std::pair<Seconds, bool>> flags_;
  Random random_{7};
  Seconds now_{0.0};
  bool throttled_ = false;
};

}  // namespace roofcast
