#include "base/config_reader.h"

#include <doctest/doctest.h>

#include <array>

#include "tests/base/messages.h"

using namespace roofcast;

namespace {

ConfigReader reader(std::string_view text, std::string what = "a GPU") {
  return ConfigReader(parse_config_text(text, "g.yaml"), std::move(what));
}

/// The message when `use` reads `x: <value>`.
template <typename Use>
std::string refused(const std::string& value, Use use) {
  return message_of([&] {
    ConfigReader in = reader("x: " + value + "\n");
    use(in);
  });
}

double time_of(const std::string& text) { return reader("x: " + text).time("x").base(); }
double bytes_of(const std::string& text) { return reader("x: " + text).bytes("x").base(); }
double bandwidth_of(const std::string& text) { return reader("x: " + text).bandwidth("x").base(); }

}  // namespace

TEST_CASE("reader: every kind of value, and its default") {
  ConfigReader in = reader(
      "name: h100\nflag: true\ntp: 8\nheads: 131072.0\nshare: 0.9\nlatency: 4.5 us\nmemory: 80 GiB\nmemory_bandwidth: "
      "3.35 TB/s\n"
      "bf16: 989 TFLOP/s\npower: 700 W\nprice: 2.49 USD/h\nrate: 360 /min\ndtype: fp8\nsizes: [1, 2.5]\nnames: [a, "
      "b]\none: a\n");
  CHECK(in.text("name") == "h100");
  CHECK(in.boolean("flag"));
  CHECK(in.integer("tp") == 8);
  CHECK(in.integer("heads") == 131072);
  CHECK(in.number("share", kFraction) == 0.9);
  CHECK(in.time("latency").base() == 4.5e-6);
  CHECK(in.bytes("memory").base() == 85899345920.0);  // 80 * 2^30
  CHECK(in.bandwidth("memory_bandwidth").base() == 3.35e12);
  CHECK(in.flop_rate("bf16").base() == 989e12);
  CHECK(in.power("power", Watts{}).value == 700.0);
  CHECK(in.price("price", UsdPerHour{}).value == 2.49);
  CHECK(in.rate("rate").base() == 6.0);
  const std::array<std::string_view, 2> dtypes{"bf16", "fp8"};
  CHECK(in.choice("dtype", dtypes) == 1);
  CHECK(in.numbers("sizes") == std::vector<double>{1.0, 2.5});
  CHECK(in.texts("names") == std::vector<std::string>{"a", "b"});
  CHECK(in.texts("one") == std::vector<std::string>{"a"});
  CHECK_NOTHROW(in.finish());

  for (const char* text : {"{}", "x: ", "x: null"}) {  // null counts as absent
    ConfigReader empty = reader(text);
    CHECK(!empty.has("x"));
    CHECK(empty.text("x", "d") == "d");
    CHECK(empty.boolean("x", true));
    CHECK(empty.integer("x", 3) == 3);
    CHECK(empty.number("x", 0.5) == 0.5);
    CHECK(empty.time("x", Seconds{2.0}).base() == 2.0);
    CHECK(empty.bytes("x", Bytes{2.0}).base() == 2.0);
    CHECK(empty.bandwidth("x", BytesPerSecond{2.0}).base() == 2.0);
    CHECK(empty.flop_rate("x", FlopsPerSecond{2.0}).base() == 2.0);
    CHECK(empty.power("x", Watts{2.0}).value == 2.0);
    CHECK(empty.price("x", UsdPerHour{2.0}).value == 2.0);
    CHECK(empty.choice("x", dtypes, 1) == 1);
    CHECK(!empty.optional_child("x"));
    CHECK(empty.list("x").empty());
    CHECK(empty.numbers("x").empty());
    CHECK(empty.texts("x").empty());
    CHECK(empty.tree("x") == nullptr);
    CHECK_NOTHROW(empty.finish());
  }
}

TEST_CASE("reader: units, with or without a space, quoted or not") {
  CHECK(time_of("3ns") == 3e-9);
  CHECK(time_of("4.5 us") == 4.5e-6);
  CHECK(time_of("0.5 ms") == 0.5e-3);
  CHECK(time_of("2  s") == 2.0);
  CHECK(time_of("2 min") == 120.0);
  CHECK(time_of("\"1.5 h\"") == 5400.0);
  CHECK(time_of("0 s") == 0.0);
  CHECK(bytes_of("7 B") == 7.0);
  CHECK(bytes_of("2 kB") == 2000.0);
  CHECK(bytes_of("2 KB") == 2000.0);
  CHECK(bytes_of("2 MB") == 2e6);
  CHECK(bytes_of("80GB") == 80e9);
  CHECK(bytes_of("1 TB") == 1e12);
  CHECK(bytes_of("3 KiB") == 3072.0);
  CHECK(bytes_of("2 MiB") == 2097152.0);
  CHECK(bytes_of("1 TiB") == 1099511627776.0);
  CHECK(bandwidth_of("900 GB/s") == 900e9);
  CHECK(bandwidth_of("400 Gb/s") == 50e9);  // bits: 400 / 8
  CHECK(bandwidth_of("1 GiB/s") == 1073741824.0);
  CHECK(bandwidth_of("1e3 B/s") == 1000.0);
  CHECK(reader("x: 1.98 PFLOP/s").flop_rate("x").base() == 1.98e15);
  CHECK(reader("x: 60 GFLOP/s").flop_rate("x").base() == 60e9);
  CHECK(reader("x: 1.2 kW").power("x", Watts{}).value == 1200.0);
  CHECK(reader("x: 7200 /h").rate("x").base() == 2.0);
  CHECK(reader("x: 6/s").rate("x").base() == 6.0);
}

