// Lectures about a deployment given by its sizes: the cache, the configurator, launch overheads.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/plan/estimate.h"
#include "sim/plan/lectures/topics.h"
#include "sim/plan/speculation_math.h"

namespace roofcast {
namespace {

constexpr double kGiga = 1e9;

/// Bytes of the keys and values of a token.
double token_bytes(const LectureInputs& in, double kv_heads) {
  return 2 * in.one("layers") * kv_heads * in.one("head_dim") * in.one("kv_bytes");
}

}  // namespace

LectureTables cache_tables(const LectureInputs& in) {
  LectureTable sizes{"keys and values: 2 x layers x KV heads x head_dim x bytes", {"KV heads", "bytes per token"}, {}};
  for (const double context : in.list("context")) sizes.columns.push_back(fmt::format("GB of {:g} tokens", context));
  for (const double heads : in.list("kv_heads")) {
    const double token = token_bytes(in, heads);
    sizes.rows.push_back({heads, token});
    for (const double context : in.list("context")) sizes.rows.back().push_back(token * context / kGiga);
  }
  const double first = token_bytes(in, in.list("kv_heads").front()), weights = in.one("weights");
  LectureTable batches{fmt::format("of {:g} KV heads, beside {:g} GB of weights", in.list("kv_heads").front(), weights),
                       {"sequences", "tokens of each", "GB", "over the weights"},
                       {}};
  for (const double batch : in.list("batch")) {
    for (const double context : in.list("context")) {
      const double bytes = first * context * batch / kGiga;
      batches.rows.push_back({batch, context, bytes, bytes / weights});
    }
  }
  LectureTable steps{
      "keys and values computed in one step", {"tokens before it", "without a cache", "with it", "saved"}, {}};
  for (const double before : in.list("steps")) steps.rows.push_back({before, before + 1, 1.0, before / (before + 1)});
  const double prompt = in.one("prompt"), output = in.one("output");
  const double naive = processed_tokens(prompt, output, false), cached = processed_tokens(prompt, output, true);
  LectureTable whole{fmt::format("tokens through the layers for {:g} after {:g}", output, prompt),
                     {"without a cache", "for each of them", "with it", "without over with"},
                     {{naive, naive / output, cached, naive / cached}}};
  return {sizes, batches, steps, whole};
}

/// The ideal roofline as in the lecture: a step reads weights and caches once, and each weight takes 2 FLOP per token.
LectureTables configurator_tables(const LectureInputs& in) {
  const double parameters = in.one("parameters") * kGiga, weights = parameters * in.one("weight_bytes");
  const double peak = in.one("peak") * 1e12, bandwidth = in.one("bandwidth") * 1e12, memory = in.one("memory") * kGiga;
  const double context = in.one("context"), sequence = token_bytes(in, in.one("kv_heads")) * context;
  const int drafts = in.whole("drafts");
  const double tokens = expected_tokens(in.one("acceptance"), drafts), rounds = 1 + drafts * in.one("cost_ratio");
  LectureTable decode{
      fmt::format("decode, weights {:.4g} GB, {:.4g} GB of cache a sequence of {:g} tokens{}", weights / kGiga,
                  sequence / kGiga, context, drafts > 0 ? fmt::format(", {} drafts per step", drafts) : ""),
      {"batch", "GB", "of the memory", "fits", "ms per token", "bound", "tokens/s", "USD per million"},
      {}};
  for (const double batch : in.list("batch")) {
    const double bytes = weights + batch * sequence;
    const double reads = bytes / bandwidth, products = 2 * parameters * batch * (drafts + 1) / peak;
    const double step = std::max(reads, products) * rounds / tokens, rate = batch / step;
    decode.rows.push_back({batch, bytes / kGiga, bytes / memory, bytes <= memory ? "yes" : "no", step * 1e3,
                           products > reads ? "compute" : "memory", rate, in.one("price") / 3600 / rate * 1e6});
  }
  const double products = 2 * parameters * context / peak, reads = weights / bandwidth;
  LectureTable first{"prefill of one prompt, and what fits",
                     {"prompt tokens", "TTFT ms", "bound", "most sequences"},
                     {{context, std::max(products, reads) * 1e3, products > reads ? "compute" : "memory",
                       std::max(0.0, std::floor((memory - weights) / sequence))}}};
  return {decode, first};
}

LectureTables launch_tables(const LectureInputs& in) {
  const double layers = in.one("layers"), launch = in.one("launch") * 1e-6;
  const double reads = in.one("parameters") * kGiga * in.one("weight_bytes") / (in.one("bandwidth") * 1e12);
  LectureTable table{fmt::format("a decode step of one sequence, whose weights take {:.3g} ms to read", reads * 1e3),
                     {"", "kernels per layer", "kernels", "launching ms", "step ms", "bound", "speed-up"},
                     {}};
  double plain = 0;
  const auto add = [&](const char* what, double kernels, double starts) {
    const double host = starts * launch, step = std::max(host, reads);
    if (plain == 0) plain = step;
    table.rows.push_back(
        {what, kernels, kernels * layers, host * 1e3, step * 1e3, host > reads ? "host" : "memory", plain / step});
  };
  add("PyTorch, operation by operation", in.one("eager"), in.one("eager") * layers);
  add("torch.compile", in.one("compiled"), in.one("compiled") * layers);
  add("CUDA graphs", in.one("eager"), 1);
  add("both", in.one("compiled"), 1);
  return {table};
}

}  // namespace roofcast
