// Which request may pass to an engine, and when. Pure; the gateway records each admission before it passes it
// on.
//
// The rate is a promise about any interval w: at most burst + rate * w requests are passed on, across
// restarts. It is kept as a GCRA: a request may pass at t if t >= tat - (burst-1)*T with T = 1/rate; then tat
// = max(t, tat) + T. The instant that counts is the one at which the request was passed on, never an earlier
// one (see Admission::passed).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vocabulary/units.hpp"

namespace troika::policies {

struct AdmissionRule {
  double rate = 0.10;  // requests a second
  std::uint32_t burst = 1;
  std::uint32_t in_flight = 8;
  Tokens prompt_cap{8192};
  Tokens window{12288};     // prompt + output
  std::uint32_t queue = 0;  // waiting requests; 0: refused at once
  Duration queue_wait{};    // refused at entry if the wait would be longer
};

enum class RefusalKind { RateLimit, InFlight, PromptCap, Window, KvCapacity };

struct Refused {
  RefusalKind kind{};
  std::uint32_t retry_after_s =
      0;                // whole seconds rounded up until a slot will be free; 0: asking again is no use
  std::string message;  // with the figures
};
struct Waiting {
  Instant until;
};  // enters the queue; ask again then
struct Admitted {
  std::uint64_t ticket = 0;
  Instant pass_by;  // must be passed on by then, else asked for anew; written down with the admission
};
using AdmissionAnswer = std::variant<Admitted, Waiting, Refused>;

// What a restart needs: written down with each admission, before the request is passed on.
struct AdmissionRecord {
  Instant tat;          // theoretical arrival time as of pass_by
  std::string boot_id;  // an Instant means nothing in another boot: then the bucket starts empty
};

struct RequestSize {
  Tokens prompt;
  Tokens max_output;
};

// The queue: whoever calls keeps waiting requests in the order in which they came and asks for the first of
// them only (waited = true), at the instant that Waiting named and whenever a request ended. A newcomer never
// overtakes: while any request waits it gets a place behind the last. A request that waited for
// AdmissionRule::queue_wait leaves (leave_queue); one that `ask` admits or refuses has left.
class Admission {
 public:
  // How long after the decision a request may be passed on; a slower one is decided anew. Covers a
  // synchronous commit.
  static constexpr Duration kPassSlack = std::chrono::milliseconds{250};
  // A request that waits for another's end (not for the rate) asks again at least this often.
  static constexpr Duration kAskAgain = std::chrono::seconds{1};

  // The rate is above 0 and finite, burst at least 1.
  explicit Admission(AdmissionRule rule);

  // After a restart: the stored record of the last admission and this boot's id. No record: nothing was ever
  // admitted here (a ledger that was lost is not that: give a record with an empty boot_id). The record of
  // another boot cannot be compared with this one's instants, so the bucket starts empty: the next request
  // passes one interval later.
  void restore(const std::optional<AdmissionRecord>& last, const std::string& boot_id, Instant now);

  // Without side effects: what `ask` would answer (used to refuse early, before any work). kv_capacity 0: not
  // known.
  AdmissionAnswer peek(const RequestSize& size, Tokens kv_capacity, Instant now) const;
  // Takes a slot and the rate's next place when Admitted. `waited`: this request stands first in the queue
  // already.
  AdmissionAnswer ask(const RequestSize& size, Tokens kv_capacity, Instant now, bool waited = false);
  void leave_queue();  // a waiting request went away
  // It could not be passed on by its pass_by (a slow disk): the new one; it keeps its slot and its place. The
  // record must be written down again before the request is passed on. Nothing: the ticket is not open.
  std::optional<Instant> renew(std::uint64_t ticket, Instant now);
  void passed(std::uint64_t ticket, Instant at);  // it was passed on at `at`, not later than its pass_by
  void gave_up(std::uint64_t ticket);  // admitted, never passed on: the place is not given back, the slot is
  void ended(std::uint64_t ticket);    // its answer ended: the slot and its tokens are free

  AdmissionRecord record() const;  // to be written down after an Admitted, before it is passed on
  std::uint32_t in_flight() const;
  std::uint32_t waiting() const;
  Tokens active_tokens() const;

 private:
  struct Open {
    std::uint64_t ticket = 0;
    Tokens tokens;
    Instant pass_by;
    bool passed = false;
  };

  Instant latest_tat() const;
  bool rate_allows(Instant now) const;
  std::optional<Refused> refuse_for_good(const RequestSize& size, Tokens kv_capacity) const;
  std::optional<Open> take(std::uint64_t ticket);

  AdmissionRule rule_;
  Duration interval_{};   // between requests at the rate, rounded up to whole ns
  Duration tolerance_{};  // (burst - 1) intervals
  Instant settled_{};     // theoretical arrival time after the requests that were passed on or given up
  std::string boot_id_;
  std::uint64_t next_ticket_ = 1;
  std::uint32_t waiting_ = 0;
  std::vector<Open> open_;  // at most in_flight, in the order of their admission
};

}  // namespace troika::policies
