#include "sim/plan/measured/run_table.h"

#include <doctest/doctest.h>

#include "tests/base/messages.h"
#include "tests/sim/plan/measured/rows.h"

using namespace roofcast;

TEST_CASE("run table: its kind is told by its columns") {
  CHECK(kind_of(rows::table({rows::closed_loop()})) == RunKind::kAggregated);
  CHECK(kind_of(rows::table({rows::apart()})) == RunKind::kDisaggregated);
  CHECK(kind_of(rows::table({rows::figure({{"batch", "4"}})})) == RunKind::kStatic);
  CHECK(kind_of(rows::table({rows::figure()})) == RunKind::kOffline);
  CHECK(kind_of(rows::table({rows::figure({{"request_rate", "2"}})})) == RunKind::kOnline);
  CHECK(closed_loop(RunKind::kAggregated));
  CHECK(closed_loop(RunKind::kDisaggregated));
  CHECK_FALSE(closed_loop(RunKind::kOnline));
  CHECK(message_of([] {
          kind_of(CsvTable::parse("model,gpu\na,b\n", "runs.csv"));
        }).starts_with("runs.csv:1:1: these columns are none of: closed-loop runs (concurrency, tp)"));
}

TEST_CASE("run table: cells by name; absent columns are blank") {
  const CsvTable table = CsvTable::parse("a,b,c\n x ,2.5,7\n,,-1\n", "runs.csv");
  const RunColumns columns(table);
  CHECK(columns.text(0, "a") == "x");
  CHECK(columns.text(0, "z") == "");
  CHECK(columns.number(0, "b", 1) == 2.5);
  CHECK(columns.number(1, "b", 1) == 1);
  CHECK(columns.number(0, "z", 3) == 3);
  CHECK(columns.count(0, "c", 1) == 7);
  CHECK(columns.count(1, "b", 4) == 4);
  CHECK(columns.needed(0, "c") == 7);
  CHECK(message_of([&] { columns.count(0, "b", 1); }) == "runs.csv:2:2: 'b' must be a whole number, got '2.5'");
  CHECK(message_of([&] { columns.count(1, "c", 1); }).ends_with("'c' must be a whole number, got '-1'"));
  CHECK(message_of([&] { columns.needed(0, "z"); }) == "runs.csv:2:1: 'z' must be a whole number, 1 or more");
}
