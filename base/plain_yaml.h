#pragma once
// A fast reader for the part of YAML that nearly all files use. It is several times as fast as libyaml.

#include <string_view>

namespace roofcast {

/// Receives the parts of a text in order. Lines and columns count from 0.
class PlainYamlHandler {
 public:
  virtual ~PlainYamlHandler() = default;
  /// A value, or a key of the innermost map.
  virtual void scalar(std::string_view text, bool quoted, int line, int column) = 0;
  /// The beginning of a map or a list, in brackets or indented.
  virtual void open(bool map, bool bracket, int line, int column) = 0;
  virtual void close() = 0;
};

/// Reads maps and lists, indented or in brackets, with scalars of one line, in printable ASCII. Returns false for
/// everything else: missing values, texts of several lines, escapes, tags, tabs, errors. Then discard what `out`
/// received, and read the text with libyaml.
bool read_plain_yaml(std::string_view text, PlainYamlHandler& out);

}  // namespace roofcast
