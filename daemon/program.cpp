#include "daemon/program.hpp"

#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <climits>
#include <csignal>
#include <filesystem>
#include <memory>
#include <utility>

#include "daemon/cluster/leader.hpp"
#include "daemon/control/doors.hpp"
#include "daemon/control/gateway_process.hpp"
#include "daemon/control/gateway_seat.hpp"
#include "daemon/control/operators.hpp"
#include "daemon/gateway/program.hpp"
#include "daemon/incidents/incidents.hpp"
#include "daemon/incidents/request_failures.hpp"
#include "daemon/store/store.hpp"
#include "platform/channel.hpp"
#include "platform/clock.hpp"
#include "platform/files.hpp"
#include "platform/log.hpp"
#include "platform/tls.hpp"

namespace troika::daemon {
namespace {

namespace asio = boost::asio;

constexpr int kBadInput = 2;
constexpr int kCannotRun = 1;
constexpr Duration kTick = std::chrono::milliseconds{250};
// Operators, dashboards and the gateway of one machine.
constexpr std::size_t kLocalConnections = 64;

int fail(int status, const Error& error) {
  platform::log(error.message());
  return status;
}

// What is not written must not be acted on: at once, whatever is in hand. Agents repeat what was not
// acknowledged.
[[noreturn]] void end_broken(const Error& error) {
  platform::log("the store cannot be written, so this leader ends: " + error.message());
  ::_exit(kCannotRun);
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

Leader::Clock real_clock() {
  return {[] { return platform::now(); }, [] { return platform::wall_now(); }};
}

std::vector<std::string> replica_names(const config::ClusterConfig& config) {
  std::vector<std::string> names;
  for (const auto& replica : config.replicas)
    names.push_back(replica.name);
  return names;
}

// The parts of a running leader, in the order of their dependence.
struct Parts {
  Parts(const config::ClusterConfig& config, const std::string& config_path, Store opened)
      : store(std::move(opened)),
        incidents(store),
        failures(incidents),
        leader(config, store, incidents, real_clock(), hooks()),
        seat(leader, failures),
        operators(leader, seat, incidents),
        doors(leader, seat, operators),
        gateway(own_program(), config_path, config.leader.state_dir + "/gateway.lock",
                gateway::last_words_file(config.leader.state_dir)),
        gateway_trouble(incidents) {}

  Leader::Hooks hooks() {
    return {[](const Error& error) { end_broken(error); },
            [this](const protocol::Route& route) { seat.give(route); },
            [this](const policies::FinishCommand& command) { operators.finished(command); },
            [this](const protocol::AuditReply& reply) { operators.audited(reply); }};
  }

  asio::io_context io{1};
  Store store;
  Incidents incidents;
  RequestFailures failures;
  Leader leader;
  GatewaySeat seat;
  Operators operators;
  Doors doors;
  GatewayProcess gateway;
  GatewayTrouble gateway_trouble;
  std::unique_ptr<platform::Listener> remote;
  std::unique_ptr<platform::Listener> local;
};

void watch_gateway(Parts& parts) {
  const WallTime wall = platform::wall_now();
  const auto end = parts.gateway.take_end();
  auto written = end ? parts.gateway_trouble.ended(*end, wall) : Status{Done{}};
  // The seat may not have read yet that the one which ended is gone.
  if (written.ok()) written = parts.gateway_trouble.tick(parts.seat.connected() && !end, wall);
  if (!written.ok()) end_broken(written.error());
}

asio::awaitable<void> tick(Parts& parts) {
  asio::steady_timer timer(parts.io);
  boost::system::error_code error;
  while (true) {
    const Instant now = platform::now();
    parts.gateway.tick(now);
    watch_gateway(parts);
    parts.leader.tick();
    if (!parts.gateway.running()) parts.leader.no_gateway();
    if (auto written = parts.failures.tick(now, platform::wall_now()); !written.ok())
      end_broken(written.error());
    parts.seat.tick();
    parts.operators.tick();
    timer.expires_after(kTick);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

asio::awaitable<void> end_on_signal(Parts& parts) {
  asio::signal_set signals(parts.io, SIGTERM, SIGINT);
  boost::system::error_code error;
  const int signal = co_await signals.async_wait(asio::redirect_error(asio::use_awaitable, error));
  platform::log("signal " + std::to_string(signal) + ": this leader ends; stages and the gateway go on");
  parts.io.stop();
}

Status listen(Parts& parts, const config::ClusterConfig& config) {
  TROIKA_TRY(tls,
             platform::TlsContext::load({config.leader.ca, config.leader.certificate, config.leader.key}));
  TROIKA_CHECK(platform::check_identity(tls->identity(), {config.cluster, platform::Role::Leader, ""},
                                        config.leader.certificate));
  auto* doors = &parts.doors;
  TROIKA_TRY(remote, platform::listen_tls(
                         parts.io.get_executor(), config.leader.listen.host, config.leader.listen.port, tls,
                         [doors](platform::ChannelPtr c) { return doors->serve_remote(std::move(c)); }));
  parts.remote = std::move(remote);
  const auto folder = std::filesystem::path(config.leader.socket).parent_path().string();
  if (!folder.empty()) TROIKA_CHECK(platform::make_directories(folder));
  platform::ListenLimits limits;
  limits.connections = kLocalConnections;
  TROIKA_TRY(local,
             platform::listen_unix(
                 parts.io.get_executor(), config.leader.socket,
                 [doors](platform::ChannelPtr c) { return doors->serve_local(std::move(c)); }, limits));
  parts.local = std::move(local);
  return Done{};
}

}  // namespace

int run_leader(const config::ClusterConfig& config, const std::string& config_path) {
  platform::set_log_name("troikad");
  std::signal(SIGPIPE, SIG_IGN);
  const std::string& dir = config.leader.state_dir;
  if (auto made = platform::make_directories(dir, 0700); !made.ok()) return fail(kCannotRun, made.error());
  auto lock = platform::DirectoryLock::take(dir + "/troikad.lock");
  if (!lock.ok()) return fail(kCannotRun, lock.error());
  auto store = Store::open(dir + "/troika.sqlite");
  if (!store.ok()) return fail(kBadInput, store.error());

  auto parts = std::make_unique<Parts>(config, std::filesystem::absolute(config_path).string(),
                                       std::move(store).value());
  if (auto listening = listen(*parts, config); !listening.ok()) return fail(kCannotRun, listening.error());
  if (auto recalled = parts->failures.recall(replica_names(config), platform::now()); !recalled.ok())
    return fail(kCannotRun, recalled.error());
  if (auto started = parts->leader.start(); !started.ok()) return fail(kCannotRun, started.error());
  platform::log("leader of cluster " + config.cluster + " on " + text(config.leader.listen) +
                ", control socket " + config.leader.socket + ", pid " + std::to_string(::getpid()));
  asio::co_spawn(
      parts->io, [&p = *parts] { return tick(p); }, asio::detached);
  asio::co_spawn(
      parts->io, [&p = *parts] { return end_on_signal(p); }, asio::detached);
  parts->io.run();
  ::unlink(config.leader.socket.c_str());
  platform::log("ended");
  // Coroutines still hold parts of each other; the process ends here, and the kernel closes what they hold.
  ::_exit(0);
}

}  // namespace troika::daemon
