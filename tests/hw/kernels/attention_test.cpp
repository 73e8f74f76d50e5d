#include "hw/kernels/attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "base/config_library.h"
#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/attention_math.h"
#include "hw/kernels/decode/decode_kernel.h"
#include "hw/kernels/prefill/prefill_kernel.h"
#include "tests/kernel_constants.h"

using namespace roofcast;
using roofcast::attention::DecodeKernel;
using roofcast::testing::constants_of;

namespace {

/// 100 SMs, 1000 TFLOP/s in bf16, 2000 in fp8, 2 TB/s: round figures for arithmetic by hand.
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

const AttentionHeads kGrouped{.heads = 32, .kv_heads = 8};

double us(const Cost& cost) { return cost.time.in(kMicrosecond); }

}  // namespace

TEST_CASE("attention: without FlashDecoding a lone sequence is walked by as many blocks as it has heads") {
  const GpuSpec gpu = round_gpu();
  const Machine real{.gpu = &gpu, .fidelity = Fidelity::kCalibrated};
  AttentionHeads unsplit = kGrouped;
  unsplit.kernel = AttentionKernel::kUnsplit;
  const DecodeShape lone{.batch = 1, .mean_context = 100000, .max_context = 100000};
  // 8 heads x 512 B a token; 8 blocks of 1.6 x 2 TB/s x 0.85 / 100 each: 409.6 MB at 217.6 GB/s = 1882 us
  CHECK(us(attention_decode(lone, unsplit, real)) == doctest::Approx(1882.4).epsilon(0.01));
  CHECK(us(attention_decode(lone, kGrouped, real)) < 600);
  const DecodeShape many{.batch = 64, .mean_context = 4000, .max_context = 4000};  // 512 blocks fill the GPU
  CHECK(us(attention_decode(many, unsplit, real)) ==
        doctest::Approx(us(attention_decode(many, kGrouped, real))).epsilon(0.2));
  // Ideal: the same 8 blocks of 1.6 x 2 TB/s / 100: 409.6 MB at 256 GB/s. Filled, it is the roofline.
  CHECK(us(attention_decode(lone, unsplit, ideal(gpu))) == doctest::Approx(1600).epsilon(0.01));
  CHECK(attention_decode(many, unsplit, ideal(gpu)).time == attention_decode(many, kGrouped, ideal(gpu)).time);
}

TEST_CASE("attention: an integer cache reads fewer bytes and unpacks them") {
  GpuSpec gpu = round_gpu();
  gpu.dense[static_cast<std::size_t>(Dtype::kFp32)] = FlopsPerSecond(60e12);
  // 3 operations a value: 3 x 1e9 / 60e12 = 50 us; floats are read as they are
  CHECK(attention::unpacking_time(1e9, Dtype::kInt4, gpu).in(kMicrosecond) == doctest::Approx(50.0));
  CHECK(attention::unpacking_time(1e9, Dtype::kFp8, gpu) == Seconds{});
  AttentionHeads packed = kGrouped;
  packed.kv = Dtype::kInt4;
  // 8 heads x (128 / 2 + 4) x 2 a token; 64 x 4096 tokens
  const Cost cost = attention_decode({64, 4096, 4096, 1}, packed, ideal(gpu));
  CHECK(cost.bytes.base() == doctest::Approx(64 * 4096.0 * 8 * 136 + 64 * 32 * 256 * 2.0));
  const Machine real{.gpu = &gpu, .fidelity = Fidelity::kCalibrated};
  GpuSpec slow = gpu;  // a tenth of the CUDA cores' rate: unpacking bounds the kernel
  slow.dense[static_cast<std::size_t>(Dtype::kFp32)] = FlopsPerSecond(6e12);
  const Machine starved{.gpu = &slow, .fidelity = Fidelity::kCalibrated};
  const double values = 64 * 4096.0 * 8 * 256;
  CHECK(us(attention_decode({64, 4096, 4096, 1}, packed, real)) <
        us(attention_decode({64, 4096, 4096, 1}, packed, starved)));
  CHECK(attention_decode({64, 4096, 4096, 1}, packed, starved).time >
        attention::unpacking_time(values, Dtype::kInt4, slow));
}

