// Trace readers.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/serve/traces.h"
#include "sim/serve/workload.h"
#include "tests/measured_data.h"
#include "tests/sim/serve/fake.h"
#include "tests/sim/serve/temporary_file.h"

using namespace roofcast;

namespace {

Trace trace_of(const std::string& text, const std::string& format = "") { return parse_trace_text(text, "t", format); }

std::string error_of(const std::string& text, const std::string& format) {
  try {
    trace_of(text, format);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

WorkloadSpec played(const std::string& path, int loop = 1, double rate_scale = 1.0) {
  WorkloadSpec workload;
  workload.arrivals.process = ArrivalSpec::Process::kTrace;
  workload.arrivals.trace_file = path;
  workload.arrivals.loop = loop;
  workload.arrivals.rate_scale = rate_scale;
  return workload;
}

std::vector<Request> all_of(const WorkloadSpec& workload) {
  const auto source = make_source(workload, 1);
  std::vector<Request> requests;
  Request request;
  while (source->next(request)) requests.push_back(request);
  return requests;
}

const std::string kData = testing::kWholeData + "/traces/";

}  // namespace

TEST_CASE("traces: azure, with 100 ns kept, CRLF and no last line end") {
  const Trace trace = trace_of(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-12-31 23:59:59.9999999,374,44\r\n"
      "2024-01-01 00:00:00.0000001,396,109\r\n"
      "2024-01-01 00:00:01,879,55");
  REQUIRE(trace.rows.size() == 3);
  CHECK(trace.rows[0].seconds == 0.0);
  CHECK(trace.rows[1].seconds == doctest::Approx(2e-7).epsilon(1e-9));
  CHECK(trace.rows[2].seconds == doctest::Approx(1.0000001).epsilon(1e-12));
  CHECK(trace.rows[2].prompt_tokens == 879);
  CHECK(trace.rows[2].output_tokens == 55);
  CHECK(trace.rows[2].session == -1);
}

TEST_CASE("traces: azure 2024 writes an offset") {
  const Trace trace = trace_of(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2024-05-10 00:00:00.009930+00:00,2162,5\n"
      "2024-05-10T02:00:01.009930+02:00,2399,6\n");
  CHECK(trace.rows[1].seconds == doctest::Approx(1.0));
}

TEST_CASE("traces: mooncake counts milliseconds and blocks of 512 tokens") {
  const Trace trace = trace_of(R"({"timestamp": 0, "input_length": 1000, "output_length": 50, "hash_ids": [0, 1]})"
                               "\n"
                               R"({"timestamp": 3000, "input_length": 1100, "output_length": 7, "hash_ids": [0, 1, 2]})"
                               "\n");
  REQUIRE(trace.rows.size() == 2);
  CHECK(trace.block_tokens == 512);
  CHECK(trace.rows[1].seconds == 3.0);
  CHECK(trace.rows[1].blocks == 3);
  // The first two blocks of both prompts hold the same tokens.
  CHECK(trace.block_hashes[0] == trace.block_hashes[2]);
  CHECK(trace.block_hashes[1] == trace.block_hashes[3]);
  CHECK(trace.block_hashes[0] != trace.block_hashes[1]);
}

TEST_CASE("traces: JSON in any spelling") {
  // Escapes, nested values, exponents, negative hashes, other keys: all that JSON allows.
  const Trace trace = trace_of(
      "{\"timestamp\":1e3,\"input_length\":5.0,\"output_length\":1,\"hash_ids\":[3],\"x\":{\"timestamp\":[7]}}\n"
      "  {\"hash_ids\": [3], \"output_length\": 2, \"input\\u005flength\": 6, \"timestamp\": 2000, \"y\": null}\r\n"
      "{\"timestamp\": 3000, \"input_length\": 7, \"output_length\": 3, \"hash_ids\": []}",
      "mooncake");
  REQUIRE(trace.rows.size() == 3);
  CHECK(trace.rows[1].seconds == 1.0);
  CHECK(trace.rows[1].prompt_tokens == 6);
  CHECK(trace.block_hashes[0] == trace.block_hashes[1]);
  CHECK(trace.rows[2].blocks == 0);
  CHECK(error_of("{\"timestamp\": 01, \"input_length\": 5, \"output_length\": 1}", "mooncake") ==
        "t:1: is not a JSON object");
  CHECK(error_of("{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1} x", "mooncake") ==
        "t:1: is not a JSON object");
}

TEST_CASE("traces: bailian follows chats from parent to child") {
  const Trace trace = trace_of(R"({"type": "text", "chat_id": 10, "parent_chat_id": -1, "timestamp": 0.5, )"
                               R"("input_length": 20, "output_length": 4, "turn": 1, "hash_ids": [5, 6]})"
                               "\n"
                               R"({"type": "text", "chat_id": 11, "parent_chat_id": -1, "timestamp": 0.75, )"
                               R"("input_length": 16, "output_length": 4, "turn": 1, "hash_ids": [5]})"
                               "\n"
                               R"({"type": "text", "chat_id": 12, "parent_chat_id": 10, "timestamp": 2.5, )"
                               R"("input_length": 40, "output_length": 4, "turn": 2, "hash_ids": [5, 6, 7]})");
  REQUIRE(trace.rows.size() == 3);
  CHECK(trace.block_tokens == 16);
  CHECK(trace.rows[2].seconds == 2.0);
  CHECK(trace.rows[0].session == 0);
  CHECK(trace.rows[1].session == 1);
  CHECK(trace.rows[2].session == 0);
}

TEST_CASE("traces: burstgpt's third part names sessions") {
  const Trace trace = trace_of(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,a7,1.2,ChatGPT,472,18,490,Conversation log\n"
      "45,b1,0.4,ChatGPT,87,20,107,Conversation log\n"
      "118,a7,2.0,GPT-4,417,276,693,Conversation log\n");
  REQUIRE(trace.rows.size() == 3);
  CHECK(trace.sessions == 2);
  CHECK(trace.rows[0].session == trace.rows[2].session);
  CHECK(trace.rows[0].session != trace.rows[1].session);
}

TEST_CASE("traces: burstgpt leaves failed requests out") {
  const Trace trace = trace_of(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n"
      "45,ChatGPT,1087,0,1087,\"API log, failed\"\n"
      "118,GPT-4,417,276,693,Conversation log\n");
  REQUIRE(trace.rows.size() == 2);
  CHECK(trace.rows[1].seconds == 113.0);
  CHECK(trace.rows[1].prompt_tokens == 417);
}

TEST_CASE("traces: vidur, and csv with columns in any order") {
  CHECK(trace_of("arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n4.314579,396.0,109\n").rows[1].seconds ==
        4.314579);
  const Trace trace = trace_of("session,output_tokens,arrival_s,prompt_tokens\na,1,1.5,10\n,2,1.75,20\na,3,2,30\n");
  REQUIRE(trace.rows.size() == 3);
  CHECK(trace.rows[1].seconds == 0.25);
  CHECK(trace.rows[1].session == -1);
  CHECK(trace.rows[2].session == trace.rows[0].session);
  CHECK(trace.rows[2].prompt_tokens == 30);
  CHECK(trace.rows[2].output_tokens == 3);
}

TEST_CASE("traces: agent sessions have hashes of their own, and sub-agents") {
  const std::string line = R"({"id":"a","block_size":64,"hash_id_scope":"local","requests":[)"
                           R"({"t":0.0,"in":128,"out":5,"hash_ids":[1,2]},)"
                           R"({"t":4.0,"type":"subagent","requests":[{"t":1.0,"in":64,"out":2,"hash_ids":[9]}]},)"
                           R"({"t":9.0,"in":192,"out":0,"hash_ids":[1,2,3]},)"
                           R"({"t":10.0,"in":192,"out":6,"hash_ids":[1,2,3]}]})";
  const Trace trace = trace_of(line + "\n" + line + "\n");
  REQUIRE(trace.rows.size() == 6);  // the request without output was aborted
  CHECK(trace.block_tokens == 64);
  CHECK(trace.sessions == 2);
  CHECK(trace.rows[0].session == 0);
  CHECK(trace.rows[1].session == 1);
  CHECK(trace.rows[2].seconds == 5.0);  // 4 s + 1 s
  const auto first_hash = [&trace](std::size_t row) { return trace.block_hashes[trace.rows[row].first_block]; };
  CHECK(first_hash(0) == first_hash(4));  // the same session
  CHECK(first_hash(0) != first_hash(1));  // the same id in another
}

TEST_CASE("traces: rows out of order are sorted, equal times keep their order") {
  const Trace trace = trace_of("arrival_s,prompt_tokens,output_tokens\n9,1,1\n5,2,1\n9,3,1\n5,4,1\n");
  CHECK_FALSE(trace.was_sorted);
  std::string order;
  for (const Trace::Row& row : trace.rows) order += std::to_string(row.prompt_tokens);
  CHECK(order == "2413");
  CHECK(trace.rows[0].seconds == 0.0);
  CHECK(trace.rows[3].seconds == 4.0);
}

TEST_CASE("traces: a bad row is an error at its line") {
  CHECK(error_of("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6,374,44\nyesterday,1,1\n", "azure") ==
        "t:3: 'TIMESTAMP' must be a time such as '2023-11-16 18:15:46.6805900', got 'yesterday'");
  CHECK(error_of("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-02-30 18:15:46.6,374,44\n", "azure").find("t:2:") == 0);
  CHECK(error_of("arrived_at,num_prefill_tokens,num_decode_tokens\n1,0,5\n", "vidur") ==
        "t:2: 'num_prefill_tokens' must be a whole number of tokens, at least 1, got '0'");
  CHECK(error_of("arrival_s,prompt_tokens,output_tokens\n1,2\n", "csv") == "t:2: has 2 fields, the header has 3");
  CHECK(error_of("arrival_s,prompt_tokens,output_tokens\n1,2,3,\n", "csv") == "t:2: has 4 fields, the header has 3");
  CHECK(error_of("arrival_s,prompt_tokens,output_tokens\nnan,2,3\n", "csv").find("must be a time in seconds") !=
        std::string::npos);
  CHECK(error_of("arrival_s,prompt_tokens,output_tokens\n1,99999999999,3\n", "csv").find("t:2:") == 0);
  CHECK(error_of("arrival_s,prompt_tokens\n1,2\n", "csv") ==
        "t:1: no column 'output_tokens' (valid: arrival_s, prompt_tokens)");
  CHECK(error_of("{\"timestamp\": 0, \"input_length\"\n", "mooncake") == "t:1: is not a JSON object");
  CHECK(error_of("[1]\n", "mooncake") == "t:1: is not a JSON object");
  CHECK(error_of("{\"timestamp\": 0, \"input_length\": 5}\n", "mooncake") == "t:1: 'output_length' is missing");
  CHECK(error_of(R"({"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [0, 1]})", "mooncake") ==
        "t:1: has 2 hash_ids, but a prompt of 5 tokens has 1 blocks of 512");
  CHECK(error_of(R"({"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": ["a"]})", "mooncake") ==
        "t:1: 'hash_ids' must be a list of whole numbers");
  CHECK(error_of("{\"requests\": []}\n", "agentic") == "t:1: 'block_size' is missing");
  CHECK(error_of("arrival_s,prompt_tokens,output_tokens\n", "csv") == "t: holds no requests");
  CHECK(error_of("hello\n", "").find("t:1: does not look like a trace of any known format") == 0);
  CHECK(error_of("", "").find("t:1:") == 0);
  CHECK(error_of("x\n", "azur").find("unknown trace format 'azur'; nearest is 'azure'") != std::string::npos);
}

TEST_CASE("traces: a packed file says how to unpack it") {
  try {
    read_trace("sessions.jsonl.xz", "agentic");
    FAIL("no error");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()) == "sessions.jsonl.xz: is compressed; unpack it first: xz -dk sessions.jsonl.xz");
  }
}

