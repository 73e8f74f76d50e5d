#include "hw/kernels/gemm.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/gemm/gemm_kernel.h"

using namespace roofcast;

namespace {

/// Round numbers: 128 SMs, 1024 TFLOP/s in 16 bit (8 an SM), 2048 in 8 bit, 2 TB/s, 32 MiB of L2.
GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.name = "round";
  gpu.architecture = Architecture::kHopper;
  gpu.sm_count = 128;
  gpu.memory_bandwidth = BytesPerSecond(2e12);
  gpu.l2_cache = Bytes(33554432);
  gpu.dense[static_cast<std::size_t>(Dtype::kBf16)] = FlopsPerSecond(1024e12);
  for (const Dtype dtype : {Dtype::kFp8, Dtype::kFp8Block, Dtype::kInt8}) {
    gpu.dense[static_cast<std::size_t>(dtype)] = FlopsPerSecond(2048e12);
  }
  return gpu;
}

/// Nothing lost anywhere.
GemmParameters perfect() {
  GemmParameters p;
  p.compute_efficiency = p.sustained_clock = p.bandwidth_efficiency = p.l2_bandwidth_ratio = 1.0;
  p.tile_intensity = 0.0;
  p.launch_us = p.wave_us = p.epilogue_us = p.k_step_us = p.split_k_us = 0.0;
  return p;
}

/// The kernel that an engine runs.
const MatmulKernel& run_by(const char* engine, const GemmShape& shape, const GpuSpec& gpu) {
  return gemm_kernel(shape, gpu, *kernel_rules(engine));
}

Cost served(const GemmShape& shape, const GemmParameters& p, const GpuSpec& gpu, const char* engine = "trtllm",
            const GemmRun& run = {}) {
  return gemm_with(shape, run_by(engine, shape, gpu), p, gpu, run);
}

struct AllConstants : GemmParameters {
  static std::span<const Parameter<AllConstants>> fields() {
    static constexpr auto kFields =
        joined(kTileLoopFields<AllConstants>, kPairedTileFields<AllConstants>, kSplitField<AllConstants>,
               kOddRowsField<AllConstants>, kOneRowField<AllConstants>);
    return kFields;
  }
};
/// A kernel whose tiles are tried one by one, without bounds that leave some out.
class EveryTile final : public MatmulKernelOf<AllConstants> {
 public:
  explicit EveryTile(const MatmulKernel& kernel) : MatmulKernelOf(kernel.facts()), kernel_(kernel) {}
  GemmTiling tiling(const GpuSpec& gpu, double m, double n, double k) const override {
    GemmTiling all = kernel_.tiling(gpu, m, n, k);
    all.bounds = nullptr;
    return all;
  }
  double rows_without_tiles() const override { return kernel_.rows_without_tiles(); }
  double gemv_rows() const override { return kernel_.gemv_rows(); }

 private:
  const MatmulKernel& kernel_;
};

double both(double a, double b) { return std::cbrt(a * a * a + b * b * b); }

}  // namespace

TEST_CASE("gemm, ideal: a one-token projection is bound by weight traffic") {
  GpuSpec gpu = round_gpu();
  gpu.dense[static_cast<std::size_t>(Dtype::kBf16)] = FlopsPerSecond(1000e12);
  const Machine machine{.gpu = &gpu, .fidelity = Fidelity::kIdeal};
  // work    = 2*1*8192*8192            = 134 217 728 FLOP ->  0.134 us at 1000 TFLOP/s
  // traffic = 2*(8192 + 8192^2 + 8192) = 134 250 496 B    -> 67.125 us at 2000 GB/s, the larger
  const Cost cost = gemm({.m = 1, .n = 8192, .k = 8192}, machine);
  CHECK(cost.flops.base() == 134217728.0);
  CHECK(cost.bytes.base() == 134250496.0);
  CHECK(cost.time.in(kMicrosecond) == doctest::Approx(67.125248).epsilon(1e-9));
  CHECK(cost.bound == Bound::kMemory);
}

