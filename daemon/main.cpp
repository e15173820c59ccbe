// troikad: the leader; troikad gateway: its gateway.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "config/cluster.hpp"
#include "daemon/gateway/program.hpp"
#include "daemon/program.hpp"

namespace {

constexpr int kUsage = 2;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Troika's leader: it starts, proves, watches and restarts the replicas of a cluster, and runs its "
      "gateway.",
      "troikad"};
  app.set_version_flag("--version", "troikad " TROIKA_VERSION);
  std::string path = "/etc/troika/cluster.toml";
  app.add_option("--config", path, "the cluster's configuration")->capture_default_str();
  auto* gateway = app.add_subcommand("gateway", "run the gateway alone (the leader starts it by itself)");
  gateway->add_option("--config", path, "the cluster's configuration")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;
  }
  auto loaded = troika::config::load_cluster(path);
  for (const auto& problem : loaded.problems)
    std::cerr << problem.message() << "\n";
  if (!loaded.config) return kUsage;
  if (loaded.config->engine.kind == troika::config::EngineKind::External) {
    std::cerr << path
              << ": engine.kind = \"external\": this version of troikad leads engines that agents start\n";
    return kUsage;
  }
  if (gateway->parsed()) return troika::daemon::gateway::run_gateway(*loaded.config);
  return troika::daemon::run_leader(*loaded.config, path);
}
