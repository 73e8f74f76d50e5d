#include "calibrate/validate.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"
#include "hw/kernel_rules.h"
#include "tests/base/messages.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

BenchmarkedGpu round_gpu() {
  BenchmarkedGpu gpu;
  gpu.spec.name = "round";
  gpu.spec.architecture = Architecture::kHopper;
  gpu.spec.sm_count = 128;
  gpu.spec.memory_bandwidth = BytesPerSecond(2e12);
  gpu.spec.l2_cache = Bytes(33554432);
  gpu.spec.dense[static_cast<std::size_t>(Dtype::kBf16)] = FlopsPerSecond(1000e12);
  gpu.fidelity = Fidelity::kIdeal;
  return gpu;
}

KernelValidation validate(const std::string& text) {
  return validate_kernels(CsvTable::parse(text, "times.csv"), round_gpu());
}

std::string refusal(const std::string& text) {
  try {
    validate(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("validate: a table is known by its columns, errors are grouped by engine, dtype and kernel") {
  // ideal: 134 250 496 B / 2e12 = 67.125 us against 50 and 134.25 us: +34.25 % and -50 %
  const KernelValidation found = validate(
      "engine,kernel,dtype,m,n,k,latency_us\n"
      "trtllm-1.0,a,bfloat16,1,8192,8192,50\n"
      "vllm-0.1,b,bfloat16,1,8192,8192,134.250496\n");
  CHECK(found.op->name == "gemm");
  REQUIRE(found.groups.size() == 3);
  CHECK(found.groups[0].name == "trtllm-1.0 bfloat16 a");
  CHECK(found.groups[0].errors.bias == doctest::Approx(0.34250496));
  CHECK(found.groups[1].errors.bias == doctest::Approx(-0.5));
  CHECK(found.groups[2].name == "all");
  CHECK(found.groups[2].errors.mape == doctest::Approx((0.34250496 + 0.5) / 2));
}

TEST_CASE("validate: coverage counts the rows within exp(+-1.645 discrepancy) of their prediction") {
  // predicted 67.125 us; without a fit the discrepancy is 0.3: from 41.0 to 110 us
  const KernelValidation found = validate(
      "engine,dtype,m,n,k,latency_us\n"
      "vllm-0.1,bfloat16,1,8192,8192,40\n"
      "vllm-0.1,bfloat16,1,8192,8192,42\n"
      "vllm-0.1,bfloat16,1,8192,8192,109\n"
      "vllm-0.1,bfloat16,1,8192,8192,111\n");
  CHECK(found.groups.back().coverage == doctest::Approx(0.5));
}

TEST_CASE("validate: without times there are predictions and no errors") {
  const std::string text = "dtype,m,n,k,engine\nbfloat16,1,8192,8192,\"vllm-0.1\"\n";
  const CsvTable table = CsvTable::parse(text, "times.csv");
  const KernelValidation found = validate_kernels(table, round_gpu());
  CHECK(found.groups.empty());
  CHECK(with_predictions(table, found.predicted) ==
        "dtype,m,n,k,engine,predicted_us\nbfloat16,1,8192,8192,vllm-0.1,67.1252\n");
}

TEST_CASE("validate: predictions of an earlier validation are replaced") {
  const CsvTable table =
      CsvTable::parse("dtype,predicted_us,m,n,k,engine\nbfloat16,5,1,8192,8192,vllm-0.1\n", "times.csv");
  CHECK(with_predictions(table, validate_kernels(table, round_gpu()).predicted) ==
        "dtype,m,n,k,engine,predicted_us\nbfloat16,1,8192,8192,vllm-0.1,67.1252\n");
}

TEST_CASE("validate: a row whose time is blank is predicted and not judged") {
  const std::string header = "engine,dtype,m,n,k,latency_us\n", untimed = "vllm-0.1,bfloat16,1,8192,8192,\n";
  const KernelValidation found = validate(header + untimed + "vllm-0.1,bfloat16,1,8192,8192,50\n");
  CHECK(found.predicted.size() == 2);
  CHECK(found.groups.back().errors.rows == 1);
  CHECK(validate(header + untimed).groups.empty());
}

TEST_CASE("validate: every fault of a row is named with its place") {
  const std::string header = "engine,dtype,m,n,k,latency_us\n";
  CHECK(refusal("engine,dtype,m,n,latency_us\nvllm-1,bfloat16,1,1,1\n").find("match no operator") != std::string::npos);
  CHECK(refusal(header + "vllm-1,bfloat16,1,64,64,nan\n").find("times.csv:2:6") == 0);
  CHECK(refusal(header + "vllm-1,bfloat16,0,64,64,5\n").find("times.csv:2:3") == 0);
  CHECK(refusal(header + "vllm-1,bfloat16,inf,64,64,5\n").find("times.csv:2:3") == 0);
  CHECK(refusal(header + "vllm-1,bfloat15,1,64,64,5\n").find("times.csv:2:2") == 0);
  CHECK(refusal(header + "vllm-1,nvfp4,1,64,64,5\n") == "times.csv:2:2: round has no unit that computes 'nvfp4'");
  // Sets of kernels that configs/kernels has, then libraries and our own.
  CHECK(refusal(header + "lmdeploy-1,bfloat16,1,64,64,5\n") ==
        "times.csv:2:1: unknown engine 'lmdeploy-1' (valid: sglang-..., trtllm-..., vllm-..., nccl-..., cublaslt-..., "
        "roofcast-...)");
}

TEST_CASE("validate: rows with a fault are passed over and named, the others are judged") {
  const std::string header = "engine,dtype,m,n,k,latency_us\n", good = "vllm-1,bfloat16,1,64,64,5\n";
  const KernelValidation found = validate(header + good + "vllm-1,bfloat16,1,64,64,-5\n" + good +
                                          "vllm-1,bfloat16,0,64,64,5\nvllm-1,bfloat15,1,64,64,5\n" + good);
  CHECK(found.groups.back().errors.rows == 3);
  REQUIRE(found.predicted.size() == 6);
  CHECK(found.predicted[0] == found.predicted[5]);
  CHECK(found.predicted[3] == Seconds(0));
  REQUIRE(found.faults.size() == 3);
  CHECK(std::string(found.faults[0].what()).find("times.csv:3:6") == 0);
  CHECK(std::string(found.faults[1].what()).find("times.csv:5:3") == 0);
  CHECK(std::string(found.faults[2].what()).find("times.csv:6:2") == 0);
}

TEST_CASE("fit: a row that the GPU has no unit for is refused at its place, too") {
  const CsvTable gemm = CsvTable::parse("engine,dtype,m,n,k,latency_us\nvllm-1,nvfp4,1,64,64,5\n", "times.csv");
  CHECK(message_of([&] { find_operator("gemm", {}).fit(gemm, round_gpu().spec, *kernel_rules("vllm"), {}); }) ==
        "times.csv:2:2: round has no unit that computes 'nvfp4'");
  const CsvTable moe = CsvTable::parse(
      "engine,dtype,tokens,hidden_size,inter_size,top_k,experts,tp,ep,distribution,latency_us\nvllm-1,fp8,1,64,64,1,8,"
      "1,1,balanced,5\n",
      "times.csv");
  CHECK(message_of([&] { find_operator("moe", {}).fit(moe, round_gpu().spec, *kernel_rules("vllm"), {}); }) ==
        "times.csv:2:2: round has no unit that computes 'fp8'");
}
