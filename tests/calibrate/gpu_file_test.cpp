#include "calibrate/gpu_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "base/config_library.h"

#include "hw/kernels/decode/decode_kernel.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "hw/kernels/prefill/prefill_kernel.h"

using namespace roofcast;

namespace {

FittedConstants block(std::string place, double launch_us) {
  FittedConstants out;
  out.block = std::move(place);
  out.values = {{"launch_us", launch_us}, {"bandwidth_efficiency", 0.825}};
  out.record = {.standing = Standing::kMeasured,
                .source = "a table: of 2026",
                .rows = 40,
                .mape = 0.0512,
                .discrepancy = 0.08,
                .standard_errors = {0.1, 0.005}};
  return out;
}

std::string scratch(const char* name) { return (std::filesystem::temp_directory_path() / name).string(); }

}  // namespace

TEST_CASE("gpu file: a new block leaves the others as they are") {
  const std::string path = scratch("roofcast_efficiency_test.yaml");
  std::filesystem::remove(path);
  write_efficiency_file(path, "x100 under vllm", {block("cublaslt.bf16", 2.5), block("cublaslt.fp8", 3.5)});
  write_efficiency_file(path, "x100 under vllm", {block("nccl_all_reduce.bf16", 9.0), block("cublaslt.fp8", 4.5)});
  const ConfigTree tree = parse_config_file(path);
  REQUIRE(tree->find("cublaslt") != nullptr);
  const auto value = [&](const char* family, const char* format) {
    return ConfigReader(ConfigReader(*tree->find(family)).tree(format)).tree("launch_us")->scalar;
  };
  CHECK(value("cublaslt", "bf16") == "2.5");
  CHECK(value("cublaslt", "fp8") == "4.5");
  CHECK(tree->find("nccl_all_reduce") != nullptr);
  ConfigReader constants(ConfigReader(*tree->find("cublaslt")).tree("bf16"));
  const std::vector<std::string_view> names{"launch_us", "bandwidth_efficiency"};
  const FitRecord record = read_fit_record(constants, names);
  CHECK(record.standing == Standing::kMeasured);
  CHECK(record.source == "a table: of 2026");
  CHECK(record.rows == 40);
  CHECK(record.mape == doctest::Approx(0.0512));
  CHECK(record.standard_errors == std::vector<double>{0.1, 0.005});
  std::filesystem::remove(path);
}

TEST_CASE("gpu file: fitted constants go inline, beside what the file had, above carried-over ones") {
  const std::string path = scratch("roofcast_gpu_test.yaml");
  const ConfigTree gpu = parse_config_text("name: x100\nefficiency: {trtllm: {cublaslt: {}}}\n", "x100.yaml");
  write_gpu_file(path, with_gpu_constants(gpu, KernelFamily::kVllm, {block("cublaslt.bf16", 2.5)}));
  ConfigTree written = parse_config_file(path);
  REQUIRE(written->find("efficiency") != nullptr);
  CHECK((*written->find("efficiency"))->find("trtllm") != nullptr);
  CHECK((*written->find("efficiency"))->find("vllm") != nullptr);

  const ConfigTree carried = parse_config_text("name: x100\nefficiency: {carried_over_from: x90}\n", "x100.yaml");
  write_gpu_file(path, with_gpu_constants(carried, KernelFamily::kVllm, {block("cublaslt.bf16", 2.5)}));
  written = parse_config_file(path);
  CHECK((*written->find("efficiency"))->find("carried_over_from") != nullptr);
  CHECK((*written->find("efficiency"))->find("vllm") != nullptr);
  std::filesystem::remove(path);
}

TEST_CASE("gpu file: a shipped GPU with some constants fitted anew is whole wherever it is written") {
  const std::string path = scratch("roofcast_gpu_anew_test.yaml");
  for (const char* name : {"h100-sxm", "l40s"}) {
    CAPTURE(name);
    const ConfigTree gpu = load_named("hardware", name, Mark{"--gpu", 0, 0});
    const Efficiency before = load_gpu(gpu, KernelFamily::kVllm).efficiency;
    const ConstantsBlock known = before.block(cublaslt(), Dtype::kBf16);
    FittedConstants fitted{"cublaslt.bf16", {}, *known.record, {}, {}, {}};
    const std::vector<double> values = cublaslt().numbers(known);
    for (const FieldFacts& field : cublaslt().fields()) {
      const double value = field.name == "launch_us" ? 2.5 : values[fitted.values.size()];
      fitted.values.emplace_back(field.name, value);
    }
    write_gpu_file(path, with_gpu_constants(gpu, KernelFamily::kVllm, {fitted}));
    const ConfigTree written = parse_config_file(path);
    const Efficiency after = load_gpu(written, KernelFamily::kVllm).efficiency;
    CHECK(cublaslt().parameters(after.block(cublaslt(), Dtype::kBf16)).launch_us == 2.5);
    const Kernel& xqa = attention::xqa_decode();
    CHECK(after.has(xqa) == before.has(xqa));
    const Kernel& prompts = attention::flash_attention_3_prefill();
    CHECK(prompts.numbers(after.block(prompts, Dtype::kBf16))[0] ==
          doctest::Approx(prompts.numbers(before.block(prompts, Dtype::kBf16))[0]));
    CHECK_NOTHROW(load_gpu(written, KernelFamily::kTrtllm));
  }
  std::filesystem::remove(path);
}
