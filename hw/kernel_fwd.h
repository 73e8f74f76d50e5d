#pragma once
// Declares what headers of operators name of kernels and their constants (hw/kernel_of.h defines it).

namespace roofcast {

class Kernel;
class KernelRules;
struct ConstantsBlock;
template <class P>
struct Parameter;
template <class P, class Base = Kernel>
class KernelOf;

}  // namespace roofcast
