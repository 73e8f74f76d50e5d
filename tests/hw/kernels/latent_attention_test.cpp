#include "hw/kernels/latent_attention.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/latent/latent_kernel.h"
#include "tests/kernel_constants.h"

using namespace roofcast;
using roofcast::testing::constants_of;

namespace {

GpuSpec round_gpu(Architecture architecture = Architecture::kHopper) {
  GpuSpec gpu;
  gpu.name = "round";
  gpu.architecture = architecture;
  gpu.sm_count = 100;
  gpu.memory_bandwidth = BytesPerSecond(2e12);
  gpu.l2_cache = Bytes(50e6);
  gpu.dense[static_cast<std::size_t>(Dtype::kBf16)] = FlopsPerSecond(1e15);
  gpu.dense[static_cast<std::size_t>(Dtype::kFp8)] = FlopsPerSecond(2e15);
  return gpu;
}

Machine ideal(const GpuSpec& gpu) { return {.gpu = &gpu, .fidelity = Fidelity::kIdeal}; }

}  // namespace

TEST_CASE("latent attention: the cache is read once for all heads") {
  const GpuSpec gpu = round_gpu();
  const Cost cost = latent_decode({.batch = 1, .mean_context = 1000, .max_context = 1000}, {.heads = 128}, ideal(gpu));
  // cache  = 1000 x (512 + 64) x 2 B           = 1 152 000 B
  // q, out = 128 x (512 + 64 + 512) x 2 B      =   278 528 B  -> 1 430 528 B / 2 TB/s = 0.715264 us
  // work   = 128 x 1000 x 2 x (576 + 512) FLOP = 278 528 000  -> 0.278528 us: at 128 heads 195 FLOP a byte
  CHECK(cost.bytes.base() == 1430528);
  CHECK(cost.flops.base() == 278528000);
  CHECK(cost.time.in(kMicrosecond) == doctest::Approx(0.715264).epsilon(1e-9));
}

TEST_CASE("latent attention: other widths of a cached token") {
  const GpuSpec gpu = round_gpu();
  const DecodeShape shape{.batch = 1, .mean_context = 1000, .max_context = 1000};
  LatentHeads heads{.heads = 16, .kv = Dtype::kFp8};
  CHECK(latent_decode(shape, heads, ideal(gpu)).bytes.base() == 1000 * 576 + 16 * 2176);
  heads.cache_bytes_per_token = 656;  // fp8 latent with scales, bf16 rope
  CHECK(latent_decode(shape, heads, ideal(gpu)).bytes.base() == 1000 * 656 + 16 * 2176);
}

TEST_CASE("latent attention: prefill over expanded heads") {
  const GpuSpec gpu = round_gpu();
  const Cost cost = latent_prefill({.batch = 2, .query_len = 1000}, {.heads = 16}, ideal(gpu));
  // 2 x 16 heads x 500 500 pairs x 2 x (192 + 128) FLOP; q, k, v and out: 2 x 16 x 320 x 2 x 1000 x 2 B
  CHECK(cost.flops.base() == 2.0 * 16 * 500500 * 640);
  CHECK(cost.bytes.base() == 2.0 * 16 * 320 * 2 * 1000 * 2);
}

TEST_CASE("latent attention: prompts over an fp8 cache on Blackwell, by engine") {
  const GpuSpec gpu = round_gpu(Architecture::kBlackwell);
  LatentHeads heads{.heads = 16, .kv = Dtype::kFp8};
  const auto products = [&](const char* engine) {
    return latent_prefill_kernel(heads, gpu, *kernel_rules(engine)).products(heads, gpu);
  };
  CHECK(products("trtllm") == Dtype::kFp8);
  CHECK(products("vllm") == Dtype::kBf16);
  const PrefillShape prompt{.batch = 1, .query_len = 16000};
  const Machine machine{.gpu = &gpu};
  const Seconds wide = latent_prefill(prompt, heads, machine).time;
  heads.fp8_prompts = true;
  CHECK(products("vllm") == Dtype::kFp8);
  CHECK(latent_prefill(prompt, heads, machine).time < wide);
  heads.kv = Dtype::kBf16;
  CHECK(latent_prefill(prompt, heads, machine).time == wide);
}

