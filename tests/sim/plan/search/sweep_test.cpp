#include "sim/plan/search/sweep_run.h"

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "base/read_file.h"
#include "sim/plan/search/condition.h"
#include "tests/base/messages.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;

namespace {

SweepSpec sweep_of(const char* text) { return parse_sweep(parse_config_text(text, "sweep.yaml")); }

constexpr const char* kGrid = R"(
scenario: {model: llama-2-7b, gpu: h100-sxm, output_tokens: 16}
grid: {batch: [1, 2, 4], parallelism.tp: [1, 2]}
)";

const std::atomic<bool> kGo{false};

MetricsList result_of(const SweepStore& store, const std::string& hash) {
  return metrics_from_text(store.find(hash).value());
}

double number(const MetricsList& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return std::get<double>(value);
  }
  FAIL("no such metric");
  return 0;
}

}  // namespace

TEST_CASE("sweep: a grid is crossed, a zip runs in parallel") {
  // 3 batches x 2 layouts x 2 zipped pairs = 12 points; the last axis runs fastest
  const SweepSpec sweep = sweep_of(R"(
scenario: {model: llama-2-7b, gpu: h100-sxm}
grid: {batch: [1, 2, 4], parallelism.tp: [1, 2]}
zip: {prompt_tokens: [100, 200], output_tokens: [10, 20]}
)");
  CHECK(sweep.grid_points() == 12);
  CHECK(point_values(sweep, 0) == std::vector<std::string>{"1", "1", "100", "10"});
  CHECK(point_values(sweep, 1) == std::vector<std::string>{"1", "1", "200", "20"});
  CHECK(point_values(sweep, 11) == std::vector<std::string>{"4", "2", "200", "20"});
}

TEST_CASE("sweep: ranges multiply or step") {
  CHECK(sweep_of("scenario: {gpu: x}\ngrid: {batch: {from: 1, to: 64, times: 2}}").grid_points() == 7);
  CHECK(sweep_of("scenario: {gpu: x}\ngrid: {batch: {from: 10, to: 50, step: 10}}").grid_points() == 5);
  CHECK_THROWS_AS(sweep_of("scenario: {gpu: x}\ngrid: {batch: {from: 0, to: 64, times: 2}}"), ConfigError);
  CHECK_THROWS_AS(sweep_of("scenario: {gpu: x}\ngrid: {batch: {from: 1, to: 64}}"), ConfigError);
  CHECK(sweep_of("scenario: {gpu: x}\ngrid: {batch: {from: -3, to: -1, step: 1}}").grid_points() == 3);
  CHECK(sweep_of("scenario: {gpu: x}\ngrid: {batch: {from: 5, to: 5, times: 3}}").grid_points() == 1);
}

TEST_CASE("sweep: the values of a range have the unit of its bounds") {
  const SweepSpec rates = sweep_of("scenario: {gpu: x}\ngrid: {rate: {from: 1 /s, to: 16 /s, times: 4}}");
  CHECK(rates.grid_points() == 3);  // 1, 4, 16
  CHECK(point_values(rates, 2) == std::vector<std::string>{"16 /s"});
  const SweepSpec sizes = sweep_of("scenario: {gpu: x}\ngrid: {memory: {from: 1.5 TB/s, to: 3TB/s, step: 0.5 TB/s}}");
  CHECK(sizes.grid_points() == 4);
  CHECK(point_values(sizes, 1) == std::vector<std::string>{"2 TB/s"});
  CHECK_THROWS_AS(sweep_of("scenario: {gpu: x}\ngrid: {rate: {from: 1 /s, to: 16, times: 4}}"), ConfigError);
  CHECK_THROWS_AS(sweep_of("scenario: {gpu: x}\ngrid: {rate: {from: 1, to: 16 /s, times: 4}}"), ConfigError);
}

