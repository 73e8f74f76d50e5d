#include "base/csv.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/base/messages.h"
#include "tests/base/temporary_folder.h"
#include "tests/measured_data.h"

using namespace roofcast;

namespace {
CsvTable parse(const std::string& text) { return CsvTable::parse(text, "t.csv"); }
std::string refused(const std::string& text) {
  return message_of([&] { parse(text); });
}
}  // namespace

TEST_CASE("csv: rows by column name, LF or CRLF, with or without an end of line at the end") {
  for (const char* text : {"a,b\n1,x\n2,y\n", "a,b\r\n1,x\r\n2,y\r\n",
                           "\xEF\xBB\xBF"
                           "a,b\n1,x\n\n2,y",
                           "\r\na , b\n1,x\n2,y\n\n\n"}) {
    const CsvTable table = parse(text);
    REQUIRE(table.rows() == 2);
    CHECK(table.columns() == std::vector<std::string>{"a", "b"});
    CHECK(table.at(1, table.column("b")) == "y");
    CHECK(table.number(1, table.column("a")) == 2.0);
  }
}

TEST_CASE("csv: quotes hold commas, quotes and line ends, and a row stands where it begins") {
  const CsvTable table = parse("a,b\n\"x,\"\"y\"\"\nz\",2\n,\"\"\n");
  REQUIRE(table.rows() == 2);
  CHECK(table.at(0, 0) == "x,\"y\"\nz");
  CHECK(table.at(1, 0) == "");
  CHECK(table.at(1, 1) == "");
  CHECK(table.location(0, 1).line == 2);
  CHECK(table.location(0, 1).column == 2);
  CHECK(table.location(1, 0).line == 4);
}

TEST_CASE("csv: a copied or moved table stays valid") {
  CsvTable table = parse("a\nshort\n");
  const CsvTable copy = table;
  const CsvTable moved = std::move(table);
  CHECK(copy.at(0, 0) == "short");
  CHECK(moved.at(0, 0) == "short");
}

TEST_CASE("csv: what is refused, and where") {
  CHECK(refused("") == "t.csv: is empty: a header line was expected");
  CHECK(refused("\n\n") == "t.csv: is empty: a header line was expected");
  CHECK(refused("a,b\n1,2\n1,2,3\n") == "t.csv:3: the row has 3 fields, the header 2");
  CHECK(refused("a,b\n1,2\n1,\n7\n") == "t.csv:4: the row has 1 field, the header 2");
  CHECK(refused("a,b\n1,\"2\n3,4\n") == "t.csv:2: this quoted field is not closed");
  CHECK(refused("a,b\n1,\"2\"x\n") == "t.csv:2: text follows the closing quote of a field");
  CHECK(refused("a,b,a\n1,2,3\n") == "t.csv:1:3: duplicate column 'a'");
  CHECK(message_of([] { parse("ttft_ms,b\n").column("ttft"); }) ==
        "t.csv:1: missing column 'ttft'; nearest is 'ttft_ms' (valid: ttft_ms, b)");
}

TEST_CASE("csv: what would take too much time or memory is refused before it is built") {
  std::string wide;
  for (int i = 0; i < 2001; ++i) wide += "c" + std::to_string(i) + ",";
  CHECK(refused(wide + "x\n") == "t.csv:1: more than 2000 columns");
  CHECK(refused("a,b\n" + std::string(100'000, ',') + "\n") == "t.csv:2: the row has 100001 fields, the header 2");
}

TEST_CASE("csv: numbers are finite and whole fields") {
  const CsvTable table = parse("a,b\n 1.5e3 ,+2\nnan,inf\n8GB,\n0x8,1e999\n--,-\n");
  CHECK(table.number(0, 0) == 1500.0);
  CHECK(table.number(0, 1) == 2.0);
  CHECK(message_of([&] { table.number(1, 0); }) == "t.csv:3:1: 'a' must be a finite number, got 'nan'");
  CHECK(message_of([&] { table.number(1, 1); }) == "t.csv:3:2: 'b' must be a finite number, got 'inf'");
  CHECK(message_of([&] { table.number(2, 0); }) == "t.csv:4:1: 'a' must be a finite number, got '8GB'");
  CHECK(message_of([&] { table.number(2, 1); }) == "t.csv:4:2: 'b' must be a finite number, got ''");
  CHECK(table.number(2, 1, 7.0) == 7.0);
  CHECK(message_of([&] { table.number(2, 0, 7.0); }) != "");
  CHECK(message_of([&] { table.number(3, 0); }) != "");
  CHECK(message_of([&] { table.number(3, 1); }) != "");
  CHECK(message_of([&] { table.number(4, 0); }) != "");
}

TEST_CASE("csv: files") {
  const TemporaryFolder folder;
  CHECK(CsvTable::read_file(folder.write("t.csv", "a\n1\n")).rows() == 1);
  CHECK(message_of([&] { CsvTable::read_file(folder.path() + "/none.csv"); }) ==
        folder.path() + "/none.csv: no such file");
  CHECK(message_of([&] { CsvTable::read_file(folder.path()); }) == folder.path() + ": is a directory, not a file");
}

TEST_CASE("csv_field quotes only what must be, and reads back") {
  CHECK(csv_field("plain text") == "plain text");
  CHECK(csv_field("a,b") == "\"a,b\"");
  for (const char* text : {"", "a,b", "a\"b", "\"", "two\nlines", "\r\n", " edge "}) {
    const CsvTable table = parse("a,b\n" + csv_field(text) + ",1\n");
    CHECK(table.at(0, 0) == text);
  }
}

TEST_CASE("csv: every table of measured data reads") {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(testing::kSampleData)) {
    if (entry.path().extension() != ".csv") continue;
    CAPTURE(entry.path().string());
    CHECK(CsvTable::read_file(entry.path().string()).rows() > 0);
    ++files;
  }
  CHECK(files > 40);
}

TEST_CASE("csv: rows of another format have lines and no columns") {
  const CsvTable table = CsvTable::of_rows("t.jsonl", {"a", "bb"}, {{"1", "x"}, {"2", ""}}, {3, 7});
  CHECK(table.rows() == 2);
  CHECK(table.number(1, 0) == 2.0);
  CHECK(table.at(0, 1) == "x");
  CHECK(table.location(1, 1).line == 7);
  CHECK(table.location(1, 1).column == 0);
  CHECK(message_of([&] { table.number(0, 1); }).starts_with("t.jsonl:3: "));
  CHECK(message_of([&] { table.number(1, 1); }).starts_with("t.jsonl:7: "));
}
