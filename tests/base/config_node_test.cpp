#include "base/config_node.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "tests/base/messages.h"
#include "tests/base/temporary_folder.h"
#include "tests/measured_data.h"

using namespace roofcast;
using Kind = ConfigNode::Kind;

namespace {

ConfigTree parse(std::string_view text) { return parse_config_text(text, "c.yaml"); }
std::string refused(std::string_view text, const std::string& path = "c.yaml") {
  return message_of([&] { parse_config_text(text, path); });
}

bool same(const ConfigTree& a, const ConfigTree& b) {
  if (a->kind != b->kind || a->scalar != b->scalar || a->quoted != b->quoted) return false;
  if (a->items.size() != b->items.size() || a->entries.size() != b->entries.size()) return false;
  for (std::size_t i = 0; i < a->items.size(); ++i) {
    if (!same(a->items[i], b->items[i])) return false;
  }
  for (std::size_t i = 0; i < a->entries.size(); ++i) {
    if (a->entries[i].key != b->entries[i].key || !same(a->entries[i].value, b->entries[i].value)) return false;
  }
  return true;
}

const ConfigNode& at(const ConfigTree& tree, std::string_view key) {
  const ConfigTree* found = tree->find(key);
  REQUIRE(found != nullptr);
  return **found;
}

}  // namespace

TEST_CASE("parse: kinds, and locations that count from 1") {
  const ConfigTree tree =
      parse("# specs\nname: h100\nlimits:\n  power: 700 W\n  steps: [1, \"2\"]\nnone:\nempty: {}\n");
  CHECK(tree->kind == Kind::kMap);
  CHECK(tree->entries.size() == 4);
  CHECK(at(tree, "name").scalar == "h100");
  CHECK(at(tree, "name").location.line == 2);
  CHECK(at(tree, "name").location.column == 7);
  CHECK(tree->entries[1].key_location.line == 3);
  CHECK(tree->entries[1].key_location.column == 1);
  const ConfigTree limits = *tree->find("limits");
  CHECK(limits->location.line == 4);
  CHECK(limits->location.column == 3);
  CHECK(at(limits, "power").scalar == "700 W");
  const ConfigNode& steps = at(limits, "steps");
  REQUIRE(steps.items.size() == 2);
  CHECK(!steps.items[0]->quoted);
  CHECK(steps.items[1]->quoted);
  CHECK(steps.items[1]->location.column == 14);
  CHECK(at(tree, "none").kind == Kind::kNull);
  CHECK(at(tree, "none").location.line == 6);  // behind its colon
  CHECK(at(tree, "none").location.column == 6);
  CHECK(at(tree, "empty").kind == Kind::kMap);
  CHECK(tree->find("absent") == nullptr);
  CHECK(at(limits, "power").find("x") == nullptr);
}

TEST_CASE("parse: a column counts bytes, a line ends in LF or CR LF alone") {
  // U+00E9 takes two bytes, U+2028 (which YAML 1.1 takes for the end of a line) three.
  const ConfigTree tree = parse("\xEF\xBB\xBFs: {\xC3\xA9: 1, b: 2}\r\nt: \"x\xE2\x80\xA8y\"\r\nu: 3\n");
  const ConfigTree s = *tree->find("s");
  CHECK(s->location.column == 4);
  CHECK(s->entries[0].value->location.column == 9);
  CHECK(s->entries[1].key_location.column == 12);
  CHECK(tree->entries[1].key_location.line == 2);
  CHECK(tree->entries[2].key_location.line == 3);
  CHECK(tree->entries[2].value->location.column == 4);
  CHECK(refused("\xC3\xA9: 1\n\xC3\xA9: 2\n") == "c.yaml:2:1: duplicate key '\xC3\xA9', first on line 1");
  CHECK(refused("a: \"\xC3\xA9\\q\"\n") == "c.yaml:1:7: malformed YAML: unknown escape character: q");
}

TEST_CASE("parse: null is ~, null or nothing, but quoted it is text") {
  const ConfigTree tree = parse("{a: null, b: ~, c: , d: \"null\", e: !!str 8, f: nullable}");
  for (const char* key : {"a", "b", "c"}) CHECK(at(tree, key).kind == Kind::kNull);
  CHECK(at(tree, "d").scalar == "null");
  CHECK(at(tree, "e").quoted);
  CHECK(at(tree, "f").scalar == "nullable");
}