TEST_CASE("sweep: a range that goes down, and one of a billion values, are refused before it is made") {
  const auto refusal = [](const std::string& range) {
    return message_of([&] { (void)sweep_of(("scenario: {gpu: x}\ngrid: {batch: " + range + "}").c_str()); });
  };
  const std::string none = "sweep.yaml:2:15: 'batch' is a range without values: it goes up, from 64 to 1";
  CHECK(refusal("{from: 64, to: 1, step: 1}") == none);
  CHECK(refusal("{from: 64, to: 1, times: 2}") == none);
  const std::string many = "sweep.yaml:2:15: 'batch' is a range of more than 1000000 values";
  CHECK(refusal("{from: 1, to: 1e9, step: 1}") == many);
  CHECK(refusal("{from: 1, to: 1e308, step: 1e-300}") == many);  // the number of steps is infinite
  CHECK(refusal("{from: 1, to: 10, times: 1.000000001}") == many);
}

TEST_CASE("sweep: more keys or conditions than can be written point by point are refused") {
  const auto refusal = [](const std::string& rest) {
    return message_of([&] { (void)sweep_of(("scenario: {gpu: x}\n" + rest).c_str()); });
  };
  const auto repeated = [](const char* text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += fmt::format(fmt::runtime(text), i);
    return out;
  };
  CHECK(refusal("grid: {" + repeated("k{}: [1], ", 1001) + "}") == "sweep.yaml:2:7: varies 1001 keys; at most 1000");
  CHECK(refusal("grid: {batch: [1]}\nwhere: [" + repeated("batch > {}, ", 1001) + "]")
            .ends_with("more than 1000 conditions"));
}

TEST_CASE("sweep: what cannot be a grid is refused") {
  CHECK_THROWS_AS(sweep_of("scenario: {gpu: x}"), ConfigError);
  CHECK_THROWS_AS(sweep_of("scenario: {gpu: x}\ngrid: {batch: []}"), ConfigError);
  CHECK_THROWS_AS(sweep_of("scenario: {gpu: x}\ngrid: {batch: 3}"), ConfigError);
  CHECK_THROWS_AS(sweep_of("scenario: {gpu: x}\nzip: {batch: [1, 2], tp: [1]}"), ConfigError);
  CHECK_THROWS_AS(sweep_of("scenario: {gpu: x}\ngrid: {batch: [1]}\nzip: {batch: [1]}"), ConfigError);
  CHECK_THROWS_AS(kept_points(sweep_of("scenario: {gpu: x}\ngrid: {batch: [1, 2]}\nwhere: [batch > 2]")), ConfigError);
}

TEST_CASE("condition: arithmetic over keys, and names") {
  const ConfigTree s =
      parse_config_text("{gpu: h100-sxm, parallelism: {tp: 4, pp: 2}, workload: {arrivals: {rate: 6 /s}}}", "s");
  CHECK(holds("parallelism.tp * parallelism.pp <= 8", s, {}));
  CHECK_FALSE(holds("parallelism.tp * parallelism.pp < 8", s, {}));
  CHECK(holds("(parallelism.tp + 2) / 3 == parallelism.pp", s, {}));
  CHECK(holds("gpu == h100-sxm", s, {}));
  CHECK(holds("gpu != l40s", s, {}));
  CHECK(holds("workload.arrivals.rate > 5", s, {}));
  CHECK_THROWS_AS(holds("paralelism.tp <= 8", s, {}), ConfigError);
  CHECK_THROWS_AS(holds("parallelism.tp", s, {}), ConfigError);
  CHECK_THROWS_AS(holds("parallelism.tp <= 8 8", s, {}), ConfigError);
}

