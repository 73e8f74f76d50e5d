#include "sim/serve/gap_recorder.h"

#include <algorithm>

namespace roofcast {

void GapRecorder::join(SimTime last_token) {
  if (fresh_.empty() || fresh_.back().last_token != last_token) fresh_.push_back({last_token, 0});
  fresh_.back().sequences += 1;
}

SimTime GapRecorder::leave(bool fresh) {
  if (!fresh || fresh_.empty()) return delivered_;
  const SimTime last_token = fresh_.back().last_token;
  if ((fresh_.back().sequences -= 1) <= 0) fresh_.pop_back();
  return last_token;
}

double GapRecorder::fresh_sequences() const {
  double sum = 0;
  for (const Fresh& f : fresh_) sum += f.sequences;
  return sum;
}

bool GapRecorder::uneven(SimTime run_start, int sequences) const {
  const auto other = [run_start](const Fresh& f) { return f.last_token != run_start; };
  if (std::any_of(fresh_.begin(), fresh_.end(), other)) return true;
  return fresh_sequences() < sequences && delivered_ != run_start;
}

/// If all sequences are new, earlier steps do not matter.
void GapRecorder::begin(int sequences) {
  if (fresh_sequences() < sequences) return;
  past_.clear();
  known_ = 0;
}

void GapRecorder::first(SimTime delivered, int sequences) {
  const double fresh = fresh_sequences();
  for (const Fresh& f : fresh_) single(delivered - f.last_token, f.sequences);
  const SimTime before = fresh >= sequences ? fresh_.front().last_token : delivered_;
  add(delivered - before, 1, interval_ > 1 ? sequences : sequences - fresh);
}

void GapRecorder::end(SimTime delivered) {
  delivered_ = delivered;
  fresh_.clear();
}

SimTime GapRecorder::last(std::int64_t steps) const {
  SimTime sum;
  for (auto p = past_.rbegin(); p != past_.rend() && steps > 0; ++p) {
    const std::int64_t n = std::min(steps, p->steps);
    sum += n * p->gap;
    steps -= n;
  }
  return sum;
}

void GapRecorder::add(SimTime gap, std::int64_t steps, double sequences) {
  if (interval_ <= 1) return collector_->gap(gap, sequences * static_cast<double>(steps));
  // Chunks that end within the first `interval` steps include earlier steps; a few samples represent all of them.
  const std::int64_t reaching = std::min(steps, interval_), samples = std::min<std::int64_t>(reaching, 8);
  const double per_step = sequences / static_cast<double>(interval_);
  const double per_sample = per_step * static_cast<double>(reaching) / static_cast<double>(samples);
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t inside = std::min(1 + (2 * i + 1) * reaching / (2 * samples), reaching);
    if (inside + known_ < interval_) continue;  // no client has received a whole chunk yet
    collector_->gap(inside * gap + last(interval_ - inside), per_sample);
  }
  if (steps > reaching) collector_->gap(interval_ * gap, per_step * static_cast<double>(steps - reaching));
  past_.push_back({gap, reaching});
  std::size_t keep = past_.size();
  known_ = 0;
  while (keep > 0 && known_ < interval_) known_ += past_[--keep].steps;
  past_.erase(past_.begin(), past_.begin() + static_cast<std::ptrdiff_t>(keep));
}

}  // namespace roofcast
