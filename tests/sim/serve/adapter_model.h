#pragma once
#include <memory>

#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

namespace roofcast {

/// A model of one product of 500 inputs and outputs: an adapter of rank 1 is 2000 bytes, 2 ms over PCIe at 1 MB/s.
inline std::shared_ptr<Deployment> with_adapters(int count, int slots, int in_host) {
  const auto d = fake::deployment(10000);
  d->model.hidden = 500;
  LayerKind layer;
  layer.mixer = NoMixer{};
  layer.feed_forward = DenseFeedForward{.inter = 500, .gated = false};
  layer.count = 1;
  d->model.layers = {layer};
  d->model.order = {0};
  d->fidelity = Fidelity::kIdeal;
  d->adapters = AdapterSpec{.count = count,
                            .rank = 1,
                            .slots = slots,
                            .slot_rank = 1,
                            .in_host = in_host,
                            .disk = BytesPerSecond(1e6),
                            .skew = 0,
                            .targets = {"up_proj"}};
  return d;
}

}  // namespace roofcast
