#include "sim/plan/measured/plausibility.h"

#include <doctest/doctest.h>

#include "tests/sim/plan/measured/rows.h"

using namespace roofcast;
using rows::Cells;

namespace {

// Llama 3.1 8B in 16 bit on an H100 of 989 TFLOP/s and 3.35 TB/s:
//   a decode step reads 8.03 B parameters less an embedding table of 128,256 x 4,096: 15.0 GB, 4.48 ms
//   a prompt of 8192 tokens takes 2 x 6.98 B x 8192 + 2 x 8192^2 x 4096 x 32 = 132 TFLOP, 133 ms, and norms, rotation
//   and activation move 172 kB a token and layer, 45 GB, 13.5 ms: 147 ms
// Figures are believed down to 85 % of these.

/// What is doubted of one run; "" when it is believed.
std::string doubt(const Cells& changes) {
  const MeasuredRun run = rows::read(rows::closed_loop(changes));
  REQUIRE(run.note == "");
  CHECK(run.scored == run.doubt.empty());
  return run.doubt;
}
Cells prompts(const std::string& users, const std::string& ttft, const std::string& tpot, const Cells& changes = {}) {
  return rows::with({{"isl", "8192"}, {"concurrency", users}, {"ttft_ms", ttft}, {"tpot_ms", tpot}}, changes);
}

}  // namespace

TEST_CASE("plausibility: TPOT below the bytes of a decode step") {
  // 0.85 x 4.5 ms = 3.8 ms
  CHECK(doubt({{"ttft_ms", "20"}, {"tpot_ms", "4.0"}}) == "");
  CHECK(doubt({{"ttft_ms", "20"}, {"tpot_ms", "3.6"}}).starts_with("TPOT of 3.60 ms is below the 4.5"));
  CHECK(doubt({{"ttft_ms", "20"}, {"tpot_ms", "3.6"}}).ends_with("sequences take by the datasheet"));
  // On two GPUs half of that.
  CHECK(doubt({{"ttft_ms", "20"}, {"tpot_ms", "3.6"}, {"tp", "2"}}) == "");
  CHECK(doubt({{"ttft_ms", "20"}, {"tpot_ms", "1.6"}, {"tp", "2"}}) != "");
  // One token out has no second: nothing to judge.
  CHECK(doubt({{"ttft_ms", "20"}, {"tpot_ms", "0.1"}, {"osl", "1"}}) == "");
}

TEST_CASE("plausibility: only so many sequences decode at a time as Little's law says") {
  // 64 in flight, 2048 + 32 tokens each of 131,072 B: if all decoded, 15.0 + 17.4 GB would take 9.7 ms. TTFT of 5.8 s
  // and 64 x 9 ms = 0.58 s of decoding leave 64 x 0.58 / 6.4 = 5 of them: 15.0 + 1.6 GB, 5 ms.
  const Cells waiting{{"isl", "2048"}, {"concurrency", "64"}, {"tpot_ms", "7"}};
  CHECK(doubt(rows::with(waiting, {{"ttft_ms", "5800"}})) == "");
  // Hardly any wait and TPOT of 7 ms: 60 decode at a time, and 0.85 x 9.4 ms are more.
  CHECK(doubt(rows::with(waiting, {{"ttft_ms", "30"}})).starts_with("TPOT of 7.00 ms is below"));
}

TEST_CASE("plausibility: TTFT below the time of one prompt") {
  // 0.85 x 147 ms = 125 ms
  CHECK(doubt(prompts("1", "130", "6")) == "");
  CHECK(doubt(prompts("1", "100", "6")).starts_with("TTFT of 100.0 ms is below the 147"));
  CHECK(doubt(prompts("1", "100", "6", {{"tp", "2"}})) == "");  // on two GPUs
}

TEST_CASE("plausibility: a latency below the time of all prompts in flight") {
  // 32 prompts, 32 x 147 ms = 4.7 s, 85 % of that 4.0 s. 0.2 s + 64 x 20 ms = 1.5 s; 0.2 s + 64 x 65 ms = 4.4 s.
  CHECK(doubt(prompts("32", "200", "65")) == "");
  CHECK(doubt(prompts("32", "200", "20")).starts_with("a latency of 1.48 s is below the 4.7"));
  CHECK(doubt(prompts("32", "200", "20")).ends_with("s that 32 prompts take by the datasheet"));
}

TEST_CASE("plausibility: disaggregated workers prefill while others decode") {
  const auto apart = [](const Cells& changes) {
    return rows::read(
               rows::apart(rows::with({{"isl", "8192"}, {"concurrency", "32"}, {"decode_batch_size", "32"}}, changes)))
        .doubt;
  };
  CHECK(apart({{"ttft_ms", "200"}, {"tpot_ms", "20"}}) == "");
  CHECK(apart({{"ttft_ms", "200"}, {"tpot_ms", "3"}}) != "");
}

