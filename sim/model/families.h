#pragma once
// The known architectures, with one config reader each.

#include <string_view>
#include <vector>

#include "sim/model/hf_config.h"

namespace roofcast {

struct Family {
  std::string_view name;
  std::vector<std::string_view> model_types;  ///< `model_type` in config.json
  std::string_view help;
  ModelSpec (*read)(HfConfig&);
  bool attends_to_encoder = false;  ///< its layers cross-attend to an encoder's output
};
const std::vector<Family>& families();

/// One mixer and one feed-forward block (or experts) per layer, as `traits` and the config say.
ModelSpec read_decoder(HfConfig& in, const Traits& traits, int window_pattern = 0);
/// Any other decoder-like config, with assumptions for whatever it does not state.
ModelSpec read_unknown(HfConfig& in);

// families/llama.cpp
ModelSpec read_llama(HfConfig& in);
ModelSpec read_qwen2(HfConfig& in);
ModelSpec read_qwen3(HfConfig& in);
ModelSpec read_granite(HfConfig& in);
ModelSpec read_olmo(HfConfig& in);
ModelSpec read_qwen(HfConfig& in);
ModelSpec read_glm(HfConfig& in);
ModelSpec read_nemotron(HfConfig& in);
ModelSpec read_nemotron_nas(HfConfig& in);
// families/classic.cpp
ModelSpec read_gpt2(HfConfig& in);
ModelSpec read_opt(HfConfig& in);
ModelSpec read_jais(HfConfig& in);
ModelSpec read_bloom(HfConfig& in);
ModelSpec read_gptj(HfConfig& in);
ModelSpec read_gpt_neo(HfConfig& in);
ModelSpec read_gpt_neox(HfConfig& in);
ModelSpec read_falcon(HfConfig& in);
ModelSpec read_mpt(HfConfig& in);
ModelSpec read_phi(HfConfig& in);
ModelSpec read_starcoder2(HfConfig& in);
ModelSpec read_stablelm(HfConfig& in);
ModelSpec read_molmo(HfConfig& in);
ModelSpec read_cohere(HfConfig& in);
// families/gemma.cpp
ModelSpec read_gemma(HfConfig& in);
ModelSpec read_gemma2(HfConfig& in);
ModelSpec read_gemma3(HfConfig& in);
ModelSpec read_gemma3n(HfConfig& in);
ModelSpec read_gemma4(HfConfig& in);
// families/moe.cpp
ModelSpec read_mixtral(HfConfig& in);
ModelSpec read_phimoe(HfConfig& in);
ModelSpec read_glm4_moe(HfConfig& in);
ModelSpec read_minimax_m2(HfConfig& in);
ModelSpec read_gpt_oss(HfConfig& in);
ModelSpec read_llama4(HfConfig& in);
ModelSpec read_dbrx(HfConfig& in);
ModelSpec read_arctic(HfConfig& in);
ModelSpec read_hunyuan(HfConfig& in);
ModelSpec read_mimo_v2(HfConfig& in);
ModelSpec read_step3(HfConfig& in);
ModelSpec read_laguna(HfConfig& in);
// families/deepseek.cpp
ModelSpec read_deepseek(HfConfig& in);
ModelSpec read_deepseek_v4(HfConfig& in);
ModelSpec read_longcat(HfConfig& in);
ModelSpec read_kimi_linear(HfConfig& in);
// families/text_encoder.cpp
ModelSpec read_bert(HfConfig& in);
ModelSpec read_modernbert(HfConfig& in);
// families/encoder_decoder.cpp
ModelSpec read_t5(HfConfig& in);
ModelSpec read_bart(HfConfig& in);
ModelSpec read_whisper(HfConfig& in);
// families/state.cpp
ModelSpec read_s4(HfConfig& in);
ModelSpec read_mamba1(HfConfig& in);
ModelSpec read_mamba2(HfConfig& in);
ModelSpec read_jamba(HfConfig& in);
ModelSpec read_falcon_h1(HfConfig& in);
ModelSpec read_nemotron_h(HfConfig& in);
ModelSpec read_granite_hybrid(HfConfig& in);
ModelSpec read_qwen3_next(HfConfig& in);
ModelSpec read_lfm2(HfConfig& in);
ModelSpec read_minimax_01(HfConfig& in);
ModelSpec read_recurrent_gemma(HfConfig& in);
ModelSpec read_rwkv(HfConfig& in);
ModelSpec read_zamba2(HfConfig& in);

}  // namespace roofcast
