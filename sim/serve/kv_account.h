#pragma once
// The KV cache of one rank, by owner.

#include "sim/serve/kv_pool.h"

namespace roofcast {

/// Adds to the pool what individual requests own: private bytes, pinned prefix blocks, and memory that admission has
/// reserved for their output. Counts the bytes that a step copies over PCIe.
class KvAccount {
 public:
  KvAccount(const Deployment& deployment, RequestTable& requests, const SharedTiers& shared = {})
      : requests_(requests), pool_(deployment, shared) {}

  const KvPool& pool() const { return pool_; }
  const KvLayout& layout() const { return pool_.layout(); }
  std::int64_t bytes(std::int64_t tokens) const { return pool_.layout().bytes(tokens); }
  std::int64_t private_bytes(const LiveRequest& r) const { return bytes(r.base) - r.pinned_bytes; }
  std::int64_t shared_bytes() const { return shared_; }  ///< pinned by requests; a block counts once per request

  /// Starts the planning of a step: nothing copied over PCIe yet, nothing allocated for its decodes.
  void begin_step() { moved_ = Bytes(0), step_growth_ = 0; }
  void set_step_growth(std::int64_t bytes) { step_growth_ = bytes; }
  std::int64_t step_growth() const { return step_growth_; }
  /// Bytes that the step being planned can still allocate.
  std::int64_t room() const { return pool_.room() - step_growth_; }
  /// Bytes that admission must leave free.
  std::int64_t margin(bool others_run) const { return others_run ? pool_.watermark() : 0; }
  void take(std::int64_t bytes) { pool_.take(bytes); }
  void give(std::int64_t bytes) { pool_.give(bytes); }
  std::int64_t take_stored() { return pool_.take_stored(); }
  void forget() { pool_.forget(); }

  KvPool::Hit look_up(Slot slot) const { return pool_.look_up(requests_.prefix(slot), requests_[slot].target); }
  /// Whether `bytes` can be reserved for a request in addition to existing reservations.
  bool can_reserve(std::int64_t bytes, const KvPool::Hit& hit, std::int64_t margin) const {
    return reserved_ + pool_.pinned_bytes() + hit.unpinned + bytes <= pool_.capacity() - margin;
  }
  /// Admits a request: allocates `bytes`, pins the prefix that was found and reserves `reserve` bytes.
  void admit(Slot slot, const KvPool::Hit& hit, std::int64_t bytes, std::int64_t reserve);
  /// Releases the memory of a request, except its private bytes if `keep_private`.
  void release(Slot slot, bool keep_private);

  /// Publish blocks that later requests can reuse: of a prefilled prompt, of a finished output, of the first `tokens`
  /// tokens of a preempted sequence.
  void publish_prompt(Slot slot);
  void publish_output(Slot slot, std::int64_t tokens);
  void publish_computed(Slot slot, std::int64_t tokens);

  void move(std::int64_t bytes) { moved_ += Bytes(static_cast<double>(bytes)); }
  Bytes moved() const { return moved_; }  ///< copied over PCIe before the step

 private:
  void share(LiveRequest& request, std::int64_t bytes);

  RequestTable& requests_;
  KvPool pool_;
  std::int64_t shared_ = 0;
  std::int64_t reserved_ = 0;     ///< for running requests, including what they already use
  std::int64_t step_growth_ = 0;  ///< allocated for decodes in the step being planned
  Bytes moved_{};
};

}  // namespace roofcast
