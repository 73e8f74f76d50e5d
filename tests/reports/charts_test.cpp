#include "reports/charts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "reports/summary.h"
#include "reports/sweep_verdict.h"
#include "reports/validation_pairs.h"

using namespace roofcast;
using namespace roofcast::reports;

namespace {

std::string fixture(const std::string& name) { return ROOFCAST_SOURCE_DIR "/tests/reports/fixtures/" + name; }

std::vector<Chart> charts_from(const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(fixture(name));
  return charts_of(read_results(paths), "roofcast report x");
}

const Chart& chart(const std::vector<Chart>& charts, const std::string& id) {
  const auto it = std::find_if(charts.begin(), charts.end(), [&](const Chart& c) { return c.id == id; });
  REQUIRE_MESSAGE(it != charts.end(), id);
  return *it;
}

}  // namespace

TEST_CASE("charts: the roofline of an estimate") {
  const auto charts = charts_from({"estimate.json"});
  const Chart& c = chart(charts, "roofline");
  REQUIRE(c.series.size() == 4);
  // 1e15 FLOP/s / 4e12 B/s = ridge 250 FLOP/B; flat at 1000 TFLOP/s
  REQUIRE(c.lines.size() == 1);
  CHECK(c.lines[0].at == doctest::Approx(250));
  CHECK(c.series[0].y.back() == doctest::Approx(1000));
  CHECK(c.series[1].y.back() == doctest::Approx(800));
  // prefill's largest operator: 9e13 FLOP in 0.15 s = 600 TFLOP/s at 9000 FLOP/B
  CHECK(c.series[2].x[0] == doctest::Approx(9000));
  CHECK(c.series[2].y[0] == doctest::Approx(600));
  CHECK(c.caption.find("embedding") != std::string::npos);
  CHECK(c.command.find("--model toy-7b --gpu toy-gpu --engine vllm --tp 2") != std::string::npos);
  CHECK(c.source.find("measured: a table") != std::string::npos);
}

TEST_CASE("charts: a step's parts add up to 100 %, the rest is the host's") {
  const auto charts = charts_from({"estimate.json"});
  const Chart& c = chart(charts, "breakdown");
  double decode = 0;
  for (const Series& s : c.series) decode += s.y[0];
  CHECK(decode == doctest::Approx(100));
  const auto host =
      std::find_if(c.series.begin(), c.series.end(), [](const Series& s) { return s.name == "host and launches"; });
  REQUIRE(host != c.series.end());
  CHECK(host->y[0] == doctest::Approx(9.9));  // 10 - 6 - 3 - 0.01 ms of 10
}

TEST_CASE("charts: memory against context is stacked under the capacity") {
  const auto charts = charts_from({"estimate.json"});
  const Chart& c = chart(charts, "memory");
  CHECK(upper_edges(c).back().back() == doctest::Approx(7 + 0.5 + 4));
  CHECK(c.lines[0].at == doctest::Approx(85));
}

TEST_CASE("charts: a plot of optional keys is left out, and nothing else") {
  Result r = read_result(fixture("simulation.json"));
  r.json.erase("intervals");
  const auto charts = charts_of(std::vector{r}, "x");
  REQUIRE(charts.size() == 1);
  CHECK(charts[0].id == "latency");
}

TEST_CASE("charts: a simulation over time") {
  const auto charts = charts_from({"simulation.json"});
  CHECK(chart(charts, "latency").series.size() == 4);
  CHECK(chart(charts, "queue").series[0].y == std::vector<double>{0, 9, 2});
  CHECK(chart(charts, "kv-usage").series[0].y[1] == doctest::Approx(97));
  CHECK(chart(charts, "replicas").series[0].y == std::vector<double>{1, 3, 2});
}

TEST_CASE("charts: a sweep has its numeric key on x and one line per GPU") {
  const auto charts = charts_from({"sweep.json"});
  const Chart& tpot = chart(charts, "tpot-sweep");
  REQUIRE(tpot.series.size() == 2);
  CHECK(tpot.series[0].name == "fast");
  CHECK(tpot.series[0].x == std::vector<double>{1, 4, 16, 64});
  CHECK(tpot.series[0].y[3] == doctest::Approx(8 + 64.0 / 8));
  CHECK(tpot.x.log);
  CHECK(chart(charts, "cost").series[0].y.size() == 2);
  // No point of the frontier is beaten by another in both.
  const Chart& pareto = chart(charts, "pareto");
  REQUIRE(pareto.series.size() == 3);  // a colour for each of two GPUs, and the frontier
  const Series& best = pareto.series.back();
  CHECK(pareto.series[0].x.size() + pareto.series[1].x.size() == 8);
  for (const Series& all : {pareto.series[0], pareto.series[1]}) {
    for (std::size_t i = 0; i < best.x.size(); ++i) {
      for (std::size_t k = 0; k < all.x.size(); ++k) CHECK_FALSE((all.x[k] > best.x[i] && all.y[k] > best.y[i]));
    }
  }
}

