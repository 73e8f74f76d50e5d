#pragma once
#include <string>

namespace roofcast {
class Kernel;
struct CalibratedGpu;
}  // namespace roofcast

namespace roofcast::reports {

/// Every kernel: what it computes, whose it is, whose constants it borrows. `format`: table, json, csv.
std::string kernels_report(const std::string& format);

/// One kernel's constants: bounds, the rule by which each is carried over, meaning; their values on `gpu` by number
/// format, where it is not null.
std::string kernel_report(const Kernel& kernel, const CalibratedGpu* gpu, const std::string& format);

}  // namespace roofcast::reports
