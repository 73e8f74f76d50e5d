// Lectures about memory traffic and wasted memory.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "hw/kernels/attention_traffic.h"
#include "sim/plan/lectures/cache_waste.h"
#include "sim/plan/lectures/intensity.h"
#include "sim/plan/lectures/published.h"
#include "sim/plan/lectures/topics.h"

namespace roofcast {

LectureTables roofline_tables(const LectureInputs& in) {
  const FlopsPerSecond peak = in.one("peak") * kTeraflopPerSecond;
  const BytesPerSecond bandwidth = in.one("bandwidth") * 1000.0 * kGigabytePerSecond;
  const double ridge = ridge_point(peak, bandwidth).base();
  const auto bound = [&](double intensity) { return std::string(intensity < ridge ? "memory" : "compute"); };
  LectureTable products{fmt::format("a product in 16 bit; the ridge is at {:.1f} FLOP/B", ridge),
                        {"tokens", "FLOP/B", "of the peak", "bound"},
                        {}};
  for (const double tokens : in.list("tokens")) {
    const double intensity = matmul_intensity(tokens, in.one("inputs"), in.one("outputs")).base();
    products.rows.push_back({tokens, intensity, std::min(1.0, intensity / ridge), bound(intensity)});
  }
  const double context = in.one("context");
  LectureTable attention{fmt::format("attention to {:g} tokens", context), {"of", "FLOP/B", "bound"}, {}};
  for (const double group : in.list("group")) {
    const double decode = attention_intensity(context, 1, group).base();
    attention.rows.push_back({fmt::format("decode, {:g} heads a KV head", group), decode, bound(decode)});
  }
  const double prefill = attention_intensity(context, context).base(), latent = latent_intensity(128).base();
  attention.rows.push_back({"prefill, no mask", prefill, bound(prefill)});
  attention.rows.push_back({"prefill, causal", prefill / 2, bound(prefill / 2)});
  attention.rows.push_back({"decode, absorbed latents of 128 heads", latent, bound(latent)});
  return {products, attention};
}

LectureTables attention_tables(const LectureInputs& in) {
  const HeadShape head{.tokens = in.one("tokens"), .head_dim = in.one("head_dim")};
  const double heads = in.one("heads"), n = head.tokens;
  const Bytes sram(in.one("sram") * 1024), scores = score_matrix(head);
  const double rows = flash_tile_rows(sram, head);
  LectureTable moved{fmt::format("{:g} tokens, 16 bit", n), {"", "a head", "a layer"}, {}};
  const auto add = [&](const char* name, Bytes bytes) {
    moved.rows.push_back({name, (bytes.base() / 1e6), (bytes.base() / 1e6) * heads});
  };
  add("N x N scores, MB", scores);
  add("naive attention moves, MB", naive_traffic(head));
  add("FlashAttention moves, MB, if L2 keeps nothing", flash_traffic(head, rows));
  add("queries, keys, values, outputs, MB", Bytes(4 * n * head.head_dim * head.element_bytes));
  LectureTable tiles{fmt::format("tiles; {:g} KiB hold {:g} rows", in.one("sram"), rows),
                     {"rows", "scores kB", "with Q, K, V kB", "fits"},
                     {}};
  for (const double r : in.list("tiles")) {
    const double s = r * r * head.element_bytes, all = s + 3 * r * head.head_dim * head.element_bytes;
    tiles.rows.push_back({r, s / 1000, all / 1000, all <= sram.base() ? "yes" : "no"});
  }
  const double flops = 4 * n * n * head.head_dim * heads / 2;
  LectureTable speeds{fmt::format("a causal layer, {:.3g} TFLOP, at the best published speeds", flops / 1e12),
                      {"kernel", "GPU", "TFLOP/s", "of the peak", "ms"},
                      {}};
  for (const Published& row : published("speeds")) {
    if (row.of != "attention") continue;
    speeds.rows.push_back(
        {row.format, row.model, row.changed, row.changed / row.plain, flops / (row.changed * 1e12) * 1e3});
  }
  return {moved, tiles, speeds};
}

/// FLOP per cached token of one layer: scores and values of every head; without absorption each latent is expanded
/// first.
LectureTables latent_tables(const LectureInputs& in) {
  const double heads = in.one("heads"), latent = in.one("latent"), rope = in.one("rope");
  const double nope = in.one("nope"), value = in.one("value"), context = in.one("context");
  const double absorbed = heads * (2 * (latent + rope) + 2 * latent);
  const double expand = 2 * latent * heads * (nope + value), heads_own = heads * (2 * (nope + rope) + 2 * value);
  const double read = 2 * (latent + rope), own = 2 * heads * (nope + rope + value);
  LectureTable table{fmt::format("one query of one layer, {:g} tokens in the cache", context),
                     {"", "MFLOP", "MB read and written", "FLOP/B"},
                     {}};
  const auto add = [&](const char* name, double flops, double bytes) {
    table.rows.push_back({name, flops * context / 1e6, bytes * context / 1e6, flops / bytes});
  };
  add("absorbed", absorbed, read);
  add("expanded at each step", expand + heads_own, read + 2 * own);  // written and read again
  add("all heads' own keys and values cached", heads_own, own);
  LectureTable ratios{"ratios", {"expanded over absorbed, FLOP", "cache over that of all heads"}, {}};
  ratios.rows.push_back({(expand + heads_own) / absorbed, read / own});
  return {table, ratios};
}

LectureTables waste_tables(const LectureInputs& in) {
  const double held = mean_tokens_held(in.one("prompt"), in.one("output"), in.one("output_cv"));
  const double slot = in.one("slot"), room = in.one("room");
  if (held > slot)
    throw ConfigError(fmt::format("--set slot: {:g} tokens cannot hold the {:g} of a request", slot, held));
  LectureTable table{
      fmt::format("a sequence holds {:g} tokens on average", held), {"cache", "filled", "wasted", "sequences"}, {}};
  const auto add = [&](const std::string& name, double filled) {
    table.rows.push_back({name, filled, 1 - filled, std::floor(room * filled / held)});
  };
  add(fmt::format("places of {:g} tokens", slot), contiguous_usage(held, slot));
  for (const double block : in.list("blocks")) add(fmt::format("blocks of {:g}", block), paged_usage(held, block));
  return {table};
}

namespace {

struct Batched {
  double steps = 0, computed = 0, padding = 0,
         idle = 0;  ///< tokens; idle: rows of steps without a token
};

/// Batches in order of arrival, padded to their longest prompt and output.
Batched run_padded(const std::vector<double>& prompts, const std::vector<double>& outputs, std::size_t slots) {
  Batched sum;
  for (std::size_t first = 0; first < prompts.size(); first += slots) {
    const std::size_t end = std::min(prompts.size(), first + slots);
    double prompt = 0, output = 0;
    for (std::size_t i = first; i < end; ++i)
      prompt = std::max(prompt, prompts[i]), output = std::max(output, outputs[i]);
    const double rows = static_cast<double>(end - first);
    sum.steps += output;
    sum.computed += rows * (prompt + output - 1);
    for (std::size_t i = first; i < end; ++i) sum.padding += prompt - prompts[i] + output - outputs[i];
    sum.idle += static_cast<double>(slots) * output;
    for (std::size_t i = first; i < end; ++i) sum.idle -= outputs[i];
  }
  return sum;
}

/// A request takes a free slot at the next step. A step holds the prompts of starting requests and one token of the
/// others, concatenated without padding.
Batched run_selective(const std::vector<double>& prompts, const std::vector<double>& outputs, std::size_t slots) {
  Batched sum;
  std::vector<double> left;
  for (std::size_t next = 0; next < prompts.size() || !left.empty();) {
    sum.computed += static_cast<double>(left.size());
    for (; left.size() < slots && next < prompts.size(); ++next) {
      left.push_back(outputs[next]);
      sum.computed += prompts[next];
    }
    ++sum.steps;
    sum.idle += static_cast<double>(slots - left.size());
    for (double& tokens : left) --tokens;
    std::erase_if(left, [](double tokens) { return tokens <= 0; });
  }
  return sum;
}

}  // namespace

LectureTables batching_tables(const LectureInputs& in) {
  constexpr double kMost = 1e7;
  std::vector<double> prompts = in.list("prompts"), outputs = in.list("outputs");
  if (prompts.size() == 1) prompts.resize(outputs.size(), prompts.front());
  if (outputs.size() == 1) outputs.resize(prompts.size(), outputs.front());
  if (prompts.size() != outputs.size())
    throw ConfigError(fmt::format("--set outputs: {} of them for {} prompts", outputs.size(), prompts.size()));
  for (double& tokens : outputs) tokens = std::floor(tokens);
  if (std::accumulate(outputs.begin(), outputs.end(), 0.0) > kMost)
    throw ConfigError(fmt::format("--set outputs: at most {:g} tokens in all", kMost));
  const auto slots = static_cast<std::size_t>(in.one("slots"));
  LectureTable table{fmt::format("{} requests in {} places", prompts.size(), slots),
                     {"batching", "steps", "tokens computed", "of them padding", "places idle"},
                     {}};
  const auto add = [&](const char* name, const Batched& b) {
    table.rows.push_back(
        {name, b.steps, b.computed, b.padding / b.computed, b.idle / (b.steps * static_cast<double>(slots))});
  };
  add("static, padded", run_padded(prompts, outputs, slots));
  add("continuous, selective", run_selective(prompts, outputs, slots));
  return {table};
}

}  // namespace roofcast
