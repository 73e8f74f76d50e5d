#include "hw/kernels/experts/experts_kernel.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <thread>
#include <vector>

#include "base/config_library.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/kernels/expert_load.h"

using namespace roofcast;

namespace {

/// Round numbers: 1000 TFLOP/s, 2000 GB/s, 100 SMs.
GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.name = "round";
  gpu.architecture = Architecture::kHopper;
  gpu.sm_count = 100;
  gpu.memory_bandwidth = 2000.0 * kGigabytePerSecond;
  gpu.l2_cache = Bytes{50e6};
  gpu.dense[static_cast<std::size_t>(Dtype::kBf16)] = 1000.0 * kTeraflopPerSecond;
  gpu.dense[static_cast<std::size_t>(Dtype::kFp8)] = 2000.0 * kTeraflopPerSecond;
  return gpu;
}

constexpr Routing kEven{.kind = Routing::Kind::kBalanced, .exponent = 0.0};
constexpr Routing kUniform{.kind = Routing::Kind::kUniform, .exponent = 0.0};
constexpr Routing kSkewed{.kind = Routing::Kind::kPowerLaw, .exponent = 1.2};
constexpr Routing kPopular{.kind = Routing::Kind::kPopularity, .skew = 1.0};

/// Distinct experts that get a token, of all.
double experts_hit(double tokens, double top_k, double experts, const Routing& routing) {
  return expert_load(tokens, top_k, experts, 1.0, routing).hits;
}

MoeShape mixtral(double tokens) {
  return {.tokens = tokens, .hidden = 4096, .inter = 14336, .top_k = 2, .experts = 8, .routing = kEven};
}

}  // namespace

TEST_CASE("moe: experts hit, evenly, uniformly and by a power law") {
  CHECK(experts_hit(1, 8, 256, kEven) == doctest::Approx(8));     // min(256, 8 x 1)
  CHECK(experts_hit(16, 8, 256, kEven) == doctest::Approx(128));  // min(256, 8 x 16)
  CHECK(experts_hit(100, 8, 256, kEven) == doctest::Approx(256));
  // 256 (1 - (1 - 8/256)^16) = 256 (1 - 0.6017) = 101.96
  CHECK(experts_hit(16, 8, 256, kUniform) == doctest::Approx(256 * (1 - std::pow(1 - 8.0 / 256, 16))));
  CHECK(experts_hit(16, 8, 256, kSkewed) < experts_hit(16, 8, 256, kEven));
  CHECK(experts_hit(1, 8, 256, kSkewed) == doctest::Approx(8));  // one token's choices differ
}

TEST_CASE("moe: equally popular experts are drawn uniformly, unequal ones are hit less and load ranks less evenly") {
  const Routing alike{.kind = Routing::Kind::kPopularity, .skew = 0.0};
  for (const double tokens : {1.0, 4.0, 16.0, 48.0, 256.0}) {  // at the tabled counts
    INFO(tokens);
    CHECK(experts_hit(tokens, 8, 128, alike) == doctest::Approx(experts_hit(tokens, 8, 128, kUniform)).epsilon(1e-6));
    CHECK(experts_hit(tokens, 8, 128, kPopular) <= experts_hit(tokens, 8, 128, kUniform) + 1e-9);
    CHECK(max_rank_load(tokens, 8, 128, 8, kPopular) >= max_rank_load(tokens, 8, 128, 8, kUniform) - 1e-9);
  }
  // Two experts, one choice, popularities e^-z and e^z with z = 0.6745: q = 1 - exp(-c w) sums to one; two tokens
  // hit 2 - (1 - q1)^2 - (1 - q2)^2 experts, which for q1 + q2 = 1 is 1 + 2 q1 q2 < 1.5.
  const double two = experts_hit(2, 1, 2, kPopular);
  CHECK(two > 1.0);
  CHECK(two < 1.5);
}

TEST_CASE("moe: more tokens hit no fewer experts, never more than there are") {
  for (const Routing& routing : {kEven, kUniform, kPopular}) {
    double before = 0;
    for (double tokens = 1; tokens < 5000; tokens *= 1.3) {
      const double hit = experts_hit(tokens, 8, 128, routing);
      CHECK(hit >= before);
      CHECK(hit <= 128);
      before = hit;
    }
  }
  CHECK(experts_hit(4096, 8, 128, kSkewed) <= 128);
}

