#include "reports/table.h"

#include <cmath>

#include <doctest/doctest.h>

#include "reports/table_width.h"

using namespace roofcast;
using namespace roofcast::reports;

namespace {

std::string text_in(const Table& table, std::size_t columns) {
  set_table_width(columns);
  const std::string text = table.text();
  set_table_width({});
  return text;
}

}  // namespace

TEST_CASE("numbers: whole ones have no decimals, and money has cents") {
  CHECK(human_count(20) == "20");
  CHECK(human_count(20.5) == "20.5");
  CHECK(human_count(2040000) == "2.04 M");
  CHECK(usd(5.5) == "5.50");
  CHECK(usd(std::nan("")) == "-");
}

TEST_CASE("table: natural width without a limit") {
  Table table({"name", "mean latency", "why"});
  table.words(1).row({"a", "1.5 ms", "the first of two"});
  const std::string natural =
      "name  mean latency  why\n"
      "a           1.5 ms  the first of two\n";  // 4 + 2 + 12 + 2 + 16 = 36
  CHECK(table.text() == natural);
  CHECK(text_in(table, 36) == natural);
}

TEST_CASE("table: headings are broken first, words after them") {
  Table table({"name", "mean latency", "why"});
  table.words(1).row({"a", "1.5 ms", "the first of two"});
  // 4 + 2 + 7 ("latency") + 2 + 16 = 31
  CHECK(text_in(table, 35) ==
        "         mean\n"
        "name  latency  why\n"
        "a      1.5 ms  the first of two\n");
  Table words({"name", "why"});
  words.words(1).row({"a", "one two three four five six seven"});  // 33 characters: 4 + 2 + 33 = 39
  CHECK(text_in(words, 32) ==
        "name  why\n"
        "a     one two three four five\n"
        "      six seven\n");
}

TEST_CASE("table: columns without room follow below, after the first column again") {
  Table table({"x", "aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"});
  table.row({"1", "2", "3", "4"});  // 1 + 3 x 12 = 37; two columns: 25
  CHECK(text_in(table, 30) ==
        "x  aaaaaaaaaa  bbbbbbbbbb\n"
        "1           2           3\n"
        "\n"
        "x  cccccccccc\n"
        "1           4\n");
}

TEST_CASE("lines of words are broken under the column in which the words begin") {
  set_table_width(24);
  CHECK(within_width("cost    one two three four\nshort\n") == "cost    one two three\n        four\nshort\n");
  CHECK(within_width("    100 characters of words, and no gap") == "    100 characters of\n    words, and no gap");
  CHECK(within_width("# one two three four five six") == "# one two three four\n# five six");  // of a script
  set_table_width({});
  CHECK(within_width("cost    one two three four five six") == "cost    one two three four five six");
}

TEST_CASE("table: keys begin every block, though they take more than half of the line") {
  Table table({"first", "second", "aaaaaaaaaa", "bbbbbbbbbb"});
  table.keys(2).row({"1", "1", "2", "3"});
  table.row({"1", "2", "4", "5"});  // 5 + 2 + 6 = 13 of 25, and 12 for a column
  CHECK(text_in(table, 25) ==
        "first  second  aaaaaaaaaa\n"
        "1           1           2\n"
        "1           2           4\n"
        "\n"
        "first  second  bbbbbbbbbb\n"
        "1           1           3\n"
        "1           2           5\n");
}

TEST_CASE("table: further blocks start with the columns that distinguish rows") {
  Table table({"x", "y", "aaaaaaaaaa", "bbbbbbbbbb"});
  table.row({"1", "p", "2", "3"});
  table.row({"1", "q", "4", "5"});
  CHECK(text_in(table, 24) ==
        "x  y  aaaaaaaaaa\n"
        "1  p           2\n"
        "1  q           4\n"
        "\n"
        "x  y  bbbbbbbbbb\n"
        "1  p           3\n"
        "1  q           5\n");
}

TEST_CASE("numbers without zeros at the end") {
  CHECK(plain_number(64, 4) == "64");
  CHECK(plain_number(51.6, 6) == "51.6");
  CHECK(plain_number(3.72412, 6) == "3.72412");
  CHECK(plain_number(200000, 6) == "200000");
  CHECK(plain_number(0) == "0");
}
