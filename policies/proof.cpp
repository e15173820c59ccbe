#include "policies/proof.hpp"

#include "policies/line.hpp"

namespace troika::policies {

std::vector<Finding> judge_probe(const StageId& stage, const std::string& node, const EngineSettings& planned,
                                 const ProbeFacts& facts) {
  std::vector<Finding> findings;
  const std::string who = text(stage);
  const auto compare = [&](std::string setting, const std::string& plan, const std::string& in_force) {
    if (plan == in_force) return;
    findings.push_back(finding(Code::EFFECTIVE_CONFIG_DIFF, node, setting,
                               line(who, " runs with ", setting, " = ", in_force, ", planned was ", plan),
                               "Look for an argument or environment variable that overrides it.",
                               {{"planned", plan}, {"effective", in_force}}));
  };
  if (!facts.completed) {
    // An engine that did not answer did not tell its settings either, so they are no news.
    findings.push_back(
        finding(Code::NOT_READY, node, who,
                line("no completion: ", facts.error.empty() ? "no reason was given" : facts.error),
                line("Read the log of ", who, " on its node, in the run_dir of its agent.")));
    return findings;
  }
  const EngineSettings& effective = facts.effective;
  compare("model", planned.model, effective.model);
  compare("context_length", line(planned.context_length), line(effective.context_length));
  compare("chunked_prefill", line(planned.chunked_prefill), line(effective.chunked_prefill));
  compare("max_running", line(planned.max_running), line(effective.max_running));
  compare("layers", listed(planned.layers), listed(effective.layers));
  if (facts.completion_tokens.count == 0) {
    findings.push_back(finding(Code::NOT_READY, node, who, "the completion has no token",
                               line("Read the log of ", who, " on its node, in the run_dir of its agent.")));
  } else if (facts.counter_advance < facts.completion_tokens) {
    findings.push_back(
        finding(Code::GENERATION_STUCK, node, who,
                line("the completion has ", facts.completion_tokens,
                     " tokens, but the generation counter advanced by ", facts.counter_advance),
                line("Read the log of ", who, " on its node, in the run_dir of its agent.")));
  }
  return findings;
}

}  // namespace troika::policies