TEST_CASE("reader: a value without its unit, or with another's") {
  const auto bandwidth = [](ConfigReader& in) { in.bandwidth("x"); };
  CHECK(refused("3.35", bandwidth) == "g.yaml:1:4: 'x' must be a bandwidth such as '3.35 TB/s', got '3.35'");
  CHECK(refused("3.35 TB", bandwidth) == "g.yaml:1:4: 'x' must be a bandwidth such as '3.35 TB/s', got '3.35 TB'");
  CHECK(refused("fast", bandwidth) == "g.yaml:1:4: 'x' must be a bandwidth such as '3.35 TB/s', got 'fast'");
  CHECK(refused("TB/s", bandwidth) != "");
  CHECK(refused("1 tb/s", bandwidth) != "");
  CHECK(refused("1 TB/s extra", bandwidth) != "");
  CHECK(refused("1_000 TB/s", bandwidth) != "");
  CHECK(refused("inf TB/s", bandwidth) != "");
  CHECK(refused("{a: 1}", bandwidth) == "g.yaml:1:4: 'x' must be a bandwidth such as '3.35 TB/s', got a map");
  CHECK(refused("1e17 TB/s", bandwidth) == "");
  CHECK(refused("1e290 TB/s", bandwidth) == "g.yaml:1:4: 'x' is out of range: '1e290 TB/s'");
  CHECK(refused("0.9 B/s", bandwidth) == "g.yaml:1:4: 'x' is out of range: '0.9 B/s'");
  CHECK(refused("1e308 TB/s", bandwidth) == "g.yaml:1:4: 'x' is out of range: '1e308 TB/s'");
  CHECK(refused("1e999 TB/s", bandwidth) == "g.yaml:1:4: 'x' is out of range: '1e999 TB/s'");
  CHECK(refused("-1 TB/s", bandwidth) == "g.yaml:1:4: 'x' must not be negative, got '-1 TB/s'");
  CHECK(refused("0 TB/s", bandwidth) == "g.yaml:1:4: 'x' must not be zero");
  CHECK(refused("0 TFLOP/s", [](ConfigReader& in) { in.flop_rate("x"); }) == "g.yaml:1:4: 'x' must not be zero");
  CHECK(refused("5", [](ConfigReader& in) { in.time("x"); }) ==
        "g.yaml:1:4: 'x' must be a time such as '4.5 us', got '5'");
  CHECK(refused("0", [](ConfigReader& in) { in.time("x"); }) != "");
  CHECK(refused("-5 s", [](ConfigReader& in) { in.time("x", Seconds{}); }) ==
        "g.yaml:1:4: 'x' must not be negative, got '-5 s'");
  CHECK(refused("8", [](ConfigReader& in) { in.bytes("x"); }) ==
        "g.yaml:1:4: 'x' must be a number of bytes such as '80 GiB', got '8'");
  CHECK(refused("8 TOPS", [](ConfigReader& in) { in.flop_rate("x"); }) ==
        "g.yaml:1:4: 'x' must be a rate of operations such as '989 TFLOP/s', got '8 TOPS'");
  CHECK(refused("700", [](ConfigReader& in) { in.power("x", Watts{}); }) ==
        "g.yaml:1:4: 'x' must be a power such as '700 W', got '700'");
  CHECK(refused("2 EUR/h", [](ConfigReader& in) { in.price("x", UsdPerHour{}); }) ==
        "g.yaml:1:4: 'x' must be a price such as '2.49 USD/h', got '2 EUR/h'");
  CHECK(refused("6", [](ConfigReader& in) { in.rate("x"); }) ==
        "g.yaml:1:4: 'x' must be a rate such as '6 /s', got '6'");
  CHECK(refused("-6 /s", [](ConfigReader& in) { in.rate("x"); }) != "");
}

