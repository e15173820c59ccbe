// All stages of ours on this node: started, found, stopped, and proven to be gone.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/stage/fence.hpp"
#include "agent/stage/stage.hpp"
#include "config/agent.hpp"
#include "protocol/messages.hpp"

namespace troika::agent {

// Why a message is not obeyed: code and text of the Refusal.
struct Refused {
  std::string code;
  std::string message;
};

class Stages {
 public:
  // `report` gets every state that a stage enters.
  Stages(boost::asio::any_io_executor executor, const config::AgentConfig& config, Fence& fence,
         std::function<void(const protocol::StageReport&)> report);

  // Finds what runs from before; to be called once, before anything is started. Stages of which `told` says
  // that the leader is being told of their release already are left as they are. Errors: the run directory is
  // unusable.
  Status adopt(const std::function<bool(const StageKey&)>& told);

  std::optional<Refused> start(const protocol::StartStage& message);
  std::optional<Refused> stop(const protocol::StopStage& message);

  std::vector<protocol::StageReport> reports() const;
  std::vector<policies::HeldStage> held() const;
  // The ready stage of rank 0 of exactly this replica and epoch; none: nullptr.
  std::shared_ptr<const Stage> serving(const std::string& replica, Epoch epoch) const;
  // A stage is over and the leader knows: its directory moves to those that are kept as evidence.
  void acknowledged(const StageKey& key);

 private:
  void add(std::shared_ptr<Stage> stage);
  void adopt_folder(const std::string& folder, const std::function<bool(const StageKey&)>& told);
  void adopt_marked();
  std::optional<Refused> launch(const protocol::StartStage& message, const config::EngineProfile& profile,
                                const adapters::EngineAdapter& adapter);
  const config::EngineProfile* profile(const std::string& kind) const;
  void tick();

  const config::AgentConfig& config_;
  Fence& fence_;
  StageHome home_;
  std::map<StageKey, std::shared_ptr<Stage>> stages_;
  boost::asio::steady_timer ticker_;
};

}  // namespace troika::agent
