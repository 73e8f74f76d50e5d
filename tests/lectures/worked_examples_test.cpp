// The tables of `roofcast lecture`: each holds the numbers that the lectures print, or those that they ought to.
#include <cmath>

#include "lecture.h"
#include "sim/plan/lectures/lecture.h"
#include "tests/base/messages.h"

using namespace lecture;

namespace {

std::vector<LectureTable> shown(const std::string& name, std::vector<std::string> inputs = {}) {
  return tables_of(lecture_named(name), inputs);
}
double cell(const LectureTable& table, std::size_t row, std::size_t column) {
  REQUIRE(row < table.rows.size());
  REQUIRE(column < table.rows[row].size());
  REQUIRE(table.rows[row][column].is_number);
  return table.rows[row][column].number;
}

}  // namespace

TEST_CASE("worked examples: the tables of each lecture are consistent, and have sources") {
  for (const Lecture& one : lectures()) {
    INFO(one.name);
    CHECK(!one.sources.empty());
    for (const LectureTable& table : shown(std::string(one.name))) {
      CHECK(!table.rows.empty());
      for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
      for (const auto& row : table.rows) {
        for (const LectureCell& value : row) CHECK(std::isfinite(value.number));
      }
    }
  }
}

TEST_CASE("worked examples: INT8 of 0.5, -0.2, 0, -1 is 64, -25, 0, -127 in 8 of 16 bytes, off by 0.0039") {
  const auto tables = shown("quantization");
  const double integers[] = {64, -25, 0, -127};
  for (std::size_t i = 0; i < 4; ++i) CHECK(cell(tables[0], i, 1) == integers[i]);
  CHECK(cell(tables[2], 0, 1) == 16);
  CHECK(cell(tables[2], 1, 1) == 8);
  CHECK(cell(tables[2], 1, 2) == within(0.0039, 0.02));
  CHECK(cell(tables[2], 2, 2) == within(0.0593, 0.001));
  // NF4: -1 is level 0 exactly, 0 is level 7; 0.5 lies between 0.4407 and 0.5626, nearer to the first
  CHECK(cell(tables[1], 3, 2) == 0);
  CHECK(cell(tables[1], 2, 2) == 7);
  CHECK(cell(tables[1], 0, 1) == within(0.4407, 0.001));
  CHECK(cell(shown("quantization", {"weights=1,1000", "bits=4"})[0], 0, 1) == 0);  // an outlier wastes the range
}

TEST_CASE("worked examples: teacher .81 .11 .08 at T = 4, loss a CE + (1 - a) T^2 KL") {
  const auto tables = shown("distillation", {"temperature=4"});
  CHECK(cell(tables[0], 0, 1) == within(0.806, 0.001));
  CHECK(cell(tables[0], 0, 2) == within(0.560, 0.001));
  const double ce = cell(tables[1], 0, 1), kl = cell(tables[1], 0, 2);
  CHECK(cell(tables[1], 0, 3) == within(0.5 * ce + 0.5 * 16 * kl, 1e-9));
}

TEST_CASE("worked examples: rejection sampling keeps 0.6 and 1.0, and gives 0.3 and 0.7") {
  const auto tables = shown("rejection-sampling");
  CHECK(cell(tables[0], 0, 3) == within(0.6, 1e-12));
  CHECK(cell(tables[0], 1, 3) == 1.0);
  CHECK(cell(tables[0], 0, 5) == within(0.3, 1e-12));
  CHECK(std::abs(cell(tables[0], 0, 6) - 0.3) < 0.01);
  CHECK(cell(tables[1], 0, 0) == within(0.8, 1e-12));
}

TEST_CASE("worked examples: speculation, waste, batching, attention and latents") {
  CHECK(cell(shown("speculation", {"drafts=4"})[0], 0, 1) == within(3.3616, 1e-6));
  CHECK(cell(shown("speculation", {"drafts=4"})[0], 0, 3) == within(2.334, 1e-3));
  CHECK(cell(shown("cache-waste")[0], 0, 2) == within(0.84));
  // A of 500 tokens and B of 10 in two places: both answers take 500 steps, and B's place idles 490 of them.
  const auto batching = shown("batching");
  CHECK(cell(batching[0], 0, 1) == 500);
  CHECK(cell(batching[0], 0, 4) == within(0.49, 1e-9));
  CHECK(cell(batching[0], 0, 2) == 2 * 599);
  CHECK(cell(batching[0], 1, 2) == 2 * 100 + 499 + 9);  // selective: nothing is padding
  CHECK(cell(batching[0], 1, 3) == 0);
  // With a third request its place is taken at once: 10 + 490 steps instead of 500 + 490.
  const auto three = shown("batching", {"prompts=1", "outputs=500,10,490"});
  CHECK(cell(three[0], 0, 1) == 990);
  CHECK(cell(three[0], 1, 1) == 500);
  CHECK(cell(shown("attention")[0], 0, 1) == within(134.2, 1e-3));
  CHECK(cell(shown("attention")[0], 0, 2) == within(8590, 1e-3));
  // 128 heads x 1088 x 2 over 1152 B; expanding each latent takes 2 x 512 x 128 x 256 FLOP a token more
  const auto latent = shown("latent-attention");
  CHECK(cell(latent[0], 0, 3) == within(241.8, 1e-3));
  CHECK(cell(latent[1], 0, 0) == within((2.0 * 512 * 128 * 256 + 128 * 640.0) / (128 * 2176.0), 1e-9));
  CHECK(cell(shown("roofline")[0], 3, 1) == within(1727, 1e-3));
}