TEST_CASE("gemm, ideal: int4 weights with 16-bit activations read fewer bytes and compute in 16 bit") {
  const GpuSpec gpu = round_gpu();
  const Machine machine{.gpu = &gpu, .fidelity = Fidelity::kIdeal};
  // groups of 128 with a 16-bit scale: (4 + 16/128)/8 = 0.515625 B an element
  // traffic = 0.515625*4096*4096 + 2*8*4096 + 2*8*4096 = 8 650 752 + 131 072 = 8 781 824 B -> 4.390912 us
  const GemmShape narrow{.m = 8, .n = 4096, .k = 4096, .weights = Dtype::kInt4, .weight_scales = {.group_size = 128}};
  CHECK(gemm(narrow, machine).time.in(kMicrosecond) == doctest::Approx(4.390912).epsilon(1e-9));
  // at 8192 rows the work counts: 2*8192*4096*4096 / 1024e12 = 268.4 us, as with bf16 weights
  GemmShape large = narrow;
  large.m = 8192;
  CHECK(gemm(large, machine).time.in(kMicrosecond) == doctest::Approx(268.435456).epsilon(1e-9));
}

TEST_CASE("gemm: one full wave of tiles, work and traffic overlap with a smooth corner") {
  const GpuSpec gpu = round_gpu();
  // 128 x 256 tiles: 16 * 8 = 128 blocks, one an SM
  // work    = 2*2048*2048*8192 = 68.72 GFLOP / 1024e12      = 67.109 us
  // traffic = 2*2*2048*8192 + 2*2048^2 = 75 497 472 B / 2e12 = 37.749 us (above twice the L2: nothing is found again)
  const Cost cost = served({.m = 2048, .n = 2048, .k = 8192}, perfect(), gpu);
  CHECK(cost.time.in(kMicrosecond) == doctest::Approx(both(67.108864, 37.748736)).epsilon(1e-9));
  CHECK(cost.bound == Bound::kCompute);
}

TEST_CASE("gemm: what bounds a product is the longer of work and traffic, or else the launch") {
  GpuSpec gpu = round_gpu();
  gpu.dense[static_cast<std::size_t>(Dtype::kBf16)] = FlopsPerSecond(1024e14);
  const GemmShape shape{.m = 64, .n = 8192, .k = 8192};  // 0.08 us of work, 68 us of traffic
  GemmParameters p = perfect();
  CHECK(served(shape, p, gpu).bound == Bound::kMemory);
  p.launch_us = 50.0;
  CHECK(served(shape, p, gpu).bound == Bound::kMemory);
  p.launch_us = 80.0;  // more than half of the time is neither
  CHECK(served(shape, p, gpu).bound == Bound::kLatency);
}

TEST_CASE("gemm: launch, prologue and epilogue come on top") {
  const GpuSpec gpu = round_gpu();
  GemmParameters p = perfect();
  const GemmShape shape{.m = 2048, .n = 2048, .k = 8192};
  p.launch_us = 3.0;
  CHECK(served(shape, p, gpu).time.in(kMicrosecond) == doctest::Approx(both(67.108864, 37.748736) + 3.0).epsilon(1e-9));
  // 128 x 256 is two 128 x 128: 2 * 0.5 us of epilogue; no smaller tile fills the SMs in one wave
  p.wave_us = 1.0;
  p.epilogue_us = 0.5;
  CHECK(served(shape, p, gpu).time.in(kMicrosecond) == doctest::Approx(both(67.108864, 37.748736) + 5.0).epsilon(1e-9));
}

TEST_CASE("gemm: rows that are no multiple of four are slow only where scales go by rows") {
  const GpuSpec gpu = round_gpu();
  GemmParameters p = perfect();
  p.odd_rows = 0.5;
  GemmShape shape{.m = 2046, .n = 2048, .k = 8192};
  const double slow = served(shape, p, gpu).time.base();
  shape.row_scales = false;
  const double fast = served(shape, p, gpu).time.base();
  CHECK(fast == served(shape, perfect(), gpu).time.base());
  CHECK(slow > 1.5 * fast);
  shape.m = 2048, shape.row_scales = true;
  CHECK(served(shape, p, gpu).time.base() == served(shape, perfect(), gpu).time.base());
}

TEST_CASE("gemm: one tile too many for the SMs costs a second turn") {
  const GpuSpec gpu = round_gpu();
  GemmParameters p = perfect();
  p.wave_us = 5.0;
  p.split_k_us = 100.0;
  const double full = served({.m = 2048, .n = 2048, .k = 8192}, p, gpu).time.base();
  const double more = served({.m = 2049, .n = 2048, .k = 8192}, p, gpu).time.base();
  CHECK(more > full * 1.05);
}