TEST_CASE("plausibility: prompts that are found in the cache take no time") {
  // One prompt, sent again and again: of 8192 tokens all but a last block are cached after the first.
  const Cells same{{"distinct_prompts", "1"}, {"prefix_caching", "1"}};
  CHECK(doubt(prompts("1", "30", "6", same)) == "");
  CHECK(doubt(prompts("32", "60", "20", same)) == "");
  CHECK(doubt(prompts("1", "30", "6", {{"distinct_prompts", "1"}, {"prefix_caching", "0"}})) != "");
}

TEST_CASE("plausibility: TPOT under a load against that under twice the load") {
  const auto doubts = [](const std::vector<std::pair<const char*, const char*>>& load, const Cells& second = {}) {
    std::vector<Cells> runs;
    for (const auto& [users, tpot] : load)
      runs.push_back(rows::closed_loop({{"concurrency", users}, {"ttft_ms", "50"}, {"tpot_ms", tpot}}));
    runs[1] = rows::with(runs[1], second);
    std::string text;
    for (const MeasuredRun& run : read_measured_runs(rows::table(runs)).runs) text += run.doubt + ";";
    return text;
  };
  // 15 ms at 8 users is more than 1.5 x 9 ms at 16.
  const std::string why = "its series contradicts itself: TPOT of 15.00 ms with 8 in flight, 9.00 ms with 16;";
  CHECK(doubts({{"8", "15"}, {"16", "9"}}) == why + why);
  CHECK(doubts({{"1", "7"}, {"8", "15"}, {"16", "9"}, {"32", "16"}}) == why + why + why + why);  // which one is wrong?
  // A row that the datasheet refutes condemns no other.
  CHECK(doubts({{"8", "15"}, {"16", "0.1"}}).starts_with(";TPOT of 0.10 ms is below"));
  CHECK(doubts({{"8", "13"}, {"16", "9"}}) == ";;");  // 1.44 x
  CHECK(doubts({{"8", "15"}, {"15", "9"}}) == ";;");  // less than twice the load
  CHECK(doubts({{"8", "15"}, {"64", "9"}}) != ";;");  // more than twice
  CHECK(doubts({{"16", "9"}, {"8", "15"}}) == why + why);
  // Runs that differ in anything else are not compared.
  for (const auto& [column, value] : Cells{{"isl", "512"},
                                           {"tp", "2"},
                                           {"engine_version", "0.18.0"},
                                           {"kv_dtype", "fp8"},
                                           {"protocol", "nvidia"},
                                           {"gpu", "h200-sxm"}}) {
    INFO(column);
    CHECK(doubts({{"8", "15"}, {"16", "9"}}, {{column, value}}) == ";;");
  }
}

TEST_CASE("plausibility: what a table marked stays as it marked it, and runs without figures are not judged") {
  CHECK(rows::read(rows::closed_loop({{"suspect", "1"}, {"ttft_ms", "20"}, {"tpot_ms", "0.1"}})).doubt ==
        "marked suspect in the table");
  CHECK(doubt({}) == "");
  CHECK(doubt({{"ttft_ms", "0"}, {"tpot_ms", "0"}}) == "");
}

TEST_CASE("plausibility: figures of a batch, of everything at once and of a rate") {
  // 256 tokens in and 64 out: of a prompt each product takes the longer of FLOPs and bytes, in all 5.2 ms where the
  // FLOPs are 3.7; with 63 decode steps of 4.5 ms 0.29 s.
  const auto judged = [](const Cells& changes) {
    const MeasuredRun run = rows::read(rows::figure(rows::with({{"isl", "256"}, {"osl", "64"}}, changes)));
    REQUIRE(run.note == "");
    CHECK(run.scored == run.doubt.empty());
    return run.doubt;
  };
  CHECK(judged({{"metric", "e2e_ms"}, {"value", "300"}, {"batch", "4"}}) == "");
  CHECK(judged({{"metric", "e2e_ms"}, {"value", "200"}, {"batch", "4"}}).starts_with("a batch of 200.00 ms is below"));
  CHECK(judged({{"metric", "ttft_ms"}, {"value", "5"}, {"batch", "1"}}) == "");
  CHECK(
      judged({{"metric", "ttft_ms"}, {"value", "3"}, {"batch", "1"}}).starts_with("TTFT of 3.00 ms is below the 5.2"));
  CHECK(judged({{"metric", "tpot_ms"}, {"value", "3"}, {"batch", "1"}})
            .ends_with("a decode step takes by the datasheet"));
  CHECK(judged({{"metric", "itl_ms"}, {"value", "3"}, {"request_rate", "2"}})
            .starts_with("ITL of 3.00 ms is below the 4"));
  // Prompts alone, 64 in a pass: 3.7 ms and 0.4 of norms and the like: 248 requests, 15,800 tokens a second; at 85 % of
  // that time 18,600.
  CHECK(judged({{"metric", "output_tokens_per_s"}, {"value", "15000"}}) == "");
  CHECK(judged({{"metric", "output_tokens_per_s"}, {"value", "25000"}})
            .starts_with("a request of 2.56 ms is below the 4.0"));
  CHECK(judged({{"metric", "tokens_per_s_per_gpu"}, {"value", "15000"}, {"tp", "2"}}) == "");
  CHECK(judged({{"metric", "tokens_per_s_per_gpu"}, {"value", "25000"}, {"tp", "2"}}) != "");
  CHECK(judged({{"metric", "total_tokens_per_s"}, {"value", "75000"}, {"request_rate", "inf"}}) == "");
  CHECK(judged({{"metric", "total_tokens_per_s"}, {"value", "125000"}, {"request_rate", "inf"}}) != "");
}

