#include "sim/model/operators.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "hw/gpu_spec.h"
#include "models.h"
#include "sim/model/recipes.h"

using namespace roofcast;

namespace {

/// FLOPs of the products of a step, experts included.
double product_flops(const std::vector<Operator>& operators) {
  double flops = 0;
  for (const Operator& op : operators) {
    if (const auto* g = std::get_if<GemmShape>(&op.work)) flops += op.count * 2 * g->m * g->n * g->k;
    if (const auto* e = std::get_if<MoeShape>(&op.work)) {
      flops += op.count * 2 * e->tokens * e->top_k * (e->gated ? 3 : 2) * e->hidden * e->inter / (e->tp * e->ep);
    }
  }
  return flops;
}

double count_of(const std::vector<Operator>& operators, const std::string& name) {
  double count = 0;
  for (const Operator& op : operators) count += op.name == name ? op.count : 0;
  return count;
}

const Operator& find(const std::vector<Operator>& operators, const std::string& name) {
  for (const Operator& op : operators) {
    if (op.name == name) return op;
  }
  FAIL("no operator " << name);
  return operators.front();
}

}  // namespace

TEST_CASE("products of a step are two FLOPs a parameter that a token touches") {
  for (const char* name :
       {"llama-3.1-8b", "mixtral-8x7b", "qwen3-235b-a22b", "gpt-oss-120b", "mamba-2.8b", "mamba2-2.7b",
        "jamba-1.5-mini", "qwen3-next-80b-a3b", "nemotron-h-8b", "gemma-3-27b", "falcon-40b", "bloom-176b",
        "hunyuan-large", "minimax-01", "llama-4-maverick", "gpt-j-6b", "nemotron-3-nano-30b-a3b"}) {
    CAPTURE(name);
    const ModelSpec model = shipped(name);
    const OperatorContext context = context_of(model);
    const double tokens = 64;
    const double flops =
        product_flops(token_operators(context, tokens)) + product_flops(head_operators(context, tokens));
    CHECK(flops == doctest::Approx(2 * tokens * count_parameters(model).active).epsilon(0.005));
  }
}

TEST_CASE("latent attention: decode absorbs what prefill expands") {
  const ModelSpec model = shipped("deepseek-v3");
  const OperatorContext context = context_of(model);
  const double shared = product_flops(token_operators(context, 64)) + product_flops(head_operators(context, 64));
  const double active = 2 * 64 * count_parameters(model).active;
  const double decode = product_flops(decode_mixing(context, {.batch = 64, .mean_context = 1000, .max_context = 1000}));
  CHECK(shared + decode == doctest::Approx(active).epsilon(0.005));
  const double prefill = product_flops(prefill_mixing(context, {.batch = 1, .query_len = 64, .context_before = 0}));
  CHECK(shared + prefill == doctest::Approx(active).epsilon(0.005));
  // A cached prefix is expanded again: 64 new tokens after 192 cached ones expand 256.
  CHECK(product_flops(prefill_mixing(context, {.batch = 1, .query_len = 64, .context_before = 192})) ==
        doctest::Approx(4 * prefill));
}

TEST_CASE("the operators of one Llama layer") {
  const ModelSpec model = shipped("llama-3.1-8b");
  const auto operators = token_operators(context_of(model), 100);
  const auto shape = [&](const char* name) { return std::get<GemmShape>(find(operators, name).work); };
  // 32 heads and 2 * 8 key-value heads of 128: 6144 columns
  CHECK(shape("qkv_proj").n == 6144);
  CHECK(shape("qkv_proj").k == 4096);
  CHECK(shape("gate_up_proj").n == 2 * 14336);
  CHECK(shape("down_proj").k == 14336);
  for (const char* name : {"qkv_proj", "o_proj", "gate_up_proj", "down_proj", "rotary", "activation"}) {
    CAPTURE(name);
    CHECK(count_of(operators, name) == 32);
  }
  CHECK(count_of(operators, "norm") == 64);
  CHECK(count_of(operators, "embedding") == 1);
  CHECK(count_of(operators, "all_reduce") == 0);
  const auto head = head_operators(context_of(model), 7);
  CHECK(std::get<GemmShape>(find(head, "lm_head").work).m == 7);
  CHECK(std::get<GemmShape>(find(head, "lm_head").work).n == 128256);
  CHECK(count_of(head, "sampling") == 1);
  CHECK(head_operators(context_of(model), 0).empty());
  CHECK(token_operators(context_of(model), 0).empty());
}

