#pragma once
#include <stdexcept>

namespace roofcast {
inline namespace v0 {

/// Invalid input: a file, a key, a value. what() is one line, `path:line:column: message`, or `key: message` if no file
/// is involved. If no answer exists, no Error is thrown; see Result::answered().
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace v0
}  // namespace roofcast
