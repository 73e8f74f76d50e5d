// Matrix units at their highest rate: operands in registers, for wgmma the second factor in shared memory. Operands
// change from one instruction to the next, as in a GEMM: constant ones toggle few bits and run cooler and faster.
// Hopper's wgmma compiles only for sm_90a; on other GPUs the case is rejected before it runs. Blackwell's own
// instructions are measured through cuBLASLt.

#include "calibrate/kernels/cuda_runtime.h"
#include "calibrate/kernels/launchers.h"

namespace roofcast::calibrate::cuda {
namespace {

constexpr int kThreads = 256, kUnroll = kRateUnroll;

/// Elements of k per instruction: 32 bytes of a row.
constexpr int k_of(RateFormat format) { return format == RateFormat::kBf16 || format == RateFormat::kFp16 ? 16 : 32; }

template <RateFormat>
struct Accumulator {
  using Type = float;
};
template <>
struct Accumulator<RateFormat::kInt8> {
  using Type = int;
};

#define ROOFCAST_MMA(shape, types, letter)                                                                          \
  asm volatile("mma.sync.aligned." shape ".row.col." types " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+" letter(d[0]), "+" letter(d[1]), "+" letter(d[2]), "+" letter(d[3])                             \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

/// volatile: none may be removed.
template <RateFormat format, class T>
__device__ __forceinline__ void mma(T (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  if constexpr (format == RateFormat::kBf16) ROOFCAST_MMA("m16n8k16", "f32.bf16.bf16.f32", "f");
  if constexpr (format == RateFormat::kFp16) ROOFCAST_MMA("m16n8k16", "f32.f16.f16.f32", "f");
  if constexpr (format == RateFormat::kInt8) ROOFCAST_MMA("m16n8k32", "s32.s8.s8.s32", "r");
#if __CUDA_ARCH__ >= 890
  if constexpr (format == RateFormat::kFp8) ROOFCAST_MMA("m16n8k32", "f32.e4m3.e4m3.f32", "f");
#endif
}

/// Lane 4g + t has of a (16 rows of 8 words) rows g, g + 8 at words t, t + 4, the layout of every mma with 32-byte
/// rows.
__device__ __forceinline__ void load_a(std::uint32_t (&a)[4], const std::uint32_t* words) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) a[i] = words[(g + 8 * (i % 2)) * 8 + t + 4 * (i / 2)];
}

template <RateFormat format>
__global__ void __launch_bounds__(kThreads)
    mma_rate(const std::uint32_t* a_words, const std::uint32_t* b_words, float* d_out, float* sink, int rounds) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  std::uint32_t a[kRateSets][4], b[kRateSets][2];
#pragma unroll
  for (int set = 0; set < kRateSets; ++set) {
    load_a(a[set], a_words + set * 16 * 8);
    for (int i = 0; i < 2; ++i) b[set][i] = b_words[(set * kRateColumns + g) * 8 + t + 4 * i];
  }
  typename Accumulator<format>::Type d[kUnroll][4] = {};
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) mma<format>(d[u], a[rate_sets(u).a], b[rate_sets(u).b]);
  }
  float all = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float sum = 0.0f;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) sum += static_cast<float>(d[u][i]);
    if (blockIdx.x == 0 && threadIdx.x < 32) d_out[(g + 8 * (i / 2)) * kRateColumns + 2 * t + i % 2] = sum;
    all += sum;
  }
  sink[blockIdx.x * kThreads + threadIdx.x] = all;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

#define ROOFCAST_64_OPERANDS                                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, " \
  "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, " \
  "%56, %57, %58, %59, %60, %61, %62, %63"
#define ROOFCAST_64_WORDS(letter)                                                                                   \
  "+" letter(d[0]), "+" letter(d[1]), "+" letter(d[2]), "+" letter(d[3]), "+" letter(d[4]), "+" letter(d[5]),       \
      "+" letter(d[6]), "+" letter(d[7]), "+" letter(d[8]), "+" letter(d[9]), "+" letter(d[10]), "+" letter(d[11]), \
      "+" letter(d[12]), "+" letter(d[13]), "+" letter(d[14]), "+" letter(d[15]), "+" letter(d[16]),                \
      "+" letter(d[17]), "+" letter(d[18]), "+" letter(d[19]), "+" letter(d[20]), "+" letter(d[21]),                \
      "+" letter(d[22]), "+" letter(d[23]), "+" letter(d[24]), "+" letter(d[25]), "+" letter(d[26]),                \
      "+" letter(d[27]), "+" letter(d[28]), "+" letter(d[29]), "+" letter(d[30]), "+" letter(d[31]),                \
      "+" letter(d[32]), "+" letter(d[33]), "+" letter(d[34]), "+" letter(d[35]), "+" letter(d[36]),                \
      "+" letter(d[37]), "+" letter(d[38]), "+" letter(d[39]), "+" letter(d[40]), "+" letter(d[41]),                \
      "+" letter(d[42]), "+" letter(d[43]), "+" letter(d[44]), "+" letter(d[45]), "+" letter(d[46]),                \
      "+" letter(d[47]), "+" letter(d[48]), "+" letter(d[49]), "+" letter(d[50]), "+" letter(d[51]),                \
      "+" letter(d[52]), "+" letter(d[53]), "+" letter(d[54]), "+" letter(d[55]), "+" letter(d[56]),                \
      "+" letter(d[57]), "+" letter(d[58]), "+" letter(d[59]), "+" letter(d[60]), "+" letter(d[61]),                \
      "+" letter(d[62]), "+" letter(d[63])

