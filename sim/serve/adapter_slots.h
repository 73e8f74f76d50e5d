#pragma once
// Which LoRA adapters are loaded on the GPUs of a rank, and which are in host memory.

#include <algorithm>
#include <list>
#include <unordered_map>

#include "sim/step/deployment.h"

namespace roofcast {

/// Adapters are numbered from 1; 0 means none. A running sequence holds the slot of its adapter. A slot that no
/// sequence holds keeps its adapter until another one needs it; the least recently used adapter leaves first
/// (vllm/lora/model_manager.py, LRUCacheLoRAModelManager; SGLang's --lora-eviction-policy lru). Host memory works
/// alike.
class AdapterSlots {
 public:
  explicit AdapterSlots(const Deployment& d) {
    if (!d.adapters) return;
    const AdapterSpec& a = *d.adapters;
    slots_ = static_cast<std::size_t>(a.slots);
    in_host_ = static_cast<std::size_t>(a.in_host);
    bytes_ = adapter_bytes(d.model, a, d.sharding, a.rank);
    const Bytes whole = adapter_bytes(d.model, a, Sharding{}, a.rank);
    from_disk_ = whole / a.disk;
    for (int i = 1; i <= std::min(a.in_host, a.count); ++i) host_.touch(i);  // the most popular adapters come first
  }

  bool active() const { return slots_ > 0; }
  /// The number of distinct adapters of running sequences.
  int held() const { return static_cast<int>(holders_.size()); }
  /// Whether a sequence with this adapter may start now.
  bool can_hold(int adapter) const { return adapter == 0 || holders_.contains(adapter) || holders_.size() < slots_; }

  struct Load {
    Bytes copied{};  ///< over PCIe; 0: it was already on the GPU
    Seconds read{};  ///< time to read the adapter from disk before the copy
  };
  Load hold(int adapter) {
    if (adapter == 0) return {};
    ++holders_[adapter];
    host_.touch(adapter);
    const bool on_disk = host_.fresh();
    if (host_.size() > in_host_) host_.drop_oldest([](int) { return false; });
    gpu_.touch(adapter);
    if (!gpu_.fresh()) return {};
    if (gpu_.size() > slots_) gpu_.drop_oldest([&](int other) { return holders_.contains(other); });
    return {bytes_, on_disk ? from_disk_ : Seconds(0)};
  }
  void release(int adapter) {
    if (adapter == 0) return;
    const auto found = holders_.find(adapter);
    if (--found->second == 0) holders_.erase(found);
  }
  void forget() { gpu_ = {}; }  ///< the GPU has lost its contents

 private:
  /// Adapter numbers in order of last use.
  class Recent {
   public:
    void touch(int i) {
      const auto found = places_.find(i);
      fresh_ = found == places_.end();
      if (fresh_) {
        order_.push_back(i);
        places_[i] = std::prev(order_.end());
      } else {
        order_.splice(order_.end(), order_, found->second);
      }
    }
    bool fresh() const { return fresh_; }  ///< the number touched last was not in the list
    std::size_t size() const { return order_.size(); }
    /// Drops the least recently used number for which `needed` is false.
    void drop_oldest(const auto& needed) {
      const auto oldest = std::find_if(order_.begin(), order_.end(), [&](int i) { return !needed(i); });
      if (oldest == order_.end()) return;
      places_.erase(*oldest);
      order_.erase(oldest);
    }

    Recent() = default;
    Recent(const Recent&) = delete;
    Recent& operator=(Recent&& other) {
      order_ = std::move(other.order_);
      places_ = std::move(other.places_);
      fresh_ = false;
      return *this;
    }

   private:
    std::list<int> order_;
    std::unordered_map<int, std::list<int>::iterator> places_;
    bool fresh_ = false;
  };

  std::size_t slots_ = 0, in_host_ = 0;
  Bytes bytes_{};  ///< size of one adapter on one GPU
  Seconds from_disk_{};
  std::unordered_map<int, int> holders_;
  Recent gpu_, host_;
};

}  // namespace roofcast
