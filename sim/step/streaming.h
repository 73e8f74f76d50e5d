#pragma once
// Front-end time to receive prompts and to send tokens to clients.

#include <algorithm>

#include "sim/step/engine_spec.h"

namespace roofcast {

/// Time of one front-end server per output token. A streamed chunk is one message and costs the same whatever its
/// number of tokens. Source: TensorRT-LLM, tensorrt_llm/llmapi/llm_args.py (stream_interval "reduces the streaming
/// overhead"); vLLM, docs of --stream-interval ("reduces host overhead").
inline Seconds streaming_time(const EngineSpec& engine) {
  return engine.host.token_time / std::max(1, engine.postprocess_workers) / std::max(1, engine.stream_interval);
}

/// Time of one front-end server per prompt, to receive and tokenize it.
inline Seconds intake_time(const EngineSpec& engine, double prompt_tokens) {
  return engine.host.request_time + engine.host.prompt_token_time * prompt_tokens;
}

}  // namespace roofcast
