// A gateway in this process: real HTTP in front, real TLS to fake agents behind, its own thread.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/gateway/service.hpp"
#include "platform/clock.hpp"
#include "tests/unit/daemon/fake_agent.hpp"
#include "tests/unit/daemon/http_client.hpp"
#include "tests/unit/platform/net.hpp"

namespace troika::daemon {

// A chunk of a streamed answer, as engines write them.
inline std::string chunk_event(const std::string& text) {
  return "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + text +
         "\"},\"finish_reason\":null}]}\n\n";
}
inline const std::string kFinishEvent =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
inline const std::string kDoneEvent = "data: [DONE]\n\n";
inline const std::string kStreamType = "text/event-stream";

inline FakeAgent::Script good_stream() {
  return [](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("Hello") + kFinishEvent + kDoneEvent);
    FakeAgent::end(c, true);
    co_return;
  };
}

inline FakeAgent::Script whole_answer(unsigned status, std::string body) {
  return [status, body = std::move(body)](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, status, "application/json");
    FakeAgent::data(c, body);
    FakeAgent::end(c, true);
    co_return;
  };
}

// Dies without a byte.
inline FakeAgent::Script death() {
  return [](platform::ChannelPtr c) -> asio::awaitable<void> {
    c->close();
    co_return;
  };
}

struct RigOptions {
  policies::AdmissionRule rule = generous();
  gateway::DeliveryLimits delivery;
  gateway::HttpLimits http;
  std::size_t agents = 2;

  static policies::AdmissionRule generous() {
    policies::AdmissionRule rule;
    rule.rate = 1000;
    rule.burst = 1000;
    return rule;
  }
};

class GatewayRig {
 public:
  explicit GatewayRig(RigOptions options = {}) : certificates_("lab"), options_(options) {
    auto ledger = gateway::Ledger::open(folder_ / "gateway.sqlite");
    EXPECT_TRUE(ledger.ok());
    ledger_ = std::make_unique<gateway::Ledger>(std::move(ledger).value());
    auto routes = gateway::RouteBook::open(folder_ / "route.json");
    EXPECT_TRUE(routes.ok());
    routes_ = std::make_unique<gateway::RouteBook>(std::move(routes).value());
    for (std::size_t i = 0; i < options.agents; ++i) {
      const auto name = "n" + std::to_string(i);
      agents_.push_back(std::make_unique<FakeAgent>(
          agents_io_, certificates_.context(platform::Role::Agent, name), good_stream()));
    }
    auto leader = certificates_.context(platform::Role::Leader, "leader");
    policies::Admission admission(options.rule);
    admission.restore(std::nullopt, "boot", platform::now());
    door_ = std::make_unique<gateway::Door>(io_.get_executor(), options.rule, gateway::DoorLimits{}, leader,
                                            std::move(admission), *ledger_, *routes_);
    gateway::ServiceFacts facts;
    facts.model = "m";
    facts.rule = options.rule;
    facts.delivery = options.delivery;
    gateway::Service::Hooks hooks;
    hooks.request_failed = [this](protocol::RequestFailed failed) {
      const std::lock_guard guard(mutex_);
      failures_.push_back(std::move(failed));
    };
    service_ = std::make_unique<gateway::Service>(facts, *door_, *ledger_, *routes_, count,
                                                  worker_.get_executor(), hooks);
    auto server = gateway::listen_http(
        io_.get_executor(), "127.0.0.1", 0, [this](gateway::Exchange& e) { return service_->serve(e); },
        options.http);
    EXPECT_TRUE(server.ok());
    server_ = std::move(server).value();
    port_ = server_->port();
    route_all();
    thread_ = std::thread([this] { io_.run(); });
    agents_thread_ = std::thread([this] { agents_io_.run(); });
  }

  ~GatewayRig() {
    on_thread([this] { server_->stop_accepting(); });
    for (std::size_t i = 0; i < agents_.size(); ++i)
      stop_agent(i);
    // Whoever is still served uses what is destroyed below.
    EXPECT_TRUE(soon([this] { return server_->connections() == 0; }));
    io_.stop();
    thread_.join();
    agents_io_.stop();
    agents_thread_.join();
    worker_.join();
  }

