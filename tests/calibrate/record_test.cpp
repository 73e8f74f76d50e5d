#include "calibrate/record.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "calibrate/ceilings.h"
#include "calibrate/record_tables.h"
#include "tests/base/messages.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

Record product(std::int64_t m) {
  Record record;
  record.point = {.op = "gemm", .dtype = "bf16", .shape = {{"m", m}, {"n", 4096}, {"k", 2048}}};
  record.device = {.name = "NVIDIA H100 80GB HBM3",
                   .driver = "580.65",
                   .cuda = "13.0",
                   .compute_capability = "9.0",
                   .sm_count = 132,
                   .devices = 1,
                   .memory_bytes = 85.0e9,
                   .l2_bytes = 52428800};
  record.engine = "roofcast-0.1.0";
  record.kernel = "cublasLt 130100 algorithm 66";
  record.commit = "0123456789ab";
  record.time = "2026-11-22T00:00:00Z";
  record.before = {.sm_clock_mhz = 1980, .memory_clock_mhz = 2619, .temperature_c = 35, .power_w = 120.5};
  record.after = {
      .sm_clock_mhz = 1755, .memory_clock_mhz = 2619, .temperature_c = 61, .power_w = 690, .throttled = true};
  record.flops = 1e9;
  record.bytes = 2e7;
  record.repeats = 40;
  record.samples_us = {10.0, 11.0, 12.0, 30.0};
  record.throttled = {3};
  return record;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string fault_of(const std::string& line) {
  return message_of([&] { (void)parse_records(line + "\n", "m.jsonl"); });
}

}  // namespace

TEST_CASE("record: what is written is read again") {
  const Record before = product(64);
  const RecordFile file = parse_records(to_json_line(before) + "\n", "m.jsonl");
  REQUIRE(file.records.size() == 1);
  const Record& after = file.records[0];
  CHECK(after.point.key() == "gemm bf16 m=64 n=4096 k=2048");
  CHECK(after.samples_us == before.samples_us);
  CHECK(after.throttled == before.throttled);
  CHECK(after.after.throttled);
  CHECK(after.before.power_w == 120.5);
  CHECK(after.device.memory_bytes == before.device.memory_bytes);
  CHECK(to_json_line(after) == to_json_line(before));
}

TEST_CASE("record: median, noise and error of samples") {
  // sorted 10 11 12 13 14: median 12, quartiles 11 and 13, so noise = 2 / 1.349 / 12, error = 1.2533 noise / sqrt(5)
  const Statistics s = statistics_of({14, 10, 12, 13, 11});
  CHECK(s.median_us == 12.0);
  CHECK(s.noise == doctest::Approx(2.0 / 1.349 / 12.0));
  CHECK(s.standard_error == doctest::Approx(1.2533 * s.noise / std::sqrt(5.0)));
  CHECK(statistics_of({}).median_us == 0);
}

TEST_CASE("record: samples that resemble their neighbours tell less, and drift is seen") {
  // Ten at 10 us, then ten at 10.1: five batches of four have the medians 10, 10, 10.05, 10.1, 10.1. About the whole's
  // 10.05 their sum of squares is 4 x 0.05^2, so the error is sqrt(0.01 / 4 / 5) / 10.05 = 0.22 %; noise as of
  // independent samples: quartiles 10 and 10.1, 1.2533 x 0.1 / 1.349 / 10.05 / sqrt(20) = 0.207 %
  std::vector<double> steps(10, 10.0);
  steps.insert(steps.end(), 10, 10.1);
  const Statistics s = statistics_of(steps);
  CHECK(s.standard_error == doctest::Approx(std::sqrt(0.01 / 4 / 5) / 10.05));
  CHECK(s.drift == doctest::Approx(0.01));
  // a clock that falls: 2 % between the first third and the last, without noise
  std::vector<double> falling;
  for (int i = 0; i < 30; ++i) falling.push_back(10.0 + 0.3 * i / 29.0);
  CHECK(statistics_of(falling).drifts);
  CHECK(statistics_of(falling).drift == doctest::Approx(0.02).epsilon(0.05));
  // noise of 5 % alone is no drift
  std::vector<double> noisy;
  Random random(3);
  for (int i = 0; i < 30; ++i) noisy.push_back(10.0 * (1.0 + 0.05 * random.normal()));
  CHECK(!statistics_of(noisy).drifts);
}

