#pragma once
// Arithmetic intensity, FLOP per byte moved: what decides on which side of the ridge point work lies.

#include "base/units.h"

namespace roofcast {

/// Where the roofline bends: peak / bandwidth.
constexpr FlopsPerByte ridge_point(FlopsPerSecond peak, BytesPerSecond bandwidth) { return peak / bandwidth; }

/// [tokens, in] x [in, out]: 2 t i o FLOP over e (t i + i o + t o) bytes. Near 2 t / e while t is small beside the
/// weights: every weight is read once for t multiply-adds.
constexpr FlopsPerByte matmul_intensity(double tokens, double in, double out, double element_bytes = 2) {
  return Flops(2 * tokens * in * out) / Bytes(element_bytes * (tokens * in + in * out + tokens * out));
}

/// T queries of `group` heads over the S keys and values of their one head, no mask: 4 G S T d FLOP over
/// e (2 S d + 2 G T d) bytes, in 16 bit  G S T / (S + G T).  For MHA (G = 1) and one query it is S / (S + 1): below 1
/// at any context and any batch, for every sequence reads its own cache.
constexpr FlopsPerByte attention_intensity(double context, double queries, double group = 1, double element_bytes = 2) {
  return Flops(4 * group * context * queries) / Bytes(element_bytes * (2 * context + 2 * group * queries));
}

/// Absorbed MLA: one row of `latent` + `rope` values is read for all heads; each head's scores take 2 (latent + rope)
/// and its values 2 latent FLOP a cached token. Queries and outputs are left out: they vanish at long contexts.
constexpr FlopsPerByte latent_intensity(double heads, double latent = 512, double rope = 64, double element_bytes = 2) {
  return Flops(heads * (2 * (latent + rope) + 2 * latent)) / Bytes(element_bytes * (latent + rope));
}

}  // namespace roofcast