TEST_CASE("tensor parallelism splits columns and reduces twice per layer") {
  const ModelSpec model = shipped("llama-3.1-70b");
  const auto operators = token_operators(context_of(model, {.tp = 8}), 100);
  CHECK(std::get<GemmShape>(find(operators, "qkv_proj").work).n == (64 + 16) * 128 / 8);
  CHECK(count_of(operators, "all_reduce") == 2 * 80 + 1);  // and after the embedding
  const auto& message = std::get<CollectiveWork>(find(operators, "all_reduce").work);
  CHECK(message.bytes == Bytes(100 * 8192 * 2));
  CHECK(message.gpus == 8);
  // Side by side (GPT-J): one reduction a layer.
  const ModelSpec gptj = shipped("gpt-j-6b");
  CHECK(count_of(token_operators(context_of(gptj, {.tp = 2}), 10), "all_reduce") == 28 + 1);
}

TEST_CASE("norms join the all-reduces before them, up to a size, and quantize to nvfp4 for a dense layer") {
  ModelSpec model = shipped("llama-3.1-70b");
  set_weights(model.precision, Dtype::kNvfp4);
  model.precision.activations = Dtype::kNvfp4;
  OperatorContext context = context_of(model, {.tp = 4});
  CHECK(count_of(token_operators(context, 16), "quantize") == 4 * 80);
  context.fused_all_reduce = Bytes(16 * 8192 * 2);
  const auto fused = token_operators(context, 16);
  CHECK(count_of(fused, "all_reduce_norm") == 2 * 80);
  CHECK(std::get<CollectiveWork>(find(fused, "all_reduce_norm").work).norms);
  CHECK(count_of(fused, "all_reduce") == 1);        // after the embedding
  CHECK(count_of(fused, "norm") == 0);              // the first layer's stands for the final one
  CHECK(count_of(fused, "quantize") == 2 * 80);     // before o_proj and down_proj
  const auto apart = token_operators(context, 17);  // beyond the size
  CHECK(count_of(apart, "all_reduce_norm") == 0);
  CHECK(count_of(apart, "norm") == 2 * 80);
  CHECK(count_of(apart, "quantize") == 4 * 80);
  // Experts are fed in 16 bit: what reads the norm, the router too, wants it so.
  const ModelSpec routed = shipped("deepseek-v3");
  OperatorContext experts = context_of(routed, {.tp = 8});
  const double quantized = count_of(token_operators(experts, 16), "quantize");
  experts.fused_all_reduce = Bytes(1e6);
  CHECK(count_of(token_operators(experts, 16), "all_reduce_norm") == 2 * 61);
  CHECK(count_of(token_operators(experts, 16), "quantize") == quantized);
}

TEST_CASE("norms of queries and keys over all heads add up their squares in one all-reduce") {
  const ModelSpec model = shipped("minimax-m2.5");
  const auto alone = token_operators(context_of(model), 10), four = token_operators(context_of(model, {.tp = 4}), 10);
  CHECK(count_of(alone, "qk_norm_all_reduce") == 0);
  CHECK(std::get<ElementwiseWork>(find(alone, "qk_norm").work).launches == 1);
  CHECK(count_of(four, "qk_norm_all_reduce") == 62);
  CHECK(std::get<CollectiveWork>(find(four, "qk_norm_all_reduce").work).bytes == Bytes(10 * 2 * 4));  // fp32
  CHECK(std::get<ElementwiseWork>(find(four, "qk_norm").work).launches == 4);  // of each before and after
}

TEST_CASE("attention-DP ranks bring their tokens to the experts") {
  const ModelSpec model = shipped("deepseek-v3");
  OperatorContext context = context_of(model, {.attention_dp = 8, .ep = 8});
  const auto gathered = token_operators(context, 32);
  const auto& experts = std::get<MoeShape>(find(gathered, "experts").work);
  CHECK(experts.tokens == 256);
  CHECK(experts.ep == 8);
  CHECK(experts.tp == 1);
  CHECK(count_of(gathered, "expert_gather") == 58);
  CHECK(count_of(gathered, "expert_scatter") == 58);
  CHECK(count_of(gathered, "all_reduce") == 0);
  context.expert_exchange = ExpertExchange::kAllToAll;
  context.routing = {.kind = Routing::Kind::kBalanced};
  const auto sent = token_operators(context, 32);
  CHECK(count_of(sent, "expert_dispatch") == 58);
  // fp8, straight to the ranks of 8 experts; with prompts once to each rank
  const auto& way = std::get<ExchangeShape>(find(sent, "expert_dispatch").work);
  CHECK(way.kernel == ExchangeKernel::kLowLatency);
  CHECK(way.value_bytes == 1.0);
  CHECK(way.tokens == 32);
  CHECK(std::get<MoeShape>(find(sent, "experts").work).layout == ExpertLayout::kMasked);
  const auto prompts = token_operators(context, 32, 256, true);
  CHECK(std::get<ExchangeShape>(find(prompts, "expert_dispatch").work).kernel == ExchangeKernel::kNormal);
  CHECK(std::get<MoeShape>(find(prompts, "experts").work).layout == ExpertLayout::kContiguous);
}

