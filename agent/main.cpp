// troika-agent: one a node.
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>

#include "agent/agent.hpp"
#include "config/agent.hpp"
#include "platform/log.hpp"
#include "platform/machine_name.hpp"

namespace {

constexpr int kUsage = 2;  // and configuration

int run(troika::config::AgentConfig config) {
  troika::platform::set_log_name("troika-agent[" + config.node + "]");
  // A second agent of this name would sweep the stages of the first as nobody's.
  const auto name = troika::platform::MachineName::take("troika-agent/" + config.cluster + "/" + config.node);
  if (!name.ok()) {
    troika::platform::log(name.error().message() + ": node " + config.node + " of cluster " + config.cluster +
                          " has its agent on this machine already");
    return 1;
  }
  boost::asio::io_context reactor{1};
  auto agent = troika::agent::Agent::make(reactor.get_executor(), std::move(config));
  if (!agent.ok()) {
    troika::platform::log(agent.error().message());
    return 1;
  }
  boost::asio::signal_set signals{reactor, SIGTERM, SIGINT};
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (error) return;
    troika::platform::log("ending; the stages go on");
    (*agent)->stop();
    reactor.stop();
  });
  (*agent)->begin();
  reactor.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The agent of one node: proves, starts, watches and stops its stages."};
  app.set_version_flag("--version", "troika-agent " TROIKA_VERSION);
  std::string path = "/etc/troika/agent.toml";
  app.add_option("--config", path, "configuration file")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int status = app.exit(e);
    return status == 0 ? 0 : kUsage;
  }
  auto loaded = troika::config::load_agent(path);
  for (const auto& problem : loaded.problems)
    std::fprintf(stderr, "troika-agent: %s\n", problem.message().c_str());
  if (!loaded.config) return kUsage;
  std::signal(SIGPIPE, SIG_IGN);
  return run(*std::move(loaded.config));
}
