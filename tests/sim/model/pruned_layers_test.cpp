// Layers and blocks taken out of a model, and 2:4 weights.
#include <doctest/doctest.h>

#include "sim/model/recipes.h"
#include "sim/model/weights.h"
#include "tests/sim/model/models.h"

using namespace roofcast;

namespace {

std::string pruned_text(const std::string& what, const std::string& base = "llama-3.1-8b") {
  return "{base: " + base + ", name: pruned, prune: {" + what + "}}";
}
ModelSpec pruned(const std::string& what) { return from_text(pruned_text(what)); }

}  // namespace

TEST_CASE("pruned layers: a layer of Llama 3.1 8B has 218,112,000 weights") {
  // q and o 2 x 4096^2, k and v 2 x 4096 x 1024, three of 4096 x 14,336, two norms
  const double attention = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024, block = 3.0 * 4096 * 14336, norm = 4096;
  const double whole = count_parameters(shipped("llama-3.1-8b")).total;
  CHECK(attention + block + 2 * norm == 218112000);
  const ModelSpec fewer = pruned("drop_layers: [21, 22, 23]");
  CHECK(fewer.layer_count() == 29);
  CHECK(count_parameters(fewer).total == whole - 3 * 218112000.0);
  // 1/16 less cache a token without attention in two layers
  const ModelSpec blind = pruned("drop_attention: [30, 31]");
  CHECK(blind.layer_count() == 32);
  CHECK(count_parameters(blind).total == whole - 2 * (attention + norm));
  CHECK(cache_layout(blind, blind.precision, {}).bytes_per_token().base() == 131072.0 * 30 / 32);
  const ModelSpec thin = pruned("drop_feed_forward: [0], drop_attention: [0, 5]");
  CHECK(thin.layer_count() == 31);  // nothing is left of the first
  CHECK(count_parameters(thin).total == whole - (218112000.0 + attention + norm));
  // Together with sizes of all layers
  CHECK(pruned("drop_layers: [0], inter: 7168").layer_count() == 31);
}

TEST_CASE("pruned layers: invalid settings are refused") {
  CHECK(message(pruned_text("drop_layers: [32]")).find("numbered from 0 to 31") != std::string::npos);
  CHECK(message(pruned_text("drop_layers: [1.5]")).find("there is no layer 1.5") != std::string::npos);
  CHECK(message(pruned_text("sparsity: 1:4")).find("valid: none, 2:4") != std::string::npos);
  CHECK(message(pruned_text("drop_layers: [1]", "hunyuan-large")).find("read the caches of others") !=
        std::string::npos);
  CHECK(message(pruned_text("drop_feed_forward: [1]", "hunyuan-large")).empty());
  std::string all = "0";
  for (int i = 1; i < 32; ++i) all += ", " + std::to_string(i);
  CHECK(message(pruned_text("drop_layers: [" + all + "]")).find("no layer is left") != std::string::npos);
}

TEST_CASE("2:4: nine sixteenths of the bytes of dense products, and half of their work") {
  const ModelSpec dense = shipped("llama-3.1-8b"), sparse = pruned("sparsity: 2:4");
  const double products = 32 * (218112000.0 - 2 * 4096);
  CHECK((weight_bytes(dense, dense.precision, {}) - weight_bytes(sparse, sparse.precision, {})).base() ==
        doctest::Approx(2 * products * 7 / 16));
  const auto flops = [](const ModelSpec& model) {
    double sum = 0;
    for (const Operator& op : token_operators(context_of(model), 64)) {
      if (const auto* product = std::get_if<GemmShape>(&op.work))
        sum += op.count * 2 * product->m * product->n * product->k;
    }
    return sum;
  };
  CHECK(flops(sparse) == doctest::Approx(flops(dense) / 2));
  // The same in a format of its own: int4 in groups of 128 takes 3 bits and half of the scales
  ModelSpec awq = sparse;
  bool asked = false;
  awq.precision = parse_precision(sparse, parse_config_text("awq", "test"), asked);
  CHECK(awq.precision.two_of_four);
  CHECK(bytes_per_weight(WeightRole::kMixer, awq.precision) == doctest::Approx((3 + 20.0 / 128 / 2) / 8));
  // Published checkpoints say so themselves.
  const ModelSpec published = from_text(
      kSmall +
      ", quantization_config: {quant_method: compressed-tensors, sparsity_config: {format: sparse-24-bitmask, "
      "sparsity_structure: \"2:4\"}}}");
  CHECK(published.precision.two_of_four);
}
