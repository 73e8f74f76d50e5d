// Bytes of weights and caches against a count that goes through every matrix of a model, group by group.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "base/random.h"
#include "models.h"
#include "sim/model/recipes.h"
#include "tests/scenarios.h"

using namespace roofcast;

namespace {

/// A format as its paper or its source describes it.
struct Format {
  std::string name;
  double bits;
  int group;          ///< weights that share a scale; 0: none is counted
  double group_bits;  ///< of the scale, and of the zero point beside it
  bool head_too = false;
};
const std::vector<Format> kFormats{
    {"bf16", 16, 0, 0},
    {"fp8", 8, 0, 0},
    {"int8", 8, 0, 0},
    {"fp8_block", 8, 128 * 128, 32},  // DeepSeek-V3: an fp32 scale for each tile of 128 x 128
    {"nvfp4", 4, 16, 8},              // an fp8 scale every 16 values
    {"mxfp4", 4, 32, 8},              // OCP MX: a shared exponent every 32 values
    {"awq", 4, 128, 16 + 4},          // a 16-bit scale and a 4-bit zero point
    {"gptq", 4, 128, 16 + 4},
    {"hqq3", 3, 64, 16 + 16},
    {"hqq2", 2, 16, 16 + 16},
    {"nf4", 4, 64, 8 + 32.0 / 256},  // QLoRA: scales of 8 bit, and one of 32 for 256 of them: 0.127 bit a weight
    {"gguf_q8_0", 8, 32, 16, true},  // ggml-common.h, block_q8_0
    {"gguf_q6_k", 6, 256, 16 * 8 + 16, true},  // block_q6_K: 16 scales of 8 bit and one of 16: 210 bytes
};

struct Sizes {
  int layers, hidden, heads, kv_heads, head_dim, inter, words;
  bool tied;
};

double matrix_bytes(double inputs, double outputs, const Format& format) {
  const double weights = inputs * outputs, groups = format.group > 0 ? weights / format.group : 0;
  return (weights * format.bits + groups * format.group_bits) / 8;
}

/// All weights of one of `tp` GPUs. Norms stay in 16 bit, as do embedding and head where the format leaves them.
double reference_bytes(const Sizes& m, const Format& format, int tp) {
  const Format half{"", 16, 0, 0};
  const int heads = m.heads / tp, kv_heads = std::max(1, m.kv_heads / tp), inter = m.inter / tp;
  double bytes = 0;
  for (int layer = 0; layer < m.layers; ++layer) {
    bytes += matrix_bytes(m.hidden, heads * m.head_dim, format);         // q
    bytes += 2 * matrix_bytes(m.hidden, kv_heads * m.head_dim, format);  // k, v
    bytes += matrix_bytes(heads * m.head_dim, m.hidden, format);         // o
    bytes += 2 * matrix_bytes(m.hidden, inter, format);                  // gate, up
    bytes += matrix_bytes(inter, m.hidden, format);                      // down
    bytes += 2 * m.hidden * 2.0;                                         // two norms
  }
  const double table = matrix_bytes(m.hidden, m.words / tp, format.head_too ? format : half);
  return bytes + m.hidden * 2.0 + (m.tied ? 1 : 2) * table;
}

}  // namespace

TEST_CASE("weights: random models in each format weigh what their matrices do") {
  Random random(5);
  const auto pick = [&](int low, int high) { return static_cast<int>(random.uniform_integer(low, high)); };
  for (int n = 0; n < scenarios(100); ++n) {
    const int tp = 1 << pick(0, 3), kv_heads = 1 << pick(0, 4), group = pick(1, 4);
    Sizes m{.layers = pick(1, 6),
            .hidden = 1024 * pick(1, 3),
            .heads = std::max(8, kv_heads * group * 8 / std::min(8, kv_heads)),
            .kv_heads = kv_heads,
            .head_dim = 128,
            .inter = 1024 * pick(1, 8),
            .words = 1024 * pick(1, 50),
            .tied = pick(0, 1) == 1};
    m.heads = m.heads / m.kv_heads * m.kv_heads;
    if (m.heads % tp != 0 || (m.kv_heads > tp && m.kv_heads % tp != 0)) continue;
    const ModelSpec model =
        from_text(fmt::format("{{model_type: llama, hidden_size: {}, num_hidden_layers: {}, num_attention_heads: {}, "
                              "num_key_value_heads: {}, head_dim: {}, intermediate_size: {}, vocab_size: {}, "
                              "max_position_embeddings: 4096, tie_word_embeddings: {}}}",
                              m.hidden, m.layers, m.heads, m.kv_heads, m.head_dim, m.inter, m.words, m.tied));
    for (const Format& format : kFormats) {
      bool asked = false;
      const Precision precision = parse_precision(model, parse_config_text(format.name, "precision"), asked);
      INFO(n, " ", format.name, " tp ", tp, " heads ", m.heads, " of ", m.kv_heads, " layers ", m.layers);
      const double expected = reference_bytes(m, format, tp);
      CHECK(weight_bytes(model, precision, {.tp = tp}).base() == doctest::Approx(expected).epsilon(1e-5));
    }
    const double cached = cache_layout(model, model.precision, {.tp = tp}).sequence_bytes(1000).base();
    CHECK(cached == doctest::Approx(m.layers * 2.0 * std::max(1, m.kv_heads / tp) * m.head_dim * 2 * 1000));
  }
}
