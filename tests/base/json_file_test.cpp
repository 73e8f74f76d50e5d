#include "base/json_file.h"

#include <doctest/doctest.h>

#include "tests/base/messages.h"

using namespace roofcast;

namespace {

std::string refused(const std::string& text) {
  return message_of([&] { (void)parse_json("r.json", text, "a result"); });
}

std::string keys(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":1";
  return "{" + out + "}";
}

}  // namespace

TEST_CASE("json: what would take too much stack, time or memory is refused before it is built") {
  CHECK(parse_json("r.json", keys(2000), "a result").size() == 2000);
  CHECK(refused(keys(2001)) == "r.json: more than 2000 keys in one object");
  CHECK(refused("[[{\"a\":" + keys(2001) + "}]]") == "r.json: more than 2000 keys in one object");
  CHECK(refused(std::string(201, '[')) == "r.json: nested deeper than 200 levels");
  // A list in a list is a comma and a container, four times as much as a number.
  std::string lists = "[[]";
  for (int i = 0; i < 8'000'000; ++i) lists += ",[]";
  CHECK(refused(lists + "]") == "r.json: more than 40000000 values in one document");
}

TEST_CASE("json: the size of a text is told without building it") {
  CHECK(check_json_size("r.json", R"({"a": {"x": 1, "y:": 2}, "b": [":"], "a": 3})") == 3);
  CHECK(check_json_size("r.json", "]]]}{\"a\":1}") == 1);  // wrong: the parser will say so
  CHECK(check_json_size("r.json", "") == 0);
}
