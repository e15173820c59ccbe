#include "agent/stage/exit_findings.hpp"

#include <csignal>
#include <cstring>

namespace troika::agent {
namespace {

// Signals that a process draws upon itself by what it does; every other one was sent by somebody.
bool of_its_own(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
    case SIGPIPE:
    case SIGXCPU:
    case SIGXFSZ:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string exit_text(const protocol::ExitStatus& exit) {
  if (!exit.known) return "an unknown status";
  if (exit.signal != 0)
    return "signal " + std::to_string(exit.signal) + " (" + ::strsignal(exit.signal) + ")";
  return "code " + std::to_string(exit.code);
}

std::vector<Finding> exit_findings(const std::string& node, const StageKey& key,
                                   const protocol::ExitStatus& exit, const LastWords& said) {
  std::vector<Finding> findings;
  const std::string subject = troika::text(key.stage);
  const std::string because = said.reason.empty() ? "" : ": " + said.reason;
  Evidence evidence{
      {"code", std::int64_t{exit.code}}, {"signal", std::int64_t{exit.signal}}, {"known", exit.known}};
  if (said.follows) evidence.emplace_back("follows", true);
  if (!exit.known) {
    findings.push_back(finding(Code::STAGE_DIED, node, subject,
                               text(key) + " is gone and nobody saw how it ended: its keeper was killed",
                               "look for who killed troika-keeper: the kernel's log, the journal",
                               std::move(evidence)));
    return findings;
  }
  if (exit.requested) {
    if (exit.signal == SIGKILL)
      findings.push_back(finding(Code::KILLED_BY_US, node, subject,
                                 text(key) + " did not end within its grace and was killed", {},
                                 std::move(evidence)));
    return findings;
  }
  findings.push_back(finding(
      Code::STAGE_DIED, node, subject,
      text(key) + " ended with " + exit_text(exit) + " and nobody asked it to" + because,
      "read its log, in the run_dir of the agent: stages/ while it runs, ended/ afterwards", evidence));
  if (exit.signal != 0 && !of_its_own(exit.signal))
    findings.push_back(
        finding(Code::KILL_UNCLAIMED, node, subject,
                "signal " + std::to_string(exit.signal) + " for " + text(key) +
                    " was sent by nobody of Troika; 137 alone does not mean out of memory",
                "look for oom-kill, earlyoom or an operator in the kernel's log and the journal",
                std::move(evidence)));
  return findings;
}

}  // namespace troika::agent