TEST_CASE("sweep: the store gives back what was run, and only what is missing runs") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/s.sqlite";
  const SweepSpec sweep = sweep_of(kGrid);
  {
    SweepStore store(path);
    const SweepOutcome first = run_sweep(sweep, Fidelity::kIdeal, store, kGo);
    CHECK(first.computed == 6);
    // one sequence of 7B weights in 16 bit at 3.35 TB/s: 13.5 GB / 3.35 TB/s = 4.0 ms; two GPUs read half each
    const double one = number(result_of(store, first.hashes[0]), "tpot_ms"),
                 two = number(result_of(store, first.hashes[1]), "tpot_ms");
    CHECK(one == doctest::Approx(4.0).epsilon(0.05));
    CHECK(two < one);
  }
  SweepStore store(path);
  CHECK(run_sweep(sweep, Fidelity::kIdeal, store, kGo).computed == 0);
  CHECK(run_sweep(sweep, Fidelity::kCalibrated, store, kGo).computed == 6);  // another question
  const SweepSpec larger = sweep_of(R"(
scenario: {model: llama-2-7b, gpu: h100-sxm, output_tokens: 16}
grid: {batch: [1, 2, 4, 8], parallelism.tp: [1, 2]}
)");
  const SweepOutcome more = run_sweep(larger, Fidelity::kIdeal, store, kGo);
  CHECK(more.found == 6);
  CHECK(more.computed == 2);
}

TEST_CASE("sweep store: it tells by itself what was swept last, and in what order") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/s.sqlite";
  const SweepSpec sweep = sweep_of(kGrid);
  std::vector<std::string> hashes;
  {
    SweepStore store(path);
    run_sweep(sweep_of("scenario: {model: llama-2-7b, gpu: h100-sxm, output_tokens: 16}\ngrid: {batch: [64, 128]}"),
              Fidelity::kIdeal, store, kGo);
    hashes = run_sweep(sweep, Fidelity::kIdeal, store, kGo).hashes;
    store.add("later", "tpot_ms=1", 0);
    CHECK_THROWS_AS(read_store(path, [](StoredPoint&&) {}), ConfigError);  // in use
  }
  std::vector<StoredPoint> points;
  const StoredSweep told = read_store(path, [&](StoredPoint&& p) { points.push_back(std::move(p)); });
  CHECK(told.run == "estimate");
  CHECK(told.keys == point_keys(sweep));
  REQUIRE(points.size() == 6);
  const SweepStore store(path);
  for (std::size_t i = 0; i < points.size(); ++i) {
    CHECK(points[i].values == point_values(sweep, i));
    CHECK(points[i].result == *store.find(hashes[i]));
  }
}

TEST_CASE("sweep shards: every n-th point, each point in one shard") {
  const SweepSpec sweep =
      sweep_of("scenario: {model: llama-2-7b, gpu: h100-sxm}\ngrid: {batch: [1, 2, 3, 4, 5, 6, 7]}");
  const auto points = [&](const char* shard) {
    SweepStore store(":memory:");
    return run_sweep(sweep, Fidelity::kIdeal, store, kGo, nullptr, {.shard = parse_shard(shard), .merge = {}}).points;
  };
  // 7 points by 3: 0 3 6, 1 4, 2 5
  CHECK(points("1/3") == std::vector<std::uint64_t>{0, 3, 6});
  CHECK(points("2/3") == std::vector<std::uint64_t>{1, 4});
  CHECK(points("3/3") == std::vector<std::uint64_t>{2, 5});
  CHECK(points("9/9").empty());
}

TEST_CASE("sweep shards: a shard that does not exist is refused") {
  CHECK(parse_shard("8/8").text() == "8/8");
  for (const char* wrong : {"0/8", "9/8", "8", "/8", "1/", "1/0", "-1/8", "1/8x", "one/8", "99999999999999999999/8"})
    CHECK_THROWS_AS(parse_shard(wrong), ConfigError);
  CHECK_THROWS_WITH_AS(parse_shard("9/8"), "--shard: must be i/n, shard i of n, with i from 1 to 8; got '9/8'",
                       ConfigError);
}