TEST_CASE("attention: pairs that a causal mask leaves") {
  CHECK(attention::visible_pairs(0, 4, 0) == 10);  // 1 + 2 + 3 + 4
  CHECK(attention::visible_pairs(6, 2, 0) == 15);  // 7 + 8
  CHECK(attention::visible_pairs(0, 4, 2) == 7);   // 1 + 2 + 2 + 2
  CHECK(attention::visible_pairs(6, 3, 4) == 12);  // 4 + 4 + 4
  CHECK(attention::visible_pairs(2, 4, 4) == 3 + 4 + 4 + 4);
  CHECK(attention::visible_keys(100, 1, 0) == 100);
  CHECK(attention::visible_keys(100, 3, 16) == 18);  // the first of three still sees two older keys
}

TEST_CASE("attention: two overlapping resources lie between their sum and their maximum") {
  const Seconds three(3), four(4);
  CHECK(attention::overlapped(three, four, 1).base() == 7);
  CHECK(attention::overlapped(three, four, 2).base() == doctest::Approx(5));
  CHECK(attention::overlapped(three, four, 60).base() == doctest::Approx(4).epsilon(1e-6));
  CHECK(attention::overlapped(Seconds{}, four, 3).base() == 4);
}

TEST_CASE("attention: the ideal decode step of one sequence is its cache over the bandwidth") {
  const GpuSpec gpu = round_gpu();
  const Cost cost = attention_decode({.batch = 1, .mean_context = 1000, .max_context = 1000}, kGrouped, ideal(gpu));
  // cache  = 1000 tokens x 8 heads x (128 + 128) x 2 B = 4 096 000 B
  // q, out = 32 heads x (128 + 128) x 2 B              =    16 384 B   -> 4 112 384 B / 2 TB/s = 2.056192 us
  // work   = 32 heads x 1000 pairs x 2 x (128 + 128)   = 16 384 000 FLOP -> 0.016 us
  CHECK(cost.bytes.base() == 4112384);
  CHECK(cost.flops.base() == 16384000);
  CHECK(us(cost) == doctest::Approx(2.056192).epsilon(1e-9));
  CHECK(cost.bound == Bound::kMemory);
}

TEST_CASE("attention: an fp8 cache halves the bytes, a window bounds them") {
  const GpuSpec gpu = round_gpu();
  AttentionHeads heads = kGrouped;
  heads.kv = Dtype::kFp8;
  const DecodeShape shape{.batch = 2, .mean_context = 1000, .max_context = 1000};
  CHECK(attention_decode(shape, heads, ideal(gpu)).bytes.base() == 2 * (1000 * 8 * 256 + 16384));
  heads.window = 100;
  CHECK(attention_decode(shape, heads, ideal(gpu)).bytes.base() == 2 * (100 * 8 * 256 + 16384));
}

TEST_CASE("attention: verifying drafts reads the cache once") {
  const GpuSpec gpu = round_gpu();
  const Cost one = attention_decode({.batch = 4, .mean_context = 1000, .max_context = 1000}, kGrouped, ideal(gpu));
  const Cost four =
      attention_decode({.batch = 4, .mean_context = 1000, .max_context = 1000, .query_len = 4}, kGrouped, ideal(gpu));
  CHECK(four.bytes.base() - one.bytes.base() == 4 * 3 * 16384);  // three more q and outputs a sequence
  CHECK(four.flops.base() == 4 * 32.0 * (997 + 998 + 999 + 1000) * 512);
}

