#include "calibrate/grid.h"

#include <algorithm>
#include <array>
#include <set>

namespace roofcast::calibrate {
namespace {

using Values = std::vector<Point::Value>;
constexpr std::int64_t kMiB = 1 << 20;

struct ProductShape {
  std::int64_t n, k;
};
constexpr std::array<ProductShape, 4> kServedShapes{
    {{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}}};  // the layers of an 8B model
constexpr std::array<ProductShape, 4> kOddShapes{
    {{128, 128}, {1024, 4096}, {128, 16384}, {16384, 128}}};  // separate launch, k-steps and epilogue

/// Layers of other models, and shapes between them: constants that fit eight shapes need not fit others.
constexpr std::array<ProductShape, 16> kManyShapes{{{512, 7168},
                                                    {2112, 7168},
                                                    {7168, 2048},
                                                    {1536, 5120},
                                                    {10240, 5120},
                                                    {5120, 13824},
                                                    {8192, 8192},
                                                    {57344, 8192},
                                                    {8192, 3584},
                                                    {2560, 2560},
                                                    {19456, 2560},
                                                    {256, 2048},
                                                    {32768, 512},
                                                    {64, 4096},
                                                    {3072, 1024},
                                                    {640, 10240}}};

/// Duration of a point under load in milliseconds: the power limit acts within tens of them.
constexpr std::int64_t kLoad = 100;
/// Milliseconds after which a power reading contains nothing earlier: NVML's is the mean of one second (NVML API
/// reference, nvmlDeviceGetPowerUsage), and it is read after three quarters of the load.
constexpr std::int64_t kPowerLoad = 2000;

class Grid {
 public:
  void add(const std::string& op, const std::string& dtype, int level, const std::vector<Axis>& axes) {
    for (Point& point : cross(op, dtype, level, axes)) {
      if (seen_.insert(point.key()).second) points_.push_back(std::move(point));
    }
  }
  std::vector<Point> up_to(int level) {
    std::erase_if(points_, [&](const Point& point) { return point.level > level; });
    std::stable_sort(points_.begin(), points_.end(), [](const Point& a, const Point& b) { return a.level < b.level; });
    return std::move(points_);
  }

