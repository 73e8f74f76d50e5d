#include "sim/plan/measured/measurement_floor.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace roofcast {
namespace {

MeasurementFloor floor_of(const std::string& text, const std::string& group, const std::string& metric) {
  const CsvTable table = CsvTable::parse(text, "r.csv");
  return measurement_floors(read_measured_runs(table), table).at({group, metric});
}

}  // namespace

TEST_CASE("measurement floor: one value for two measurements errs by half of what the smaller falls short") {
  CHECK(least_error({}) == 0);
  CHECK(least_error({7}) == 0);
  CHECK(least_error({100, 200}) == doctest::Approx(0.25));
  CHECK(least_error({100, 100, 400}) == doctest::Approx(0.25));
}

TEST_CASE("measurement floor: days, versions, names and predictions do not make other settings, launch settings do") {
  const MeasurementFloor floor = floor_of(
      "id,model,gpu,engine,engine_version,measured,isl,osl,concurrency,tp,max_num_seqs,ttft_ms,tpot_ms,predicted_ttft_"
      "ms\n"
      "a,qwen3-8b,h100-sxm,vllm,0.11.0,2025-11-01,500,50,4,1,64,100,10,1\n"
      "b,qwen3-8b,h100-sxm,vllm,0.12.0,2025-12-01,500,50,4,1,64,200,10,2\n"
      "c,qwen3-8b,h100-sxm,vllm,0.12.0,2025-12-01,500,50,4,1,32,900,10,3\n",
      "qwen3-8b h100-sxm vllm", "ttft_ms");
  CHECK(floor.repeated == 2);
  CHECK(floor.repeats == doctest::Approx(0.25));
  CHECK(floor.between == 0);
}

TEST_CASE("measurement floor: a run between two neighbours is interpolated, logarithm over logarithm") {
  const std::string head = "model,gpu,engine,isl,osl,concurrency,tp,ttft_ms,tpot_ms\n";
  const auto row = [](int osl, int concurrency, double tpot) {
    return fmt::format("qwen3-8b,h100-sxm,vllm,500,{},{},1,100,{}\n", osl, concurrency, tpot);
  };
  const std::string line = head + row(50, 1, 10) + row(50, 4, 25) + row(50, 16, 40);
  const MeasurementFloor one = floor_of(line, "qwen3-8b h100-sxm vllm", "tpot_ms");
  CHECK(one.between == 1);
  CHECK(one.neighbours == doctest::Approx(0.2));  // 20 for 25
  // Two axes: the estimates 20 and 31.25 have the geometric mean 25.
  const MeasurementFloor two =
      floor_of(line + row(25, 4, 31.25) + row(100, 4, 31.25), "qwen3-8b h100-sxm vllm", "tpot_ms");
  CHECK(two.between == 1);
  CHECK(two.neighbours == doctest::Approx(0.0));
}

TEST_CASE("measurement floor: repeats of a neighbour count as their geometric mean, whatever their order") {
  const std::string head = "model,gpu,engine,isl,osl,concurrency,tp,ttft_ms,tpot_ms\n";
  const auto row = [](int concurrency, double tpot) {
    return fmt::format("qwen3-8b,h100-sxm,vllm,500,50,{},1,100,{}\n", concurrency, tpot);
  };
  // 10 between 5 and 20, and 40 at the other side: 20 for 25.
  for (const std::string& repeats : {row(1, 5) + row(1, 20), row(1, 20) + row(1, 5)}) {
    const MeasurementFloor floor =
        floor_of(head + repeats + row(4, 25) + row(16, 40), "qwen3-8b h100-sxm vllm", "tpot_ms");
    CHECK(floor.between == 1);
    CHECK(floor.neighbours == doctest::Approx(0.2));
  }
}

TEST_CASE("measurement floor: all prompts at once have no place between rates, and blank values are no rows") {
  const MeasurementFloor floor = floor_of(
      "source,version,model,gpu,engine,weight_dtype,kv_dtype,tp,pp,isl,osl,request_rate,metric,value\n"
      "s,v0.14.0,llama-3.1-8b,h100-sxm,trtllm,bf16,bf16,1,1,467,256,2.0,ttft_ms,60\n"
      "s,v0.14.0,llama-3.1-8b,h100-sxm,trtllm,bf16,bf16,1,1,467,256,8.0,ttft_ms,\n"
      "s,v0.14.0,llama-3.1-8b,h100-sxm,trtllm,bf16,bf16,1,1,467,256,8.0,ttft_ms,62\n"
      "s,v0.14.0,llama-3.1-8b,h100-sxm,trtllm,bf16,bf16,1,1,467,256,inf,ttft_ms,4000\n",
      "llama-3.1-8b h100-sxm trtllm", "ttft_ms");
  CHECK(floor.repeated == 0);
  CHECK(floor.between == 0);
}

}  // namespace roofcast