TEST_CASE("moe: every assignment lands somewhere") {
  for (const double tokens : {1.0, 7.0, 64.0, 1000.0, 16384.0, 3e5}) {
    for (const Routing& routing : {kEven, kUniform, kSkewed, kPopular}) {
      CHECK(expert_load(tokens, 8, 256, 1, routing).assignments == doctest::Approx(8 * tokens).epsilon(1e-9));
    }
  }
}

TEST_CASE("moe: the most loaded rank has more than its share, and everything if it is alone") {
  for (const Routing& routing : {kEven, kUniform, kSkewed, kPopular}) {
    CHECK(max_rank_load(512, 8, 256, 1, routing) == 1.0);
    CHECK(max_rank_load(512, 8, 256, 8, routing) >= 1.0 - 1e-12);
    CHECK(max_rank_load(512, 8, 256, 8, routing) <= 8.0);
  }
  CHECK(max_rank_load(512, 8, 256, 8, kEven) == doctest::Approx(1.0));
  CHECK(max_rank_load(512, 8, 256, 8, kSkewed) > max_rank_load(512, 8, 256, 8, kUniform));
  // A uniform draw evens out: 1 / sqrt(tokens).
  CHECK(max_rank_load(65536, 8, 256, 8, kUniform) < 1.01);
}

TEST_CASE("moe: a tile is filled by one expert alone") {
  // 128 tokens x 8 choices over 256 experts: 4 each, so a tile an expert whatever its height.
  const ExpertLoad few = expert_load(128, 8, 256, 1, kEven);
  CHECK(few.tiles[0] == doctest::Approx(256));
  CHECK(few.tiles[kTileHeights - 1] == doctest::Approx(256));
  // 4096 tokens: 128 each, 16 tiles of 8 rows, one of 128.
  const ExpertLoad many = expert_load(4096, 8, 256, 1, kEven);
  CHECK(many.tiles[0] == doctest::Approx(256 * 16));
  CHECK(many.tiles[4] == doctest::Approx(256));
}

TEST_CASE("moe: loads are the same from every thread") {
  std::vector<double> seen(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] { seen[i] = expert_load(777, 6, 160, 4, kSkewed).hits; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const double hits : seen) CHECK(hits == seen[0]);
}

TEST_CASE("moe: the ideal cost is the roofline of what is hit") {
  const GpuSpec gpu = round_gpu();
  const Cost cost = moe_experts(mixtral(1), {.gpu = &gpu, .fidelity = Fidelity::kIdeal});
  // work    = 2 experts x 3 matrices x 2 x 4096 x 14336           = 704 643 072 FLOP
  // weights = 2 x 3 x 4096 x 14336 x 2 B                          = 704 643 072 B
  // A and C = 2 x (4096 x 2 + 2 x 14336 x 2 + 14336 x 2 + 4096 x 2) = 204 800 B
  // activation = 2 x (2 x 14336 read + 14336 written) x 2 B       = 172 032 B
  // time    = 705 019 904 B / 2000 GB/s                           = 352.510 us
  CHECK(cost.flops.base() == 704643072.0);
  CHECK(cost.bytes.base() == 705019904.0);
  CHECK(cost.time.in(kMicrosecond) == doctest::Approx(352.509952).epsilon(1e-9));
  CHECK(cost.bound == Bound::kMemory);
}

TEST_CASE("moe: tensor and expert parallelism cut the work of a GPU") {
  const GpuSpec gpu = round_gpu();
  const Machine ideal{.gpu = &gpu, .fidelity = Fidelity::kIdeal};
  const double whole = moe_experts(mixtral(64), ideal).flops.base();
  MoeShape split = mixtral(64);
  split.tp = 8;
  CHECK(moe_experts(split, ideal).flops.base() == doctest::Approx(whole / 8));
  split.tp = 1;
  split.ep = 8;
  CHECK(moe_experts(split, ideal).flops.base() == doctest::Approx(whole / 8));
}

