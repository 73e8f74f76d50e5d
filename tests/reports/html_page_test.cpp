#include "reports/html_page.h"

#include <doctest/doctest.h>

#include "base/text.h"
#include "reports/ascii_chart.h"
#include "reports/charts.h"
#include "reports/embedded.h"
#include "reports/html_text.h"
#include "reports/question.h"
#include "reports/svg_chart.h"

using namespace roofcast;
using namespace roofcast::reports;

namespace {

std::string fixture(const std::string& name) { return ROOFCAST_SOURCE_DIR "/tests/reports/fixtures/" + name; }

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

std::string page_of(const std::vector<Result>& results) {
  const auto charts = charts_of(results, "roofcast report 'a file.json'");
  return html_page(results, charts, "roofcast report 'a file.json'");
}

}  // namespace

TEST_CASE("html: texts are escaped, broken UTF-8 is replaced") {
  CHECK(html_text("<b a='1'>&\"") == "&lt;b a=&#39;1&#39;&gt;&amp;&quot;");
  CHECK(html_text("a\x01\xff\xc0\x80z") == "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz");
  CHECK(clean_utf8("\xE2\x82\xAC") == "\xE2\x82\xAC");                          // the euro sign stays
  CHECK(clean_utf8("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate does not
  CHECK(script_json("</script>&") == "\"\\u003c/script\\u003e\\u0026\"");
  CHECK(shell_word("a.json") == "a.json");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shortened("abcdef", 4) == "abc\xE2\x80\xA6");
}

TEST_CASE("html: one page with every part, no outside address, under 1 MB") {
  const std::string page = page_of({read_result(fixture("estimate.json")), read_result(fixture("simulation.json"))});
  CHECK(page.size() < 1'000'000);
  CHECK(page.rfind("<!DOCTYPE html>", 0) == 0);
  for (const char* part : {"id=\"summary\"", "id=\"chart-roofline\"", "id=\"chart-compare-ttft\"", "Specs and results",
                           "roofcast report &#39;a file.json&#39;", "<main>"}) {
    INFO(part);
    CHECK(page.find(part) != std::string::npos);
  }
  CHECK(page.find("src=\"http") == std::string::npos);
  CHECK(page.find("href=\"http") == std::string::npos);
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK(count(page, "</script>") == 3);
  CHECK((kChartJs.empty() || page.find("Chart.js v") != std::string::npos));
  CHECK((!kChartJs.empty() || page.find("libjs-chart.js") != std::string::npos));
}

TEST_CASE("html: a result with a question is live if the page has the engine") {
  Result r = read_result(fixture("simulation.json"));
  const std::string engine = "<script>/* the engine */</script>\n";
  const auto page = [&](const std::string& with) {
    const std::vector<Result> results{r};
    return html_page(results, charts_of(results, "roofcast report"), "roofcast report", with);
  };
  CHECK(page(engine).find("id=\"what-if\"") == std::string::npos);  // an older result, which does not say
  const ConfigTree asked =
      parse_config_text("{model: toy-7b, engine: {name: vllm, max_num_seqs: 8}, note: '</script>'}", "q");
  r.json["question"] = question_json(asked, Fidelity::kCalibrated);
  const std::string live = page(engine);
  CHECK(live.find("id=\"what-if\"") != std::string::npos);
  CHECK(live.find("/* the engine */") != std::string::npos);
  CHECK(live.find("wasm-unsafe-eval") != std::string::npos);
  CHECK(count(live, "</script>") == 6);  // a page's three, the questions, the engine, what asks it
  CHECK(page("").find("wasm-unsafe-eval") == std::string::npos);
  CHECK(page("").find("id=\"what-if\"") == std::string::npos);
}

TEST_CASE("html: a ladder repeats its scenario") {
  Result r = read_result(fixture("ladder.json"));
  r.json["question"] = question_json(parse_config_text("{model: toy-7b}", "q"), Fidelity::kCalibrated);
  const std::vector<Result> results{r};
  const std::string page = html_page(results, charts_of(results, "roofcast report"), "", "<script>//</script>\n");
  CHECK(page.find(R"("kind":"simulation")") != std::string::npos);
  CHECK(page.find(", its scenario") != std::string::npos);
}

TEST_CASE("html: the question of a sweep is its cheapest usable point") {
  Result r = read_result(fixture("simulation.json"));
  r.kind = ResultKind::kSweep;
  const ConfigTree scenario = parse_config_text("{model: toy-7b, gpu: big, engine: vllm, prompt_tokens: 100}", "q");
  r.json = {{"kind", "sweep"}, {"run", "estimate"}, {"question", question_json(scenario, Fidelity::kIdeal)}};
  const auto point = [](const char* batch, double usd, bool fits) {
    return ResultPoint{{{"batch", batch}, {"engine.max_num_seqs", "8"}, {"gpu", "small"}},
                       {{"fits", fits}, {"usd_per_million_total_tokens", usd}, {"tpot_ms", 5.0}}};
  };
  r.points = {point("1", 3, true), point("2", 2, true), point("4", 1, false)};
  const std::vector<Result> results{r};
  const std::string page = html_page(results, {}, "roofcast report", "<script></script>");
  const std::string begin = "id=\"questions\">";
  const std::size_t at = page.find(begin) + begin.size();
  const Json asked = Json::parse(page.substr(at, page.find("</script>", at) - at));
  REQUIRE(asked.size() == 1);
  CHECK(asked[0]["kind"] == "estimate");
  CHECK(asked[0]["question"]["batch"] == 2);
  CHECK(asked[0]["question"]["prompt_tokens"] == 100);
  CHECK(asked[0]["question"]["fidelity"] == "ideal");
  CHECK(asked[0]["question"]["document"] ==
        Json::parse(R"({"model": "toy-7b", "gpu": "small", "engine": {"name": "vllm", "max_num_seqs": 8}})"));
}

TEST_CASE("question: its JSON reads back as the same tree") {
  const ConfigTree tree = parse_config_text(
      "{a: 8, b: '8', c: 6 /s, d: [true, 'true', 1.5, 1e-9], e: {f: null, g: 2 MB/s}, h: 0.30000000000000004}", "q");
  const nlohmann::ordered_json q = question_json(tree, Fidelity::kIdeal);
  CHECK(q["fidelity"] == "ideal");
  CHECK(q["document"]["c"] == "6 /s");
  CHECK(q["document"]["b"] == "8");
  CHECK(q["document"]["h"] == 0.30000000000000004);
  const ConfigTree again = parse_config_text(q["document"].dump(), "q");
  CHECK(question_json(again, Fidelity::kIdeal) == q);
  const EstimateRequest request{
      .batch = 3, .prompt_tokens = 10, .output_tokens = 5, .context = 12, .replicas = 1, .speculation = {}};
  CHECK(question_json(tree, Fidelity::kCalibrated, request)["batch"] == 3);
  CHECK(question_json(tree, Fidelity::kCalibrated, request)["context"] == 12);
}

TEST_CASE("html: a hostile result stays text") {
  Result r = read_result(fixture("estimate.json"));
  const std::string evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>";
  r.json["model"] = evil;
  r.json["gpu"] = "\"'><svg onload=alert(1)>";
  r.json["operators"][0]["name"] = evil;
  r.json["extra"] = evil;
  r.label = evil;
  r.path = evil;
  r.notes = {evil};
  const std::string page = page_of({r, r});
  CHECK(count(page, "</script>") == 3);
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("<svg onload") == std::string::npos);
  for (const Chart& c : charts_of(std::vector{r}, evil)) CHECK(svg_chart(c).find("<script") == std::string::npos);
}

