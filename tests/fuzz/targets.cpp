#include "tests/fuzz/targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "base/config_parse.h"
#include "base/csv.h"
#include "base/random.h"
#include "explore/server.h"
#include "reports/charts.h"
#include "reports/estimate_report.h"
#include "reports/html_page.h"
#include "reports/simulation_report.h"
#include "sim/plan/idle_settings.h"
#include "sim/plan/measured/bench_run.h"
#include "sim/plan/measured/run_scenario.h"
#include "sim/plan/search/plan_spec.h"
#include "sim/plan/search/services.h"
#include "sim/plan/search/sweep.h"
#include "sim/plan/search/sweep_store.h"
#include "sim/plan/spec_cache.h"
#include "sim/serve/traces.h"
#include "sim/step/deployment.h"
#include "tests/sim/plan/random_scenario.h"

namespace roofcast::fuzz {
using namespace explore;
using namespace reports;
namespace {

ConfigTree parse_at(const char* name, std::string_view bytes) {
  return parse_config_text(bytes, std::string(ROOFCAST_SOURCE_DIR) + "/" + name);
}

/// A file in memory that holds the bytes, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes)
      : fd_(memfd_create("fuzz", 0)), path_(fmt::format("/proc/self/fd/{}", fd_)) {
    if (fd_ < 0 || ::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

/// What was read is written and read again as the same.
void yaml(std::string_view bytes) {
  const ConfigTree tree = parse_at("configs/scenarios/fuzz.yaml", bytes);
  const std::string text = to_yaml(*tree);
  if (to_yaml(*parse_at("configs/scenarios/fuzz.yaml", text)) != text) std::abort();
}

constexpr const char* kTiny = "{arrivals: {process: all_at_once}, requests: 3, prompt_tokens: 40, output_tokens: 4}";

ConfigTree with_workload(const ConfigTree& tree) {
  return with_value(tree, "workload", parse_config_value(kTiny, "fuzz"), "fuzz");
}

/// What ships is read once for many inputs; call it once for each of them.
SpecCache& shared_specs() {
  constexpr int kInputs = 200;  // the specs of so many are kept
  static std::unique_ptr<SpecCache> specs;
  static int used = 0;
  if (used++ % kInputs == 0) specs = std::make_unique<SpecCache>();
  return *specs;
}

void price(const ConfigTree& tree) {
  const Scenario s = read_scenario(tree, Fidelity::kCalibrated, shared_specs());
  (void)estimate_report(estimate(s.deployment, {}), *s.deployment, "json");
  if (s.deployment->memory.infeasible || !s.workload) return;
  (void)simulation_report(simulate(s.deployment, *s.workload, s.serving), s, "json");
}

/// `key` of a scenario as the bytes say; the rest is small.
void part_of_scenario(const char* key, const char* rest, const char* place, std::string_view bytes) {
  const ConfigTree tree = with_workload(parse_config_value(rest, "fuzz"));
  price(with_value(tree, key, parse_at(place, bytes), "fuzz"));
}

void model(std::string_view bytes) {
  part_of_scenario("model", "{gpu: b200-sxm}", "configs/models/config.json", bytes);
}
void hardware(std::string_view bytes) {
  part_of_scenario("gpu", "{model: qwen3-0.6b}", "configs/hardware/fuzz.yaml", bytes);
}
void engine(std::string_view bytes) {
  part_of_scenario("engine", "{model: qwen3-0.6b, gpu: h100-sxm}", "configs/engines/fuzz.yaml", bytes);
}

/// Few requests, for the speed.
void scenario(std::string_view bytes) {
  ConfigTree tree = parse_at("configs/scenarios/fuzz.yaml", bytes);
  const Scenario s = read_scenario(tree, Fidelity::kCalibrated, shared_specs());
  (void)idle_settings(tree, s);
  (void)estimate_report(estimate(s.deployment, {}), *s.deployment, "table");
  if (!s.workload || s.deployment->memory.infeasible) return;
  WorkloadSpec few = *s.workload;
  if (few.requests == 0 || few.requests > 30) few.requests = 30;
  few.warmup_requests = std::min<std::int64_t>(few.warmup_requests, 5);
  few.arrivals.concurrency = std::min(few.arrivals.concurrency, 30);
  if (few.arrivals.process == ArrivalSpec::Process::kTrace || s.serving.replicas > 16) return;
  (void)simulation_report(simulate(s.deployment, few, s.serving), s, "table");
}

void sweep(std::string_view bytes) {
  const SweepSpec spec = parse_sweep(parse_at("configs/sweeps/fuzz.yaml", bytes));
  if (spec.grid_points() > 2000) return;
  const std::vector<std::uint64_t> points = kept_points(spec);
  const ConfigTree first = point_scenario(spec, points.front());
  (void)point_values(spec, points.back());
  SpecCache& specs = shared_specs();
  (void)point_hash(first, spec.simulate, Fidelity::kIdeal, specs);
  (void)PointRunner(false, Fidelity::kIdeal, specs).run(first);
}

void plan(std::string_view bytes) {
  const ConfigTree tree = parse_at("configs/plans/fuzz.yaml", bytes);
  if (has_services(tree)) {
    (void)parse_services(tree);
  } else {
    (void)parse_plan(tree);
  }
}

/// The first byte says the format.
void trace(std::string_view bytes) {
  constexpr std::array kFormats{"", "azure", "mooncake", "bailian", "burstgpt", "vidur", "agentic", "csv"};
  if (bytes.empty()) return;
  const auto format = static_cast<unsigned char>(bytes[0]) % kFormats.size();
  (void)parse_trace_text(bytes.substr(1), "trace", kFormats[format]);
}

void csv(std::string_view bytes) {
  const CsvTable table = CsvTable::parse(std::string(bytes), "table.csv");
  for (std::size_t r = 0; r < table.rows(); ++r) {
    for (std::size_t c = 0; c < table.columns().size(); ++c) {
      (void)csv_field(table.at(r, c));
      if (table.at(r, c) == "0") (void)table.number(r, c);
    }
  }
}

void bench(std::string_view bytes) {
  const MemoryFile file(bytes);
  const auto attempt = [&](const auto& read) {
    try {
      (void)read();
    } catch (const ConfigError&) {  // of a file that another reader takes
    }
  };
  attempt([&] { return read_scrapes({file.path()}, Seconds(1)); });
  attempt([&] { return read_llama_bench(file.path()); });
  attempt([&] { return read_run_scenario(file.path(), 1, std::nullopt); });
  (void)read_bench_run(file.path());
}

void result(std::string_view bytes) {
  const MemoryFile file(bytes);
  const std::vector<Result> results = read_results({file.path()});
  (void)html_page(results, charts_of(results, "roofcast report"), "roofcast report");
}

/// Bytes laid over a good store, from the place that the first two say.
void store(std::string_view bytes) {
  static const std::string good = [] {
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("fuzz-{}.sqlite", getpid())).string();
    {
      SweepStore made(path);
      made.add("a", "ttft_ms=1\nfits=true\n", 0);
      made.describe({.name = "s", .run = "estimate", .keys = {"batch"}}, {"a"},
                    [](std::size_t) { return std::vector<std::string>{"1"}; });
    }
    std::ifstream in(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::filesystem::remove(path);
    return text;
  }();
  std::string damaged = good;
  if (bytes.starts_with("SQLite format 3")) {
    damaged = bytes;
  } else if (bytes.size() > 2) {
    const std::size_t at =
        (static_cast<unsigned char>(bytes[0]) * 256u + static_cast<unsigned char>(bytes[1])) % good.size();
    damaged.replace(at, std::min(bytes.size() - 2, good.size() - at), bytes.substr(2));
  }
  result(damaged);
}

void http(std::string_view bytes) {
  const std::string reply = ExploreServer::reply_to(bytes);
  if (!reply.empty() && (!reply.starts_with("HTTP/1.1 ") || reply.starts_with("HTTP/1.1 5"))) std::abort();
}

/// A scenario that makes sense, drawn from the bytes; its invariants are checked.
void serve(std::string_view bytes) {
  std::uint64_t seed = 0;
  for (const char c : bytes.substr(0, 8)) seed = seed * 256 + static_cast<unsigned char>(c);
  const std::string broken = testing::broken_invariant(testing::random_scenario(seed), shared_specs());
  if (!broken.empty()) throw InternalError(broken);
}

constexpr std::array<std::string_view, 2> kModels{"configs/models", "tests/data/hf_configs"};
constexpr std::array<std::string_view, 1> kHardware{"configs/hardware"}, kEngines{"configs/engines"},
    kSweeps{"configs/sweeps"}, kPlans{"configs/plans"}, kTraces{"tests/bad_configs/traces"},
    kBench{"tests/bad_configs/bench"}, kResults{"tests/reports/fixtures"};
constexpr std::array<std::string_view, 3> kScenarios{"configs/scenarios", "configs/workloads", "tests/bad_configs"};
constexpr std::array<std::string_view, 2> kTables{"tests/bad_configs/traces", "tests/data/e2e"};

constexpr std::array kTargets{
    Target{"yaml", "any document", kScenarios, yaml},
    Target{"model", "a model, or its config.json with a quantization config", kModels, model},
    Target{"hardware", "a GPU", kHardware, hardware},
    Target{"engine", "an engine's profile", kEngines, engine},
    Target{"scenario", "a scenario, estimated and simulated", kScenarios, scenario},
    Target{"sweep", "a sweep", kSweeps, sweep},
    Target{"plan", "a plan, not searched", kPlans, plan},
    Target{"trace", "arrivals of every format", kTraces, trace},
    Target{"csv", "a table", kTables, csv},
    Target{"bench", "a measured run", kBench, bench},
    Target{"result", "a result, as a page", kResults, result},
    Target{"store", "the store of a sweep, as a page", {}, store},
    Target{"http", "a request to the explorer", {}, http},
    Target{"serve", "random scenarios and what holds in all of them", {}, serve},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

void feed(const Target& target, std::string_view bytes) {
  try {
    target.run(bytes);
  } catch (const ConfigError&) {
  } catch (const Unavailable&) {
  }
}

}  // namespace roofcast::fuzz