TEST_CASE("moe: worked time with plain constants") {
  const GpuSpec gpu = round_gpu();
  MoeParameters p;
  static_cast<ExpertsParameters&>(p) = {.launch_us = 10,
                                        .launch_us_per_expert = 1,
                                        .ns_per_assignment = 1000,
                                        .bandwidth_fraction = 1,
                                        .compute_fraction = 1,
                                        .activation_passes = 1,
                                        .tile_overhead_rows = 0,
                                        .tile_us = 0,
                                        .expert_map_us = 0,
                                        .router_us_per_choice = 1};
  const Cost cost = moe_experts_with(mixtral(4), {TileRule::kLocalMean, 64, 64}, p, gpu);
  // fixed   = 10 + 8 experts x 1 + 8 assignments x 1 + 2 choices x 1                            = 28 us
  // shuffle = 8 x (4096 x 4 + 14336 x 6 + 2 x 4096) + 4 x 4 x 4096 B = 950 272 B in L2 at 100 x 48 GB/s = 0.19797 us
  // gate,up : 8 tiles x 224 columns = 1792 blocks, 18 waves of 2 x 128 x 4096 x 64 FLOP / 10 TFLOP/s  = 120.796 us
  //           8 x 28672 x 4096 x 2 B + 8 x (4096 + 28672) x 2 B = 1 879 572 480 B                      = 939.786 us
  // down    : 8 x 32 = 256 blocks, 3 waves of 2 x 128 x 14336 x 64 / 10 TFLOP/s                        = 70.464 us
  //           8 x 4096 x 14336 x 2 B + 8 x (14336 + 4096) x 2 B = 939 819 008... B                     = 469.910 us
  const double up =
      std::hypot(18 * 2 * 128.0 * 4096 * 64 / 1e13, (8 * 28672.0 * 4096 * 2 + 8 * (4096 * 2 + 2 * 28672.0)) / 2e12);
  const double down =
      std::hypot(3 * 2 * 128.0 * 14336 * 64 / 1e13, (8 * 4096.0 * 14336 * 2 + 8 * (14336 * 2 + 2 * 4096.0)) / 2e12);
  const double shuffle = (8 * (4096 * 4 + 14336 * 6 + 2 * 4096.0) + 4 * 4 * 4096.0) / 4800e9;
  CHECK(cost.time.base() == doctest::Approx(28e-6 + up + down + shuffle).epsilon(1e-12));
  CHECK(cost.bound == Bound::kMemory);
}

TEST_CASE("moe: no resource slows the layer, no token speeds it up") {
  const Efficiency priors;
  for (const Routing& routing : {kEven, kUniform, kSkewed, kPopular}) {
    for (const double tokens : {1.0, 32.0, 500.0, 8000.0}) {
      MoeShape shape{
          .tokens = tokens, .hidden = 4096, .inter = 1536, .top_k = 8, .experts = 128, .ep = 4, .routing = routing};
      const GpuSpec gpu = round_gpu();
      const Machine machine{.gpu = &gpu, .efficiency = &priors};
      const Seconds base = moe_experts(shape, machine).time;
      GpuSpec better = gpu;
      better.memory_bandwidth *= 2.0;
      CHECK(moe_experts(shape, {.gpu = &better, .efficiency = &priors}).time <= base);
      better = gpu;
      better.dense[static_cast<std::size_t>(Dtype::kBf16)] *= 2.0;
      CHECK(moe_experts(shape, {.gpu = &better, .efficiency = &priors}).time <= base);
      CHECK(moe_experts(shape, {.gpu = &gpu, .fidelity = Fidelity::kIdeal}).time < base);
      MoeShape more = shape;
      more.tokens *= 2;
      CHECK(moe_experts(more, machine).time >= base);
    }
  }
}

TEST_CASE("moe: narrower weights help where weights bound the time") {
  const GpuSpec gpu = round_gpu();
  const Efficiency priors;
  const Machine machine{.gpu = &gpu, .efficiency = &priors};
  MoeShape shape = mixtral(8);
  const Seconds bf16 = moe_experts(shape, machine).time;
  shape.weights = shape.activations = Dtype::kFp8;
  CHECK(moe_experts(shape, machine).time < 0.6 * bf16);
  shape.weights = Dtype::kInt4;
  shape.activations = Dtype::kBf16;
  CHECK(moe_experts(shape, machine).time < 0.4 * bf16);
}