TEST_CASE("html: the SVG of every fixture is well-formed enough to hold no bare number that is not one") {
  for (const char* name : {"estimate.json", "simulation.json", "sweep.json", "plan.json", "ladder.json", "kernels.csv",
                           "requests.csv", "speculation.json"}) {
    for (const Chart& c : charts_of(std::vector{read_result(fixture(name))}, "x")) {
      const std::string svg = svg_chart(c);
      INFO(name << " " << c.id);
      CHECK(svg.find("nan") == std::string::npos);
      CHECK(svg.find("inf") == std::string::npos);
      CHECK(count(svg, "<text") == count(svg, "</text>"));
      CHECK(svg.find("</svg>") == svg.size() - 6);
    }
  }
}

TEST_CASE("ascii: a long title, a long legend and the numbers below keep to the width") {
  Chart c{.id = "c", .title = std::string(30, 'a') + " " + std::string(30, 'b') + " " + std::string(30, 'c')};
  c.x = {.title = "tokens", .low = 0.0, .high = 100000.0};
  for (int i = 0; i < 6; ++i)
    c.series.push_back({.name = "setting number " + std::to_string(i), .x = {0, 100000}, .y = {1, 2}});
  for (const int width : {60, 80}) {
    const std::string text = ascii_chart(c, width);
    for (const std::string& line : split(text, '\n')) {
      INFO(line);
      CHECK(line.size() <= static_cast<std::size_t>(width));
    }
    CHECK(text.find("setting number 5") != std::string::npos);
  }
}

TEST_CASE("ascii: bars and lines fit the terminal") {
  for (const char* name : {"estimate.json", "simulation.json", "sweep.json", "ladder.json", "kernels.csv"}) {
    for (const Chart& c : charts_of(std::vector{read_result(fixture(name))}, "x")) {
      const std::string text = ascii_chart(c, 80);
      INFO(text);
      CHECK(text.find('\t') == std::string::npos);
      CHECK(text.find('\x1b') == std::string::npos);
      CHECK(count(text, "\n") >= 4);
    }
  }
  const auto ladder = charts_of(std::vector{read_result(fixture("ladder.json"))}, "x");
  CHECK(ascii_chart(ladder[0]).find("fp8 weights") != std::string::npos);
}
