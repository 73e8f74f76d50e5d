#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/cli/run_program.h"

using roofcast::testing::run_roofcast;
using roofcast::testing::Stream;

namespace {

/// Starts a serving command, waits until it says its address, sends it `signal` and checks that it ends well.
void check_serves_until(int signal, const std::vector<std::string>& arguments) {
  std::vector<char*> words;
  std::string program = ROOFCAST_PROGRAM;
  std::vector<std::string> copies = arguments;
  words.push_back(program.data());
  for (std::string& word : copies) words.push_back(word.data());
  words.push_back(nullptr);
  int out[2];
  REQUIRE(pipe(out) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    execv(ROOFCAST_PROGRAM, words.data());
    _exit(127);
  }
  close(out[1]);
  std::string said;
  for (char c; said.find('\n') == std::string::npos && read(out[0], &c, 1) == 1;) said += c;
  CHECK(said.starts_with("http://127.0.0.1:"));
  kill(child, signal);
  int status = -1;
  waitpid(child, &status, 0);
  close(out[0]);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace

TEST_CASE("the explorer prints its address, and a signal ends it cleanly") {
  for (const int signal : {SIGINT, SIGTERM}) check_serves_until(signal, {"explore", "--port", "0"});
}

TEST_CASE("a report is served until a signal ends it") {
  const std::string result = (std::filesystem::temp_directory_path() / "roofcast_served_report.json").string();
  REQUIRE(run_roofcast("estimate --model gpt-2 --gpu l4 --format json --out " + result, Stream::kErr).status == 0);
  const auto refused = run_roofcast("report " + result + " --port 0 --out x.html", Stream::kErr);
  CHECK(refused.out == "--port: cannot be combined with --out: the page is served, or written\n");
  CHECK(refused.status == 2);
  const auto bad_port = run_roofcast("report " + result + " --port page", Stream::kErr);
  CHECK(bad_port.out == "--port: must be an integer from 0 to 65535, got 'page'\n");
  check_serves_until(SIGTERM, {"report", result, "--port", "0"});
  std::filesystem::remove(result);
}

TEST_CASE("the explorer's flags are checked") {
  const auto says = [](const char* arguments) {
    return run_roofcast(std::string("explore ") + arguments, Stream::kErr);
  };
  CHECK(says("--port 65536").out == "--port: must be an integer from 0 to 65535, got '65536'\n");
  CHECK(says("--port 0 --bind 192.0.2.1").out ==
        "--bind: cannot listen on '192.0.2.1'; give an address of this machine, such as 127.0.0.1\n");
  CHECK(says("--port 0 --bind 192.0.2.1").status == 2);
}
