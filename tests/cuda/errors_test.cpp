// Every call of the CUDA runtime and of the libraries fails in turn: nothing crashes, and what failed is named.

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "calibrate/harness.h"
#include "calibrate/kernels/cuda_backend.h"
#include "calibrate/kernels/launchers.h"
#include "calibrate/kernels/library.h"
#include "tests/cuda/stub.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

/// The stub runs no kernel, so results are wrong: the check is made, and then trusted.
class Trusted final : public Case {
 public:
  explicit Trusted(std::unique_ptr<Case> inner) : inner_(std::move(inner)) {}
  std::string engine() const override { return inner_->engine(); }
  std::string kernel() const override { return inner_->kernel(); }
  Flops flops() const override { return inner_->flops(); }
  Bytes bytes() const override { return inner_->bytes(); }
  std::string check() override {
    (void)inner_->check();
    return "";
  }
  Seconds time(int repeats) override { return inner_->time(repeats); }
  std::vector<Seconds> series(int repeats, int count, Seconds, const std::function<void()>& meanwhile) override {
    return inner_->series(repeats, count, Seconds{1e-9}, meanwhile);
  }

 private:
  std::unique_ptr<Case> inner_;
};

class TrustedBackend final : public Backend {
 public:
  TrustedBackend() : inner_(open_cuda_backend(0)) {}
  Device device() const override { return inner_->device(); }
  DeviceState state() override { return inner_->state(); }
  bool throttled() override { return inner_->throttled(); }
  bool sees_throttling() const override { return inner_->sees_throttling(); }
  bool knows(const std::string& op) const override { return inner_->knows(op); }
  Seconds now() const override { return inner_->now(); }
  std::unique_ptr<Case> prepare(const Point& point) override {
    return std::make_unique<Trusted>(inner_->prepare(point));
  }

 private:
  std::unique_ptr<Backend> inner_;
};

/// Two samples and no waiting: what counts is which calls are made.
HarnessOptions quick() {
  HarnessOptions options;
  options.min_samples = options.max_samples = 2;
  options.max_repeats = 2;
  options.warm_up = options.first_warm_up = options.least_sampled = options.settle = options.flag_lag = Seconds{};
  return options;
}

Point point(std::string op, std::string dtype, std::vector<std::pair<std::string, Point::Value>> shape) {
  return {.op = std::move(op), .dtype = std::move(dtype), .shape = std::move(shape)};
}

/// One of each kind of case.
std::vector<Point> points() {
  const auto product = [](std::string op, std::string dtype) {
    return point(std::move(op), std::move(dtype), {{"m", 16}, {"n", 128}, {"k", 256}});
  };
  Point loaded = product("gemm", "bf16");
  loaded.shape.emplace_back("load_ms", 1);
  return {
      point("stream", "", {{"kind", "read"}, {"bytes", 65536}, {"blocks", 4}}),
      point("stream", "", {{"kind", "copy"}, {"bytes", 4194304}, {"blocks", 4}}),
      point("launch", "", {{"kind", "graph"}}),
      point("launch", "", {{"kind", "graph_node"}}),
      point("copy", "", {{"direction", "host_to_device"}, {"memory", "pinned"}, {"bytes", 4096}}),
      point("tensor_rate", "bf16", {{"instruction", "wgmma"}}),
      point("elementwise", "bf16", {{"operation", "rope"}, {"tokens", 4}, {"width", 256}}),
      product("gemm", "bf16"),
      loaded,
      product("gemm", "fp8"),
      product("gemm", "fp8_block"),
      product("gemm", "int8"),
      product("gemm", "int4_wo"),
      product("skinny_gemm", "bf16"),
      point("attention_decode", "bf16",
            {{"batch", 1}, {"context_len", 512}, {"heads", 8}, {"kv_heads", 2}, {"head_dim", 128}}),
      point("attention_prefill", "bf16",
            {{"batch", 1}, {"seq_len", 64}, {"heads", 8}, {"kv_heads", 2}, {"head_dim", 64}}),
      point("moe", "bf16", {{"tokens", 8}, {"hidden_size", 128}, {"inter_size", 128}, {"top_k", 2}, {"experts", 4}}),
      point("all_reduce", "bf16", {{"gpus", 2}, {"elements", 256}})};
}

struct Outcome {
  std::optional<Record> record;
  std::string lost;  ///< why the device is of no further use; empty when it is
};
Outcome measured(Backend& backend, const Point& one) {
  Outcome out;
  try {
    out.record = measure_point(backend, one, 1.0 * kSecond, Seconds{}, quick());
  } catch (const Unavailable& error) {
    out.lost = error.what();
  }
  return out;
}

bool names_its_step(const std::string& text) {
  for (const char* who : {"CUDA: ", "cuBLASLt: ", "NCCL: "}) {
    if (text.starts_with(who) && text.find(": ", std::string(who).size()) != std::string::npos) return true;
  }
  return text.find("do not fit") != std::string::npos;  // memory
}

/// What may fail without a word: giving things back, asking for what may be unknown.
bool may_be_ignored(const std::string& function) {
  for (const char* end : {"Free", "FreeHost", "Destroy", "GetLastError", "ConfigGetAttribute"}) {
    if (function.ends_with(end)) return true;
  }
  return function.starts_with("nvml") || function == "cudaMemGetInfo" || function == "cudaSetDevice";
}

}  // namespace