TEST_CASE("parse: JSON as Hugging Face writes it") {
  const ConfigTree tree = parse_config_text(
      "{\n\t\"a\": Infinity,\n\t\"n\": NaN, \"t\":true,\"u\":null,\n"
      "\t\"s\": \"\\/x\\u00e9\\ud83d\\ude00\\\\ud83d \\\"q\\\"\", \"l\": [1,\n\t\t2.5e-1,[ ]]\n}\n",
      "config.json");
  CHECK(at(tree, "a").scalar == "Infinity");
  CHECK(!at(tree, "a").quoted);
  CHECK(at(tree, "n").scalar == "NaN");
  CHECK(at(tree, "t").scalar == "true");
  CHECK(at(tree, "u").kind == Kind::kNull);
  CHECK(at(tree, "s").scalar == "/x\xC3\xA9\xF0\x9F\x98\x80\\ud83d \"q\"");
  CHECK(at(tree, "s").quoted);
  CHECK(at(tree, "l").items.size() == 3);
  CHECK(at(tree, "l").items[1]->scalar == "2.5e-1");
}

TEST_CASE("parse: every config.json reads, and reads the same after it is written") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::kSampleData + "/hf_configs")) {
    CAPTURE(entry.path().string());
    const ConfigTree tree = parse_config_file(entry.path().string());
    CHECK(tree->kind == Kind::kMap);
    CHECK(same(parse(to_yaml(*tree)), tree));
    ++files;
  }
  CHECK(files == 5);
}

TEST_CASE("parse: what YAML would let pass, and we do not") {
  CHECK(refused("a: 1\nb: 2\na: 3\n") == "c.yaml:3:1: duplicate key 'a', first on line 1");
  CHECK(refused("{\"a\": {\"b\": 1, \"b\": 2}}", "c.json") == "c.json:1:16: duplicate key 'b', first on line 1");
  CHECK(refused("a: &x 1\nb: *x\n") == "c.yaml:2:4: aliases (*name) are not supported: write the value out");
  CHECK(refused("a: {b: 1}\n<<: {c: 2}\n") == "c.yaml:2:1: merge keys (<<) are not supported: write the keys out");
  CHECK(refused("a: 1\n---\nb: 1\n").starts_with("c.yaml:2:1: a second document begins here"));
  CHECK(refused("{a: 1} {b: 2}").starts_with("c.yaml:1:8: a second document begins here"));
  CHECK(refused("[a, b]: 1") == "c.yaml:1:1: this bracket is never closed or stands where a key is expected");
  CHECK(refused("? - a\n: 2").find("a key must be text") != std::string::npos);
  CHECK(refused("null: 1") == "c.yaml:1:1: a key is missing, or is null");
  CHECK(refused("a: !!int 8") == "c.yaml:1:4: the tag 'tag:yaml.org,2002:int' is not supported");
  CHECK(refused("a: !thing {b: 1}").find("the tag '!thing' is not supported") != std::string::npos);
}

TEST_CASE("parse: a large map finds its duplicate, too") {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  CHECK(parse(text)->entries.size() == 20000);
  CHECK(refused(text + "k19999: 2\n") == "c.yaml:20001:1: duplicate key 'k19999', first on line 20000");
}

TEST_CASE("parse: an imported document is read without the head of that result") {
  CHECK(to_yaml(*parse_config_text(R"({"kind": "import", "schema": 1, "of": "model", "name": "m"})", "m.json")) ==
        "name: \"m\"\n");
  CHECK(to_yaml(*parse_config_text("kind: import\nname: m\n", "m.yaml")) == "kind: import\nname: m\n");
}