TEST_CASE("reader: numbers are plain, whole texts") {
  const auto number = [](ConfigReader& in) { in.number("x"); };
  const auto integer = [](ConfigReader& in) { in.integer("x"); };
  for (const char* text : {"010", "0x8", "1_000", "nan", ".nan", "inf",   "Infinity", "-Infinity", "8GB", "\"8\"",
                           "1e",  "e5",  ".",     "--1", "+-1",  "1.2.3", "1,5",      "true",      "[8]", "08.5"}) {
    CAPTURE(std::string(text));
    CHECK(refused(text, number).starts_with("g.yaml:1:4: 'x' must be a number, got "));
    CHECK(refused(text, integer).starts_with("g.yaml:1:4: 'x' must be a whole number, got "));
  }
  for (const char* text : {"1e6", "2.5", "8.", "-0.5"}) CHECK(refused(text, number) == "");
  for (const char* text : {"1e6", "2.5", "-0.5", "1.0e1"})
    CHECK(refused(text, integer).starts_with("g.yaml:1:4: 'x' must be a whole"));
  CHECK(reader("x: -12").integer("x") == -12);
  CHECK(reader("x: +12.00").integer("x") == 12);
  CHECK(reader("x: 9223372036854775807").integer("x") == 9223372036854775807);
  CHECK(refused("9223372036854775808", integer) == "g.yaml:1:4: 'x' is out of range: '9223372036854775808'");
  CHECK(refused("1e400", number) == "g.yaml:1:4: 'x' is out of range: '1e400'");
  CHECK(reader("x: +1.5E-3").number("x") == 0.0015);
  CHECK(reader("x: .5").number("x") == 0.5);
  CHECK(reader("x: 0").number("x") == 0.0);
  CHECK(refused("Infinity", [](ConfigReader& in) { CHECK(in.text("x") == "Infinity"); }) == "");
}

TEST_CASE("reader: bounds are named with the value") {
  CHECK(refused("1.5", [](ConfigReader& in) { in.number("x", kFraction); }) ==
        "g.yaml:1:4: 'x' must be between 0 and 1, got '1.5'");
  CHECK(refused("0", [](ConfigReader& in) { in.integer("x", kAtLeastOne); }) ==
        "g.yaml:1:4: 'x' must be at least 1, got '0'");
  CHECK(refused("-1", [](ConfigReader& in) { in.integer("x", 0, kAtLeastZero); }) ==
        "g.yaml:1:4: 'x' must be at least 0, got '-1'");
  CHECK(refused("0", [](ConfigReader& in) { in.number("x", kPositive); }) ==
        "g.yaml:1:4: 'x' must be more than 0, got '0'");
  CHECK(refused("9", [](ConfigReader& in) { in.number("x", 1.0, Range{.high = 8.0}); }) ==
        "g.yaml:1:4: 'x' must be at most 8, got '9'");
  CHECK(refused("[1, 2]", [](ConfigReader& in) { in.numbers("x", kFraction); }) ==
        "g.yaml:1:8: 'x.1' must be between 0 and 1, got '2'");
}

TEST_CASE("reader: booleans, text, names, lists") {
  const auto boolean = [](ConfigReader& in) { in.boolean("x"); };
  for (const char* text : {"yes", "True", "1", "on", "\"yes\""}) CHECK(refused(text, boolean) != "");
  CHECK(refused("yes", boolean) == "g.yaml:1:4: 'x' must be true or false, got 'yes'");
  CHECK(refused("\"yes\"", boolean) == "g.yaml:1:4: 'x' must be true or false, got the quoted text 'yes'");
  CHECK(refused("\"true\"", boolean) == "");  // as some configs are written
  CHECK(refused("\"false\"", boolean) == "");
  CHECK(refused("[a]", [](ConfigReader& in) { in.text("x"); }) == "g.yaml:1:4: 'x' must be text, got a list");
  CHECK(refused("a", [](ConfigReader& in) { in.list("x"); }) == "g.yaml:1:4: 'x' must be a list, got 'a'");
  CHECK(refused("[a, 1]", [](ConfigReader& in) { in.numbers("x"); }) == "g.yaml:1:5: 'x.0' must be a number, got 'a'");
  CHECK(refused("[a, [b]]", [](ConfigReader& in) { in.texts("x"); }) == "g.yaml:1:8: 'x.1' must be text, got a list");
  CHECK(refused("{a: 1}", [](ConfigReader& in) { in.texts("x"); }) == "g.yaml:1:4: 'x' must be a list, got a map");
  const std::array<std::string_view, 2> dtypes{"bf16", "fp8"};
  CHECK(refused("fp9", [&](ConfigReader& in) { in.choice("x", dtypes); }) ==
        "g.yaml:1:4: unknown x 'fp9'; nearest is 'fp8' (valid: bf16, fp8)");
  CHECK(refused("[fp8]", [&](ConfigReader& in) { in.choice("x", dtypes, 0); }) ==
        "g.yaml:1:4: 'x' must be a name, got a list");
  CHECK(refused(std::string(100, 'a'), boolean) ==
        "g.yaml:1:4: 'x' must be true or false, got '" + std::string(60, 'a') + "...'");
}

