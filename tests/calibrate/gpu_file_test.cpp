#include "calibrate/gpu_file.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

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

ConfigTree bare_gpu(const std::string& efficiency) {
  return parse_config_text(
      "name: x100\narchitecture: ampere\nsm_count: 10\nmemory_capacity: 16 GiB\nmemory_bandwidth: 500 GB/s\n"
      "l2_cache: 4 MiB\nshared_memory_per_sm: 100 KiB\nnode: {pcie_bandwidth: 32 GB/s, nic_bandwidth: 12.5 GB/s}\n"
      "dense: {bf16: 100 TFLOP/s}\n" +
          efficiency,
      "/x100.yaml");
}

FittedConstants whole_gemm(std::string place, double launch_us, double bandwidth) {
  FittedConstants out{std::move(place), {}, FitRecord{}, {}, {}, {}};
  GemmParameters p;
  p.launch_us = launch_us, p.bandwidth_efficiency = bandwidth;
  const std::vector<double> values = cublaslt().numbers(cublaslt().with_parameters(p));
  for (const FieldFacts& field : cublaslt().fields()) out.values.emplace_back(field.name, values[out.values.size()]);
  return out;
}

std::string scratch(const char* name) { return (std::filesystem::temp_directory_path() / name).string(); }

}  // namespace

TEST_CASE("gpu file: a new block leaves the others as they are") {
  const std::string path = scratch("roofcast_efficiency_test");
  std::filesystem::remove_all(path);
  const ConfigTree gpu = bare_gpu("");
  const auto write = [&](const std::vector<FittedConstants>& blocks) {
    write_efficiency_files(path, gpu, KernelFamily::kVllm, blocks);
  };
  write({block("cublaslt.bf16", 2.5), block("cublaslt.fp8", 3.5)});
  write({block("nccl_all_reduce.bf16", 9.0), block("cublaslt.fp8", 4.5)});
  const ConfigTree tree = parse_config_file(path + "/x100-vllm.yaml");
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
  std::filesystem::remove_all(path);
}

TEST_CASE("gpu file: a constant that is the same beneath is not written, and what a block extends stays") {
  const std::string path = scratch("roofcast_pooled_test");
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  std::ofstream(path + "/x100-shared.yaml") << "cublaslt: {bf16: {launch_us: 2.5, fit: {rows: 10}}}\n";
  std::ofstream(path + "/x100-vllm.yaml") << "cublaslt: {fp8: {extends: bf16}}\n";
  const ConfigTree gpu = bare_gpu("");
  // bf16 goes to the file that has it, fp8 over it: one constant is told.
  write_efficiency_files(path, gpu, KernelFamily::kVllm, {whole_gemm("cublaslt.bf16", 3.0, 0.7)});
  write_efficiency_files(path, gpu, KernelFamily::kVllm, {whole_gemm("cublaslt.fp8", 3.0, 0.6)});
  const ConfigTree shared = parse_config_file(path + "/x100-shared.yaml");
  const ConfigTree own = parse_config_file(path + "/x100-vllm.yaml");
  CHECK(block_in(own, "cublaslt.bf16") == nullptr);
  CHECK((*block_in(shared, "cublaslt.bf16")->find("launch_us"))->scalar == "3");
  const ConfigTree narrow = block_in(own, "cublaslt.fp8");
  CHECK((*narrow->find("extends"))->scalar == "bf16");
  CHECK((*narrow->find("bandwidth_efficiency"))->scalar == "0.6");
  CHECK(narrow->find("launch_us") == nullptr);
  CHECK(narrow->entries.size() == 3);
  const ConfigTree read =
      bare_gpu(fmt::format("efficiency: {{shared: {0}/x100-shared.yaml, vllm: {0}/x100-vllm.yaml}}\n", path));
  const Efficiency e = load_gpu(read, KernelFamily::kVllm).efficiency;
  CHECK(cublaslt().parameters(e.block(cublaslt(), Dtype::kFp8)).launch_us == 3.0);
  CHECK(cublaslt().parameters(e.block(cublaslt(), Dtype::kFp8)).bandwidth_efficiency == 0.6);
  CHECK(cublaslt().parameters(e.block(cublaslt(), Dtype::kBf16)).bandwidth_efficiency == 0.7);
  std::filesystem::remove_all(path);
}

TEST_CASE("gpu file: fitted constants go inline, beside what the file had, above carried-over ones") {
  const std::string path = scratch("roofcast_gpu_test.yaml");
  const ConfigTree gpu = bare_gpu("efficiency: {trtllm: {cublaslt: {}}}\n");
  write_gpu_file(path, with_gpu_constants(gpu, KernelFamily::kVllm, {block("cublaslt.bf16", 2.5)}));
  ConfigTree written = parse_config_file(path);
  REQUIRE(written->find("efficiency") != nullptr);
  CHECK((*written->find("efficiency"))->find("trtllm") != nullptr);
  CHECK((*written->find("efficiency"))->find("vllm") != nullptr);

  const ConfigTree carried = bare_gpu("efficiency: {carried_over_from: a100-sxm}\n");
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
