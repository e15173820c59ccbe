// Lets requests in: the route, the admission, its record, and the way to the stage. What comes out of enter()
// as Passed has been written down first and is on its way.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/gateway/ask.hpp"
#include "daemon/gateway/http.hpp"
#include "daemon/gateway/ledger.hpp"
#include "daemon/gateway/route_book.hpp"
#include "daemon/gateway/upstream.hpp"
#include "platform/quiet_line.hpp"
#include "platform/tls.hpp"
#include "policies/admission.hpp"

namespace troika::daemon::gateway {

struct DoorLimits {
  Duration dial = std::chrono::seconds{3};   // to an agent's relay
  Duration pass = std::chrono::seconds{15};  // to hand the request over
  // Of requests that open their way to the stage at the same time; the others stand behind them, in order. A
  // few: in the worst case all but one of them are turned away after the handshake.
  std::size_t opening = 4;
  std::uint32_t no_replica_retry_s = 10;  // Retry-After: a restart takes longer, a failover less
};

// A request on its way.
struct Passed {
  std::uint64_t ticket = 0;
  protocol::RouteTarget target;
  std::shared_ptr<Upstream> upstream;
};
struct Turned {  // away, with this answer
  Trouble trouble{};
  HttpAnswer answer;
};
struct WentAway {};  // the client did
using Entry = std::variant<Passed, Turned, WentAway>;

struct Guest {
  std::string request;  // id
  Form form{};
  std::string_view body;
  policies::RequestSize size;
};

class Door {
 public:
  Door(asio::any_io_executor executor, const policies::AdmissionRule& rule, DoorLimits limits,
       std::shared_ptr<platform::TlsContext> tls, policies::Admission admission, Ledger& ledger,
       RouteBook& routes);
  ~Door();

  // What the gateway would answer now without looking at the tokens; used to refuse before any work.
  std::optional<Turned> refused_at_sight() const;

  asio::awaitable<Entry> enter(Exchange& exchange, const Guest& guest);
  // The same request to another target than the one that failed; an error where there is none or it fails
  // too. No new admission: the client got nothing yet.
  asio::awaitable<Result<Passed>> replay(const Passed& failed, const Guest& guest);
  // Its answer ended.
  void leave(const Passed& passed);

  std::uint32_t in_flight() const { return admission_.in_flight(); }
  std::uint32_t waiting() const { return admission_.waiting(); }  // in the queue
  std::size_t opening() const { return opening_.size(); }  // open a way to a stage, or stand in line for that
  Tokens active_tokens() const { return admission_.active_tokens(); }
  std::vector<protocol::TargetLoad> loads() const;
  // Tokens of the KV cache of the target that has the fewest; 0: not known.
  Tokens smallest_capacity() const;

 private:
  class Line;  // a place in one of the two lines below, for as long as it exists

  struct Opened {
    protocol::RouteTarget target;
    std::shared_ptr<Upstream> upstream;
  };

  std::optional<Turned> no_way() const;
  Turned turned(const policies::Refused& refused) const;
  Turned waited_too_long() const;
  policies::AdmissionAnswer foresee(const policies::RequestSize& size, bool queued) const;
  bool may_open(const Exchange& exchange, const Guest& guest, bool queued) const;
  asio::awaitable<Result<std::shared_ptr<Upstream>>> dial(const protocol::RouteTarget& target);
  asio::awaitable<Result<Opened>> open_way();
  // Takes a place in the queue and stands there until it is its turn to ask, or the reason why not.
  asio::awaitable<std::optional<Entry>> stand(Exchange& exchange, const Guest& guest,
                                              std::optional<Line>& queued, Instant leave_at);
  // Decides, writes down and passes on. Nothing: it must wait (then it stands in the queue).
  asio::awaitable<std::optional<Entry>> pass(Opened opened, const Guest& guest, std::optional<Line>& queued);
  asio::awaitable<std::optional<Entry>> admitted(Opened opened, const Guest& guest,
                                                 policies::Admitted admission);
  // The instant by which it must be passed on.
  Result<Instant> write_down(const Guest& guest, const protocol::RouteTarget& target,
                             policies::Admitted admission);
  static protocol::RelayRequest relay_request(const Guest& guest, const protocol::RouteTarget& target);
  void leave_queue(std::optional<Line>& queued);
  std::uint32_t load(const protocol::RouteTarget& target) const;  // requests passed to it and not ended
  void enter_load(const protocol::RouteTarget& target);
  void leave_load(const protocol::RouteTarget& target);

  using Timers = std::deque<asio::steady_timer*>;
  asio::any_io_executor executor_;
  policies::AdmissionRule rule_;
  policies::Admission admission_;
  DoorLimits limits_;
  std::shared_ptr<platform::TlsContext> tls_;
  Ledger& ledger_;
  RouteBook& routes_;
  std::map<std::pair<std::string, Epoch>, std::uint32_t> loads_;
  std::uint64_t turn_ = 0;  // of idle targets that share the requests
  Timers opening_;          // the first limits_.opening of them open their way, the others wait for that
  Timers queue_;            // admission's waiting requests, in order; the first one asks
  std::shared_ptr<platform::QuietLine> trouble_line_;
};

}  // namespace troika::daemon::gateway