TEST_CASE("reader: unknown and missing keys") {
  const auto read = [](const char* text) {
    return message_of([&] {
      ConfigReader in = reader(text);
      in.integer("tp", 1);
      in.text("memory");
      in.finish();
    });
  };
  CHECK(read("memory: a\nmemry: b\n") ==
        "g.yaml:2:1: unknown key 'memry' of a GPU; nearest is 'memory' (valid: memory, tp)");
  CHECK(read("# none\ntp: 1\n") == "g.yaml:2:1: missing key 'memory' of a GPU");
  CHECK(read("memory:\n").find("'memory' must be text, got nothing") != std::string::npos);
  CHECK(read("[1]") == "g.yaml:1:1: a GPU must be a map of keys, got a list");
  CHECK(read("h100") == "g.yaml:1:1: a GPU must be a map of keys, got 'h100'");
  CHECK(message_of([] { reader("a: 1", "").finish(); }) == "g.yaml:1:1: unknown key 'a' (there are none)");
  CHECK(message_of([] { ConfigReader(nullptr, "a GPU").text("x"); }) == "missing key 'x' of a GPU");
}

TEST_CASE("reader: children are named by their key") {
  ConfigReader in = reader("a: {b: 1, c: 2}\ne:\ns: 7\n");
  ConfigReader child = in.child("a");
  CHECK(child.integer("b") == 1);
  CHECK(message_of([&] { child.finish(); }) == "g.yaml:1:11: unknown key 'c' of 'a' (valid: b)");
  CHECK(message_of([&] { in.child("e").text("x"); }).find("missing key 'x' of 'e'") != std::string::npos);
  CHECK(message_of([&] { in.child("none"); }) == "g.yaml:1:1: missing key 'none' of a GPU");
  CHECK(message_of([&] { in.child("s"); }) == "g.yaml:3:4: 's' must be a map of keys, got '7'");
  CHECK(in.optional_child("a"));
  CHECK(in.keys() == std::vector<std::string>{"a", "e", "s"});
  CHECK_NOTHROW(in.finish());
}

TEST_CASE("reader: has does not count as read, ignore does") {
  ConfigReader in = reader("a: 1\nb: 2\n");
  CHECK(in.has("a"));
  CHECK(!in.has("c"));
  in.ignore("a");
  CHECK(message_of([&] { in.finish(); }).find("unknown key 'b'") != std::string::npos);
  in.ignore_rest();
  CHECK_NOTHROW(in.finish());
}

TEST_CASE("reader: a null that was asked for is as if it were not there") {
  ConfigReader in = reader("a: null\nb:\n");
  CHECK_FALSE(in.has("a"));
  CHECK(message_of([&] { in.finish(); }) == "g.yaml:2:1: unknown key 'b' of a GPU (valid: a)");
  CHECK_FALSE(in.has("b"));
  in.finish();
}

TEST_CASE("reader: fail stands at the value, and names the key once") {
  const ConfigReader in = reader("a: 1\nb: 2\n");
  CHECK(message_of([&] { in.fail("b", "must divide the heads"); }) == "g.yaml:2:4: 'b': must divide the heads");
  CHECK(message_of([&] { in.fail("b", "'b' must divide 8"); }) == "g.yaml:2:4: 'b' must divide 8");
  CHECK(message_of([&] { in.fail("c", "no"); }) == "g.yaml:1:1: 'c': no");
  CHECK(message_of([&] { in.fail("", "no"); }) == "g.yaml:1:1: no");
}

TEST_CASE("parse_time: for flags") {
  CHECK(parse_time("2 s", "--slo").base() == 2.0);
  CHECK(parse_time(" 100ms ", "--slo").base() == 0.1);
  CHECK(message_of([] { parse_time("2", "--slo"); }) == "--slo: must be a time such as '4.5 us', got '2'");
  CHECK(message_of([] { parse_time("", "--slo"); }) == "--slo: must be a time such as '4.5 us', got ''");
  CHECK(message_of([] { parse_time("-2 s", "--slo"); }) == "--slo: must not be negative, got '-2 s'");
}

TEST_CASE("reader: keys that were only asked for are valid names too") {
  ConfigReader in(parse_config_text("{rate: 1, timout: 2}", "t"), "a workload");
  CHECK_FALSE(in.has("timeout"));
  (void)in.number("rate");
  try {
    in.finish();
    FAIL("an unknown key");
  } catch (const ConfigError& error) {
    CHECK_MESSAGE(std::string(error.what()).find("nearest is 'timeout' (valid: rate, timeout)") != std::string::npos,
                  error.what());
  }
}