TEST_CASE("moe: of the kernels that the rules name, the first that was measured runs") {
  GpuSpec gpu = round_gpu();
  gpu.architecture = Architecture::kHopper;
  Efficiency efficiency("trtllm");
  MoeParameters slow;
  slow.launch_us = 100;
  efficiency.put_block(cutlass_experts(), Dtype::kBf16, cutlass_experts().defaults());
  efficiency.put_block(cutlass_ungated_experts(), Dtype::kBf16, cutlass_ungated_experts().with_parameters(slow));
  const auto choice = [&](const MoeShape& shape) {
    return choose_experts(shape, {.gpu = &gpu, .efficiency = &efficiency});
  };
  const auto launch_us = [](const ExpertsChoice& chosen) {
    return chosen.kernel->parameters(*chosen.constants).launch_us;
  };
  MoeShape shape{.tokens = 1, .hidden = 256, .inter = 256, .top_k = 1, .experts = 8, .routing = kEven};
  CHECK(choice(shape).kernel->name() == "cutlass_experts");
  CHECK_FALSE(choice(shape).lent);
  shape.gated = false;
  CHECK(launch_us(choice(shape)) == 100);
  shape.gated = true;
  shape.weights = shape.activations = Dtype::kFp8;  // not measured: the 16-bit kernel's constants
  CHECK(launch_us(choice(shape)) < 50);
  CHECK(choice(shape).lent);
  shape.asked = RequestedExperts::kLowLatency;  // which TensorRT-LLM has for two formats
  shape.weights = shape.activations = Dtype::kBf16;
  CHECK(choice(shape).kernel->name() == "cutlass_experts");
  CHECK(choice(shape).lent);
}

TEST_CASE("moe: a kernel that stands in for the one that runs is as uncertain as another's constants") {
  GpuSpec gpu = round_gpu();
  gpu.architecture = Architecture::kHopper;
  Efficiency efficiency("vllm");
  MoeShape shape{.tokens = 1, .hidden = 256, .inter = 256, .top_k = 1, .experts = 8, .routing = kEven};
  shape.weights = shape.activations = Dtype::kFp8;
  const auto choice = [&] { return choose_experts(shape, {.gpu = &gpu, .efficiency = &efficiency}); };
  const auto unexplained = [&] {
    return experts_evidence(shape, {.gpu = &gpu, .efficiency = &efficiency}).discrepancy(false);
  };
  CHECK(unexplained() == 0.5);  // nothing is known: no better than by another kernel's constants
  efficiency.put_block(trtllm_gen_fp8_experts(), Dtype::kFp8, trtllm_gen_fp8_experts().defaults());
  CHECK(choice().kernel->name() == "trtllm_gen_fp8_experts");  // Hopper runs CUTLASS
  CHECK(choice().lent);
  CHECK(unexplained() == doctest::Approx(std::hypot(choice().constants->record->discrepancy, 0.5)));
  shape.asked = RequestedExperts::kUntuned;  // what ran before it was tuned
  CHECK(choice().kernel->name() == "cutlass_untuned_experts");
  CHECK(choice().constants == nullptr);
  shape.asked = RequestedExperts::kDefault;
  efficiency.put_block(cutlass_experts(), Dtype::kFp8, cutlass_experts().defaults());
  CHECK(choice().kernel->name() == "cutlass_experts");
  CHECK_FALSE(choice().lent);
}

TEST_CASE("moe: a kernel takes the constants of what it does alone") {
  MoeParameters all;
  all.launch_us = 7.0;
  all.gather_loss = 0.5, all.unaligned_slowdown = 4.0;
  all.empty_row_loss = 1.5;
  all.short_row_bandwidth = 0.6, all.memory_step_us = 0.3;
  const auto kept = [&](const ExpertsKernel& kernel) { return kernel.parameters(kernel.with_parameters(all)); };
  const MoeParameters marlin = kept(marlin_experts());
  CHECK(marlin.launch_us == 7.0);
  CHECK(marlin.gather_loss == 0.0);
  CHECK(marlin.unaligned_slowdown == 1.0);
  CHECK(marlin.empty_row_loss == 0.0);
  CHECK(marlin.short_row_bandwidth == 1.0);
  CHECK(marlin.memory_step_us == 0.0);
  const MoeParameters triton = kept(triton_experts());
  CHECK(triton.gather_loss == 0.5);
  CHECK(triton.unaligned_slowdown == 4.0);
  CHECK(triton.short_row_bandwidth == 1.0);
  const MoeParameters shipped = kept(triton_mma_sync_experts());
  CHECK(shipped.gather_loss == 0.5);
  CHECK(shipped.short_row_bandwidth == 0.6);
  CHECK(shipped.memory_step_us == 0.3);
  CHECK(shipped.empty_row_loss == 0.0);
  CHECK(kept(flashinfer_cutlass_experts()).empty_row_loss == 1.5);
  // A kernel that takes Triton's constants does not read its rows element by element.
  const ExpertsKernel& lender = triton_experts();
  const ExpertsKernel& generated = trtllm_gen_bf16_experts();
  const MoeParameters lent = generated.parameters(generated.borrowed(lender, lender.with_parameters(all)));
  CHECK(lent.launch_us == 7.0);
  CHECK(lent.unaligned_slowdown == 1.0);
}

