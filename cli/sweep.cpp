// roofcast sweep: a grid of scenarios, in parallel, resumable.

#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/output_file.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/idle_estimate.h"
#include "reports/sweep_report.h"
#include "sim/plan/search/idle_in_sweep.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

constexpr double kManyPoints = 1e6;
std::atomic<bool> g_stop{false};    // set by Ctrl-C
std::atomic<int> g_signal{SIGINT};  // the signal that set it

constexpr itimerval kGrace{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 700'000}};

/// A point that takes longer than the grace period, or a second Ctrl-C, ends the program: the store keeps its points.
extern "C" void end_at_once(int) {
  constexpr std::string_view kWords =
      "\ninterrupted: finished points are kept; the same command continues from there\n";
  static_cast<void>(!::write(STDERR_FILENO, kWords.data(), kWords.size()));
  remove_unfinished_files();
  std::signal(g_signal, SIG_DFL);
  static_cast<void>(std::raise(g_signal));
}

extern "C" void stop_on_signal(int signal) {
  g_signal = signal;
  if (g_stop.exchange(true)) return end_at_once(0);
  setitimer(ITIMER_REAL, &kGrace, nullptr);
}

/// A progress bar with the remaining time, on a terminal only.
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
  sweep.scenario = options.scenario(
      sweep.scenario, [&](const auto& tree, const auto& key, const auto& value, const std::string& origin) {
        return with_fixed(sweep, tree, key, value, origin);
      });
  if (sweep.grid_points() > kManyPoints && !options.has("yes")) {
    throw ConfigError(fmt::format("sweep: the grid has {:.3g} points, more than {:.0f}; --yes runs it anyway",
                                  sweep.grid_points(), kManyPoints));
  }
  if (sweep.grid_points() > 1e9)
    throw ConfigError(fmt::format("sweep: a grid of {:.3g} points is too large", sweep.grid_points()));
  return sweep;
}

/// The shard of this process if a launcher such as mpirun or srun started several; 1/1 otherwise.
Shard shard_of_rank() {
  static constexpr std::array<std::array<const char*, 2>, 3> kVariables{
      {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}}};
  for (const auto& [rank_variable, size_variable] : kVariables) {
    const char *rank = std::getenv(rank_variable), *size = std::getenv(size_variable);
    // Slurm sets these variables in batch scripts too, but only srun starts steps.
    const bool slurm = std::string_view(rank_variable).starts_with("SLURM_");
    if (rank == nullptr || size == nullptr || (slurm && std::getenv("SLURM_STEP_ID") == nullptr)) continue;
    const std::string given = fmt::format("{}={}, {}={}", rank_variable, rank, size_variable, size);
    int number = -1;
    const std::string_view digits(rank);
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (end.ec != std::errc() || end.ptr != digits.data() + digits.size() || number < 0)
      throw ConfigError(given + ": the rank must be a whole number from 0 on");
    return parse_shard(fmt::format("{}/{}", number + 1, size), given);  // ranks count from 0, shards from 1
  }
  return {};
}

/// Which part of the sweep runs here, and whether a launcher's rank decides it.
struct Part {
  SweepParts parts;
  bool of_rank = false;
};

Part part_of(const Options& options) {
  if (options.has("shard") && options.has("merge")) throw ConfigError("--merge: cannot be combined with --shard");
  if (options.has("shard")) return {.parts = {.shard = parse_shard(options.text("shard")), .merge = {}}};
  if (options.has("merge")) return {.parts = {.shard = {}, .merge = options.value<std::vector<std::string>>("merge")}};
  const Shard shard = shard_of_rank();
  if (shard.count > 1 && options.has("out"))
    throw ConfigError(fmt::format("--out: {} ranks cannot write one file; merge their stores first", shard.count));
  return {.parts = {.shard = shard, .merge = {}}, .of_rank = shard.count > 1};
}

/// --store, or the sweep's name in this folder. Each shard has its own store, whose name tells the shard unless both
/// --shard and --store are given.
std::string store_path(const Options& options, const Part& part) {
  namespace fs = std::filesystem;
  const Shard shard = part.parts.shard;
  fs::path path = options.has("store")
                      ? fs::path(options.text("store"))
                      : fs::path(options.value<std::vector<std::string>>("sweep").front()).stem() += ".sqlite";
  if (shard.count == 1 || path == ":memory:" || (options.has("store") && !part.of_rank)) return path.string();
  const std::string extension = path.extension().string();
  path.replace_extension(fmt::format("{}-of-{}{}", shard.index, shard.count, extension));
  return path.string();
}

