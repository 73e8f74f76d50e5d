#include "sim/plan/measured/llama_bench.h"

#include <cmath>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/json_file.h"
#include "base/lines.h"
#include "base/read_file.h"
#include "base/text.h"
#include "sim/plan/measured/local_runs.h"
#include "sim/plan/what_fits.h"
#include "sim/step/deployment.h"
#include "sim/step/step_model.h"

namespace roofcast {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kFileLimit = std::size_t{1} << 26;
constexpr double kMostTokens = 1 << 20;

/// One test, by the names of llama-bench's fields; `field` gives a number or throws.
template <class Field>
LlamaTest test_of(const Field& field, const SourceLocation& location) {
  LlamaTest test;
  const auto tokens = [&](const char* name) {
    const double value = field(name);
    if (!(value >= 0 && value <= kMostTokens && value == std::floor(value)))
      throw ConfigError(location,
                        fmt::format("'{}' must be a number of tokens up to {}, got {}", name, kMostTokens, value));
    return static_cast<int>(value);
  };
  test.prompt = tokens("n_prompt"), test.output = tokens("n_gen"), test.depth = tokens("n_depth");
  test.tokens_per_s = field("avg_ts");
  if (test.prompt + test.output == 0) throw ConfigError(location, "a test needs 'n_prompt' or 'n_gen'");
  if (!(test.tokens_per_s > 0)) throw ConfigError(location, "'avg_ts' must be more than 0");
  return test;
}

void read_json_test(const Json& json, const SourceLocation& location, LlamaBench& bench) {
  const auto field = [&](const char* name) {
    const auto found = json.find(name);
    if (found != json.end() && found->is_number()) return found->get<double>();
    if (found == json.end() && std::string_view(name) == "n_depth") return 0.0;  // releases before 2025-04
    throw ConfigError(location, fmt::format("missing number '{}' of a test of llama-bench", name));
  };
  bench.tests.push_back(test_of(field, location));
  for (const char* name : {"model_filename", "model_type"}) {
    if (bench.model.empty() && json.contains(name) && json[name].is_string())
      bench.model = json[name].get<std::string>();
  }
}

bool is_test(const Json& json) { return json.is_object() && json.contains("avg_ts") && json.contains("n_gen"); }

void read_csv(const std::string& text, LlamaBench& bench) {
  const CsvTable table = CsvTable::parse(text, bench.path);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto field = [&](const char* name) {
      if (!table.find(name) && std::string_view(name) == "n_depth") return 0.0;
      return table.number(row, table.column(name));
    };
    bench.tests.push_back(test_of(field, table.location(row, 0)));
  }
  if (table.rows() > 0 && table.find("model_filename"))
    bench.model = std::string(table.at(0, table.column("model_filename")));
}

double predicted(StepModel& model, const LlamaTest& test) {
  double seconds = 0;
  if (test.prompt > 0) seconds += prompt_time(model, test.prompt, test.depth).base();
  if (test.output > 0) {
    const double context = test.depth + test.prompt + (test.output + 1) / 2.0;  // of the middle step
    seconds += test.output * token_time(model, context).base();
  }
  return (test.prompt + test.output) / seconds;
}

}  // namespace

std::string LlamaTest::name() const {
  std::string out = prompt > 0 ? fmt::format("pp{}", prompt) : "";
  if (output > 0) out += fmt::format("{}tg{}", out.empty() ? "" : "+", output);
  return depth > 0 ? fmt::format("{}_at_d{}", out, depth) : out;
}

std::optional<LlamaBench> read_llama_bench(const std::string& path) {
  const std::string text = read_file(path, kFileLimit);
  const std::string head = text.substr(0, text.find('\n'));
  LlamaBench bench{.path = path, .model = "", .tests = {}};
  if (head.starts_with("build_commit,") && head.find("avg_ts") != std::string::npos) {
    read_csv(text, bench);
  } else if (text.find("\"avg_ts\"") == std::string::npos) {
    return std::nullopt;
  } else if (trim(text).starts_with('[')) {
    const Json list = parse_json(path, text, "the JSON of llama-bench");
    for (const Json& json : list) {
      if (!is_test(json))
        throw ConfigError(SourceLocation{path, 0, 0}, "a test of llama-bench has 'n_prompt', 'n_gen' and 'avg_ts'");
      read_json_test(json, SourceLocation{path, 0, 0}, bench);
    }
  } else {
    bool all_tests = true;
    each_line(text, [&](std::string_view line, int number) {
      if (!all_tests || trim(line).empty()) return;
      const Json json = parse_json(path, std::string(line), "a line of llama-bench -o jsonl");
      all_tests = is_test(json);
      if (all_tests) read_json_test(json, SourceLocation{path, number, 0}, bench);
    });
    if (!all_tests) return std::nullopt;
  }
  if (bench.tests.empty()) throw ConfigError(SourceLocation{path, 0, 0}, "no test of llama-bench: did it finish?");
  return bench;
}

Comparison compare_with_llama_bench(const Scenario& scenario, const LlamaBench& bench) {
  const Deployment& d = *scenario.deployment;
  if (d.roofline() == nullptr)
    throw ConfigError(SourceLocation{bench.path, 0, 0},
                      fmt::format("a run of llama.cpp, and the scenario's engine is {}; --engine llama-cpp compares it "
                                  "with that",
                                  d.engine.name));
  if (d.memory.infeasible) throw Unavailable(d.memory.infeasible->reason + what_would_fit(d));
  Comparison c;
  c.run.path = bench.path, c.run.tool = "llama-bench", c.run.model = bench.model;
  check_model(bench.model, d.model.name, c.mismatches);
  StepModel model(scenario.deployment);
  double sum = 0;
  for (const LlamaTest& test : bench.tests) {
    const double speed = predicted(model, test);
    c.metrics.push_back({test.name() + "_tokens_per_s", test.tokens_per_s, std::nullopt, speed});
    sum += std::abs(std::log(speed / test.tokens_per_s));
  }
  c.distance = c.distance_as_written = sum / static_cast<double>(bench.tests.size());
  for (const LoadMismatch& m : c.mismatches)
    c.findings.push_back(fmt::format("{}: the scenario has {}, the run {}", m.what, m.scenario, m.run));
  c.findings.push_back(fmt::format("the mean difference is {:.1f} %", 100 * std::expm1(c.distance)));
  return c;
}

}  // namespace roofcast