TEST_CASE("attention: the ideal prefill of a prompt counts half of the square") {
  const GpuSpec gpu = round_gpu();
  const Cost cost = attention_prefill({.batch = 1, .query_len = 1000}, kGrouped, ideal(gpu));
  // work = 32 x 1000 x 1001 / 2 pairs x 2 products x 2 FLOP x 128 = 8 200 192 000 FLOP -> 8.200192 us at 1000 TFLOP/s
  CHECK(cost.flops.base() == 8200192000.0);
  CHECK(us(cost) == doctest::Approx(10.24).epsilon(1e-9));  // 1000 x (8 + 32) x 512 B = 20 480 000 B at 2 TB/s
  CHECK(cost.bound == Bound::kMemory);
}

TEST_CASE("attention: a chunk after a prefix does the work of the whole less that of the prefix") {
  const GpuSpec gpu = round_gpu();
  const auto flops = [&](double before, double queries) {
    return attention_prefill({.batch = 1, .query_len = queries, .context_before = before}, kGrouped, ideal(gpu))
        .flops.base();
  };
  CHECK(flops(0, 600) + flops(600, 400) == flops(0, 1000));
}

TEST_CASE("attention: the naive kernel moves its N x N matrix four times and computes all of it") {
  const GpuSpec gpu = round_gpu();
  AttentionHeads naive{.heads = 1, .kv_heads = 1, .kernel = AttentionKernel::kNaive};
  const Cost cost = attention_prefill({.batch = 1, .query_len = 4096}, naive, ideal(gpu));
  // 4096 x 4096 scores of 2 B, written, read, written, read: 134 217 728 B; q, k, v, out: 4 x 4096 x 128 x 2 B
  CHECK(cost.bytes.base() == 134217728.0 + 4194304.0);
  CHECK(cost.flops.base() == 2.0 * 4096 * 4096 * 256);
  AttentionHeads flash = naive;
  flash.kernel = AttentionKernel::kFlash;
  Machine machine{.gpu = &gpu};
  CHECK(attention_prefill({.batch = 4, .query_len = 8192}, naive, machine).time >
        2 * attention_prefill({.batch = 4, .query_len = 8192}, flash, machine).time);
  CHECK(attention_decode({.batch = 8, .mean_context = 4096, .max_context = 4096}, naive, machine).time > Seconds{});
}

TEST_CASE("attention: FlashAttention-3's decode by hand") {
  // 64 sequences x 8 kv heads, context 2048, d 128: 16 blocks of 128 keys; share = ceil(1.1 x 512 x 16 / 100) = 91
  // blocks, so no cut; waves = ceil(512 / 100) = 6; row = 2 x 128 x 256 FLOP / 10 TFLOP/s = 6.5536 ns.
  const GpuSpec gpu = round_gpu();
  const DecodeKernel& kernel = attention::flash_attention_3_decode();
  const ConstantsBlock p = constants_of(kernel, {{"launch_us", 10},
                                                 {"launch_head_dim_us", 1},
                                                 {"sequence_ns", 10},
                                                 {"tile_us", 2},
                                                 {"tile_growth", 0.5},
                                                 {"tile_row_us", 0.01},
                                                 {"bandwidth_fraction", 0.8}});
  // tile   = 2 x 1.5 + 0.01 x 4 rows = 3.04 us; path = 6 x 2048 x 6.5536 ns + 5 x 3.04 = 80.5306 + 15.2 us
  // memory = (512 x 2048 x 512 + 64 x 32 x 512) B / 1.6 TB/s = 336.19968 us; launch = 11 + 64 x 2 x 0.01 = 12.28 us
  // of a lone kernel: in the graph of a model it is queued behind the kernel before, and 3 us of it are not paid.
  const double path = 6 * 2048 * 6.5536e-3 + 5 * 3.04, memory = (512.0 * 2048 * 512 + 64 * 32 * 512) / 1.6e6;
  const double expected = 9.28 + std::cbrt(path * path * path + memory * memory * memory);
  const DecodeShape shape{.batch = 64, .mean_context = 2048, .max_context = 2048};
  const Cost cost = attention_decode_with(shape, kGrouped, kernel, p, gpu);
  CHECK(us(cost) == doctest::Approx(expected).epsilon(1e-9));
  CHECK(cost.bound == Bound::kMemory);
}

