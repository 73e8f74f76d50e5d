#include "hw/kernel_rules.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "base/config_library.h"
#include "hw/constants_file.h"
#include "hw/efficiency.h"
#include "hw/kernels/moe.h"
#include "hw/kernels/state.h"

using namespace roofcast;

namespace {

/// Rules of all operators, those of experts as given.
std::string rules(const std::string& experts) {
  std::string text = "name: mine\n";
  for (const char* line :
       {"gemm: [{kernel: cublaslt, source: s}]", "attention_prefill: [{kernel: flash_attention_2_prefill, source: s}]",
        "attention_decode: [{kernel: flash_attention_2_decode, source: s}]",
        "latent_prefill: [{kernel: flash_attention_2_mla_prefill, source: s}]",
        "latent_decode: [{kernel: triton_mla_decode, source: s}]", "convolution: [{kernel: convolution, source: s}]",
        "state: [{kernel: state, source: s}]"})
    text += std::string(line) + "\n";
  return text + "experts:\n" + experts;
}
KernelRules read(const std::string& experts, const std::string& release = "") {
  return {parse_config_text(rules(experts), "r.yaml"), "mine", release};
}
std::string_view kernel_of(const KernelRules& rules, const GpuSpec& gpu) {
  return rules.pick(KernelKind::kExperts, CallTraits(gpu)).name();
}
GpuSpec gpu(const char* name) { return parse_gpu_spec(ConfigReader(load_named("hardware", name, {}), "a GPU")); }
/// Which kernel a shipped engine runs.
std::string_view shipped(const char* engine, const char* release, const GpuSpec& gpu, Dtype weights,
                         RequestedExperts asked = RequestedExperts::kDefault, int expert_ranks = 1) {
  CallTraits call(gpu);
  call.weights = weights;
  call.activation_bits = element_bits(weights);
  call.gated = true, call.expert_ranks = expert_ranks;
  call.asked = asked;
  return kernel_rules(engine, release)->pick(KernelKind::kExperts, call).name();
}

}  // namespace

TEST_CASE("kernel rules: the kernel of a product by architecture and format") {
  const auto product = [](const char* engine, Architecture architecture, Dtype block) {
    return kernel_rules(engine)->pick_product(architecture, block).name();
  };
  using enum Architecture;
  CHECK(product("vllm", kHopper, Dtype::kBf16) == "cublaslt");
  CHECK(product("vllm", kAmpere, Dtype::kBf16) == "cublaslt_mma_sync");
  CHECK(product("vllm", kCdna3, Dtype::kBf16) == "hipblaslt");
  CHECK(product("vllm", kHopper, Dtype::kFp8) == "cutlass_fp8");
  CHECK(product("trtllm", kHopper, Dtype::kFp8) == "cublaslt_fp8");
  CHECK(product("sglang", kBlackwell, Dtype::kFp8Block) == "deep_gemm");
  CHECK(product("trtllm", kBlackwell, Dtype::kFp8Block) == "deep_gemm_trtllm");
  CHECK(product("vllm", kAda, Dtype::kFp8Block) == "blockwise_fp8");
  CHECK(product("trtllm", kBlackwell, Dtype::kNvfp4) == "cutlass_nvfp4");
  CHECK(product("vllm", kHopper, Dtype::kInt4) == "weight_only");
}

TEST_CASE("kernel rules: what an engine's kernels do is data, and an engine that extends another has its") {
  CHECK(kernel_rules("trtllm")->engine().rotary_in_attention);
  CHECK_FALSE(kernel_rules("vllm")->engine().rotary_in_attention);
  CHECK(kernel_rules("vllm")->engine().flash_attention_2);
  const std::string mine = "name: mine\nextends: trtllm\nengine: {exchange_by_mode: true}\n";
  const KernelRules extended(parse_config_text(mine, "r.yaml"), "mine");
  CHECK(extended.engine().exchange_by_mode);
  CHECK(extended.engine().launched_from_cpp);
  CHECK_THROWS_WITH_AS(KernelRules(parse_config_text("extends: vllm\nengine: {rotry: true}\n", "r.yaml"), "mine"),
                       doctest::Contains("rotry"), ConfigError);
}

TEST_CASE("kernel rules: a set is a file by its name, and stands behind the one that it extends") {
  for (const std::string& name : kernel_sets()) CHECK(kernel_rules(name)->name() == name);
  CHECK(kernel_rules("sglang")->base()->name() == "vllm");
  CHECK(kernel_rules("vllm")->base() == nullptr);
  std::set<std::string> before;
  for (const auto& rules : all_kernel_rules()) {
    if (rules->base() != nullptr) CHECK(before.contains(rules->base()->name()));
    before.insert(rules->name());
  }
  CHECK(before.size() == kernel_sets().size());
}

