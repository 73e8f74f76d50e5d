#include "sim/serve/window_fill.h"

namespace roofcast {

void WindowFill::add(Slot slot, std::uint32_t epoch, std::int64_t base, std::int64_t counter) {
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    Window& w = windows_[i];
    const std::int64_t most = layout_.windows()[i].tokens;
    if (base + counter > most) {
      ++w.full;
      continue;
    }
    ++w.growing;
    w.bases += base;
    w.ends.push(most - base + 1, slot, epoch);
  }
}

void WindowFill::remove(std::int64_t base, std::int64_t counter) {
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    Window& w = windows_[i];
    if (base + counter > layout_.windows()[i].tokens) {
      --w.full;
    } else {
      --w.growing;
      w.bases -= base;
    }
  }
}

void WindowFill::advance(const RequestTable& requests, std::int64_t counter) {
  for (Window& w : windows_) {
    for (Slot slot; (slot = w.ends.pop_due(requests, counter)) != kNoSlot;) {
      const std::int64_t base = requests[slot].base;
      --w.growing;
      w.bases -= base;
      w.crossed.push_back(base);
    }
  }
}

void WindowFill::settle() {
  for (Window& w : windows_) {
    w.full += static_cast<std::int64_t>(w.crossed.size());
    w.crossed.clear();
  }
}

double WindowFill::bytes(std::int64_t counter, std::int64_t steps, int decoding, std::int64_t tokens) const {
  const double half = static_cast<double>(steps - 1) / 2;  // mean number of tokens added so far in the run
  double bytes = (static_cast<double>(tokens) - decoding * half) * layout_.plain_block_bytes();
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    const Window& w = windows_[i];
    const KvLayout::Window& window = layout_.windows()[i];
    double held = static_cast<double>(w.bases + w.growing * counter) - static_cast<double>(w.growing) * half +
                  static_cast<double>(w.full * window.tokens);
    for (const std::int64_t base : w.crossed) held += window.held(base + counter, steps);
    bytes += held * static_cast<double>(window.block_bytes);
  }
  return layout_.of_blocks(bytes) + static_cast<double>(layout_.state_bytes()) * decoding;
}

}  // namespace roofcast
