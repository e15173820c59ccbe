#include "agent/agent.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>

#include "platform/clock.hpp"
#include "platform/log.hpp"

namespace troika::agent {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFirstWait{
    200};  // between attempts; doubled up to the longest, and jittered so that the agents
constexpr milliseconds kLongestWait{5000};  // of a cluster do not come all at once
constexpr seconds kDialLimit{10};

milliseconds jittered(milliseconds wait) {
  static std::mt19937 random{std::random_device{}()};
  return milliseconds{
      std::uniform_int_distribution<milliseconds::rep>{wait.count() / 2, wait.count()}(random)};
}

}  // namespace

Agent::Agent(asio::any_io_executor executor, config::AgentConfig config, platform::DirectoryLock lock,
             std::shared_ptr<platform::TlsContext> tls, Spool spool)
    : executor_(executor),
      config_(std::move(config)),
      lock_(std::move(lock)),
      tls_(std::move(tls)),
      fence_(Fence::load(config_.state_dir + "/fence.json")),
      spool_(std::move(spool)),
      stages_(executor, config_, fence_,
              [this](const protocol::StageReport& report) {
                const protocol::StageEvent& event = spool_.add(report);
                if (session_) session_->announce(event);
              }),
      verification_(executor, config_.state_dir + "/proofs.sqlite"),
      relay_(executor, stages_),
      timer_(executor),
      boot_id_(platform::boot_id()) {}

Result<std::unique_ptr<Agent>> Agent::make(asio::any_io_executor executor, config::AgentConfig config) {
  TROIKA_TRY(tls, platform::TlsContext::load({config.ca, config.certificate, config.key}));
  const platform::Identity expected{config.cluster, platform::Role::Agent, config.node};
  TROIKA_CHECK(platform::check_identity(tls->identity(), expected, config.certificate));
  TROIKA_CHECK(platform::make_directories(config.state_dir, 0700));
  TROIKA_CHECK(platform::make_directories(config.run_dir, 0700));
  TROIKA_TRY(lock, platform::DirectoryLock::take(config.state_dir + "/lock"));
  TROIKA_TRY(spool, Spool::open(config.state_dir + "/spool", config.node, platform::boot_id()));
  std::unique_ptr<Agent> agent{
      new Agent{executor, std::move(config), std::move(lock), std::move(tls), std::move(spool)}};
  if (!agent->fence_.broken().empty())
    platform::log(agent->fence_.broken() + ": nothing is started while a stage is held here");
  TROIKA_CHECK(agent->stages_.adopt(
      [&](const StageKey& key) { return agent->spool_.holds_release(key.stage, key.epoch); }));
  TROIKA_CHECK(agent->open_relay());
  return agent;
}

Status Agent::open_relay() {
  auto listener =
      platform::listen_tls(executor_, config_.relay_listen.host, config_.relay_listen.port, tls_,
                           [this](platform::ChannelPtr channel) { return relay_.serve(std::move(channel)); });
  if (!listener.ok()) return listener.error();
  listener_ = *std::move(listener);
  config::Endpoint address =
      config_.relay_advertise.host.empty() ? config_.relay_listen : config_.relay_advertise;
  if (address.port == 0) address.port = listener_->port();
  relay_address_ = config::text(address);
  return Done{};
}

AgentParts Agent::parts() {
  return {executor_, config_, boot_id_, relay_address_, fence_, spool_, stages_, verification_};
}

void Agent::begin() {
  asio::co_spawn(
      executor_, [this] { return dial_leaders(); }, asio::detached);
}

void Agent::stop() {
  stopping_ = true;
  verification_.cancel();
  listener_.reset();
  if (session_) session_->close();
  timer_.cancel();
}

asio::awaitable<void> Agent::dial_leaders() {
  milliseconds wait = kFirstWait;
  std::string last_error;
  for (std::size_t turn = 0; !stopping_; ++turn) {
    const config::Endpoint& leader = config_.leaders[turn % config_.leaders.size()];
    auto channel =
        co_await platform::dial_tls(leader.host, leader.port, tls_, platform::Role::Leader, {}, kDialLimit);
    if (channel.ok() && !stopping_) {
      last_error.clear();
      session_ = std::make_shared<Session>(parts(), *channel);
      const bool was_led = co_await session_->run();
      if (was_led) wait = kFirstWait;
      session_.reset();
    } else if (!channel.ok() && channel.error().message() != last_error) {
      // Once for each reason: a leader that is away for a night fills no log.
      last_error = channel.error().message();
      platform::log(last_error + "; trying again");
    }
    if (stopping_) break;
    timer_.expires_after(jittered(wait));
    boost::system::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    wait = std::min(wait * 2, kLongestWait);
  }
}

}  // namespace troika::agent
