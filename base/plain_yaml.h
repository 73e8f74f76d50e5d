#pragma once
// The part of YAML in which nearly all files are written, read several times faster than the whole of it.

#include <string_view>

namespace roofcast {

/// Takes what a text says, in its order. Lines and columns count from 0.
class PlainYamlTaker {
 public:
  virtual ~PlainYamlTaker() = default;
  /// A value, or a key of the innermost map.
  virtual void scalar(std::string_view text, bool quoted, int line, int column) = 0;
  /// A map or a list begins, in brackets or indented.
  virtual void open(bool map, bool bracket, int line, int column) = 0;
  virtual void close() = 0;
};

/// Reads maps and lists, indented or in brackets, with scalars of one line, in printable ASCII. False where anything
/// else stands: values left out, texts of several lines, escapes, tags, tabs, faults. The whole text must be read by a
/// whole scanner then, and what was taken is of no use.
bool read_plain_yaml(std::string_view text, PlainYamlTaker& out);

}  // namespace roofcast