TEST_CASE("parse: malformed text has a place") {
  CHECK(refused("a: [1, 2\n").starts_with("c.yaml:2:"));
  CHECK(refused("a: {b: 1\n").find(": malformed YAML: ") != std::string::npos);
  CHECK(refused("{b: 1").starts_with("c.yaml:1:1: this bracket is never closed"));
  CHECK(refused("{b: \"c") == "c.yaml:1:7: malformed YAML: this quoted text is not closed");
  CHECK(refused("a: \"b\n") == "c.yaml:2:1: malformed YAML: this quoted text is not closed");
  CHECK(refused("a: \"b\\") == "c.yaml:1:7: malformed YAML: this quoted text is not closed");
  CHECK(refused("a: 'b\n").ends_with("this quoted text is not closed"));
  CHECK(refused("a: 'b") == "c.yaml:1:6: malformed YAML: this quoted text is not closed");
  CHECK(refused("a:\n\tb: 1\n") == "c.yaml:2:1: malformed YAML: a tab cannot indent; use spaces");
  CHECK(refused("a: b: c\n").starts_with("c.yaml:1:5: malformed YAML: "));
  CHECK(refused("a: 1\n b: 2\n").find("malformed YAML") != std::string::npos);
  CHECK(refused("a: \"\\q\"\n").find("malformed YAML: unknown escape character: q") != std::string::npos);
  CHECK(refused("{\"a\": 1]", "c.json").find(": malformed JSON: ") != std::string::npos);
  CHECK(refused("*unknown") == "c.yaml:1:1: aliases (*name) are not supported: write the value out");
  CHECK(refused("a: 1\nb\nc: 2\n") == "c.yaml:2:1: malformed YAML: this key has no ':'");
  CHECK(refused("a: [1, 2: 3").ends_with(": malformed YAML: did not find expected ',' or ']'"));
  CHECK(refused("]").find("malformed YAML") != std::string::npos);
  CHECK(refused("%YAML 9.9\n---\na: 1") != "");
}

TEST_CASE("parse: nothing to read") {
  CHECK(refused("") == "c.yaml: is empty");
  CHECK(refused(" \n# a comment\n") == "c.yaml: is empty");
  CHECK(parse("null")->kind == Kind::kNull);
  CHECK(parse("---\na: 1\n...\n")->kind == Kind::kMap);
  CHECK(parse("\xEF\xBB\xBF"
              "a: 1\r\nb: 2\r\n")
            ->entries.size() == 2);
}

TEST_CASE("parse: bytes that are no text") {
  using namespace std::string_view_literals;
  CHECK(refused("a: 1\nb: \0\n"sv) == "c.yaml:2:4: control character 0x00 in the text");
  CHECK(refused("a: \x04 b\n") == "c.yaml:1:4: control character 0x04 in the text");
  CHECK(refused("a: 1\rb: 2") == "c.yaml:1:5: control character 0x0d in the text");  // alone it ends no line
  const std::string plain = "a: ' ~ ~ ~ ~ ~ ~ ~ ~ ~'";  // the first and the last printable character
  CHECK(refused(plain).empty());
  for (const char control : {'\x01', '\x1f', '\x7f'}) {
    for (std::size_t at = 4; at + 1 < plain.size(); ++at) {
      std::string text = plain;
      text[at] = control;
      CHECK(refused(text) == fmt::format("c.yaml:1:{}: control character 0x{:02x} in the text", at + 1, control));
    }
  }
  CHECK(refused("a: \xff\n") == "c.yaml:1:4: not UTF-8 text: byte 0xff");
  CHECK(refused("a: \xC3") == "c.yaml:1:4: not UTF-8 text: byte 0xc3");
  CHECK(refused("a: \xE0\x80\x80") != "");      // overlong
  CHECK(refused("a: \xED\xA0\x80") != "");      // a surrogate
  CHECK(refused("a: \xF4\x90\x80\x80") != "");  // beyond U+10FFFF
  CHECK(refused("\xFE\xFF\x00\x61"sv) != "");   // UTF-16
  CHECK(parse("a: \xE2\x82\xAC \xF0\x9F\x98\x80")->entries.size() == 1);
}

TEST_CASE("parse: deep nesting is an error, not an overflow") {
  CHECK(refused(std::string(100000, '[')) == "c.yaml:1:201: nested deeper than 200 levels");
  CHECK(refused(std::string(201, '[') + std::string(201, ']')) == "c.yaml:1:201: nested deeper than 200 levels");
  std::string maps, dashes, questions;
  for (int i = 0; i < 100000; ++i) {
    maps += "{a: ";
    dashes += "- ";
    questions += "? ";
  }
  CHECK(refused(maps) != "");
  CHECK(refused(dashes) != "");
  CHECK(refused(questions) != "");
  CHECK(refused(std::string(150, '[') + std::string(150, ']')) == "");
}