TEST_CASE("a pipeline sends between its stages") {
  const ModelSpec model = shipped("llama-3.1-8b");
  CHECK(count_of(token_operators(context_of(model, {.pp = 4}), 10), "pipeline_send") == 3);
  CHECK(count_of(token_operators(context_of(model), 10), "pipeline_send") == 0);
}

TEST_CASE("top-p by sorting reads and writes the logits many times, by selection not at all") {
  const ModelSpec model = shipped("llama-3.1-8b");
  OperatorContext context = context_of(model);
  CHECK(count_of(head_operators(context, 10), "top_p_sort") == 0);
  context.sorts_logits = true;
  // Six passes of a radix sort over 12 bytes, read and written, and 90 bytes around them.
  const auto sorted = head_operators(context, 10);
  CHECK(std::get<ElementwiseWork>(find(sorted, "top_p_sort").work).bytes.base() == 10 * 128256 * 234.0);
}

TEST_CASE("dynamic fp8 activations are quantized before each product, static ones on the way") {
  const ModelSpec model = shipped("llama-3.1-8b");
  OperatorContext context = context_of(model);
  bool asked = false;
  context.precision = parse_precision(model, make_scalar("fp8"), asked);
  CHECK(count_of(token_operators(context, 10), "quantize") == 4 * 32);
  const auto bytes_of = [](const std::vector<Operator>& operators, const std::string& name) {
    return std::get<ElementwiseWork>(find(operators, name).work).bytes.base();
  };
  context.precision.static_activations = true;
  const auto fused = token_operators(context, 10);
  CHECK(count_of(fused, "quantize") == 0);
  CHECK(bytes_of(fused, "norm") == 10 * 4096 * 8.0);
  CHECK(bytes_of(fused, "activation") == 10 * 14336 * 6.0);
  // vLLM: the norm itself in one byte, not two; the product of gate and up too. What attention writes for o_proj is
  // quantized by itself.
  context.compiled_quantization = true;
  const auto compiled = token_operators(context, 10);
  CHECK(bytes_of(compiled, "norm") == 10 * 4096 * 7.0);
  CHECK(bytes_of(compiled, "activation") == 10 * 14336 * 5.0);
  CHECK(count_of(compiled, "quantize") == 32);
  CHECK_FALSE(std::get<GemmShape>(find(fused, "qkv_proj").work).row_scales);
  // Weights alone in 4 bit: nothing to quantize.
  context.precision = parse_precision(model, make_scalar("awq"), asked);
  CHECK(count_of(token_operators(context, 10), "quantize") == 0);
}

TEST_CASE("operations that PyTorch runs one by one: more kernels, more bytes, values found by index") {
  const ModelSpec model = shipped("llama-3.1-8b");
  OperatorContext context = context_of(model);
  const auto work = [&](const char* name) {
    return std::get<ElementwiseWork>(find(token_operators(context, 10), name).work);
  };
  CHECK(work("norm").launches == 1);
  CHECK(count_of(token_operators(context, 10), "norm_by_index") == 0);
  context.fused_elementwise = false;
  // A value of 16 bit: the norm 36 bytes and the sum before it 6, where one kernel moves 8; silu and product 10 for 6.
  CHECK(work("norm").launches + work("norm_by_index").launches == 9);
  CHECK(work("norm").bytes.base() + work("norm_by_index").bytes.base() == doctest::Approx(10 * 4096 * 42.0));
  CHECK(work("norm").indexing.base() == 0);
  CHECK(work("rotary_by_index").launches == 10);
  CHECK(work("rotary_by_index").bytes.base() == doctest::Approx(10 * (32 + 8) * 128 * 20.0));
  CHECK(work("activation").launches == 2);
  CHECK(work("activation").bytes.base() == doctest::Approx(10 * 14336 * 10.0));
  // PyTorch has a LayerNorm, and an activation without a gate, of one kernel: 4 bytes a value, and the sum before.
  const ModelSpec plain = shipped("opt-13b");
  OperatorContext other = context_of(plain);
  other.fused_elementwise = false;
  const auto operators = token_operators(other, 10);
  CHECK(std::get<ElementwiseWork>(find(operators, "norm").work).launches == 2);
  CHECK(std::get<ElementwiseWork>(find(operators, "norm").work).bytes.base() == doctest::Approx(10 * 5120 * 10.0));
  CHECK(std::get<ElementwiseWork>(find(operators, "activation").work).launches == 1);
  // Three kernels find each of 10 x 4096 values; of a rotation five and a half, one of which, torch.cat, takes twice.
  const double value = work("norm_by_index").indexing.base() / (3 * 10 * 4096);
  CHECK(work("rotary_by_index").indexing.base() == doctest::Approx(5.5 * value * 10 * (32 + 8) * 128));
}