TEST_CASE("traces: rate_scale divides the gaps, loop plays on at the same rate") {
  const TemporaryFile file("t.csv", "arrival_s,prompt_tokens,output_tokens\n3,10,1\n5,20,2\n7,30,3\n");
  const auto once = all_of(played(file.path()));
  REQUIRE(once.size() == 3);
  CHECK(once[2].arrival == Seconds(4.0));  // 7 - 3

  const auto twice = all_of(played(file.path(), 2, 4.0));
  REQUIRE(twice.size() == 6);
  // One pass takes 4 s and a mean gap of 2 s; all at four times the rate.
  CHECK(twice[2].arrival == Seconds(1.0));
  CHECK(twice[3].arrival == Seconds(1.5));
  CHECK(twice[5].arrival == Seconds(2.5));
  CHECK(twice[5].prompt_tokens == 30);
  CHECK(twice[5].id == 5);

  WorkloadSpec cut = played(file.path(), 2);
  cut.duration = Seconds(6.0);
  CHECK(all_of(cut).size() == 3);
  cut.duration.reset();
  cut.requests = 4;
  CHECK(all_of(cut).size() == 4);
  cut.warmup_requests = 1;
  CHECK(all_of(cut).size() == 5);
}

TEST_CASE("traces: prefixes come with the requests, those of another pass are others") {
  const TemporaryFile file("t.jsonl",
                           R"({"timestamp": 0, "input_length": 1000, "output_length": 50, "hash_ids": [0, 1]})"
                           "\n"
                           R"({"timestamp": 9, "input_length": 600, "output_length": 50, "hash_ids": [0, 4]})"
                           "\n");
  WorkloadSpec workload = played(file.path(), 2);
  const auto requests = all_of(workload);
  REQUIRE(requests.size() == 4);
  CHECK(requests[0].prefix_block_tokens == 512);
  CHECK(requests[0].prefix_blocks.size() == 2);
  CHECK(requests[0].prefix_blocks[0] == requests[1].prefix_blocks[0]);
  CHECK(requests[0].prefix_blocks[0] != requests[2].prefix_blocks[0]);
  CHECK(requests[2].prefix_blocks[0] == requests[3].prefix_blocks[0]);
  workload.shared_prefix_tokens = 64;
  CHECK_THROWS_AS(all_of(workload), ConfigError);
}