/// Ctrl-C and a full disk end a sweep with the finished points in the store.
void end_in_good_order() {
  std::signal(SIGALRM, end_at_once);
  for (const int signal : {SIGINT, SIGTERM}) {
    if (std::signal(signal, stop_on_signal) == SIG_IGN) std::signal(signal, SIG_IGN);  // as a background job asks
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit then becomes a write error, which the store reports
}

/// Prints the settings that have no effect.
void tell_idle(const SweepSpec& sweep, Fidelity fidelity, const SweepOutcome& outcome, const SweepStore& store) {
  const auto simulated = [&](std::string_view key) { return !sweep.simulate && reports::only_simulated(key); };
  std::vector<std::string> keys = point_keys(sweep);
  for (const ConfigNode::Entry& entry : sweep.scenario->entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) keys.push_back(entry.key);
  }
  for (const std::string& key : keys) {
    if (simulated(key)) fmt::print(stderr, "{} changes nothing in an estimate; 'run: simulate' plays requests\n", key);
  }
  for (const std::string& axis : idle_axes(sweep, outcome, store)) {
    if (simulated(axis)) continue;
    const bool load = !sweep.simulate && axis.starts_with("workload.");
    fmt::print(stderr, "{} changes nothing in these points{}\n", axis, load ? "; 'run: simulate' plays requests" : "");
  }
  for (const std::string& line : idle_everywhere(sweep, fidelity, outcome)) {
    if (!simulated(line.substr(0, line.find_first_of(" :")))) fmt::print(stderr, "{}\n", line);
  }
}

void tell(const SweepOutcome& outcome, double seconds, Shard shard) {
  if (!outcome.errors.empty()) {
    fmt::print(stderr, "{} combinations are not possible; the first: {}\n", outcome.errors.size(),
               outcome.errors.begin()->second);
  }
  fmt::print(stderr, "{}{} points: {} run in {:.3f} s, {} from the store\n",
             shard.count > 1 ? fmt::format("shard {}: ", shard.text()) : "", outcome.points.size(), outcome.computed,
             seconds, outcome.found);
}

}  // namespace

int run_sweep_command(std::span<const std::string> arguments) {
  Options options(
      "roofcast sweep SWEEP.yaml [options]",
      "A grid of scenarios on all cores. Finished points are kept: run again, and only what is missing runs.");
  options.add_deployment_flags();
  options.add_output_flags();
  auto add = options.add().add_options();
  add("store", po::value<std::string>(),
      "FILE.sqlite: finished points, so that a second run continues (default: the sweep's name, in this folder; "
      ":memory: keeps none)");
  add("shard", po::value<std::string>(), "I/N: only every N-th point from the I-th on, with its own store");
  add("merge", po::value<std::vector<std::string>>()->multitoken(),
      "STORE...: first copies the points of these shards' stores");
  add("yes", "run a grid of more than a million points");
  options.positional("sweep", 1);
  if (!options.parse(arguments)) return kDone;
  Part part = part_of(options);
  const SweepSpec sweep = read_sweep(options);
  const std::string path = store_path(options, part);
  options.check_kept(path);
  std::erase_if(part.parts.merge,
                [&](const std::string& other) {  // the pattern that names the shards may match the target
                  std::error_code missing;
                  return std::filesystem::equivalent(other, path, missing);
                });
  SweepStore store(path);
  end_in_good_order();
  const auto start = std::chrono::steady_clock::now();
  ProgressBar bar;
  SweepProgress progress;
  if (isatty(STDERR_FILENO)) progress = std::ref(bar);
  const SweepOutcome outcome = run_sweep(sweep, options.fidelity(), store, g_stop, progress, part.parts);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  if (outcome.interrupted) {
    fmt::print(stderr, "\ninterrupted: {} of {} points are in '{}'; the same command continues from there\n",
               outcome.found + outcome.computed, outcome.points.size(), path);
    return kInterrupted + g_signal;
  }
  if (options.format() == "table" || options.has("columns")) {
    options.write_report([&](const std::string& format) {
      return reports::sweep_report(sweep, outcome, store, format, options.fidelity());
    });
  } else {
    options.write_pieces([&](const reports::Write& write) {
      reports::sweep_report(sweep, outcome, store, options.format(), options.fidelity(), write);
    });
  }
  tell_idle(sweep, options.fidelity(), outcome, store);
  tell(outcome, wall.count(), part.parts.shard);
  return kDone;
}

}  // namespace roofcast::cli