TEST_CASE("attention: FlashAttention-4 starts 32 cuts of every sequence of a graph, keys or not") {
  const GpuSpec gpu = round_gpu();
  const DecodeKernel& kernel = attention::flash_attention_4_decode();
  const ConstantsBlock p = constants_of(kernel, {{"launch_us", 13},  // 3 of them are not paid
                                                 {"launch_head_dim_us", 0},
                                                 {"sequence_ns", 0},
                                                 {"tile_us", 2},
                                                 {"tile_growth", 0},
                                                 {"tile_row_us", 0},
                                                 {"bandwidth_fraction", 0.8}});
  const AttentionHeads wide{.heads = 1, .kv_heads = 1, .head_dim = 512, .value_dim = 512};
  const auto time = [&](double sequences) {
    const DecodeShape shape{.batch = sequences, .mean_context = 1, .max_context = 1};
    return us(attention_decode_with(shape, wide, kernel, p, gpu));
  };
  // 100 SMs: 2048 blocks are 21 turns, one more than 20 turns of 2 us; 16384 are 164
  CHECK(time(64) == doctest::Approx(10 + 20 * 2).epsilon(0.02));
  CHECK(time(512) == doctest::Approx(10 + 163 * 2).epsilon(0.02));
  CHECK(time(513) < 30);  // beyond the graphs nothing is cut
  const auto rules = kernel_rules("vllm");
  const DecodeShape one{.batch = 1, .mean_context = 1, .max_context = 1};
  CHECK(&decode_kernel(one, wide, gpu, *rules) == &kernel);
  CHECK(&decode_kernel(one, kGrouped, gpu, *rules) == &attention::flash_attention_3_decode());
}

TEST_CASE("attention: without a kernel that shares reads, a group's heads are decoded one by one") {
  const CalibratedGpu h100 = load_gpu(load_named("hardware", "h100-sxm", {}), "trtllm");
  const Machine machine{.gpu = &h100.spec, .efficiency = &h100.efficiency};
  const DecodeShape shape{.batch = 56, .mean_context = 2048, .max_context = 2048};
  AttentionHeads grouped{.heads = 32, .kv_heads = 8}, alone = grouped;
  alone.shared_reads = false;
  CHECK(attention_decode(shape, alone, machine).time > 1.5 * attention_decode(shape, grouped, machine).time);
  grouped.kv_heads = alone.kv_heads = 32;  // every head has its own cache: nothing to share
  CHECK(attention_decode(shape, alone, machine).time == attention_decode(shape, grouped, machine).time);
}

TEST_CASE("attention: one long sequence among short ones costs less than all of them long") {
  for (const Architecture architecture : {Architecture::kAmpere, Architecture::kHopper, Architecture::kBlackwell}) {
    const GpuSpec gpu = round_gpu(architecture);
    Efficiency efficiency;
    for (const std::string kernels : {"trtllm", "vllm"}) {
      efficiency.follow(kernel_rules(kernels));
      const Machine machine{.gpu = &gpu, .efficiency = &efficiency};
      const auto time = [&](double mean, double longest) {
        return attention_decode({.batch = 64, .mean_context = mean, .max_context = longest}, kGrouped, machine).time;
      };
      CAPTURE(architecture);
      CHECK(time(1000, 1000) <= time(1000, 32000));
      CHECK(time(1000, 32000) < time(32000, 32000));
    }
  }
}

