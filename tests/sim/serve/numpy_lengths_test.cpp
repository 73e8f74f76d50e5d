#include "sim/serve/numpy_lengths.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/config_reader.h"
#include "tests/base/messages.h"

using namespace roofcast;

namespace {

WorkloadSpec workload(const std::string& keys) {
  return parse_workload(ConfigReader(
      parse_config_text("{arrivals: {process: closed_loop, concurrency: 4}, requests: 40, " + keys + "}", "w.yaml"),
      "a workload"));
}

constexpr const char* kUniform =
    "prompt_tokens: {distribution: uniform, min: 80, max: 100}, "
    "output_tokens: {distribution: uniform, min: 8, max: 10}";

}  // namespace

TEST_CASE("NumPy's lengths: integers are drawn as NumPy draws them") {
  std::mt19937 twister(0);
  // np.random.seed(0); np.random.randint(0, 10, size=5)
  for (const int expected : {5, 0, 3, 3, 7}) CHECK(draw_as_numpy(twister, 0, 9) == expected);
  CHECK(draw_as_numpy(twister, 4, 4) == 4);  // takes nothing from the generator
  std::mt19937 again(0), other(0);
  CHECK(draw_as_numpy(again, 7, 7) == 7);
  CHECK(draw_as_numpy(again, 0, 9) == draw_as_numpy(other, 0, 9));
  // A range of powers of two refuses nothing: one word each, its lowest bits.
  std::mt19937 words(3), drawn(3);
  for (int i = 0; i < 100; ++i) CHECK(draw_as_numpy(drawn, 10, 17) == 10 + static_cast<int>(words() & 7));
}

TEST_CASE("NumPy's lengths: prompts first, then outputs") {
  // InferenceX's client draws from int(0.8 L) to L: 819 to 1024, 6553 to 8192.
  const auto lengths = *numpy_lengths({.min = 819, .max = 1024}, {.min = 6553, .max = 8192}, 4000, 1.0);
  REQUIRE(lengths.size() == 4000);
  int shortest = 1 << 20, longest = 0, outputs = 1 << 20;
  for (const RequestLengths& r : lengths) {
    shortest = std::min(shortest, r.prompt_tokens), longest = std::max(longest, r.prompt_tokens);
    outputs = std::min(outputs, r.output_tokens);
  }
  CHECK(shortest == 819);
  CHECK(longest == 1024);
  CHECK(outputs >= 6553);
  std::mt19937 twister(0);
  for (const RequestLengths& r : lengths) CHECK(r.prompt_tokens == draw_as_numpy(twister, 819, 1024));
  for (const RequestLengths& r : lengths) CHECK(r.output_tokens == draw_as_numpy(twister, 6553, 8192));
  // The prompts of a run do not depend on the length of its outputs, and grow as the engine saw them.
  const auto others = *numpy_lengths({.min = 819, .max = 1024}, {.min = 819, .max = 1024}, 4000, 2.0);
  for (std::size_t i = 0; i < lengths.size(); ++i) CHECK(others[i].prompt_tokens == 2 * lengths[i].prompt_tokens);
  CHECK(numpy_lengths({.min = 1, .max = 1}, {.min = 1, .max = 1}, 0, 1.0)->empty());
}

TEST_CASE("NumPy's lengths: a workload selects them by a key") {
  const WorkloadSpec plain = workload(kUniform);
  CHECK(plain.listed == nullptr);
  CHECK(plain.prompt_text == 1.0);
  const WorkloadSpec listed = workload(std::string(kUniform) + ", drawn_as: numpy");
  REQUIRE(listed.listed != nullptr);
  const auto expected = *numpy_lengths({.min = 80, .max = 100}, {.min = 8, .max = 10}, 40, 1.0);
  REQUIRE(listed.listed->size() == 40);
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK((*listed.listed)[i].prompt_tokens == expected[i].prompt_tokens);
    CHECK((*listed.listed)[i].output_tokens == expected[i].output_tokens);
  }
  // They are what the source sends.
  const auto source = make_source(listed, 17);
  for (Request request; source->next(request);) {
    const RequestLengths& lengths = expected.at(static_cast<std::size_t>(request.id));
    CHECK(request.prompt_tokens == lengths.prompt_tokens);
    CHECK(request.output_tokens == lengths.output_tokens);
  }
}

TEST_CASE("NumPy's lengths: prompts that reach the server longer than the client counted") {
  const WorkloadSpec grown = workload(std::string(kUniform) + ", drawn_as: numpy, token_growth: 2.5, text_growth: 1.5");
  const auto drawn = *numpy_lengths({.min = 80, .max = 100}, {.min = 8, .max = 10}, 40, 1.0);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    CHECK((*grown.listed)[i].prompt_tokens == std::lround(2.5 * drawn[i].prompt_tokens));
    CHECK((*grown.listed)[i].output_tokens == drawn[i].output_tokens);
  }
  CHECK(grown.prompt_tokens.longest() == 250);  // the law tells the longest: 2.5 x 100
  CHECK(grown.output_tokens.longest() == 10);
  CHECK(grown.prompt_text == doctest::Approx(1.5 / 2.5));  // the text grew less: of a token, 0.6
  // Without a list of lengths as well.
  const WorkloadSpec fixed = workload("prompt_tokens: 100, output_tokens: 10, token_growth: 3");
  CHECK(fixed.prompt_tokens.longest() == 300);
  CHECK(fixed.listed == nullptr);
}

TEST_CASE("NumPy's lengths: unsupported distributions are refused") {
  const auto refused = [](const std::string& keys) { return message_of([&] { workload(keys); }); };
  CHECK(refused("prompt_tokens: 100, output_tokens: 10, drawn_as: numpy")
            .find("'drawn_as: numpy' needs prompt and output lengths of 'distribution: uniform'") != std::string::npos);
  CHECK(refused("prompt_tokens: {distribution: lognormal, mean: 100, cv: 1}, output_tokens: 10, token_growth: 2")
            .find("'token_growth' needs prompt lengths that are fixed or uniform") != std::string::npos);
  CHECK(refused(std::string(kUniform) + ", drawn_as: numpi").find("nearest is 'numpy'") != std::string::npos);
  const std::string endless = message_of([] {
    parse_workload(ConfigReader(parse_config_text("{arrivals: {process: closed_loop, concurrency: 4}, duration: 60 s, "
                                                  "drawn_as: numpy, " +
                                                      std::string(kUniform) + "}",
                                                  "w.yaml"),
                                "a workload"));
  });
  CHECK(endless.find("'drawn_as: numpy' needs 1 to 1000000 requests") != std::string::npos);
}