TEST_CASE("record: a last line that was cut off is left out, any other is an error with its line") {
  const std::string whole = to_json_line(product(1)) + "\n";
  const std::string text = whole + "\n" + whole + to_json_line(product(2)).substr(0, 100);
  const RecordFile file = parse_records(text, "m.jsonl");
  CHECK(file.records.size() == 2);
  CHECK(file.lines == std::vector<int>{1, 3});  // the second line is empty
  CHECK(file.torn);
  CHECK(file.whole_bytes == text.size() - 100);
  CHECK(message_of([&] { (void)parse_records(whole + "{\"op\": 1\n" + whole, "m.jsonl"); }) ==
        "m.jsonl:2: not a measurement: expected one JSON object per line, as written by `calibrate measure`");
}

TEST_CASE("record: every fault is named with its line") {
  const std::string line = to_json_line(product(1));
  CHECK(fault_of(replaced(line, "[10.0,", "[NaN,")).starts_with("m.jsonl:1: not a measurement"));
  CHECK(fault_of(replaced(line, "[10.0,", "[null,")) ==
        "m.jsonl:1: 'samples_us' must be positive numbers of microseconds, got null");
  CHECK(fault_of(replaced(line, "[10.0,", "[-10.0,")).ends_with("got -10.0"));
  CHECK(fault_of(replaced(line, "[10.0,", "[0,")).ends_with("got 0"));
  CHECK(fault_of(replaced(line, "[10.0,", "[1e999,")).starts_with("m.jsonl:1: not a measurement"));
  CHECK(fault_of(replaced(line, "\"bf16\"", "\"bf17\"")).find("unknown number format 'bf17'; nearest is 'bf16'") !=
        std::string::npos);
  CHECK(fault_of(replaced(line, "\"m\":1", "\"m\":1.5")) ==
        "m.jsonl:1: 'shape.m' must be a whole number or text, got 1.5");
  CHECK(fault_of(replaced(line, "\"m\":1,", "")) == "m.jsonl:1: a measured gemm has 'shape.m', a number of at least 1");
  CHECK(fault_of(replaced(line, "\"op\":\"gemm\"", "\"op\":\"gem\"")).find("nearest is 'gemm'") != std::string::npos);
  CHECK(fault_of(replaced(line, "\"stop\":\"converged\"", "\"stop\":\"bored\"")) ==
        "m.jsonl:1: unknown reason to stop 'bored'");
  CHECK(fault_of(replaced(line, "\"throttled_samples\":[3]", "\"throttled_samples\":[4]")).ends_with("got 4"));
  CHECK(fault_of(replaced(line, "\"sm_count\":132,", "")) ==
        "m.jsonl:1: missing 'sm_count', which every measurement has");
  CHECK(fault_of("[1, 2]").starts_with("m.jsonl:1: not a measurement"));
}