/// d (64 x 128, 64 words per lane) += a (16 rows per warp, in registers) b (in shared memory).
#define ROOFCAST_WGMMA(shape, types, letter, tail)                                                     \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned." shape "." types \
               " {" ROOFCAST_64_OPERANDS "}, {%64, %65, %66, %67}, %68, p" tail ";\n}\n"               \
               : ROOFCAST_64_WORDS(letter)                                                             \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

template <RateFormat format, class T>
__device__ __forceinline__ void wgmma(T (&d)[64], const std::uint32_t (&a)[4], std::uint64_t b) {
  if constexpr (format == RateFormat::kBf16) ROOFCAST_WGMMA("m64n128k16", "f32.bf16.bf16", "f", ", 1, 1, 0");
  if constexpr (format == RateFormat::kFp16) ROOFCAST_WGMMA("m64n128k16", "f32.f16.f16", "f", ", 1, 1, 0");
  if constexpr (format == RateFormat::kFp8) ROOFCAST_WGMMA("m64n128k32", "f32.e4m3.e4m3", "f", ", 1, 1");
  if constexpr (format == RateFormat::kInt8) ROOFCAST_WGMMA("m64n128k32", "s32.s8.s8", "r", "");
}

#endif

/// The second factor is in shared memory as core matrices of 8 rows of 16 bytes: the two along k are 128 bytes apart,
/// the groups of 8 rows 256 bytes (PTX ISA, wgmma matrix descriptor, no swizzle: start, leading and stride offset in 16
/// bytes).
template <RateFormat format>
__global__ void __launch_bounds__(kThreads)
    wgmma_rate(const std::uint32_t* a_words, const std::uint32_t* b_words, float* d_out, float* sink, int rounds) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr int kSetWords = kRateColumns * 8;
  __shared__ __align__(1024) std::uint32_t shared[kRateSets * kSetWords];
  for (int i = static_cast<int>(threadIdx.x); i < kRateSets * kSetWords; i += kThreads) {
    const int row = i % kSetWords / 8, word = i % 8;
    shared[i / kSetWords * kSetWords + row / 8 * 64 + word / 4 * 32 + row % 8 * 4 + word % 4] = b_words[i];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  std::uint32_t a[kRateSets][4];
  std::uint64_t b[kRateSets];
#pragma unroll
  for (int set = 0; set < kRateSets; ++set) {
    load_a(a[set], a_words + set * 16 * 8);
    const std::uint64_t start = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared + set * kSetWords));
    b[set] = ((start & 0x3FFFFu) >> 4) | (std::uint64_t{128 >> 4} << 16) | (std::uint64_t{256 >> 4} << 32);
  }
  typename Accumulator<format>::Type d[64] = {};
  for (int round = 0; round < rounds; ++round) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) wgmma<format>(d, a[rate_sets(u).a], b[rate_sets(u).b]);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  float all = 0.0f;
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    const auto value = static_cast<float>(d[i]);
    if (blockIdx.x == 0 && threadIdx.x < 32)
      d_out[(g + 8 * (i / 2 % 2)) * kRateColumns + 8 * (i / 4) + 2 * t + i % 2] = value;
    all += value;
  }
  sink[blockIdx.x * kThreads + threadIdx.x] = all;
#else
  (void)a_words, (void)b_words, (void)d_out, (void)sink, (void)rounds;
#endif
}

template <RateFormat format>
void run_as(cudaStream_t stream, const RateRun& run, const std::uint32_t* a, const std::uint32_t* b, float* d,
            float* sink) {
  if (run.wgmma) {
    wgmma_rate<format><<<run.blocks, kThreads, 0, stream>>>(a, b, d, sink, run.rounds);
  } else {
    mma_rate<format><<<run.blocks, kThreads, 0, stream>>>(a, b, d, sink, run.rounds);
  }
  check(cudaGetLastError(), "launching a matrix loop");
}

}  // namespace

/// Warps per block x instructions x 2 m n k; a warpgroup of four warps shares a wgmma.
double rate_flops(const RateRun& run) {
  const double each = run.wgmma ? 2.0 * 64 * kRateColumns * k_of(run.format) / 4 : 2.0 * 16 * 8 * k_of(run.format);
  return each * (kThreads / 32) * run.blocks * run.rounds * kUnroll;
}

void run_rate(cudaStream_t stream, const RateRun& run, const std::uint32_t* a, const std::uint32_t* b, float* d,
              float* sink) {
  switch (run.format) {
    case RateFormat::kBf16:
      return run_as<RateFormat::kBf16>(stream, run, a, b, d, sink);
    case RateFormat::kFp16:
      return run_as<RateFormat::kFp16>(stream, run, a, b, d, sink);
    case RateFormat::kFp8:
      return run_as<RateFormat::kFp8>(stream, run, a, b, d, sink);
    case RateFormat::kInt8:
      return run_as<RateFormat::kInt8>(stream, run, a, b, d, sink);
  }
}

}  // namespace roofcast::calibrate::cuda
