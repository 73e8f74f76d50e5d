#include "calibrate/gpu_file.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/config_library.h"
#include "calibrate/ceilings.h"

#include "hw/kernels/decode/decode_kernel.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "hw/kernels/prefill/prefill_kernel.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

FittedConstants block(std::string place, double launch_us) {
  FittedConstants out;
  out.block = std::move(place);
  out.values = {{"launch_us", launch_us}, {"bandwidth_efficiency", 0.825}};
  out.record = {.provenance = Provenance::kMeasured,
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
    write_efficiency_files(path, gpu, {{"vllm", blocks}});
  };
  write({block("cublaslt.bf16", 2.5), block("cublaslt.fp8", 3.5)});
  write({block("cutlass_fp8.fp8", 9.0), block("cublaslt.fp8", 4.5)});
  const ConfigTree tree = parse_config_file(path + "/x100-vllm.yaml");
  REQUIRE(tree->find("cublaslt") != nullptr);
  const auto value = [&](const char* family, const char* format) {
    return ConfigReader(ConfigReader(*tree->find(family)).tree(format)).tree("launch_us")->scalar;
  };
  CHECK(value("cublaslt", "bf16") == "2.5");
  CHECK(value("cublaslt", "fp8") == "4.5");
  CHECK(tree->find("cutlass_fp8") != nullptr);
  ConfigReader constants(ConfigReader(*tree->find("cublaslt")).tree("bf16"));
  const std::vector<std::string_view> names{"launch_us", "bandwidth_efficiency"};
  const FitRecord record = read_fit_record(constants, names);
  CHECK(record.provenance == Provenance::kMeasured);
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
  write_efficiency_files(path, gpu, {{"vllm", {whole_gemm("cublaslt.bf16", 3.0, 0.7)}}});
  write_efficiency_files(path, gpu, {{"vllm", {whole_gemm("cublaslt.fp8", 3.0, 0.6)}}});
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
  const Efficiency e = load_gpu(read, "vllm").efficiency;
  CHECK(cublaslt().parameters(e.block(cublaslt(), Dtype::kFp8)).launch_us == 3.0);
  CHECK(cublaslt().parameters(e.block(cublaslt(), Dtype::kFp8)).bandwidth_efficiency == 0.6);
  CHECK(cublaslt().parameters(e.block(cublaslt(), Dtype::kBf16)).bandwidth_efficiency == 0.7);
  std::filesystem::remove_all(path);
}

TEST_CASE("gpu file: fitted constants go inline, beside what the file had, above carried-over ones") {
  const std::string path = scratch("roofcast_gpu_test.yaml");
  const ConfigTree gpu = bare_gpu("efficiency: {trtllm: {cublaslt: {}}}\n");
  write_gpu_file(path, with_gpu_constants(gpu, {{"vllm", {block("cublaslt.bf16", 2.5)}}}));
  ConfigTree written = parse_config_file(path);
  REQUIRE(written->find("efficiency") != nullptr);
  CHECK((*written->find("efficiency"))->find("trtllm") != nullptr);
  CHECK((*written->find("efficiency"))->find("vllm") != nullptr);

  const ConfigTree carried = bare_gpu("efficiency: {carried_over_from: a100-sxm}\n");
  write_gpu_file(path, with_gpu_constants(carried, {{"vllm", {block("cublaslt.bf16", 2.5)}}}));
  written = parse_config_file(path);
  CHECK((*written->find("efficiency"))->find("carried_over_from") != nullptr);
  CHECK((*written->find("efficiency"))->find("vllm") != nullptr);
  std::filesystem::remove(path);
}

TEST_CASE("gpu file: a shipped GPU with some constants fitted anew is whole wherever it is written") {
  const std::string path = scratch("roofcast_gpu_anew_test.yaml");
  for (const char* name : {"h100-sxm", "l40s"}) {
    CAPTURE(name);
    const ConfigTree gpu = load_named("hardware", name, SourceLocation{"--gpu", 0, 0});
    const Efficiency before = load_gpu(gpu, "vllm").efficiency;
    const ConstantsBlock known = before.block(cublaslt(), Dtype::kBf16);
    FittedConstants fitted{"cublaslt.bf16", {}, *known.record, {}, {}, {}};
    const std::vector<double> values = cublaslt().numbers(known);
    for (const FieldFacts& field : cublaslt().fields()) {
      const double value = field.name == "launch_us" ? 2.5 : values[fitted.values.size()];
      fitted.values.emplace_back(field.name, value);
    }
    write_gpu_file(path, with_gpu_constants(gpu, {{"vllm", {fitted}}}));
    const ConfigTree written = parse_config_file(path);
    const Efficiency after = load_gpu(written, "vllm").efficiency;
    CHECK(cublaslt().parameters(after.block(cublaslt(), Dtype::kBf16)).launch_us == 2.5);
    const Kernel& xqa = attention::xqa_decode();
    CHECK(after.has(xqa) == before.has(xqa));
    const Kernel& prompts = attention::flash_attention_3_prefill();
    CHECK(prompts.numbers(after.block(prompts, Dtype::kBf16))[0] ==
          doctest::Approx(prompts.numbers(before.block(prompts, Dtype::kBf16))[0]));
    CHECK_NOTHROW(load_gpu(written, "trtllm"));
  }
  std::filesystem::remove(path);
}