TEST_CASE("traces: a shared prefix laid over a trace that has none") {
  const TemporaryFile file("t.csv", "arrival_s,prompt_tokens,output_tokens\n0,100,1\n1,40,2\n");
  WorkloadSpec workload = played(file.path());
  workload.shared_prefix_tokens = 64;
  const auto requests = all_of(workload);
  CHECK(requests[0].prefix_blocks.size() == 4);  // 64 / 16
  CHECK(requests[1].prefix_blocks.size() == 3);  // all 40 tokens, the last 8 of a third block
  CHECK(requests[0].prefix_blocks[1] == requests[1].prefix_blocks[1]);
  // Each request draws one of the groups.
  std::string rows = "arrival_s,prompt_tokens,output_tokens\n";
  for (int i = 0; i < 90; ++i) rows += std::to_string(i) + ",100,1\n";
  const TemporaryFile many("many.csv", rows);
  workload = played(many.path());
  workload.shared_prefix_tokens = 64;
  workload.prefix_groups = 3;
  std::map<std::uint64_t, int> of_group;
  for (const Request& request : all_of(workload)) ++of_group[request.prefix_blocks.front()];
  CHECK(of_group.size() == 3);
  for (const auto& [block, count] : of_group) CHECK(count > 15);
}

TEST_CASE("traces: a sample of published traces is read, its format known by its columns") {
  const auto rows = [](const char* file) { return read_trace(testing::kSampleData + "/traces/" + file, "").rows; };
  CHECK(rows("azure_2023_conv.csv").size() == 200);
  CHECK(rows("azure_2023_code.csv").size() == 200);
  CHECK(rows("azure_2023_conv.csv")[0].prompt_tokens == 374);
  CHECK(rows("mooncake_conversation_trace.jsonl").size() == 60);
  CHECK(rows("mooncake_synthetic_trace.jsonl").size() == 60);
}

