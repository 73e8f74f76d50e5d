// Tables of wide expert parallelism: their columns, units and rows that no engine lays out so.

#include <doctest/doctest.h>

#include <string>

#include "base/config_library.h"
#include "base/error.h"
#include "calibrate/rows/exchange.h"
#include "calibrate/rows/wide_experts.h"
#include "calibrate/validate.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

constexpr const char* kExpertHeader =
    "engine,op_name,moe_dtype,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,"
    "distribution,latency\n";

CsvTable experts(const std::string& rows) { return CsvTable::parse(kExpertHeader + rows, "wide.csv"); }

BenchmarkedGpu shipped(const char* name) {
  return load_benchmarked_gpu(load_named("hardware", name, SourceLocation{"test", 1, 1}));
}

std::string error_of(const std::string& rows) {
  try {
    read_wide_expert_rows(experts(rows));
  } catch (const ConfigError& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("wide rows: milliseconds, layouts by operator") {
  const auto rows = read_wide_expert_rows(
      experts("sglang-0.5.10,moe_generation,fp8_block,512,7168,2048,8,256,1,64,uniform,0.085\n"
              "sglang-0.5.10,moe_context,fp8_block,4096,7168,2048,8,256,1,8,power_law_1.2,1.2\n"
              "trtllm-1.3.0rc10,wideep_moe_eplb,nvfp4,512,7168,2048,8,256,1,8,power_law_1.01_eplb,0.5\n"));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].header.latency.in(kMicrosecond) == doctest::Approx(85));
  CHECK(rows[0].shape.layout == ExpertLayout::kMasked);
  CHECK(rows[0].shape.routing.kind == Routing::Kind::kBalanced);
  CHECK(rows[1].shape.layout == ExpertLayout::kContiguous);
  CHECK(rows[1].shape.received == 4096);  // all tokens of the group
  CHECK(rows[2].shape.layout == ExpertLayout::kReceived);
  CHECK(rows[2].shape.routing.levelled);
  CHECK(rows[2].shape.routing.exponent == doctest::Approx(1.01));
}

TEST_CASE("wide rows: what is wrong is named with its place") {
  CHECK(error_of("sglang-1,moe,fp8_block,512,7168,2048,8,256,1,64,uniform,1\n").starts_with("wide.csv:2:"));
  CHECK(error_of("sglang-1,moe,fp8_block,512,7168,2048,8,256,1,64,uniform,1\n").find("valid: moe_generation") !=
        std::string::npos);
  CHECK(
      error_of("sglang-1,moe_context,fp8_block,512,7168,2048,8,256,1,512,uniform,1\n").find("'moe_ep_size' exceeds") !=
      std::string::npos);
  CHECK(error_of("sglang-1,moe_context,fp8_block,512,7168,2048,8,256,1,64,uniform,0\n").find("milliseconds") !=
        std::string::npos);
}

TEST_CASE("wide rows: experts that share a tile are passed over") {
  // 256 tokens x 8 / 256 experts = 8 an expert; 4096 give 128.
  const KernelValidation found =
      validate_kernels(experts("sglang-0.5.10,moe_context,fp8_block,256,7168,2048,8,256,1,8,uniform,1\n"
                               "sglang-0.5.10,moe_context,fp8_block,4096,7168,2048,8,256,1,8,uniform,1\n"),
                       shipped("h100-sxm"));
  CHECK(found.op->name == "wide_experts");
  CHECK(found.predicted[0] == Seconds(0));
  CHECK(found.predicted[1] > Seconds(0));
  REQUIRE(found.groups.size() == 2);
  CHECK(found.groups.back().errors.rows == 1);
}

TEST_CASE("exchange rows: both directions of a row, and their sum") {
  const CsvTable table = CsvTable::parse(
      "engine,node_num,hidden_size,num_token,num_topk,num_experts,dispatch_sms,dispatch_transmit_us,dispatch_notify_us,"
      "combine_sms,combine_transmit_us,combine_notify_us\n"
      "sglang-0.5.6,2,7168,128,8,256,20,64,31,24,151,34\n",
      "normal.csv");
  const BenchmarkedGpu gpu = shipped("h100-sxm");
  const auto rows = read_exchange_rows(table, ExchangeKernel::kNormal, gpu.spec);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].header.latency.in(kMicrosecond) == doctest::Approx(95));
  CHECK(rows[1].header.latency.in(kMicrosecond) == doctest::Approx(185));
  CHECK(rows[0].shape.ranks == 16);
  CHECK(rows[0].shape.value_bytes == 1.0 + 4.0 / 128.0);
  CHECK(rows[1].shape.value_bytes == 2.0);
  CHECK(rows[1].shape.sms == 24);
  const KernelValidation found = validate_kernels(table, gpu);
  CHECK(found.op->name == "deep_ep_normal");
  REQUIRE(found.groups.size() == 2);
  const double sum =
      (exchange_time(rows[0].shape, gpu.of("vllm").find(exchange_kernel(ExchangeKernel::kNormal), Dtype::kBf16)->value,
                     gpu.spec) +
       exchange_time(rows[1].shape, gpu.of("vllm").find(exchange_kernel(ExchangeKernel::kNormal), Dtype::kBf16)->value,
                     gpu.spec))
          .in(kMicrosecond);
  CHECK(found.predicted[0].in(kMicrosecond) == doctest::Approx(sum));
}
