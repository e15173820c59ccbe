#include "agent/verification.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>

#include "agent/model/proof.hpp"
#include "agent/node/facts.hpp"
#include "agent/stage/addresses.hpp"
#include "agent/stage/identity.hpp"
#include "engine/adapters/adapter.hpp"
#include "platform/clock.hpp"
#include "platform/log.hpp"
#include "platform/procfs.hpp"
#include "platform/tree.hpp"

namespace troika::agent {
namespace {

constexpr std::chrono::milliseconds kProgressEvery{200};

Finding start_failed(const config::AgentConfig& config, const StageId& stage, std::string message,
                     std::string remedy) {
  return finding(Code::START_FAILED, config.node, text(stage), std::move(message), std::move(remedy));
}

// A stage is swept when it ends and when the agent starts; what is found between belongs to nobody.
void look_for_orphans(const config::AgentConfig& config, const std::vector<policies::HeldStage>& held,
                      std::vector<Finding>& findings) {
  const auto marked = platform::find_marked(mark_prefix(config.cluster, config.node));
  if (!marked.ok()) {
    findings.push_back(finding(Code::CANNOT_TELL, config.node, "leftovers", marked.error().message(),
                               "give the agent the right to look into /proc"));
    return;
  }
  for (const platform::Marked& one : *marked) {
    const auto key = key_of_mark(one.mark, config.cluster, config.node);
    const bool is_held = key.ok() && std::any_of(held.begin(), held.end(), [&](const policies::HeldStage& h) {
                           return h.stage == key->stage && h.epoch == key->epoch;
                         });
    if (is_held) continue;
    findings.push_back(finding(Code::ORPHAN, config.node, std::to_string(one.id.pid),
                               "process " + std::to_string(one.id.pid) + " carries the mark " + one.mark +
                                   " of a stage that is over: " + platform::command_line(one.id.pid),
                               "restart troika-agent, which sweeps it, or kill it",
                               {{"pid", std::int64_t{one.id.pid}}, {"mark", one.mark}}));
  }
}

void check_memory(const config::AgentConfig& config, const config::EngineProfile& profile,
                  const StageId& stage, Bytes available, std::vector<Finding>& findings) {
  if (available >= profile.kv_budget || available.count == 0) return;
  findings.push_back(finding(Code::LAUNCH_GATE, config.node, text(stage),
                             "available memory is " + std::to_string(available.count) +
                                 " bytes, less than the KV budget of " +
                                 std::to_string(profile.kv_budget.count),
                             "free memory on the node, or lower kv_budget in agent.toml",
                             {{"available_bytes", static_cast<std::int64_t>(available.count)},
                              {"kv_budget_bytes", static_cast<std::int64_t>(profile.kv_budget.count)}}));
}

void check_profile(const config::AgentConfig& config, const protocol::Verify& verify, Bytes available,
                   std::vector<Finding>& findings) {
  const StageId stage{verify.replica, verify.rank};
  const config::EngineProfile* profile = nullptr;
  for (const config::EngineProfile& one : config.engines)
    if (config::name(one.kind) == verify.engine) profile = &one;
  if (profile == nullptr) {
    findings.push_back(start_failed(config, stage,
                                    "no engine of kind " + verify.engine + " may run on " + config.node,
                                    "add an [[engine]] of this kind to agent.toml"));
    return;
  }
  if (const auto adapter = adapters::adapter_for(verify.engine); !adapter.ok())
    findings.push_back(start_failed(config, stage, adapter.error().message(), "use kind = \"native\""));
  for (const std::string& program : {profile->program, config.keeper}) {
    if (::access(program.c_str(), X_OK) != 0)
      findings.push_back(start_failed(config, stage, program + " is not there or may not be executed",
                                      "install it, or correct its path in agent.toml"));
  }
  check_memory(config, *profile, stage, available, findings);
  std::vector<std::string> addresses{config::text(profile->link)};
  if (verify.rank.count == 0) addresses.push_back(config::text(profile->api));
  for (const std::string& address : addresses) {
    const platform::PortState port = port_state(address);
    if (port.kind == platform::PortState::Kind::Taken)
      findings.push_back(finding(
          Code::PORT_FOREIGN, config.node, address,
          "port " + address + " is taken by process " + std::to_string(port.pid) + ": " + port.command,
          "stop it, or give the engine's profile another port in agent.toml",
          {{"pid", std::int64_t{port.pid}}, {"command", port.command}}));
    else if (port.kind == platform::PortState::Kind::CannotTell)
      findings.push_back(finding(Code::CANNOT_TELL, config.node, "port " + address, port.reason));
  }
}

}  // namespace

std::vector<Finding> check_node(const config::AgentConfig& config, const protocol::Verify& verify,
                                const std::vector<policies::HeldStage>& held) {
  protocol::NodeFacts facts = node::read_node("/", {config.node, config.interfaces});
  std::vector<Finding> findings = std::move(facts.findings);
  // A kernel without pressure figures can start a stage all the same; the heartbeats go on saying it.
  std::erase_if(findings, [](const Finding& f) {
    return f.code == Code::CANNOT_TELL && f.subject == "memory_pressure";
  });
  for (const policies::HeldStage& one : held)
    findings.push_back(finding(Code::NOT_RELEASED, config.node, config.node,
                               text(StageKey{one.stage, one.epoch}) + " is not released on this node",
                               "stop it: troika stop " + one.stage.replica));
  look_for_orphans(config, held, findings);
  // The ports and the memory of a stage that is held are its own.
  if (held.empty()) check_profile(config, verify, facts.memory_available, findings);
  return findings;
}

Verification::Verification(boost::asio::any_io_executor executor, std::string record)
    : executor_(std::move(executor)), record_path_(std::move(record)) {}

Verification::~Verification() {
  cancel();
  worker_.join();
}

model::ProofRecord* Verification::open_record() {
  if (record_ && record_->health().ok()) return record_.get();
  record_.reset();
  auto opened = model::ProofRecord::open(record_path_);
  if (opened.ok())
    record_ = *std::move(opened);
  else
    platform::log(opened.error().message() + "; every byte is read");
  return record_.get();
}

void Verification::cancel() {
  if (job_) job_->cancelled = true;
  job_.reset();
}

void Verification::end_audit(std::uint64_t request) {
  if (job_ && job_->is_audit && (request == 0 || job_->request == request)) cancel();
}

std::shared_ptr<Verification::Job> Verification::make_job(std::uint64_t request, bool is_audit,
                                                          Progress progress, Done done) {
  auto job = std::make_shared<Job>();
  job->request = request;
  job->is_audit = is_audit;
  job->progress = std::move(progress);
  job->done = std::move(done);
  return job;
}

void Verification::start(const config::AgentConfig& config, protocol::Verify verify,
                         std::vector<Finding> findings, Progress progress, Done done) {
  const std::shared_ptr<Job> before = job_;
  cancel();
  if (before && before->is_audit) {
    protocol::VerifyDone ended;
    ended.request = before->request;
    ended.findings = {finding(Code::CANNOT_TELL, config.node, "model",
                              "a start's proof of this node went first",
                              "prove it again when the start is over")};
    before->done(std::move(ended));
  }
  run(config, make_job(verify.request, false, std::move(progress), std::move(done)),
      {verify.request, std::move(verify.manifest), std::move(verify.manifest_digest), std::move(findings),
       false});
}

bool Verification::audit(const config::AgentConfig& config, protocol::Audit audit, Progress progress,
                         Done done) {
  if (job_ && !job_->is_audit) return false;
  cancel();
  run(config, make_job(audit.request, true, std::move(progress), std::move(done)),
      {audit.request, std::move(audit.manifest), std::move(audit.manifest_digest), {}, audit.deep});
  return true;
}

void Verification::run(const config::AgentConfig& config, std::shared_ptr<Job> job, Question question) {
  job_ = job;
  model::ProofPlan plan{config.model_path, std::move(question.manifest), config.node};
  plan.crew.memory.most_age = config.proof_max_age;
  plan.crew.memory.deep = question.deep;
  boost::asio::post(worker_, [this, job = std::move(job), plan = std::move(plan),
                              question = std::move(question)]() mutable {
    if (job->cancelled) return;
    protocol::VerifyDone answer = prove(job, std::move(plan), std::move(question));
    boost::asio::post(executor_, [this, job, answer = std::move(answer)]() mutable {
      if (job->cancelled) return;
      job_.reset();
      job->done(std::move(answer));
    });
  });
}

namespace {

protocol::VerifyDone answer_of(const model::ModelProof& proof) {
  protocol::VerifyDone answer;
  answer.manifest_digest = proof.manifest_digest;
  answer.files = proof.files;
  answer.shards = proof.shards;
  answer.tensors = proof.tensors;
  answer.bytes = proof.bytes;
  answer.seconds = proof.seconds;
  answer.cached = proof.cached;
  for (const model::FileProof& one : proof.list)
    if (one.status != "ok") answer.unproven.push_back(one.name);
  std::size_t bytes = 0;
  for (const std::string& one : answer.unproven)
    bytes += one.size();
  answer.all_proven_but_these = proof.files > 0 && bytes <= protocol::VerifyDone::kMostUnprovenBytes &&
                                answer.unproven.size() <= protocol::VerifyDone::kMostUnproven;
  if (!answer.all_proven_but_these) answer.unproven.clear();
  return answer;
}

}  // namespace

protocol::VerifyDone Verification::prove(const std::shared_ptr<Job>& job, model::ProofPlan plan,
                                         Question question) {
  plan.crew.memory.record = open_record();
  Instant said{};
  const auto tell = [&](const model::ProofProgress& p) {
    if (platform::now() - said < kProgressEvery && p.files_done != p.files_total) return;
    said = platform::now();
    boost::asio::post(executor_, [job, message = protocol::VerifyProgress{job->request, p.done, p.total,
                                                                          p.files_done, p.files_total}] {
      if (!job->cancelled) job->progress(message);
    });
  };
  model::ModelProof proof = model::prove_model(plan, tell, job->cancelled);
  if (record_)
    if (const Status health = record_->health(); !health.ok())
      platform::log(health.error().message() + "; what is not written there is read again");
  protocol::VerifyDone answer = answer_of(proof);
  answer.request = question.request;
  answer.findings = std::move(question.findings);
  if (proof.manifest_digest != question.manifest_digest)
    answer.findings.push_back(
        finding(Code::MANIFEST_DIFFERS, plan.node, "manifest",
                "the manifest that arrived is not the one that the leader named",
                "use one version of Troika on all machines",
                {{"leader", question.manifest_digest}, {"here", proof.manifest_digest}}));
  std::move(proof.findings.begin(), proof.findings.end(), std::back_inserter(answer.findings));
  keep_worst(answer.findings, answer.findings.size(), protocol::kMostFindingsBytes);
  return answer;
}

}  // namespace troika::agent
