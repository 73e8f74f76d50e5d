#include "hw/efficiency.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/config_library.h"
#include "hw/carry_over.h"
#include "hw/collectives.h"
#include "hw/constants_file.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/attention.h"
#include "hw/kernels/benchmark_loops.h"
#include "hw/kernels/decode/decode_kernel.h"
#include "hw/kernels/experts/experts_kernel.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "hw/kernels/latent/latent_kernel.h"
#include "hw/kernels/prefill/prefill_kernel.h"
#include "tests/kernel_constants.h"

using namespace roofcast;
using roofcast::testing::value_of;

namespace {

const std::string kSpec =
    "architecture: ampere\n"
    "sm_count: 10\n"
    "memory_capacity: 16 GiB\n"
    "memory_bandwidth: 500 GB/s\n"
    "l2_cache: 4 MiB\n"
    "shared_memory_per_sm: 100 KiB\n"
    "node: {pcie_bandwidth: 32 GB/s, nic_bandwidth: 12.5 GB/s}\n"
    "dense: {bf16: 100 TFLOP/s}\n";

std::string constants(const std::string& source) {
  return "{cublaslt_mma_sync: {bf16: {fit: {standing: measured, source: " + source + ", rows: 10, discrepancy: 0.1}}}}";
}

/// A folder of GPU files that is gone after the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "roofcast-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }
  std::string at(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

CalibratedGpu load_text(const std::string& efficiency, const std::string& kernels) {
  return load_gpu(parse_config_text("name: x\n" + kSpec + efficiency, "gpu.yaml"), kernels);
}

std::string source_of(const CalibratedGpu& gpu) {
  const ConstantsBlock& products = gpu.efficiency.block(cublaslt_mma_sync(), Dtype::kBf16);
  return products ? products.record->source : "";
}

/// The constants of 16-bit products, of an Ampere GPU unless said otherwise.
GemmParameters products_of(const Efficiency& e, const MatmulKernel& kernel = cublaslt_mma_sync(),
                           Dtype dtype = Dtype::kBf16) {
  const ConstantsBlock& block = e.block(kernel, dtype);
  REQUIRE(block);
  return kernel.parameters(block);
}

std::string error_of(const std::string& efficiency, const std::string& kernels = "vllm") {
  try {
    load_text(efficiency, kernels);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("efficiency: a set holds constants by kernel and format, and copies do not share what changes") {
  Efficiency set;
  const MatmulKernel& kernel = cublaslt();
  CHECK_FALSE(set.has(kernel));
  set.put_block(kernel, Dtype::kBf16, kernel.with_parameters({.launch_us = 7.0}));
  Efficiency copy = set;
  copy.put_block(kernel, Dtype::kBf16, kernel.with_parameters({.launch_us = 8.0}));
  CHECK(products_of(set, kernel).launch_us == 7.0);
  CHECK(products_of(copy, kernel).launch_us == 8.0);
  CHECK_FALSE(set.block(kernel, Dtype::kFp8));
  CHECK_FALSE(set.has(cublaslt_fp8()));
  for (std::size_t i = 0; i < kernels().size(); ++i) CHECK(kernels()[i]->id() == i);
}

TEST_CASE("efficiency: a GPU without constants has none, so kernels use their priors") {
  for (const std::string text : {"", "efficiency:\n", "efficiency: {}\n"}) {
    const CalibratedGpu gpu = load_text(text, "trtllm");
    CHECK(gpu.spec.name == "x");
    CHECK(!gpu.efficiency.has(cublaslt_mma_sync()));
    CHECK(gpu.efficiency.kernels() == "trtllm");
    CHECK(gpu.efficiency.carried_over_from.empty());
  }
}

TEST_CASE("efficiency: each set of kernels has its own constants") {
  const std::string both = "efficiency: {vllm: " + constants("v") + ", trtllm: " + constants("t") + "}\n";
  CHECK(source_of(load_text(both, "vllm")) == "v");
  CHECK(source_of(load_text(both, "trtllm")) == "t");
  CHECK(load_text(both, "trtllm").efficiency.kernels() == "trtllm");
}

TEST_CASE("efficiency: an absent set takes another's and says whose kernels they are") {
  const CalibratedGpu gpu = load_text("efficiency: {vllm: " + constants("v") + "}\n", "trtllm");
  CHECK(source_of(gpu) == "v");
  CHECK(gpu.efficiency.kernels() == "vllm");
}

TEST_CASE("efficiency: a file stands beside the GPU file, and only the set asked for is opened") {
  const Folder folder;
  folder.write("constants/v.yaml", constants("from-file"));
  const std::string file =
      folder.write("gpu.yaml", "name: y\n" + kSpec + "efficiency: {vllm: constants/v.yaml, trtllm: missing.yaml}\n");
  CHECK(source_of(load_gpu(parse_config_file(file), "vllm")) == "from-file");
  CHECK_THROWS_AS(load_gpu(parse_config_file(file), "trtllm"), ConfigError);
}

TEST_CASE("efficiency: constants carried over say so and leave more unexplained") {
  const Folder folder;
  const std::string measured =
      folder.write("a.yaml", "name: a\n" + kSpec + "efficiency: {vllm: " + constants("v") + "}\n");
  const CalibratedGpu gpu = load_text("efficiency: {carried_over_from: " + measured + "}\n", "vllm");
  CHECK(gpu.spec.name == "x");
  CHECK(gpu.efficiency.carried_over_from == "a");
  const ConstantsBlock& products = gpu.efficiency.block(cublaslt_mma_sync(), Dtype::kBf16);
  REQUIRE(products);
  CHECK(products.record->source == "v");
  CHECK(products.record->provenance == Provenance::kCarriedOver);
  CHECK(products.record->discrepancy == doctest::Approx(std::hypot(0.1, 0.05)).epsilon(1e-12));
}

TEST_CASE("efficiency: another machine of the same kind keeps the fits, and times of the SMs go with its clock") {
  const Folder folder;
  const std::string measured = folder.write(
      "x.yaml", "name: x\n" + kSpec + "boost_clock: 2000 MHz\nefficiency: {vllm: " + constants("v") + "}\n");
  const std::string here =
      "boost_clock: 2000 MHz\nmachine: {clock: 0.8}\nefficiency: {carried_over_from: " + measured + "}\n";
  const CalibratedGpu before = load_gpu(parse_config_file(measured), "vllm"), gpu = load_text(here, "vllm");
  CHECK(gpu.efficiency.carried_over_from.empty());
  CHECK(gpu.efficiency.block(cublaslt_mma_sync(), Dtype::kBf16).record->provenance == Provenance::kMeasured);
  CHECK(gpu.efficiency.block(cublaslt_mma_sync(), Dtype::kBf16).record->discrepancy ==
        before.efficiency.block(cublaslt_mma_sync(), Dtype::kBf16).record->discrepancy);
  const GemmParameters was = products_of(before.efficiency), is = products_of(gpu.efficiency);
  CHECK(is.wave_us == doctest::Approx(was.wave_us / 0.8));
  CHECK(is.compute_efficiency == was.compute_efficiency);
}

TEST_CASE("efficiency: constants of another generation leave far more unexplained") {
  const Folder folder;
  const std::string measured =
      folder.write("a.yaml", "name: a\n" + kSpec + "efficiency: {vllm: " + constants("v") + "}\n");
  const CalibratedGpu gpu =
      load_text("efficiency: {carried_over_from: " + measured + ", another_generation: true}\n", "vllm");
  CHECK(gpu.efficiency.block(cublaslt_mma_sync(), Dtype::kBf16).record->discrepancy ==
        doctest::Approx(std::hypot(0.1, 0.27)).epsilon(1e-12));
  CHECK(error_of("efficiency: {another_generation: true}\n").find("needs 'carried_over_from'") != std::string::npos);
}

TEST_CASE("efficiency: what says how constants are carried over is refused where none are") {
  CHECK(error_of("efficiency: {ampere_kernels_from: a100-sxm}\n").find("needs 'carried_over_from'") !=
        std::string::npos);
  CHECK(error_of("efficiency: {matrix_limit: 0.5}\n").find("needs 'carried_over_from'") != std::string::npos);
  CHECK(error_of("efficiency: {memory_ecc: false}\n").find("needs 'carried_over_from'") != std::string::npos);
}

TEST_CASE("efficiency: a GPU's own constants win over those carried over") {
  const Folder folder;
  const std::string measured =
      folder.write("a.yaml", "name: a\n" + kSpec + "efficiency: {vllm: " + constants("v") + "}\n");
  const std::string text = "efficiency: {carried_over_from: " + measured + ", trtllm: " + constants("own") + "}\n";
  CHECK(source_of(load_text(text, "trtllm")) == "own");
  CHECK(load_text(text, "trtllm").efficiency.carried_over_from == "a");  // the families it lacks
  CHECK(load_text(text, "trtllm").efficiency.kernels() == "trtllm");
  CHECK(source_of(load_text(text, "vllm")) == "v");
}

TEST_CASE("efficiency: what was measured in cycles goes with the clock, L2 with SMs and clock, fractions stay") {
  const Folder folder;
  const std::string constants =
      "efficiency: {vllm: {cublaslt_mma_sync: {bf16: {launch_us: 4, l2_bandwidth_ratio: 1.2, tile_intensity: 40, "
      "compute_efficiency: 0.9, sustained_clock: 0.9}}, eager_gemm_loop: {bf16: {host_floor_us: 90}}, nccl_all_gather: "
      "{bf16: {step_us: 1, network_us: 8}}}}\n";
  const std::string measured = folder.write("a.yaml", "name: a\nboost_clock: 1 GHz\n" + kSpec + constants);
  // twice the clock, SMs and peak as before: cycles half as long, L2 twice as fast, half the operations a cycle
  const std::string text =
      "boost_clock: 2000 MHz\nefficiency: {carried_over_from: " + measured + ", matrix_limit: 0.63}\n";
  const Efficiency e = load_text(text, "vllm").efficiency;
  const GemmParameters p = products_of(e);
  CHECK(p.launch_us == doctest::Approx(1.0 + 3.0 / 2.0));  // all but the gap of a graph
  CHECK(p.l2_bandwidth_ratio == doctest::Approx(2.4));
  CHECK(p.tile_intensity == doctest::Approx(20.0 * 0.63 / 0.9));  // units held to 0.63 of 0.9 want operands later
  CHECK(value_of(eager_gemm_loop(), e.block(eager_gemm_loop(), Dtype::kBf16), "host_floor_us") ==
        doctest::Approx(90.0));
  // what is lost beyond the memory's own share is lost on the SMs, twice as fast together
  const double lost = 1 / GemmParameters{}.bandwidth_efficiency - 1 / 0.93;
  CHECK(p.bandwidth_efficiency == doctest::Approx(1 / (1 / 0.93 + lost / 2)));
  CHECK(p.compute_efficiency == doctest::Approx(0.63));
  CHECK(p.sustained_clock == doctest::Approx(1.0));  // 0.9 x 0.9 is more than the board sustains, 0.63 is not
  const std::string higher = text.substr(0, text.find(", matrix_limit")) + ", matrix_limit: 0.85}\n";
  const Efficiency cool = load_text(higher, "vllm").efficiency;
  CHECK(products_of(cool).compute_efficiency == doctest::Approx(0.85));
  CHECK(products_of(cool).sustained_clock == doctest::Approx(0.81 / 0.85));
  const NcclParameters& n = e.find(nccl_kernel(Collective::kAllGather), Dtype::kBf16)->value;
  CHECK(n.step_us == doctest::Approx(0.5));
  CHECK(n.network_us == doctest::Approx(8.0));
  // without a clock nothing is known of cycles
  const Efficiency same = load_text("efficiency: {carried_over_from: " + measured + "}\n", "vllm").efficiency;
  CHECK(products_of(same).launch_us == doctest::Approx(4.0));
}

TEST_CASE("efficiency: another generation's memory gives no larger share than before, unless it runs without ECC") {
  const Folder folder;
  const std::string measured =
      folder.write("a.yaml", "name: a\nboost_clock: 1 GHz\n" + kSpec +
                                 "efficiency: {vllm: {cublaslt_mma_sync: {bf16: {launch_us: 4}}}}\n");
  const auto share = [&](const std::string& more) {
    const std::string text = "boost_clock: 2 GHz\nefficiency: {carried_over_from: " + measured + more + "}\n";
    return products_of(load_text(text, "vllm").efficiency).bandwidth_efficiency;
  };
  CHECK(share(", another_generation: true") == doctest::Approx(GemmParameters{}.bandwidth_efficiency));
  CHECK(share(", another_generation: true, memory_ecc: false") == doctest::Approx(share("")));
  CHECK(share("") > 1.02 * GemmParameters{}.bandwidth_efficiency);
}

TEST_CASE("efficiency: a board that lacks watts gives up half of it in rate, one that has more its throttling") {
  const Folder folder;
  const std::string constants =
      "efficiency: {vllm: {cublaslt_mma_sync: {bf16: {compute_efficiency: 0.9, sustained_clock: 0.9, "
      "bandwidth_efficiency: "
      "0.8}}}}\n";
  const std::string clock = "boost_clock: 1 GHz\n";
  const std::string measured =
      folder.write("a.yaml", "name: a\nboard_power: 400 W\nidle_power: 40 W\n" + clock + kSpec + constants);
  const auto with = [&](const std::string& watts, const std::string& bandwidth, const std::string& other = "") {
    std::string spec = kSpec;
    spec.replace(spec.find("500 GB/s"), 8, bandwidth);
    const std::string text = "name: x\nidle_power: 40 W\nboard_power: " + watts + "\n" + clock + spec +
                             "efficiency: {carried_over_from: " + measured + other + "}\n";
    return products_of(load_gpu(parse_config_text(text, "gpu.yaml"), "vllm").efficiency);
  };
  CHECK(with("400 W", "500 GB/s").sustained_clock == doctest::Approx(0.9));
  const GemmParameters less = with("324 W", "500 GB/s");  // sqrt(0.81) = 0.9
  CHECK(less.sustained_clock == doctest::Approx(0.81));
  CHECK(less.compute_efficiency == doctest::Approx(0.9));
  const GemmParameters least = with("100 W", "500 GB/s");  // 0.45 in all, of which the clock gives 0.7
  CHECK(least.sustained_clock == doctest::Approx(0.7));
  CHECK(least.sustained_clock * least.compute_efficiency == doctest::Approx(0.9 * 0.45));
  // slower units want operands from L2 so much later, which feeds them as before
  CHECK(least.tile_intensity / less.tile_intensity == doctest::Approx(least.compute_efficiency / 0.9));
  CHECK(with("900 W", "500 GB/s").sustained_clock == doctest::Approx(1.0));
  CHECK(with("900 W", "500 GB/s").compute_efficiency == doctest::Approx(0.9));
  // twice or half the memory on the same SMs; on another generation's a share does not rise
  CHECK(with("400 W", "1 TB/s").bandwidth_efficiency == doctest::Approx(1 / (1 / 0.93 + 2 * (1 / 0.8 - 1 / 0.93))));
  CHECK(with("400 W", "250 GB/s").bandwidth_efficiency == doctest::Approx(1 / (1 / 0.93 + 0.5 * (1 / 0.8 - 1 / 0.93))));
  CHECK(with("400 W", "250 GB/s", ", another_generation: true").bandwidth_efficiency == doctest::Approx(0.8));
}

TEST_CASE("efficiency: grouped products of another architecture have its tiles") {
  const CalibratedGpu h100 = load_gpu(load_named("hardware", "h100-sxm", {}), "trtllm");
  const MoeShape shape{.tokens = 100,
                       .hidden = 512,
                       .inter = 512,
                       .top_k = 2,
                       .experts = 8,
                       .weights = Dtype::kFp8Block,
                       .activations = Dtype::kFp8Block,
                       .routing = {}};
  const auto kernel = [&](const char* to) {
    const GpuSpec target = load_gpu(load_named("hardware", to, {}), "trtllm").spec;
    Efficiency e = carry_over(h100.efficiency, h100.spec, target, {.another_generation = true});
    e.borrow();
    return choose_experts(shape, {.gpu = &target, .efficiency = &e}).kernel->name();
  };
  CHECK(kernel("h200-sxm") == "cutlass_block_experts");
  CHECK(kernel("b200-sxm") == "deep_gemm_experts");
  CHECK(kernel("l40s") == "cutlass_block_experts");  // what runs there is not known
}

TEST_CASE("efficiency: matrix units of a quarter of the rate are fed by smaller tiles, within an architecture") {
  const auto intensity = [](const char* gpu) {
    const Efficiency e = load_gpu(load_named("hardware", gpu, SourceLocation{"--gpu", 0, 0}), "vllm").efficiency;
    return products_of(e, cublaslt()).tile_intensity;
  };
  const double rate = (148.0 / 78) / (989.0 / 132);  // an H20's over an H200's, at the same clock
  CHECK(intensity("h20") == doctest::Approx(std::max(10.0, rate * intensity("h200-sxm"))));
  // but for what half of the watts take of it, where the clock is at its least
  CHECK(intensity("h100-pcie") == doctest::Approx(intensity("h100-sxm")).epsilon(0.05));
}

TEST_CASE("efficiency: attention keeps the gap of a lone graph, exponentials follow their units, the host its speed") {
  const Folder folder;
  const std::string constants =
      "efficiency: {vllm: {flash_attention_2_prefill: {bf16: {launch_us: 11, score_ns: 0.032, fit: {discrepancy: 0.1, "
      "discrepancy_elsewhere: 0.3}}}, flash_attention_2_mla_prefill: {bf16: {launch_us: 2, "
      "compute_fraction: 0.5}}, flash_attention_2_mla_prefill_loop: {bf16: {eager_host_us: 200}}}}\n";
  const std::string measured = folder.write("a.yaml", "name: a\nboost_clock: 1 GHz\n" + kSpec + constants);
  std::string spec = kSpec;
  spec.replace(spec.find("node: {"), 7, "node: {host_speed: 0.5, launch_speed: 0.8, ");
  const std::string text = "name: x\nboost_clock: 2 GHz\nexponentials_per_clock: 32\n" + spec +
                           "efficiency: {carried_over_from: " + measured + "}\n";
  const Efficiency e = load_gpu(parse_config_text(text, "gpu.yaml"), "vllm").efficiency;
  const Kernel &prompts = attention::flash_attention_2_prefill(), &latents = attention::flash_attention_2_mla_prefill();
  const ConstantsBlock &prefill = e.block(prompts, Dtype::kBf16), &latent = e.block(latents, Dtype::kBf16);
  CHECK(value_of(prompts, prefill, "launch_us") == doctest::Approx(3.0 + 8.0 / 2));
  CHECK(value_of(prompts, prefill, "score_ns") == doctest::Approx(0.008));  // half the cycles, each half as long
  CHECK(prefill.record->discrepancy_of(false) == doctest::Approx(std::hypot(0.1, 0.05)));
  CHECK(prefill.record->discrepancy_of(true) == doctest::Approx(std::hypot(0.3, 0.05)));
  CHECK(value_of(latents, latent, "launch_us") == doctest::Approx(2.0));                // less than the gap
  CHECK(value_of(latents, latent, "compute_fraction") == doctest::Approx(1.0 / 1.25));  // products 1, exponentials 1/4
  const Kernel& loop = *attention_loop_of(latents);
  CHECK(value_of(loop, e.block(loop, Dtype::kBf16), "eager_host_us") == doctest::Approx(500.0));
}

TEST_CASE("efficiency: Ampere's kernels come from a second GPU, formats that it lacks from the first") {
  const Folder folder;
  const auto file = [&](const std::string& name, const std::string& blocks) {
    return folder.write(name + ".yaml", "name: " + name + "\n" + kSpec + "efficiency: {vllm: {" + blocks + "}}\n");
  };
  const std::string newer = file("newer",
                                 "cublaslt: {bf16: {launch_us: 3}}, cutlass_fp8: {fp8: {launch_us: 3, gemv_us: 0.5}}, "
                                 "deep_gemm: {fp8_block: {launch_us: 3}}, weight_only: {int4: {launch_us: 3}}");
  const std::string older =
      file("older",
           "cublaslt_mma_sync: {bf16: {launch_us: 5, gemv_us: 1}}, cutlass_int8: {int8: {launch_us: 5}}, "
           "weight_only: {int4: {launch_us: 5}}");
  const Efficiency e =
      load_text("efficiency: {carried_over_from: " + newer + ", ampere_kernels_from: " + older + "}\n", "vllm")
          .efficiency;
  CHECK(e.carried_over_from == "newer, older");
  CHECK(products_of(e).launch_us == 5.0);
  CHECK(products_of(e, cutlass_int8(), Dtype::kInt8).launch_us == 5.0);
  CHECK(products_of(e, weight_only(), Dtype::kInt4).launch_us == 5.0);  // both have it
  const GemmParameters narrow = products_of(e, cutlass_mma_sync_fp8(), Dtype::kFp8);
  CHECK(narrow.launch_us == 5.0);  // its pipeline is that of 16 bit
  CHECK(narrow.gemv_us == 0.5);    // what one row saves is fp8's own
  CHECK(products_of(e, blockwise_fp8(), Dtype::kFp8Block).launch_us == 3.0);
}

TEST_CASE("efficiency: 16-bit products of a GPU with other matrix units stand in where none were measured") {
  const Folder folder;
  const std::string newer =
      folder.write("newer.yaml", "name: newer\n" + kSpec + "efficiency: {vllm: {cublaslt: {bf16: {launch_us: 3}}}}\n");
  const std::string older = folder.write(
      "older.yaml", "name: older\n" + kSpec + "efficiency: {vllm: {cublaslt_mma_sync: {bf16: {launch_us: 5}}}}\n");
  const auto from = [](const std::string& gpu) {
    return load_text("efficiency: {carried_over_from: " + gpu + "}\n", "vllm").efficiency;
  };
  CHECK(products_of(from(newer), cublaslt_mma_sync()).launch_us == 3.0);
  CHECK(products_of(from(older), cublaslt()).launch_us == 5.0);
}

TEST_CASE("efficiency: without wgmma fp8 products are those of 16 bit at their own rate, with their own quantization") {
  const Efficiency l40s = load_gpu(load_named("hardware", "l40s", {}), "trtllm").efficiency;
  const Efficiency h100 = load_gpu(load_named("hardware", "h100-sxm", {}), "trtllm").efficiency;
  const GemmParameters wide = products_of(l40s), narrow = products_of(l40s, cublaslt_mma_sync_fp8(), Dtype::kFp8);
  CHECK(narrow.k_step_us == wide.k_step_us);
  CHECK(narrow.bandwidth_efficiency == wide.bandwidth_efficiency);
  CHECK(narrow.tile_intensity == doctest::Approx(wide.tile_intensity * 733 / 362.05));
  // what the benchmark adds was measured on an H100, all but the gap of a graph in cycles: 1980 of them there, 2520
  // here
  const auto added = [](const Efficiency& e) {
    return value_of(quantizing_gemm_loop(), e.block(quantizing_gemm_loop(), Dtype::kFp8), "benchmark_us");
  };
  CHECK(added(l40s) == doctest::Approx(1.0 + (added(h100) - 1.0) * 1980 / 2520));
}

TEST_CASE("efficiency: without wgmma fp8 caches are read by XQA's kernel for 16 bit, and by MMHA's own") {
  const Efficiency l40s = load_gpu(load_named("hardware", "l40s", {}), "trtllm").efficiency;
  const Efficiency h100 = load_gpu(load_named("hardware", "h100-sxm", {}), "trtllm").efficiency;
  const Kernel &xqa = attention::xqa_decode(), &wgmma = attention::xqa_wgmma_decode(), &mmha = attention::mmha_decode();
  CHECK(l40s.block_by_width(xqa, Dtype::kFp8) == &l40s.block(xqa, Dtype::kBf16));
  CHECK(value_of(wgmma, h100.block(wgmma, Dtype::kFp8), "row_ns") >
        2 * value_of(xqa, h100.block(xqa, Dtype::kBf16), "row_ns"));  // another kernel
  CHECK(value_of(mmha, l40s.block(mmha, Dtype::kFp8), "lone") == value_of(mmha, h100.block(mmha, Dtype::kFp8), "lone"));
}

TEST_CASE("efficiency: off Hopper, XQA's time a cut is a time for each of its 16 keys") {
  const Kernel& xqa = attention::xqa_decode();
  const auto decode = [&](const char* gpu, const char* name) {
    const Efficiency e = load_gpu(load_named("hardware", gpu, {}), "trtllm").efficiency;
    return value_of(xqa, e.block(xqa, Dtype::kBf16), name);
  };
  const double clock = 1980.0 / 2520, row_ns = decode("h100-sxm", "row_ns");
  CHECK(decode("l40s", "split_ns") == 0.0);
  CHECK(decode("l40s", "row_ns") == doctest::Approx(clock * (row_ns + decode("h100-sxm", "split_ns") / 16)));
  CHECK(decode("l40s", "row_ns") * decode("l40s", "row_growth") ==
        doctest::Approx(clock * row_ns * decode("h100-sxm", "row_growth")));  // a head dimension's
  CHECK(decode("h20", "split_ns") == decode("h200-sxm", "split_ns"));         // Hopper's own
}

TEST_CASE("efficiency: what prefill loses of the peak is cycles of other instructions, of the same kernels") {
  const auto share = [](const char* gpu) {
    const Efficiency e = load_gpu(load_named("hardware", gpu, {}), "vllm").efficiency;
    const Kernel& kernel = attention::flash_attention_2_prefill();
    return value_of(kernel, e.block(kernel, Dtype::kBf16), "compute_fraction");
  };
  const double lost = 1 / share("a100-sxm") - 1;
  // FLOP a cycle and SM: 312 T / (108 x 1.41 GHz) = 2049 of an A100, 165.2 T / (128 x 2.52 GHz) = 512 of an RTX 4090
  const double fewer = (165.2 / 128 / 2.52) / (312.0 / 108 / 1.41);
  CHECK(share("rtx-4090") == doctest::Approx(1 / (1 + lost * fewer)));
  CHECK(share("rtx-4090") > 0.85);
  CHECK(share("l40s") == doctest::Approx(0.64));  // of which 350 W sustain no more
  const auto latent = [](const char* gpu) {
    const Efficiency e = load_gpu(load_named("hardware", gpu, {}), "trtllm").efficiency;
    const Kernel& kernel = attention::fmha_mla_decode();
    return value_of(kernel, e.block(kernel, Dtype::kBf16), "compute_fraction");
  };
  CHECK(latent("rtx-4090") == doctest::Approx(1 / (1 + (1 / latent("a100-sxm") - 1) * fewer)));
}

TEST_CASE("efficiency: TensorRT-LLM takes Ampere's prompts, and keeps decode") {
  const Folder folder;
  const auto file = [&](const std::string& name, const std::string& launch) {
    const std::string both = "{bf16: {launch_us: " + launch + "}, fp8: {launch_us: " + launch + "}}";
    const std::string prefill = name == "newer" ? "fmha_v2_wgmma_prefill: " : "fmha_v2_prefill: ";
    return folder.write(name + ".yaml", "name: " + name + "\n" + kSpec + "efficiency: {trtllm: {" + prefill + both +
                                            ", mmha_decode: " + both + "}}\n");
  };
  const std::string newer = file("newer", "5"), older = file("older", "7");
  const Efficiency e =
      load_text("efficiency: {carried_over_from: " + newer + ", ampere_kernels_from: " + older + "}\n", "trtllm")
          .efficiency;
  const Kernel& fmha = attention::fmha_v2_prefill();
  CHECK(value_of(fmha, e.block(fmha, Dtype::kBf16), "launch_us") == 7.0);
  CHECK(value_of(fmha, e.block(fmha, Dtype::kFp8), "launch_us") == 7.0);
  const Kernel& mmha = attention::mmha_decode();
  CHECK(value_of(mmha, e.block(mmha, Dtype::kBf16), "launch_us") == 5.0);
}

TEST_CASE("efficiency: a graphics chip takes no decode by tcgen05, and Ampere's 16-bit experts") {
  const Folder folder;
  const auto file = [&](const std::string& name, const std::string& spec, const std::string& decode,
                        const std::string& launch) {
    const std::string both = "{bf16: {launch_us: " + launch + "}, fp8: {launch_us: " + launch + "}}";
    const std::string experts = name == "newer" ? "cutlass_experts" : "cutlass_mma_sync_experts";
    return folder.write(name + ".yaml", "name: " + name + "\n" + spec + "efficiency: {trtllm: {" + decode + ": " +
                                            both + ", " + experts + ": " + both + ", cutlass_ungated_experts: " + both +
                                            "}}\n");
  };
  std::string blackwell = kSpec;
  blackwell.replace(blackwell.find("architecture: "),
                    blackwell.find('\n', blackwell.find("architecture: ")) - blackwell.find("architecture: "),
                    "architecture: blackwell");
  const std::string newer = file("newer", blackwell, "trtllm_gen_decode", "5");
  const std::string older = file("older", kSpec, "xqa_decode", "7");
  const Efficiency e =
      load_text("efficiency: {carried_over_from: " + newer + ", ampere_kernels_from: " + older + "}\n", "trtllm")
          .efficiency;
  const Kernel& xqa = attention::xqa_decode();
  CHECK(value_of(xqa, e.block(xqa, Dtype::kBf16), "launch_us") == 7.0);
  const DecodeShape one{.batch = 64, .mean_context = 500, .max_context = 500};
  const GpuSpec spec = load_text("", "trtllm").spec;
  CHECK(&decode_kernel(one, {.heads = 8, .kv_heads = 1}, spec, e.rules()) == &xqa);
  const auto launch = [&](Dtype weights, bool gated) {
    const MoeShape shape{.tokens = 1,
                         .hidden = 64,
                         .inter = 64,
                         .top_k = 1,
                         .experts = 8,
                         .gated = gated,
                         .weights = weights,
                         .routing = {}};
    const ExpertsChoice choice = choose_experts(shape, {.gpu = &spec, .efficiency = &e});
    return choice.kernel->parameters(*choice.constants).launch_us;
  };
  // CUTLASS's launches and router go with the release, not with the instructions.
  CHECK(launch(Dtype::kBf16, true) == 5.0);
  CHECK(launch(Dtype::kFp8, true) == 5.0);
  CHECK(launch(Dtype::kBf16, false) == 5.0);
  CHECK(launch(Dtype::kFp8, false) == 5.0);
}

TEST_CASE("efficiency: of experts, waits for memory stay and element-wise loads follow the matrix units") {
  const Folder folder;
  const std::string moe = "{bf16: {memory_step_us: 0.5, unaligned_slowdown: 2.5, launch_us: 10}, fp8: {launch_us: 10}}";
  folder.write("a.yaml", "name: a\nboost_clock: 1000 MHz\n" + kSpec +
                             "efficiency: {vllm: {triton_mma_sync_experts: " + moe + "}}\n");
  std::string faster = kSpec;
  faster.replace(faster.find("100 TFLOP/s"), 3, "400");
  const auto carried = [&](const std::string& spec) {
    const std::string text =
        "name: x\nboost_clock: 2000 MHz\n" + spec + "efficiency: {carried_over_from: " + folder.at("a.yaml") + "}\n";
    return load_gpu(parse_config_text(text, "gpu.yaml"), "vllm").efficiency;
  };
  const ExpertsKernel& triton = triton_mma_sync_experts();
  const Efficiency alike = carried(faster);  // of the same architecture: nothing grows with its peak
  CHECK(triton.parameters(alike.block(triton, Dtype::kBf16)).unaligned_slowdown == 2.5);
  faster.replace(faster.find("ampere"), 6, "ada");
  const Efficiency e = carried(faster);
  const MoeParameters bf16 = triton.parameters(e.block(triton, Dtype::kBf16));
  CHECK(bf16.launch_us == doctest::Approx(5.0));
  CHECK(bf16.memory_step_us == doctest::Approx(0.5));
  CHECK(bf16.unaligned_slowdown == doctest::Approx(5.0));  // four times the rate at twice the clock
  CHECK(triton.parameters(e.block(triton, Dtype::kFp8)).unaligned_slowdown == 1.0);
}

TEST_CASE("efficiency: over a chain, the GPU that was measured is named") {
  const Folder folder;
  folder.write("a.yaml", "name: a\n" + kSpec + "efficiency: {vllm: " + constants("v") + "}\n");
  folder.write("b.yaml", "name: b\n" + kSpec + "efficiency: {carried_over_from: " + folder.at("a.yaml") + "}\n");
  const CalibratedGpu gpu = load_text("efficiency: {carried_over_from: " + folder.at("b.yaml") + "}\n", "vllm");
  CHECK(gpu.efficiency.carried_over_from == "a");
  CHECK(gpu.efficiency.block(cublaslt_mma_sync(), Dtype::kBf16).record->discrepancy ==
        doctest::Approx(std::hypot(0.1, 0.05, 0.05)).epsilon(1e-12));
}

TEST_CASE("efficiency: a circle of GPUs is an error of the files") {
  const Folder folder;
  folder.write("a.yaml", "name: a\n" + kSpec + "efficiency: {carried_over_from: " + folder.at("b.yaml") + "}\n");
  folder.write("b.yaml", "name: b\n" + kSpec + "efficiency: {carried_over_from: " + folder.at("a.yaml") + "}\n");
  CHECK(error_of("efficiency: {carried_over_from: " + folder.at("a.yaml") + "}\n").find("circle") != std::string::npos);
}

TEST_CASE("efficiency: mistakes are named with path, line and column") {
  CHECK(error_of("efficiency: {carried_over_from: h100-smx}\n").find("h100-sxm") != std::string::npos);
  CHECK(error_of("efficiency: {vllm: missing.yaml}\n").starts_with("gpu.yaml:10:20: "));
  CHECK(error_of("efficiency: {vlm: missing.yaml}\n").starts_with("gpu.yaml:10:14: "));
  CHECK(error_of("efficiency: {vllm: {cublasl: {}}}\n").starts_with("gpu.yaml:10:21: "));
  CHECK(error_of("efficiency: {vllm: {cublaslt: {bf15: {}}}}\n").starts_with("gpu.yaml:10:32: "));
  CHECK(error_of("efficiency: {vllm: {cublaslt: {bf16: {}, bfloat16: {}}}}\n").starts_with("gpu.yaml:10:42: "));
  // A constant of another kernel.
  CHECK(error_of("efficiency: {vllm: {marlin_experts: {int4: {gather_loss: 0.1}}}}\n").starts_with("gpu.yaml:10:45: "));
  CHECK(error_of("efficiency: {vllm: {nccl_all_reduced: {}}}\n").find("all_reduce") != std::string::npos);
}

TEST_CASE("efficiency: collectives are read one by one") {
  const std::string fit = "{bf16: {fit: {standing: measured, source: n}}}";
  const CalibratedGpu gpu = load_text("efficiency: {vllm: {nccl_all_gather: " + fit + "}}\n", "vllm");
  CHECK(gpu.efficiency.find(nccl_kernel(Collective::kAllGather), Dtype::kBf16) != nullptr);
  CHECK(!gpu.efficiency.has(nccl_kernel(Collective::kAllReduce)));
}

TEST_CASE("efficiency: every shipped GPU loads for both families; those not measured say from whom they carry over") {
  for (const std::string& name : names_of("hardware")) {
    for (const std::string kernels : {"vllm", "trtllm"}) {
      CAPTURE(name);
      CAPTURE(kernels);
      const CalibratedGpu gpu = load_gpu(load_named("hardware", name, {}), kernels);
      CHECK(gpu.spec.name == name);
      const bool measured = name == "a100-sxm" || name == "h100-sxm" || name == "h200-sxm" || name == "b200-sxm";
      CHECK(gpu.efficiency.carried_over_from.empty() == (measured || by_roofline(gpu.spec.architecture)));
    }
  }
}

// --- constants over others ----------------------------------------------------------------------------

namespace {

GemmParameters gemm_of(const CalibratedGpu& gpu, Dtype dtype) {
  return cublaslt().parameters(gpu.efficiency.block(cublaslt(), dtype));
}

}  // namespace

TEST_CASE("constants file: what a block leaves out holds as in the block that it extends") {
  const std::string text =
      "efficiency: {vllm: {cublaslt: {fp8: {extends: bf16, wave_us: 3, fit: {rows: 7}}, bf16: {launch_us: 4, wave_us: "
      "2}}, "
      "cutlass_fp8: {fp8: {extends: cublaslt.fp8}}}}\n";
  const CalibratedGpu gpu = load_text(text, "vllm");
  CHECK(gemm_of(gpu, Dtype::kFp8).launch_us == 4.0);  // read before, wherever it stands
  CHECK(gemm_of(gpu, Dtype::kFp8).wave_us == 3.0);
  CHECK(gpu.efficiency.block(cublaslt(), Dtype::kFp8).record->rows == 7);
  CHECK(cutlass_fp8().parameters(gpu.efficiency.block(cutlass_fp8(), Dtype::kFp8)).wave_us == 3.0);
  CHECK(gpu.efficiency.block(cutlass_fp8(), Dtype::kFp8).record->rows == 7);

  const auto bad = [](const std::string& blocks) {
    return error_of("efficiency: {vllm: {cublaslt: {" + blocks + "}}}\n");
  };
  CHECK(bad("fp8: {extends: bf16}").find("no constants of cublaslt.bf16") != std::string::npos);
  CHECK(bad("fp8: {extends: cublasl.bf16}").find("cublaslt") != std::string::npos);
  CHECK(bad("fp8: {extends: [bf16]}").find("must name a format") != std::string::npos);
  CHECK(bad("fp8: {extends: bf16}, bf16: {extends: fp8}").find("circle") != std::string::npos);
}

TEST_CASE("constants file: own constants lie over shared ones, and those over another GPU's") {
  const Folder folder;
  const std::string other = folder.write(
      "a.yaml",
      "name: a\n" + kSpec + "efficiency: {vllm: {cublaslt: {bf16: {launch_us: 4, wave_us: 2, epilogue_us: 1}}}}\n");
  const std::string text =
      "efficiency: {pooled_with: " + other +
      ", shared: {cublaslt: {bf16: {wave_us: 3}}}, vllm: {cublaslt: {bf16: {epilogue_us: 0.5, fit: "
      "{standing: measured, discrepancy: 0.04}}}}}\n";
  const CalibratedGpu gpu = load_text(text, "vllm");
  CHECK(gemm_of(gpu, Dtype::kBf16).launch_us == 4.0);
  CHECK(gemm_of(gpu, Dtype::kBf16).wave_us == 3.0);
  CHECK(gemm_of(gpu, Dtype::kBf16).epilogue_us == 0.5);
  CHECK(gpu.efficiency.carried_over_from.empty());
  const FitRecord& record = *gpu.efficiency.block(cublaslt(), Dtype::kBf16).record;
  CHECK(record.provenance == Provenance::kMeasured);
  CHECK(record.discrepancy == 0.04);  // by its own rows: no wider

  // Fits start from what lies beneath the last of them.
  const BlocksBeneath beneath = blocks_beneath(parse_config_text("name: x\n" + kSpec + text, "gpu.yaml"), "vllm");
  REQUIRE(beneath.contains("cublaslt.bf16"));
  const GemmParameters below = cublaslt().parameters(beneath.at("cublaslt.bf16"));
  CHECK(below.wave_us == 3.0);
  CHECK(below.epilogue_us == 1.0);
  CHECK(blocks_beneath(parse_config_file(other), "vllm").empty());
  CHECK(blocks_beneath(parse_config_file(other), "trtllm").empty());  // vLLM's stand in, fits do not start there

  CHECK(error_of("efficiency: {pooled_with: " + other + ", carried_over_from: " + other + "}\n")
            .find("cannot be combined with") != std::string::npos);
  CHECK(error_of("efficiency: {pooled_with: " + other + ", matrix_limit: 0.5}\n")
            .find("cannot be combined with 'pooled_with'") != std::string::npos);
}

TEST_CASE("constants file: what a kernel borrows keeps each standard error with its constant") {
  const Kernel &lender = cublaslt_mma_sync(), &borrower = cutlass_mma_sync_fp8();
  const std::vector<FieldFacts> theirs = lender.fields(), mine = borrower.fields();
  FitRecord record;
  for (std::size_t i = 0; i < theirs.size(); ++i) record.standard_errors.push_back(static_cast<double>(i + 1));
  const std::vector<double> values = lender.numbers(lender.defaults());
  const ConstantsBlock lent = borrower.borrowed(lender, lender.from_numbers(values, record));
  REQUIRE(lent.record->standard_errors.size() == mine.size());
  bool other_place = false;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    double expected = 0.0;
    for (std::size_t j = 0; j < theirs.size(); ++j) {
      if (theirs[j].name != mine[i].name) continue;
      expected = static_cast<double>(j + 1);
      other_place = other_place || i != j;
    }
    CHECK(lent.record->standard_errors[i] == expected);
  }
  CHECK(other_place);  // the lists differ, so that the order counts
}
