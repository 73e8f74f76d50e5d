#include "sim/serve/token_delivery.h"

#include <algorithm>

namespace roofcast {
namespace {

/// A longer run is split into pieces for the distribution of gaps, because steps become slower over time.
constexpr std::int64_t kGapPieceSteps = 32;
constexpr std::int64_t kGapPieces = 8;

}  // namespace

void TokenDelivery::deliver(const StepRun& run, std::int64_t tokens) {
  SimTime first_end = run.end;
  bool first_matters = false;
  for (std::size_t rank = 0; rank < gaps_.size(); ++rank) first_matters |= first_step_matters(run, rank);
  if (run.steps > 1 && first_matters) {
    first_end = std::min(run.end, run.start + SimTime::of(pricer_.run_time(run.decodes_after(0, then_), 1)));
  }
  wait_ = front_end_.delays_tokens() && tokens > 0 ? wait_of(run, tokens) : SimTime();
  const FrontEnd::Delivery delivery = front_end_.deliver(first_end, run.end, run.steps, tokens);
  delivered_ = delivery.last;
  for (std::vector<Piece>& pieces : pieces_) pieces.clear();
  for (std::size_t rank = 0; rank < gaps_.size(); ++rank) {
    if (run.decoding[rank] > 0) record_gaps(run, delivery, rank);
  }
}

/// The front-end wait of the tokens of the run's last step, from the time since the previous step.
SimTime TokenDelivery::wait_of(const StepRun& run, std::int64_t tokens) {
  if (run.steps > 1) {
    const Seconds last = pricer_.run_time(run.decodes_after(run.steps - 1, then_), 1);
    return SimTime::of(front_end_.wait(last, tokens));
  }
  const std::optional<SimTime> previous = front_end_.last_output();
  if (!previous) return SimTime();
  return SimTime::of(front_end_.wait(run.cost.time + (run.start - *previous).seconds(), tokens));
}

/// Whether the first gap differs from the rest: the front end lags, or sequences got their last tokens at other times.
bool TokenDelivery::first_step_matters(const StepRun& run, std::size_t rank) const {
  return front_end_.delays_tokens() || gaps_[rank].uneven(run.start, run.decoding[rank]);
}

void TokenDelivery::record_gaps(const StepRun& run, const FrontEnd::Delivery& d, std::size_t rank) {
  GapRecorder& gaps = gaps_[rank];
  const int sequences = run.decoding[rank];
  gaps.begin(sequences);
  if (run.steps == 1 || first_step_matters(run, rank)) {
    gaps.first(d.first, sequences);
    if (run.steps > 1) record_run_gaps(run, d.last - d.first, 1, rank);
  } else {
    record_run_gaps(run, d.last - run.start, 0, rank);
  }
  gaps.end(d.last);
}

/// The gaps of the run's steps after the first `skip`, with a total of `span`. If the front end does not lag, they are
/// the step times, averaged over each piece of the run.
const std::vector<TokenDelivery::Piece>& TokenDelivery::pieces_of(const StepRun& run, SimTime span, std::int64_t skip) {
  std::vector<Piece>& out = pieces_[static_cast<std::size_t>(skip)];
  if (!out.empty()) return out;
  const std::int64_t steps = run.steps - skip;
  const std::int64_t pieces =
      front_end_.delays_tokens() ? 1 : std::clamp<std::int64_t>(steps / kGapPieceSteps, 1, kGapPieces);
  if (pieces == 1) {
    out.push_back({SimTime(span.picoseconds() / steps), steps});
    return out;
  }
  std::int64_t from = skip;
  for (std::int64_t p = 1; p <= pieces; ++p) {
    const std::int64_t to = skip + steps * p / pieces;
    const Seconds time = pricer_.run_time(run.decodes_after(from, then_), to - from);
    out.push_back({SimTime::of(time / static_cast<double>(to - from)), to - from});
    from = to;
  }
  return out;
}

void TokenDelivery::record_run_gaps(const StepRun& run, SimTime span, std::int64_t skip, std::size_t rank) {
  for (const Piece& piece : pieces_of(run, span, skip)) gaps_[rank].rest(piece.gap, piece.steps, run.decoding[rank]);
}

}  // namespace roofcast
