// What the gateway answers: completions, models, health. One object a process.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>

#include "daemon/gateway/ask.hpp"
#include "daemon/gateway/counters.hpp"
#include "daemon/gateway/delivery.hpp"
#include "daemon/gateway/door.hpp"
#include "daemon/gateway/http.hpp"
#include "vocabulary/result.hpp"

namespace troika::daemon::gateway {

// The prompt's tokens of a chat or completion request. An Error's subject is the field, its reason what is
// wrong with it. Called on the worker's thread only.
using CountPrompt = std::function<Result<Tokens>(const nlohmann::json& request)>;

struct ServiceFacts {
  std::string model;
  std::int64_t started = 0;  // seconds since 1970
  policies::AdmissionRule rule;
  DeliveryLimits delivery;
};

class Service {
 public:
  // Larger bodies are not counted while the rate would refuse them anyway: tokens cost time.
  static constexpr std::size_t kSmallBody = 64u << 10;

  struct Hooks {
    std::function<void()> changed;                                // some statistic
    std::function<void(protocol::RequestFailed)> request_failed;  // for the leader
  };

  // worker: where prompts are counted, so that a long one holds up no stream.
  Service(ServiceFacts facts, Door& door, Ledger& ledger, RouteBook& routes, CountPrompt count,
          asio::any_io_executor worker, Hooks hooks);
  ~Service();

  asio::awaitable<void> serve(Exchange& exchange);          // the public listener
  asio::awaitable<void> serve_metrics(Exchange& exchange);  // the metrics listener

  protocol::GatewayStats stats() const;
  std::uint32_t in_hand() const { return in_hand_; }  // completion requests of any state
  // From now on new requests are turned away; those in hand go on.
  void drain() { draining_ = true; }
  void count_connections(std::function<std::size_t()> connections) { connections_ = std::move(connections); }

 private:
  asio::awaitable<void> complete(Exchange& exchange, Form form);
  asio::awaitable<Result<Tokens>> count(const Ask& ask);
  asio::awaitable<void> carry(Exchange& exchange, const Ask& ask, const Guest& guest, Passed passed);
  asio::awaitable<Delivery> attempt(Exchange& exchange, const Ask& ask, const Guest& guest,
                                    const Passed& passed);
  asio::awaitable<void> turn_away(Exchange& exchange, Trouble trouble, HttpAnswer answer);
  asio::awaitable<void> tell_failure(Exchange& exchange, const Delivery& delivery,
                                     const std::string& request);
  void settle(const Guest& guest, const Passed& passed, const Delivery& delivery);
  void report(const Guest& guest, const Passed& passed, const Delivery& delivery);
  HttpAnswer answer_to_get(const HttpRequest& request) const;
  HttpAnswer metrics() const;
  HttpAnswer models() const;
  HttpAnswer model(const std::string& name) const;
  HttpAnswer unknown_model(const std::string& name) const;
  HttpAnswer health() const;

  ServiceFacts facts_;
  Door& door_;
  Ledger& ledger_;
  RouteBook& routes_;
  CountPrompt count_;
  asio::any_io_executor worker_;
  Hooks hooks_;
  Counters counters_;
  std::function<std::size_t()> connections_;
  std::uint32_t in_hand_ = 0;
  bool draining_ = false;
};

}  // namespace troika::daemon::gateway
