#pragma once
// The replicas that one router chooses from.

#include <memory>
#include <string>
#include <vector>

#include "sim/serve/replica.h"
#include "sim/serve/router.h"

namespace roofcast {

/// The replicas of one role: all of them, or those that prefill, or those that decode.
class Pool final : public ReplicaView {
 public:
  Pool(const std::string& router) : router_(make_router(router)) {}
  void add(Replica& replica) { members_.push_back(sample_ = &replica); }
  void remove(const Replica& replica) { std::erase(members_, &replica); }
  Replica& pick(const Request& request) { return *members_[static_cast<std::size_t>(router_->pick(request, *this))]; }
  bool can_serve(const LiveRequest& request) const { return sample_->can_serve(request); }
  TooLong too_long(const LiveRequest& request) const { return sample_->too_long(request); }

  int replicas() const override { return static_cast<int>(members_.size()); }
  int outstanding(int i) const override { return at(i).outstanding(); }
  std::int64_t outstanding_tokens(int i) const override { return at(i).outstanding_tokens(); }
  std::int64_t cached_blocks(int i, const Request& request) const override {
    return at(i).cached_blocks(request.prefix_blocks);
  }

 private:
  const Replica& at(int i) const { return *members_[static_cast<std::size_t>(i)]; }
  std::vector<Replica*> members_;
  Replica* sample_ = nullptr;  ///< all replicas of a role are alike
  std::unique_ptr<Router> router_;
};

}  // namespace roofcast