TEST_CASE("worked examples: formats are ordered by size, with their cost") {
  const LectureTable table = shown("formats").front();
  const auto row = [&](const std::string& name) {
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      if (table.rows[i][0].text == name) return i;
    }
    FAIL(name);
    return std::size_t{0};
  };
  CHECK(cell(table, row("fp32"), 1) == within(32, 1e-9));
  CHECK(cell(table, row("bf16"), 4) == 1);
  double last = 1e9;
  for (const char* name : {"fp32", "bf16", "gguf_q8_0", "gguf_q6_k", "gguf_q5_k_m", "gguf_q4_k_m", "gguf_q3_k_m",
                           "gguf_q2_k", "gguf_iq2_xs"}) {
    INFO(name);
    CHECK(cell(table, row(name), 2) < last);
    last = cell(table, row(name), 2);
  }
  CHECK(cell(table, row("gguf_q4_k_m"), 2) == within(4.58 * 1.0737, 0.02));  // GiB of the file of Llama 3 8B
  CHECK(table.rows[row("gguf_q2_k")][5].text == "+56.4 % WikiText-2 perplexity");
}

TEST_CASE("worked examples: bad inputs are refused with a reason") {
  const auto refused = [](const std::string& name, const std::string& input) {
    return message_of([&] { shown(name, {input}); });
  };
  CHECK(message_of([] { shown("quantisation"); }).find("nearest is 'quantization'") != std::string::npos);
  CHECK(refused("quantization", "bit=4").find("unknown input 'bit'; nearest is 'bits'") != std::string::npos);
  CHECK(refused("quantization", "bits=17").find("at most 16") != std::string::npos);
  CHECK(refused("quantization", "weights=a") == "--set weights: must be numbers, such as 0.5,-0.2,0,-1; got 'a'");
  CHECK(refused("quantization", "weights").find("write NAME=NUMBER") != std::string::npos);
  CHECK(refused("quantization", "weights=nan").find("must be numbers") != std::string::npos);
  CHECK(refused("rejection-sampling", "target=0.3,0.3").find("add up to 0.6, not 1") != std::string::npos);
  CHECK(refused("rejection-sampling", "draft=1").find("1 words for the target's 2") != std::string::npos);
  CHECK(refused("distillation", "label=3").find("3 classes") != std::string::npos);
  CHECK(refused("cache-waste", "slot=100").find("cannot hold") != std::string::npos);
  CHECK(refused("batching", "outputs=1e9").find("at most 1e+07 tokens in all") != std::string::npos);
}

TEST_CASE("worked examples: the cache of Llama-2-70B, 1,342,177,280 B at 4,096 tokens, and what it saves") {
  const auto tables = shown("kv-cache");
  CHECK(cell(tables[0], 0, 1) == 327680);
  CHECK(cell(tables[0], 0, 2) == within(1.342177280, 1e-9));
  CHECK(cell(tables[0], 2, 1) == 8 * 327680);  // 64 heads
  CHECK(cell(tables[1], 3, 2) == within(687.2, 0.001));
  CHECK(cell(tables[1], 3, 3) == within(4.9, 0.01));
  CHECK(cell(tables[2], 0, 1) == 101);
  CHECK(cell(tables[2], 1, 1) == 501);
  CHECK(cell(tables[3], 0, 0) == 1081216);
  CHECK(cell(tables[3], 0, 1) == within(4223.5, 1e-9));
}

TEST_CASE("worked examples: the configurator gives Llama-2-13B's 8.0, 23.8 and 71.9 ms of 1, 64 and 256 sequences") {
  const auto tables = shown("configurator", {"context=1024", "batch=1,64,256"});
  const double ms[] = {8.01, 23.79, 71.87}, rate[] = {124.8, 2690, 3562};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(cell(tables[0], i, 4) == within(ms[i], 0.001));
    CHECK(cell(tables[0], i, 6) == within(rate[i], 0.001));
  }
  CHECK(tables[0].rows[1][3].text == "yes");  // 79.7 of 80 GB
  CHECK(tables[0].rows[2][3].text == "no");
  CHECK(cell(tables[1], 0, 3) == 64);  // (80 - 26) / 0.8389
  // k 4, a 0.8, r 0.11: 3.3616 / 1.44 = 2.334 times as fast
  const auto drafted = shown("configurator", {"context=1024", "batch=1", "drafts=4"});
  CHECK(cell(tables[0], 0, 4) / cell(drafted[0], 0, 4) == within(2.334, 0.001));
  // 400 sequences of one token: 2 x 13e9 x 400 / 989e12 = 10.5 ms of products, more than the 7.9 of the reads
  CHECK(shown("configurator", {"context=1", "batch=400"})[0].rows[0][5].text == "compute");
}

TEST_CASE("worked examples: torch.compile and CUDA graphs gain as long as launches bind") {
  const auto tables = shown("launches");
  CHECK(cell(tables[0], 0, 2) == 1280);
  CHECK(cell(tables[0], 0, 4) == within(7.68, 0.001));          // 1,280 launches of 6 us
  CHECK(cell(tables[0], 1, 4) == within(13.48 / 2.04, 0.001));  // the weights bind
  CHECK(cell(tables[0], 1, 6) == within(7.68 * 2.04 / 13.48, 0.001));
  CHECK(cell(tables[0], 3, 6) == cell(tables[0], 2, 6));
}
