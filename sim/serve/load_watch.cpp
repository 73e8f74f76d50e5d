#include "sim/serve/load_watch.h"

#include <algorithm>
#include <cmath>

namespace roofcast {
namespace {

constexpr double kFewest = 60;      // minimum number of requests for a verdict
constexpr double kSignificant = 3;  // standard deviations
constexpr double kLonger = 2;       // waits of the last third relative to the first third
constexpr double kTolerated = 0.5;  // seconds
constexpr double kDropped = 1 / 20.0;

}  // namespace

LoadWatch::Slice& LoadWatch::at(Seconds time) {
  const double t = std::max(time.base(), 0.0);
  while (t >= width_ * kSlices) {
    for (std::size_t i = 0; i < kSlices / 2; ++i) {
      Slice merged = slices_[2 * i];
      const Slice& other = slices_[2 * i + 1];
      merged.came += other.came, merged.dropped += other.dropped;
      merged.waited += other.waited, merged.ended += other.ended, merged.started += other.started;
      slices_[i] = merged;
    }
    std::fill(slices_.begin() + kSlices / 2, slices_.end(), Slice{});
    width_ *= 2;
  }
  return slices_[std::min(kSlices - 1, static_cast<std::size_t>(t / width_))];
}

void LoadWatch::served(Seconds arrival, Seconds waited, Seconds end) {
  last_arrival_ = std::max(last_arrival_, arrival.base());
  at(end).ended += 1;
  at(arrival + waited).started += 1;
  Slice& slice = at(arrival);
  slice.came += 1;
  slice.waited += waited.base();
}

void LoadWatch::dropped(Seconds arrival) {
  last_arrival_ = std::max(last_arrival_, arrival.base());
  Slice& slice = at(arrival);
  slice.came += 1;
  slice.dropped += 1;
}

double LoadWatch::until(double Slice::*count, double time) const {
  double sum = 0;
  for (std::size_t i = 0; i < kSlices; ++i) {
    const double begin = static_cast<double>(i) * width_;
    if (begin >= time) break;
    sum += slices_[i].*count * std::min(1.0, (time - begin) / width_);
  }
  return sum;
}

double LoadWatch::time_of(double came) const {
  double sum = 0;
  for (std::size_t i = 0; i < kSlices; ++i) {
    const double here = slices_[i].came;
    if (here > 0 && sum + here >= came) return (static_cast<double>(i) + (came - sum) / here) * width_;
    sum += here;
  }
  return last_arrival_;
}

LoadVerdict LoadWatch::verdict(double burstiness, double slack) const {
  const double all = static_cast<double>(kSlices) * width_, came = until(&Slice::came, all);
  LoadVerdict out;
  if (came < 2 || last_arrival_ <= 0) return out;
  out.offered = PerSecond((came - 1) / last_arrival_);
  if (came < kFewest) return out;
  const double third = came / 3, first = time_of(third), second = time_of(2 * third);
  if (last_arrival_ <= first) return out;
  const double ended = until(&Slice::ended, last_arrival_) - until(&Slice::ended, first);
  const double more = 2 * third - ended;
  const double wait_first = until(&Slice::waited, first) / third;
  const double wait_last = (until(&Slice::waited, all) - until(&Slice::waited, second)) / third;
  const double dropped = (until(&Slice::dropped, all) - until(&Slice::dropped, second)) / third;
  const bool significant =
      more > kSignificant * std::max(1.0, burstiness) * std::sqrt(2 * third) && more > slack * 2 * third;
  const auto waiting = [&](double time) {
    return until(&Slice::came, time) - until(&Slice::dropped, time) - until(&Slice::started, time);
  };
  const bool longer = wait_last > kLonger * wait_first + kTolerated ||
                      waiting(last_arrival_) > kLonger * waiting(first) + kTolerated * out.offered.base();
  out.saturated = significant && (longer || dropped > kDropped);
  return out;
}

}  // namespace roofcast
