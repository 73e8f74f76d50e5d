#include "sim/plan/acceptance.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "base/error_summary.h"
#include "base/text.h"

namespace roofcast {
namespace {

constexpr int kDrafts = 16;  ///< the last value repeats beyond

struct Acceptance {
  std::map<std::string, std::vector<double>, std::less<>> methods;
  double deviation = 0;
};

Acceptance read_acceptances() {
  ConfigReader in(load_named("uncertainty", "acceptance", SourceLocation{"uncertainty", 0, 0}), "uncertainty");
  in.ignore("name");
  Acceptance out;
  ConfigReader methods = in.child("methods");
  for (const std::string& name : methods.keys()) {
    ConfigReader one = methods.child(name);
    double next = one.number("first", kFraction);
    const double decay = one.number("decay", kFraction);
    for (int i = 0; i < kDrafts; ++i, next *= decay) out.methods[name].push_back(next);
    one.finish();
  }
  methods.finish();
  out.deviation = in.number("deviation", kFraction);
  in.finish();
  return out;
}

const Acceptance& acceptances() {
  static const Acceptance read = read_acceptances();
  return read;
}

}  // namespace

std::vector<double> usual_acceptance(SpeculationSpec::Method method) {
  const MethodFacts facts = facts_of(method);
  const auto measured = acceptances().methods.find(facts.name);
  return measured == acceptances().methods.end() ? std::vector{facts.usual_acceptance} : measured->second;
}

double acceptance_deviation() { return acceptances().deviation; }

SpeculationSpec accepted_better(SpeculationSpec spec, double deviations) {
  if (!spec.active() || spec.diffuses()) return spec;
  for (double& a : spec.acceptance) a = std::clamp(a + acceptance_deviation() * deviations, 0.02, 0.98);
  return spec;
}

LogSpread acceptance_spread(const SpeculationSpec& spec) {
  if (!spec.active() || spec.diffuses()) return {};
  const auto tokens = [&](double deviations) { return AcceptanceLaw(accepted_better(spec, deviations)).mean_tokens(); };
  const double usual = AcceptanceLaw(spec).mean_tokens();
  return {std::min(0.0, std::log(usual / tokens(kNinetyPercent))),
          std::max(0.0, std::log(usual / tokens(-kNinetyPercent)))};
}

namespace {

constexpr const char* origin(bool measured) {
  return measured ? " measured on other models, on code (chat accepts less)" : " (an assumption)";
}

}  // namespace

std::string acceptance_words(const SpeculationSpec& spec) {
  std::vector<std::string> shares;
  for (const double share : spec.acceptance) shares.push_back(fmt::format("{:.2g}", share));
  if (shares.size() > 4) shares.resize(3), shares.push_back("...");
  const auto measured = acceptances().methods.find(name_of(spec.method));
  return join(shares, ", ") + origin(measured != acceptances().methods.end() && measured->second == spec.acceptance);
}

std::string acceptance_words(SpeculationSpec::Method method, double first) {
  const auto measured = acceptances().methods.find(name_of(method));
  return fmt::format("{:.2g}", first) +
         origin(measured != acceptances().methods.end() && measured->second.front() == first);
}

}  // namespace roofcast
