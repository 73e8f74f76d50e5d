// What is assumed of an attention kernel that was not measured: round figures near those of the measured GPUs of the
// same library (docs/equations-attention.md#constants). Fits start from them.

#include "hw/kernels/attention_math.h"
#include "hw/kernels/latent_attention.h"

namespace roofcast {
namespace {

using attention::Library;
using Names = std::vector<std::string_view>;

void append(Names& names, std::initializer_list<std::string_view> more) { names.insert(names.end(), more); }

bool computes_fp8(const GpuSpec& gpu, Dtype dtype) {
  return element_bits(dtype) <= 8 && gpu.peak(Dtype::kFp8) > FlopsPerSecond{};
}

}  // namespace

PrefillParameters attention_prefill_prior(const GpuSpec& gpu, KernelFamily family, Dtype products) {
  const bool fp8 = computes_fp8(gpu, products);
  PrefillParameters p;
  p.token_threads_ns = family == KernelFamily::kVllm ? 4.0 : 0.0;
  switch (attention::library_of(gpu, family)) {
    case Library::kFa3:
      p.launch_us = 11.5, p.tile_us = fp8 ? 1.1 : 1.9, p.score_ns = fp8 ? 0.015 : 0.031;
      p.compute_fraction = fp8 ? 0.38 : 1.0, p.wide_head_penalty = 0.5;
      p.imbalance = 12, p.lone_slowdown = 1, p.window_blocks = 0, p.overlap = 1;
      p.bandwidth_fraction = fp8 ? 0.45 : 0.9, p.write_bandwidth_fraction = fp8 ? 0.4 : 0.7, p.token_ns = 0.7;
      p.combine_us = 6;
      break;
    case Library::kFa2:
      p.launch_us = 8, p.tile_us = 0.55, p.score_ns = 0.009, p.compute_fraction = 0.6, p.imbalance = 1.7;
      p.lone_slowdown = 1, p.window_blocks = 4, p.overlap = 1.1, p.bandwidth_fraction = 0.9, p.token_ns = 1.5;
      break;
    case Library::kXqa:
      p.launch_us = 15, p.tile_us = 2.5, p.score_ns = fp8 ? 0.033 : 0.013, p.compute_fraction = fp8 ? 0.7 : 0.64;
      p.imbalance = 1.25, p.lone_slowdown = 1.6, p.window_blocks = 2.6, p.overlap = 2.5, p.token_ns = 0.01;
      p.launch_head_dim_us = 0.1;
      break;
    case Library::kTrtllmGen:
      p.launch_us = family == KernelFamily::kTrtllm ? 13.4 : 9.4, p.tile_us = 1.2, p.score_ns = 0.032;
      p.compute_fraction = 0.95, p.imbalance = 1.4, p.lone_slowdown = 1, p.window_blocks = 1.5, p.overlap = 1.05;
      p.bandwidth_fraction = 0.5, p.token_ns = family == KernelFamily::kTrtllm ? 0.01 : 0.4, p.wide_head_penalty = 0.3;
      p.launch_head_dim_us = 0.1;
      break;
  }
  return p;
}

DecodeParameters attention_decode_prior(const GpuSpec& gpu, KernelFamily family, Dtype kv) {
  const bool fp8 = computes_fp8(gpu, kv);
  DecodeParameters p;
  switch (attention::library_of(gpu, family)) {
    case Library::kFa3:
      p.launch_us = 9.8, p.launch_head_dim_us = fp8 ? 3.0 : 1.1, p.tile_growth = 0.33, p.compute_fraction = 1.0;
      p.ungrouped_slowdown = 1.0;
      p.l2_bandwidth_tb_per_s = fp8 ? 2.5 : 7.5, p.bandwidth_fraction = fp8 ? 0.8 : 0.94;
      break;
    case Library::kFa2:
      p.launch_us = 12.4, p.launch_head_dim_us = 0.1, p.head_ns = 0.25, p.tile_us = 3.7, p.compute_fraction = 0.95;
      p.bandwidth_fraction = 0.74, p.l2_share = 0.42, p.l2_bandwidth_tb_per_s = 2.3, p.combine_us = 5.3;
      break;
    case Library::kXqa:
      p.launch_us = fp8 ? 5.9 : 9.2, p.launch_head_dim_us = fp8 ? 0.2 : 1.2, p.tile_us = fp8 ? 1.4 : 4.0;
      p.tile_growth = fp8 ? 0.5 : 0.1, p.tile_row_us = fp8 ? 0.2 : 0.08, p.row_growth = fp8 ? 0.1 : 2.9;
      p.row_ns = fp8 ? 15 : 1.7, p.row_busy = fp8 ? 0.7 : 1.0;
      p.row_group = fp8 ? 0.3 : 0.4, p.split_ns = fp8 ? 1.0 : 100.0, p.l2_bandwidth_tb_per_s = fp8 ? 3.3 : 17.0;
      p.scalar_launch_us = fp8 ? 9.0 : 7.1, p.scalar_combine_us = 5.5;
      // The tables of its version 1.0 beat the datasheet's bandwidth by 1.7: their keys and values are the same pages.
      p.benchmark_reuse = gpu.architecture == Architecture::kHopper ? 0.0 : 0.5;
      break;
    case Library::kTrtllmGen:
      p.launch_us = family == KernelFamily::kTrtllm ? 10.9 : 9.0, p.launch_head_dim_us = 0.2, p.head_ns = 0.3;
      p.tile_us = 1.2, p.tile_growth = 0.2, p.compute_fraction = 0.2, p.tile_row_us = 0.005;
      p.bandwidth_fraction = 0.9, p.l2_bandwidth_tb_per_s = fp8 ? 10 : 16;
      p.scalar_launch_us = 10, p.scalar_combine_us = 10;
      break;
  }
  return p;
}

std::vector<std::string_view> unused_prefill_fields(const GpuSpec& gpu, KernelFamily family, Dtype products) {
  Names names;
  if (family == KernelFamily::kTrtllm) names.push_back("token_threads_ns");
  if (!computes_fp8(gpu, products)) names.push_back("wide_head_penalty");
  if (attention::library_of(gpu, family) == Library::kFa3) {
    append(names, {"imbalance", "lone_slowdown", "window_blocks", "overlap"});
  } else {
    append(names, {"combine_us"});
  }
  return names;
}

std::vector<std::string_view> unused_decode_fields(const GpuSpec& gpu, KernelFamily family, Dtype kv) {
  const Library library = attention::library_of(gpu, family);
  Names names;
  if (library != Library::kFa3) append(names, {"sequence_ns", "convert_ns", "convert_wide_ns", "window_us"});
  if (library == Library::kFa3 && !computes_fp8(gpu, kv)) append(names, {"convert_ns", "convert_wide_ns"});
  if (library == Library::kFa3 || library == Library::kXqa) append(names, {"head_ns", "compute_fraction"});
  append(names, {"benchmark_reuse", "uncut_slowdown"});  // held at their priors
  if (library != Library::kFa2) append(names, {"swap_us", "ungrouped_slowdown"});
  if (library != Library::kXqa)
    append(names,
           {"row_ns", "row_growth", "row_group", "row_busy", "group_us", "split_ns", "scalar_context_us", "overlap"});
  if (library != Library::kXqa || !computes_fp8(gpu, kv)) append(names, {"sink_us"});
  if (library != Library::kXqa && !(library == Library::kTrtllmGen && family == KernelFamily::kTrtllm)) {
    append(names, {"scalar_launch_us", "scalar_overlap", "scalar_busy_us", "scalar_wave_us", "scalar_row_ns",
                   "scalar_lone", "scalar_combine_us"});
  }
  return names;
}

LatentPrefillParameters latent_prefill_prior(const GpuSpec& gpu, KernelFamily family, Dtype kv) {
  LatentPrefillParameters p;
  if (computes_fp8(gpu, kv)) p.launch_us = 17, p.compute_fraction = 0.45, p.overlap = 1.3;
  if (family == KernelFamily::kVllm) {
    p.eager_device_us = 30, p.eager_host_us = gpu.architecture == Architecture::kAmpere ? 289 : 170, p.token_ns = 3.5;
    p.compute_fraction = 0.85, p.write_bandwidth_fraction = 0.4;
  }
  return p;
}

LatentDecodeParameters latent_decode_prior(const GpuSpec& gpu, KernelFamily family, Dtype kv) {
  LatentDecodeParameters p;
  if (computes_fp8(gpu, kv)) p.tile_us = 3.0, p.tile_head_us = 0.2;
  if (gpu.architecture == Architecture::kBlackwell)
    p.launch_us = 9.5, p.launch_heads_us = 1.2, p.tile_us = 2.5, p.tile_head_us = 0.07;
  if (gpu.architecture == Architecture::kAmpere) p.compute_fraction = 0.2, p.bandwidth_fraction = 0.65, p.overlap = 5;
  if (family == KernelFamily::kVllm) {
    p.l2_share = 0.05, p.eager_device_us = 55, p.eager_host_us = gpu.architecture == Architecture::kAmpere ? 338 : 180;
    p.bandwidth_fraction = computes_fp8(gpu, kv) ? 0.5 : p.bandwidth_fraction;
  }
  return p;
}

/// An eager benchmark does not see the launch that a CUDA graph would pay: it stays assumed.
std::vector<std::string_view> unused_latent_prefill_fields(const GpuSpec&, KernelFamily family, Dtype) {
  if (family == KernelFamily::kVllm) return {"launch_us"};
  return {"eager_device_us", "eager_host_us"};
}

std::vector<std::string_view> unused_latent_decode_fields(const GpuSpec& gpu, KernelFamily family, Dtype) {
  Names names;
  const bool resident = gpu.architecture != Architecture::kHopper && gpu.architecture != Architecture::kBlackwell &&
                        family == KernelFamily::kTrtllm;
  if (!resident) names.push_back("pairing");
  if (resident) append(names, {"combine_us"});
  if (family == KernelFamily::kVllm) {
    append(names, {"launch_us", "launch_heads_us", "sequence_ns", "l2_share", "l2_bandwidth_tb_per_s", "combine_us"});
  } else {
    append(names, {"eager_device_us", "eager_host_us"});
  }
  return names;
}

}  // namespace roofcast
