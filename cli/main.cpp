// The only file that catches exceptions and exits.

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/error.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/set_hint.h"
#include "cli/version.h"

namespace {

int run(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    fmt::print("{}", roofcast::cli::overview());
    return words.empty() ? roofcast::cli::kBadInput : roofcast::cli::kDone;
  }
  if (words[0] == "--version") {
    fmt::print("roofcast {}\n", roofcast::cli::kBuildVersion);
    return roofcast::cli::kDone;
  }
  if (words[0] == "complete") return roofcast::cli::run_complete(std::span(words).subspan(1));
  return roofcast::cli::run_one_of(roofcast::cli::commands(), "command", words);
}

/// If the caller has closed a standard stream, the next opened file would take its descriptor and receive results. A
/// closed stderr discards messages; a closed stdout is an error, because results would be lost.
void occupy_closed_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) static_cast<void>(open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY));
  }
}

/// Whether all output has been written; a full disk shows only now.
bool stdout_written() {
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  return flushed && std::ferror(stdout) == 0 && std::cout.good();
}

/// Files still being written are removed with the program; earlier results stay.
extern "C" void end_on_signal(int signal) {
  roofcast::remove_unfinished_files();
  std::signal(signal, SIG_DFL);
  static_cast<void>(std::raise(signal));
}

void tidy_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (std::signal(signal, end_on_signal) == SIG_IGN)
      std::signal(signal, SIG_IGN);  // keep signals ignored, as nohup asks
  }
}

/// Never throws; fmt::print does if stderr cannot be written.
void complain(const std::string& message) { std::fputs((message + "\n").c_str(), stderr); }

/// Whether a limit on processes or memory was hit; TBB reports it in its own words.
bool lacks_threads(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return (system != nullptr && system->code() == std::errc::resource_unavailable_try_again) ||
         std::string_view(error.what()).starts_with("pthread_create has failed");
}

int lost_output() {
  complain("stdout: cannot be written");
  return roofcast::cli::kBadInput;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
  tidy_on_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is then an error where the file is written
  if (argc > 0) roofcast::set_program_name(argv[0]);
  try {
    const int status = run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
    return stdout_written() ? status : lost_output();
  } catch (const roofcast::ConfigError& error) {
    complain(error.what() + roofcast::cli::set_hint(error));
    return roofcast::cli::kBadInput;
  } catch (const roofcast::Unavailable& error) {
    complain(error.what());
    return roofcast::cli::kNoAnswer;
  } catch (const std::bad_alloc&) {
    complain("roofcast: out of memory: the input asks for more than there is");
    return roofcast::cli::kBadInput;
  } catch (const std::exception& error) {
    if (!stdout_written()) return lost_output();                    // fmt::print throws
    if (std::ferror(stderr) != 0) return roofcast::cli::kBadInput;  // and here
    if (lacks_threads(error)) {
      complain("roofcast: no thread could be started: the limit on processes or on memory is too low");
      return roofcast::cli::kNoAnswer;
    }
    complain(std::string("roofcast: internal error: ") + error.what());
    return roofcast::cli::kBug;
  }
}
