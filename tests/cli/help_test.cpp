// --help, man pages, shell completions, tables for a terminal.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/config_release.h"
#include "base/text.h"
#include "tests/base/temporary_folder.h"
#include "tests/cli/run_program.h"

using namespace roofcast;
using roofcast::TemporaryFolder;
using roofcast::testing::run_roofcast;
using roofcast::testing::run_shell;
using roofcast::testing::Stream;

namespace {

std::string slurp(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The first words of the lines that begin with two spaces: commands of `--help`.
std::vector<std::string> listed(const std::string& help) {
  std::vector<std::string> names;
  for (const std::string& line : split(help, '\n')) {
    if (line.starts_with("  ") && line.size() > 2 && line[2] != ' ') names.push_back(split(line.substr(2), ' ')[0]);
  }
  return names;
}

/// Characters, not bytes.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

TEST_CASE("every command has a man page with every flag of its --help") {
  const TemporaryFolder folder;
  REQUIRE(run_roofcast("help --share '" + folder.path() + "'").status == 0);
  std::vector<std::string> commands = listed(run_roofcast("--help").out);
  CHECK(commands.size() > 15);
  for (const std::string parent : {"calibrate", "validate"}) {
    std::erase(commands, parent);
    for (const std::string& step : listed(run_roofcast(parent + " --help").out))
      commands.push_back(parent + " " + step);
  }
  for (const std::string& command : commands) {
    std::string file = folder.path() + "/man/man1/roofcast-" + command + ".1";
    std::replace(file.begin() + static_cast<std::ptrdiff_t>(folder.path().size()), file.end(), ' ', '-');
    const std::string page = slurp(file);
    INFO(file);
    CHECK(page.starts_with(".TH ROOFCAST\\-"));
    const std::string help = run_roofcast(command + " --help").out;
    CHECK(help.starts_with("usage: roofcast " + command));
    CHECK(help.find(" arg") == std::string::npos);
    for (const std::string& flag : listed(help)) {
      if (!flag.starts_with("--")) continue;
      std::string escaped;
      for (const char c : flag) escaped += c == '-' ? "\\-" : std::string(1, c);
      INFO(flag);
      CHECK(page.find("\\fB" + escaped + "\\fR") != std::string::npos);
    }
  }
  CHECK(slurp(folder.path() + "/man/man1/roofcast.1").find("roofcast\\-calibrate\\-fit (1)") != std::string::npos);
  for (const char* script : {"bash-completion/completions/roofcast", "zsh/vendor-completions/_roofcast",
                             "fish/vendor_completions.d/roofcast.fish"})
    CHECK(slurp(folder.path() + "/" + script).find(" complete -- ") != std::string::npos);
}

TEST_CASE("bash completes commands, flags and names by the script that the program prints") {
  const auto completed = [](const std::string& words, int at) {
    return run_shell("PATH=$(dirname '" ROOFCAST_PROGRAM
                     "'):$PATH bash -c 'source <(roofcast help --completion bash); "
                     "COMP_WORDS=(" +
                     words + "); COMP_CWORD=" + std::to_string(at) + "; _roofcast; echo ${COMPREPLY[@]}'")
        .out;
  };
  CHECK(completed("roofcast sim", 1) == "simulate\n");
  CHECK(completed("roofcast calibrate s", 2) == "show\n");
  CHECK(completed("roofcast estimate --kv", 2) == "--kv-cache-dtype\n");
  CHECK(completed("roofcast estimate --model deepseek-v3", 3) == "deepseek-v3 deepseek-v3.2\n");
  CHECK(completed("roofcast estimate --gpu = h200", 4) == "h200-nvl h200-sxm\n");
  CHECK(completed("roofcast estimate --fidelity i", 3) == "ideal\n");
  CHECK(completed("roofcast plan --price r", 3) == "reserved_1y reserved_3y\n");
  CHECK(completed("roofcast plan --emit s", 3) == "sglang\n");
  CHECK(completed("roofcast estimate --weights fp8_b", 3) == "fp8_block\n");
  CHECK(completed("roofcast validate kernels --op nc", 4) == "nccl\n");
  CHECK(completed("roofcast schema pl", 2) == "plan\n");
  CHECK(completed("roofcast lecture cache", 2) == "cache-waste\n");
  CHECK(completed("roofcast help --completion z", 3) == "zsh\n");
  CHECK(completed("roofcast help pl", 2) == "plan\n");
  CHECK(completed("roofcast simulate chat-70b-4x", 2) == "chat-70b-4xh100\n");
  CHECK(completed("roofcast kernels flash", 2).find("flash") != std::string::npos);
  CHECK(completed("roofcast simulate no-such", 2) == "\n");  // bash then offers files
}

TEST_CASE("the version is the public header's, and names the commit where there is one") {
  const std::string said = run_roofcast("--version").out;
  const std::string version = run_shell(
                                  "awk '/define ROOFCAST_VERSION_/ {printf \"%s%s\", dot, $3; dot = \".\"}' "
                                  "include/roofcast/version.h")
                                  .out;
  INFO(said);
  REQUIRE(said.starts_with("roofcast " + version));
  const std::string tail = said.substr(std::string("roofcast " + version).size());
  CHECK(std::regex_match(tail, std::regex("([+]([0-9]+[.])?g[0-9a-f]{7,})?\n")));
}

TEST_CASE("the changelog opens with the version of the public header, or with the next one above it") {
  const std::string headings = run_shell("grep '^## [0-9]' CHANGELOG.md | head -2").out;
  const std::string said = run_roofcast("--version").out;  // "roofcast 0.1.0+12.g61fc490"
  const std::string version = said.substr(9, said.find_first_of("+\n") - 9);
  INFO(headings);
  const std::size_t end = headings.find('\n');
  REQUIRE(end != std::string::npos);
  const std::string newest = headings.substr(0, end), before = headings.substr(end + 1);
  const std::string open = ", not yet released";
  if (newest.ends_with(open)) {
    CHECK(compare_versions(newest.substr(3, newest.size() - open.size() - 3), version) > 0);
    CHECK(before == "## " + version + "\n");
  } else {
    CHECK(newest == "## " + version);
  }
}

TEST_CASE("too many arguments are an error with the usage") {
  const auto result = run_roofcast("gpus h100-sxm b200-sxm", Stream::kErr);
  CHECK(result.status == 2);
  CHECK(result.out.starts_with("too many words; usage: roofcast gpus [NAME|FILE]"));
}

TEST_CASE("tables stay within the columns of the terminal") {
  for (const std::string command :
       {"models --filter qwen3", "gpus", "estimate --model llama-3.1-8b --gpu h100-sxm", "plan --help",
        "simulate chat-70b-4xh100 --set workload.requests=50", "sweep gpu-cost --store :memory:"}) {
    const auto result = run_shell("COLUMNS=80 '" ROOFCAST_PROGRAM "' " + command);
    INFO(command);
    CHECK(result.status == 0);
    for (const std::string& line : split(result.out, '\n')) {
      INFO(line);
      CHECK(columns(line) <= 80);
    }
  }
}

TEST_CASE("models are listed with their sizes, and only those that match") {
  const std::string table = run_roofcast("models --filter llama-3.1").out;
  CHECK(std::count(table.begin(), table.end(), '\n') == 4);  // the heading, 8b, 70b, 405b
  CHECK(table.find("70.6 B") != std::string::npos);          // 70,553,706,496 parameters
  const auto none = run_roofcast("models --filter lama-3.1-8b-x", Stream::kErr);
  CHECK(none.status == 2);
  CHECK(none.out.starts_with("--filter: no name contains 'lama-3.1-8b-x'; nearest is 'llama-3.1-8b'"));
  CHECK(run_roofcast("models --filter llama-3.1-8b --format csv").out.find("llama-3.1-8b,llama,8030261248,") !=
        std::string::npos);  // vocabulary 2 x 128256 x 4096, 32 layers of 218,112,000, a norm of 4096
}
