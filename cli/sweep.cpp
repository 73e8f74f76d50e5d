// roofcast sweep: a grid of scenarios, in parallel, resumable.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/mpi_ranks.h"
#include "cli/options.h"
#include "reports/sweep_report.h"

namespace roofcast {
namespace po = boost::program_options;
namespace {

constexpr double kManyPoints = 1e6;
std::atomic<bool> g_stop{false};  // set by Ctrl-C

extern "C" void stop_on_signal(int) { g_stop = true; }

/// A bar with the time left, on a terminal only.
class ProgressBar {
 public:
  void operator()(std::uint64_t done, std::uint64_t of) {
    const auto now = std::chrono::steady_clock::now();
    if (done < of && now - shown_ < std::chrono::milliseconds(100)) return;
    shown_ = now;
    const std::chrono::duration<double> passed = now - start_;
    const double share = static_cast<double>(done) / static_cast<double>(of);
    const std::string bar(static_cast<std::size_t>(30 * share), '#');
    fmt::print(stderr, "\r[{:<30}] {} of {}, {:.0f} s left \033[K", bar, done, of,
               passed.count() / share * (1 - share));
    if (done == of) fmt::print(stderr, "\r\033[K");
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), shown_{};
};

SweepSpec read_sweep(const Options& options) {
  if (!options.has("sweep")) throw ConfigError("sweep: which file? roofcast sweep SWEEP.yaml");
  SweepSpec sweep = parse_sweep(options.document("sweep", "sweeps"));
  sweep.scenario = options.scenario(sweep.scenario);
  if (sweep.grid_points() > kManyPoints && !options.has("yes")) {
    throw ConfigError(fmt::format("sweep: the grid has {:.3g} points, more than {:.0f}; --yes runs it all the same",
                                  sweep.grid_points(), kManyPoints));
  }
  if (sweep.grid_points() > 1e9)
    throw ConfigError(fmt::format("sweep: a grid of {:.3g} points is too large", sweep.grid_points()));
  return sweep;
}

std::string store_path(const Options& options) {
  if (options.has("store")) return options.text("store");
  return std::filesystem::path(options.value<std::vector<std::string>>("sweep").front()).stem().string() + ".sqlite";
}

/// Ctrl-C and a full disk end a sweep with what is finished in the store.
void end_in_good_order() {
  std::signal(SIGINT, stop_on_signal);
  std::signal(SIGTERM, stop_on_signal);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of the write, which the store reports
}

void tell(const SweepOutcome& outcome, double seconds, const Ranks* ranks, int lost) {
  if (!outcome.errors.empty()) {
    fmt::print(stderr, "{} combinations cannot be; the first: {}\n", outcome.errors.size(),
               outcome.errors.begin()->second);
  }
  fmt::print(stderr, "{} points: {} run in {:.3f} s{}, {} from the store\n", outcome.points.size(), outcome.computed,
             seconds, ranks != nullptr ? fmt::format(" by {} ranks", ranks->size()) : "", outcome.found);
  if (lost > 0) fmt::print(stderr, "{} ranks fell silent; the others did their work\n", lost);
}

}  // namespace

int run_sweep_command(std::span<const std::string> arguments) {
  Options options(
      "roofcast sweep SWEEP.yaml [options]",
      "A grid of scenarios on all cores. Finished points are kept: run again, and only what is missing runs.");
  options.add_deployment_flags();
  options.add_output_flags();
  options.add().add_options()("store", po::value<std::string>(),
                              "FILE.sqlite of finished points (default: the sweep's name, here); :memory: keeps none")(
      "yes", "run a grid of more than a million points");
  options.positional("sweep", 1);
  if (!options.parse(arguments)) return kDone;
  const std::unique_ptr<Ranks> ranks = ranks_of_mpirun();
  if (ranks && ranks->rank() > 0) {
    serve_sweep(
        *ranks, [&] { return read_sweep(options); }, options.fidelity());
    return kDone;
  }
  std::optional<SweepCrew> crew;
  if (ranks) crew.emplace(*ranks);
  const SweepSpec sweep = read_sweep(options);
  SweepStore store(store_path(options));
  end_in_good_order();
  const auto start = std::chrono::steady_clock::now();
  ProgressBar bar;
  SweepProgress progress;
  if (isatty(STDERR_FILENO)) progress = std::ref(bar);
  const SweepOutcome outcome = run_sweep(sweep, options.fidelity(), store, g_stop, progress, crew ? &*crew : nullptr);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  if (outcome.interrupted) {
    fmt::print(stderr, "\ninterrupted: {} of {} points are in '{}'; the same command goes on from there\n",
               outcome.found + outcome.computed, outcome.points.size(), store_path(options));
    return kInterrupted;
  }
  options.write(sweep_report(sweep, outcome, store, options.format()));
  tell(outcome, wall.count(), ranks.get(), crew ? crew->lost() : 0);
  return kDone;
}

}  // namespace roofcast