TEST_CASE("moe: trtllm-gen's kernels by format take tiles of their own") {
  const auto tiles = [](const ExpertsKernel& kernel) {
    const ExpertTraits& t = kernel.traits();
    return std::array{t.rows_low, t.rows_high, t.fill};
  };
  using Tiles = std::array<double, 3>;
  CHECK(tiles(trtllm_gen_bf16_experts()) == Tiles{8, 64, 1});
  CHECK(tiles(trtllm_gen_fp8_experts()) == Tiles{16, 128, 1});
  CHECK(tiles(trtllm_gen_block_experts()) == Tiles{8, 64, 1});
  CHECK(tiles(trtllm_gen_block_modular_experts()) == Tiles{16, 128, 0.5});  // sized for half of the mean load
  CHECK(tiles(trtllm_gen_nvfp4_experts()) == Tiles{16, 128, 0.5});
  CHECK(tiles(trtllm_gen_mxfp4_experts()) == Tiles{8, 128, 1});
}

TEST_CASE("moe: no tokens, no time") {
  const GpuSpec gpu = round_gpu();
  const Efficiency priors;
  CHECK(moe_experts(mixtral(0), {.gpu = &gpu, .efficiency = &priors}).time == Seconds{});
}

TEST_CASE("moe: the older benchmark's few tokens crowd on the first rank") {
  Routing older = kSkewed;
  older.rest_to_first = true;
  // 1 token x 8 choices over 256 experts: every share rounds to nothing, so all eight go to the first eight experts.
  CHECK(max_rank_load(1, 8, 256, 8, older) == doctest::Approx(8.0));
  CHECK(experts_hit(1, 8, 256, older) == doctest::Approx(8.0));
  CHECK(expert_load(1, 8, 256, 8, kSkewed).assignments == doctest::Approx(1.0));
  CHECK(expert_load(4096, 8, 256, 1, older).assignments == doctest::Approx(4096 * 8));
}

TEST_CASE("moe: shapes with a shipped table run tuned tiles, others the default's narrow ones") {
  GpuSpec gpu = round_gpu();
  gpu.architecture = Architecture::kAmpere;
  const MoeParameters p;
  const ExpertTraits shipped{.rule = TileRule::kShipped};
  MoeShape shape = mixtral(8192);
  shape.tp = 4;  // 8 experts of 3584: vLLM ships a table
  const double tuned = moe_experts_with(shape, shipped, p, gpu).time.base();
  shape.inter += 4 * 128;  // 3712: none
  const double untuned = moe_experts_with(shape, shipped, p, gpu).time.base();
  CHECK(untuned > 1.1 * 3712.0 / 3584.0 * tuned);
  gpu.architecture = Architecture::kBlackwellGeforce;  // later defaults, wide enough for either shape
  CHECK(moe_experts_with(shape, shipped, p, gpu).time.base() < untuned);
}

TEST_CASE("moe: rows gathered where the tokens lie are read once while the L2 holds them") {
  const GpuSpec gpu = round_gpu();
  MoeParameters p;
  const auto time = [&](const MoeShape& shape, bool gathers) {
    return moe_experts_with(shape, {.gathers = gathers}, p, gpu).time;
  };
  MoeShape shape = mixtral(4096);  // 32 MB of 35 MB
  shape.inter = 128;
  CHECK(time(shape, true) < time(shape, false));
  p.gather_loss = 1.0;  // nothing missed, nothing lost
  CHECK(time(shape, true) < time(shape, false));
  shape = mixtral(16384);
  const Seconds waiting = time(shape, true);
  p.gather_loss = 0.0;
  CHECK(waiting > 1.2 * time(shape, true));
}

