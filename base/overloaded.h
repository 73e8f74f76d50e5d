#pragma once

namespace roofcast {

/// One function for each alternative of a variant: std::visit(Overloaded{...}, variant) does not compile where an
/// alternative has none.
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace roofcast
