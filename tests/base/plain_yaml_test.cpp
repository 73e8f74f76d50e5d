#include "base/plain_yaml.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/random.h"
#include "base/read_file.h"
#include "tests/base/messages.h"

using namespace roofcast;

namespace {

struct Nobody final : PlainYamlHandler {
  void scalar(std::string_view, bool, int, int) override {}
  void open(bool, bool, int, int) override {}
  void close() override {}
};
bool is_plain(const std::string& text) {
  Nobody nobody;
  return read_plain_yaml(text, nobody);
}

bool same(const SourceLocation& a, const SourceLocation& b) { return a.line == b.line && a.column == b.column; }
bool same(const ConfigTree& a, const ConfigTree& b) {
  if (a->kind != b->kind || a->scalar != b->scalar || a->quoted != b->quoted || !same(a->location, b->location))
    return false;
  if (a->items.size() != b->items.size() || a->entries.size() != b->entries.size()) return false;
  for (std::size_t i = 0; i < a->items.size(); ++i) {
    if (!same(a->items[i], b->items[i])) return false;
  }
  for (std::size_t i = 0; i < a->entries.size(); ++i) {
    const ConfigNode::Entry &x = a->entries[i], &y = b->entries[i];
    if (x.key != y.key || !same(x.key_location, y.key_location) || !same(x.value, y.value)) return false;
  }
  return true;
}

/// Whether a plain text gives the tree, with all places, or the message that libyaml's events give. A tab in a comment
/// makes a text that is not plain.
bool agrees(const std::string& text) {
  ConfigTree plain, whole;
  const std::string a = message_of([&] { plain = parse_config_text(text, "c.yaml"); });
  const std::string b = message_of([&] { whole = parse_config_text(text + "\n#\t\n", "c.yaml"); });
  return a == b && (plain == nullptr) == (whole == nullptr) && (plain == nullptr || same(plain, whole));
}

std::vector<std::string> shipped() {
  std::vector<std::string> texts;
  const std::filesystem::path root(ROOFCAST_SOURCE_DIR);
  for (const char* folder : {"configs", "tests/bad_configs"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() == ".yaml" || entry.path().extension() == ".json")
        texts.push_back(read_file(entry.path().string(), 1U << 24));
    }
  }
  return texts;
}

}  // namespace

TEST_CASE("plain YAML: nearly all files that ship, read as libyaml reads them") {
  std::size_t plain = 0, all = 0;
  for (const std::string& text : shipped()) {
    ++all;
    if (!is_plain(text)) continue;
    ++plain;
    CHECK_MESSAGE(agrees(text), text.substr(0, 200));
  }
  CHECK(all > 300);
  CHECK(plain > all * 8 / 10);
}

TEST_CASE("plain YAML: texts changed at random are read as libyaml reads them, or left to it") {
  const std::vector<std::string> texts = shipped();
  constexpr std::string_view kPieces = "  \n\n::,,[]{}--##\"'?!&*|>%@`~.a1";
  Random random(7);
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(n) - 1));
  };
  std::size_t plain = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = texts[below(texts.size())].substr(0, 600);
    for (std::size_t changes = 1 + below(3); changes > 0 && !text.empty(); --changes) {
      const std::size_t at = below(text.size());
      if (below(3) == 0) {
        text.erase(at, 1 + below(4));
      } else {
        text.insert(at, 1, kPieces[below(kPieces.size())]);
      }
    }
    if (!is_plain(text)) continue;
    ++plain;
    CHECK_MESSAGE(agrees(text), text);
  }
  CHECK(plain > 800);
}

TEST_CASE("plain YAML: what it reads and what it leaves") {
  for (const char* text :
       {"a: 1", "a:\n  b: [1, -2, .5, x y]\n  c: {d: \"e: f\", g: 'h'}\n", "a:\n- b: 1\n  c: 2\n- d\ne: ~\n",
        "- - 1\n  - 2\n- {a: []}\n", "{\"a\": {\"b\": [1,\n 2]}}\n", "a : x:y#z # c\n\n# d\nb: http://e/f?g=h\n",
        "a: {b: c,  # d\n  e: f}\n", "a: 1\na: 2\n", "a:\n  [1, 2]\n"}) {
    CHECK_MESSAGE(is_plain(text), text);
    CHECK_MESSAGE(agrees(text), text);
  }
  for (const char* text : {"",
                           "a",
                           "a:",
                           "a:\n  b\n",
                           "a: b\n  c\n",
                           "a: \"b\\n\"",
                           "a: 'b''c'",
                           "a: |\n  b\n",
                           "a: &b c",
                           "a: b: c",
                           "a: [b: c]",
                           "a: [b,]",
                           "a:\tb",
                           "a: \xC3\xBC",
                           "---\na: b\n",
                           "a: b\n...\n",
                           "? a",
                           "a: {b}",
                           "a: 1\n b: 2\n",
                           "  a: 1\n b: 2\n",
                           "a: [1, 2",
                           "a: \"b",
                           "a: [b]c",
                           "a:\n-\n- 1\n",
                           "%YAML 1.1\n",
                           "a: *b",
                           "a: !c d"}) {
    CHECK_MESSAGE(!is_plain(text), text);
  }
}
