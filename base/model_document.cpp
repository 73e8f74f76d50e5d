#include "base/model_document.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace roofcast {
namespace {

namespace fs = std::filesystem;

/// The last part of a path that may end with a slash. Empty for "." and "..".
std::string last_part(const fs::path& path) {
  const std::string part = (path.has_filename() ? path : path.parent_path()).filename().string();
  return part == "." || part == ".." ? "" : part;
}

std::string name_of(const ConfigNode& document, const fs::path& file) {
  if (file.stem() != "config") return file.stem().string();
  const ConfigTree* given = document.find("_name_or_path");
  const std::string own = given != nullptr && *given ? last_part((*given)->scalar) : "";
  const std::string folder = last_part(fs::absolute(file).lexically_normal().parent_path());
  return !own.empty() ? own : !folder.empty() ? folder : "config";
}

/// Whether the model, or a part of it such as text_config, states its quantization formats.
bool has_formats(const ConfigNode& document) {
  if (document.find("quantization_config") != nullptr || document.find("hf_quant_config") != nullptr) return true;
  return std::any_of(document.entries.begin(), document.entries.end(), [](const ConfigNode::Entry& entry) {
    return entry.value && entry.value->find("quantization_config") != nullptr;
  });
}

/// The JSON file `name` in the folder of `file`; null if it does not exist.
ConfigTree read_beside(const fs::path& file, const char* name) {
  if (file.extension() != ".json") return nullptr;
  const std::string stem = file.filename() == "config.json" ? "" : file.stem().string() + ".";
  const fs::path beside = file.parent_path() / (stem + name);
  std::error_code unreadable;
  return fs::is_regular_file(beside, unreadable) ? parse_config_file(beside.string()) : nullptr;
}

}  // namespace

ConfigTree parse_model_file(const std::string& path) {
  const ConfigTree document = parse_config_file(path);
  if (document->kind != ConfigNode::Kind::kMap) return document;
  ConfigTree out = document;
  const ConfigTree* given = document->find("_name_or_path");
  const bool readable = given == nullptr || !*given || (*given)->kind == ConfigNode::Kind::kScalar ||
                        (*given)->kind == ConfigNode::Kind::kNull;  // else parse_model() refuses it
  if (document->find("name") == nullptr && readable) {
    auto name = std::make_shared<ConfigNode>(*make_scalar(name_of(*document, path), document->location));
    name->quoted = true;
    out = with_value(out, "_name_or_path", name, path);
  }
  const ConfigTree formats = has_formats(*document) ? nullptr : read_beside(path, "hf_quant_config.json");
  if (formats) out = with_value(out, "hf_quant_config", formats, path);
  const bool sees = document->find("vision_config") != nullptr && document->find("preprocessor_config") == nullptr;
  const ConfigTree pictures = sees ? read_beside(path, "preprocessor_config.json") : nullptr;
  return pictures ? with_value(out, "preprocessor_config", pictures, path) : out;
}

}  // namespace roofcast
