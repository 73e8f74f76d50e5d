// The whole way on a made-up GPU: grid, harness, JSON lines, tables, fit, and the constants that went in come out.

#include <doctest/doctest.h>

#include <string>

#include "calibrate/grid.h"
#include "calibrate/harness.h"
#include "calibrate/operators.h"
#include "calibrate/record_tables.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "tests/calibrate/made_up_backend.h"

#include "hw/kernels/elementwise.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

GpuSpec made_up_gpu() {
  GpuSpec gpu;
  gpu.name = "x100";
  gpu.architecture = Architecture::kHopper;
  gpu.sm_count = 132;
  gpu.memory_capacity = Bytes{85.0e9};
  gpu.memory_bandwidth = BytesPerSecond{3.35e12};
  gpu.l2_cache = Bytes{50e6};
  for (const Dtype dtype : {Dtype::kFp32, Dtype::kBf16, Dtype::kFp16})
    gpu.dense[static_cast<std::size_t>(dtype)] = FlopsPerSecond{dtype == Dtype::kFp32 ? 67e12 : 989e12};
  gpu.dense[static_cast<std::size_t>(Dtype::kFp8)] = FlopsPerSecond{1979e12};
  gpu.node.pcie_bandwidth = BytesPerSecond{64e9};
  return gpu;
}

/// What was measured of `op`, written and read again.
CsvTable measured(const MadeUpDevice& device, const std::string& op) {
  MadeUpBackend backend(device);
  std::vector<Point> points = default_grid(device.device, 1);
  std::erase_if(points, [&](const Point& p) {
    const bool few = p.dtype == "int4_wo" && p.number("n") != 6144;  // five remain
    return p.op != op || p.dtype == "fp8" || p.dtype == "int8" || few;
  });
  std::string text;
  measure(backend, points, {}, {}, [&](const Record& record) { text += to_json_line(record) + "\n"; }, {});
  const RecordFile file = parse_records(text, "m.jsonl");
  require_device(file, made_up_gpu());
  return tables_of(file).front().table;
}

double value_of(const FittedConstants& block, std::string_view name) {
  for (const auto& [field, value] : block.values) {
    if (field == name) return value;
  }
  return -1;
}

}  // namespace

TEST_CASE("measure to fit: the constants of made-up products come back") {
  const GpuSpec gpu = made_up_gpu();
  GemmParameters truth = cublaslt().prior_beside(gpu, nullptr);
  truth.compute_efficiency = 0.72;
  truth.bandwidth_efficiency = 0.91;
  truth.launch_us = 3.4;
  truth.sustained_clock = 0.85;
  MadeUpDevice device;
  device.noise = 0.02;
  device.engine = "cublaslt-13.1.0";
  device.time = [&](const Point& p) {
    const GemmShape shape{.m = static_cast<double>(p.number("m")),
                          .n = static_cast<double>(p.number("n")),
                          .k = static_cast<double>(p.number("k"))};
    if (p.dtype == "int4_wo") return 20.0 * kMicrosecond;
    return gemm_with(shape, cublaslt(), truth, gpu, {.cool = !p.find("load_ms")}).time;
  };
  const CsvTable table = measured(device, "gemm");
  std::vector<std::string> too_few;
  FitOptions options;
  options.folds_run = 1;
  options.starts = 1;
  options.too_few = &too_few;
  const auto blocks = find_operator("gemm", SourceLocation{}).fit(table, gpu, *kernel_rules("vllm"), options);
  REQUIRE(!blocks.empty());
  CHECK(blocks[0].block == "cublaslt.bf16");
  CHECK(value_of(blocks[0], "compute_efficiency") == doctest::Approx(0.72).epsilon(0.04));
  CHECK(value_of(blocks[0], "bandwidth_efficiency") == doctest::Approx(0.91).epsilon(0.03));
  CHECK(value_of(blocks[0], "launch_us") == doctest::Approx(3.4).epsilon(0.1));
  CHECK(blocks[0].on_rows.mape < 0.02);
  // what a benchmark's loop adds is not fitted to a loop that adds nothing
  for (const FieldReport& field : blocks[0].fields) {
    if (field.name == "l2_usable") CHECK(field.state == FieldState::kFixed);
  }
  // the points under load tell the clock that the power limit leaves
  CHECK(value_of(blocks[0], "sustained_clock") == doctest::Approx(0.85).epsilon(0.03));
  // products with 4-bit weights are no library's that an engine calls
  CHECK(too_few.empty());
  CHECK(blocks.size() == 1);
}