  // The prompt's tokens are what the test says: {"test_tokens": N}.
  static Result<Tokens> count(const nlohmann::json& request) {
    if (request.contains("test_tokens")) return Tokens{request["test_tokens"].get<std::uint64_t>()};
    if (request.contains("test_bad")) return Error{"read", "messages[0].content", "a string is expected"};
    return Tokens{10};
  }

  // All agents, in order; `spread`: active-active.
  void route_all(bool spread = false) {
    protocol::Route route;
    route.spread = spread;
    route.term = Term{1};
    route.generation = ++generation_;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      protocol::RouteTarget target;
      target.replica = std::string(1, static_cast<char>('a' + i));
      target.epoch = Epoch{7};
      target.relay_address = agents_[i]->address();
      target.node = "n" + std::to_string(i);
      route.targets.push_back(target);
    }
    apply(route);
  }
  void apply(const protocol::Route& route) {
    const auto applied = routes_->apply(route);
    EXPECT_TRUE(applied.ok());
  }
  // On the gateway's thread.
  const protocol::Route& route() const { return *routes_->route(); }
  void give(protocol::Route route) {
    route.term = Term{1};
    route.generation = ++generation_;
    on_thread([&] { apply(route); });
  }

  void stop_agent(std::size_t i) {
    std::promise<void> done;
    asio::post(agents_io_, [&] {
      agents_[i]->stop();
      done.set_value();
    });
    done.get_future().wait();
  }

  // The agents do nothing until the promise is kept.
  std::shared_ptr<std::promise<void>> hold_agents() {
    auto held = std::make_shared<std::promise<void>>();
    asio::post(agents_io_, [held] { held->get_future().wait(); });
    return held;
  }

  // Runs on the gateway's thread and waits for it.
  void on_thread(std::function<void()> body) {
    if (!thread_.joinable()) return body();
    std::promise<void> done;
    asio::post(io_, [&] {
      body();
      done.set_value();
    });
    done.get_future().wait();
  }
  template <class Condition>
  bool soon(Condition condition) {
    for (int i = 0; i < 1000; ++i) {
      bool met = false;
      on_thread([&] { met = condition(); });
      if (met) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    return false;
  }

  Reply chat(const std::string& fields = {}) {
    return ask(port_, post("/v1/chat/completions", body(fields)));
  }
  static std::string body(const std::string& fields) {
    return "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" + (fields.empty() ? "" : "," + fields) +
           "}";
  }
  static std::string code(const Reply& reply) {
    const auto json = nlohmann::json::parse(reply.body, nullptr, false);
    if (!json.is_object() || !json.contains("error")) return "no error body: " + reply.body;
    return json["error"]["code"].get<std::string>();
  }

  FakeAgent& agent(std::size_t i) { return *agents_[i]; }
  gateway::Door& door() { return *door_; }
  gateway::Service& service() { return *service_; }
  protocol::GatewayStats stats() {
    protocol::GatewayStats now;
    on_thread([&] { now = service_->stats(); });
    return now;
  }
  gateway::HttpServer& server() { return *server_; }
  std::uint16_t port() const { return port_; }
  std::string ledger_path() const { return folder_ / "gateway.sqlite"; }
  std::vector<protocol::RequestFailed> failures() {
    const std::lock_guard guard(mutex_);
    return failures_;
  }

 private:
  platform::Folder folder_;
  platform::Certificates certificates_;
  RigOptions options_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  // Of their own: the instants that they note must not wait for the gateway's loop.
  asio::io_context agents_io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> agents_work_{agents_io_.get_executor()};
  asio::thread_pool worker_{1};
  std::unique_ptr<gateway::Ledger> ledger_;
  std::unique_ptr<gateway::RouteBook> routes_;
  std::vector<std::unique_ptr<FakeAgent>> agents_;
  std::unique_ptr<gateway::Door> door_;
  std::unique_ptr<gateway::Service> service_;
  std::unique_ptr<gateway::HttpServer> server_;
  std::uint16_t port_ = 0;
  std::uint64_t generation_ = 0;
  std::mutex mutex_;
  std::vector<protocol::RequestFailed> failures_;
  std::thread thread_;
  std::thread agents_thread_;
};

}  // namespace troika::daemon
