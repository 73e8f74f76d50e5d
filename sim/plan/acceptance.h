#pragma once
// The default acceptance of drafted tokens (configs/uncertainty/acceptance.yaml).

#include <string>
#include <vector>

#include "sim/plan/system_spread.h"
#include "sim/serve/speculation.h"

namespace roofcast {

/// Acceptance of each draft if all earlier ones were accepted (SpeculationSpec::acceptance): from measurements on other
/// models where the method has any (first x decay^i), else the published value for every draft.
std::vector<double> usual_acceptance(SpeculationSpec::Method method);

/// Standard deviation of the acceptance of a deployment without measurements.
double acceptance_deviation();

/// The same with every acceptance raised by `deviations` standard deviations.
SpeculationSpec accepted_better(SpeculationSpec spec, double deviations);

/// The 90 % uncertainty of the time per token due to acceptance, as ln of a factor; empty without drafts.
LogSpread acceptance_spread(const SpeculationSpec& spec);

/// "0.86, 0.8, 0.74, ... measured on other models, on code (chat accepts less)", "0.7 (an assumption)".
std::string acceptance_words(const SpeculationSpec& spec);
/// The same for the first draft alone.
std::string acceptance_words(SpeculationSpec::Method method, double first);

}  // namespace roofcast