TEST_CASE("measure to fit: kernels of our own set no engine's constants") {
  const GpuSpec gpu = made_up_gpu();
  MadeUpDevice device;  // roofcast-test
  FitOptions options;
  options.folds_run = 0;
  for (const char* op : {"gemm", "attention_decode", "attention_prefill", "moe"}) {
    INFO(op);
    const CsvTable table = measured(device, op);
    REQUIRE(table.rows() > 2);
    for (const std::string kernels : {"vllm", "trtllm"})
      CHECK(find_operator(op, SourceLocation{}).fit(table, gpu, *kernel_rules(kernels), options).empty());
  }
}

TEST_CASE("measure to fit: cuBLASLt's products are fitted where an engine calls it") {
  const GpuSpec gpu = made_up_gpu();
  const auto blocks_of = [&](const std::string& engine, const std::string& kernels) {
    std::string text = "engine,dtype,m,n,k,latency_us,timing\n";
    for (const char* dtype : {"bf16", "fp8", "int4_wo"}) {
      for (int m = 1; m <= 64; m *= 4) text += engine + "," + dtype + "," + std::to_string(m) + ",4096,4096,20,cool\n";
    }
    FitOptions options;
    options.folds_run = 0;
    options.starts = 1;
    options.max_evaluations = 50;
    std::string names;
    for (const FittedConstants& block : find_operator("gemm", SourceLocation{})
                                            .fit(CsvTable::parse(text, "t.csv"), gpu, *kernel_rules(kernels), options))
      names += block.block + " ";
    return names;
  };
  CHECK(blocks_of("cublaslt-13.1.0", "vllm") == "cublaslt.bf16 ");  // its fp8 is CUTLASS's
  CHECK(blocks_of("cublaslt-13.1.0", "trtllm") == "cublaslt.bf16 cublaslt_fp8.fp8 ");
  CHECK(blocks_of("roofcast-0.1.0", "vllm") == "");
  // and priced as that engine's
  const BenchmarkedGpu benched{gpu};
  const auto priced = [&](const std::string& engine) {
    const CsvTable one =
        CsvTable::parse("engine,dtype,m,n,k,latency_us,timing\n" + engine + ",fp8,64,4096,4096,20,cool\n", "t.csv");
    return find_operator("gemm", SourceLocation{}).predict(one, benched).front().time.base();
  };
  CHECK(priced("cublaslt-13.1.0") == priced("trtllm-1.0"));
  CHECK(priced("cublaslt-13.1.0") != priced("vllm-1.0"));
  CHECK(blocks_of("vllm-0.24.0", "vllm") == "cublaslt.bf16 cutlass_fp8.fp8 weight_only.int4 ");
  CHECK(blocks_of("vllm-0.24.0", "trtllm") == "");
}

TEST_CASE("measure to fit: the constants of made-up streams and copies come back") {
  // 4 us and 70 % of 3.35 TB/s (of L2 where the traffic stays there), 12 us and 80 % of 64 GB/s
  const GpuSpec gpu = made_up_gpu();
  Efficiency truth;
  truth.put(elementwise_kernel(), Dtype::kBf16,
            {{.launch_us = 4.0, .bandwidth_fraction = 0.7, .host_copy_us = 12.0, .host_copy_fraction = 0.8}, {}});
  const Machine machine{.gpu = &gpu, .efficiency = &truth};
  std::string text = "operation,bytes,engine,latency_us\n";
  for (double bytes = 4096; bytes < 1e9; bytes *= 2) {
    text += "rmsnorm," + std::to_string(bytes) + ",roofcast-0," +
            std::to_string(elementwise(Bytes{bytes}, Flops{}, 1, machine).time.in(kMicrosecond)) + "\n";
    text += "host_to_device," + std::to_string(bytes) + ",roofcast-0," +
            std::to_string(host_copy(Bytes{bytes}, machine).time.in(kMicrosecond)) + "\n";
  }
  const CsvTable table = CsvTable::parse(text, "t.csv");
  CHECK(operator_of(table).name == "elementwise");
  const auto blocks = operator_of(table).fit(table, gpu, *kernel_rules("vllm"), {});
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0].block == "elementwise.bf16");
  CHECK(value_of(blocks[0], "launch_us") == doctest::Approx(4.0).epsilon(0.02));
  CHECK(value_of(blocks[0], "bandwidth_fraction") == doctest::Approx(0.7).epsilon(0.02));
  CHECK(value_of(blocks[0], "host_copy_us") == doctest::Approx(12.0).epsilon(0.02));
  CHECK(value_of(blocks[0], "host_copy_fraction") == doctest::Approx(0.8).epsilon(0.02));
}
