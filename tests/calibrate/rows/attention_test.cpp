#include "calibrate/rows/attention.h"

#include <doctest/doctest.h>

#include <string>

#include "base/config_library.h"
#include "base/error_summary.h"
#include "calibrate/rows/latent_attention.h"
#include "tests/measured_data.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

const std::string kHeader =
    "engine,kernel,attn_dtype,kv_dtype,batch,context_len,heads,kv_heads,head_dim,sliding_window,latency_us\n";

CsvTable decode_table(const std::string& rows) { return CsvTable::parse(kHeader + rows, "decode.csv"); }

/// MAPE of the rows of the kernels that are in the fits, with the shipped constants.
double shipped_error(const std::string& data, const KernelOperator& op, const std::string& gpu,
                     const std::string& kernel) {
  const std::string path = data + "/kernels/" + gpu + "/" + std::string(op.name) + ".csv";
  const CsvTable table = CsvTable::read_file(path);
  const std::vector<Prediction> times = op.predict(table, load_benchmarked_gpu(load_named("hardware", gpu, {})));
  std::vector<double> predicted, measured;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (table.at(i, table.column("kernel")) != kernel) continue;
    predicted.push_back(times[i].time.in(kMicrosecond));
    measured.push_back(table.number(i, table.column("latency_us")));
  }
  return summarize(predicted, measured).mape;
}

}  // namespace

TEST_CASE("attention rows: what a table says") {
  const CsvTable table = decode_table("vllm-0.24.0,vllm_flash_attn_fa3,bfloat16,fp8,16,4096,32,8,128,0,40.5\n");
  const std::vector<DecodeRow> rows = read_decode_rows(table);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].shape.batch == 16);
  CHECK(rows[0].shape.mean_context == 4096);
  CHECK(rows[0].heads.kv_heads == 8);
  CHECK(rows[0].heads.value_dim == 128);
  CHECK(rows[0].heads.kv == Dtype::kFp8);
  CHECK(rows[0].header.maker == Maker::kVllm);
  CHECK(rows[0].header.latency.in(kMicrosecond) == doctest::Approx(40.5));
}

TEST_CASE("attention rows: more kv heads than heads is a fault of the table") {
  CHECK_THROWS_AS(read_decode_rows(decode_table("vllm-1,x,bfloat16,bfloat16,1,10,8,16,128,0,1\n")), ConfigError);
  CHECK_THROWS_AS(read_decode_rows(decode_table("vllm-1,x,bfloat16,bfloat16,0,10,8,8,128,0,1\n")), ConfigError);
}

TEST_CASE("attention rows: a table is known by its columns") {
  CHECK(operator_of(decode_table("")).name == "attention_decode");
  const CsvTable unwindowed =
      CsvTable::parse("engine,attn_dtype,kv_dtype,batch,seq_len,heads,kv_heads,head_dim,latency_us\n", "attention.csv");
  CHECK(operator_of(unwindowed).name == "attention_prefill");
  const CsvTable latent = CsvTable::parse("engine,attn_dtype,kv_dtype,batch,seq_len,heads,latency_us\n", "mla.csv");
  CHECK(operator_of(latent).name == "mla_prefill");
}

TEST_CASE("attention rows: the shipped constants price the measured kernels, on a sample") {
  CHECK(shipped_error(testing::kSampleData, attention_decode_operator(), "h100-sxm", "vllm_flash_attn_fa3") < 0.15);
  CHECK(shipped_error(testing::kSampleData, attention_decode_operator(), "b200-sxm", "torch_flow") < 0.15);
  CHECK(shipped_error(testing::kSampleData, attention_prefill_operator(), "h200-sxm", "torch_flow") < 0.15);
  CHECK(shipped_error(testing::kSampleData, latent_decode_operator(), "a100-sxm", "default") < 0.15);
  CHECK(shipped_error(testing::kSampleData, latent_prefill_operator(), "h100-sxm", "default") < 0.15);
}

TEST_CASE("attention rows: the shipped constants price the measured kernels") {
  if (!testing::there_or_skip(testing::kWholeData + "/kernels")) return;
  CHECK(shipped_error(testing::kWholeData, attention_decode_operator(), "h100-sxm", "vllm_flash_attn_fa3") < 0.075);
  CHECK(shipped_error(testing::kWholeData, attention_decode_operator(), "b200-sxm", "torch_flow") < 0.075);
  CHECK(shipped_error(testing::kWholeData, attention_prefill_operator(), "h200-sxm", "torch_flow") < 0.08);
  CHECK(shipped_error(testing::kWholeData, latent_decode_operator(), "a100-sxm", "default") < 0.05);
  CHECK(shipped_error(testing::kWholeData, latent_prefill_operator(), "h100-sxm", "default") < 0.08);
}