namespace {

GemmParameters product(const ConfigTree& gpu, const std::string& kernels, Dtype dtype) {
  const Efficiency efficiency = load_gpu(gpu, kernels).efficiency;
  const ConstantsBlock& block = efficiency.block(cublaslt(), dtype);
  REQUIRE(block);
  return cublaslt().parameters(block);
}

}  // namespace

TEST_CASE("gpu file: a block and the one that it extends, fitted together, are read as they were fitted") {
  const ConfigTree gpu = bare_gpu(
      "efficiency: {vllm: {cublaslt: {bf16: {launch_us: 2.5, bandwidth_efficiency: 0.6}, fp8: {extends: bf16}}}}\n");
  // fp8 has the launch that bf16 had, and the bandwidth that it has now.
  const ConfigTree written = with_gpu_constants(
      gpu, {{"vllm", {whole_gemm("cublaslt.bf16", 3.0, 0.7), whole_gemm("cublaslt.fp8", 2.5, 0.7)}}});
  const GemmParameters wide = product(written, "vllm", Dtype::kBf16);
  const GemmParameters narrow = product(written, "vllm", Dtype::kFp8);
  CHECK(wide.launch_us == 3.0);
  CHECK(wide.bandwidth_efficiency == 0.7);
  CHECK(narrow.launch_us == 2.5);
  CHECK(narrow.bandwidth_efficiency == 0.7);
  const ConfigTree block = block_in(constants_in(*written, "vllm"), "cublaslt.fp8");
  CHECK(block->find("extends") != nullptr);
  CHECK(block->find("launch_us") != nullptr);
  CHECK(block->find("bandwidth_efficiency") == nullptr);
}

TEST_CASE("gpu file: one set's block over a shared one that another set's fit replaces") {
  for (const bool vllm_first : {true, false}) {
    const std::string path = scratch(vllm_first ? "roofcast_two_families_test" : "roofcast_two_families_again_test");
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    std::ofstream(path + "/x100-shared.yaml") << "cublaslt: {bf16: {launch_us: 2.5, bandwidth_efficiency: 0.6}}\n";
    std::ofstream(path + "/x100-vllm.yaml") << "cublaslt: {bf16: {bandwidth_efficiency: 0.65}}\n";
    std::ofstream(path + "/x100-trtllm.yaml") << "{}\n";
    std::vector<FittedSet> fitted{{"vllm", {whole_gemm("cublaslt.bf16", 2.5, 0.7)}},
                                  {"trtllm", {whole_gemm("cublaslt.bf16", 4.0, 0.7)}}};
    if (!vllm_first) std::swap(fitted[0], fitted[1]);
    write_efficiency_files(path, bare_gpu(""), fitted);
    const ConfigTree read = bare_gpu(fmt::format(
        "efficiency: {{shared: {0}/x100-shared.yaml, vllm: {0}/x100-vllm.yaml, trtllm: {0}/x100-trtllm.yaml}}\n",
        path));
    CHECK(product(read, "vllm", Dtype::kBf16).launch_us == 2.5);
    CHECK(product(read, "vllm", Dtype::kBf16).bandwidth_efficiency == 0.7);
    CHECK(product(read, "trtllm", Dtype::kBf16).launch_us == 4.0);
    CHECK(product(read, "trtllm", Dtype::kBf16).bandwidth_efficiency == 0.7);
    std::filesystem::remove_all(path);
  }
}

