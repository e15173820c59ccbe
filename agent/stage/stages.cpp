#include "agent/stage/stages.hpp"

#include <algorithm>

#include "agent/stage/addresses.hpp"
#include "agent/stage/ended.hpp"
#include "platform/files.hpp"
#include "platform/log.hpp"

namespace troika::agent {
namespace {

using protocol::StageState;

constexpr std::chrono::milliseconds kTick{500};
constexpr std::size_t kLinkKeyDigits = 64;

bool is_link_key(const std::string& text) {
  return text.size() == kLinkKeyDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
         });
}

adapters::StagePlan plan_of(const protocol::StartStage& m) {
  adapters::StagePlan plan;
  plan.stage = {m.replica, m.rank};
  plan.epoch = m.epoch;
  plan.model = m.engine.model;
  plan.context_length = m.engine.context_length;
  plan.chunked_prefill = m.engine.chunked_prefill;
  plan.max_running = m.engine.max_running;
  plan.layers = m.engine.layers;
  plan.next_link = m.next_link;
  return plan;
}

std::optional<Refused> refusal_of(const policies::FenceAnswer& answer) {
  if (answer.obey()) return std::nullopt;
  return Refused{std::string(policies::name(answer.verdict)), answer.message};
}

// Mode 59: a start would fail, and probes would talk to somebody else.
std::optional<Refused> foreign_port(const std::string& address) {
  const platform::PortState port = port_state(address);
  switch (port.kind) {
    case platform::PortState::Kind::Free:
      return std::nullopt;
    case platform::PortState::Kind::Taken: {
      const std::string owner = port.pid != 0
                                    ? "process " + std::to_string(port.pid) + " (" + port.command + ")"
                                    : "a process that cannot be seen from here";
      return Refused{"PORT_FOREIGN",
                     "port " + address + " is taken by " + owner +
                         ": stop it, or give the engine's profile another port in agent.toml"};
    }
    case platform::PortState::Kind::CannotTell:
      return Refused{"CANNOT_TELL", "port " + address + ": " + port.reason};
  }
  return std::nullopt;
}

}  // namespace

Stages::Stages(boost::asio::any_io_executor executor, const config::AgentConfig& config, Fence& fence,
               std::function<void(const protocol::StageReport&)> report)
    : config_(config), fence_(fence), ticker_(executor) {
  home_.executor = executor;
  home_.cluster = config.cluster;
  home_.node = config.node;
  home_.run_dir = config.run_dir;
  home_.report = std::move(report);
  home_.released = [this](const StageKey& key) { stages_.erase(key); };
  tick();
}

void Stages::tick() {
  ticker_.expires_after(kTick);
  ticker_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    for (const auto& [key, stage] : stages_)
      stage->look_at_time();
    tick();
  });
}

void Stages::add(std::shared_ptr<Stage> stage) {
  stages_[stage->key()] = stage;
  stage->begin();
}

std::vector<policies::HeldStage> Stages::held() const {
  std::vector<policies::HeldStage> out;
  for (const auto& [key, stage] : stages_)
    out.push_back({key.stage, key.epoch});
  return out;
}

std::vector<protocol::StageReport> Stages::reports() const {
  std::vector<protocol::StageReport> out;
  for (const auto& [key, stage] : stages_)
    out.push_back(stage->report());
  return out;
}

const config::EngineProfile* Stages::profile(const std::string& kind) const {
  for (const config::EngineProfile& one : config_.engines)
    if (config::name(one.kind) == kind) return &one;
  return nullptr;
}

std::optional<Refused> Stages::start(const protocol::StartStage& message) {
  if (!fence_.broken().empty()) {
    if (!stages_.empty())
      return Refused{"CANNOT_TELL", fence_.broken() + ": stop what runs on this node first (troika stop)"};
    fence_.begin_anew();
  }
  const StageKey key{{message.replica, message.rank}, message.epoch};
  const policies::FenceAnswer answer =
      policies::check_start(fence_.state(), message.term, key.stage, key.epoch, held());
  if (auto refused = refusal_of(answer)) return refused;
  const config::EngineProfile* allowed = profile(message.engine.kind);
  if (allowed == nullptr)
    return Refused{"NOT_ALLOWED",
                   "agent.toml of " + config_.node + " has no [[engine]] of kind " + message.engine.kind};
  const auto adapter = adapters::adapter_for(message.engine.kind);
  if (!adapter.ok()) return Refused{"NOT_ALLOWED", adapter.error().message()};
  if (const Status written = fence_.take(answer); !written.ok())
    return Refused{"CANNOT_TELL", "the fence cannot be written down: " + written.error().message()};
  if (answer.verdict == policies::FenceVerdict::Repeat) {
    if (const auto known = stages_.find(key); known != stages_.end()) known->second->say_again();
    return std::nullopt;
  }
  return launch(message, *allowed, **adapter);
}

