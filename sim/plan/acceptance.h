#pragma once
// How often drafted tokens are accepted where a scenario does not say (configs/uncertainty/acceptance.yaml).

#include <string>
#include <vector>

#include "sim/plan/system_spread.h"
#include "sim/serve/speculation.h"

namespace roofcast {

/// Of each draft, the ones before it accepted, as SpeculationSpec::acceptance has it: measured on other models where
/// there are measurements of the method (first x decay^i), else what was published for it, the same for every draft.
std::vector<double> usual_acceptance(SpeculationSpec::Method method);

/// Standard deviation of the acceptance of a deployment that nobody measured.
double acceptance_deviation();

/// The drafts where each is accepted more often by so many standard deviations.
SpeculationSpec accepted_better(SpeculationSpec spec, double deviations);

/// The 90 % uncertainty of the time per token due to acceptance, as a logarithm; empty without drafts.
LogSpread acceptance_spread(const SpeculationSpec& spec);

/// "0.86, 0.8, 0.74, ... measured on other models, on code (chat accepts less)", "0.7 (an assumption)".
std::string acceptance_words(const SpeculationSpec& spec);
/// The same of the first draft alone.
std::string acceptance_words(SpeculationSpec::Method method, double first);

}  // namespace roofcast
