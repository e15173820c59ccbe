#include "daemon/gateway/program.hpp"

#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>

#include "daemon/gateway/leader_link.hpp"
#include "daemon/gateway/service.hpp"
#include "engine/tokenizer/chat.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "platform/clock.hpp"
#include "platform/files.hpp"
#include "platform/log.hpp"
#include "platform/tls.hpp"

namespace troika::daemon::gateway {
namespace {

// Requests in hand may finish for so long after SIGTERM.
constexpr Duration kDrain = std::chrono::seconds{30};
// Whoever looks whether a gateway runs holds the lock for an instant.
constexpr int kLockTries = 20;
constexpr Duration kLockPause = std::chrono::milliseconds{50};

int fail(int status, const Error& error) {
  platform::log(error.message());
  return status;
}

Result<platform::DirectoryLock> take_lock(const std::string& path) {
  auto lock = platform::DirectoryLock::take(path);
  for (int i = 1; i < kLockTries && !lock.ok(); ++i) {
    std::this_thread::sleep_for(kLockPause);
    lock = platform::DirectoryLock::take(path);
  }
  return lock;
}

policies::AdmissionRule rule_of(const config::AdmissionConfig& a) {
  return {a.rate, a.burst, a.in_flight, a.prompt_cap, a.window, a.queue, a.queue_wait};
}

// The state of the rate as the last gateway left it.
Result<policies::Admission> restored(const policies::AdmissionRule& rule, Ledger& ledger, bool route_known) {
  TROIKA_TRY(last, ledger.last_record());
  // A route from before without a ledger: the ledger was lost, so its burst counts as used up.
  if (!last && ledger.created() && route_known) last = policies::AdmissionRecord{};
  policies::Admission admission(rule);
  admission.restore(last, platform::boot_id(), platform::now());
  return admission;
}

// The parts of a running gateway, in the order of their dependence.
struct Gateway {
  asio::io_context io{1};
  asio::thread_pool worker{1};
  std::unique_ptr<Ledger> ledger;
  std::unique_ptr<RouteBook> routes;
  std::unique_ptr<Door> door;
  std::unique_ptr<Service> service;
  std::shared_ptr<LeaderLink> link;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<HttpServer> metrics;
};

CountPrompt counter_of(std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  return [tokenizer](const nlohmann::json& request) -> Result<Tokens> {
    TROIKA_TRY(prompt, tokenizer::prompt_of_request(*tokenizer, request));
    return Tokens{prompt.size()};
  };
}

Service::Hooks hooks_of(const std::shared_ptr<LeaderLink>& link) {
  return {[link] { link->changed(); },
          [link](protocol::RequestFailed failed) { link->report(std::move(failed)); }};
}

asio::awaitable<void> end_on_signal(Gateway& gateway) {
  asio::signal_set signals(gateway.io, SIGTERM, SIGINT);
  boost::system::error_code error;
  const int signal = co_await signals.async_wait(asio::redirect_error(asio::use_awaitable, error));
  platform::log("signal " + std::to_string(signal) + ": ending; " +
                std::to_string(gateway.service->in_hand()) + " requests in hand");
  gateway.service->drain();
  gateway.server->stop_accepting();
  gateway.metrics->stop_accepting();
  bool again = false;
  signals.async_wait([&again](const boost::system::error_code& e, int) { again = !e; });
  const Instant until = platform::now() + kDrain;
  asio::steady_timer pause(gateway.io);
  while (gateway.service->in_hand() > 0 && platform::now() < until && !again) {
    pause.expires_after(std::chrono::milliseconds{50});
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
  signals.cancel(error);
  gateway.link->stop();
  platform::log("ended");
  gateway.io.stop();
}

Status listen(Gateway& gateway, const config::ClusterConfig& config) {
  auto* service = gateway.service.get();
  TROIKA_TRY(server,
             listen_http(gateway.io.get_executor(), config.gateway.listen.host, config.gateway.listen.port,
                         [service](Exchange& exchange) { return service->serve(exchange); }));
  gateway.server = std::move(server);
  HttpLimits small;
  small.connections = 32;
  small.per_address = 8;
  small.loopback = 24;
  small.body_bytes = 64u << 10;
  TROIKA_TRY(metrics, listen_http(
                          gateway.io.get_executor(), config.gateway.metrics.host, config.gateway.metrics.port,
                          [service](Exchange& exchange) { return service->serve_metrics(exchange); }, small));
  gateway.metrics = std::move(metrics);
  service->count_connections([server_of = gateway.server.get()] { return server_of->connections(); });
  return Done{};
}

}  // namespace

int run_gateway(const config::ClusterConfig& config) {
  platform::set_log_name("troikad-gateway");
  std::signal(SIGPIPE, SIG_IGN);
  const std::string& dir = config.leader.state_dir;
  if (auto made = platform::make_directories(dir, 0700); !made.ok()) return fail(kCannotRun, made.error());
  auto lock = take_lock(dir + "/gateway.lock");
  if (!lock.ok()) return fail(kCannotRun, lock.error());
  // From here on this is the gateway.
  const auto give_up = [&dir](int status, const Error& error) {
    // Best effort: where it cannot be written either, the log and the exit status are left.
    (void)platform::write_file_durably(last_words_file(dir), error.message() + "\n");
    return fail(status, error);
  };
  if (auto written = platform::write_file_durably(dir + "/gateway.pid", std::to_string(::getpid()) + "\n");
      !written.ok())
    return give_up(kCannotRun, written.error());

  Gateway gateway;
  auto routes = RouteBook::open(dir + "/gateway-route.json");
  if (!routes.ok()) return give_up(kBadInput, routes.error());
  gateway.routes = std::make_unique<RouteBook>(std::move(routes).value());
  auto ledger = Ledger::open(dir + "/gateway.sqlite");
  if (!ledger.ok()) return give_up(kBadInput, ledger.error());
  gateway.ledger = std::make_unique<Ledger>(std::move(ledger).value());
  const auto lost = gateway.ledger->close_lost(platform::wall_now());
  if (!lost.ok()) return give_up(kCannotRun, lost.error());
  if (*lost > 0)
    platform::log(std::to_string(*lost) + " requests were in flight when the last gateway ended");
  const auto rule = rule_of(config.admission);
  auto admission = restored(rule, *gateway.ledger, gateway.routes->route().has_value());
  if (!admission.ok()) return give_up(kBadInput, admission.error());
  auto tls = platform::TlsContext::load({config.leader.ca, config.leader.certificate, config.leader.key});
  if (!tls.ok()) return give_up(kBadInput, tls.error());
  const auto fits = platform::check_identity((*tls)->identity(), {config.cluster, platform::Role::Leader, ""},
                                             config.leader.certificate);
  if (!fits.ok()) return give_up(kBadInput, fits.error());
  auto tokenizer = tokenizer::Tokenizer::load(config.model.path);
  if (!tokenizer.ok()) return give_up(kBadInput, tokenizer.error());

  gateway.door = std::make_unique<Door>(gateway.io.get_executor(), rule, DoorLimits{}, *tls,
                                        std::move(admission).value(), *gateway.ledger, *gateway.routes);
  auto& service_place = gateway.service;
  gateway.link =
      std::make_shared<LeaderLink>(gateway.io.get_executor(), config.leader.socket, *gateway.routes,
                                   [&service_place] { return service_place->stats(); });
  ServiceFacts facts;
  facts.model = config.model.name;
  facts.started =
      std::chrono::duration_cast<std::chrono::seconds>(platform::wall_now().time_since_epoch()).count();
  facts.rule = rule;
  gateway.service = std::make_unique<Service>(
      std::move(facts), *gateway.door, *gateway.ledger, *gateway.routes,
      counter_of(std::make_shared<const tokenizer::Tokenizer>(std::move(tokenizer).value())),
      gateway.worker.get_executor(), hooks_of(gateway.link));
  if (auto listening = listen(gateway, config); !listening.ok())
    return give_up(kCannotRun, listening.error());
  gateway.link->start();
  platform::log("gateway of cluster " + config.cluster + " on " + text(config.gateway.listen) +
                ", metrics on " + text(config.gateway.metrics));
  asio::co_spawn(
      gateway.io, [&gateway] { return end_on_signal(gateway); }, asio::detached);
  gateway.io.run();
  gateway.worker.join();
  ::unlink((dir + "/gateway.pid").c_str());
  // Coroutines still hold parts of each other; the process ends here, and the kernel closes what they hold.
  ::_exit(0);
}

}  // namespace troika::daemon::gateway
