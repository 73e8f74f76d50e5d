#pragma once
// Random valid scenarios, and invariants of all of them.

#include <cstdint>
#include <string>

namespace roofcast {
class SpecCache;
}
namespace roofcast::testing {

/// The text of a scenario: engines, schedulers, formats, parallelism, load, lengths, prefixes, speculation, fleets.
std::string random_scenario(std::uint64_t seed);

/// What does not hold in the scenario, with its numbers; empty where all does, and where it is refused or does not fit.
std::string broken_invariant(const std::string& scenario, SpecCache& specs);

}  // namespace roofcast::testing