TEST_CASE("gemm: long products whose last turn stands nearly empty are cut, into more than two turns too") {
  GpuSpec gpu = round_gpu();
  gpu.architecture = Architecture::kAmpere;
  gpu.sm_count = 100;
  GemmParameters p = perfect();
  p.lone_block_rate = 0.6;
  p.tile_intensity = 85.0;  // of 128 x 256: smaller tiles starve
  p.split_k_us = 2.0;
  // 128 tiles of 128 x 256 on 100 SMs: two turns where 1.28 would do
  const GemmShape shape{.m = 1024, .n = 4096, .k = 65536};
  const double work = 2.0 * shape.m * shape.n * shape.k / 1024e12;
  CHECK(served(shape, p, gpu).time.base() < 1.3 * work);
  p.split_k_us = 1e4;
  CHECK(served(shape, p, gpu).time.base() > 1.4 * work);
}

TEST_CASE("gemm: a power limit lengthens the work alone, by the busy share") {
  const GpuSpec gpu = round_gpu();
  GemmParameters p = perfect();
  p.sustained_clock = 0.8;
  // work 67.109 us, busy 67.109/70.83 = 0.9475: 67.109 * (1 + 0.9475 * 0.25) = 83.005 us
  const double busy = 67.108864 / both(67.108864, 37.748736);
  const double hot = 67.108864 * (1.0 + busy * 0.25);
  CHECK(served({.m = 2048, .n = 2048, .k = 8192}, p, gpu).time.in(kMicrosecond) ==
        doctest::Approx(both(hot, 37.748736)).epsilon(1e-9));
  // before the limit has acted: the cool clock
  CHECK(served({.m = 2048, .n = 2048, .k = 8192}, p, gpu, "trtllm", {.cool = true}).time.in(kMicrosecond) ==
        doctest::Approx(both(67.108864, 37.748736)).epsilon(1e-9));
}

TEST_CASE("gemm: a loop over few sets of weights finds them in L2, a served model never does") {
  const GpuSpec gpu = round_gpu();
  GemmParameters p = perfect();
  p.l2_bandwidth_ratio = 4.0;
  p.l2_usable = 1.0;
  // 1024 x 1024 bf16 = 2 MiB; five copies fill 10 of 32 MiB
  const GemmShape shape{.m = 1, .n = 1024, .k = 1024};
  const double cold = served(shape, p, gpu).time.in(kMicrosecond);
  const double warm = served(shape, p, gpu, "trtllm", {.weight_copies = 5}).time.in(kMicrosecond);
  CHECK(cold > 2097152 / 2e6);  // the weights at 2 TB/s: 1.05 us
  CHECK(warm < 0.5 * cold);
}

TEST_CASE("gemm: FlashInfer's products in block fp8 take the same for every row") {
  GpuSpec gpu = round_gpu();
  gpu.architecture = Architecture::kBlackwell;
  Efficiency efficiency;
  const auto time = [&](double rows, const MatmulKernel* asked) {
    const GemmShape shape{
        .m = rows, .n = 4096, .k = 4096, .weights = Dtype::kFp8Block, .activations = Dtype::kFp8Block, .asked = asked};
    return gemm(shape, {.gpu = &gpu, .efficiency = &efficiency}).time;
  };
  // 2 x 8192 x 4096 x 4096 FLOP at a tenth of the peak
  const Seconds tiles = Flops(2.0 * 8192 * 4096 * 4096) / (gpu.peak(Dtype::kFp8Block) * 0.1);
  CHECK(time(8192, &trtllm_gen_gemm()).base() == doctest::Approx(tiles.base()));
  CHECK(time(8192, &trtllm_gen_gemm()) > 3 * time(8192, nullptr));
  CHECK(time(8, &trtllm_gen_gemm()) == time(8, nullptr));  // weights take longer
  gpu.architecture = Architecture::kHopper;                // where it does not run
  CHECK(time(8192, &trtllm_gen_gemm()) == time(8192, nullptr));
}

TEST_CASE("gemm: a long k over few tiles is cut among the SMs, where the library does so") {
  const GpuSpec gpu = round_gpu();
  const GemmShape wide{.m = 64, .n = 128, .k = 65536};
  GemmShape block = wide;
  block.weights = block.activations = Dtype::kFp8Block;
  // DeepGEMM never splits: half the bytes at twice the peak, and slower all the same
  GemmParameters p;
  p.compute_efficiency = p.bandwidth_efficiency = 1.0;
  CHECK(served(wide, p, gpu).time < served(block, p, gpu).time);
}

