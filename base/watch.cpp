#include "base/watch.h"

namespace roofcast {
namespace {

thread_local Watch* t_watch = nullptr;

}  // namespace

Watch* current_watch() { return t_watch; }

WatchScope::WatchScope(Watch* watch) : before_(t_watch) { t_watch = watch; }
WatchScope::~WatchScope() { t_watch = before_; }

void check_stopped() {
  if (t_watch != nullptr && t_watch->stop) throw Stopped();
}

}  // namespace roofcast