TEST_CASE("charts: speculation over k, one line an acceptance, relative to k = 0") {
  const auto charts = charts_from({"speculation.json"});
  const Chart& c = chart(charts, "speculation");
  REQUIRE(c.series.size() == 2);
  CHECK(c.series[0].y[0] == doctest::Approx(1));
  // acceptance 0.5, k = 1: (1 - 0.5^2) / (1 - 0.5) = 1.5 tokens a step that costs 1.05
  CHECK(c.series[0].y[1] == doctest::Approx(1.5 / 1.05));
}

TEST_CASE("charts: a plan's frontier and cost, a ladder's waterfall") {
  const auto plan = charts_from({"plan.json"});
  CHECK(chart(plan, "pareto").series.back().x ==
        std::vector<double>{50, 100});  // 1000 / 20 and 1000 / 10; 40 is beaten
  CHECK(chart(plan, "pareto").series.back().y == std::vector<double>{1000, 500});
  CHECK(chart(plan, "plan-cost").y.categories.size() == 3);
  const auto ladder = charts_from({"ladder.json"});
  const Chart& c = chart(ladder, "ladder-tpot");
  REQUIRE(c.series.size() == 3);
  CHECK(c.series[1].base == std::vector<double>{80, 55});  // better: 80 to 50, 55 to 30
  CHECK(c.series[1].y == std::vector<double>{50, 30});
  CHECK(c.series[2].base == std::vector<double>{50});  // worse: 50 to 55
}

TEST_CASE("charts: each GPU has a frontier of its own, and all together have one") {
  Result r = read_result(fixture("plan.json"));
  const auto point = [](const char* gpu, double user, double rate) {
    return Json{{"gpu", gpu},
                {"layout", "tp 1"},
                {"output_tokens_per_s_per_user", user},
                {"output_tokens_per_s_per_gpu", rate},
                {"objectives_met", true}};
  };
  r.json["pareto_by_gpu"] = {point("a", 10, 900), point("a", 20, 500), point("b", 15, 400), point("b", 30, 300)};
  r.json["pareto"] = {point("a", 10, 900), point("a", 20, 500), point("b", 30, 300)};
  std::vector<Chart> out;
  add_plan_charts(r, out);
  const Chart& c = chart(out, "pareto");
  REQUIRE(c.series.size() == 3);
  CHECK(c.series[1].name == "b");
  CHECK(c.series[1].x == std::vector<double>{15, 30});
  CHECK(c.series[1].shape == Shape::kLinePoints);
  CHECK(c.series[2].name == "the best of all");
  CHECK(c.series[2].x == std::vector<double>{10, 20, 30});
  CHECK(c.series[2].dashed);
}

TEST_CASE("charts: a rung of a ladder starts at the last one that was kept") {
  Result r = read_result(fixture("ladder.json"));
  // 80 to 50; 55 lost, and was left out: 30 is measured against 50, whose rate is 1280
  r.points[3].result["throughput_gain"] = r.points[3].result["output_tokens_per_s"].get<double>() / 1280;
  std::vector<Chart> out;
  add_ladder_charts(r, out);
  const Chart& c = chart(out, "ladder-tpot");
  CHECK(c.series[1].base == std::vector<double>{80, 50});
  CHECK(c.series[1].y == std::vector<double>{50, 30});
}

