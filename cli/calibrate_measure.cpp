// roofcast calibrate measure: microkernels, one JSON line per point.

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/number_text.h"
#include "base/text.h"
#include "calibrate/cpu_backend.h"
#include "calibrate/grid.h"
#include "calibrate/harness.h"
#include "calibrate/kernels/cuda_backend.h"
#include "cli/command.h"
#include "cli/options.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace fs = std::filesystem;
namespace {

std::atomic<int> g_signal{0};  // the signal that requested the stop, such as SIGINT

extern "C" void stop_measuring(int signal) { g_signal = signal; }

Seconds budget_of(const Options& options) {
  double seconds = 0;
  const std::string text = options.text("budget");
  const NumberFault fault = parse_with_unit(text, UnitKind::kTime, seconds);
  if (fault != NumberFault::kNone || !(seconds >= 1.0 && seconds <= 86400.0))
    throw ConfigError(fmt::format("--budget: must be a time from 1 s to 24 h such as '3min', got '{}'", text));
  return Seconds{seconds};
}

std::unique_ptr<calibrate::Backend> open_backend(const Options& options) {
  const std::string name = options.text("backend");
  if (name == "cpu") return calibrate::open_cpu_backend();
  if (name == "cuda") return calibrate::open_cuda_backend(static_cast<int>(options.integer("device", 0, 1023)));
  throw ConfigError(fmt::format("--backend: must be cuda or cpu, got '{}'", name));
}

/// The operators of --only; empty without it.
std::set<std::string> wanted_operators(const Options& options) {
  std::set<std::string> wanted;
  if (!options.has("only")) return wanted;
  const std::vector<std::string> names(calibrate::grid_operators().begin(), calibrate::grid_operators().end());
  for (const std::string& name : split(options.text("only"), ',')) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw ConfigError("--only: " + unknown_name("operator", name, names));
    wanted.insert(name);
  }
  return wanted;
}

std::vector<calibrate::Point> points_of(const Options& options, const std::set<std::string>& wanted,
                                        const calibrate::Backend& backend, const calibrate::Device& device,
                                        Seconds budget) {
  std::vector<calibrate::Point> points = options.text("backend") == "cpu"
                                             ? calibrate::cpu_grid()
                                             : calibrate::default_grid(device, calibrate::level_of_budget(budget));
  std::erase_if(points, [&](const calibrate::Point& point) {
    return !backend.knows(point.op) || (!wanted.empty() && !wanted.contains(point.op));
  });
  if (points.empty()) throw ConfigError(fmt::format("--only: no point of {} on this device", options.text("only")));
  return points;
}

/// "NVIDIA H200" -> nvidia-h200.jsonl
std::string path_of(const Options& options, const calibrate::Device& device) {
  if (options.has("out")) return options.text("out");
  std::string name;
  for (const char c : lower(device.name)) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (kept || (!name.empty() && name.back() != '-')) name += kept ? c : '-';
  }
  return name + ".jsonl";
}

