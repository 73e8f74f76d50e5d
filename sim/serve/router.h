#pragma once
// Chooses the replica of a request.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/serve/workload.h"

namespace roofcast {

/// What a router can observe of the replicas.
class ReplicaView {
 public:
  virtual ~ReplicaView() = default;
  virtual int replicas() const = 0;
  virtual int outstanding(int replica) const = 0;                  ///< requests sent there that have not ended
  virtual std::int64_t outstanding_tokens(int replica) const = 0;  ///< prompt tokens of those requests, cached or not
  virtual std::int64_t cached_blocks(int replica,
                                     const Request& request) const = 0;  ///< cached leading prefix blocks
};

class Router {
 public:
  virtual ~Router() = default;
  virtual int pick(const Request& request, const ReplicaView& view) = 0;
  virtual bool uses_state() const { return true; }  ///< false: uses only the number of replicas
};

struct RouterKind {
  std::string_view name, help;
  std::unique_ptr<Router> (*make)();
};
std::span<const RouterKind> routers();
std::unique_ptr<Router> make_router(const std::string& name);  ///< throws ConfigError for an unknown name

}  // namespace roofcast