TEST_CASE("latent attention: FlashMLA's sparse kernels compute for padded heads") {
  const DecodeShape prompt{.batch = 8000, .mean_context = 2048, .max_context = 2048};
  const auto time = [&](const GpuSpec& gpu, double heads, FlashMla kernel) {
    return latent_sparse(prompt, {.heads = heads}, kernel, {.gpu = &gpu}).time;
  };
  GpuSpec blackwell = round_gpu(Architecture::kBlackwell), hopper = round_gpu(Architecture::kHopper),
          ampere = round_gpu(Architecture::kAmpere);
  for (GpuSpec* gpu : {&blackwell, &hopper, &ampere}) gpu->memory_bandwidth = BytesPerSecond(1e15);
  // 8 heads are padded to 128: 2 x 8000 x 128 x 2048 x 1088 FLOP at 0.64 of the 16-bit peak
  const Flops work(2.0 * 8000 * 128 * 2048 * 1088);
  const FlopsPerSecond peak = blackwell.peak(Dtype::kBf16);
  CHECK(time(blackwell, 8, FlashMla::kPrefill).base() == doctest::Approx((work / (peak * 0.64)).base()));
  CHECK(time(blackwell, 16, FlashMla::kPrefill) == time(blackwell, 8, FlashMla::kPrefill));
  CHECK(time(blackwell, 8, FlashMla::kDecode).base() == doctest::Approx((work / (peak * 0.155)).base() / 2));
  CHECK(time(hopper, 8, FlashMla::kPrefill).base() == doctest::Approx((work / (peak * 0.64)).base() / 2));
  CHECK(time(ampere, 8, FlashMla::kPrefill) == latent_decode(prompt, {.heads = 8}, {.gpu = &ampere}).time);
}

TEST_CASE("latent attention: Triton has no tensor cores for a single head") {
  const GpuSpec gpu = round_gpu(Architecture::kAmpere);
  const attention::LatentDecodeKernel& kernel = attention::triton_mla_decode();
  const ConstantsBlock p = constants_of(
      kernel,
      {{"launch_us", 2}, {"launch_heads_us", 0}, {"sequence_ns", 0}, {"combine_us", 0}, {"compute_fraction", 0.1}});
  const auto time = [&](double heads) {
    const DecodeShape shape{.batch = 1, .mean_context = 65536, .max_context = 65536};
    return latent_decode_with(shape, {.heads = heads}, kernel, p, gpu).time.in(kMicrosecond);
  };
  CHECK((time(1) - 2) / (time(2) - 2) == doctest::Approx(4.6).epsilon(0.02));
}

TEST_CASE("latent attention: more bandwidth or compute is never slower, more work never faster") {
  for (const Architecture architecture : {Architecture::kAmpere, Architecture::kHopper, Architecture::kBlackwell}) {
    for (const std::string kernels : {"trtllm", "vllm"}) {
      const Efficiency efficiency(kernels);
      const GpuSpec gpu = round_gpu(architecture);
      GpuSpec wide = gpu, strong = gpu;
      wide.memory_bandwidth *= 2;
      for (FlopsPerSecond& peak : strong.dense) peak *= 2;
      const auto machine = [&](const GpuSpec& of) { return Machine{.gpu = &of, .efficiency = &efficiency}; };
      for (const double heads : {16.0, 128.0}) {
        for (const double batch : {1.0, 64.0, 300.0}) {
          for (const double tokens : {32.0, 1000.0, 30000.0}) {
            const LatentHeads latent{.heads = heads};
            const DecodeShape decode{.batch = batch, .mean_context = tokens, .max_context = tokens};
            const PrefillShape prefill{.batch = batch, .query_len = tokens};
            CAPTURE(architecture);
            CAPTURE(batch);
            CAPTURE(tokens);
            const Seconds decoded = latent_decode(decode, latent, machine(gpu)).time;
            const Seconds filled = latent_prefill(prefill, latent, machine(gpu)).time;
            CHECK(latent_decode(decode, latent, machine(wide)).time <= decoded);
            CHECK(latent_decode(decode, latent, machine(strong)).time <= decoded);
            CHECK(latent_prefill(prefill, latent, machine(wide)).time <= filled);
            CHECK(latent_prefill(prefill, latent, machine(strong)).time <= filled);
            CHECK(latent_prefill({.batch = batch, .query_len = 2 * tokens}, latent, machine(gpu)).time >= filled);
            CHECK(decoded >= latent_decode(decode, latent, ideal(gpu)).time);
          }
        }
      }
    }
  }
}

