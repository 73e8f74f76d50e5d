// The page of a result shows what the terminal shows.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/read_file.h"
#include "base/text.h"
#include "tests/base/temporary_folder.h"
#include "tests/cli/run_program.h"

using namespace roofcast;
using testing::run_roofcast;
using testing::Stream;

namespace {

/// Words with one blank between them.
std::string words_of(const std::string& text) {
  std::istringstream in(text);
  std::string out, word;
  while (in >> word) out += (out.empty() ? "" : " ") + word;
  return out;
}

/// What a reader sees of a page: no marks, no scripts.
std::string seen_on(std::string html) {
  for (const char* tag : {"script", "style", "svg"}) {
    const std::string open = std::string("<") + tag, close = std::string("</") + tag + ">";
    for (std::size_t at = html.find(open); at != std::string::npos; at = html.find(open, at))
      html.erase(at, html.find(close, at) + close.size() - at);
  }
  for (std::size_t at = html.find("<wbr>"); at != std::string::npos; at = html.find("<wbr>", at)) html.erase(at, 5);
  std::string text;
  bool mark = false;
  for (const char c : html) {
    if (c == '<') mark = true, text += ' ';
    if (!mark) text += c;
    if (c == '>') mark = false;
  }
  const std::array<std::pair<const char*, const char*>, 5> names{
      {{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}}};
  for (const auto& [name, sign] : names) {
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
      text.replace(at, std::string(name).size(), sign);
  }
  return words_of(text);
}

/// Lines of the terminal that the page of the same result lacks.
std::vector<std::string> missing_on_page(const std::string& command, const std::string& terminal) {
  const TemporaryFolder folder;
  const std::string json = folder.path() + "/result.json", page = folder.path() + "/page.html";
  const auto made = run_roofcast(command + " --format json --out " + json);
  CHECK((made.status == 0 || made.status == 3));
  CHECK(run_roofcast("report " + json + " --out " + page).status == 0);
  const std::string seen = seen_on(read_file(page, std::size_t{1} << 26));
  std::vector<std::string> missing;
  for (const std::string& line : split(terminal, '\n')) {
    if (seen.find(words_of(line)) == std::string::npos) missing.push_back(line);
  }
  return missing;
}

}  // namespace

TEST_CASE("every shipped plan runs, and its page shows what the terminal shows") {
  for (const char* name : {"qwen3-32b-h200", "qwen3-32b-h200-10ms", "chat-70b", "offline-70b-2xh100",
                           "diurnal-chat-70b --set 'search.gpus=[h200-sxm]' --set 'search.tp=[1]' --set "
                           "workload.duration=2h"}) {
    INFO(name);
    const std::string command = std::string("plan ") + name;
    const auto terminal = run_roofcast(command + " --wide");
    CHECK(terminal.status == 0);
    CHECK(terminal.out.size() > 1000);
    CHECK(missing_on_page(command, terminal.out) == std::vector<std::string>{});
  }
}

TEST_CASE("a plan without an answer says so on its page") {
  const std::string command = "plan chat-70b --set 'search.gpus=[l40s]' --set search.max_gpus=2";
  const auto terminal = run_roofcast(command + " --wide");
  CHECK(terminal.status == 3);
  CHECK(terminal.out.starts_with("no deployment"));
  CHECK(missing_on_page(command, terminal.out) == std::vector<std::string>{});
  const auto csv = run_roofcast(command + " --format csv");
  CHECK(csv.out.starts_with("model,gpu,engine,"));  // the columns, and no row
  CHECK(std::count(csv.out.begin(), csv.out.end(), '\n') == 1);
}

TEST_CASE("candidates left out of a ranking are in the verdict, on the terminal and on the page") {
  const std::string command =
      "plan chat-70b --set 'search.gpus=[h100-sxm, mi355x]' --set 'search.tp=[4]' --set search.max_gpus=4 --set "
      "search.confidence=0 --set workload.requests=100 --set price=on_demand";
  const auto terminal = run_roofcast(command);
  const std::size_t at = terminal.out.find("\n\nnotes\n");
  REQUIRE(at != std::string::npos);
  CHECK(terminal.out.find("mi355x", at) != std::string::npos);
  CHECK(run_roofcast(command, Stream::kErr).out.find("mi355x") == std::string::npos);  // said once
  CHECK(run_roofcast(command + " --format csv", Stream::kErr).out.find("mi355x") != std::string::npos);
  CHECK(missing_on_page(command, run_roofcast(command + " --wide").out) == std::vector<std::string>{});
}

TEST_CASE("every shipped sweep runs, and its page shows what the terminal shows") {
  for (const char* name : {"llama-2-13b-batch", "kv-cache", "roofline", "gpu-cost", "chat-rate", "speculation"}) {
    INFO(name);
    const std::string command = std::string("sweep ") + name + " --store :memory:";
    const auto terminal = run_roofcast(command);
    CHECK(terminal.status == 0);
    const std::size_t verdict =
        terminal.out.find("\n\n");  // after the table of points, which the page shows its own way
    REQUIRE(verdict != std::string::npos);
    CHECK(missing_on_page(command, terminal.out.substr(verdict)) == std::vector<std::string>{});
  }
}

TEST_CASE("every shipped scenario runs, and its page shows what the terminal shows") {
  for (const char* name : {"chat-70b-4xh100", "claim-24x-over-hf", "claim-4x-by-paging", "claim-85-percent-cheaper",
                           "claim-continuous-batching", "claim-cuda-graphs", "claim-prefix-caching",
                           "claim-thousand-users", "claim-trtllm-13-percent", "diffusion-llada-8b",
                           "diurnal-chat-70b --set workload.duration=1h", "kv-offload", "offline-70b-2xh100"}) {
    INFO(name);
    const std::string command = std::string("simulate ") + name;
    const auto terminal = run_roofcast(command);
    CHECK(terminal.status == 0);
    CHECK(missing_on_page(command, terminal.out) == std::vector<std::string>{});
  }
}

TEST_CASE(
    "the pages of an estimate and a ladder say what the terminal says, and of what does not fit that it does not") {
  for (const char* command :
       {"estimate --model llama-3.1-70b --gpu h100-sxm --batch 8", "ladder ladder-13b",
        "estimate --model llama-3.1-70b --gpu h100-sxm --tp 4 --prompt-tokens 131072 --output-tokens 16384"}) {
    INFO(command);
    CHECK(missing_on_page(command, run_roofcast(command).out) == std::vector<std::string>{});
  }
}

TEST_CASE("the CSV of an estimate, a simulation and a plan is recognised") {
  const TemporaryFolder folder;
  const auto page_of = [&](const std::string& command) {
    const std::string csv = folder.path() + "/r.csv", page = folder.path() + "/r.html";
    CHECK(run_roofcast(command + " --format csv --out " + csv).status == 0);
    CHECK(run_roofcast("report " + csv + " --out " + page).status == 0);
    return seen_on(read_file(page, std::size_t{1} << 26));
  };
  CHECK(page_of("estimate --model llama-3.1-8b --gpu h100-sxm").find("numbers of the estimate alone") !=
        std::string::npos);
  CHECK(page_of("simulate chat-70b-4xh100").find("numbers of the simulation alone") != std::string::npos);
  CHECK(page_of("plan qwen3-32b-h200").find("the ranking of the plan alone") != std::string::npos);
  CHECK(page_of("sweep kv-cache --store :memory:").find("points over") != std::string::npos);
}
