// Writes a ConfigTree as block YAML. Plain scalars stay plain, so that a number is read back as a number.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/config_node.h"

namespace roofcast {
namespace {

/// Whether YAML reads the text back as the same plain scalar, in block context.
bool is_plain(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL" || text == "<<") return false;
  if (text.starts_with("---") || text.starts_with("...")) return false;
  if (text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  const bool dash = text.front() == '-' || text.front() == '?' || text.front() == ':';
  if (dash && (text.size() == 1 || text[1] == ' ')) return false;
  if (std::string_view(",[]{}#&*!|>'\"%@`").find(text.front()) != std::string_view::npos) return false;
  if (text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos) return false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) return false;  // non-ASCII text is quoted: some of its characters end a line
  }
  return true;
}

/// Escapes for the characters that YAML 1.1 reads as a line end or does not allow.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kEscaped{{{"\xC2\x85", "\\N"},
                                                                                 {"\xE2\x80\xA8", "\\L"},
                                                                                 {"\xE2\x80\xA9", "\\P"},
                                                                                 {"\xEF\xBB\xBF", "\\uFEFF"},
                                                                                 {"\xEF\xBF\xBE", "\\uFFFE"},
                                                                                 {"\xEF\xBF\xBF", "\\uFFFF"}}};

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto begins = [&](const auto& escaped) { return text.substr(at).starts_with(escaped.first); };
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02X}", byte);
    } else if (const auto escaped = std::find_if(kEscaped.begin(), kEscaped.end(), begins); escaped != kEscaped.end()) {
      out += escaped->second;
      at += escaped->first.size() - 1;
    } else if (c == '\xC2' && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0) {
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[++at]));  // U+0080 to U+009F
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string scalar_text(const ConfigNode& node) {
  return !node.quoted && is_plain(node.scalar) ? node.scalar : double_quoted(node.scalar);
}

std::string key_text(std::string_view key) { return is_plain(key) ? std::string(key) : double_quoted(key); }

class Emitter {
 public:
  std::string take() { return std::move(out_); }

  /// Writes the node on the current line if it fits, else as a block below it.
  void value(const ConfigNode* node, int indent, bool in_list) {
    const std::string short_text = on_one_line(node);
    if (!short_text.empty()) {
      out_ += ' ' + short_text + '\n';
    } else if (in_list && node->kind == ConfigNode::Kind::kMap) {
      out_ += ' ';
      block(*node, indent, false);
    } else {
      out_ += '\n';
      block(*node, indent, true);
    }
  }

  void block(const ConfigNode& node, int indent, bool indent_first) {
    bool indented = indent_first;
    const auto begin_line = [&] {
      if (indented) out_.append(static_cast<std::size_t>(indent), ' ');
      indented = true;
    };
    for (const ConfigNode::Entry& entry : node.entries) {
      begin_line();
      out_ += key_text(entry.key) + ':';
      value(entry.value.get(), indent + 2, false);
    }
    for (const ConfigTree& item : node.items) {
      begin_line();
      out_ += '-';
      value(item.get(), indent + 2, true);
    }
  }

  static std::string on_one_line(const ConfigNode* node) {
    if (node == nullptr) return "null";
    switch (node->kind) {
      case ConfigNode::Kind::kNull:
        return "null";
      case ConfigNode::Kind::kScalar:
        return scalar_text(*node);
      case ConfigNode::Kind::kList:
        return node->items.empty() ? "[]" : "";
      case ConfigNode::Kind::kMap:
        return node->entries.empty() ? "{}" : "";
    }
    return "null";
  }

 private:
  std::string out_;
};

}  // namespace

std::string to_yaml(const ConfigNode& node) {
  const std::string short_text = Emitter::on_one_line(&node);
  if (!short_text.empty()) return short_text + '\n';
  Emitter emitter;
  emitter.block(node, 0, true);
  return emitter.take();
}

}  // namespace roofcast