TEST_CASE("moe: empty rows of a tile take as much longer than full ones as empty_row_loss says") {
  const GpuSpec gpu = round_gpu();
  const MoeParameters p;
  const ExpertTraits large{TileRule::kLocalMean, 16, 256};
  MoeParameters losing = p;
  losing.empty_row_loss = 1.0;
  const auto slower = [&](double tokens) {
    MoeShape shape = mixtral(tokens);
    shape.ep = 8.0;  // one expert a GPU, whose tiles are sized by the tokens of all
    return moe_experts_with(shape, large, losing, gpu).time / moe_experts_with(shape, large, p, gpu).time;
  };
  CHECK(slower(128) > 1.2);                     // 32 of 256 rows are full
  CHECK(slower(1024) == doctest::Approx(1.0));  // all of them
}

TEST_CASE("moe: a kernel that does not know the loads runs a tile for every expert, and for every choice") {
  const GpuSpec gpu = round_gpu();  // 100 SMs, 10 PFLOP/s in all
  MoeParameters p;
  p.compute_fraction = 1;
  p.activation_passes = p.tile_overhead_rows = p.tile_us = 0;
  const auto time = [&](ExpertRows rows, double tokens) {
    return moe_experts_with(mixtral(tokens), {TileRule::kTuned, 128, 128, 1.0, rows}, p, gpu);
  };
  // Eight tokens make 16 choices: room for 16 + 8 x 127 rows, 9 tiles; all 8 experts are hit.
  // gate,up : 8 tiles x 224 columns = 1792 blocks, 18 waves; 9 tiles, 21 waves, of 2 x 128 x 4096 x 128 FLOP a block
  // down    : 8 x 32 = 256 blocks, 3 waves; 9 x 32 = 288, 3 waves
  const double more = 3 * 2 * 128.0 * 4096 * 128 / (gpu.peak(Dtype::kBf16).base() / gpu.sm_count);
  const double slower = (time(ExpertRows::kReserved, 8).time - time(ExpertRows::kPadded, 8).time).base();
  CHECK(slower == doctest::Approx(more).epsilon(1e-9));
  CHECK(time(ExpertRows::kReserved, 8).flops == time(ExpertRows::kPadded, 8).flops);
}

TEST_CASE("moe: an expert larger than the L2 is read again for each of its tiles of rows") {
  const GpuSpec gpu = round_gpu();
  const MoeParameters p;
  const ExpertTraits one_by_one{TileRule::kLocalMean, 64, 64}, together{TileRule::kGlobalMean, 64, 64};
  const auto slower = [&](const MoeShape& shape) {
    return moe_experts_with(shape, one_by_one, p, gpu).time / moe_experts_with(shape, together, p, gpu).time;
  };
  // 512 tokens x 2 over 8 experts: two tiles of 64 rows each; 235 and 117 MB against the 35 MB that the L2 keeps.
  CHECK(slower(mixtral(512)) > 1.3);
  CHECK(slower(mixtral(256)) == doctest::Approx(1.0));  // one tile
  MoeShape small = mixtral(512);
  small.inter = 1024;  // 17 and 8 MB
  CHECK(slower(small) == doctest::Approx(1.0));
}

TEST_CASE("moe: Triton's second product is slow where its inner dimension is no multiple of 16") {
  const GpuSpec gpu = round_gpu();
  MoeParameters p;
  p.unaligned_slowdown = 4.0;
  const auto time = [&](double inter) {
    MoeShape shape = mixtral(64);
    shape.inter = inter;
    return moe_experts_with(shape, {}, p, gpu).time.base();
  };
  // Of three matrices one is multiplied four times as slowly: (2 + 4) / 3 of the products' time.
  const double aligned = time(14336), unaligned = time(14344);
  CHECK(unaligned > 1.9 * aligned);
  CHECK(unaligned < 2.0 * aligned);
  p.unaligned_slowdown = 1.0;
  CHECK(time(14344) < 1.01 * aligned);
}