TEST_CASE("traces: Azure 2023 conversation, as published") {
  if (!testing::there_or_skip(kData + "azure_2023_conv.csv")) return;
  const Trace trace = read_trace(kData + "azure_2023_conv.csv", "azure");
  REQUIRE(trace.rows.size() == 19366);
  double prompts = 0.0, outputs = 0.0;
  for (const Trace::Row& row : trace.rows) {
    prompts += row.prompt_tokens;
    outputs += row.output_tokens;
  }
  CHECK(prompts / 19366 == doctest::Approx(1154.7).epsilon(1e-4));
  CHECK(outputs / 19366 == doctest::Approx(211.1).epsilon(1e-3));
  CHECK(trace.rows.back().seconds == doctest::Approx(3501.72194));
}

TEST_CASE("traces: Mooncake conversation, 36.6 % of blocks seen before") {
  if (!testing::there_or_skip(kData + "mooncake_conversation_trace.jsonl")) return;
  const Trace trace = read_trace(kData + "mooncake_conversation_trace.jsonl", "");
  CHECK(trace.rows.size() == 12031);
  CHECK(trace.rows.back().seconds == 3536.999);
  std::vector<std::uint64_t> unique = trace.block_hashes;
  std::sort(unique.begin(), unique.end());
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  CHECK(unique.size() == 182790);
  const double seen_before = 1.0 - static_cast<double>(unique.size()) / static_cast<double>(trace.block_hashes.size());
  CHECK(seen_before == doctest::Approx(0.366).epsilon(0.002));
}

