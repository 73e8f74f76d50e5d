#include "sim/model/derived_model.h"

#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_reader.h"

namespace roofcast {
namespace {

/// A size: its key in `prune`, and its names in configs.
struct Size {
  std::string_view name;
  std::vector<std::string_view> keys;
};
const std::vector<Size>& sizes() {
  static const std::vector<Size> kSizes{
      {"layers", {"num_hidden_layers", "n_layer", "n_layers"}},
      {"hidden", {"hidden_size", "n_embd", "d_model"}},
      {"inter", {"intermediate_size", "ffn_dim", "n_inner"}},
      {"heads", {"num_attention_heads", "n_head", "n_heads"}},
      {"kv_heads", {"num_key_value_heads", "num_kv_heads"}},
      {"experts", {"n_routed_experts", "num_local_experts", "num_experts"}},
      {"top_k", {"num_experts_per_tok", "moe_topk"}},
      {"expert_inter", {"moe_intermediate_size"}},
  };
  return kSizes;
}

std::string_view key_in(const ConfigNode& base, const Size& size) {
  for (std::string_view key : size.keys) {
    if (base.find(key) != nullptr) return key;
  }
  return {};
}

/// Heads keep their width if their number or the hidden size shrinks.
ConfigTree with_head_dim(const ConfigTree& base, const std::string& origin) {
  if (base->find("head_dim") != nullptr) return base;
  ConfigReader in(base);
  const std::string_view hidden = key_in(*base, sizes()[1]), heads = key_in(*base, sizes()[3]);
  if (hidden.empty() || heads.empty()) return base;
  const double width = std::floor(in.number(hidden) / in.number(heads, kAtLeastOne));
  return with_value(base, "head_dim", make_scalar(fmt::format("{}", width)), origin);
}

ConfigTree resized(ConfigTree model, const ConfigTree& changes, bool only_smaller) {
  ConfigReader in(changes, only_smaller ? "'prune'" : "'distilled_to'");
  const std::string origin = changes->location.path;
  model = with_head_dim(model, origin);
  for (const Size& size : sizes()) {
    if (!in.has(size.name)) continue;
    const std::string_view key = key_in(*model, size);
    if (key.empty()) in.fail(size.name, fmt::format("the base model has no '{}'", size.keys.front()));
    const std::int64_t value = in.integer(size.name, kAtLeastOne);
    const std::int64_t before = ConfigReader(model).integer(key);
    if (only_smaller && value > before) {
      in.fail(size.name, fmt::format("pruning cannot raise {} from {} to {}", size.name, before, value));
    }
    model = with_value(model, key, make_scalar(std::to_string(value), in.location_of(size.name)), origin);
  }
  if (only_smaller) {
    for (std::string_view key : {"drop_layers", "drop_attention", "drop_feed_forward", "sparsity"}) {
      if (!in.has(key)) continue;
      if (model->find(key) != nullptr) in.fail(key, "the base model has been pruned that way already");
      model = with_value(model, key, in.tree(key), origin);
    }
  }
  in.finish();
  return model;
}

}  // namespace

ConfigTree derive_model(const ConfigTree& tree) {
  if (tree->find("base") == nullptr) return tree;
  ConfigReader in(tree, "a derived model");
  const SourceLocation location = in.location_of("base");
  const std::string base = in.text("base");
  const std::string name = in.text("name", base + (in.has("prune") ? "-pruned" : "-distilled"));
  if (base == name) in.fail("base", fmt::format("'{}' is made from itself", name));
  in.ignore("source");
  in.ignore("published");
  in.ignore("hugging_face");
  in.ignore("chat");
  const bool prunes = in.has("prune"), distils = in.has("distilled_to");
  if (prunes == distils) in.fail("base", "a derived model has either 'prune' or 'distilled_to'");
  ConfigTree model = derive_model(load_named("models", base, location));
  model = resized(model, in.tree(prunes ? "prune" : "distilled_to"), prunes);
  in.finish();
  return with_value(model, "name", make_scalar(name, location), tree->location.path);
}

}  // namespace roofcast