TEST_CASE("attention: more bandwidth or compute is never slower, more work never faster") {
  const AttentionHeads shapes[] = {{.heads = 8, .kv_heads = 1},
                                   {.heads = 32, .kv_heads = 32, .head_dim = 64, .value_dim = 64},
                                   {.heads = 64, .kv_heads = 8, .window = 128, .kv = Dtype::kFp8},
                                   {.heads = 16, .kv_heads = 2, .head_dim = 256, .value_dim = 256}};
  for (const Architecture architecture : {Architecture::kAmpere, Architecture::kHopper, Architecture::kBlackwell}) {
    for (const std::string kernels : {"trtllm", "vllm"}) {
      Efficiency efficiency;
      efficiency.follow(kernel_rules(kernels));
      const GpuSpec gpu = round_gpu(architecture);
      GpuSpec wide = gpu, strong = gpu;
      wide.memory_bandwidth *= 2;
      for (FlopsPerSecond& peak : strong.dense) peak *= 2;
      for (const AttentionHeads& heads : shapes) {
        for (const double batch : {1.0, 48.0, 700.0}) {
          for (const double tokens : {16.0, 900.0, 20000.0}) {
            const DecodeShape decode{.batch = batch, .mean_context = tokens, .max_context = tokens};
            const PrefillShape prefill{.batch = batch, .query_len = tokens};
            const auto both = [&](const GpuSpec& of) {
              const Machine machine{.gpu = &of, .efficiency = &efficiency};
              return std::pair(attention_decode(decode, heads, machine).time,
                               attention_prefill(prefill, heads, machine).time);
            };
            const auto [decode_time, prefill_time] = both(gpu);
            const Machine machine{.gpu = &gpu, .efficiency = &efficiency};
            CAPTURE(architecture);
            CAPTURE(batch);
            CAPTURE(tokens);
            CHECK(both(wide).first <= decode_time);
            CHECK(both(wide).second <= prefill_time);
            CHECK(both(strong).first <= decode_time);
            CHECK(both(strong).second <= prefill_time);
            CHECK(attention_prefill({.batch = batch, .query_len = tokens * 2}, heads, machine).time >= prefill_time);
            CHECK(
                attention_prefill({.batch = batch, .query_len = tokens, .context_before = 5000}, heads, machine).time >=
                0.9 * prefill_time);
            CHECK(decode_time >= attention_decode(decode, heads, ideal(gpu)).time);
          }
        }
      }
    }
  }
}

TEST_CASE("attention: a chunk after a long prefix is priced near the rest of the whole prompt") {
  const GpuSpec gpu = round_gpu();
  const Machine machine{.gpu = &gpu};
  const auto time = [&](double before, double queries) {
    return us(attention_prefill({.batch = 1, .query_len = queries, .context_before = before}, kGrouped, machine));
  };
  CHECK(time(0, 16384) + time(16384, 16384) == doctest::Approx(time(0, 32768)).epsilon(0.15));
}

TEST_CASE("attention: empty shapes are our bug") {
  const GpuSpec gpu = round_gpu();
  CHECK_THROWS_AS(attention_prefill({.batch = 1, .query_len = 0}, kGrouped, ideal(gpu)), InternalError);
  CHECK_THROWS_AS(attention_decode({.batch = 0, .mean_context = 5}, kGrouped, ideal(gpu)), InternalError);
}

TEST_CASE("attention: FlashAttention over prompts where nothing is measured") {
  const GpuSpec gpu = round_gpu();
  const attention::PrefillKernel &two = attention::flash_attention_2_prefill(),
                                 &three = attention::flash_attention_3_prefill();
  const PrefillShape prompt{.batch = 1, .query_len = 128, .context_before = 0};
  const auto parts = [&](const attention::PrefillKernel& kernel) {
    return attention::prefill_parts(prompt, kGrouped, kernel, kernel.assumed(gpu, Dtype::kBf16), gpu);
  };
  CHECK(parts(two).launch.in(kMicrosecond) == doctest::Approx(8 + 0.5));  // more for each 128 of head dimension
  CHECK(parts(three).launch.in(kMicrosecond) == doctest::Approx(11.5 + 0.5));
  // The third hands tiles out longest first: none is slower alone or pays for a window's border, the longest and the
  // mean hardly add, and tiles and memory do not overlap beyond that.
  const attention::PrefillParts alone = parts(three);
  CHECK(alone.total(Seconds{}).time.base() ==
        doctest::Approx((alone.tiles + alone.memory + alone.write).base()).epsilon(1e-12));
  const auto constants = three.assumed(gpu, Dtype::kBf16);
  const attention::PrefillParameters& held = three.parameters(constants);
  CHECK(held.lone_slowdown == 1);
  CHECK(held.window_blocks == 0);
  CHECK(held.imbalance == 12);
  const double write = parts(two).write.base(), least = 2 * 128 * 8 * 256 * 2.0 / 2e12;
  CHECK(write > least);  // of keys and values, read and written in 16 bit
}

