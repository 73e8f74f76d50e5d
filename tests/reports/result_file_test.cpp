#include "reports/result_file.h"

#include <doctest/doctest.h>

#include "base/read_file.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;
using namespace roofcast::reports;

namespace {

std::string error_of(std::string_view text) {
  const TemporaryFolder folder;
  const std::string path = folder.write("result", text);
  try {
    (void)read_result(path);
  } catch (const ConfigError& e) {
    return std::string(e.what()).substr(path.size());
  }
  return "no error";
}

}  // namespace

TEST_CASE("results: invalid results are refused with a location") {
  CHECK(error_of("") == ": the file is empty");
  CHECK(error_of(" \n") == ": the file is empty");
  CHECK(error_of("{\"decode\": {\"step_ms\": 1").find("the JSON ends too early") != std::string::npos);
  CHECK(error_of("{\n  \"decode\": nonsense}").find(":2:") == 0);
  CHECK(error_of("{}").find("not a result of roofcast") != std::string::npos);
  CHECK(error_of("[1, 2]").find("not a result of roofcast") != std::string::npos);
  const std::string sweep =
      R"({"kind": "sweep", "schema": 1, "name": "s", "run": "estimate", "roofcast_version": "0", )"
      R"("keys": [], "points": )";
  CHECK(error_of(sweep + "[]}").find("'points' holds no result") != std::string::npos);
  CHECK(error_of(sweep + R"([{"keys": {}, "result": null}]})").find("holds no result") != std::string::npos);
  CHECK(error_of("{\"duration\": 1e999}").find("not valid JSON") != std::string::npos);
  CHECK(error_of("SQLite format 3\0").find("damaged or not the store of a sweep") != std::string::npos);
  CHECK(error_of("a,b\n1,2\n").find("not a table of roofcast") != std::string::npos);
  CHECK(error_of("latency_us,predicted_us\n").find("no rows") != std::string::npos);
  CHECK(error_of(std::string(100000, '[')).find("nested deeper than 200 levels") != std::string::npos);
}

TEST_CASE("results: a key that holds another type is refused by its name") {
  const Json plan = Json::parse(read_file(ROOFCAST_SOURCE_DIR "/tests/reports/fixtures/plan.json", 1 << 24));
  const auto with = [&](const char* pointer, const Json& value) {
    Json changed = plan;
    changed[Json::json_pointer(pointer)] = value;
    return error_of(changed.dump());
  };
  CHECK(with("/winner", nullptr) == ": 'winner' must be an object, got null");
  CHECK(with("/pareto", "abc") == ": 'pareto' must be a list, got \"abc\"");
  CHECK(with("/deployments/1/gpus", "two") == ": 'deployments[1].gpus' must be a number, got \"two\"");
  CHECK(with("/deployments/0/confirmed", 1) == ": 'deployments[0].confirmed' must be true or false, got 1");
  CHECK(with("/notes", Json::object()) == ": 'notes' must be a list, got an object");
  CHECK(with("/deployments/0/usd_per_hour", nullptr) == "no error");  // not known
}

TEST_CASE("results: numbers are taken where they are numbers") {
  const Json j = Json::parse(R"({"cost": {"usd": 2}, "mfu": "x", "mbu": null, "memory": 1})");
  CHECK(number_at(j, "cost.usd") == 2);
  CHECK_FALSE(number_at(j, "mfu"));
  CHECK_FALSE(number_at(j, "mbu"));
  CHECK_FALSE(number_at(j, "memory.weight_bytes"));
  CHECK_FALSE(number_at(Json(), "mfu"));
  CHECK(number_at(Json{{"median_ttft_ms", 3}}, kTtft) == 3);
  CHECK(gpus_of(Json{{"gpus", 24}}) == 24);
}

TEST_CASE("results: a sweep's table becomes points, its metrics results") {
  const TemporaryFolder folder;
  const Result r =
      read_result(folder.write("sweep.csv", "gpu,batch,tpot_ms,output_tokens_per_s\na,1,10,100\na,2,11,180\n"));
  CHECK(r.kind == ResultKind::kSweep);
  REQUIRE(r.points.size() == 2);
  CHECK(r.points[1].keys.size() == 2);
  CHECK(number_at(r.points[1].result, "tpot_ms") == 11);
}

TEST_CASE("results: a plan without an answer shows the nearest deployment, and says so") {
  Json plan = Json::parse(read_file(ROOFCAST_SOURCE_DIR "/tests/reports/fixtures/plan.json", 1 << 24));
  plan["nearest"] = plan["deployments"][0];
  plan["deployments"] = Json::array();
  const TemporaryFolder folder;
  const Result r = read_result(folder.write("plan.json", plan.dump()));
  REQUIRE(r.points.size() == 1);
  CHECK(r.points[0].result["gpu"] == plan["nearest"]["gpu"]);
  REQUIRE(r.notes.size() == 1);
  CHECK(r.notes[0] == "no deployment meets the objectives: this is the nearest");
  CHECK(r.label == "toy-7b: no deployment found");
}