TEST_CASE("latent attention: verifying drafts fills the padded tile of heads before it costs more") {
  const GpuSpec gpu = round_gpu();
  const Machine machine{.gpu = &gpu};
  const auto time = [&](double query_len) {
    const DecodeShape shape{.batch = 100, .mean_context = 4096, .max_context = 4096, .query_len = query_len};
    return latent_decode(shape, {.heads = 16}, machine).time;
  };
  CHECK(time(4) < 1.2 * time(1));  // 64 rows either way
  CHECK(time(8) > time(4));
}

TEST_CASE("latent attention: empty shapes are our bug") {
  const GpuSpec gpu = round_gpu();
  CHECK_THROWS_AS(latent_prefill({.batch = 1, .query_len = 0}, {.heads = 16}, ideal(gpu)), InternalError);
  CHECK_THROWS_AS(latent_decode({.batch = 1, .mean_context = 0}, {.heads = 16}, ideal(gpu)), InternalError);
}

TEST_CASE("latent attention: vLLM takes short prompts on Hopper for decodes") {
  const GpuSpec gpu = round_gpu();
  const Efficiency efficiency("vllm");
  const Machine vllm{.gpu = &gpu, .efficiency = &efficiency, .fidelity = Fidelity::kCalibrated};
  const LatentHeads heads{.heads = 16};
  const auto absorbed = [&](double tokens) {
    return latent_decode({.batch = 4, .mean_context = tokens, .max_context = tokens, .query_len = tokens}, heads, vllm);
  };
  const auto prompt = [&](double tokens) { return latent_prefill({.batch = 4, .query_len = tokens}, heads, vllm); };
  CHECK(prompt(512).time == absorbed(512).time);
  CHECK(prompt(513).time != absorbed(513).time);
  CHECK(absorbed_queries(gpu, Dtype::kFp8, *kernel_rules("vllm")) == 128);
  CHECK(absorbed_queries(gpu, Dtype::kBf16, *kernel_rules("trtllm")) == 0);
}

TEST_CASE("latent attention: Triton's four splits walk whole blocks of 32 keys") {
  const GpuSpec gpu = round_gpu(Architecture::kAmpere);
  const attention::LatentDecodeKernel& kernel = attention::triton_mla_decode();
  const ConstantsBlock p = constants_of(kernel, {{"launch_us", 0},
                                                 {"launch_heads_us", 0},
                                                 {"sequence_ns", 0},
                                                 {"tile_us", 0},
                                                 {"tile_head_us", 0},
                                                 {"combine_us", 0},
                                                 {"reread", 0},
                                                 {"compute_fraction", 0.1},
                                                 {"overlap", 8}});  // the path, and hardly anything else
  const auto time = [&](double context) {
    return latent_decode_with({.batch = 64, .mean_context = context, .max_context = context}, {.heads = 128}, kernel, p,
                              gpu)
        .time.base();
  };
  CHECK(time(16) == doctest::Approx(time(8)).epsilon(1e-3));
  CHECK(time(128) == doctest::Approx(time(8)).epsilon(1e-3));      // 32 keys a split at most
  CHECK(time(129) == doctest::Approx(2 * time(8)).epsilon(1e-3));  // 33 in one of them: two blocks each
}
