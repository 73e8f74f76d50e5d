// Compares the load of a measured run with the scenario's.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/overloaded.h"
#include "base/text.h"
#include "sim/plan/measured/comparison.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

using Process = ArrivalSpec::Process;

/// Relative difference of means up to which loads count as equal, because lengths are random.
constexpr double kSameMean = 0.02;

std::string count(double value) { return fmt::format("{:.0f}", value); }

std::string words_of(const ArrivalSpec& a) {
  switch (a.process) {
    case Process::kClosedLoop:
      return fmt::format("closed loop, concurrency {}", a.concurrency);
    case Process::kAllAtOnce:
      return "all at once";
    case Process::kTrace:
      return "a trace";
    case Process::kConstant:
      return fmt::format("constant, {:.4g}/s", a.rate.base());
    case Process::kPoisson:
      return fmt::format("poisson, {:.4g}/s", a.rate.base());
    case Process::kGamma:
      return fmt::format("gamma, {:.4g}/s, cv {:.3g}", a.rate.base(), a.cv);
  }
  return "";
}

/// How the run sent its requests; empty if unknown. A rate with a limit on requests in flight counts as the rate. A
/// server only knows a rate: it replaces the scenario's rate, and the arrival process stays.
std::optional<ArrivalSpec> arrivals_of(const BenchRun& run, const ArrivalSpec& scenario) {
  ArrivalSpec a;
  if (run.request_rate) {
    a.rate = PerSecond(*run.request_rate);
    a.process = run.constant_rate ? Process::kConstant : Process::kPoisson;
    if (run.burstiness && *run.burstiness > 0 && *run.burstiness != 1) {
      a.process = Process::kGamma;
      a.cv = 1 / std::sqrt(*run.burstiness);
    }
    return a;
  }
  if (run.observed_rate && scenario.rate.base() > 0) {
    a = scenario;
    a.rate = PerSecond(*run.observed_rate);
    return a;
  }
  if (!run.unlimited_rate && !run.max_concurrency) return std::nullopt;
  const bool capped = run.max_concurrency && *run.max_concurrency >= 1 && *run.max_concurrency < run.requests();
  a.process = capped ? Process::kClosedLoop : Process::kAllAtOnce;
  if (capped) a.concurrency = static_cast<int>(std::min(*run.max_concurrency, 1e7));
  return a;
}

bool same(const ArrivalSpec& a, const ArrivalSpec& b, double requests) {
  const auto all_at_once = [&](const ArrivalSpec& s) {
    return s.process == Process::kAllAtOnce || (s.process == Process::kClosedLoop && s.concurrency >= requests);
  };
  if (all_at_once(a) && all_at_once(b)) return true;
  if (a.process != b.process) return false;
  if (a.process == Process::kClosedLoop) return a.concurrency == b.concurrency;
  return std::abs(a.rate.base() / b.rate.base() - 1) < 0.01 && std::abs(a.cv - b.cv) < 0.05;
}

/// The distribution with every length scaled by `factor`.
LengthSpec scaled(const LengthSpec& spec, double factor) {
  const auto times = [&](int tokens) {
    return std::max(1, static_cast<int>(std::lround(std::min(tokens * factor, 1e7))));
  };
  LengthSpec out = spec;
  std::visit(Overloaded{[&](LengthSpec::Fixed& law) { law.value = times(law.value); },
                        [&](LengthSpec::Uniform& law) {
                          law = {times(law.min), times(law.max)};
                        },
                        [&](LengthSpec::Lognormal& law) {
                          law = {law.mu + std::log(factor), law.sigma, times(law.min), times(law.max)};
                        },
                        [&](LengthSpec::Empirical& law) {
                          for (int& tokens : law.values) tokens = times(tokens);
                        }},
             out.law);
  return out;
}

void check_lengths(const char* what, double run_mean, double own_mean, const std::vector<int>& singles, bool adoptable,
                   LengthSpec& spec, std::vector<LoadMismatch>& out) {
  if (run_mean <= 0) return;  // the file does not say
  const bool differs = std::abs(run_mean / own_mean - 1) > kSameMean;
  if (differs)
    out.push_back({what, fmt::format("{:.1f} on average", own_mean), fmt::format("{:.1f}", run_mean), adoptable});
  if (!adoptable) return;
  if (singles.size() > 1) {
    spec = {LengthSpec::Empirical{singles}};
  } else if (differs) {
    spec = scaled(spec, run_mean / own_mean);
  }
}

/// The letters and digits of a model's name, for comparing names.
std::string plain(const std::string& name) {
  std::string out;
  for (const char c : lower(name.substr(name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += c;
  }
  return out;
}

}  // namespace

void check_model(const std::string& measured, const std::string& model, std::vector<LoadMismatch>& out) {
  const std::string ours = plain(model), theirs = plain(measured);
  if (theirs.empty() || theirs.find(ours) != std::string::npos || ours.find(theirs) != std::string::npos) return;
  out.push_back({"model", model, measured, false});
}

WorkloadSpec workload_of_run(const Scenario& scenario, const BenchRun& run, const ServingMetrics& predicted,
                             std::vector<LoadMismatch>& mismatches) {
  WorkloadSpec w = *scenario.workload;
  const bool trace = w.arrivals.process == Process::kTrace, sessions = w.turns > 1;
  check_model(run.model, scenario.deployment->model.name, mismatches);
  if (const auto arrivals = arrivals_of(run, w.arrivals); arrivals && !same(*arrivals, w.arrivals, run.requests())) {
    mismatches.push_back({"arrivals", words_of(w.arrivals), words_of(*arrivals), !trace});
    if (!trace) w.arrivals = *arrivals;
  }
  const double sent = static_cast<double>(predicted.completed + predicted.failed);
  if (!run.window && std::abs(sent - run.requests()) > 0.5) {
    mismatches.push_back({"requests", count(sent), count(run.requests()), true});
    w.requests = static_cast<std::int64_t>(std::clamp(run.requests(), 1.0, 1e9));
    w.duration.reset();
  }
  const double completed = std::max(1.0, static_cast<double>(predicted.completed));
  check_lengths("prompt tokens", run.mean_prompt(), predicted.input_tokens / completed, run.prompt_lengths,
                !trace && !sessions, w.prompt_tokens, mismatches);
  check_lengths("output tokens", run.mean_output(), predicted.output_tokens / completed, run.output_lengths,
                !trace && !sessions, w.output_tokens, mismatches);
  w.shared_prefix_tokens =
      sessions ? w.shared_prefix_tokens : std::min(w.shared_prefix_tokens, w.prompt_tokens.longest());
  return w;
}

}  // namespace roofcast