TEST_CASE("plausibility: a batch slower than one of twice its size") {
  const auto doubts = [](const std::string& small, const std::string& large, const Cells& changes = {}) {
    const Cells batch = rows::figure({{"isl", "256"}, {"osl", "64"}, {"metric", "e2e_ms"}});
    std::string text;
    for (const MeasuredRun& run :
         read_measured_runs(rows::table({rows::with(batch, {{"batch", "4"}, {"value", small}}),
                                         rows::with(rows::with(batch, {{"batch", "8"}, {"value", large}}), changes)}))
             .runs)
      text += run.doubt + ";";
    return text;
  };
  CHECK(doubts("500", "400") == ";;");
  CHECK(doubts("900", "500") == "e2e_ms of 900.00 in a batch of 4, 500.00 in one of 8;;");
  CHECK(doubts("900", "500", {{"tp", "2"}}) == ";;");
}

TEST_CASE("plausibility: tokens, watts and joules of a server at a steady batch") {
  const auto judged = [](const Cells& changes) {
    const MeasuredRun run = rows::read(rows::with({{"hf_id", "meta-llama/Llama-3.1-8B-Instruct"},
                                                   {"task", "chat"},
                                                   {"gpu", "h100-sxm"},
                                                   {"gpus", "1"},
                                                   {"tp", "1"},
                                                   {"dp", "1"},
                                                   {"ep", "1"},
                                                   {"max_num_seqs", "128"},
                                                   {"mean_batch", "32"},
                                                   {"mean_output_tokens", "300"},
                                                   {"median_itl_ms", "10"},
                                                   {"output_tokens_per_s", "3000"},
                                                   {"power_w", "500"},
                                                   {"joules_per_output_token", "0.16666"}},
                                                  changes));
    REQUIRE(run.note == "");
    return run.doubt;
  };
  CHECK(judged({}) == "");
  // 32 sequences with a token each 10 ms make 3,200 tokens a second.
  CHECK(judged({{"output_tokens_per_s", "6000"}, {"joules_per_output_token", ""}})
            .starts_with("6000 tokens/s with gaps of 10.0 ms need 60 sequences at a time, of which there are 32"));
  CHECK(judged({{"power_w", "900"}, {"joules_per_output_token", "0.3"}}) == "900 W are above the 700 W of the boards");
  CHECK(judged({{"power_w", "20"}, {"joules_per_output_token", ""}}).find("of idle boards") != std::string::npos);
  CHECK(judged({{"joules_per_output_token", "0.3"}}) == "0.3 J per token and 3000 tokens/s make 900 W, not 500 W");
}

TEST_CASE("plausibility: published figures of a scenario") {
  const auto doubt = [](double ttft, double tpot, double rate, const std::string& more = "") {
    const ConfigTree tree = parse_config_text(
        "model: llama-3.1-8b\ngpu: h100-sxm\nengine: vllm@0.19\n" + more +
            "workload: {arrivals: {process: closed_loop, concurrency: 4}, prompt_tokens: 256, output_tokens: 64, "
            "requests: 40}\n",
        "s.yaml");
    return published_doubt(read_scenario(tree, Fidelity::kCalibrated), ttft, tpot, rate);
  };
  CHECK(doubt(30, 6, 600) == "");
  CHECK(doubt(0, 0, 0) == "");  // nothing published
  CHECK(doubt(3, 6, 600).starts_with("TTFT of 3.00 ms is below"));
  CHECK(doubt(30, 3, 0).starts_with("TPOT of 3.00 ms is below"));
  // 30 ms and 63 steps of 20 ms are 1.29 s a request: four users get 198 tokens a second.
  CHECK(doubt(30, 20, 198) == "");
  CHECK(doubt(30, 20, 600) == "600 tokens/s at a latency of 1.29 s need 12 requests at a time, of which there are 4");
  CHECK(doubt(30, 3, 600, "speculation: {method: ngram, num_speculative_tokens: 3, acceptance: 0.7}\n") == "");
}