TEST_CASE("gemm: more bandwidth or more peak is never slower; the datasheet is never beaten") {
  const GpuSpec gpu = round_gpu();
  const GemmParameters p;
  for (const double m : {1.0, 7.0, 16.0, 64.0, 130.0, 512.0, 4096.0}) {
    for (const double n : {128.0, 1000.0, 4096.0, 28672.0}) {
      for (const double k : {64.0, 1024.0, 8192.0}) {
        for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp8}) {
          const GemmShape shape{.m = m, .n = n, .k = k, .weights = dtype, .activations = dtype};
          Seconds before_bandwidth(1e9), before_peak(1e9);
          for (double factor = 0.5; factor < 4.0; factor *= 1.05) {
            GpuSpec wide = gpu, strong = gpu;
            wide.memory_bandwidth = gpu.memory_bandwidth * factor;
            for (auto& peak : strong.dense) peak *= factor;
            const Seconds by_bandwidth = served(shape, p, wide).time, by_peak = served(shape, p, strong).time;
            CHECK(by_bandwidth <= before_bandwidth * (1 + 1e-12));
            CHECK(by_peak <= before_peak * (1 + 1e-12));
            before_bandwidth = by_bandwidth;
            before_peak = by_peak;
          }
          const Machine ideal{.gpu = &gpu, .fidelity = Fidelity::kIdeal};
          CHECK(served(shape, p, gpu).time >= gemm(shape, ideal).time);
        }
      }
    }
  }
}

TEST_CASE("gemm: constants by format; one that was not measured borrows those of bf16") {
  CHECK(gemm_block(Dtype::kBf16, Dtype::kBf16) == Dtype::kBf16);
  CHECK(gemm_block(Dtype::kFp16, Dtype::kFp16) == Dtype::kBf16);
  CHECK(gemm_block(Dtype::kInt8, Dtype::kInt8) == Dtype::kInt8);
  CHECK(gemm_block(Dtype::kInt8, Dtype::kBf16) == Dtype::kInt4);
  CHECK(gemm_block(Dtype::kTernary, Dtype::kBf16) == Dtype::kInt4);
  CHECK(gemm_block(Dtype::kMxfp4, Dtype::kBf16) == Dtype::kInt4);
  CHECK(gemm_block(Dtype::kMxfp4, Dtype::kMxfp4) == Dtype::kNvfp4);
  CHECK(gemm_block(Dtype::kFp8Block, Dtype::kFp8) == Dtype::kFp8Block);

  const GpuSpec gpu = round_gpu();
  Efficiency efficiency;
  const Machine machine{.gpu = &gpu, .efficiency = &efficiency};
  GemmParameters slow;
  slow.launch_us = 15.0;
  efficiency.put_block(cublaslt(), Dtype::kBf16, cublaslt().with_parameters(slow));
  const GemmShape shape{.m = 1, .n = 128, .k = 128, .weights = Dtype::kInt4};
  CHECK(gemm(shape, machine).time.in(kMicrosecond) > 15.0);
  GemmParameters quick;
  quick.launch_us = 1.0;
  efficiency.put_block(weight_only(), Dtype::kInt4, weight_only().with_parameters(quick));
  CHECK(gemm(shape, machine).time.in(kMicrosecond) < 5.0);
}

TEST_CASE("gemm: unpacking weights beside mma.sync starts slowly, beside wgmma as any product") {
  GpuSpec gpu = round_gpu();
  const auto ramp = [&](const MatmulKernel& kernel, Architecture architecture) {
    gpu.architecture = architecture;
    const ConstantsBlock constants = kernel.assumed(gpu, Dtype::kInt4);
    return kernel.parameters(constants).ramp_k_steps;
  };
  CHECK(ramp(weight_only(), Architecture::kAmpere) == 30);
  CHECK(ramp(weight_only(), Architecture::kAda) == 30);
  CHECK(ramp(weight_only(), Architecture::kHopper) == ramp(cublaslt(), Architecture::kHopper));
}