/// Appends lines to the file, after removing a partial last line. Two runs never write to one file.
class Output {
 public:
  Output(const std::string& path, const calibrate::Device& device) : path_(path) {
    file_.reset(std::fopen(path.c_str(), "ab"));
    if (!file_) fail();
    // Some network file systems have no locks.
    if (flock(fileno(file_.get()), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw ConfigError(fmt::format("--out: another calibrate measure is writing '{}'", path));
    std::error_code none;
    if (fs::is_regular_file(path, none) && fs::file_size(path, none) > 0) {
      const calibrate::RecordFile old = calibrate::read_records(path);
      for (const calibrate::Record& record : old.records) {
        if (record.device.name != device.name)
          throw ConfigError(
              fmt::format("--out: '{}' was measured on '{}', this is '{}'", path, record.device.name, device.name));
        found_.insert(record.point.key());
      }
      std::error_code error;
      if (old.torn) fs::resize_file(path, old.whole_bytes, error);
      if (error) fail();
    }
  }

  void write(const calibrate::Record& record) {
    const std::string line = calibrate::to_json_line(record) + "\n";
    if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0) fail();
  }
  const std::set<std::string>& found() const { return found_; }

 private:
  [[noreturn]] void fail() const { throw ConfigError(fmt::format("--out: cannot write '{}'", path_)); }

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::set<std::string> found_;
};

void show_progress(const calibrate::MeasureProgress& progress, Seconds budget) {
  const double share = static_cast<double>(progress.done) / static_cast<double>(std::max<std::size_t>(progress.of, 1));
  const std::string bar(static_cast<std::size_t>(30 * share), '#');
  fmt::print(stderr, "\r[{:<30}] {} of {}, {:.0f} of {:.0f} s  {:.60}\033[K", bar, progress.done, progress.of,
             progress.spent.base(), budget.base(), progress.point);
  if (progress.done == progress.of) fmt::print(stderr, "\r\033[K");
}

void print_summary(const calibrate::MeasureSummary& s, const std::string& path) {
  std::string text = fmt::format("{}: {} of {} points measured, {} of them to the wanted precision", path, s.measured,
                                 s.points, s.converged);
  const std::array<std::pair<std::size_t, const char*>, 7> rest{
      {{s.found, "were there before"},
       {s.out_of_memory, "did not fit the memory"},
       {s.unsupported, "are not for this device"},
       {s.failed, "FAILED"},
       {s.wrong, "gave WRONG RESULTS and were not timed"},
       {s.hot, "ran with the clocks of a GPU under load"},
       {s.not_reached, "were not reached within the budget"}}};
  for (const auto& [count, what] : rest) {
    if (count > 0) text += fmt::format("; {} {}", count, what);
  }
  if (s.interrupted) text += "; interrupted";
  if (s.interrupted || s.not_reached > 0) text += "; the same command with --resume continues from there";
  fmt::print(stderr, "{}\n", text);
}

}  // namespace

int run_calibrate_measure(std::span<const std::string> arguments) {
  Options options(
      "roofcast calibrate measure [--out FILE.jsonl] [--budget 3min] [--resume] [--only OP,...]",
      "Runs microkernels on a CUDA GPU and appends one JSON line per point, the most informative points first.\n"
      "Every result is compared with a CPU reference before it is timed. Ctrl-C keeps what is there.\n"
      "Operators: " +
          fmt::format("{}", fmt::join(calibrate::grid_operators(), " ")));
  options.add().add_options()("out", po::value<std::string>(), "FILE.jsonl: write here (default: the GPU's name)")(
      "budget", po::value<std::string>()->default_value("3min"),
      "time: under 2min the coarse grid, under 6min the default one, else the fine one")(
      "device", po::value<std::string>()->default_value("0"), "N: CUDA device number")(
      "resume", "leave out points that the file has")("only", po::value<std::string>(),
                                                      "OP,...: these operators alone")(
      "backend", po::value<std::string>()->default_value("cuda"),
      "cuda | cpu: plain C++ on one core, a self-test of the harness");
  if (!options.parse(arguments)) return kDone;
  const Seconds budget = budget_of(options);
  const std::set<std::string> wanted = wanted_operators(options);
  const std::unique_ptr<calibrate::Backend> backend = open_backend(options);
  const calibrate::Device device = backend->device();
  const std::vector<calibrate::Point> points = points_of(options, wanted, *backend, device, budget);
  const std::string path = path_of(options, device);
  Output output(path, device);
  std::signal(SIGINT, stop_measuring);
  std::signal(SIGTERM, stop_measuring);
  calibrate::HarnessOptions harness;
  harness.budget = budget;
  harness.interrupted = [] { return g_signal != 0; };
  std::function<void(const calibrate::MeasureProgress&)> progress;
  if (isatty(STDERR_FILENO)) progress = [&](const calibrate::MeasureProgress& p) { show_progress(p, budget); };
  const std::set<std::string> found = options.has("resume") ? output.found() : std::set<std::string>{};
  const auto sink = [&](const calibrate::Record& record) {
    output.write(record);
    if (record.stop == calibrate::Stop::kWrongResult || record.stop == calibrate::Stop::kFailed)
      fmt::print(stderr, "{}{}: {}: {}\n", progress ? "\n" : "", record.point.key(),
                 record.stop == calibrate::Stop::kFailed ? "failed" : "wrong result", record.note);
  };
  const calibrate::MeasureSummary summary = calibrate::measure(*backend, points, found, harness, sink, progress);
  print_summary(summary, path);
  if (summary.interrupted) return kInterrupted + g_signal;
  return summary.wrong > 0 ? kBug : kDone;
}

}  // namespace roofcast::cli