 private:
  std::vector<Point> points_;
  std::set<std::string> seen_;
};

void add_memory(Grid& grid, const Device& device) {
  const std::int64_t sms = std::max(device.sm_count, 1);
  const Values kinds{"read", "write", "copy"};
  grid.add("stream", "", 0, {{"kind", kinds}, {"bytes", {16 * kMiB, 1024 * kMiB}}, {"blocks", {4 * sms}}});
  grid.add("stream", "", 1,
           {{"kind", kinds},
            {"bytes", {kMiB, 4 * kMiB, 8 * kMiB, 32 * kMiB, 64 * kMiB, 128 * kMiB, 256 * kMiB}},
            {"blocks", {4 * sms}}});
  grid.add("stream", "", 1,
           {{"kind", {"read"}},
            {"bytes", {16 * kMiB, 1024 * kMiB}},
            {"blocks", {std::max<std::int64_t>(1, sms / 8), sms / 2 + 1, sms, 2 * sms}}});
  grid.add("stream", "", 2,
           {{"kind", {"write", "copy"}},
            {"bytes", {16 * kMiB, 1024 * kMiB}},
            {"blocks", {std::max<std::int64_t>(1, sms / 8), sms / 2 + 1, sms, 2 * sms}}});
}

void add_machine(Grid& grid) {
  for (const char* dtype : {"bf16", "fp8"}) grid.add("tensor_rate", dtype, 0, {{"instruction", {"mma", "wgmma"}}});
  for (const char* dtype : {"bf16", "fp8"})
    grid.add("tensor_rate", dtype, 0, {{"instruction", {"mma", "wgmma"}}, {"load_ms", {kLoad}}});
  for (const char* dtype : {"fp16", "int8"}) grid.add("tensor_rate", dtype, 1, {{"instruction", {"mma", "wgmma"}}});
  grid.add("launch", "", 0, {{"kind", {"stream", "graph", "graph_node"}}});
  const Values directions{"host_to_device", "device_to_host"};
  grid.add("copy", "", 0, {{"direction", directions}, {"memory", {"pinned"}}, {"bytes", {4096, 16 * kMiB}}});
  grid.add(
      "copy", "", 1,
      {{"direction", directions}, {"memory", {"pinned", "pageable"}}, {"bytes", {4096, kMiB, 16 * kMiB, 64 * kMiB}}});
}

void add_products(Grid& grid, const std::string& dtype, int level, const Values& m,
                  std::span<const ProductShape> shapes) {
  for (const ProductShape& s : shapes) grid.add("gemm", dtype, level, {{"m", m}, {"n", {s.n}}, {"k", {s.k}}});
}

/// Measures how the power limit lowers the clock: the same GEMMs cool and without pauses. The first one is bound by
/// memory and must not slow down.
void add_loaded_gemm(Grid& grid) {
  const auto loaded = [&](const std::string& dtype, int level, const Values& m, std::int64_t n, std::int64_t k) {
    grid.add("gemm", dtype, level, {{"m", m}, {"n", {n}}, {"k", {k}}, {"load_ms", {kLoad}}});
  };
  loaded("bf16", 0, {1, 1024, 4096}, 28672, 4096);
  loaded("bf16", 1, {2048, 8192}, 28672, 4096);
  loaded("bf16", 1, {1024, 4096, 8192}, 4096, 14336);
  loaded("fp8", 1, {1024, 4096, 8192}, 28672, 4096);
  loaded("fp8", 1, {4096}, 4096, 14336);
  for (const char* dtype : {"fp8_block", "nvfp4", "int8"}) loaded(dtype, 1, {4096}, 28672, 4096);
}

void add_gemm(Grid& grid) {
  const Values few{1, 16, 64, 256, 1024, 4096};
  add_products(grid, "bf16", 0, few, kServedShapes);
  add_products(grid, "bf16", 0, few, kOddShapes);
  const Values more{1, 8, 16, 32, 64, 128, 256, 512, 1024, 1025, 2048, 4096, 8192};
  add_products(grid, "bf16", 1, more, kServedShapes);
  add_products(grid, "bf16", 1, {4, 48, 192, 768, 3072}, kManyShapes);
  add_products(grid, "fp8", 1, more, kServedShapes);
  add_products(grid, "fp8", 1, few, kOddShapes);
  add_products(grid, "int8", 1, few, kServedShapes);
  add_products(grid, "int8", 1, few, kOddShapes);
  add_products(grid, "fp16", 1, {1, 64, 1024}, kServedShapes);
  for (const char* dtype : {"fp8_block", "nvfp4"}) add_products(grid, dtype, 1, {16, 128, 1024, 4096}, kServedShapes);
  add_products(grid, "int4_wo", 1, {1, 2, 4, 8, 16}, kServedShapes);
  add_products(grid, "int4_wo", 1, {1, 4, 16}, kOddShapes);
  add_products(grid, "int4_wo", 2, {1, 2, 3, 4, 6, 8, 12, 16}, kServedShapes);
  for (const ProductShape& s : kServedShapes)
    grid.add("skinny_gemm", "bf16", 1, {{"m", {1, 4, 16}}, {"n", {s.n}}, {"k", {s.k}}});
  const Values all{1,   2,   4,   8,   16,  24,   32,   48,   64,   96,   128,  160,  192, 256,
                   320, 384, 512, 640, 768, 1024, 1025, 1536, 2048, 3072, 4096, 6144, 8192};
  for (const char* dtype : {"bf16", "fp8", "int8"}) add_products(grid, dtype, 2, all, kServedShapes);
  add_products(grid, "fp8", 2, {4, 48, 192, 768, 3072}, kManyShapes);
}

/// Measures the power of the board: bound by memory, bound by the matrix units, and in whole steps.
void add_power(Grid& grid, const Device& device) {
  const Values load{kPowerLoad};
  const std::int64_t blocks = 4 * std::max(device.sm_count, 1);
  grid.add("decode_step", "bf16", 1, {{"batch", {1, 64, 256}}, {"context", {2048}}, {"load_ms", load}});
  grid.add("gemm", "bf16", 1, {{"m", {4096}}, {"n", {28672}}, {"k", {4096}}, {"load_ms", load}});
  grid.add("stream", "", 2, {{"kind", {"read"}}, {"bytes", {1024 * kMiB}}, {"blocks", {blocks}}, {"load_ms", load}});
  grid.add("gemm", "bf16", 2, {{"m", {1, 256, 1024}}, {"n", {28672}}, {"k", {4096}}, {"load_ms", load}});
  grid.add("gemm", "fp8", 2, {{"m", {4096}}, {"n", {28672}}, {"k", {4096}}, {"load_ms", load}});
  grid.add("decode_step", "bf16", 2, {{"batch", {16, 64}}, {"context", {512, 8192}}, {"load_ms", load}});
}

void add_attention(Grid& grid) {
  const auto decode = [&](int level, const Values& batch, const Values& context, const Values& heads, int kv, int dim) {
    grid.add("attention_decode", "bf16", level,
             {{"batch", batch}, {"context_len", context}, {"heads", heads}, {"kv_heads", {kv}}, {"head_dim", {dim}}});
  };
  decode(0, {1, 16, 64, 256}, {512, 2048, 8192}, {32}, 8, 128);
  grid.add("attention_prefill", "bf16", 1,
           {{"batch", {4}},
            {"seq_len", {4096}},
            {"heads", {32}},
            {"kv_heads", {8}},
            {"head_dim", {128}},
            {"load_ms", {kLoad}}});
  decode(1, {1, 4, 16, 64, 128, 256}, {2, 128, 512, 1024, 2048, 4096, 8192, 16384}, {32}, 8, 128);
  decode(1, {1, 64}, {512, 4096}, {8}, 8, 128);
  decode(1, {1, 64}, {512, 4096, 32768}, {32}, 8, 64);
  decode(2, {2, 8, 32}, {512, 1024, 4096, 8192}, {32}, 8, 128);
  decode(2, {1, 2, 8, 32}, {256, 1024, 4096, 32768, 131072}, {64, 16}, 8, 128);
  const auto prefill = [&](int level, const Values& batch, const Values& length, int heads, int kv, int dim) {
    grid.add("attention_prefill", "bf16", level,
             {{"batch", batch}, {"seq_len", length}, {"heads", {heads}}, {"kv_heads", {kv}}, {"head_dim", {dim}}});
  };
  prefill(0, {1}, {512, 2048, 8192}, 32, 8, 128);
  prefill(1, {1, 4}, {16, 128, 512, 1024, 2048, 4096}, 32, 8, 128);
  prefill(1, {1}, {512, 4096}, 8, 8, 128);
  prefill(2, {1, 8, 32}, {128, 256, 1024, 3072, 16384}, 32, 8, 128);
  prefill(2, {1, 8}, {512, 4096}, 32, 8, 64);
}

void add_layers(Grid& grid, const Device& device) {
  const Values operations{"rmsnorm", "rope", "silu_mul", "quantize"};
  grid.add("elementwise", "bf16", 0, {{"operation", operations}, {"tokens", {1, 256, 8192}}, {"width", {4096}}});
  grid.add("elementwise", "bf16", 1,
           {{"operation", operations}, {"tokens", {16, 1024, 4096}}, {"width", {4096, 8192}}});
  const auto experts = [&](int level, const Values& tokens, std::int64_t hidden, std::int64_t inter, int k, int of) {
    grid.add(
        "moe", "bf16", level,
        {{"tokens", tokens}, {"hidden_size", {hidden}}, {"inter_size", {inter}}, {"top_k", {k}}, {"experts", {of}}});
  };
  experts(1, {1, 8, 64, 512, 4096}, 4096, 14336, 2, 8);
  experts(1, {1, 8, 64, 512, 4096}, 2048, 768, 8, 128);
  experts(2, {1, 8, 64, 512, 4096}, 6144, 2048, 8, 64);
  for (std::int64_t gpus = 2; gpus <= device.devices; gpus *= 2) {
    grid.add("all_reduce", "bf16", 1, {{"gpus", {gpus}}, {"elements", {256, 131072, 4194304, 134217728}}});
    Values sizes;
    for (std::int64_t elements = 256; elements <= 134217728; elements *= 4) sizes.emplace_back(elements);
    grid.add("all_reduce", "bf16", 2, {{"gpus", {gpus}}, {"elements", sizes}});
  }
  grid.add("decode_step", "bf16", 0, {{"batch", {1, 64}}, {"context", {1024}}});
  grid.add("decode_step", "bf16", 1, {{"batch", {1, 16, 64, 256}}, {"context", {512, 2048, 8192}}});
  grid.add("decode_step", "bf16", 2, {{"batch", {1, 2, 4, 8, 32, 128}}, {"context", {512, 1024, 4096, 8192}}});
}

void combine(Point point, std::span<const Axis> axes, std::vector<Point>& out) {
  if (axes.empty()) {
    out.push_back(std::move(point));
    return;
  }
  for (const Point::Value& value : axes[0].values) {
    Point next = point;
    next.shape.emplace_back(axes[0].name, value);
    combine(std::move(next), axes.subspan(1), out);
  }
}

}  // namespace

std::vector<Point> cross(const std::string& op, const std::string& dtype, int level, std::span<const Axis> axes) {
  std::vector<Point> points;
  combine({.op = op, .dtype = dtype, .shape = {}, .level = level}, axes, points);
  return points;
}

int level_of_budget(Seconds budget) { return budget < 2.0 * 60 * kSecond ? 0 : budget < 6.0 * 60 * kSecond ? 1 : 2; }

std::vector<Point> default_grid(const Device& device, int level) {
  Grid grid;
  add_memory(grid, device);
  add_machine(grid);
  add_gemm(grid);
  add_loaded_gemm(grid);
  add_attention(grid);
  add_layers(grid, device);
  add_power(grid, device);
  return grid.up_to(level);
}

std::vector<Point> cpu_grid() {
  Grid grid;
  grid.add("stream", "", 0,
           {{"kind", {"read", "write", "copy"}}, {"bytes", {65536, kMiB, 64 * kMiB}}, {"blocks", {1}}});
  grid.add("gemm", "bf16", 0, {{"m", {1, 4, 16}}, {"n", {64, 128}}, {"k", {64, 256}}});
  grid.add("gemm", "bf16", 0, {{"m", {16}}, {"n", {128}}, {"k", {256}}, {"load_ms", {kLoad}}});
  grid.add("attention_decode", "bf16", 0,
           {{"batch", {1, 2}}, {"context_len", {16, 128}}, {"heads", {4}}, {"kv_heads", {2}}, {"head_dim", {64}}});
  grid.add("attention_prefill", "bf16", 0,
           {{"batch", {1}}, {"seq_len", {16, 64}}, {"heads", {4}}, {"kv_heads", {2}}, {"head_dim", {64}}});
  return grid.up_to(0);
}

int rounds_in_l2(Bytes working_set) {
  const double passes = static_cast<double>(256 * kMiB) / std::max(working_set.base(), 1.0);
  return 2 * static_cast<int>(std::clamp(passes, 1.0, 8192.0) / 2.0) + 1;
}

std::span<const std::string_view> grid_operators() {
  static constexpr std::array<std::string_view, 12> kNames{
      "stream",           "tensor_rate",       "launch", "copy",       "elementwise", "gemm", "skinny_gemm",
      "attention_decode", "attention_prefill", "moe",    "all_reduce", "decode_step"};
  return kNames;
}

}  // namespace roofcast::calibrate