TEST_CASE("stub: every kind of point is measured where nothing fails") {
  stub::reset();
  TrustedBackend backend;
  CHECK(backend.device().name == "stub");
  CHECK(backend.device().driver == "580.0");
  for (const Point& one : points()) {
    INFO(one.key());
    const Outcome out = measured(backend, one);
    REQUIRE(out.record);
    CHECK(out.record->note == "");
    CHECK(out.record->has_time());
    CHECK(out.record->during.sm_clock_mhz == 1980);
    if (one.op == "gemm" && one.dtype != "int4_wo") CHECK(out.record->engine == "cublaslt-13.1.0");
    if (one.op == "all_reduce") CHECK(out.record->engine == "nccl-2.28.9");
  }
}

TEST_CASE("stub: whichever call of opening the device fails, one line says so") {
  stub::reset();
  { TrustedBackend backend; }
  const int calls = stub::calls();
  REQUIRE(calls > 20);
  for (const int error : {cudaErrorInvalidValue, cudaErrorMemoryAllocation, cudaErrorLaunchFailure}) {
    for (int call = 0; call < calls; ++call) {
      stub::reset();
      stub::fail_at(call, error);
      std::string why;
      try {
        TrustedBackend backend;
      } catch (const Unavailable& unavailable) {
        why = unavailable.what();
      }
      INFO(stub::failed(), " ", call, ": ", why);
      const bool optional = may_be_ignored(stub::failed()) || stub::failed() == "cublasLtCreate" ||
                            stub::failed() == "cudaDriverGetVersion";
      CHECK((optional || why.find("calibrate measure: ") == 0));
    }
  }
}

TEST_CASE("stub: whichever call of a point fails, its record names the step, and the next point is measured") {
  const Point next = point("launch", "", {{"kind", "graph_node"}});
  for (const Point& one : points()) {
    stub::reset();
    auto backend = std::make_unique<TrustedBackend>();
    stub::reset();
    (void)measured(*backend, one);
    const int calls = stub::calls();
    REQUIRE(calls > 5);
    for (int call = 0; call < calls; ++call) {
      // one that a point can have, and one that ends the process or says that memory is short
      for (const int error :
           {cudaErrorInvalidValue, call % 2 == 0 ? cudaErrorMemoryAllocation : cudaErrorLaunchFailure}) {
        stub::reset();
        if (one.op == "all_reduce") backend = std::make_unique<TrustedBackend>();  // groups are joined once
        stub::reset();
        stub::fail_at(call, error);
        const Outcome out = measured(*backend, one);
        INFO(one.key(), ", call ", call, " ", stub::failed(), " answers ", error, ": ", out.lost,
             out.record ? out.record->note : "");
        if (!out.lost.empty()) {
          CHECK(error == cudaErrorLaunchFailure);
          CHECK(names_its_step(out.lost));
        } else {
          REQUIRE(out.record);
          CHECK((out.record->has_time() ? may_be_ignored(stub::failed()) || stub::failed().empty()
                                        : names_its_step(out.record->note)));
          const bool told = out.record->has_time() || out.record->stop == Stop::kFailed ||
                            out.record->stop == Stop::kOutOfMemory || out.record->stop == Stop::kUnsupported;
          CHECK(told);
        }
        stub::reset();
        const Outcome after = measured(*backend, next);
        CHECK((after.record && after.record->has_time()));
      }
    }
  }
}

TEST_CASE("stub: one communicator serves all sizes of message") {
  stub::reset();
  TrustedBackend backend;
  const auto calls_of = [&](std::int64_t elements) {
    const int before = stub::calls();
    const Outcome out = measured(backend, point("all_reduce", "bf16", {{"gpus", 2}, {"elements", elements}}));
    REQUIRE(out.record);
    CHECK(out.record->kernel == "ncclAllReduce, captured");
    return stub::calls() - before;
  };
  const int first = calls_of(256), second = calls_of(512);
  CHECK(first - second == 2);  // ncclGetVersion and ncclCommInitAll
}

TEST_CASE("stub: L2 is flushed by reading, and only where a case is to find it cold") {
  // A sample is a spin, the flush and a graph; what the graph holds was launched when it was captured.
  const auto launches_of_a_sample = [](const Point& one) {
    stub::reset();
    TrustedBackend backend;
    const std::unique_ptr<Case> subject = backend.prepare(one);
    (void)subject->time(1);
    stub::reset();
    (void)subject->time(1);
    CHECK(stub::calls("cudaMemset") == 0);
    CHECK(stub::calls("cudaGraphLaunch") == 1);
    return stub::calls("cudaLaunchKernel");
  };
  CHECK(launches_of_a_sample(point("gemm", "bf16", {{"m", 16}, {"n", 128}, {"k", 256}})) == 2);
  CHECK(launches_of_a_sample(point("stream", "", {{"kind", "read"}, {"bytes", 65536}, {"blocks", 4}})) == 1);
}

TEST_CASE("stub: a library is looked for under several names") {
  CHECK(cuda::Library({"libcublasLt.so.99", "libnccl.so.2"}).loaded());
  CHECK(!cuda::Library({"libcublasLt.so.99"}).loaded());
}

TEST_CASE("matrix loops: factors change from one instruction to the next, and all are used") {
  std::set<int> a, b;
  for (int u = 0; u < cuda::kRateUnroll; ++u) {
    const cuda::RateSets now = cuda::rate_sets(u), next = cuda::rate_sets((u + 1) % cuda::kRateUnroll);
    CHECK((now.a != next.a || now.b != next.b));
    a.insert(now.a);
    b.insert(now.b);
  }
  CHECK(a.size() == cuda::kRateSets);
  CHECK(b.size() == cuda::kRateSets);
}
