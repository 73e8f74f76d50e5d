#pragma once
// Layers with a constant state per sequence: S4, Mamba-1, Mamba-2, gated delta net, lightning attention, short
// convolutions, RG-LRU, RWKV.

#include <string_view>

#include "base/error.h"
#include "hw/cost.h"
#include "hw/dtype.h"

namespace roofcast {

class KernelRules;

/// The recurrent state has heads x key_dim x value_dim values; the convolution keeps conv_width - 1 values of
/// conv_channels. A short convolution has no recurrent state: key_dim and value_dim are 0.
struct StateMixer {
  enum class Kind { kMamba1, kMamba2, kGatedDelta, kLightning, kConvolution, kRgLru, kRwkv4, kRwkv6, kRwkv7, kS4 };
  Kind kind = Kind::kMamba2;
  double heads = 0;       ///< value heads of one GPU (Mamba-1, convolution: channels)
  double key_heads = 0;   ///< groups that share keys and queries (B and C)
  double key_dim = 128;   ///< Mamba: state size
  double value_dim = 64;  ///< Mamba-1: 1
  double conv_width = 4, conv_channels = 0;
  double chunk = 256;  ///< tokens per chunk of the parallel form
  Dtype state = Dtype::kFp32;
  bool operator==(const StateMixer&) const = default;

  /// Whether each channel has its own recurrence, which is scanned without matrix products.
  bool by_channel() const {
    return kind == Kind::kMamba1 || kind == Kind::kRgLru || kind == Kind::kRwkv4 || kind == Kind::kS4;
  }
  /// Whether it uses the delta rule, which also reads the state that it overwrites.
  bool has_delta_rule() const { return kind == Kind::kGatedDelta || kind == Kind::kRwkv7; }
};

/// mamba1, mamba2, gated_delta, lightning, convolution, rg_lru, rwkv4, rwkv6, rwkv7, s4. Throws ConfigError at
/// `location`.
StateMixer::Kind parse_state_mixer(std::string_view name, const SourceLocation& location);

/// Convolution and scan, without the projections, which are GEMMs.
Cost state_prefill(double batch, double query_len, const StateMixer& mixer, const Machine& machine);
Cost state_decode(double batch, const StateMixer& mixer, const Machine& machine);
Bytes state_bytes(const StateMixer& mixer);  ///< per sequence and layer, including the convolution's

}  // namespace roofcast
