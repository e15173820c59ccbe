// The proof of this node for a start: model, links, memory, engine profile, ports, leftovers.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/model/record.hpp"
#include "config/agent.hpp"
#include "policies/fencing.hpp"
#include "protocol/messages.hpp"

namespace troika::agent {

// What a start needs beside the model, judged on the reactor's thread in milliseconds. Beyond the codes of
// the facts: START_FAILED (no profile, program missing), PORT_FOREIGN, NOT_RELEASED (a stage of an earlier
// epoch is still held).
std::vector<Finding> check_node(const config::AgentConfig& config, const protocol::Verify& verify,
                                const std::vector<policies::HeldStage>& held);

// One proof at a time in a thread of its own; a new one cancels the one before, which is then not answered.
class Verification {
 public:
  using Progress = std::function<void(const protocol::VerifyProgress&)>;
  using Done = std::function<void(protocol::VerifyDone)>;

  // `record`: the path of the record of proofs.
  Verification(boost::asio::any_io_executor executor, std::string record);
  ~Verification();

  // `findings`: of check_node; they come first in the answer. The callbacks run on the executor.
  void start(const config::AgentConfig& config, protocol::Verify verify, std::vector<Finding> findings,
             Progress progress, Done done);
  void cancel();

 private:
  struct Job {
    std::uint64_t request = 0;
    std::atomic<bool> cancelled{false};
  };

  // Of the worker's thread.
  model::ProofRecord* open_record();

  boost::asio::any_io_executor executor_;
  std::string record_path_;
  std::unique_ptr<model::ProofRecord> record_;  // the worker's
  std::shared_ptr<Job> job_;
  boost::asio::thread_pool worker_{1};
};

}  // namespace troika::agent