TEST_CASE("kernels: names are unique, and defaults and priors lie within their bounds") {
  std::set<std::string_view> names;
  for (const Kernel* kernel : kernels()) {
    CAPTURE(kernel->name());
    CHECK(names.insert(kernel->name()).second);
    std::set<std::string_view> constants;
    const std::vector<FieldFacts> fields = kernel->fields();
    for (const ConstantsBlock& block : {kernel->defaults(), kernel->assumed(round_gpu(), Dtype::kBf16),
                                        kernel->assumed(round_gpu(Architecture::kAmpere), Dtype::kFp8)}) {
      const std::vector<double> values = kernel->numbers(block);
      REQUIRE(values.size() == fields.size());
      for (std::size_t i = 0; i < fields.size(); ++i) {
        CAPTURE(fields[i].name);
        CHECK(values[i] >= fields[i].low);
        CHECK(values[i] <= fields[i].high);
        constants.insert(fields[i].name);
      }
    }
    CHECK(constants.size() == fields.size());
  }
}

TEST_CASE("attention: paged attention reads the cache a head, and cuts it for few heads only") {
  const GpuSpec gpu = round_gpu(Architecture::kCdna3);
  const DecodeKernel& kernel = attention::paged_attention_decode();
  std::map<std::string, double> p{{"launch_us", 0}, {"launch_head_dim_us", 0}, {"key_ns", 10}, {"lone", 0},
                                  {"merge_us", 0},  {"uncut_slowdown", 3},     {"overlap", 8}};
  AttentionHeads heads = kGrouped;
  heads.shared_reads = false;
  const auto time = [&](double batch) {
    return us(attention_decode_with({.batch = batch, .mean_context = 2048, .max_context = 2048}, heads, kernel,
                                    constants_of(kernel, p), gpu));
  };
  // 16 x 32 heads are cut, 32 x 32 are not: twice the keys, three times as long each.
  CHECK(time(32) / time(16) == doctest::Approx(6).epsilon(0.02));
  const double alone = 512.0 * 2048 / 100 * 10 * std::pow(2, 0.7) * 1e-3;
  CHECK(time(16) == doctest::Approx(alone).epsilon(0.02));
  // Not cut, every query head reads the cache from memory: 32 x 2048 tokens x 8 heads x 512 B, 4 times.
  p["key_ns"] = 0, p["bandwidth_fraction"] = 0.5;
  const double read = 32 * 2048.0 * 8 * 512 / (gpu.memory_bandwidth.base() * 0.5) * 1e6;
  CHECK(time(32) == doctest::Approx(4 * read).epsilon(0.02));
  CHECK(time(16) == doctest::Approx(read / 2).epsilon(0.02));
}

TEST_CASE("attention: fp8 caches are multiplied in fp8, but by vLLM only where there is wgmma or tcgen05") {
  AttentionHeads narrow = kGrouped;
  narrow.kv = Dtype::kFp8;
  const auto products = [&](const char* gpu, const std::string& kernels) {
    const CalibratedGpu on = load_gpu(load_named("hardware", gpu, {}), kernels);
    return prefill_products(narrow, prefill_kernel({.query_len = 100}, narrow, on.spec, on.efficiency.rules()),
                            on.spec);
  };
  for (const char* gpu : {"h100-sxm", "b200-sxm"}) CHECK(products(gpu, "vllm") == Dtype::kFp8);
  for (const char* gpu : {"l40s", "rtx-pro-6000", "a100-sxm"}) CHECK(products(gpu, "vllm") == Dtype::kBf16);
  CHECK(products("l40s", "trtllm") == Dtype::kBf16);  // 16-bit queries by mma.sync
  narrow.compute = Dtype::kFp8;
  CHECK(products("l40s", "trtllm") == Dtype::kFp8);
  CHECK(products("a100-sxm", "trtllm") == Dtype::kBf16);
}

