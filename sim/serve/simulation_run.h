#pragma once
// One simulated run: requests, replicas and events. Only simulation*.cpp and independent_replicas.cpp include this.

#include <deque>

#include "sim/serve/fleet.h"
#include "sim/serve/lane.h"
#include "sim/serve/replica.h"
#include "sim/serve/replica_pool.h"
#include "sim/serve/simulation.h"
#include "sim/serve/turn_order.h"

namespace roofcast {

class Simulation {
 public:
  /// `lane`: simulates only its replicas.
  Simulation(std::shared_ptr<const Deployment> deployment, RequestSource& source, const WorkloadSpec& workload,
             const ServingOptions& options, Observer* observer, const Lane* lane = nullptr);
  ServingMetrics run();
  /// In a lane: handles the events before `limit`, or all events.
  void run_lane(std::optional<SimTime> limit);
  bool can_serve(const Request& request);
  void require_end() const;  ///< SIM_CHECKs that nothing is left
  static ServingMetrics finish(Collector& collector, const WorkloadSpec& workload);

 private:
  bool closed() const { return workload_.arrivals.process == ArrivalSpec::Process::kClosedLoop; }
  Replica& at(int i) { return *replicas_[static_cast<std::size_t>(i - first_replica())]; }
  int first_replica() const { return lane_ != nullptr ? lane_->first : 0; }
  void handle(const EventQueue::Event& event);
  void tell_push(SimTime at, EventQueue::Kind kind) {
    if (lane_ != nullptr) lane_->tape->pushes.push_back({at, kind});
  }
  void add_replicas(const std::shared_ptr<const Deployment>& deployment, int count, StepPricer& pricer, Pool& pool,
                    bool prefill_only);
  void begin();
  void begin_user(SimTime now);
  SimTime send_delay();
  void send(const Request& request, SimTime now);
  void send_next(int session, SimTime now);
  void user_goes_on(int session, SimTime now, SimTime from);
  void turn_ended(int session, SimTime now);
  void arrive(SimTime now);
  void run_replica(int index, SimTime now);
  void finish(const Replica::Ended& ended, SimTime now);
  void hand_over(Slot slot, SimTime now);
  void watch(Slot slot, SimTime now);
  bool late(const LiveRequest& request, SimTime now) const;
  void give_up(Slot slot, std::uint32_t id, SimTime now);
  void refuse(Slot slot, SimTime now);
  bool within_limit(const LiveRequest& request, SimTime now);
  void begin_family(Slot slot, const Request& request);
  void fork(Slot slot, SimTime now);
  void add_family(RequestRecord& record, const LiveRequest& request);
  bool family_goes_on(const LiveRequest& request, const Replica::Ended& ended);
  void count_ended(const LiveRequest& request, const Replica::Ended& ended);
  std::optional<SimTime> gave_up_at(const LiveRequest& request, SimTime delivered) const;
  bool warmup_ends() const;
  bool leave(Slot slot, SimTime now, SimTime delivered);
  void transferred(Slot slot, std::uint32_t epoch, SimTime now);
  void give_back(Slot slot, SimTime now);
  void schedule(int index);
  Request request_of(Slot slot);

  // simulation_fleet.cpp: autoscaling and failures
  enum class FleetEvent : std::uint32_t { kDecide, kReady, kFailure, kListedFailure, kRepaired };
  void begin_fleet();
  bool prefills_only(int replica) const { return replica < prefill_replicas_; }
  Pool& role_of(int replica) { return prefill_replicas_ > 0 && !prefills_only(replica) ? decode_ : front_; }
  void push_fleet(SimTime at, FleetEvent what, int replica);
  void fleet_event(FleetEvent what, int replica, SimTime now);
  void change(int replica, ReplicaState state, SimTime now);
  void serves(int replica, SimTime now);
  void decide(bool prefill, SimTime now);
  bool start_one(bool prefill, SimTime now);
  bool stop_one(bool prefill, SimTime now);
  int first_of(bool prefill) const { return prefill ? 0 : prefill_replicas_; }
  int end_of(bool prefill) const { return prefill ? prefill_replicas_ : fleet_->size(); }
  std::optional<SimTime> next_failure(int replica, SimTime now);
  void fail_by_chance(int replica, SimTime now);
  void fail_replica(int replica, SimTime now);
  void lose(int replica, SimTime now);
  void withdraw_caches(int replica, SimTime now);
  void send_again(Slot slot, SimTime now);
  void wait_for_decoder(Slot slot);
  bool leaves_service(int replica, SimTime now);
  bool stops(int replica, SimTime now);
  void wait_for_replica(Slot slot, SimTime now);
  void account_fleet();

  RequestSource& source_;
  const WorkloadSpec& workload_;
  const ServingOptions& options_;
  Observer* observer_;
  const Lane* lane_;
  Collector collector_;
  RequestTable requests_;
  std::vector<std::optional<TokenBuckets>> limits_;  ///< by client
  std::optional<TurnOrder> turns_;                   ///< open loads with sessions only
  std::vector<SampleFamily> families_;               ///< by LiveRequest::family
  std::vector<std::vector<int>> family_outputs_;     ///< output lengths of the sequences that each will still fork
  std::vector<std::int32_t> free_families_;
  EventQueue events_;
  Random think_, sends_;
  Pool front_, decode_;  ///< where requests are sent, and where they decode if disaggregated
  std::unique_ptr<StepPricer> pricer_, own_draft_pricer_, prefill_pricer_;
  StepPricer* draft_pricer_ = nullptr;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::uint32_t> scheduled_;  ///< generation of the replica's event in the queue
  std::vector<Replica::Ended> ended_;
  Request next_;
  std::int64_t sent_ = 0, in_flight_ = 0;
  SimTime main_begin_, stop_sending_;
  std::uint32_t users_ = 0;              ///< generation of users: warm-up, then the counted run
  std::int64_t fruitless_failures_ = 0;  ///< replica failures since a request last ended
  bool exhausted_ = false;
  bool enough_ = false;  ///< the observer asked to stop
  std::optional<FleetStates> fleet_;
  std::array<std::optional<Autoscaler>, 2> autoscalers_;  ///< of decoding replicas, of prefill-only replicas
  int prefill_replicas_ = 0;                              ///< the first ones of replicas_ only prefill
  std::deque<Slot> gateway_;                              ///< requests that wait until a replica serves
  std::deque<Slot> prefilled_;                            ///< prefilled requests that wait until a replica decodes
  std::size_t housekeeping_ = 0;  ///< fleet events in the queue; they alone do not keep a run going
  std::vector<Slot> homeless_;
  int planning_ = -1;  ///< the replica that plans after this event in any case
};

}  // namespace roofcast
