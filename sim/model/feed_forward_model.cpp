#include "sim/model/feed_forward_model.h"

namespace roofcast {

std::unique_ptr<const FeedForwardModel> model_of(const FeedForward& block) {
  return std::visit([](const auto& kind) { return make_model(kind); }, block);
}

}  // namespace roofcast
