#pragma once
// The settings that a recorded run of vLLM left beside its requests, as a deployment.

#include <memory>
#include <string>

namespace roofcast {

struct Deployment;

struct RequestSettings {
  std::shared_ptr<const Deployment> deployment;
  int replicas = 1;  ///< engines of a dense model under data parallelism; of an expert model they share the experts
};

/// `path` is the run's meta.json: {model, vllm_version, engine_kwargs {model, tensor_parallel_size, ...}} and, where
/// recorded, hardware {device_name}, kv_cache {num_gpu_blocks, block_size}, resolved_config {scheduler_config}. `gpu`
/// and `model` are names or files; empty, the GPU is the one that `device_name` tells, or the file's name before its
/// first "_", and the model that of the settings. What is not said is vLLM's own default for an engine in the caller's
/// process. Such an engine is fed token ids and its times are its own clock's: no front end. Throws ConfigError
/// `path: message`.
RequestSettings read_request_settings(const std::string& path, const std::string& gpu, const std::string& model);

/// "Qwen/Qwen3-30B-A3B-Instruct-2507" -> "qwen3-30b-a3b": names of the library have neither owner, tuning nor date.
std::string library_model_name(std::string name);

/// Cuts the format that a published checkpoint's name ends in (base/checkpoint_name.h): "Qwen/Qwen3-32B-FP8" holds
/// blocks of 128 x 128. Empty: the library's own.
std::string take_format(std::string& name);

/// The GPU of the library that a text names ("NVIDIA RTX PRO 6000 Blackwell ..." -> "rtx-pro-6000"), or "".
std::string library_gpu_name(const std::string& text);

}  // namespace roofcast
