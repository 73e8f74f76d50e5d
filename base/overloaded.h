#pragma once

namespace roofcast {

/// One function per alternative of a variant. std::visit(Overloaded{...}, variant) does not compile if an alternative
/// is missing.
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace roofcast