TEST_CASE("kernel rules: a set has the name of its file, which is no other key of a GPU's constants") {
  const auto refused = [](const std::string& text, const char* set, const char* why) {
    CHECK_THROWS_WITH_AS(KernelRules(parse_config_text(text, "mine.yaml"), set), why, ConfigError);
  };
  refused("name: vllm\nextends: vllm\n", "mine",
          "mine.yaml:1:7: 'name': must be 'mine', the name of the file, or left out");
  CHECK(KernelRules(parse_config_text("extends: vllm\n", "mine.yaml"), "mine").name() == "mine");
  refused("extends: vllm\n", "shared",
          "mine.yaml:1:1: 'shared' is a key of a GPU's 'efficiency': give the set another name");
  refused("extends: vlm\n", "mine",
          "mine.yaml:1:10: unknown set of kernels 'vlm'; nearest is 'vllm' (valid: sglang, trtllm, vllm)");
  CHECK_THROWS_WITH_AS(KernelRules(parse_config_text("extends: vllm\n", "mine.yaml"), "mine", "", 4),
                       "mine.yaml:1:10: 'extends': sets of kernels extend each other in a circle", ConfigError);
  CHECK_THROWS_AS(kernel_rules("mine"), ConfigError);
}

TEST_CASE("kernel rules: convolutions of Mamba have kernels of their own") {
  const auto kernel_of = [](const char* engine, KernelKind kind, StateMixer::Kind mixer) {
    CallTraits call(Architecture::kHopper);
    call.mixer = mixer;
    return kernel_rules(engine)->pick(kind, call).name();
  };
  using enum StateMixer::Kind;
  CHECK(kernel_of("vllm", KernelKind::kConvolution, kGatedDelta) == "convolution");
  CHECK(kernel_of("vllm", KernelKind::kConvolution, kMamba2) == "mamba_convolution");
  CHECK(kernel_of("trtllm", KernelKind::kConvolution, kMamba1) == "mamba_strip_convolution");
  CHECK(kernel_of("trtllm", KernelKind::kState, kGatedDelta) == "chunked_state");
  CHECK(kernel_of("sglang", KernelKind::kState, kLightning) == "state");
  CHECK_THROWS_WITH_AS(read("  - {kernel: triton_experts, when: {mixer: mamba3}, source: s}\n"),
                       doctest::Contains("unknown mixer 'mamba3'; nearest is 'mamba"), ConfigError);
}

TEST_CASE("kernel rules: a rule holds from `since` until before `until`") {
  const std::string two =
      "  - {kernel: triton_experts, until: \"0.15.0\", source: s}\n"
      "  - {kernel: marlin_experts, since: \"0.17.0\", source: s}\n"
      "  - {kernel: cutlass_experts, source: s}\n";
  const GpuSpec b200 = gpu("b200-sxm");
  CHECK(kernel_of(read(two, "0.14.1"), b200) == "triton_experts");
  CHECK(kernel_of(read(two, "0.15.0"), b200) == "cutlass_experts");
  CHECK(kernel_of(read(two, "0.16.0"), b200) == "cutlass_experts");
  CHECK(kernel_of(read(two, "0.17.0"), b200) == "marlin_experts");
  CHECK(kernel_of(read(two), b200) == "marlin_experts");  // the newest release
}

TEST_CASE("kernel rules: what a file extends stands behind its own rules") {
  const KernelRules mine(parse_config_text("name: mine\nextends: vllm\nexperts:\n"
                                           "  - {kernel: marlin_experts, when: {weights: int4}, source: s}\n",
                                           "r.yaml"),
                         "mine");
  const auto vllm = kernel_rules("vllm");
  CHECK(mine.decode_rows() == vllm->decode_rows());
  CHECK(mine.of(KernelKind::kExperts).size() == vllm->of(KernelKind::kExperts).size() + 1);
  CHECK(mine.of(KernelKind::kExperts).front().kernel->name() == "marlin_experts");
}

TEST_CASE("kernel rules: bounds must be versions, and the last rule holds always") {
  CHECK_THROWS_WITH(read("  - {kernel: triton_experts, since: spring, source: s}\n"),
                    doctest::Contains("must be a version such as \"0.15.0\", got 'spring'"));
  CHECK_THROWS_WITH(read("  - {kernel: triton_experts, until: \"0.15.0\", source: s}\n"),
                    doctest::Contains("must end with a rule without 'when', 'since' and 'until'"));
}

