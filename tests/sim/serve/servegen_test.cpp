// Clients from files of ServeGen.
#include "sim/serve/servegen.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include <unistd.h>

#include <doctest/doctest.h>

#include "base/error.h"
#include "sim/serve/workload.h"

using namespace roofcast;

namespace {

const char* const kTrace = "0,2,1,Gamma,1,0.5\n100,0,0,,0,0\n200,6,1,Weibull,1,0.16\n300,0,0,,0,0\n";
const char* const kLengths =
    R"({"0": {"input_tokens": "{10: 0.25, 20: 0.75}", "output_tokens": "{5: 1.0}"},
        "200": {"input_tokens": "{}", "output_tokens": "{}"}})";

/// A folder of this test alone.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("roofcast_servegen_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const Folder& with(int client, const std::string& trace, const std::string& lengths) const {
    const std::string stem = (path_ / ("chunk-" + std::to_string(client))).string();
    std::ofstream(stem + "-trace.csv") << trace;
    std::ofstream(stem + "-dataset.json") << lengths;
    return *this;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::vector<Request> drawn(const WorkloadSpec& workload) {
  const auto source = make_source(workload, 3);
  std::vector<Request> out;
  for (Request r; source->next(r);) out.push_back(r);
  return out;
}

WorkloadSpec mix_of(const Folder& folder, double rate_scale, Seconds duration) {
  WorkloadSpec mix;
  mix.arrivals.process = ArrivalSpec::Process::kTrace;
  mix.clients = read_servegen(folder.path(), rate_scale);
  mix.duration = duration;
  return mix;
}

