// The proof of this node for a start: model, links, memory, engine profile, ports, leftovers; and of its
// model alone for an operator.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/model/proof.hpp"
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

// One proof at a time in a thread of its own.
class Verification {
 public:
  using Progress = std::function<void(const protocol::VerifyProgress&)>;
  using Done = std::function<void(protocol::VerifyDone)>;

  // `record`: the path of the record of proofs.
  Verification(boost::asio::any_io_executor executor, std::string record);
  ~Verification();

  // Ends what runs: another start's, which is not answered then, or an audit, which is answered that this one
  // goes first. `findings`: of check_node; they come first in the answer. The callbacks run on the executor.
  void start(const config::AgentConfig& config, protocol::Verify verify, std::vector<Finding> findings,
             Progress progress, Done done);
  // Of the model alone. False: a start's runs, which goes first. Another audit is ended without an answer.
  bool audit(const config::AgentConfig& config, protocol::Audit audit, Progress progress, Done done);
  // That audit, if it still runs, without an answer; `request` 0: any.
  void end_audit(std::uint64_t request);
  void cancel();

 private:
  struct Job {
    std::uint64_t request = 0;
    bool is_audit = false;
    Progress progress;
    Done done;
    std::atomic<bool> cancelled{false};
  };
  struct Question {
    std::uint64_t request = 0;
    protocol::Manifest manifest;
    std::string manifest_digest;
    std::vector<Finding> findings;  // that come first in the answer
    bool deep = false;
  };

  static std::shared_ptr<Job> make_job(std::uint64_t request, bool is_audit, Progress progress, Done done);
  void run(const config::AgentConfig& config, std::shared_ptr<Job> job, Question question);
  // Of the worker's thread.
  model::ProofRecord* open_record();
  protocol::VerifyDone prove(const std::shared_ptr<Job>& job, model::ProofPlan plan, Question question);

  boost::asio::any_io_executor executor_;
  std::string record_path_;
  std::unique_ptr<model::ProofRecord> record_;  // the worker's
  std::shared_ptr<Job> job_;
  boost::asio::thread_pool worker_{1};
};

}  // namespace troika::agent