TEST_CASE("gemm: an engine tunes nvfp4 at start-up; the untuned kernel runs only where it is asked for") {
  GpuSpec gpu = round_gpu();
  gpu.architecture = Architecture::kBlackwell;
  gpu.dense[static_cast<std::size_t>(Dtype::kNvfp4)] = FlopsPerSecond(4096e12);
  GemmParameters untuned = perfect(), tuned = perfect();
  untuned.bandwidth_efficiency = 0.25;
  tuned.bandwidth_efficiency = 0.5;
  Efficiency efficiency("trtllm");
  const MatmulKernel &own = cutlass_nvfp4(), &other = cutlass_nvfp4_untuned();
  efficiency.put_block(own, Dtype::kNvfp4, own.with_parameters(tuned));
  efficiency.put_block(other, Dtype::kNvfp4, other.with_parameters(untuned));
  const Machine machine{.gpu = &gpu, .efficiency = &efficiency, .fidelity = Fidelity::kCalibrated};
  GemmShape shape{.m = 1, .n = 8192, .k = 8192, .weights = Dtype::kNvfp4, .activations = Dtype::kNvfp4};
  // weights of 8192^2 (4 + 8/16) / 8 bytes at half of 2 TB/s
  const double weights = 8192.0 * 8192 * 4.5 / 8 / 1e6;
  CHECK(gemm(shape, machine).time.in(kMicrosecond) == doctest::Approx(weights).epsilon(1e-3));
  shape.asked = &other;  // and at a quarter twice as long
  CHECK(gemm(shape, machine).time.in(kMicrosecond) == doctest::Approx(2 * weights).epsilon(1e-3));
}

TEST_CASE("gemm: refuses shapes below one") {
  const GpuSpec gpu = round_gpu();
  CHECK_THROWS_AS(served({.m = 0, .n = 8, .k = 8}, perfect(), gpu), InternalError);
}

TEST_CASE("gemm: every constant's prior lies within its bounds") {
  GpuSpec gpu = round_gpu();
  for (const Architecture architecture : {Architecture::kHopper, Architecture::kBlackwell, Architecture::kAmpere}) {
    gpu.architecture = architecture;
    for (const Kernel* kernel : kernels()) {
      if (kernel->kind() != KernelKind::kGemm) continue;
      const std::vector<double> prior = kernel->numbers(kernel->assumed(gpu, Dtype::kBf16));
      for (std::size_t i = 0; i < prior.size(); ++i) {
        const FieldFacts field = kernel->fields()[i];
        CAPTURE(kernel->name());
        CAPTURE(field.name);
        CHECK(prior[i] >= field.low);
        CHECK(prior[i] <= field.high);
      }
    }
  }
}

TEST_CASE("gemm: a kernel holds the constants that it has, and no others") {
  GemmParameters p;
  p.launch_us = 3.0, p.gemv_us = 2.0, p.split_k_us = 7.0;
  const GemmParameters split = cublaslt().parameters(cublaslt().with_parameters(p));
  CHECK(split.launch_us == 3.0);
  CHECK(split.split_k_us == 7.0);
  CHECK(split.gemv_us == 0.0);  // Hopper's cuBLASLt has no kernel of its own for one row
  const GemmParameters whole = deep_gemm().parameters(deep_gemm().with_parameters(p));
  CHECK(whole.split_k_us == GemmParameters{}.split_k_us);
}

TEST_CASE("gemm: libraries that take one tile for a shape take it by their rule") {
  const auto tile = [](Dtype block, const char* engine, Architecture architecture, double m, double n, double k) {
    GpuSpec gpu = round_gpu();
    gpu.architecture = architecture;
    gpu.sm_count = 132;
    const GemmShape shape{.m = m, .n = n, .k = k, .weights = block, .activations = block};
    const GemmTiling tiling = run_by(engine, shape, gpu).tiling(gpu, m, n, k);
    REQUIRE(tiling.tiles.size() == 1);
    return std::array{tiling.tiles[0].rows, tiling.tiles[0].columns, tiling.tiles[0].halves};
  };
  using Tile = std::array<double, 3>;
  constexpr const char *vllm = "vllm", *trtllm = "trtllm";
  CHECK(tile(Dtype::kFp8, vllm, Architecture::kHopper, 16, 4096, 4096) == Tile{16, 64, 1});
  CHECK(tile(Dtype::kFp8, vllm, Architecture::kHopper, 64, 4096, 4096) == Tile{64, 64, 1});
  CHECK(tile(Dtype::kFp8, vllm, Architecture::kHopper, 128, 4096, 4096) == Tile{64, 128, 1});
  CHECK(tile(Dtype::kFp8, vllm, Architecture::kHopper, 8192, 4096, 6143) == Tile{128, 128, 1});
  CHECK(tile(Dtype::kFp8, vllm, Architecture::kHopper, 8192, 4096, 6144) == Tile{256, 128, 1});
  CHECK(tile(Dtype::kFp8, vllm, Architecture::kBlackwell, 64, 4096, 2048) == Tile{64, 64, 1});
  CHECK(tile(Dtype::kFp8, vllm, Architecture::kBlackwell, 63, 4096, 2048) == Tile{64, 128, 2});
  CHECK(tile(Dtype::kFp8, vllm, Architecture::kBlackwell, 257, 4096, 2048) == Tile{256, 128, 2});
  // one turn of 132 SMs: 128 blocks at most
  CHECK(tile(Dtype::kFp8Block, trtllm, Architecture::kHopper, 113, 4096, 7168) == Tile{128, 32, 1});
  CHECK(tile(Dtype::kFp8Block, trtllm, Architecture::kHopper, 129, 4096, 7168) == Tile{128, 64, 1});
  CHECK(tile(Dtype::kFp8Block, trtllm, Architecture::kHopper, 31, 16384, 7168) == Tile{32, 128, 1});
  // no more than 64 rows: 64 high, and 4096 / 32 = 128 blocks
  CHECK(tile(Dtype::kFp8Block, trtllm, Architecture::kHopper, 64, 4096, 7168) == Tile{64, 32, 1});
}

