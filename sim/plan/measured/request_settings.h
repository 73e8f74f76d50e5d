#pragma once
// Builds a deployment from the settings recorded next to a vLLM run.

#include <memory>
#include <string>

namespace roofcast {

struct Deployment;

struct RequestSettings {
  std::shared_ptr<const Deployment> deployment;
  int replicas = 1;  ///< data-parallel engines of a dense model; with experts, they share the experts instead
};

/// `path` is the run's meta.json: {model, vllm_version, engine_kwargs {model, tensor_parallel_size, ...}} and, if
/// recorded, hardware {device_name}, kv_cache {num_gpu_blocks, block_size}, resolved_config {scheduler_config}. `gpu`
/// and `model` are names or files. If empty, the GPU comes from `device_name` or the file name up to its first "_", and
/// the model from the settings. Everything else is vLLM's default for an in-process engine, which receives token ids
/// and whose times are those of its own clock, hence without a front end. Throws ConfigError `path: message`.
RequestSettings read_request_settings(const std::string& path, const std::string& gpu, const std::string& model);

/// "Qwen/Qwen3-30B-A3B-Instruct-2507" -> "qwen3-30b-a3b": names in the library omit owner, tuning and date.
std::string library_model_name(std::string name);

/// Removes and returns the format at the end of a checkpoint's name (base/checkpoint_name.h): "Qwen/Qwen3-32B-FP8" has
/// 128 x 128 blocks. Empty: no format in the name.
std::string take_format(std::string& name);

/// The GPU in the library that a text names ("NVIDIA RTX PRO 6000 Blackwell ..." -> "rtx-pro-6000"), or "".
std::string library_gpu_name(const std::string& text);

}  // namespace roofcast