TEST_CASE("moe: default tiles on Ampere read short rows and wait for each step") {
  GpuSpec gpu = round_gpu();
  gpu.architecture = Architecture::kAmpere;
  MoeParameters p;
  p.bandwidth_fraction = 1.0;
  const auto micros = [&](const MoeShape& shape) {
    return moe_experts_with(shape, {.rule = TileRule::kShipped}, p, gpu).time.in(kMicrosecond);
  };
  MoeShape shape = mixtral(8);  // as many tokens as experts: tiles of 16 rows, whole rows of weights
  const double whole = micros(shape);
  p.short_row_bandwidth = 0.5;
  CHECK(micros(shape) == doctest::Approx(whole));
  shape.tokens = 9;  // tiles of 64 rows, 32 elements deep
  const double halved = micros(shape);
  p.short_row_bandwidth = 1.0;
  CHECK(halved > 1.8 * micros(shape));

  // One expert of 4096 x 64 a GPU: 4096 / 64 and 64 / 64 steps of 2 us for one token, 128 and 2 for two.
  shape = {.tokens = 1, .hidden = 4096, .inter = 64, .top_k = 1, .experts = 1, .routing = kEven};
  const double one = micros(shape);
  p.memory_step_us = 2.0;
  CHECK(micros(shape) - one > 0.9 * 130.0);
  CHECK(micros(shape) - one < 130.0);
  shape.tokens = 2;
  CHECK(micros(shape) - one > 0.9 * 260.0);
}

TEST_CASE("moe: zeros are written for the rows of other ranks") {
  const GpuSpec gpu = round_gpu();
  MoeParameters p;
  p.activation_passes = 1.0;
  p.bandwidth_fraction = 1.0;
  ExpertTraits traits{.rows = ExpertRows::kAll};
  MoeShape shape = mixtral(65536);
  shape.ep = 8;
  shape.routing = kEven;
  const double summed = moe_experts_with(shape, traits, p, gpu).time.base();
  traits.rows = ExpertRows::kZeroed;
  // 7/8 of 131072 rows, 2 B of 28672 and of 4096 columns each, at 2 TB/s.
  const double zeros = 131072.0 * 7 / 8 * 2 * (28672 + 4096) / 2e12;
  CHECK(moe_experts_with(shape, traits, p, gpu).time.base() - summed == doctest::Approx(zeros));
  shape.ep = 1;
  const double alone = moe_experts_with(shape, traits, p, gpu).time.base();
  traits.rows = ExpertRows::kAll;
  CHECK(moe_experts_with(shape, traits, p, gpu).time.base() == doctest::Approx(alone));
}

TEST_CASE("moe: redundant experts and their placement even out the load of the ranks") {
  Routing drawn{.kind = Routing::Kind::kPopularity, .skew = 1.0};
  Routing placed = drawn;
  placed.redundant = 32;
  for (const double ranks : {8.0, 32.0, 72.0, 144.0}) {
    CAPTURE(ranks);
    const double before = max_rank_load(65536, 8, 256, ranks, drawn);
    const double after = max_rank_load(65536, 8, 256, ranks, placed);
    CHECK(after >= 1.0 - 1e-9);
    CHECK(after < before);
    CHECK(after < (ranks > 100 ? 1.35 : 1.1));  // with two places a rank little can be evened out
  }
  // More copies never make it worse by more than the draws' noise.
  double last = 100;
  for (const double copies : {0.0, 16.0, 32.0, 64.0, 128.0}) {
    Routing routing = drawn;
    routing.redundant = copies;
    const double now = max_rank_load(65536, 8, 256, 64, routing);
    CHECK(now <= last * 1.02);
    last = now;
  }
}

TEST_CASE("moe: each redundant expert copies the one with the most tokens per copy") {
  // Two experts with the popularities e^1.349 and e^-1.349 (quartiles, skew 2), k = 1: the chances 0.871 and 0.129 sum
  // to 1. Both copies go to the first, whose three places get 0.290 each; two of them lie on one rank, the third beside
  // the other expert. The fullest of two ranks gets 2 x 0.290 x 2 = 1.161 of the mean.
  Routing routing{.kind = Routing::Kind::kPopularity, .skew = 2.0};
  routing.redundant = 2;
  CHECK(max_rank_load(1e5, 1, 2, 2, routing) == doctest::Approx(1.161).epsilon(0.005));
}