TEST_CASE("records: become rows of the tables that fit and validate take") {
  Record attention = product(1);
  attention.point = {.op = "attention_decode",
                     .dtype = "bf16",
                     .shape = {{"batch", 4}, {"context_len", 512}, {"heads", 32}, {"kv_heads", 8}, {"head_dim", 128}}};
  Record pinned = product(1);
  pinned.point = {
      .op = "copy", .dtype = "", .shape = {{"direction", "host_to_device"}, {"memory", "pinned"}, {"bytes", 4096}}};
  pinned.bytes = 4096;
  Record pageable = pinned;
  pageable.point.shape[1].second = std::string("pageable");
  Record failed = product(7);
  failed.samples_us.clear();
  failed.throttled.clear();
  failed.stop = Stop::kOutOfMemory;
  std::string text;
  Record loaded = product(3), hot = product(4);
  loaded.point.shape.emplace_back("load_ms", 100);
  hot.throttled = {0, 1, 2, 3};
  for (const Record& r : {product(1), attention, failed, pinned, pageable, product(2), loaded, hot})
    text += to_json_line(r) + "\n";
  const std::vector<MeasuredTable> tables = tables_of(parse_records(text, "m.jsonl"));
  REQUIRE(tables.size() == 3);
  CHECK(tables[0].op == "gemm");
  const CsvTable& gemm = tables[0].table;
  REQUIRE(gemm.rows() == 3);  // what has no time is no row, nor is what was held down between cool and loaded
  CHECK(gemm.number(1, gemm.column("m")) == 2);
  CHECK(gemm.number(1, gemm.column("latency_us")) == 11.5);  // all samples count, throttled ones too
  CHECK(gemm.at(1, gemm.column("timing")) == "cool");        // one of four was throttled
  CHECK(gemm.at(2, gemm.column("timing")) == "served");      // measured under load
  CHECK(gemm.at(0, gemm.column("engine")) == "roofcast-0.1.0");
  CHECK(gemm.location(1, 0).line == 6);
  CHECK(tables[1].op == "attention_decode");
  CHECK(tables[1].table.number(0, tables[1].table.column("sliding_window")) == 0);
  CHECK(tables[2].op == "elementwise");
  CHECK(tables[2].table.rows() == 1);  // pinned alone
  // a device whose clock is held down most of the time is never cool: its rows are those of a loaded one
  const std::string down = to_json_line(hot) + "\n";
  const RecordFile always = parse_records(down + down + to_json_line(product(1)) + "\n", "m");
  CHECK(is_always_held_down(always));
  CHECK(!is_always_held_down(parse_records(text, "m.jsonl")));
  const std::vector<MeasuredTable> slow = tables_of(always);
  REQUIRE(slow.size() == 1);
  REQUIRE(slow[0].table.rows() == 3);
  CHECK(slow[0].table.at(0, slow[0].table.column("timing")) == "served");
}

TEST_CASE("records: another GPU than the named one is refused") {
  const RecordFile file = parse_records("\n" + to_json_line(product(1)) + "\n", "m.jsonl");
  GpuSpec gpu;
  gpu.name = "h200-sxm";
  gpu.sm_count = 132;
  gpu.memory_capacity = Bytes{150e9};
  CHECK(message_of([&] { require_device(file, gpu); }) ==
        "m.jsonl:2: measured on 'NVIDIA H100 80GB HBM3' with 132 SMs and 85.0 GB; h200-sxm has 132 and 150.0 GB");
  gpu.memory_capacity = Bytes{84.9e9};
  CHECK_NOTHROW(require_device(file, gpu));
  Record other = product(2);
  other.device.name = "NVIDIA H200";
  CHECK(message_of([&] {
          (void)device_of(parse_records(to_json_line(product(1)) + "\n" + to_json_line(other) + "\n", "m.jsonl"));
        }) == "m.jsonl:2: measured on 'NVIDIA H200', but the lines before on 'NVIDIA H100 80GB HBM3'");
  CHECK(message_of([&] { (void)device_of(parse_records("", "m.jsonl")); }) ==
        "m.jsonl: contains no complete measurement");
}

TEST_CASE("ceilings: the best of each kind beside the datasheet") {
  const auto stream = [](std::int64_t bytes, double us) {
    Record r = product(1);
    r.point = {.op = "stream", .dtype = "", .shape = {{"kind", "read"}, {"bytes", bytes}, {"blocks", 132}}};
    r.bytes = static_cast<double>(bytes);
    r.samples_us = {us};
    r.throttled.clear();
    return r;
  };
  Record launch = product(1);
  launch.point = {.op = "launch", .dtype = "", .shape = {{"kind", "graph_node"}}};
  std::string text;
  // 1 GiB in 400 and in 500 us; 16 MiB in 4 us, of an L2 of 50 MiB
  for (const Record& r : {stream(1 << 30, 500), stream(1 << 30, 400), stream(16 << 20, 4), launch})
    text += to_json_line(r) + "\n";
  GpuSpec gpu;
  gpu.memory_bandwidth = BytesPerSecond{3.35e12};
  const std::vector<Ceiling> found = ceilings_of(parse_records(text, "m.jsonl"), &gpu);
  REQUIRE(found.size() == 3);
  CHECK(found[0].name == "memory, read");
  CHECK(found[0].value == doctest::Approx(1073741824.0 / 400e-6 / 1e12));
  CHECK(found[0].datasheet.value() == 3.35);
  CHECK(found[1].name == "L2, read");
  CHECK(found[1].value == doctest::Approx(16777216.0 / 4e-6 / 1e12));
  CHECK(found[2].name == "kernel inside a graph");
  CHECK(found[2].value == 11.5);
}