std::optional<Refused> Stages::launch(const protocol::StartStage& message,
                                      const config::EngineProfile& allowed,
                                      const adapters::EngineAdapter& adapter) {
  LaunchPlan plan;
  plan.file.engine = message.engine.kind;
  plan.file.plan = plan_of(message);
  if (message.rank.count == 0) plan.file.api = config::text(allowed.api);
  const bool linked = message.engine.layers.size() > 1;
  if (linked) {
    if (!is_link_key(message.link_key)) return Refused{"MALFORMED", "link_key must be 64 hexadecimal digits"};
    plan.link_key = message.link_key;
    plan.file.link = config::text(allowed.link);
  }
  const StageKey key = plan.file.key();
  plan.keeper_program = config_.keeper;
  plan.directory = home_.run_dir + "/stages/" + folder_of(key);
  for (const std::string& address : {plan.file.api, plan.file.link}) {
    if (address.empty()) continue;
    if (auto refused = foreign_port(address)) return refused;
  }

  adapters::LocalFacts local;
  local.cluster = config_.cluster;
  local.program = allowed.program;
  local.model_path = config_.model_path;
  local.api = plan.file.api;
  local.link = plan.file.link;
  local.kv_budget = allowed.kv_budget;
  local.link_key_file = plan.directory + "/" + keeper::kLinkKeyFile;
  local.arguments = allowed.arguments;
  local.environment = allowed.environment;
  const auto line = adapter.render(plan.file.plan, local);
  if (!line.ok()) return Refused{"MALFORMED", line.error().message()};

  plan.spec.mark = mark_of(config_.cluster, config_.node, key);
  plan.spec.argv = line->argv;
  plan.spec.environment = line->environment;
  plan.spec.log_limit = config_.stage_log_limit;
  plan.spec.cgroup = cgroup_name(config_.cluster, config_.node, key);
  plan.spec.secret = linked ? local.link_key_file : std::string{};
  if (const Status made = make_run_directory(plan); !made.ok()) {
    (void)platform::remove_tree(plan.directory);
    return Refused{"CANNOT_TELL", made.error().message()};
  }
  platform::log("starting " + text(key));
  add(Stage::fresh(home_, std::move(plan.file), plan.keeper_program));
  return std::nullopt;
}

std::optional<Refused> Stages::stop(const protocol::StopStage& message) {
  const StageId stage{message.replica, message.rank};
  if (!check_name("replica", message.replica).ok()) return Refused{"MALFORMED", "no such replica"};
  const policies::FenceAnswer answer =
      policies::check_stop(fence_.state(), message.term, stage, message.epoch);
  if (auto refused = refusal_of(answer)) return refused;
  if (fence_.broken().empty()) {
    if (const Status written = fence_.take(answer); !written.ok())
      return Refused{"CANNOT_TELL", "the fence cannot be written down: " + written.error().message()};
  }
  bool any = false;
  for (const auto& [key, held] : stages_) {
    if (key.stage.replica != message.replica || key.epoch > message.epoch) continue;
    any = true;
    platform::log("stopping " + text(key) + (message.reason.empty() ? "" : ": " + message.reason));
    held->stop(std::chrono::milliseconds{message.grace_ms});
    held->say_again();
  }
  if (any) return std::nullopt;
  protocol::StageReport nothing;
  nothing.replica = message.replica;
  nothing.rank = message.rank;
  nothing.epoch = message.epoch;
  nothing.state = StageState::Released;
  home_.report(nothing);
  return std::nullopt;
}

std::shared_ptr<const Stage> Stages::serving(const std::string& replica, Epoch epoch) const {
  const auto found = stages_.find({{replica, Rank{0}}, epoch});
  if (found == stages_.end() || found->second->report().state != StageState::Ready) return nullptr;
  return found->second;
}

void Stages::acknowledged(const StageKey& key) {
  if (stages_.count(key) == 0) keep_as_evidence(home_.run_dir, key);
}

}  // namespace troika::agent