std::string error_of(const std::string& trace, const std::string& lengths) {
  const Folder folder;
  try {
    read_servegen(folder.with(0, trace, lengths).path(), 1);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("servegen: rates by window, lengths from tables, clients without requests left out") {
  const Folder folder;
  folder.with(10, kTrace, kLengths).with(2, kTrace, kLengths).with(3, "0,0,0,,0,0\n100,0,0,,0,0\n", kLengths);
  const auto clients = read_servegen(folder.path(), 2);
  REQUIRE(clients.size() == 2);
  CHECK(clients[0].name == "chunk-2");
  CHECK(clients[1].name == "chunk-10");
  CHECK(clients[0].arrivals.rate.base() == doctest::Approx(4));  // twice the mean of 2, 0, 6, 0
  CHECK(clients[0].arrivals.profile_period == Seconds(400));
  CHECK(clients[0].arrivals.profile == std::vector<double>{1, 0, 3, 0});
  CHECK(clients[0].by_time->prompt.size() == 2);  // the second has the first's, for it is empty
  CHECK(clients[0].by_time->prompt[1].mean() == doctest::Approx(17.5));
  CHECK(clients[0].by_time->output[0].mean() == 5);
}

TEST_CASE("servegen: as many requests in each window as its rate says, of the lengths it says") {
  const Folder folder;
  folder.with(0, kTrace, kLengths);
  const auto requests = drawn(mix_of(folder, 10, Seconds(800)));
  std::vector<double> counts(8);
  double prompts = 0;
  for (const Request& r : requests) {
    ++counts[static_cast<std::size_t>(r.arrival / Seconds(100))];
    prompts += r.prompt_tokens;
    CHECK((r.prompt_tokens == 10 || r.prompt_tokens == 20));
    CHECK(r.output_tokens == 5);
  }
  const std::vector<double> expected{2000, 0, 6000, 0, 2000, 0, 6000, 0};
  for (std::size_t i = 0; i < 8; ++i) CHECK(counts[i] == doctest::Approx(expected[i]).epsilon(0.06));
  CHECK(prompts / static_cast<double>(requests.size()) == doctest::Approx(17.5).epsilon(0.01));
}

TEST_CASE("servegen: lengths hold from the start of their own window to the next one's") {
  const Folder folder;
  const auto window = [](const char* start, const char* tokens) {
    return "\"" + std::string(start) + R"(": {"input_tokens": "{)" + tokens + R"(: 1}", "output_tokens": "{1: 1}"})";
  };
  folder.with(0, kTrace, "{" + window("100", "10") + ", " + window("50", "20") + ", " + window("350", "30") + "}");
  const auto clients = read_servegen(folder.path(), 1);
  const LengthsByTime& lengths = *clients.front().by_time;
  const auto prompt_at = [&](double t) { return lengths.prompt[lengths.at(Seconds(t))].mean(); };
  for (const double day : {0.0, 400.0, 4000.0}) {
    CHECK(prompt_at(day + 0) == 20);  // none begins before: the nearest
    CHECK(prompt_at(day + 99) == 20);
    CHECK(prompt_at(day + 100) == 10);
    CHECK(prompt_at(day + 349) == 10);
    CHECK(prompt_at(day + 399) == 30);
  }
  const auto refused = [&](const std::string& first, const std::string& second) {
    return error_of(kTrace, "{" + window(first.c_str(), "1") + ", " + window(second.c_str(), "2") + "}");
  };
  CHECK(refused("100", "100").find("two windows of the same start") != std::string::npos);
  CHECK(refused("100", "100.0").find("two windows of the same start") != std::string::npos);
  CHECK(refused("0", "-100").find("'-100' is not the start of a window") != std::string::npos);
}

TEST_CASE("servegen: a cut begins in the window that it begins in") {
  const Folder folder;
  folder.with(0, kTrace, kLengths);
  WorkloadSpec cut = mix_of(folder, 10, Seconds(120));
  cut.start = Seconds(190);  // 10 s of nothing, 100 s of 60 a second, nothing
  const auto requests = drawn(cut);
  CHECK(static_cast<double>(requests.size()) == doctest::Approx(6000).epsilon(0.05));
  CHECK(requests.front().arrival >= Seconds(10));
  CHECK(requests.back().arrival <= Seconds(110));
}

TEST_CASE("servegen: gaps have the mean and the spread that the file gives") {
  const Folder folder;
  folder.with(0, "0,1,3,Gamma,0.1,1\n10000,1,1,Weibull,2,1\n",
              R"({"0": {"input_tokens": "{1: 1}", "output_tokens": "{1: 1}"}})");
  const auto requests = drawn(mix_of(folder, 10, Seconds(20000)));
  const auto spread = [&](Seconds from, Seconds to) {
    double n = 0, sum = 0, squares = 0;
    for (std::size_t i = 1; i < requests.size(); ++i) {
      if (requests[i - 1].arrival < from || requests[i].arrival > to) continue;
      const double gap = (requests[i].arrival - requests[i - 1].arrival).base();
      ++n, sum += gap, squares += gap * gap;
    }
    CHECK(sum / n == doctest::Approx(0.1).epsilon(0.03));
    return std::sqrt(squares / n - sum / n * sum / n) / (sum / n);
  };
  CHECK(spread(Seconds(0), Seconds(10000)) == doctest::Approx(3).epsilon(0.05));
  // Weibull of shape 2: Var/mean^2 = Gamma(2) / Gamma(1.5)^2 - 1 = 4/pi - 1
  CHECK(spread(Seconds(10000), Seconds(20000)) == doctest::Approx(std::sqrt(4 / 3.14159265 - 1)).epsilon(0.02));
}

TEST_CASE("servegen: what is wrong is named with its place") {
  const auto has = [](const std::string& text, const std::string& part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  has(error_of("0,1,1,Gamma\n", kLengths), "chunk-0-trace.csv:1: expected 6 fields");
  has(error_of("0,1,1,Pareto,1,1\n100,0,0,,0,0\n", kLengths), "unknown distribution of gaps 'Pareto'");
  has(error_of("0,1,1,Gamma,1,1\n100,x,0,,0,0\n", kLengths), "chunk-0-trace.csv:2: a rate must be a number");
  has(error_of("0,1,1,Gamma,1,1\n100,0,0,,0,0\n150,0,0,,0,0\n", kLengths), "of one length");
  has(error_of("0,1,1,Gamma,1,1\n", kLengths), "fewer than two windows");
  has(error_of(kTrace, "[]"), "is not a JSON object");
  has(error_of(kTrace, R"({"0": {"input_tokens": "{1: x}", "output_tokens": "{}"}})"), "expected '{tokens: probab");
  has(error_of(kTrace, R"({"0": {"input_tokens": "{1: 1}"}})"), "has no text 'output_tokens'");
  has(error_of("0,0,0,,0,0\n100,0,0,,0,0\n", kLengths), "holds no 'chunk-N-trace.csv' of a client with requests");
  CHECK_THROWS_AS(read_servegen("/nowhere", 1), ConfigError);
}