TEST_CASE("gpu file: a block is trimmed against what its own map lies over") {
  // The source's launch lies beneath the shared block, which states another.
  const std::string path = scratch("roofcast_source_test.yaml");
  const ConfigTree source = bare_gpu("efficiency: {vllm: {cublaslt: {bf16: {launch_us: 2.5, wave_us: 2}}}}\n");
  write_gpu_file(path, source);
  const std::string pooled = "efficiency: {pooled_with: " + path + ", ";
  const FittedConstants fitted = whole_gemm("cublaslt.bf16", 2.5, 0.7);
  const auto check = [&](const ConfigTree& gpu, const std::string& kernels) {
    const ConfigTree written = with_gpu_constants(gpu, {{kernels, {fitted}}});
    CHECK(product(written, kernels, Dtype::kBf16).launch_us == 2.5);
    CHECK(product(written, kernels, Dtype::kBf16).bandwidth_efficiency == 0.7);
  };
  check(bare_gpu(pooled + "shared: {cublaslt: {bf16: {launch_us: 4}}}, vllm: {}}\n"), "vllm");
  check(bare_gpu(pooled + "vllm: {cublaslt: {bf16: {launch_us: 4}}}}\n"), "sglang");

  // Under SGLang a block of both goes to a file of its own, not to the shared one that vLLM overrides.
  const std::string folder = scratch("roofcast_sglang_test");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/x100-shared.yaml") << "cublaslt: {bf16: {launch_us: 4}}\n";
  std::ofstream(folder + "/x100-vllm.yaml") << "cublaslt: {bf16: {launch_us: 5}}\n";
  write_efficiency_files(folder, bare_gpu(""), {{"sglang", {fitted}}});
  const ConfigTree written = bare_gpu(fmt::format(
      "efficiency: {{shared: {0}/x100-shared.yaml, vllm: {0}/x100-vllm.yaml, sglang: {0}/x100-sglang.yaml}}\n",
      folder));
  CHECK(product(written, "sglang", Dtype::kBf16).launch_us == 2.5);
  CHECK(product(written, "vllm", Dtype::kBf16).launch_us == 5.0);

  // Without vLLM's it goes to the shared one, over the source.
  const std::string alone = scratch("roofcast_sglang_shared_test");
  std::filesystem::remove_all(alone);
  std::filesystem::create_directories(alone);
  std::ofstream(alone + "/x100-shared.yaml") << "cublaslt: {bf16: {launch_us: 4}}\n";
  write_efficiency_files(alone, bare_gpu("efficiency: {pooled_with: " + path + "}\n"), {{"sglang", {fitted}}});
  CHECK(!std::filesystem::exists(alone + "/x100-sglang.yaml"));
  const ConfigTree shared = parse_config_file(alone + "/x100-shared.yaml");
  CHECK(block_in(shared, "cublaslt.bf16")->find("launch_us") == nullptr);
  const ConfigTree over = bare_gpu(pooled + "shared: " + alone + "/x100-shared.yaml}\n");
  CHECK(product(over, "sglang", Dtype::kBf16).launch_us == 2.5);
  CHECK(product(over, "sglang", Dtype::kBf16).bandwidth_efficiency == 0.7);
  std::filesystem::remove_all(folder);
  std::filesystem::remove_all(alone);
  std::filesystem::remove(path);
}

TEST_CASE("gpu file: blocks that change with one that was fitted are named") {
  const ConfigTree gpu = bare_gpu("efficiency: {vllm: {cublaslt: {bf16: {launch_us: 2.5}, fp8: {extends: bf16}}}}\n");
  std::set<std::string> moved;
  with_gpu_constants(gpu, {{"vllm", {whole_gemm("cublaslt.bf16", 3.0, 0.7)}}}, &moved);
  CHECK(moved.contains("vllm cublaslt.fp8"));
  CHECK(!moved.contains("vllm cublaslt.bf16"));
}

TEST_CASE("gpu file: a shared block is shown once, and for each set where one overrides it") {
  const std::string shared = "efficiency: {shared: {cublaslt: {bf16: {launch_us: 4}}}, trtllm: {}, vllm: ";
  const auto shown = [&](const std::string& vllm) {
    std::string text;
    for (const ShownBlock& block : blocks_of(bare_gpu(shared + vllm + "}\n")))
      text += block.family + " " + block.block + "\n";
    return text;
  };
  CHECK(shown("{}") == "shared cublaslt.bf16\n");
  CHECK(shown("{cublaslt: {fp8: {launch_us: 5}}}") == "shared cublaslt.bf16\nvllm cublaslt.fp8\n");
  CHECK(shown("{cublaslt: {bf16: {launch_us: 5}}}") == "trtllm cublaslt.bf16\nvllm cublaslt.bf16\n");
}