TEST_CASE("PyTorch's modules one by one: the kernels that a profile of Transformers shows") {
  // Of a layer: 2 norms of 9, rotation 10, activation 2, products 7, copies of keys and values 2, attention 1: 40; two
  // norms of 8 more where queries and keys are normed.
  for (const auto& [name, layers, kernels] : {std::tuple{"llama-3.1-8b", 32, 40}, {"qwen3-4b", 36, 56}}) {
    CAPTURE(name);
    const ModelSpec model = shipped(name);
    OperatorContext context = context_of(model);
    context.fused_elementwise = context.merged_projections = false;
    context.copied_cache = true;
    double launches = 0;
    const auto add = [&](const std::vector<Operator>& operators) {
      for (const Operator& op : operators) {
        const auto* streams = std::get_if<ElementwiseWork>(&op.work);
        launches += op.count * (streams != nullptr ? streams->launches : 1.0);
      }
    };
    add(token_operators(context, 8));
    add(decode_mixing(context, {.batch = 8, .mean_context = 512, .max_context = 512}));
    CHECK(launches == layers * kernels + 1);  // and the embedding
  }
}

TEST_CASE("unmerged projections are the same weights in more products") {
  const ModelSpec model = shipped("llama-3.1-8b");
  OperatorContext context = context_of(model);
  const auto merged = token_operators(context, 64);
  context.merged_projections = false;
  const auto apart = token_operators(context, 64);
  CHECK(product_flops(apart) == product_flops(merged));
  CHECK(count_of(merged, "qkv_proj") == 32);
  CHECK(count_of(apart, "qkv_proj") == 3 * 32);
  CHECK(count_of(apart, "gate_up_proj") == 2 * 32);
  CHECK(count_of(apart, "o_proj") == 32);
  // A layer without keys of its own has queries alone.
  const ModelSpec shared = shipped("gemma-3n");
  OperatorContext other = context_of(shared);
  const double before = product_flops(token_operators(other, 64));
  other.merged_projections = false;
  CHECK(product_flops(token_operators(other, 64)) == doctest::Approx(before));
}

TEST_CASE("a cache grown by torch.cat is read and written whole") {
  const ModelSpec model = shipped("llama-3.1-8b");
  OperatorContext context = context_of(model);
  const DecodeShape step{.batch = 4, .mean_context = 1000, .max_context = 1000};
  CHECK(count_of(decode_mixing(context, step), "cache_copy") == 0);
  context.copied_cache = true;
  const auto copy = std::get<ElementwiseWork>(find(decode_mixing(context, step), "cache_copy").work);
  // Keys and values of 8 heads of 128 in 16 bit: 4 x 1000 x 4096 bytes, twice.
  CHECK(copy.bytes.base() == 2 * 4 * 1000 * 2 * 8 * 128 * 2.0);
  CHECK(copy.launches == 2);
  CHECK(copy.indexing.base() == 0);
  const auto prompts =
      std::get<ElementwiseWork>(find(prefill_mixing(context, {.batch = 4, .query_len = 1000}), "cache_copy").work);
  CHECK(prompts.bytes.base() == copy.bytes.base());
  CHECK(prompts.indexing.base() > 0);
  // A window of 1024 among 3,000 tokens: it and the new token.
  const ModelSpec windowed = shipped("gemma-3-27b");
  OperatorContext other = context_of(windowed);
  other.copied_cache = true;
  double least = 1e30;
  for (const Operator& op : decode_mixing(other, {.batch = 1, .mean_context = 3000, .max_context = 3000})) {
    if (op.name == "cache_copy") least = std::min(least, std::get<ElementwiseWork>(op.work).bytes.base());
  }
  CHECK(least == 2 * 1025 * 2 * 16 * 128 * 2.0);
}