TEST_CASE("attention: without fp8 units a scalar kernel converts an fp8 cache by hand, for each query head") {
  GpuSpec gpu = round_gpu(Architecture::kAmpere);
  gpu.dense[static_cast<std::size_t>(Dtype::kFp32)] = FlopsPerSecond(20e12);
  gpu.dense[static_cast<std::size_t>(Dtype::kFp8)] = FlopsPerSecond{};
  // 1e9 values x 24 operations x 2 FLOP / 20e12
  CHECK(attention::scalar_fp8_time(1e9, 24, Dtype::kFp8, gpu).in(kMicrosecond) == doctest::Approx(2400));
  CHECK(attention::scalar_fp8_time(1e9, 24, Dtype::kInt8, gpu) == Seconds{});
  AttentionHeads narrow = kGrouped;
  narrow.shared_reads = false;
  AttentionHeads wide = narrow;
  narrow.kv = Dtype::kFp8;
  const Machine machine{.gpu = &gpu};
  const DecodeShape shape{.batch = 8, .mean_context = 4000, .max_context = 4000};
  const double conversions = 8 * 4000.0 * 32 * 256 * 50 * 2 / 20e12 * 1e6;
  CHECK(us(attention_decode(shape, narrow, machine)) > conversions);
  gpu.dense[static_cast<std::size_t>(Dtype::kFp8)] = FlopsPerSecond(600e12);
  CHECK(us(attention_decode(shape, narrow, machine)) < us(attention_decode(shape, wide, machine)) + 1);
  CHECK(attention::scalar_fp8_time(1e9, 24, Dtype::kFp8, gpu) == Seconds{});
}

TEST_CASE("attention: masked multi-head attention runs in waves of blocks as large as still fill the GPU") {
  const GpuSpec gpu = round_gpu();
  const AttentionHeads heads{.heads = 4, .kv_heads = 4};
  const DecodeKernel& kernel = attention::mmha_decode();
  std::map<std::string, double> p{
      {"launch_us", 13}, {"launch_head_dim_us", 0}, {"context_us", 0}, {"busy_us", 0}, {"key_ns", 0}, {"wave_us", 6},
      {"overlap", 8}};  // of the launch, 3 us are not paid in a model's graph
  const auto time = [&](double sequences, double context) {
    const DecodeShape shape{.batch = sequences, .mean_context = context, .max_context = context};
    return us(attention_decode_with(shape, heads, kernel, constants_of(kernel, p), gpu));
  };
  // 100 SMs. Up to 133 blocks have 1024 threads and an SM to themselves: 100 run at once, 108 in two waves.
  CHECK(time(25, 2) == doctest::Approx(10.0).epsilon(0.02));
  CHECK(time(27, 2) == doctest::Approx(16.0).epsilon(0.02));
  // 160 blocks of 512 threads, two an SM: one wave. 400 of 256, four an SM: one wave; 404: two. 100 sequences have
  // 100 x 4 x 256 values of queries and outputs beside their keys, 0.35 us of memory.
  CHECK(time(40, 2) == doctest::Approx(10.0).epsilon(0.02));
  CHECK(time(100, 2) == doctest::Approx(10.35).epsilon(0.001));
  CHECK(time(101, 2) == doctest::Approx(16.0).epsilon(0.02));
  // One head of dimension 128 is cut each 65536 / 128 = 512 keys, the new one counted: 511 in one block, 512 in two.
  p["combine_us"] = 5.0;
  CHECK(time(1, 512) - time(1, 511) == doctest::Approx(5.0).epsilon(0.05));
}

