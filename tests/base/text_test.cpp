#include "base/text.h"

#include <doctest/doctest.h>

using namespace roofcast;
using Names = std::vector<std::string>;

TEST_CASE("nearest_name: fewest edits, a swap of neighbours being one") {
  CHECK(nearest_name("memry", Names{"bandwidth", "memory"}) == "memory");        // 1 insertion
  CHECK(nearest_name("mmeory", Names{"memories", "memory"}) == "memory");        // 1 swap against 3
  CHECK(nearest_name("H100-SXM", Names{"a100-sxm", "h100-sxm"}) == "h100-sxm");  // case does not count
  CHECK(nearest_name("vlm", Names{"sglang", "vllm"}) == "vllm");
  CHECK(nearest_name("h100", Names{"a10g", "h100-sxm"}) == "h100-sxm");  // begins so, before two edits
}

TEST_CASE("nearest_name: parts may be joined otherwise, and a name may be part of the word") {
  CHECK(nearest_name("M4 Max", Names{"apple-m4", "apple-m4-max"}) == "apple-m4-max");
  CHECK(nearest_name("Qwen3-32B-Instruct", Names{"qwen3-30b-a3b", "qwen3-32b", "qwen3-3"}) == "qwen3-32b");
}

TEST_CASE("nearest_name: nothing is near beyond two edits or a third of the word") {
  CHECK(nearest_name("abc", Names{"abcdef"}) == "abcdef");  // 3 edits are too many, but it begins so
  CHECK(nearest_name("xyz", Names{"abcdef"}) == "");
  CHECK(nearest_name("ab", Names{"xy"}) == "");                             // two of two replaced: nothing in common
  CHECK(nearest_name("bandwidths_of", Names{"bandwidth"}) == "bandwidth");  // 13 / 3 = 4 edits allowed, 4 needed
  CHECK(nearest_name("b100", Names{"a10g", "b200-sxm"}) == "b200-sxm");     // one edit of its first part
  CHECK(nearest_name("gpt-4o", Names{"gpt-2"}) == "");                      // a number is no spelling
  CHECK(nearest_name("", Names{"a"}) == "");
  CHECK(nearest_name("a", Names{}) == "");
  CHECK(nearest_name(std::string(100000, 'a'), Names{"a"}) == "");
}

TEST_CASE("unknown_name lists at most twelve") {
  CHECK(unknown_name("gpu", "h100", Names{"a100-sxm", "h100-sxm"}) ==
        "unknown gpu 'h100'; nearest is 'h100-sxm' (valid: a100-sxm, h100-sxm)");
  CHECK(unknown_name("gpu", "zzzzzz", Names{"a", "b"}) == "unknown gpu 'zzzzzz' (valid: a, b)");
  CHECK(unknown_name("gpu", "x", Names{}) == "unknown gpu 'x' (there are none)");
  Names many;
  for (int i = 10; i < 24; ++i) many.push_back(std::to_string(i));
  CHECK(unknown_name("n", "zzz", many) ==
        "unknown n 'zzz' (valid: 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21 and 2 more)");
  CHECK(unknown_name("n", std::string(100000, 'z'), Names{"a"}) ==
        "unknown n '" + std::string(60, 'z') + "...' (valid: a)");
  CHECK(nearest_and_valid("zzz", Names{std::string(100000, '[')}) == " (valid: " + std::string(60, '[') + "...)");
}

TEST_CASE("split, trim, lower, join") {
  CHECK(split("a,,b", ',') == Names{"a", "", "b"});
  CHECK(split("", ',') == Names{""});
  CHECK(split("a,", ',') == Names{"a", ""});
  CHECK(trim(" \t a b\r\n") == "a b");
  CHECK(trim(" \n") == "");
  CHECK(lower("H100-SXM \xC3\x89") == "h100-sxm \xC3\x89");  // ASCII alone
  CHECK(join(Names{"a", "b", "c"}, ", ") == "a, b, c");
  CHECK(join(Names{}, ", ") == "");
}
