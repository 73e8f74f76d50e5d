#pragma once
// Arithmetic intensity in FLOP per byte moved. Compared with the ridge point, it tells what bounds a kernel.

#include "base/units.h"

namespace roofcast {

/// The ridge point of the roofline: peak / bandwidth.
constexpr FlopsPerByte ridge_point(FlopsPerSecond peak, BytesPerSecond bandwidth) { return peak / bandwidth; }

/// [tokens, in] x [in, out]: 2 t i o FLOP over e (t i + i o + t o) bytes. Approaches 2 t / e if t is small compared to
/// i and o: every weight is read once for t multiply-adds.
constexpr FlopsPerByte matmul_intensity(double tokens, double in, double out, double element_bytes = 2) {
  return Flops(2 * tokens * in * out) / Bytes(element_bytes * (tokens * in + in * out + tokens * out));
}

/// T queries of a group of G heads over the S keys and values of their KV head, no mask: 4 G S T d FLOP over
/// e (2 S d + 2 G T d) bytes; in 16 bit  G S T / (S + G T).  For MHA (G = 1) and one query it is S / (S + 1): below 1
/// at any context and batch, because every sequence reads its own cache.
constexpr FlopsPerByte attention_intensity(double context, double queries, double group = 1, double element_bytes = 2) {
  return Flops(4 * group * context * queries) / Bytes(element_bytes * (2 * context + 2 * group * queries));
}

/// Absorbed MLA: one row of `latent` + `rope` values is read for all heads. Per cached token, the scores of each head
/// take 2 (latent + rope) FLOP and its values 2 latent FLOP. Queries and outputs are neglected (long contexts).
constexpr FlopsPerByte latent_intensity(double heads, double latent = 512, double rope = 64, double element_bytes = 2) {
  return Flops(heads * (2 * (latent + rope) + 2 * latent)) / Bytes(element_bytes * (latent + rope));
}

}  // namespace roofcast
