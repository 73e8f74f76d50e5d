#include "hw/parameters.h"

#include <doctest/doctest.h>

#include <string>

using namespace roofcast;

namespace {

struct Toy {
  double launch_us = 2.5;
  double bandwidth_fraction = 0.8;
  static std::span<const Parameter<Toy>> fields() {
    static constexpr Parameter<Toy> kFields[] = {
        {"launch_us", &Toy::launch_us, 0.0, 100.0, Transfer::kCycles, "fixed cost of a launch"},
        {"bandwidth_fraction", &Toy::bandwidth_fraction, 0.01, 1.0, Transfer::kMemoryShare,
         "reached share of the memory bandwidth"},
    };
    return kFields;
  }
};

Fitted<Toy> read(const std::string& yaml) {
  return read_fitted<Toy>(ConfigReader(parse_config_text(yaml, "toy.yaml"), "a toy"));
}

std::string error_of(const std::string& yaml) {
  try {
    read(yaml);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("parameters: what is absent keeps its prior and says so") {
  const Fitted<Toy> toy = read("{launch_us: 4}");
  CHECK(toy.value.launch_us == 4.0);
  CHECK(toy.value.bandwidth_fraction == 0.8);
  CHECK(toy.record.provenance == Provenance::kDatasheet);
  CHECK(toy.record.discrepancy == 0.15);
  CHECK(toy.record.standard_errors.empty());
}

TEST_CASE("parameters: the record of the fit is read") {
  const Fitted<Toy> toy = read(
      "launch_us: 3\n"
      "bandwidth_fraction: 0.9\n"
      "fit:\n"
      "  standing: measured\n"
      "  source: engine 1.0\n"
      "  rows: 120\n"
      "  mape: 0.055\n"
      "  discrepancy: 0.07\n"
      "  standard_errors: [0.1, 0.02]\n");
  CHECK(toy.record.provenance == Provenance::kMeasured);
  CHECK(toy.record.source == "engine 1.0");
  CHECK(toy.record.rows == 120);
  CHECK(toy.record.mape == 0.055);
  CHECK(toy.record.discrepancy == 0.07);
  CHECK(toy.record.standard_errors == std::vector<double>{0.1, 0.02});
}

TEST_CASE("parameters: standard errors may be listed by name, in any order") {
  const Fitted<Toy> toy =
      read("{fit: {standing: carried_over, standard_errors: {bandwidth_fraction: 0.02, launch_us: 0.1}}}");
  CHECK(toy.record.provenance == Provenance::kCarriedOver);
  CHECK(toy.record.standard_errors == std::vector<double>{0.1, 0.02});
  CHECK(read("{fit: {standard_errors: {launch_us: 0.1}}}").record.standard_errors == std::vector<double>{0.1, 0.0});
}

TEST_CASE("parameters: values that physics forbids are refused at their place") {
  CHECK(error_of("bandwidth_fraction: 1.2\n").starts_with("toy.yaml:1:21: "));
  CHECK(error_of("launch_us: -1\n").starts_with("toy.yaml:1:12: "));
  CHECK(error_of("launch_uss: 1\n").starts_with("toy.yaml:1:1: "));
  CHECK(error_of("launch_uss: 1\n").find("launch_us") != std::string::npos);
  CHECK(error_of("fit: {standing: guessed}\n").find("measured") != std::string::npos);
  CHECK(error_of("fit: {standard_errors: [0.1]}\n").find("2") != std::string::npos);
  CHECK(error_of("fit: {standard_errors: {launch: 0.1}}\n").find("launch_us") != std::string::npos);
}

TEST_CASE("parameters: standings have the names of the provenance") {
  CHECK(name_of(Provenance::kMeasured) == "measured");
  CHECK(name_of(Provenance::kCarriedOver) == "carried_over");
  CHECK(name_of(Provenance::kDatasheet) == "datasheet");
}