TEST_CASE("moe: behind an all-to-all a rank prices what it was sent") {
  const GpuSpec gpu = round_gpu();
  MoeParameters p;
  static_cast<ExpertsParameters&>(p) = {.launch_us = 0,
                                        .launch_us_per_expert = 0,
                                        .ns_per_assignment = 0,
                                        .bandwidth_fraction = 1,
                                        .compute_fraction = 1,
                                        .activation_passes = 1,
                                        .tile_overhead_rows = 0,
                                        .tile_us = 0};
  // 4096 tokens, 8 of 256 experts each, 1024 x 512, 64 ranks: 4 experts a rank with 128 tokens each.
  MoeShape shape{.tokens = 4096, .hidden = 1024, .inter = 512, .top_k = 8, .experts = 256, .ep = 64, .routing = kEven};
  shape.routing = kEven;
  shape.weights = shape.activations = Dtype::kFp8;
  shape.layout = ExpertLayout::kMasked;
  const auto us = [&](const ExpertTraits& traits) {
    return moe_experts_with(shape, traits, p, gpu).time.in(kMicrosecond);
  };
  const ExpertTraits masked{TileRule::kTuned, 128, 128, 1.0, ExpertRows::kPlaced};
  // First product: 8 columns of blocks x 4 experts, one wave of 2 x 128 x 1024 x 128 at 20 TFLOP/s an SM: 1.678 us;
  // weights 4 x 1024 x 1024, A 512 x 1024, C 2 x 512 x 1024: 5.767 MB at 2 TB/s, 2.884 us. Together 3.337 us.
  // Second: 0.839 us beside 4 x 512 x 1024 + 512 x 512 + 2 x 512 x 1024 = 3.408 MB, 1.704 us: 1.899 us.
  // Between them 512 rows of 512 (2 x 2 + 1) bytes, 1.31 MB from L2 at 100 x 48 GB/s: 0.273 us.
  CHECK(us(masked) == doctest::Approx(3.337 + 1.899 + 0.273).epsilon(2e-3));
  // In the normal mode 4096 (1 - (1 - 1/64)^8) = 485 tokens come, are copied to 512 rows and summed: (1 + 2) bytes of
  // 1024 values each, 3.06 MB.
  shape.layout = ExpertLayout::kContiguous;
  const double held = 4096.0 * (1.0 - std::pow(63.0 / 64.0, 8));
  const double shuffled = 512.0 * 512.0 * 5.0 + (512.0 + held) * 1024.0 * 3.0;
  CHECK(us({TileRule::kTuned, 128, 128, 1.0, ExpertRows::kPadded}) ==
        doctest::Approx(3.337 + 1.899 + shuffled / 4.8e6).epsilon(2e-3));
}

TEST_CASE("moe: at the same tokens a GPU more ranks read fewer experts and are never slower") {
  for (const char* name : {"h100-sxm", "h200-sxm", "b200-sxm", "gb200", "mi300x"}) {
    for (const std::string kernels : {"vllm", "trtllm"}) {
      const CalibratedGpu gpu = load_gpu(load_named("hardware", name, SourceLocation{"test", 1, 1}), kernels);
      const Machine machine{.gpu = &gpu.spec, .efficiency = &gpu.efficiency};
      for (const ExpertLayout layout : {ExpertLayout::kMasked, ExpertLayout::kContiguous, ExpertLayout::kReceived}) {
        // DeepEP under vLLM, TensorRT-LLM's own exchange
        if ((layout == ExpertLayout::kReceived) != (kernels == "trtllm")) continue;
        for (const double rows : {1.0, 16.0, 128.0, 768.0, 4096.0}) {
          Seconds before{};
          for (double ep = 8; ep <= 256; ep *= 2) {
            MoeShape shape{.tokens = rows * ep,
                           .hidden = 7168,
                           .inter = 2048,
                           .top_k = 8,
                           .experts = 256,
                           .ep = ep,
                           .routing = kEven};
            shape.layout = layout;
            shape.routing = kEven;
            shape.weights = shape.activations = Dtype::kFp8Block;
            const Cost cost = moe_experts(shape, machine);
            CAPTURE(gpu.spec.name);
            CAPTURE(static_cast<int>(layout));
            CAPTURE(rows);
            CAPTURE(ep);
            // Whole tokens come more often for one choice alone: more of them are copied and searched.
            const double searched = layout == ExpertLayout::kMasked ? 1.0 : 1.06;
            if (ep > 8) CHECK(cost.time.base() <= before.base() * searched);
            before = cost.time;
          }
        }
      }
    }
  }
}
