// Operators that depend only on the number of tokens: everything except attention and state scans.

#include <algorithm>
#include <span>

#include "sim/model/feed_forward_model.h"
#include "sim/model/mixer_model.h"

namespace roofcast {
namespace {

/// One pass of `tokens` rows through the layers.
class TokenPass {
 public:
  TokenPass(const OperatorContext& context, double tokens, double group_tokens, bool prompts)
      : context_(context),
        model_(*context.model),
        sharding_(context.sharding),
        tokens_(tokens),
        group_tokens_(group_tokens),
        prompts_(prompts),
        list_(context) {}

  void embedding();
  void layer(const LayerKind& kind);
  void pipeline();
  void head();
  std::vector<Operator> take() { return list_.take(); }

 private:
  void projections(const LayerKind& kind);
  bool fuses(const LayerKind& kind) const;
  void reduce(const LayerKind& kind);
  void enter(const LayerKind& kind, Stage stage);
  double quantized_width(const LayerKind& kind) const;
  bool comes_in_nvfp4(const LayerKind& kind, const WeightMatrix& matrix) const;
  double message() const { return tokens_ * model_.hidden * kHalfBytes; }

  const OperatorContext& context_;
  const ModelSpec& model_;
  const Sharding& sharding_;
  double tokens_;        ///< on the most loaded rank
  double group_tokens_;  ///< of all attention-DP ranks
  bool prompts_;         ///< some of them belong to prompts
  OperatorList list_;
};

/// Reads and writes rows of the embedding table. Each rank holds a share of the vocabulary, and the results are summed.
void TokenPass::embedding() {
  const double width = model_.embedding_dim + (model_.position_embeddings > 0 ? model_.hidden : 0.0);
  list_.stream(
      "embedding", 1,
      tokens_ * (width * bytes_per_weight(WeightRole::kHead, context_.precision) + model_.hidden * kHalfBytes));
  if (model_.embedding_dim != model_.hidden) {
    list_.product("embedding_proj", 1, tokens_, model_.embedding_dim, model_.hidden, WeightRole::kOther);
  }
  list_.exchange(Collective::kAllReduce, "all_reduce", 1, message(), sharding_.tp);
}

/// Whether partial sums are reduced after the mixer and after the feed-forward; a parallel block has one sum for both.
bool reduces_mixer(const LayerKind& kind) { return facts_of(kind.mixer).present && !kind.parallel_block; }
bool reduces_feed_forward(const LayerKind& kind) { return facts_of(kind.feed_forward).present || kind.parallel_block; }

/// Whether the all-reduces include the next norm: after the mixer the one before the feed-forward, after the
/// feed-forward the next layer's (the first layer's own stands for the final one).
bool TokenPass::fuses(const LayerKind& kind) const {
  return kind.streams <= 1 && Bytes(message()) <= context_.fused_all_reduce;
}

void TokenPass::reduce(const LayerKind& kind) {
  if (!fuses(kind)) {
    return list_.exchange(Collective::kAllReduce, "all_reduce", kind.count, message(), sharding_.tp);
  }
  list_.add("all_reduce_norm", kind.count,
            CollectiveWork{Collective::kAllReduce, Bytes(message()), sharding_.tp, false, true});
}

/// Width of the norm's output relative to 16 bit. vLLM's compiler quantizes in that kernel if scales are known
/// beforehand (github.com/vllm-project/vllm/pull/19830).
double TokenPass::quantized_width(const LayerKind& kind) const {
  const Precision& p = context_.precision;
  if (!context_.compiled_quantization || !p.static_activations) return 1.0;
  if (!facts_of(kind.feed_forward).dense || kind.streams > 1 || kind.norms > 2) return 1.0;
  return element_bits(activations_for(WeightRole::kFeedForward, p)) / 16.0;
}

/// A norm reads the residual and the block's output, and writes their sum and its norm, which may be quantized (fused
/// add + norm). With n residual streams it reads n and writes the block's input, then reads n and the block's output
/// and writes n (Xie et al. 2025, arXiv:2512.24880, fused kernels): 3 n + 2 widths.
void TokenPass::layer(const LayerKind& kind) {
  const double count = kind.count;
  const double widths = kind.streams > 1 ? 3.0 * kind.streams + 2.0 : 3.0 + quantized_width(kind);
  const double fused = fuses(kind) ? reduces_mixer(kind) + reduces_feed_forward(kind) : 0.0;
  enter(kind, Stage::kEntry);
  list_.add_module(kind.norm_bias ? Module::kLayerNorm : Module::kRmsNorm, "norm",
                   count * std::max(0.0, kind.norms - fused), tokens_ * model_.hidden * widths * kHalfBytes,
                   kind.streams > 1 ? 2.0 : 1.0);
  projections(kind);
  enter(kind, Stage::kEntry);
  model_of(kind.mixer)->add_token_operators(list_, count, tokens_);
  enter(kind, Stage::kCore);
  if (reduces_mixer(kind)) reduce(kind);
  const auto block = model_of(kind.feed_forward);
  const BlockTokens rows{
      .tokens = tokens_, .group_tokens = group_tokens_, .prompts = prompts_, .written = quantized_width(kind)};
  block->add_operators(list_, count, rows);
  enter(kind, Stage::kOutside);
  // Partial sums are reduced once per block.
  if (reduces_feed_forward(kind) && block->add_exchange(list_, count, rows)) reduce(kind);
  enter(kind, Stage::kOutside);
}

void TokenPass::enter(const LayerKind& kind, Stage stage) {
  if (!context_.staged) return;
  list_.enter(facts_of(kind.feed_forward).experts > 0 ? stage : Stage::kOutside);
}

/// Whether the kernel before a product writes its input in nvfp4: the kernel that reduces and norms, if one product of
/// a dense layer reads its result (TensorRT-LLM: AllReduceFusionOp::RESIDUAL_RMS_NORM_QUANT_NVFP4 of modeling_llama.py;
/// vLLM: kARResidualRMSNormFP4Quant of its compiler's all-reduce fusion), and under TensorRT-LLM attention over an fp8
/// cache (support_nvfp4_output of its attention_backend/trtllm.py).
bool TokenPass::comes_in_nvfp4(const LayerKind& kind, const WeightMatrix& matrix) const {
  if (dtype_of(matrix.role, context_.precision) != Dtype::kNvfp4 || !facts_of(kind.mixer).fused_nvfp4) return false;
  switch (matrix.input) {
    case ProductInput::kNorm:
      return fuses(kind) && facts_of(kind.feed_forward).dense;
    case ProductInput::kAttention:
      return context_.attention_writes_nvfp4;
    case ProductInput::kAnything:
    case ProductInput::kEarlier:
      return false;
  }
  return false;
}

void TokenPass::projections(const LayerKind& kind) {
  LayerWeights own;
  if (!context_.weights) own = layer_weights(model_, kind, sharding_);
  const LayerWeights& weights =
      context_.weights ? (*context_.weights)[static_cast<std::size_t>(&kind - model_.layers.data())] : own;
  for (const WeightMatrix& matrix : weights.matrices) {
    if (!matrix.projection) continue;
    enter(kind, matrix.stage);
    if (matrix.role == WeightRole::kFloat32) list_.stream("router_cast", kind.count, tokens_ * matrix.k * 6.0);
    const bool quantize = matrix.input != ProductInput::kEarlier && !comes_in_nvfp4(kind, matrix);
    const bool whole = context_.merged_projections || matrix.merges.empty();
    for (const double columns : whole ? std::span(&matrix.n, 1) : std::span(matrix.merges))
      list_.product(matrix.name, kind.count, tokens_, matrix.k, columns, matrix.role, quantize);
  }
}

/// Each rank of a stage sends hidden state and residual to its peer in the next stage (vLLM sends both), or all
/// streams.
void TokenPass::pipeline() {
  if (sharding_.pp <= 1) return;
  const double streams = std::max(2.0, model_.layers.front().streams);
  const int gpus = sharding_.gpus() / sharding_.pp;
  list_.add("pipeline_send", sharding_.pp - 1,
            CollectiveWork{Collective::kSend, Bytes(streams * message()), gpus, false, false, sharding_.pp});
}

/// Memory traffic of sorting, in bytes per logit. PyTorch sorts many long rows by two radix sorts of fp32 keys with
/// 8-byte payloads: by value (4 passes of 8 bits), then by row (2 passes), where each pass reads and writes 12 bytes.
/// Histograms and indices before, and gathering values and indices afterwards, add 44; softmax, running sum,
/// comparison, mask and scatter over the sorted row add 46. Source: pytorch/pytorch, aten/src/ATen/native/cuda/Sort.cu
/// (segmented_sort_pairs_by_full_sort); vllm/v1/sample/ops/topk_topp_sampler.py, apply_top_k_top_p. This gives 82 ps
/// per logit on an H100; 82 to 138 were measured (github.com/vllm-project/vllm/pull/40376 and 32558).
constexpr double kSortedLogitBytes = 6 * 24.0 + 44.0 + 46.0;
constexpr double kSortLaunches = 20;

/// Sampling reads the logits in fp32: conversion, softmax in two passes, the choice.
void TokenPass::head() {
  const double rows = tokens_;
  list_.add_module(model_.layers.back().norm_bias ? Module::kLayerNorm : Module::kRmsNorm, "norm", model_.final_norms,
                   tokens_ * model_.hidden * 4.0 * kHalfBytes);
  if (model_.encoder_only) return;
  const double columns = std::max(1.0, model_.vocabulary / sharding_.tp);
  if (model_.embedding_dim != model_.hidden) {
    list_.product("head_proj", 1, rows, model_.hidden, model_.embedding_dim, WeightRole::kOther);
  }
  list_.product("lm_head", 1, rows, model_.embedding_dim, columns, WeightRole::kHead);
  list_.exchange(Collective::kAllGather, "logits_gather", 1, rows * columns * kHalfBytes, sharding_.tp);
  list_.stream("sampling", 1, rows * model_.vocabulary * (kHalfBytes + 4.0 + 8.0 + 4.0), 4.0);
  if (context_.sorts_logits) list_.stream("top_p_sort", 1, rows * model_.vocabulary * kSortedLogitBytes, kSortLaunches);
}

}  // namespace

std::vector<Operator> token_operators(const OperatorContext& context, double tokens, double group_tokens,
                                      bool prompts) {
  SIM_CHECK(context.model != nullptr, "operators of a model");
  if (tokens <= 0) return {};
  TokenPass pass(context, tokens, group_tokens > 0 ? group_tokens : tokens * context.sharding.attention_dp, prompts);
  pass.embedding();
  for (const LayerKind& kind : context.model->layers) pass.layer(kind);
  pass.pipeline();
  return pass.take();
}

std::vector<Operator> head_operators(const OperatorContext& context, double rows) {
  SIM_CHECK(context.model != nullptr, "operators of a model");
  if (rows <= 0) return {};
  TokenPass pass(context, rows, rows, false);
  pass.head();
  return pass.take();
}

}  // namespace roofcast