TEST_CASE("charts: a line of a sweep holds all keys but two, and the page offers the other values") {
  Result r{.kind = ResultKind::kSweep};
  for (int gpu = 0; gpu < 3; ++gpu) {
    for (int prompt = 1; prompt <= 4; ++prompt) {
      for (const int batch : {1, 2, 4}) {
        ResultPoint p;
        p.keys = {{"gpu", fmt::format("g{}", gpu)},
                  {"batch", std::to_string(batch)},
                  {"prompt_tokens", std::to_string(100 * prompt)}};
        p.result = {{"ttft_ms", 1},
                    {"tpot_ms", 1000 * gpu + 100 * prompt + batch},
                    {"output_tokens_per_s", 1},
                    {"usd_per_million_total_tokens", 10 - batch * gpu}};
        r.points.push_back(std::move(p));
      }
    }
  }
  std::vector<Chart> out;
  add_sweep_charts(r, out);
  const Chart& c = chart(out, "tpot-sweep");
  CHECK(c.held == std::vector<std::string>{"prompt tokens"});
  REQUIRE(c.views.size() == 3);  // 4 lengths of the prompt, one of them drawn
  std::vector<const Chart*> all{&c};
  for (const Chart& view : c.views) all.push_back(&view);
  for (const Chart* view : all) {
    REQUIRE(view->series.size() == 3);  // a line for each GPU
    for (std::size_t gpu = 0; gpu < 3; ++gpu) {
      const double first = 1000.0 * static_cast<double>(gpu) + std::stod(view->at[0]);
      CHECK(view->series[gpu].y == std::vector<double>{first + 1, first + 2, first + 4});
    }
  }
  CHECK(c.caption == "Drawn for prompt tokens " + c.at[0] + ".");
}

namespace {

/// GPUs by lengths of the output by batches from 1 up; `fits` says which points do.
Result many_points(int gpus, int outputs, const std::function<bool(int gpu, int output)>& fits, int batches = 2) {
  Result r{.kind = ResultKind::kSweep};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    for (int output = 1; output <= outputs; ++output) {
      for (int batch = 1; batch <= batches; ++batch) {
        ResultPoint p;
        p.keys = {{"gpu", fmt::format("g{}", gpu)},
                  {"batch", std::to_string(batch)},
                  {"output_tokens", std::to_string(output)}};
        p.result = {{"ttft_ms", 1}, {"tpot_ms", 1}, {"output_tokens_per_s", 1}, {"fits", fits(gpu, output)}};
        r.points.push_back(std::move(p));
      }
    }
  }
  return r;
}

}  // namespace

TEST_CASE("charts: each view states how many of its points do not fit") {
  std::vector<Chart> out;
  add_sweep_charts(many_points(3, 4, [](int gpu, int output) { return output != 3 || gpu == 0; }), out);
  const Chart& c = chart(out, "tpot-sweep");
  std::map<std::string, std::string> captions{{c.at[0], c.caption}};
  for (const Chart& view : c.views) captions[view.at[0]] = view.caption;
  REQUIRE(captions.size() == 4);
  CHECK(captions["1"] == "Drawn for output tokens 1.");
  CHECK(captions["3"] == "Drawn for output tokens 3. 4 points that do not fit are left out.");  // 2 GPUs, 2 batches
}

TEST_CASE("charts: of more combinations than can be chosen, the caption has the number") {
  std::vector<Chart> out;
  add_sweep_charts(many_points(2, 70, [](int, int) { return true; }), out);
  const Chart& c = chart(out, "tpot-sweep");
  CHECK(c.views.size() == 63);
  CHECK(c.caption == fmt::format("Drawn for output tokens {}. 64 of 70 combinations can be chosen.", c.at[0]));
}

TEST_CASE("charts: however many points a sweep has, its views stay small and reach from end to end") {
  std::vector<Chart> out;
  add_sweep_charts(many_points(
                       2, 70, [](int, int) { return true; }, 100),
                   out);
  std::size_t points = 0;
  for (const Chart& view : chart(out, "tpot-sweep").views) {
    for (const Series& s : view.series) {
      points += s.x.size();
      CHECK(s.x.front() == 1);
      CHECK(s.x.back() == 100);
    }
  }
  CHECK(points > 63 * 2 * 20);
  CHECK(points <= 3840);  // of 14,000
}

TEST_CASE("charts: of more speculations than lines can be drawn, an even selection is") {
  Result r{.kind = ResultKind::kSweep};
  for (int i = 0; i < 15; ++i) {
    for (const int drafts : {0, 2}) {
      ResultPoint p;
      p.keys = {{"speculation.acceptance", fmt::format("0.{}", 10 + i)},
                {"speculation.num_speculative_tokens", std::to_string(drafts)}};
      p.result = {{"ttft_ms", 1}, {"tpot_ms", drafts == 0 ? 10 : 5}, {"output_tokens_per_s", 1}};
      r.points.push_back(std::move(p));
    }
  }
  std::vector<Chart> out;
  add_sweep_charts(r, out);
  const Chart& c = chart(out, "speculation");
  CHECK(c.caption == "8 of 15 settings are drawn.");
  REQUIRE(c.series.size() == 8);
  CHECK(c.series.front().name.find("0.10") != std::string::npos);
  CHECK(c.series.back().name.find("0.24") != std::string::npos);
  CHECK(c.series.back().y == std::vector<double>{1, 2});
}