TEST_CASE("attention: FlashAttention-2 folds and splits for one new token of grouped heads without a window") {
  const GpuSpec gpu = round_gpu(Architecture::kAmpere);
  const Machine machine{.gpu = &gpu};
  const auto time = [&](const DecodeShape& shape, const AttentionHeads& heads) {
    return us(attention_decode(shape, heads, machine));
  };
  // 64 sequences x 64 heads on 100 SMs: 41 waves of 128 keys, each of 2 x 64 x 256 / (10 T x 0.95) x 1.8 = 6.21 ns,
  // and 40 starts of 3.7 x 1.3 + 0.012 us: 225.5 us; launch 12.4 + 0.1 + 4096 x 0.25 ns - 3 = 10.5 us
  const DecodeShape many{.batch = 64, .mean_context = 4000, .max_context = 4000};
  AttentionHeads windowed{.heads = 64, .kv_heads = 8, .window = 128};
  CHECK(time(many, windowed) == doctest::Approx(236.0).epsilon(0.01));
  windowed.kv_heads = 1;  // nothing is shared
  CHECK(time(many, windowed) == doctest::Approx(236.0).epsilon(0.01));
  // Five tokens to verify: 32 blocks walk 31,000 keys at 6.21 ns each, 192 us. One token is split over all SMs: 127 MB
  // at 0.74 x 2 TB/s are 86 us.
  DecodeShape verify{.batch = 1, .mean_context = 31000, .max_context = 31000, .query_len = 5};
  CHECK(time(verify, kGrouped) > 192);
  CHECK(time({.batch = 1, .mean_context = 31000, .max_context = 31000}, kGrouped) < 105);
  // FlashInfer packs and splits in either case.
  AttentionHeads split = kGrouped, narrow = kGrouped;
  split.kernel = AttentionKernel::kSplit;
  CHECK(time(verify, split) < 105);
  narrow.kv = Dtype::kFp8;  // whose caches vLLM leaves to FlashInfer
  CHECK(time(verify, narrow) < 100);
  windowed.kernel = AttentionKernel::kSplit;
  CHECK(time(many, windowed) < 50);
}

TEST_CASE("attention: FlashAttention-2 swaps grouped queries of several sequences, which is a launch more") {
  const GpuSpec gpu = round_gpu(Architecture::kAmpere);
  const DecodeKernel& kernel = attention::flash_attention_2_decode();
  const auto longer = [&](double batch, double kv_heads, double query_len) {
    const DecodeShape shape{.batch = batch, .mean_context = 1000, .max_context = 1000, .query_len = query_len};
    const AttentionHeads heads{.heads = 32, .kv_heads = kv_heads};
    const auto time = [&](double swap_us) {
      return us(attention_decode_with(shape, heads, kernel, constants_of(kernel, {{"swap_us", swap_us}}), gpu));
    };
    return time(60) - time(10);
  };
  CHECK(longer(2, 8, 1) == doctest::Approx(50));
  CHECK(longer(1, 8, 1) == 0);   // the heads of one sequence lie as the kernel wants them
  CHECK(longer(2, 1, 1) == 0);   // so do those of one group
  CHECK(longer(2, 32, 1) == 0);  // nothing is shared
  CHECK(longer(2, 8, 3) == 0);   // several new tokens are not folded
}

TEST_CASE("attention: without wgmma fmha_v2 keeps up in fp8 at head dimensions of 128 and 192 alone") {
  const auto most = [](const attention::PrefillKernel& kernel, double dim, bool fp8) {
    return kernel.traits(dim, fp8).most_compute;
  };
  const double all = most(attention::fmha_v2_prefill(), 128, false);
  CHECK(most(attention::fmha_v2_prefill(), 64, true) == 0.3);
  CHECK(most(attention::fmha_v2_prefill(), 192, true) == all);
  CHECK(most(attention::fmha_v2_prefill(), 256, true) == 0.21);
  for (const double dim : {64.0, 128.0, 192.0, 256.0}) {
    CHECK(most(attention::fmha_v2_prefill(), dim, false) == all);
    CHECK(most(attention::fmha_v2_wgmma_prefill(), dim, true) == all);
  }
}
