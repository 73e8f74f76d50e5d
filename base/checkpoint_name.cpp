#include "base/checkpoint_name.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "base/text.h"

namespace roofcast {
namespace {

/// Whether `owner` is one of `owners`. For a name without an owner, its first word is compared: Qwen3-32B-FP8, Qwen.
bool is_of(const std::vector<std::string>& owners, const std::string& owner, std::string_view name) {
  return std::any_of(owners.begin(), owners.end(), [&](const std::string& one) {
    return owner.empty() ? name.starts_with(one.substr(0, one.find('-'))) : owner == one;
  });
}

/// configs/checkpoints/formats.yaml; nothing where a folder of specs has no such file.
std::optional<ConfigReader> formats(const SourceLocation& location) {
  std::error_code unknown;
  if (!std::filesystem::exists(config_root() + "/checkpoints/formats.yaml", unknown)) return std::nullopt;
  return ConfigReader(load_document("checkpoints", "formats", location), "formats of checkpoints");
}

/// The rows of one of its lists.
std::vector<ConfigTree> rows_of(std::string_view list, const SourceLocation& location) {
  std::optional<ConfigReader> in = formats(location);
  return in ? in->list(list) : std::vector<ConfigTree>{};
}

/// The model without the ending of those that were tuned from it, which are as large.
std::string untuned(const std::string& model, const SourceLocation& location) {
  std::optional<ConfigReader> in = formats(location);
  for (const std::string& ending : in ? in->texts("tuned") : std::vector<std::string>{})
    if (model.ends_with(ending)) return model.substr(0, model.size() - ending.size());
  return model;
}

constexpr std::string_view kAssumed = "the formats are assumed to be those of checkpoints named '";

}  // namespace

bool has_block_fp8(std::string_view model_type) {
  const std::vector<ConfigTree> rows = rows_of("block_fp8", SourceLocation{"checkpoints", 0, 0});
  return std::any_of(rows.begin(), rows.end(), [&](const ConfigTree& row) {
    ConfigReader in(row, "models in block fp8");
    const std::vector<std::string> types = in.texts("model_types");
    in.ignore("source");
    in.finish();
    return std::find(types.begin(), types.end(), model_type) != types.end();
  });
}

std::string assumed_formats(std::string_view format) {
  return fmt::format("{}{}'; if its config.json keeps more layers in 16 bit, name that file", kAssumed, format);
}

bool are_assumed_formats(std::string_view assumption) { return assumption.starts_with(kAssumed); }

std::string bare_model_name(std::string_view name) {
  const std::string alone = lower(name.substr(name.rfind('/') + 1));
  for (const ConfigTree& row : rows_of("dropped", SourceLocation{"checkpoints", 0, 0})) {
    ConfigReader in(row, "a word that names once began with");
    const std::string word = in.text("word"), before = in.text("before");
    in.finish();
    if (alone.starts_with(word + before)) return alone.substr(word.size());
  }
  return alone;
}

std::optional<CheckpointName> parse_checkpoint_name(std::string_view written, const SourceLocation& location) {
  const std::string name = lower(written);
  const std::size_t slash = name.find('/');
  const std::string owner = slash == std::string::npos ? "" : name.substr(0, slash);
  for (const ConfigTree& row : rows_of("formats", location)) {
    ConfigReader in(row, "a format of checkpoints");
    const std::vector<std::string> endings = in.texts("endings"), owners = in.texts("owners");
    const auto ending = std::find_if(endings.begin(), endings.end(), [&](const std::string& one) {
      return name.ends_with(one) && name.size() > one.size();
    });
    if (ending == endings.end() || !(owners.empty() || is_of(owners, owner, name))) continue;
    CheckpointName out;
    const std::string model = name.substr(0, name.size() - ending->size());
    const std::string alone = slash == std::string::npos ? model : model.substr(slash + 1);
    if (slash != std::string::npos) out.models.push_back(model);
    out.models.push_back(alone);
    if (const std::string bare = bare_model_name(alone); bare != alone) out.models.push_back(bare);
    if (const std::string base = untuned(alone, location); base != alone) out.models.push_back(base);
    out.format = std::string(written.substr(written.size() - ending->size()));
    out.weights = in.text("weights", "");
    out.advice = in.text("write", "");
    if (const ConfigTree quantization = in.tree("quantization"))
      out.quantization = with_value(quantization, "by_name", make_scalar(out.format), location);
    in.finish();
    return out;
  }
  return std::nullopt;
}

}  // namespace roofcast