TEST_CASE("sweep shards: merged stores hold the whole sweep, other stores are refused") {
  const TemporaryFolder folder;
  const SweepSpec sweep = sweep_of(kGrid),
                  other = sweep_of("scenario: {model: llama-2-7b, gpu: l40s}\ngrid: {batch: [1, 2]}");
  const auto path = [&](const std::string& name) { return folder.path() + "/" + name; };
  const auto run = [&](const SweepSpec& which, const std::string& name, const SweepParts& parts) {
    SweepStore store(path(name));
    return run_sweep(which, Fidelity::kIdeal, store, kGo, nullptr, parts);
  };
  run(sweep, "1", {.shard = {1, 2}, .merge = {}});
  run(sweep, "2", {.shard = {2, 2}, .merge = {}});
  run(other, "other", {});
  const SweepOutcome merged = run(sweep, "whole", {.shard = {}, .merge = {path("1"), path("2")}});
  CHECK(merged.found == 6);
  CHECK(merged.computed == 0);
  CHECK_THROWS_WITH_AS(run(sweep, "half", {.shard = {}, .merge = {path("1")}}),
                       "--merge: the stores of these shards are missing: 2/2", ConfigError);
  CHECK_THROWS_AS(run(sweep, "mixed", {.shard = {}, .merge = {path("1"), path("2"), path("other")}}), ConfigError);
  CHECK_THROWS_AS(run(sweep, "none", {.shard = {}, .merge = {path("no such store")}}), ConfigError);
  // a GPU's file was changed between the shards: results of another question
  SweepStore calibrated(path("calibrated"));
  CHECK_THROWS_AS(
      run_sweep(sweep, Fidelity::kCalibrated, calibrated, kGo, nullptr, {.shard = {}, .merge = {path("1"), path("2")}}),
      ConfigError);
}

TEST_CASE("sweep: a combination that is not possible is an error of its point, a wrong file one of the sweep") {
  SweepStore store(":memory:");
  const SweepOutcome some =
      run_sweep(sweep_of("scenario: {model: llama-2-7b, gpu: h100-sxm}\ngrid: {parallelism.tp: [1, 3]}"),
                Fidelity::kIdeal, store, kGo);
  CHECK(some.errors.size() == 1);  // 32 heads by 3
  CHECK_THROWS_AS(run_sweep(sweep_of("scenario: {model: llama-2-7b, gpu: h100-sxm}\ngrid: {paralelism.tp: [1, 2]}"),
                            Fidelity::kIdeal, store, kGo),
                  ConfigError);
}

TEST_CASE("sweep store: a damaged file, another program's, and one in use are refused and left as they are") {
  const TemporaryFolder folder;
  const std::string text = folder.path() + "/notes.sqlite";
  std::ofstream(text) << std::string(5000, 'x');
  CHECK_THROWS_AS(SweepStore{text}, ConfigError);
  CHECK(std::filesystem::file_size(text) == 5000);
  const std::string used = folder.path() + "/used.sqlite";
  const SweepStore first(used);
  CHECK_THROWS_AS(SweepStore{used}, ConfigError);
  CHECK_THROWS_AS(SweepStore{""}, ConfigError);
  CHECK_THROWS_AS(SweepStore{folder.path() + "/no/such/folder.sqlite"}, ConfigError);
}

