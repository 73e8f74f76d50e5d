#include "calibrate/rows/attention_loop.h"

#include <algorithm>
#include <initializer_list>

#include "hw/efficiency.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/idle_sms.h"

namespace roofcast::calibrate {
namespace {

/// Time to read if a share `hit` of the bytes comes from L2, the rest from memory.
template <class Parts>
Seconds with_l2(const Parts& parts, double hit, double l2_tb_per_s) {
  const BytesPerSecond l2 = std::max(BytesPerSecond(l2_tb_per_s * 1e12), parts.chip.bandwidth);
  return parts.read * (1 - hit) / parts.memory_rate + parts.read * hit / l2;
}

/// A loop that repeats one layer finds all of a cache of up to `l2_share` of L2. From 1 + 1/l2_cliff times that size
/// on, it only finds what is read twice: a kernel whose keys and values are the same pages finds the values, as long as
/// the keys of its running blocks fit.
Seconds memory_in_loop(const attention::DecodeParts& parts, const CacheLoop& loop) {
  const double twice = parts.time.resident < parts.chip.l2 ? loop.benchmark_reuse : 0.0;
  const double over = parts.read / (parts.chip.l2 * loop.l2_share) - 1;
  const double hit = std::clamp(1 - loop.l2_cliff * over, twice, 1.0);
  return with_l2(parts, hit, loop.l2_bandwidth_tb_per_s);
}

Seconds memory_in_loop(const attention::LatentDecodeParts& parts, const LatentLoop& loop) {
  const double over = parts.read / (parts.chip.l2 * loop.l2_share) - 1;
  const double hit = std::clamp(1 - over, 0.0, 1.0);
  return with_l2(parts, hit, loop.l2_bandwidth_tb_per_s);
}

/// Time of a loop without a CUDA graph: the maximum of host and device time, as a sharp smooth maximum (8th power).
Seconds eager_time(Seconds device, const EagerLoop& loop) {
  return attention::overlapped(device + loop.eager_device_us * kMicrosecond, loop.eager_host_us * kMicrosecond, 8);
}

bool in_loop(const RowHeader& header) { return header.timing == Timing::kBenchmark; }

/// The constants of a loop; the defaults if there are none.
template <class P>
P loop_constants_as(const ConstantsBlock& loop) {
  return loop ? KernelOf<P>::in(loop)->value : P{};
}

/// Applies to the tables of TensorRT-LLM before Hopper.
double assumed_reuse(const GpuSpec& gpu) { return gpu.architecture < Architecture::kHopper ? 0.5 : 0.0; }

CacheLoop assumed_cache_loop(const Kernel& kernel, Dtype kv, const GpuSpec& gpu) {
  using namespace attention;
  const auto is_any_of = [&](std::initializer_list<const Kernel*> all) {
    return std::find(all.begin(), all.end(), &kernel) != all.end();
  };
  const bool fp8 = computes_fp8(gpu, kv);
  if (is_any_of({&flash_attention_2_decode(), &flash_split_decode(), &paged_attention_decode()}))
    return {.l2_share = 0.42, .l2_bandwidth_tb_per_s = 2.3};
  if (is_any_of({&flash_attention_3_decode(), &flash_attention_4_decode()}))
    return {.l2_bandwidth_tb_per_s = fp8 ? 2.5 : 7.5};
  if (is_any_of({&trtllm_gen_decode(), &trtllm_gen_vllm_decode(), &triton_decode(), &flashinfer_decode()}))
    return {.l2_bandwidth_tb_per_s = fp8 ? 10.0 : 16.0};
  if (is_any_of({&mmha_decode(), &mmha_blackwell_decode()})) {
    if (traits_of(gpu.architecture).matrix_units == MatrixUnits::kTcgen05)
      return {.l2_bandwidth_tb_per_s = fp8 ? 10.0 : 16.0};
    return {.l2_bandwidth_tb_per_s = fp8 ? 3.3 : 17.0, .benchmark_reuse = assumed_reuse(gpu)};
  }
  if (is_any_of({&xqa_decode()})) return {.l2_bandwidth_tb_per_s = 17.0, .benchmark_reuse = assumed_reuse(gpu)};
  if (is_any_of({&xqa_wgmma_decode()})) return {.l2_bandwidth_tb_per_s = 3.3};
  return {};
}

}  // namespace

ConstantsBlock assumed_attention_loop(const Kernel& kernel, Dtype dtype, const GpuSpec& gpu) {
  if (attention_loop_of(kernel) == nullptr) return {};
  const bool ampere = gpu.architecture == Architecture::kAmpere;
  if (kernel.kind() == KernelKind::kAttentionDecode)
    return KernelOf<CacheLoop>::block_of({assumed_cache_loop(kernel, dtype, gpu), {}});
  if (kernel.kind() == KernelKind::kLatentPrefill)
    return KernelOf<EagerLoop>::block_of(
        {EagerLoop{.eager_device_us = 30.0, .eager_host_us = ampere ? 289.0 : 170.0}, {}});
  LatentLoop loop;
  if (is_timed_eagerly(kernel)) {
    loop.l2_share = 0.05;
    loop.eager_device_us = 55.0;
    loop.eager_host_us = ampere ? 338.0 : 180.0;
  }
  return KernelOf<LatentLoop>::block_of({loop, {}});
}

ConstantsBlock attention_loop_constants(const Kernel& kernel, Dtype dtype, const Efficiency& efficiency,
                                        const GpuSpec& gpu) {
  const Kernel* loop = attention_loop_of(kernel);
  if (loop == nullptr) return {};
  const ConstantsBlock* measured = efficiency.block_by_width(*loop, dtype);
  return measured != nullptr ? *measured : assumed_attention_loop(kernel, dtype, gpu);
}

Seconds attention_row_time(const PrefillRow& row, const attention::PrefillKernel& kernel,
                           const ConstantsBlock& constants, const ConstantsBlock&, const GpuSpec& gpu) {
  return with_sms_to_spare(constants, gpu,
                           [&](const GpuSpec& used) {
                             if (!in_loop(row.header))
                               return attention_prefill_with(row.shape, row.heads, kernel, constants, used);
                             const attention::PrefillParts parts =
                                 prefill_parts(row.shape, row.heads, kernel, constants, used);
                             return parts.total(parts.launch);
                           })
      .time;
}

namespace {

/// Of a row on the SMs of `used`.
Cost decode_cost(const DecodeRow& row, const attention::DecodeKernel& kernel, const ConstantsBlock& constants,
                 const ConstantsBlock& loop, const GpuSpec& used) {
  if (!in_loop(row.header)) return attention_decode_with(row.shape, row.heads, kernel, constants, used);
  const attention::DecodeParts parts = decode_parts(row.shape, row.heads, kernel, constants, used);
  return parts.total(parts.time.launch, memory_in_loop(parts, loop_constants_as<CacheLoop>(loop)));
}

}  // namespace

Seconds attention_row_time(const DecodeRow& row, const attention::DecodeKernel& kernel, const ConstantsBlock& constants,
                           const ConstantsBlock& loop, const GpuSpec& gpu) {
  const auto on = [&](const GpuSpec& used) { return decode_cost(row, kernel, constants, loop, used); };
  return with_sms_to_spare(constants, gpu, on).time;
}

Seconds attention_row_time(const LatentPrefillRow& row, const attention::LatentPrefillKernel& kernel,
                           const ConstantsBlock& constants, const ConstantsBlock& loop, const GpuSpec& gpu) {
  const Cost cost = with_sms_to_spare(constants, gpu, [&](const GpuSpec& used) {
    if (!in_loop(row.header)) return latent_prefill_with(row.shape, row.heads, kernel, constants, used);
    const attention::LatentPrefillParts parts = latent_prefill_parts(row.shape, row.heads, kernel, constants, used);
    return parts.total(parts.launch);
  });
  if (!in_loop(row.header)) return cost.time;
  return eager_time(cost.time, loop_constants_as<EagerLoop>(loop));
}

Seconds attention_row_time(const LatentDecodeRow& row, const attention::LatentDecodeKernel& kernel,
                           const ConstantsBlock& constants, const ConstantsBlock& loop, const GpuSpec& gpu) {
  const LatentLoop beside = loop_constants_as<LatentLoop>(loop);
  const Cost cost = with_sms_to_spare(constants, gpu, [&](const GpuSpec& used) {
    if (!in_loop(row.header)) return latent_decode_with(row.shape, row.heads, kernel, constants, used);
    const attention::LatentDecodeParts parts = latent_decode_parts(row.shape, row.heads, kernel, constants, used);
    return parts.total(parts.launch, memory_in_loop(parts, beside));
  });
  return in_loop(row.header) ? eager_time(cost.time, beside) : cost.time;
}

Seconds attention_row_time(const PrefillRow& row, const Machine& machine) {
  if (machine.fidelity == Fidelity::kIdeal) return attention_prefill(row.shape, row.heads, machine).time;
  const Efficiency& e = *machine.efficiency;
  if (runs_as_decode(row.shape, row.heads, e.rules()))
    return attention_row_time(DecodeRow{row.header, as_decode(row.shape), row.heads}, machine);
  const attention::PrefillKernel& kernel = prefill_kernel(row.shape, row.heads, *machine.gpu, e.rules());
  const Dtype products = prefill_products(row.heads, kernel, *machine.gpu);
  return attention_row_time(row, kernel, e.constants(kernel, products, *machine.gpu), {}, *machine.gpu);
}

Seconds attention_row_time(const DecodeRow& row, const Machine& machine) {
  if (machine.fidelity == Fidelity::kIdeal) return attention_decode(row.shape, row.heads, machine).time;
  const Efficiency& e = *machine.efficiency;
  const GpuSpec& gpu = *machine.gpu;
  const Dtype kv = row.heads.kv;
  const attention::DecodeKernel& kernel = decode_kernel(row.shape, row.heads, gpu, e.rules());
  const auto on = [&](const GpuSpec& used) {
    const attention::DecodeKernel& there =
        decode_kernel(row.shape, row.heads, used, e.rules());  // by its blocks per SM
    return decode_cost(row, there, e.constants(there, kv, gpu), attention_loop_constants(there, kv, e, gpu), used);
  };
  return with_sms_to_spare(e.constants(kernel, kv, gpu), gpu, on).time;
}

Seconds attention_row_time(const LatentPrefillRow& row, const Machine& machine) {
  if (machine.fidelity == Fidelity::kIdeal) return latent_prefill(row.shape, row.heads, machine).time;
  const Efficiency& e = *machine.efficiency;
  if (runs_as_decode(row.shape, row.heads, *machine.gpu, e.rules()))
    return attention_row_time(LatentDecodeRow{row.header, as_decode(row.shape), row.heads}, machine);
  const attention::LatentPrefillKernel& kernel = latent_prefill_kernel(row.heads, *machine.gpu, e.rules());
  const Dtype format = kernel.format(row.heads, *machine.gpu);
  return attention_row_time(row, kernel, e.constants(kernel, format, *machine.gpu),
                            attention_loop_constants(kernel, format, e, *machine.gpu), *machine.gpu);
}

Seconds attention_row_time(const LatentDecodeRow& row, const Machine& machine) {
  if (machine.fidelity == Fidelity::kIdeal) return latent_decode(row.shape, row.heads, machine).time;
  const Efficiency& e = *machine.efficiency;
  const attention::LatentDecodeKernel& kernel = latent_decode_kernel(row.heads, *machine.gpu, e.rules());
  return attention_row_time(row, kernel, e.constants(kernel, row.heads.kv, *machine.gpu),
                            attention_loop_constants(kernel, row.heads.kv, e, *machine.gpu), *machine.gpu);
}

}  // namespace roofcast::calibrate
