#pragma once
#include <string>

namespace roofcast {
class Kernel;
struct CalibratedGpu;
}  // namespace roofcast

namespace roofcast::reports {

/// Every kernel: what it computes, its library, whose constants it shares. `format`: table, json, csv.
std::string kernels_report(const std::string& format);

/// The constants of one kernel: bounds, transfer rule, meaning; and their values on `gpu` by number format, unless
/// null.
std::string kernel_report(const Kernel& kernel, const CalibratedGpu* gpu, const std::string& format);

}  // namespace roofcast::reports