TEST_CASE("sweep store: a stranger's views and triggers never run") {
  const TemporaryFolder folder;
  const auto attacked = [&](const char* name, const char* sql) {
    const std::string path = folder.path() + "/" + name;
    { const SweepStore made(path); }
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
    REQUIRE(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(db);
    CHECK_THROWS_AS(SweepStore{path}, ConfigError);
    CHECK_THROWS_AS((void)read_store(path, [](StoredPoint&&) {}), ConfigError);
  };
  attacked(
      "view",
      "ALTER TABLE about RENAME TO old; CREATE VIEW about AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 "
      "FROM c) SELECT 'roofcast_version' AS key, '9' AS value, '' AS checksum FROM c WHERE x<0");
  attacked("trigger", "CREATE TRIGGER t BEFORE INSERT ON points BEGIN DELETE FROM grid; END");
  attacked("computed", "CREATE TABLE more(x, y AS (printf('%1000000d', x)))");
}

TEST_CASE("sweep store: a bit that flips is told, and never changes a result") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/s.sqlite";
  const SweepSpec sweep = sweep_of(kGrid);
  {
    SweepStore store(path);
    (void)run_sweep(sweep, Fidelity::kIdeal, store, kGo);
  }
  const auto told = [&](const std::string& file) {
    std::string out;
    const StoredSweep what = read_store(file, [&](StoredPoint&& p) {
      for (const std::string& value : p.values) out += value + " ";
      out += p.hash + p.result;
    });
    for (const std::string& key : what.keys) out += key;
    return out + what.run + what.shard;
  };
  const std::string right = told(path), whole = read_file(path, 1'000'000);
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += 97) {  // 97 and the 8 bits: every part of a page
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    const std::string file = folder.write("damaged.sqlite", damaged);
    std::string got;
    if (message_of([&] { got = told(file); }).empty()) {
      CHECK(got == right);  // a byte that nothing is kept in
    } else {
      ++refused;
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("sweep store: results keep every bit") {
  const MetricsList metrics{{"x", 0.1 + 0.2}, {"yes", true}, {"why", std::string("weights = 3 GB")}};
  CHECK(metrics_from_text(to_text(metrics)) == metrics);
  CHECK_THROWS_AS(metrics_from_text("x=1.5y\n"), ConfigError);
  CHECK_THROWS_AS(metrics_from_text("x=1.5"), ConfigError);
}

TEST_CASE("sweep: points that share a step model have the results that each has alone") {
  const SweepSpec sweep = sweep_of(
      "scenario: {model: qwen3-30b-a3b, engine: sglang, output_tokens: 40}\n"
      "grid: {gpu: [h100-sxm, mi300x], batch: [200, 1, 37, 41, 230], prompt_tokens: [20000, 1, 900], "
      "parallelism.attention_dp: [1, 4]}\n");
  SpecCache specs;
  PointRunner all(false, Fidelity::kCalibrated, specs);
  for (const std::uint64_t point : kept_points(sweep)) {
    const ConfigTree scenario = point_scenario(sweep, point);
    CHECK(to_text(all.run(scenario)) == to_text(PointRunner(false, Fidelity::kCalibrated, specs).run(scenario)));
  }
}

TEST_CASE("sweep: a point that cannot be estimated leaves the others as they are") {
  SpecCache specs;
  PointRunner all(false, Fidelity::kCalibrated, specs);
  const auto run = [&](const char* batch) {
    return all.run(
        parse_config_text(fmt::format("model: llama-2-7b\ngpu: h100-sxm\nbatch: {}\n", batch), "point.yaml"));
  };
  const std::string before = to_text(run("3"));
  CHECK(message_of([&] { run("0"); }) == "point.yaml:3:8: 'batch' must be between 1 and 100000000, got '0'");
  CHECK(to_text(run("3")) == before);
}

TEST_CASE("sweep: prompt_tokens of a point are those of the text, and images come on top") {
  const auto ttft = [](int in_workload, const char* request) {
    SpecCache specs;
    const std::string point = fmt::format(
        "model: qwen2.5-vl-7b\ngpu: h100-sxm\nworkload: {{arrivals: {{process: all_at_once}}, requests: 2, "
        "images: {{width: 1120, height: 1120}}, prompt_tokens: {}, output_tokens: 8}}\n{}",
        in_workload, request);
    return number(PointRunner(false, Fidelity::kCalibrated, specs).run(parse_config_text(point, "point.yaml")),
                  "ttft_ms");
  };
  CHECK(ttft(100, "prompt_tokens: 512") == ttft(512, ""));
  CHECK(ttft(100, "prompt_tokens: 512") > ttft(100, ""));
}