TEST_CASE("gemm: on AMD's GPUs only products in 16 bit split k") {
  GpuSpec gpu = round_gpu();
  gpu.architecture = Architecture::kCdna3;
  CHECK(hipblaslt().tiling(gpu, 64, 4096, 4096).split_k);
  CHECK(!hipblaslt_fp8().tiling(gpu, 64, 4096, 4096).split_k);
}

TEST_CASE("gemm: walked in lines, what does not fit L2 is swept from DRAM for every line") {
  const GpuSpec gpu = round_gpu();
  const GemmShape shape{.m = 32768, .n = 65536, .k = 12288, .weights = Dtype::kFp8, .activations = Dtype::kFp8};
  // 128 rows of tiles of 256 are one line of 128 SMs: 512 lines, each sweeps 402.65 MB, of which 16.78 MB stay in L2
  const double swept = 511.0 * (402.653184 - 16.777216) / 2e6;
  const double cublas = served(shape, perfect(), gpu).time.base();
  const double cutlass = served(shape, perfect(), gpu, "vllm").time.base();
  CHECK(cublas < 0.03);
  CHECK(cutlass > swept);
  CHECK(cutlass < 1.05 * swept);
}

TEST_CASE("gemm: DeepGEMM on Hopper waits for rows of a tile that are not there") {
  const GpuSpec gpu = round_gpu();
  GemmShape shape{.m = 256, .n = 4096, .k = 7168, .weights = Dtype::kFp8Block, .activations = Dtype::kFp8};
  const auto time = [&](double m) {
    shape.m = m;
    return served(shape, perfect(), gpu).time.base();
  };
  CHECK(time(132) > 1.5 * time(256));
  CHECK(time(252) < 1.1 * time(256));
}

TEST_CASE("gemm: the search that bounds tiles finds what trying every tile does, to the last bit") {
  Random random(29);
  const auto between = [&](double low, double high) {  // by their logarithm
    return std::exp(std::log(low) + random.uniform() * (std::log(high) - std::log(low)));
  };
  for (const Architecture architecture :
       {Architecture::kHopper, Architecture::kBlackwell, Architecture::kAmpere, Architecture::kAda}) {
    GpuSpec gpu = round_gpu();
    gpu.architecture = architecture;
    for (int i = 0; i < 4000; ++i) {
      AllConstants p;
      if (i % 4 == 0) {  // constants of any machine that a fit may find
        for (const Parameter<AllConstants>& field : AllConstants::fields())
          p.*field.member = field.low + random.uniform() * (field.high - field.low);
      }
      const std::array formats{Dtype::kBf16, Dtype::kFp8, Dtype::kFp8Block, Dtype::kInt8};
      GemmShape shape{.m = std::floor(between(1, 40000)), .n = between(16, 60000), .k = between(16, 60000)};
      shape.n = std::ceil(shape.n / 8) * 8, shape.k = std::ceil(shape.k / 8) * 8;
      shape.weights = shape.activations = formats[static_cast<std::size_t>(i) % formats.size()];
      const MatmulKernel& kernel = run_by(i % 3 == 0 ? "trtllm" : "vllm", shape, gpu);
      const GemmRun run{.weight_copies = i % 5 == 0 ? 5.0 : kColdWeights, .cool = i % 5 == 1};
      const Cost fast = gemm_with(shape, kernel, p, gpu, run);
      const Cost sure = gemm_with(shape, EveryTile(kernel), p, gpu, run);
      INFO(name_of(architecture), " ", shape.m, " x ", shape.n, " x ", shape.k, " ", name_of(shape.weights));
      CHECK((fast.time == sure.time && fast.bound == sure.bound));
    }
  }
}
