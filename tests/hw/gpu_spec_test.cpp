#include "hw/gpu_spec.h"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/config_library.h"
#include "hw/changed_gpu.h"
#include "hw/collectives.h"
#include "hw/efficiency.h"
#include "hw/kernels/gemm.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;

namespace {

GpuSpec shipped(const std::string& name) {
  return parse_gpu_spec(ConfigReader(load_named("hardware", name, {}), "a GPU"));
}

const std::string kSmall =
    "name: small\n"
    "architecture: ampere\n"
    "sm_count: 10\n"
    "memory_capacity: 16 GiB\n"
    "memory_bandwidth: 500 GB/s\n"
    "l2_cache: 4 MiB\n"
    "shared_memory_per_sm: 100 KiB\n"
    "node: {gpus_per_node: 2, pcie_bandwidth: 32 GB/s, nic_bandwidth: 100 Gb/s}\n"
    "dense: {bf16: 100 TFLOP/s, fp8: 200 TFLOP/s}\n";

GpuSpec parse(const std::string& yaml) {
  return parse_gpu_spec(ConfigReader(parse_config_text(yaml, "gpu.yaml"), "a GPU"));
}

std::string error_of(const std::string& yaml) {
  try {
    parse(yaml);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

double ridge(const GpuSpec& gpu, Dtype dtype) { return (gpu.peak(dtype) / gpu.memory_bandwidth).base(); }

}  // namespace

TEST_CASE("gpu: every shipped file parses and is plausible") {
  const std::vector<std::string> names = names_of("hardware");
  CHECK(names.size() >= 17);
  for (const std::string& name : names) {
    CAPTURE(name);
    const GpuSpec gpu = shipped(name);
    CHECK(gpu.name == name);
    CHECK(gpu.memory_capacity > 10.0 * kGigabyte);
    CHECK(gpu.memory_capacity < 900.0 * kGigabyte);
    CHECK(gpu.memory_bandwidth > 60.0 * kGigabytePerSecond);
    CHECK(gpu.memory_bandwidth < 25000.0 * kGigabytePerSecond);
    CHECK(gpu.peak(Dtype::kFp8Block) == gpu.peak(Dtype::kFp8));
    CHECK(gpu.idle_power <= gpu.board_power);
    CHECK(gpu.node.fabric_domain >= 1);
    if (by_roofline(gpu.architecture)) continue;
    CHECK(gpu.sm_count >= 48);
    CHECK(gpu.peak(Dtype::kBf16) == gpu.peak(Dtype::kFp16));
    CHECK(gpu.peak(Dtype::kBf16) > gpu.peak(Dtype::kFp32));
    CHECK(gpu.idle_power.value > 0.0);
    CHECK(gpu.idle_power < gpu.board_power);
    // An SM multiplies 512 (GA102) to 8192 (Blackwell) dense bf16 values a clock, at 1 to 3 GHz.
    const double flops_per_sm_clock = gpu.peak(Dtype::kBf16).base() / gpu.sm_count / 1.8e9;
    CHECK(flops_per_sm_clock > 400.0);
    CHECK(flops_per_sm_clock < 10000.0);
  }
}

TEST_CASE("gpu: ridge points") {
  CHECK(ridge(shipped("h100-sxm"), Dtype::kBf16) == doctest::Approx(989e12 / 3.35e12).epsilon(1e-12));  // 295.2 FLOP/B
  CHECK(ridge(shipped("h100-sxm"), Dtype::kBf16) == doctest::Approx(295.2).epsilon(1e-3));
  CHECK(ridge(shipped("h100-sxm"), Dtype::kFp8) == doctest::Approx(590.7).epsilon(1e-3));   // 1979 / 3.35
  CHECK(ridge(shipped("a100-sxm"), Dtype::kBf16) == doctest::Approx(153.0).epsilon(1e-3));  // 312 / 2.039
  CHECK(ridge(shipped("h200-sxm"), Dtype::kBf16) == doctest::Approx(206.0).epsilon(1e-3));  // 989 / 4.8
  CHECK(ridge(shipped("b200-sxm"), Dtype::kBf16) == doctest::Approx(281.3).epsilon(1e-3));  // 2250 / 8
}

TEST_CASE("gpu: a sibling has the figures that it does not say, and the constants as carried over") {
  const GpuSpec h100 = shipped("h100-sxm"), h800 = shipped("h800");
  CHECK(h800.memory_capacity == h100.memory_capacity);
  CHECK(h800.node.fabric_bandwidth == 200.0 * kGigabytePerSecond);
  CHECK(h800.node.pcie_bandwidth == h100.node.pcie_bandwidth);
  const CalibratedGpu sibling = load_gpu(load_named("hardware", "h800", {}), "vllm");
  CHECK(sibling.efficiency.carried_over_from == "h100-sxm");
  CHECK(error_of("name: me\nlike: nothing\n").find("unknown gpu 'nothing'") != std::string::npos);
  CHECK(error_of("name: me\nlike: [h800]\n").find("'like' must name a GPU") != std::string::npos);
}

TEST_CASE("gpu: a sibling's path is meant from the folder of the file that names it") {
  const TemporaryFolder folder;
  folder.write("base.yaml", "name: base\nlike: h100-sxm\nmemory_bandwidth: 4 TB/s\n");
  for (const char* like : {"./base.yaml", "base.yaml"}) {
    const std::string path = folder.write("mine.yaml", std::string("name: mine\nlike: ") + like + "\n");
    const GpuSpec gpu = parse_gpu_spec(ConfigReader(parse_config_file(path), "a GPU"));
    CHECK(gpu.memory_bandwidth == 4000.0 * kGigabytePerSecond);
  }
}

TEST_CASE("gpu: a chip that a scenario changes takes the constants of the named one as carried over") {
  const auto written = [](const std::string& text) {
    const ConfigTree value = parse_config_text(text, "scenario.yaml");
    return load_gpu(with_changed_figures(value, resolve_named("hardware", value)), "vllm");
  };
  const CalibratedGpu measured = written("{name: h100-sxm, memory_capacity: 94 GB, node: {nic_bandwidth: 25 GB/s}}");
  CHECK(measured.efficiency.carried_over_from.empty());
  const CalibratedGpu larger = written("{name: h100-sxm, sm_count: 160}");
  CHECK(larger.spec.sm_count == 160);
  CHECK(larger.efficiency.carried_over_from == "h100-sxm");
  const auto unexplained = [](const CalibratedGpu& gpu) {
    return gemm_evidence({.m = 64, .n = 4096, .k = 4096}, gpu.spec, gpu.efficiency).discrepancy(false);
  };
  // 5 % of products within a generation (docs/equations.md), as independent of the fit's own.
  CHECK(unexplained(larger) == doctest::Approx(std::hypot(unexplained(measured), 0.05)).epsilon(1e-9));
  CHECK(written("{name: mi355x, sm_count: 300}").efficiency.without_aiter == 0.5);
  // A constant that the scenario sets beside it lies over the carried ones, and the others stay carried over.
  const CalibratedGpu set =
      written("{name: h100-sxm, sm_count: 160, efficiency: {vllm: {nccl_all_reduce: {bf16: {launch_us: 33}}}}}");
  CHECK(set.efficiency.carried_over_from == "h100-sxm");
  CHECK(set.efficiency.find(nccl_kernel(Collective::kAllReduce), Dtype::kBf16)->value.launch_us == 33.0);
  CHECK(unexplained(set) == unexplained(larger));
  // A source that it names takes the place of the named GPU.
  CHECK(written("{name: h100-sxm, sm_count: 160, efficiency: {carried_over_from: h200-sxm}}")
            .efficiency.carried_over_from == "h200-sxm");
}

TEST_CASE("fabric: a group uses the links that reach its members") {
  CHECK(share_of_links(Fabric::kNvSwitch, 2, 8) == 1.0);                       // the switch gives all links to any two
  CHECK(share_of_links(Fabric::kXgmiMesh, 2, 8) == doctest::Approx(1.0 / 7));  // one peer of seven
  CHECK(share_of_links(Fabric::kXgmiMesh, 8, 8) == 1.0);
  CHECK(share_of_links(Fabric::kTorus, 4, 9216) == 0.5);  // a ring over a slice
  CHECK(share_of_links(Fabric::kTorus, 9216, 9216) == 1.0);
  CHECK(share_of_links(Fabric::kSwitch, 4, 72) == 1.0);
}

TEST_CASE("gpu: what is announced says so, and so is a sibling of it unless it says otherwise") {
  CHECK(shipped("rubin").announced);
  CHECK(shipped("mi455x").announced);
  CHECK_FALSE(shipped("b200-sxm").announced);
  CHECK(parse("name: mine\nlike: rubin\n").announced);
  CHECK_FALSE(parse("name: mine\nlike: rubin\nannounced: false\n").announced);
}

TEST_CASE("gpu: AMD's memory as rocm-smi shows it") {
  CHECK(shipped("mi355x").memory_capacity == Bytes(309220868096.0));
  CHECK(shipped("mi325x").memory_capacity == Bytes(274877906944.0));  // 256 GiB
}

TEST_CASE("gpu: an 80 GB H100 has the 85.0e9 bytes that the driver shows") {
  CHECK(shipped("h100-sxm").memory_capacity == Bytes(85.0e9));
}

TEST_CASE("gpu: NVLink reaches over the rack of a GB200, over the node of an H100, not at all on an L40S") {
  CHECK(shipped("gb200").node.fabric_domain == 72);
  CHECK(shipped("gb300").node.fabric_domain == 72);
  CHECK(shipped("h100-sxm").node.fabric_domain == 8);
  CHECK(shipped("h100-sxm").node.fabric_bandwidth == 450.0 * kGigabytePerSecond);
  CHECK(shipped("l40s").node.fabric_domain == 1);
  CHECK(shipped("l40s").node.fabric_bandwidth == BytesPerSecond(0.0));
}

TEST_CASE("gpu: a product is computed in the activations' format when weights are only stored smaller") {
  const GpuSpec h100 = shipped("h100-sxm");
  using enum Dtype;
  CHECK(h100.compute_dtype(kBf16, kBf16) == kBf16);
  CHECK(h100.compute_dtype(kInt8, kInt8) == kInt8);
  for (const Dtype weights : {kFp8, kFp8Block, kInt8, kInt4, kInt3, kInt2, kTernary, kNvfp4, kMxfp4}) {
    CAPTURE(name_of(weights));
    CHECK(h100.compute_dtype(weights, kBf16) == kBf16);  // weight-only
    CHECK(h100.compute_dtype(weights, kFp16) == kFp16);
  }
  CHECK(h100.compute_dtype(kFp8, kFp8) == kFp8);
  CHECK(h100.compute_dtype(kFp8Block, kFp8Block) == kFp8Block);
  CHECK(h100.compute_dtype(kFp8Block, kFp8) == kFp8Block);  // the scales of the weights are applied to the products
  CHECK(h100.compute_dtype(kFp8, kFp8Block) == kFp8Block);
  CHECK(h100.compute_dtype(kInt4, kFp8) == kFp8);
  CHECK(h100.compute_dtype(kMxfp4, kFp8) == kFp8);
  CHECK(h100.compute_dtype(kInt4, kInt8) == kInt8);
  CHECK(h100.compute_dtype(kTernary, kInt8) == kInt8);
  CHECK(h100.compute_dtype(kBf16, kFp8) == kBf16);  // the narrower operand is widened, never the other way
}

TEST_CASE("gpu: fp32 runs on the CUDA cores, tf32 only where it is asked for") {
  const GpuSpec h100 = shipped("h100-sxm");
  CHECK(h100.compute_dtype(Dtype::kFp32, Dtype::kFp32) == Dtype::kFp32);
  CHECK(h100.peak(Dtype::kFp32) == 67.0 * kTeraflopPerSecond);
  CHECK(h100.compute_dtype(Dtype::kFp32, Dtype::kTf32) == Dtype::kTf32);
}

TEST_CASE("gpu: a file that leaves fp32 out is taken to do a sixteenth of bf16 on the CUDA cores") {
  ConfigTree tree = load_named("hardware", "h100-sxm", {});
  auto node = std::make_shared<ConfigNode>(*tree);
  for (auto& entry : node->entries) {
    if (entry.key != "dense") continue;
    auto dense = std::make_shared<ConfigNode>(*entry.value);
    std::erase_if(dense->entries, [](const auto& e) { return e.key == "fp32"; });
    entry.value = dense;
  }
  const GpuSpec gpu = parse_gpu_spec(ConfigReader(ConfigTree(node), "a GPU"));
  CHECK(gpu.peak(Dtype::kFp32) == gpu.peak(Dtype::kBf16) * (1.0 / 16.0));
}

TEST_CASE("gpu: shares of one machine multiply the vendor's figures, but for the board's power") {
  const ConfigTree kind = load_named("hardware", "h100-sxm", {});
  const ConfigTree shares = parse_config_text(
      "{memory_bandwidth: 0.9, clock: 0.95, power: 0.8, fabric_bandwidth: 0.7, source: a test}", "m.yaml");
  const GpuSpec gpu = parse_gpu_spec(ConfigReader(with_value(kind, "machine", shares, "a test"), "a GPU"));
  CHECK(gpu.memory_bandwidth.base() == doctest::Approx(0.9 * 3.35e12));
  CHECK(gpu.peak(Dtype::kBf16).base() == doctest::Approx(0.95 * 989e12));
  CHECK(gpu.boost_clock.base() == doctest::Approx(0.95 * 1980e6));
  CHECK(gpu.node.fabric_bandwidth.base() == doctest::Approx(0.7 * 450e9));
  CHECK(gpu.board_power.value == 700.0);
  CHECK(gpu.machine.power == 0.8);
  // twice over: shares of shares
  CHECK(on_machine(gpu, {.memory_bandwidth = 0.5}).memory_bandwidth.base() == doctest::Approx(0.45 * 3.35e12));
  CHECK(on_machine(gpu, {.memory_bandwidth = 0.5}).machine.memory_bandwidth == doctest::Approx(0.45));
}

TEST_CASE("gpu: activations without a unit have no answer") {
  const GpuSpec a100 = shipped("a100-sxm");
  CHECK(a100.compute_dtype(Dtype::kFp8, Dtype::kFp8) == std::nullopt);
  CHECK(a100.compute_dtype(Dtype::kFp8Block, Dtype::kFp8Block) == std::nullopt);
  CHECK(a100.compute_dtype(Dtype::kFp8, Dtype::kBf16) == Dtype::kBf16);
  CHECK(a100.compute_dtype(Dtype::kInt8, Dtype::kInt8) == Dtype::kInt8);
  CHECK(shipped("h100-sxm").compute_dtype(Dtype::kInt2, Dtype::kInt2) == std::nullopt);
}

TEST_CASE("gpu: four-bit floating-point activations need a Blackwell, or CDNA 4 for mxfp4") {
  for (const std::string& name : names_of("hardware")) {
    CAPTURE(name);
    const GpuSpec gpu = shipped(name);
    if (by_roofline(gpu.architecture)) continue;  // of any vendor
    const bool blackwell = name_of(gpu.architecture).starts_with("blackwell");
    CHECK(gpu.compute_dtype(Dtype::kNvfp4, Dtype::kNvfp4).has_value() == blackwell);
    const bool mx = blackwell || gpu.architecture == Architecture::kCdna4;
    CHECK(gpu.compute_dtype(Dtype::kMxfp4, Dtype::kMxfp4).has_value() == mx);
  }
  CHECK(shipped("b200-sxm").compute_dtype(Dtype::kNvfp4, Dtype::kBf16) == Dtype::kBf16);
  CHECK(shipped("b200-sxm").compute_dtype(Dtype::kMxfp4, Dtype::kFp8) == Dtype::kFp8);
  CHECK(shipped("b200-sxm").compute_dtype(Dtype::kFp8, Dtype::kNvfp4) == Dtype::kFp8);
}

TEST_CASE("gpu: a file of the user needs the physics and nothing else") {
  const GpuSpec gpu = parse(kSmall);
  CHECK(gpu.memory_capacity == 16.0 * kGibibyte);
  CHECK(gpu.peak(Dtype::kFp8Block) == 200.0 * kTeraflopPerSecond);  // fp8 units serve it
  CHECK(gpu.peak(Dtype::kNvfp4) == FlopsPerSecond(0.0));
  CHECK(gpu.node.fabric_domain == 1);
  CHECK(gpu.node.nic_bandwidth == 12.5 * kGigabytePerSecond);
  CHECK(parse(kSmall + "efficiency: {vllm: elsewhere.yaml}\n").name == "small");  // not this reader's business
}

TEST_CASE("gpu: mistakes are named with path, line and column") {
  const std::string unknown = error_of(kSmall + "memory_bandwith: 1 TB/s\n");
  CHECK(unknown.starts_with("gpu.yaml:10:1: "));
  CHECK(unknown.find("memory_bandwidth") != std::string::npos);
  CHECK(error_of(kSmall + "board_power: 100 W\nidle_power: 200 W\n").starts_with("gpu.yaml:11:13: "));
  std::string text = kSmall;
  text.replace(text.find("500 GB/s"), 8, "fast");
  CHECK(error_of(text).starts_with("gpu.yaml:5:19: "));
  text = kSmall;
  text.replace(text.find("sm_count: 10"), 12, "sm_count: 0 ");
  CHECK(error_of(text).starts_with("gpu.yaml:3:11: "));
  text = kSmall;
  text.replace(text.find("bf16:"), 5, "bf15:");
  CHECK(error_of(text).starts_with("gpu.yaml:9:9: "));
  text.replace(text.find("bf15:"), 5, "int8:");
  CHECK(error_of(text).find("'dense': must have bf16 or fp16") != std::string::npos);
  text = kSmall;
  text.replace(text.find("gpus_per_node: 2"), 16, "nvlink_domain: 2");
  CHECK(error_of(text).find("nvlink_bandwidth") != std::string::npos);
}

TEST_CASE("gpu: an architecture is one of those known, or generic") {
  std::string text = kSmall;
  const std::size_t at = text.find("architecture: ") + 14;
  const auto named = [&](const std::string& name) {
    return std::string(text).replace(at, text.find('\n', at) - at, name);
  };
  CHECK(error_of(named("Hopper")).starts_with("gpu.yaml:2:15: unknown architecture 'Hopper'; nearest is 'hopper'"));
  CHECK(error_of(named("hoper")).find("nearest is 'hopper'") != std::string::npos);
  CHECK(error_of(named("gaudi3")).find("'generic' prices any other processor") != std::string::npos);
  for (const ArchitectureTraits& traits : architectures()) {
    CHECK(parse(named(std::string(traits.name))).architecture == traits.architecture);
  }
  // A generic processor has no SMs.
  std::string generic = named("generic");
  generic.erase(generic.find("sm_count: 10\n"), 13);
  CHECK(parse(generic).sm_count == 1);
  CHECK(error_of(std::string(text).erase(text.find("sm_count: 10\n"), 13)).find("sm_count") != std::string::npos);
}

TEST_CASE("gpu: the fabric says whether a switch reduces") {
  CHECK(shipped("h100-sxm").node.switch_reduces);
  CHECK(shipped("gb200").node.fabric == Fabric::kNvlDomain);
  CHECK_FALSE(shipped("a100-sxm").node.switch_reduces);  // NVLink SHARP came with Hopper's switch
  CHECK(shipped("mi300x").node.fabric == Fabric::kXgmiMesh);
  CHECK_FALSE(shipped("mi300x").node.switch_reduces);
  const auto node = [](const std::string& keys) {
    std::string text = kSmall;
    text.insert(text.find("gpus_per_node: 2"), keys);
    return text;
  };
  CHECK(parse(node("fabric: mesh, fabric_bandwidth: 100 GB/s, ")).node.fabric_domain == 2);
  CHECK(error_of(node("fabric: xgmi, ")).find("nearest is 'xgmi_mesh'") != std::string::npos);
  CHECK(error_of(node("fabric: mesh, fabric_bandwidth: 1 GB/s, switch_reduces: true, ")).find("switch_reduces") !=
        std::string::npos);
  CHECK(error_of(node("fabric: pcie, fabric_bandwidth: 1 GB/s, ")).find("pcie_bandwidth") != std::string::npos);
  CHECK(error_of(node("fabric: nvswitch, ")).find("'nvswitch' needs 'nvlink_bandwidth'") != std::string::npos);
  CHECK(error_of(node("fabric: pcie, nvlink_bandwidth: 1 GB/s, ")).find("cannot be combined with the fabric 'pcie'") !=
        std::string::npos);
  // Three links of 40 GB/s: of a GPU with one peer, not with two.
  const auto links = [&](const std::string& keys) {
    return error_of(node("fabric: mesh, fabric_bandwidth: 120 GB/s, link_bandwidth: 40 GB/s, " + keys));
  };
  CHECK(links("fabric_links: 3, ").empty());
  CHECK(links("fabric_links: 2, ")
            .find("2 links of 40 GB/s are 80 GB/s, not the 120 GB/s of the fabric: set its "
                  "bandwidth to 80 GB/s") != std::string::npos);
  CHECK(links("fabric_links: 3, fabric_domain: 3, ")
            .find("a mesh of 3 GPUs has a multiple of 2 links per GPU, got 3: set "
                  "'fabric_domain' to 4") != std::string::npos);
  CHECK(links("").find("needs 'fabric_links', too") != std::string::npos);
  // Leaves of the network hold whole nodes, here of two GPUs.
  const NodeSpec leaves = parse(node("leaf_gpus: 8, oversubscription: 2.5, ")).node;
  CHECK(leaves.leaf_gpus == 8);
  CHECK(leaves.oversubscription == 2.5);
  CHECK(parse(node("")).node.oversubscription == 1.0);
  CHECK(error_of(node("oversubscription: 2, ")).find("needs 'leaf_gpus'") != std::string::npos);
  CHECK(error_of(node("leaf_gpus: 3, ")).find("must be a multiple of 2") != std::string::npos);
  CHECK(error_of(node("leaf_gpus: 8, oversubscription: 0.5, ")).find("oversubscription") != std::string::npos);
  CHECK(error_of(node("fabric: nvswitch, nvlink_bandwidth: 1 GB/s, nvlink_domain: 72, "))
            .find("set 'fabric: nvl_domain'") != std::string::npos);
  CHECK(error_of(node("fabric: nvl_domain, nvlink_bandwidth: 1 GB/s, nvlink_domain: 71, ")).find("set it to 70") !=
        std::string::npos);
  // Two bridged cards of two: the switch of a node; of eight: a mesh.
  std::string bridged = node("nvlink_bandwidth: 300 GB/s, nvlink_domain: 2, ");
  CHECK(parse(bridged).node.fabric == Fabric::kNvSwitch);
  bridged.replace(bridged.find("gpus_per_node: 2"), 16, "gpus_per_node: 8");
  CHECK(parse(bridged).node.fabric == Fabric::kNvlinkMesh);
}