TEST_CASE("TensorRT-LLM's attention writes nvfp4 for its output projection without a gate in between") {
  const auto quantized = [](const std::string& name) {
    const ModelSpec model = shipped(name);
    OperatorContext context = context_of(model);
    bool asked = false;
    context.precision = parse_precision(model, make_scalar("nvfp4"), asked);
    const double apart = count_of(token_operators(context, 10), "quantize");
    context.attention_writes_nvfp4 = true;
    return apart - count_of(token_operators(context, 10), "quantize");
  };
  CHECK(quantized("llama-3.1-8b") == 32);
  CHECK(quantized("deepseek-v3") == 0);        // latent attention
  CHECK(quantized("qwen3.5-397b-a17b") == 0);  // gated
}

TEST_CASE("a router in fp32 is cast to and multiplied in fp32 whatever the precision of the rest") {
  const ModelSpec model = shipped("minimax-m2.5");
  const auto operators = token_operators(context_of(model), 10);
  const auto& router = std::get<GemmShape>(find(operators, "router").work);
  CHECK(router.weights == Dtype::kFp32);
  CHECK(router.activations == Dtype::kFp32);
  // Read in 16 bit, written in 32: 10 x 3072 x 6 bytes a layer.
  CHECK(std::get<ElementwiseWork>(find(operators, "router_cast").work).bytes.base() == 10 * 3072 * 6);
  CHECK(count_of(token_operators(context_of(shipped("mixtral-8x7b")), 10), "router_cast") == 0);
}

TEST_CASE("LLM.int8() multiplies its outlier columns in 16 bit") {
  const ModelSpec model = shipped("opt-13b");
  OperatorContext context = context_of(model);
  bool asked = false;
  context.precision = parse_precision(model, make_scalar("llm_int8"), asked);
  const auto operators = token_operators(context, 10);
  const auto& outliers = std::get<GemmShape>(find(operators, "qkv_proj_outliers").work);
  CHECK(outliers.k == doctest::Approx(5.12));
  CHECK(outliers.weights == Dtype::kBf16);
  CHECK(std::get<GemmShape>(find(operators, "qkv_proj").work).k == doctest::Approx(5120 - 5.12));
}

TEST_CASE("one expert that every token takes is a dense block") {
  const ModelSpec dense = from_text(kSmall + "}");
  const ModelSpec one = from_text(
      "{model_type: mixtral, hidden_size: 256, num_hidden_layers: 4, num_attention_heads: 8, num_key_value_heads: 2, "
      "intermediate_size: 512, vocab_size: 1000, num_local_experts: 1, num_experts_per_tok: 1}");
  CHECK(count_parameters(one).total == count_parameters(dense).total);  // nothing to choose: no router
  CHECK(product_flops(token_operators(context_of(one), 10)) == product_flops(token_operators(context_of(dense), 10)));
}

TEST_CASE("attention sees its window, its chunk, or its chosen tokens") {
  const auto window_at = [](const ModelSpec& model, std::size_t kind, double context) {
    OperatorContext c = context_of(model);
    const auto operators = decode_mixing(c, {.batch = 1, .mean_context = context, .max_context = context});
    return std::get<DecodeWork>(operators.at(kind).work).heads.window;
  };
  const ModelSpec gemma = shipped("gemma-2-9b");
  CHECK(window_at(gemma, 0, 8000) == 4096);
  CHECK(window_at(gemma, 1, 8000) == 0);
  const ModelSpec llama4 = shipped("llama-4-scout");
  CHECK(window_at(llama4, 0, 5000) == 8192);
  CHECK(window_at(llama4, 0, 100000) == 4096);  // half full on average
}