TEST_CASE("charts: the nearest deployment of a plan that found none is drawn against its limits, not ranked") {
  Result r = read_result(fixture("plan.json"));
  Json nearest = r.points[0].result;
  nearest["gpus"] = 4;
  nearest["objectives"] = {{{"objective", "ttft_p99"},
                            {"limit_ms", 100},
                            {"value_ms", 400},
                            {"interval_low_ms", 200},
                            {"interval_high_ms", 3000}},
                           {{"objective", "tpot_p99"}, {"limit_ms", 50}, {"value_ms", 40}}};
  r.json["nearest"] = nearest;
  r.points = {{{}, nearest}};
  const auto charts = charts_of(std::vector{r}, "x");
  CHECK(std::none_of(charts.begin(), charts.end(), [](const Chart& c) { return c.id == "plan-cost"; }));
  const Chart& c = chart(charts, "objectives");
  CHECK(c.title == "The nearest deployment, 4 x h100-sxm, and the limits");
  CHECK(c.y.categories ==
        std::vector<std::string>{"tpot_p99: 40.0 of 50 ms", "90 %: 200 to 3000 ms", "ttft_p99: 400 of 100 ms"});
  CHECK(c.series[0].y == std::vector<double>{80, 400});  // % of the limit
  CHECK(c.x.log);                                        // 80 to 3000 %
}

TEST_CASE("charts: errors of a validation") {
  const auto pairs = validation_pairs(read_result(fixture("kernels.csv")));
  REQUIRE(pairs.size() == 1);
  // |105/100 - 1| = 5 %, |180/200 - 1| = 10 %, |100/50 - 1| = 100 %: mean 38.33, median 10
  CHECK(pairs[0].rows == 3);
  CHECK(pairs[0].skipped == 1);
  CHECK(pairs[0].mape == doctest::Approx(115.0 / 3));
  CHECK(pairs[0].median == doctest::Approx(10));
  const auto charts = charts_from({"kernels.csv"});
  CHECK(chart(charts, "predicted-kernels").series.size() == 3);  // engines a and b, the diagonal
  CHECK(chart(charts, "residuals-kernels").series[1].y[0] == doctest::Approx(100));
}

TEST_CASE("charts: requests, several results side by side, ids that differ") {
  CHECK(chart(charts_from({"requests.csv"}), "distribution").series.size() == 4);
  const auto charts = charts_from({"estimate.json", "estimate.json", "simulation.json"});
  CHECK(chart(charts, "compare-ttft").y.categories.size() == 3);
  CHECK(chart(charts, "roofline-2").title.find("toy-7b") != std::string::npos);
}

TEST_CASE("sweep: unusable points are never the best, and on no frontier") {
  SweepVerdict v("toy-7b", "big-gpu");
  const Json fits{
      {"fits", true}, {"usd_per_million_total_tokens", 2.0}, {"output_tokens_per_s_per_gpu", 10.0}, {"tpot_ms", 5.0}};
  Json unfit = fits, grows = fits;
  unfit["fits"] = false, unfit["usd_per_million_total_tokens"] = 1.0, unfit["output_tokens_per_s_per_gpu"] = 99.0;
  grows["saturated"] = true, grows["tpot_ms"] = 1.0;
  v.add({{"batch", "1"}}, fits), v.add({{"batch", "2"}}, unfit), v.add({{"batch", "3"}}, grows),
      v.add({{"batch", "4"}}, Json());
  CHECK(verdict_text(v.verdict()) ==
        "toy-7b on big-gpu: 4 points over batch: 1 can be run, 1 does not fit, 1 is saturated, 1 is not possible\n"
        "cheapest: batch 1, 2.00 USD per million tokens, input and output\n"
        "highest throughput per GPU: batch 1, 10.00 output tokens/s per GPU\n"
        "quickest: batch 1, TPOT 5.00 ms\n");
  const Chart c = pareto_chart("p", {{{{"batch", "1"}}, fits}, {{{"batch", "2"}}, unfit}});
  CHECK(c.series.back().labels == std::vector<std::string>{"batch 1"});
}

