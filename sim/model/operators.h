#pragma once
// The operators of one engine step on one GPU. What depends on the number of tokens alone (GEMMs,
// experts, norms, collectives) is apart from what depends on contexts (attention), for a step's
// prefill chunks and decode tokens share the former.

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

namespace roofcast {

struct ElementwiseWork {
  Bytes bytes{};
  Flops indexing{};  ///< time of finding single values in memory, as operations in fp32; not counted as the model's
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
  bool library = false;  ///< an all-reduce by NCCL at every size, not by the engine's own kernel
  bool norms = false;    ///< an all-reduce whose kernel adds the residual and norms, too
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

/// Everything the operators of a step depend on beside the batch.
struct OperatorContext : OperatorSettings {
  const ModelSpec* model = nullptr;
  Precision precision;
  Sharding sharding;
  Routing routing;
  AttentionKernel attention_kernel = AttentionKernel::kFlash;
  bool exchange_by_mode = true;         ///< an all-to-all by DeepEP: normal where a step has prompts, else low latency
  bool rotary_in_attention = false;     ///< attention rotates queries and keys itself (TensorRT-LLM)
  bool attention_writes_nvfp4 = false;  ///< attention writes nvfp4 for an output projection in it
  Bytes fused_all_reduce{};             ///< messages up to so many bytes are reduced and normed in one kernel
  bool sorts_logits = false;            ///< top-p sampling sorts the logits of every row
  bool flash_mla = false;               ///< FlashMLA's kernels attend to what an indexer chose
  Dtype indexer_format = Dtype::kFp8;   ///< of an indexer's scores; its keys are cached in fp8 all the same
  bool staged = false;                  ///< calls are told apart by their stage
  double decoded_tokens = 0;            ///< prompts and chunks of up to so many tokens run as latent decode (vLLM)
};

/// Operators that see only tokens: `tokens` rows pass the embedding and the layers of one GPU (of one
/// attention-DP rank). A pipeline's layers all appear: the pass goes through every stage.
/// `group_tokens` are those of all attention-DP ranks together, which share the experts; 0: every rank has as many.
/// `prompts`: some of them are of prompts.
std::vector<Operator> token_operators(const OperatorContext& context, double tokens, double group_tokens = 0,
                                      bool prompts = false);
/// Final norm, LM head and sampling of `rows` rows.
std::vector<Operator> head_operators(const OperatorContext& context, double rows);

/// Attention and state mixers over `shape`, every layer kind.
std::vector<Operator> prefill_mixing(const OperatorContext& context, const PrefillShape& shape);
std::vector<Operator> decode_mixing(const OperatorContext& context, const DecodeShape& shape);
/// Writes the keys and values that every layer keeps of `tokens` of an encoder's output.
std::vector<Operator> encoded_operators(const OperatorContext& context, double tokens);

}  // namespace roofcast