TEST_CASE("sparse latent attention reads its chosen tokens and scores all") {
  const ModelSpec model = shipped("deepseek-v3.2");
  const auto operators = decode_mixing(context_of(model), {.batch = 4, .mean_context = 100000, .max_context = 100000});
  CHECK(std::get<LatentDecodeWork>(find(operators, "attention").work).shape.mean_context == 2048);
  const auto& scores = std::get<GemmShape>(find(operators, "indexer_scores").work);
  // 4 sequences: 2 * 64 heads * 128 * 100 000 each
  CHECK(2 * scores.m * scores.n * scores.k == doctest::Approx(4 * 2.0 * 64 * 128 * 100000));
  CHECK(count_of(operators, "indexer_scores") == 61);
  // A prompt of 8192 tokens: 8192 * 8193 / 2 pairs, 2 * 64 * 128 FLOP each, at the fp8 peak
  GpuSpec gpu;
  gpu.sm_count = 100;
  gpu.memory_bandwidth = BytesPerSecond(2e12);
  gpu.dense[static_cast<std::size_t>(Dtype::kBf16)] = FlopsPerSecond(1e15);
  gpu.dense[static_cast<std::size_t>(Dtype::kFp8)] = FlopsPerSecond(2e15);
  const auto prompt = prefill_mixing(context_of(model), {.batch = 1, .query_len = 8192, .context_before = 0});
  const auto& scored = std::get<PrefillWork>(find(prompt, "indexer_scores").work);
  const Cost cost = attention_prefill(scored.shape, scored.heads, {.gpu = &gpu, .fidelity = Fidelity::kIdeal});
  CHECK(cost.flops.base() == doctest::Approx(8192.0 * 8193 / 2 * 2 * 64 * 128));
  CHECK(cost.time.in(kMicrosecond) == doctest::Approx(cost.flops.base() / 2e15 * 1e6));
  const auto shorter = decode_mixing(context_of(model), {.batch = 4, .mean_context = 1000, .max_context = 1000});
  CHECK(std::get<LatentDecodeWork>(find(shorter, "attention").work).shape.mean_context == 1000);
}

TEST_CASE("every layer mixes once") {
  for (const char* name : {"llama-3.1-8b", "gpt-oss-120b", "hunyuan-large", "deepseek-v3.2", "jamba-1.5-mini",
                           "kimi-linear-48b", "gemma-3n", "minimax-01", "deepseek-v4-flash"}) {
    CAPTURE(name);
    const ModelSpec model = shipped(name);
    const auto decode = decode_mixing(context_of(model), {.batch = 8, .mean_context = 3000, .max_context = 3000});
    const auto prefill = prefill_mixing(context_of(model), {.batch = 1, .query_len = 3000, .context_before = 0});
    CHECK(count_of(decode, "attention") + count_of(decode, "state_mixer") == model.layer_count());
    CHECK(count_of(prefill, "attention") + count_of(prefill, "state_mixer") == model.layer_count());
  }
}

TEST_CASE("context parallelism: decode reads a part of the cache with all heads, and ranks exchange their results") {
  const ModelSpec model = shipped("deepseek-v3");
  const auto decode = [&](const Sharding& s) {
    return decode_mixing(context_of(model, s), {.batch = 4, .mean_context = 1e6, .max_context = 1e6});
  };
  const auto attention = [](const std::vector<Operator>& all) {
    for (const Operator& op : all)
      if (op.name == "attention") return std::get<LatentDecodeWork>(op.work);
    FAIL("no attention");
    return LatentDecodeWork{};
  };
  const LatentDecodeWork alone = attention(decode({.tp = 8})), shared = attention(decode({.tp = 8, .dcp = 8}));
  CHECK(alone.heads.heads == 16);
  CHECK(shared.heads.heads == 128);
  CHECK(shared.shape.mean_context == doctest::Approx(alone.shape.mean_context / 8));
  double sent = 0;  // a layer: queries of 16 heads x 576 values x 2 B, out of 128 heads x 512 x 2 B, softmax sums
  for (const Operator& op : decode({.tp = 8, .dcp = 8}))
    if (const auto* work = std::get_if<CollectiveWork>(&op.work)) sent += work->bytes.base();
  CHECK(sent == doctest::Approx(4 * (16 * 576 * 2 + 128 * 512 * 2 + 128 * 4)));
  CHECK(decode({.tp = 8}).size() + 4 == decode({.tp = 8, .dcp = 8}).size());
  // A chunk of a prompt needs all that was cached before it, 1,152 B a token and layer, of which each rank has an
  // eighth.
  double gathered = 0;
  const PrefillShape chunk{.batch = 1, .query_len = 8192, .context_before = 8000};
  for (const Operator& op : prefill_mixing(context_of(model, {.tp = 8, .dcp = 8}), chunk))
    if (op.name == "context_gather") gathered = std::get<CollectiveWork>(op.work).bytes.base();
  CHECK(gathered == doctest::Approx(8000 * 1152 / 8));
}