TEST_CASE("parse: files") {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.yaml", "a: 1\nb: [\n");
  CHECK(message_of([&] { parse_config_file(file); }).starts_with(file + ":3:1: malformed YAML"));
  CHECK(message_of([&] { parse_config_file(folder.path() + "/no.yaml"); }) == folder.path() + "/no.yaml: no such file");
  CHECK(message_of([&] { parse_config_file(folder.path()); }) == folder.path() + ": is a directory, not a file");
  CHECK(message_of([&] { parse_config_file(folder.write("e.yaml", "")); }) == folder.path() + "/e.yaml: is empty");
  CHECK(message_of([&] { parse_config_file("/dev/zero"); }) == "/dev/zero: is a device, not a file");
  CHECK(message_of([&] { parse_config_file(file + "/x"); }).find("cannot read: Not a directory") != std::string::npos);
}

TEST_CASE("overlay: maps merge key by key, all else is replaced") {
  const ConfigTree base = parse("a: 1\nb: {c: 2, d: [1, 2]}\ne: 5\n");
  const ConfigTree laid = overlay(base, parse("b: {d: [3], f: 6}\ne: {g: 7}\nh: 8\n"));
  CHECK(to_yaml(*laid) == "a: 1\nb:\n  c: 2\n  d:\n    - 3\n  f: 6\ne:\n  g: 7\nh: 8\n");
  CHECK(to_yaml(*base) == "a: 1\nb:\n  c: 2\n  d:\n    - 1\n    - 2\ne: 5\n");  // untouched
  CHECK(overlay(base, nullptr) == base);
  CHECK(overlay(nullptr, base) == base);
  CHECK(overlay(base, parse("7"))->scalar == "7");
}

TEST_CASE("with_assignment: dotted keys into maps and lists") {
  const ConfigTree base = parse("a: {b: 1}\nl: [1, {x: 2}]\ngpu: h100-sxm\nn:\n");
  const auto set = [&](const char* text) { return to_yaml(*with_assignment(base, text, "--set")); };
  CHECK(set("a.b=8").starts_with("a:\n  b: 8\nl:"));
  CHECK(set("a.c.d = fp8").starts_with("a:\n  b: 1\n  c:\n    d: fp8\nl:"));
  CHECK(set("l.1.x=[3, 4]").find("- x:\n      - 3\n      - 4\n") != std::string::npos);
  CHECK(set("l.0={name: x}").find("l:\n  - name: x\n") != std::string::npos);
  CHECK(set("gpu.memory=80 GB").find("gpu:\n  name: h100-sxm\n  memory: 80 GB\n") != std::string::npos);
  CHECK(set("n.m=1").ends_with("n:\n  m: 1\n"));
  CHECK(set("z=x=y").ends_with("z: x=y\n"));
  CHECK(with_assignment(nullptr, "a.b=1", "--set")->entries.size() == 1);
  CHECK(at(with_assignment(base, "a=\"8\"", "--set"), "a").quoted);
  CHECK(at(with_assignment(base, "a=8", "--set"), "a").location.path == "--set");
}

TEST_CASE("with_assignment: errors name the flag") {
  const ConfigTree base = parse("a: {b: 1}\nl: [1, 2]\n");
  const auto refuse = [&](const std::string& text) {
    return message_of([&] { with_assignment(base, text, "--set"); });
  };
  CHECK(refuse("a.b") == "--set: must be KEY=VALUE, got 'a.b'");
  CHECK(refuse("a=") == "--set: 'a' has no value; 'a=null' removes a value");
  CHECK(refuse("=1") == "--set: '' is not a key such as 'parallelism.tp'");
  CHECK(refuse("a..b=1") == "--set: 'a..b' is not a key such as 'parallelism.tp'");
  CHECK(refuse("l.2=1") == "--set: 'l' is a list of 2, which has no element '2' (counted from 0)");
  CHECK(refuse("l.x=1") == "--set: 'l' is a list of 2, which has no element 'x' (counted from 0)");
  CHECK(refuse("l.-1=1") != "");
  CHECK(refuse("a={b: 1").starts_with("--set: this bracket is never closed"));
  CHECK(refuse("a=\"b").starts_with("--set: malformed YAML: "));
  CHECK(refuse("a={b: 1, b: 2}") == "--set: duplicate key 'b'");
  CHECK(refuse(std::string(300000, '.') + "=1") != "");
  std::string deep = "k";
  for (int i = 0; i < 100000; ++i) deep += ".k";
  CHECK(refuse(deep + "=1") != "");
  CHECK(message_of([&] { with_assignment(parse("7"), "a=1", "--set"); }) ==
        "c.yaml:1:1: the document is not a map of keys");
}

TEST_CASE("to_yaml: quotes what needs it and reads back the same") {
  const ConfigTree tree = parse(
      "plain: 3.35 TB/s\nnumber: 8\ntext: \"8\"\nurl: http://x/y?z=1#a\n'odd: key': 1\nlist: []\nmap: {}\nnone:\n"
      "nested:\n  - [1, [2, 3], {}]\n  - {a: {b: c}, d: ~}\n  -\n  - x\nblock: |\n  two\n  lines\n'': empty\n\"<<\": "
      "1\n"
      "\"\\x07\\e\\u20ac\\0\": \"\\t\\\"\\\\ \\u2028\\u0085\\r\"\nneg: -1\ndash: '-'\ncolon: 'a: b'\nhash: 'a "
      "#b'\nnull_text: 'null'\n");
  const std::string text = to_yaml(*tree);
  CHECK(same(parse(text), tree));
  CHECK(text.starts_with("plain: 3.35 TB/s\nnumber: 8\ntext: \"8\"\nurl: http://x/y?z=1#a\n\"odd: key\": 1\n"));
  for (const char* root : {"null", "7", "\"7\"", "[]", "{}", "- 1\n- a: 1\n  b:\n    - 2\n"}) {
    CHECK(same(parse(to_yaml(*parse(root))), parse(root)));
  }
}

TEST_CASE("to_yaml: made scalars keep their text, whatever it is") {
  for (const char* text : {"",
                           " ",
                           "a ",
                           "-",
                           "- a",
                           "---",
                           "...",
                           "~",
                           "null",
                           "#x",
                           "a #b",
                           "a: b",
                           "a:",
                           "[",
                           "{a}",
                           "*a",
                           "&a",
                           "!x",
                           "|",
                           ">",
                           "'",
                           "\"",
                           "%",
                           "@x",
                           "`",
                           "?",
                           "? a",
                           ":",
                           ": a",
                           "<<",
                           "a\nb",
                           "\t",
                           "a\tb",
                           "8",
                           "\xC3\xA9",
                           "-1",
                           "--x",
                           "a,b]",
                           "\\",
                           "true",
                           "=",
                           ".5",
                           "\xC2\x80",
                           "a\xC2\x85 b",
                           "\xE2\x80\xA8",
                           " \xE2\x80\xA9",
                           "\xEF\xBB\xBF",
                           "\xEF\xBF\xBE",
                           "\xEF\xBF\xBF"}) {
    CAPTURE(std::string(text));
    const ConfigTree map =
        make_map({{text, {}, make_list({make_scalar(text), make_map({{"k", {}, make_scalar(text)}})})}});
    const ConfigTree back = parse(to_yaml(*map));
    REQUIRE(back->entries.size() == 1);
    CHECK(back->entries[0].key == text);
    CHECK(back->entries[0].value->items[0]->scalar == text);
    CHECK(at(back->entries[0].value->items[1], "k").scalar == text);
    CHECK(parse(to_yaml(*make_scalar(text)))->scalar == text);
  }
}

TEST_CASE("parse: a hundred lines take well under a millisecond") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "key_" + std::to_string(i) + ": 3.35 TB/s  # a peak\n";
  double best_ms = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    parse(text);
    best_ms =
        std::min(best_ms, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  MESSAGE("100 lines: " << best_ms << " ms");
  CHECK(best_ms < 5.0);  // a tenth of it on a fast machine; sanitizers are slow
}
