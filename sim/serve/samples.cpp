#include "sim/serve/samples.h"

#include <fmt/format.h>

namespace roofcast {

SampleSpec parse_samples(ConfigReader in) {
  constexpr double kMost = 1024;
  SampleSpec s;
  s.location = in.location();
  if (in.has("beam_width")) {
    if (in.has("best_of")) in.fail("best_of", "beam search keeps its beams itself: leave out 'best_of'");
    s.beams = true;
    s.generated = static_cast<int>(in.integer("beam_width", Range{1, kMost}));
    s.returned = static_cast<int>(in.integer("n", 1, Range{1, kMost}));
  } else {
    s.returned = static_cast<int>(in.integer("n", 1, Range{1, kMost}));
    s.generated = static_cast<int>(in.integer("best_of", s.returned, Range{1, kMost}));
  }
  in.ignore("beam_width");
  if (s.returned > s.generated)
    in.fail("n", fmt::format("{} responses cannot be chosen from {} sequences", s.returned, s.generated));
  in.finish();
  return s;
}

}  // namespace roofcast