TEST_CASE("kernel rules: vLLM ran its experts by Triton before it preferred FlashInfer's kernels") {
  const GpuSpec b200 = gpu("b200-sxm"), h100 = gpu("h100-sxm");
  CHECK(shipped("vllm", "0.11.0", b200, Dtype::kFp8Block) == "triton_block_experts");
  CHECK(shipped("vllm", "0.11.1", b200, Dtype::kFp8Block) == "deep_gemm_reserved_experts");
  CHECK(shipped("vllm", "0.11.1", h100, Dtype::kFp8Block) == "deep_gemm_reserved_experts");
  CHECK(shipped("vllm", "0.12.0", h100, Dtype::kFp8Block) == "triton_block_experts");
  const auto on_two_ranks = [&](const char* release) {
    return shipped("vllm", release, h100, Dtype::kFp8Block, RequestedExperts::kDefault, 2);
  };
  CHECK(on_two_ranks("0.11.0") == "triton_block_experts");
  CHECK(on_two_ranks("0.12.0") == "deep_gemm_reserved_experts");
  CHECK(on_two_ranks("0.14.0") == "deep_gemm_reserved_experts");
  CHECK(on_two_ranks("0.15.0") != "deep_gemm_reserved_experts");
  CHECK(shipped("vllm", "0.19.0", b200, Dtype::kFp8Block) == "trtllm_gen_block_experts");
  CHECK(shipped("vllm", "0.19.0", b200, Dtype::kBf16) == "triton_experts");
  CHECK(shipped("vllm", "0.24.0", b200, Dtype::kBf16) == "trtllm_gen_bf16_experts");
  CHECK(shipped("vllm", "0.11.1", h100, Dtype::kFp8) == "triton_experts");
  CHECK(shipped("vllm", "0.24.0", h100, Dtype::kFp8) == "cutlass_experts");
  // who asks gets it, whatever the release
  CHECK(shipped("vllm", "0.11.1", b200, Dtype::kFp8Block, RequestedExperts::kTrtllmGen) == "trtllm_gen_block_experts");
  CHECK(shipped("vllm", "0.24.0", b200, Dtype::kFp8Block, RequestedExperts::kTriton) == "triton_block_experts");
  CHECK(shipped("sglang", "0.5.9", b200, Dtype::kFp8Block) == shipped("vllm", "", b200, Dtype::kFp8Block));
}

TEST_CASE("kernel rules: a condition has the type of what it tests") {
  const auto refused = [](const std::string& when, const char* why) {
    CHECK_THROWS_WITH_AS(read("  - {kernel: triton_experts, when: {" + when + "}, source: s}\n"),
                         doctest::Contains(why), ConfigError);
  };
  refused("windw: true", "unknown condition 'windw'; nearest is 'window'");
  refused("weights: []", "'weights' lists nothing");
  refused("head_dim: []", "'head_dim' lists nothing");
  refused("weights: fp9", "unknown number format 'fp9'; nearest is 'fp8'");
  refused("weights: [bf16, 8]", "unknown number format '8'");
  refused("layout: recieved", "unknown layout of tokens 'recieved'; nearest is 'received'");
  refused("matrix_units: {at_least: 2}", "'matrix_units' must be a name or a list of names");
  refused("gated: 1", "'gated' must be true or false, got '1'");
  refused("head_dim: true", "'head_dim' must be a number, got 'true'");
  refused("head_dim: {least: 1}", "'least'");

  const KernelRules rules = read(
      "  - {kernel: marlin_experts, when: {weights: [int4, fp8], gated: true}, source: s}\n"
      "  - {kernel: cutlass_experts, when: {expert_ranks: {at_least: 2, except: [8]}}, source: s}\n"
      "  - {kernel: triton_experts, source: s}\n");
  CallTraits call(Architecture::kHopper);
  const auto picked = [&] { return rules.pick(KernelKind::kExperts, call).name(); };
  call.weights = Dtype::kInt4, call.gated = true, call.expert_ranks = 4;
  CHECK(picked() == "marlin_experts");
  call.gated = false;
  CHECK(picked() == "cutlass_experts");
  call.expert_ranks = 8;
  CHECK(picked() == "triton_experts");
  call.weights = Dtype::kBf16, call.gated = true, call.expert_ranks = 9;
  CHECK(picked() == "cutlass_experts");
}
