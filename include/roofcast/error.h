#pragma once
#include <stdexcept>

namespace roofcast {
inline namespace v0 {

/// What the caller gave is wrong: a file, a key, a value. what() is one line, `path:line:column: message`, or
/// `key: message` where no file is concerned. That no answer exists is no error, but a Result without one.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace v0
}  // namespace roofcast
