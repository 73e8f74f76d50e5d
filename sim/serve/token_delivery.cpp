#include "sim/serve/token_delivery.h"

#include <algorithm>

namespace roofcast {
namespace {

/// A run longer than this is cut into pieces for the distribution of gaps, because its steps grow slower and slower.
constexpr std::int64_t kGapPieceSteps = 32;
constexpr std::int64_t kGapPieces = 8;

}  // namespace

void TokenDelivery::deliver(const StepRun& run, std::int64_t tokens, int decoding) {
  SimTime first_end = run.end;
  if (run.steps > 1 && first_step_matters(run, decoding)) {
    first_end = run.start + SimTime::of(pricer_.decode_run(run.rows, run.context, query_len_, 1).time);
  }
  wait_ = front_end_.delays_tokens() && tokens > 0 ? wait_of(run, tokens) : SimTime();
  const FrontEnd::Delivery delivery = front_end_.deliver(first_end, run.end, run.steps, tokens);
  delivered_ = delivery.last;
  if (run.rows > 0 && decoding > 0) record_gaps(run, delivery, decoding);
}

/// Of the tokens of the run's last step, by the time since those of the step before it.
SimTime TokenDelivery::wait_of(const StepRun& run, std::int64_t tokens) const {
  if (run.steps > 1) {
    const double before = static_cast<double>(run.steps - 1) * static_cast<double>(run.rows) * query_len_;
    const StepCost last = pricer_.decode_run(run.rows, run.context + before, query_len_, 1);
    return SimTime::of(front_end_.wait(last.time, tokens));
  }
  const std::optional<SimTime> previous = front_end_.last_output();
  if (!previous) return SimTime();
  return SimTime::of(front_end_.wait(run.cost.time + (run.start - *previous).seconds(), tokens));
}

/// Where the front end lags, or the sequences got their last tokens at other times, the first gap differs from the
/// rest.
bool TokenDelivery::first_step_matters(const StepRun& run, int sequences) const {
  return front_end_.delays_tokens() || gaps_.uneven(run.start, sequences);
}

void TokenDelivery::record_gaps(const StepRun& run, const FrontEnd::Delivery& d, int sequences) {
  gaps_.begin(sequences);
  if (run.steps == 1 || first_step_matters(run, sequences)) {
    gaps_.first(d.first, sequences);
    if (run.steps > 1) record_run_gaps(run, d.last - d.first, 1, sequences);
  } else {
    record_run_gaps(run, d.last - run.start, 0, sequences);
  }
  gaps_.end(d.last);
}

/// The gaps of the run's steps after the first `skip`, which span `span` together. Where the front end does not lag,
/// they are the times of the steps themselves, as the mean of each piece of the run.
void TokenDelivery::record_run_gaps(const StepRun& run, SimTime span, std::int64_t skip, int sequences) {
  const std::int64_t steps = run.steps - skip;
  const std::int64_t pieces =
      front_end_.delays_tokens() ? 1 : std::clamp<std::int64_t>(steps / kGapPieceSteps, 1, kGapPieces);
  if (pieces == 1) return gaps_.rest(SimTime(span.picoseconds() / steps), steps, sequences);
  std::int64_t from = skip;
  for (std::int64_t p = 1; p <= pieces; ++p) {
    const std::int64_t to = skip + steps * p / pieces;
    const double context = run.context + static_cast<double>(run.rows) * static_cast<double>(from);
    const Seconds time = pricer_.decode_run(run.rows, context, query_len_, to - from).time;
    gaps_.rest(SimTime::of(time / static_cast<double>(to - from)), to - from, sequences);
    from = to;
  }
}

}  // namespace roofcast
