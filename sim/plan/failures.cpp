#include "sim/plan/failures.h"

#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "sim/step/deployment.h"

namespace roofcast {

std::string failure_words(const ServingMetrics& m, const Deployment& decode, const Deployment* prefill) {
  const Deployment& d = prefill != nullptr ? *prefill : decode;  // the deployment that receives requests
  std::vector<std::string> causes;
  const auto add = [&](std::int64_t count, const std::string& cause) {
    if (count > 0) causes.push_back(fmt::format("{} {}", count, cause));
  };
  const auto too_long = [&](TooLong what) { return m.too_long[static_cast<std::size_t>(what)]; };
  add(m.cancelled, "cancelled by their clients (timeout)");
  add(m.rejected, "rejected by a full queue (max_queue) or a rate limit");
  add(m.lost, "lost with a failed replica");
  add(too_long(TooLong::kContext),
      d.engine.max_model_len > 0
          ? fmt::format("longer than the context of {} tokens (engine.max_model_len)", d.engine.max_model_len)
          : fmt::format("longer than the {:.0f} tokens of {}'s context", d.model.max_context, d.model.name));
  add(too_long(TooLong::kCache),
      fmt::format("longer than the {:.0f} tokens that the KV cache holds", d.memory.max_context(d.engine.block_size)));
  add(too_long(TooLong::kStep), fmt::format("with a prompt longer than a step of {} tokens, which {} does not cut "
                                            "(engine.max_num_batched_tokens)",
                                            d.engine.max_num_batched_tokens, d.engine.name));
  return join(causes, "; ");
}

}  // namespace roofcast
