#pragma once
// The operators of one engine step on one GPU. Those that depend only on the number of tokens (GEMMs, experts, norms,
// collectives) are separate from those that depend on the context (attention), because prefill chunks and decode tokens
// of a step share the former.

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "hw/collectives.h"
#include "hw/exchange.h"
#include "hw/kernels/adapter.h"
#include "hw/kernels/attention.h"
#include "hw/kernels/gemm.h"
#include "hw/kernels/latent_attention.h"
#include "hw/kernels/moe.h"
#include "hw/kernels/state.h"
#include "sim/model/model_spec.h"
#include "sim/model/operator_settings.h"
#include "sim/model/sharding.h"
#include "sim/model/stage.h"
#include "sim/model/weights.h"

namespace roofcast {

struct ElementwiseWork {
  Bytes bytes{};
  Flops indexing{};  ///< time for indexed memory access, as fp32 operations; not counted as model FLOPs
  double launches = 1;
  double chain = 0;  ///< as in hw/kernels/elementwise.h
};
struct PrefillWork {
  PrefillShape shape;
  AttentionHeads heads;
};
struct DecodeWork {
  DecodeShape shape;
  AttentionHeads heads;
};
struct LatentPrefillWork {
  PrefillShape shape;
  LatentHeads heads;
};
struct LatentDecodeWork {
  DecodeShape shape;
  LatentHeads heads;
  FlashMla sparse = FlashMla::kNone;
};
struct StatePrefillWork {
  double batch, query_len;
  StateMixer mixer;
};
struct StateDecodeWork {
  double batch;
  StateMixer mixer;
};
struct CollectiveWork {
  Collective kind;
  Bytes bytes;
  int gpus;
  bool library = false;  ///< all-reduce always by NCCL, not by the engine's kernel
  bool norms = false;    ///< all-reduce kernel that also adds the residual and normalizes
  int stages = 1;        ///< a send: pipeline stages, each of `gpus`
};

using Work =
    std::variant<GemmShape, MoeShape, ElementwiseWork, PrefillWork, DecodeWork, LatentPrefillWork, LatentDecodeWork,
                 StatePrefillWork, StateDecodeWork, CollectiveWork, ExchangeShape, AdapterShape>;

/// `count` equal calls in one step.
struct Operator {
  std::string name;  ///< qkv_proj, o_proj, gate_up_proj, down_proj, experts, attention, rms_norm, all_reduce ...
  double count = 1;
  Work work;
  Stage stage = Stage::kOutside;
};

/// Everything that the operators of a step depend on besides the batch.
struct OperatorContext : OperatorSettings {
  const ModelSpec* model = nullptr;
  std::shared_ptr<const std::vector<LayerWeights>>
      weights;  ///< of each kind of layer of `model` under `sharding`; null: computed anew
  Precision precision;
  Sharding sharding;
  Routing routing;
  AttentionKernel attention_kernel = AttentionKernel::kFlash;
  bool exchange_by_mode = true;         ///< DeepEP: normal mode if a step has prompts, else low latency
  bool rotary_in_attention = false;     ///< the attention kernel applies rotary embedding (TensorRT-LLM)
  bool attention_writes_nvfp4 = false;  ///< attention writes nvfp4 if the output projection reads it
  Bytes fused_all_reduce{};             ///< messages up to this size use one kernel for all-reduce and norm
  bool sorts_logits = false;            ///< top-p sampling sorts the logits of every row
  bool flash_mla = false;               ///< sparse attention after an indexer uses FlashMLA
  Dtype indexer_format = Dtype::kFp8;   ///< format of an indexer's scores; its keys are always cached in fp8
  bool staged = false;                  ///< calls are kept separate by stage
  double decoded_tokens = 0;            ///< prefill chunks of up to this many tokens run as latent decode (vLLM)
};

/// Operators that depend only on the number of tokens: `tokens` rows pass the embedding and all layers on one GPU (of
/// one attention-DP rank). All layers of a pipeline are included, because the pass goes through every stage.
/// `group_tokens` are the tokens of all attention-DP ranks, which share the experts; 0: every rank has the same number.
/// `prompts`: some of them belong to prompts.
std::vector<Operator> token_operators(const OperatorContext& context, double tokens, double group_tokens = 0,
                                      bool prompts = false);
/// Final norm, LM head and sampling of `rows` rows.
std::vector<Operator> head_operators(const OperatorContext& context, double rows);

/// Attention and state mixers of every kind of layer over `shape`.
std::vector<Operator> prefill_mixing(const OperatorContext& context, const PrefillShape& shape);
std::vector<Operator> decode_mixing(const OperatorContext& context, const DecodeShape& shape);
/// Writes the cross-attention keys and values of all layers for `tokens` tokens of an encoder's output.
std::vector<Operator> encoded_operators(const OperatorContext& context, double tokens);

}  // namespace roofcast
