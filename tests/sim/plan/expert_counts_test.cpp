#include "sim/plan/expert_counts.h"

#include <array>
#include <cmath>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_parse.h"
#include "base/error.h"
#include "base/normal.h"
#include "base/random.h"
#include "sim/plan/scenario.h"
#include "sim/step/deployment.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;

namespace {

/// 128 experts, 8 a token.
ModelSpec model() { return parse_model(load_named("models", "qwen3-30b-a3b", {})); }

double skew_of(const std::string& text) { return skew_of_counts(CsvTable::parse(text, "counts.csv"), model()); }

std::string error_of(const std::string& text) {
  try {
    skew_of(text);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

/// A million tokens by the law: q(e) = 1 - exp(-c w(e)), w at the normal quantiles, c such that they sum to 8.
std::string drawn(double skew, const std::string& layer) {
  double low = 0, high = 10;
  const auto chance = [&](double c, int e) {
    return 1 - std::exp(-c * std::exp(skew * normal_quantile((e + 0.5) / 128)));
  };
  for (int i = 0; i < 80; ++i) {
    double sum = 0;
    for (int e = 0; e < 128; ++e) sum += chance(0.5 * (low + high), e);
    (sum < 8 ? low : high) = 0.5 * (low + high);
  }
  std::string out;
  for (int e = 0; e < 128; ++e) out += fmt::format("{},{},{:.0f}\n", layer, (e * 37) % 128, 1e6 * chance(low, e));
  return out;
}

}  // namespace

TEST_CASE("expert counts: the law is found in counts that were drawn from it, in any order") {
  for (const double skew : {0.2, 1.0, 1.7})
    CHECK(skew_of("layer,expert,tokens\n" + drawn(skew, "3")) == doctest::Approx(skew).epsilon(1e-3));
  CHECK(skew_of("layer,expert,tokens\n" + drawn(0.5, "3") + drawn(1.5, "4")) == doctest::Approx(1.0).epsilon(1e-3));
}

TEST_CASE("expert counts: even counts have no skew, and more than the most skew is an error") {
  std::string even = "expert,tokens\n";
  for (int e = 0; e < 128; ++e) even += fmt::format("{},500\n", e);
  CHECK(skew_of(even) == doctest::Approx(0.0));
  // The others are never chosen.
  CHECK(error_of("expert,tokens\n0,500\n1,500\n").find("more than a skew of 4") != std::string::npos);
}

TEST_CASE("expert counts: what differs by chance is no skew") {
  // Tokens that choose 8 of 128 experts at random; chance alone spreads counts of the mean m by 1/m.
  const auto counts = [](int tokens) {
    Random random(3);
    std::array<int, 128> got{};
    for (int t = 0; t < tokens; ++t) {
      std::array<bool, 128> chosen{};
      for (int k = 0; k < 8;) {
        const auto e = static_cast<std::size_t>(random.uniform_integer(0, 127));
        if (!chosen[e]) chosen[e] = true, ++got[e], ++k;
      }
    }
    std::string out = "expert,tokens\n";
    for (int e = 0; e < 128; ++e) out += fmt::format("{},{}\n", e, got[static_cast<std::size_t>(e)]);
    return out;
  };
  // 125 per expert: a skew of sqrt(1/125) = 0.09 if chance were read as one.
  CHECK(skew_of(counts(2000)) < 0.05);
  CHECK(error_of(counts(200)) ==
        "counts.csv:1:1: 12.5 tokens per expert do not tell a skew from chance: count at least 100 per expert");
  // A skew that stands out is found in few tokens too: a thousandth of drawn(1.7).
  std::string few = "expert,tokens\n";
  const CsvTable all = CsvTable::parse("layer,expert,tokens\n" + drawn(1.7, "3"), "counts.csv");
  for (std::size_t row = 0; row < all.rows(); ++row)
    few += fmt::format("{},{:.0f}\n", all.number(row, 1), all.number(row, 2) / 1000);
  CHECK(skew_of(few) == doctest::Approx(1.7).epsilon(0.03));
}

TEST_CASE("expert counts: what is not one says where") {
  CHECK(error_of("expert,tokens\n0,5\n128,5\n") == "counts.csv:3:1: qwen3-30b-a3b has the experts 0 to 127, got 128");
  CHECK(error_of("expert,tokens\n0,5\n0,6\n") == "counts.csv:3:1: expert 0 is counted twice");
  CHECK(error_of("expert,tokens\n0,-5\n") == "counts.csv:2:2: must be at least 0");
  CHECK(error_of("expert,tokens\n0,many\n").find("counts.csv:2:2") == 0);
  CHECK(error_of("expert,rows\n0,5\n").find("tokens") != std::string::npos);
  CHECK(error_of("expert,tokens\n0,0\n").find("has no tokens") != std::string::npos);
}

TEST_CASE("expert counts: a scenario names them beside itself, and has their skew") {
  const TemporaryFolder folder;
  folder.write("counts.csv", "layer,expert,tokens\n" + drawn(0.5, "3"));
  const auto scenario = [&](const std::string& routing) {
    return read_scenario(
        parse_config_file(folder.write("s.yaml", "model: qwen3-30b-a3b\ngpu: h100-sxm\nrouting: " + routing + "\n")),
        Fidelity::kCalibrated);
  };
  const Routing counted = scenario("{counts: counts.csv}").deployment->routing;
  CHECK(counted.kind == Routing::Kind::kPopularity);
  CHECK(counted.skew == doctest::Approx(0.5).epsilon(1e-3));
  CHECK(scenario("{skew: 0.7}").deployment->routing.skew == 0.7);
  CHECK_THROWS_AS((void)scenario("{counts: counts.csv, skew: 0.7}"), ConfigError);
  CHECK_THROWS_AS((void)scenario("{counts: other.csv}"), ConfigError);
}
