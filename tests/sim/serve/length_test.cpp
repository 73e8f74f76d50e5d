// Distributions of prompt and output lengths.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "sim/serve/workload.h"
#include "tests/sim/serve/temporary_file.h"

using namespace roofcast;

namespace {

LengthSpec length(const std::string& yaml) { return parse_length(ConfigReader(parse_config_text(yaml, "l.yaml"))); }

std::string error_of(const std::string& yaml) {
  try {
    length(yaml);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

double drawn_mean(const LengthSpec& law, int draws) {
  Random random(7);
  double sum = 0.0;
  for (int i = 0; i < draws; ++i) sum += law.draw(random);
  return sum / draws;
}

}  // namespace

TEST_CASE("length: fixed and uniform") {
  const LengthSpec fixed = length("{distribution: fixed, value: 128}");
  Random random(1);
  CHECK(fixed.draw(random) == 128);
  CHECK(fixed.mean() == 128.0);
  CHECK(fixed.longest() == 128);

  const LengthSpec uniform = length("{distribution: uniform, min: 820, max: 1024}");
  CHECK(uniform.mean() == 922.0);  // (820 + 1024) / 2
  CHECK(uniform.longest() == 1024);
  int least = 10000, most = 0;
  for (int i = 0; i < 20000; ++i) {
    const int drawn = uniform.draw(random);
    least = std::min(least, drawn);
    most = std::max(most, drawn);
  }
  CHECK(least == 820);
  CHECK(most == 1024);
}

TEST_CASE("length: a lognormal has the requested mean and median") {
  // Cut so far out that it does not matter: sigma^2 = 2 ln(1155 / 1020) = 0.24860, sigma = 0.4986.
  const LengthSpec conversation = length("{distribution: lognormal, mean: 1155, p50: 1020, max: 100000}");
  const auto& law = std::get<LengthSpec::Lognormal>(conversation.law);
  CHECK(law.mu == doctest::Approx(std::log(1020.0)));
  CHECK(law.sigma == doctest::Approx(0.49860).epsilon(1e-4));
  CHECK(conversation.mean() == doctest::Approx(1155.0).epsilon(1e-5));
  CHECK(drawn_mean(conversation, 200000) == doctest::Approx(1155.0).epsilon(0.01));

  // A cut that bites: the mean is still the one asked for.
  const LengthSpec code = length("{distribution: lognormal, mean: 2048, p50: 1062, min: 3, max: 7437}");
  CHECK(code.mean() == doctest::Approx(2048.0).epsilon(1e-5));
  CHECK(code.longest() == 7437);
  CHECK(drawn_mean(code, 200000) == doctest::Approx(2048.0).epsilon(0.01));
}

TEST_CASE("length: a lognormal by mean and cv, and by mu and sigma") {
  // sigma^2 = ln(1 + 0.5^2) = 0.22314, p50 = 1000 / sqrt(1.25) = 894.43
  const LengthSpec by_cv = length("{distribution: lognormal, mean: 1000, cv: 0.5}");
  const auto& law = std::get<LengthSpec::Lognormal>(by_cv.law);
  CHECK(law.sigma == doctest::Approx(std::sqrt(0.223144)).epsilon(1e-5));
  CHECK(std::exp(law.mu) == doctest::Approx(894.427).epsilon(1e-5));
  CHECK(by_cv.mean() == doctest::Approx(1000.0).epsilon(1e-6));

  // exp(5 + 1/2) = 244.692; rounding moves the mean by far less than a token.
  const LengthSpec by_mu = length("{distribution: lognormal, mu: 5, sigma: 1}");
  CHECK(by_mu.mean() == doctest::Approx(244.692).epsilon(1e-4));
}

TEST_CASE("length: limits of a lognormal") {
  const LengthSpec point = length("{distribution: lognormal, mean: 300, p50: 300}");
  CHECK(point.mean() == 300.0);
  Random random(3);
  CHECK(point.draw(random) == 300);
  // Two values only: P(X >= 1.5) of a lognormal with median 1.5 is one half.
  const LengthSpec coin = length("{distribution: lognormal, mu: 0.405465108108164, sigma: 2, max: 2}");
  CHECK(coin.mean() == doctest::Approx(1.5));
  // The sum and the integral that replaces it far out agree.
  const LengthSpec wide = length("{distribution: lognormal, mean: 60000, p50: 30000, max: 1000000}");
  CHECK(wide.mean() == doctest::Approx(60000.0).epsilon(1e-6));
}

TEST_CASE("length: empirical values from a file next to the YAML") {
  const TemporaryFile list("lengths.txt", "10\n20\n\n60\n");
  const LengthSpec plain = length("{distribution: empirical, file: " + list.path() + "}");
  CHECK(plain.mean() == 30.0);  // (10 + 20 + 60) / 3
  CHECK(plain.longest() == 60);
  CHECK(drawn_mean(plain, 100000) == doctest::Approx(30.0).epsilon(0.02));

  const TemporaryFile table("lengths.csv", "in,out\n5,1\n7,2\n");
  const TemporaryFile yaml("w.yaml", "{distribution: empirical, file: " + table.name() + ", column: in}");
  CHECK(parse_length(ConfigReader(parse_config_file(yaml.path()))).mean() == 6.0);

  const TemporaryFile bad("bad.txt", "10\nten\n");
  CHECK(error_of("{distribution: empirical, file: " + bad.path() + "}") ==
        bad.path() + ":2: a length must be a whole number of tokens, at least 1, got 'ten'");
}

TEST_CASE("length: invalid values are errors at their source location") {
  CHECK(error_of("{distribution: uniform, min: 20, max: 10}") ==
        "l.yaml:1:39: 'max' must be at least 'min', got 10 < 20");
  CHECK(error_of("{distribution: lognormal, mean: 10, p50: 20}") ==
        "l.yaml:1:33: 'mean' of a lognormal must be at least its 'p50', got 10 < 20");
  CHECK(error_of("{distribution: lognormal, mean: 90, p50: 10, max: 100}").find("no lognormal with p50 10") !=
        std::string::npos);
  CHECK(error_of("{distribution: lognormal, mean: 90}").find("'mean' and 'p50', 'mean' and 'cv', or") !=
        std::string::npos);
  CHECK(error_of("{distribution: fixed, value: 0}").find("'value' must be between 1 and") != std::string::npos);
  CHECK(error_of("{distribution: fixed, value: 5, max: 7}").find("unknown key 'max'") != std::string::npos);
  CHECK(error_of("{distribution: normal, mean: 5}").find("unknown distribution 'normal'") != std::string::npos);
  CHECK(error_of("{distribution: empirical, file: nowhere.txt}").find("no such file 'nowhere.txt'") !=
        std::string::npos);
}

TEST_CASE("length: a distribution that overrides another ignores its keys") {
  const ConfigTree named = parse_config_text("{distribution: lognormal, mean: 200, p50: 100, max: 900}", "named.yaml");
  const ConfigTree mine = parse_config_text("{distribution: fixed, value: 64}", "mine.yaml");
  CHECK(parse_length(ConfigReader(overlay(named, mine))).mean() == 64.0);
}