TEST_CASE("sweep: points with different work are not compared") {
  const auto point = [](double usd, double rate, double tpot) {
    return Json{{"usd_per_million_total_tokens", usd}, {"output_tokens_per_s_per_gpu", rate}, {"tpot_ms", tpot}};
  };
  CHECK(is_work_key("model"));
  CHECK(is_work_key("prompt_tokens"));
  CHECK(is_work_key("workload.prompt_tokens.mean"));
  CHECK_FALSE(is_work_key("workload.arrivals.rate"));
  CHECK_FALSE(is_work_key("batch"));
  CHECK_FALSE(is_work_key("speculation.model"));
  SweepVerdict v("toy-7b", "big-gpu");
  std::vector<ResultPoint> points;
  for (const auto& [prompt, batch, result] :
       {std::tuple{"512", "1", point(2, 10, 5)}, std::tuple{"512", "8", point(1, 50, 9)},
        std::tuple{"4096", "1", point(7, 3, 6)}, std::tuple{"4096", "8", point(9, 2, 12)}}) {
    points.push_back({{{"prompt_tokens", prompt}, {"batch", batch}}, result});
    v.add(points.back().keys, result);
  }
  CHECK(verdict_text(v.verdict()) ==
        "toy-7b on big-gpu: 4 points over prompt tokens, batch: 4 can be run\n"
        "cheapest, prompt tokens 512: batch 8, 1.00 USD per million tokens, input and output\n"
        "highest throughput per GPU, prompt tokens 512: batch 8, 50.00 output tokens/s per GPU\n"
        "quickest, prompt tokens 512: batch 1, TPOT 5.00 ms\n"
        "cheapest, prompt tokens 4096: batch 1, 7.00 USD per million tokens, input and output\n"
        "highest throughput per GPU, prompt tokens 4096: batch 1, 3.000 output tokens/s per GPU\n"
        "quickest, prompt tokens 4096: batch 1, TPOT 6.00 ms\n");
  const Chart c = pareto_chart("p", points);
  REQUIRE(c.series.size() == 2);
  CHECK(c.series[0].name == "prompt tokens 512");
  CHECK(c.series[0].labels == std::vector<std::string>{"batch 8", "batch 1"});
  CHECK(c.series[1].labels == std::vector<std::string>{"batch 1"});  // better in both than a batch of 8
}

TEST_CASE("bars are side by side only if a category has several") {
  Chart c{.id = "c", .y = {.categories = {"a", "b"}}, .horizontal = true};
  c.series = {{.name = "one", .shape = Shape::kBars, .x = {0}, .y = {1}},
              {.name = "other", .shape = Shape::kBars, .x = {1}, .y = {2}}};
  CHECK_FALSE(side_by_side(c));
  CHECK(bars_of(c)[1].position == 1);  // in the middle of its category
  CHECK(bars_of(c)[1].half_width == doctest::Approx(0.4));
  c.series[1].x = {0};
  CHECK(side_by_side(c));
  CHECK(bars_of(c)[0].position < bars_of(c)[1].position);
  c.series[0].base = {0.5};  // floating bars lie on one another
  CHECK_FALSE(side_by_side(c));
}

TEST_CASE("verdict: lines and tables survive a round trip") {
  ResultVerdict v;
  v.add("for the peak:", "a line\n  another\n");
  v.add("", VerdictTable{.columns = {"GPU", "USD/h"}, .rows = {{"h100", "3"}}, .in_all = 5});
  const Json json{{"verdict", verdict_json(v)}};
  CHECK(verdict_text(read_verdict(json)) ==
        "for the peak:\na line\n  another\n\nGPU   USD/h\nh100      3\nthe first 1 of 5\n");
  CHECK(read_verdict({{"verdict", {1, {{"lines", 3}}}}}).parts.size() == 1);  // what has another form is left out
  CHECK(read_verdict(Json::object()).parts.empty());
}

TEST_CASE("verdict: on a terminal problems are red, and nothing else changes") {
  CHECK(with_colors("\nttft_p99: 3 s of 2 s: MISSED\nfine\n") ==
        "\n\033[31mttft_p99: 3 s of 2 s: MISSED\033[0m\nfine\n");
  CHECK(with_colors("missed\n") == "missed\n");
}