TEST_CASE("traces: what comes before 'start' is left out, and the clock begins there") {
  const TemporaryFile file("a.csv", "arrival_s,prompt_tokens,output_tokens\n0,1,1\n10,2,1\n20,3,1\n30,4,1\n");
  WorkloadSpec cut = played(file.path(), 2);  // a pass takes 40 s
  cut.start = Seconds(15);
  std::vector<Request> requests = all_of(cut);
  REQUIRE(requests.size() == 6);
  CHECK(requests[0].id == 0);
  CHECK(requests[0].prompt_tokens == 3);
  CHECK(requests[0].arrival == Seconds(5));
  CHECK(requests[2].prompt_tokens == 1);
  CHECK(requests[2].arrival == Seconds(25));
  cut.duration = Seconds(20);
  CHECK(all_of(cut).size() == 2);
  cut.duration.reset();
  cut.requests = 3;
  CHECK(all_of(cut).size() == 3);
}

TEST_CASE("traces: one file is read once while it is held, and again when it is another") {
  const std::string line = "arrival_s,prompt_tokens,output_tokens\n0,1,1\n";
  const TemporaryFile file("a.csv", line);
  const auto first = shared_trace(file.path(), "csv");
  CHECK(shared_trace(file.path(), "csv") == first);
  std::ofstream(file.path()) << line << "1,2,3\n";
  std::filesystem::last_write_time(file.path(), std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  CHECK(shared_trace(file.path(), "csv")->rows.size() == 2);
  CHECK(first->rows.size() == 1);
}

TEST_CASE("traces: a cut or a warm-up that leaves nothing to count is refused by the name of its key") {
  const TemporaryFile file("four.csv", "arrival_s,prompt_tokens,output_tokens\n0,9,1\n1,9,1\n2,9,1\n3,9,1\n");
  const auto error = [&](Seconds start, std::int64_t warmup) -> std::string {
    WorkloadSpec workload = played(file.path());
    workload.start = start;
    workload.warmup_requests = warmup;
    try {
      return std::to_string(simulate(fake::deployment(100000), workload, fake::options()).completed);
    } catch (const ConfigError& e) {
      return e.what();
    }
  };
  CHECK(error(Seconds(3), 0) == "1");
  CHECK(error(Seconds(0), 3) == "1");
  const std::string nothing = file.path() + ": no request is left to count after ";
  CHECK(error(Seconds(3.5), 0) == nothing + "'start'");
  CHECK(error(Seconds(0), 4) == nothing + "'warmup_requests: 4'");
  CHECK(error(Seconds(2), 2) == nothing + "'start' and 'warmup_requests: 2'");
}
