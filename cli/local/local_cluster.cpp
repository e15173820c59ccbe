// The processes of a LocalCluster.
#include "cli/local/local_cluster.hpp"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "cli/local/sweep.hpp"
#include "platform/clock.hpp"
#include "platform/procfs.hpp"

namespace troika::local {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds{50};
constexpr Duration kSilence = std::chrono::minutes{30};   // as `troika start` has it
constexpr Duration kEndLimit = std::chrono::seconds{20};  // for a program that was told to end

std::string in_short(const Answer<protocol::StatusReply>& answer) {
  if (!answer.ok()) return answer.error.message();
  std::string out;
  for (const auto& replica : answer.reply->replicas) {
    out += fmt::format("{}{} {} epoch {}{}{}", out.empty() ? "" : "; ", replica.replica, replica.phase,
                       replica.epoch.count, replica.reason.empty() ? "" : ": ", replica.reason);
    for (const auto& stage : replica.stages)
      out += fmt::format(" {} {}", stage.stage, stage.state);
  }
  std::string silent;
  for (const auto& node : answer.reply->nodes)
    if (!node.connected) silent += " " + node.node;
  return out + (silent.empty() ? "" : "; not connected:" + silent);
}

// Names of ours below /dev/shm.
std::vector<std::string> shared_memory() {
  std::vector<std::string> out;
  DIR* const folder = ::opendir("/dev/shm");
  if (folder == nullptr) return out;
  while (const dirent* entry = ::readdir(folder))
    if (std::string_view(entry->d_name).find("troika") != std::string_view::npos)
      out.emplace_back(entry->d_name);
  ::closedir(folder);
  return out;
}

}  // namespace

std::string text(const Ending& ending) {
  std::string out;
  const auto add = [&](const std::string& what) { out += (out.empty() ? "" : "; ") + what; };
  for (const std::string& one : ending.exits)
    add(one);
  for (const std::string& one : ending.left)
    add("left running: " + one);
  for (const std::uint16_t port : ending.busy_ports)
    add(fmt::format("port {} is still held", port));
  for (const std::string& one : ending.shared_memory)
    add("left in /dev/shm: " + one);
  if (!ending.directory_removed) add("the folder could not be removed");
  return out.empty() ? "nothing is left" : out;
}

LocalCluster::~LocalCluster() {
  if (ended_) return;
  (void)sweep(layout_.root).ok();  // errors have nobody to go to here; the next sweep_stale meets them again
}

Status LocalCluster::start() {
  TROIKA_CHECK(start_leader());
  for (const std::string& node : node_names(shape()))
    TROIKA_CHECK(start_agent(node));
  return Done{};
}

Status LocalCluster::start_leader() {
  TROIKA_TRY(pid, children_.spawn({programs_.troikad,
                                   {"--config", layout_.cluster_toml()},
                                   {{kMark, layout_.root}},
                                   layout_.log("troikad")}));
  leader_ = pid;
  return Done{};
}

Status LocalCluster::start_agent(const std::string& node) {
  TROIKA_TRY(pid, children_.spawn({programs_.agent,
                                   {"--config", layout_.agent_toml(node)},
                                   {{kMark, layout_.root}},
                                   layout_.log("agent-" + node)}));
  agents_[node] = pid;
  return Done{};
}

Result<protocol::StatusReply> LocalCluster::wait_for(const std::string& what, const Condition& holds,
                                                     Duration limit) const {
  const Instant deadline = platform::now() + limit;
  while (true) {
    const auto answer = status();
    if (answer.ok() && holds(*answer.reply)) return *answer.reply;
    if (stopped()) return Error{"wait until", what, "interrupted"};
    if (const auto ended = children_.ended(leader_))
      return Error{"wait until", what, "the leader ended: " + text(*ended)};
    if (platform::now() > deadline)
      return Error{
          "wait until", what,
          fmt::format("not seen within {} s; last: {}", limit / std::chrono::seconds{1}, in_short(answer))};
    std::this_thread::sleep_for(kLookEvery);
  }
}

Status LocalCluster::wait_until(const std::string& what, const std::function<bool()>& holds,
                                Duration limit) const {
  const Instant deadline = platform::now() + limit;
  while (!holds()) {
    if (stopped()) return Error{"wait until", what, "interrupted"};
    if (platform::now() > deadline)
      return Error{"wait until", what, fmt::format("not seen within {} s", limit / std::chrono::seconds{1})};
    std::this_thread::sleep_for(kLookEvery);
  }
  return Done{};
}

Answer<protocol::CommandDone> LocalCluster::command(protocol::Verb verb, const std::string& replica) const {
  return cli::give_command(
      address_, {verb, replica, false}, [](std::string_view) {}, kSilence, options_.stop);
}

Answer<protocol::IncidentsReply> LocalCluster::incidents() const {
  constexpr std::uint32_t kAll = 1000;
  return cli::ask_incidents(address_, {"", false, kAll});
}

Result<HttpReply> LocalCluster::ask(const HttpRequest& request, const BodyReader& reader) const {
  return http("127.0.0.1", ports_.gateway, request, reader);
}

pid_t LocalCluster::agent(const std::string& node) const {
  const auto found = agents_.find(node);
  return found == agents_.end() ? 0 : found->second;
}

std::vector<Process> LocalCluster::running(std::string_view program) const {
  std::vector<Process> all = processes_of(layout_.root);
  if (!program.empty()) std::erase_if(all, [&](const Process& one) { return one.program != program; });
  return all;
}

Status LocalCluster::kill_and_wait(pid_t pid, int signal) const {
  TROIKA_TRY(stat, platform::read_stat(pid));
  TROIKA_TRY(hit, platform::signal_process(stat.id, signal));
  if (!hit) return Error{"signal", "process " + std::to_string(pid), "it is gone already"};
  return wait_until(
      "process " + std::to_string(pid) + " ends", [&] { return !alive(pid); }, kEndLimit);
}

void LocalCluster::end_program(const std::string& what, pid_t pid, Ending& ending) {
  if (pid == 0 || children_.ended(pid)) return;
  ::kill(pid, SIGTERM);
  const auto ended = children_.wait(pid, kEndLimit);
  if (!ended)
    ending.exits.push_back(what + " did not end after SIGTERM");
  else if (ended->code != 0 || ended->signal != 0)
    ending.exits.push_back(what + " ended with " + text(*ended));
}

Ending LocalCluster::end() {
  Ending ending;
  const auto done = command(protocol::Verb::Stop, "");
  if (!done.ok())
    ending.exits.push_back("stop: " + done.error.message());
  else if (done.reply->verdict == Verdict::Error)
    ending.exits.push_back("stop: " + done.reply->text);
  end_program("troikad", leader_, ending);
  for (const auto& [node, pid] : agents_)
    end_program("troika-agent of " + node, pid, ending);
  for (const Process& one : running("troikad")) {  // the gateway outlives its leader on purpose
    ::kill(one.id.pid, SIGTERM);
    const Status gone = wait_until(
        "the gateway ends", [&] { return !alive(one.id.pid); }, kEndLimit);
    if (!gone.ok()) ending.exits.push_back("the gateway did not end after SIGTERM");
  }
  for (const Process& one : running())
    ending.left.push_back(one.program + " [" + std::to_string(one.id.pid) + "]");
  if (const auto killed = kill_all(layout_.root, kEndLimit); !killed.ok())
    ending.left.push_back(killed.error().message());
  ending.busy_ports = block_.busy();
  ending.shared_memory = shared_memory();
  ending.directory_removed = platform::remove_tree(layout_.root).ok();
  ended_ = true;
  return ending;
}

Status LocalCluster::keep() {
  TROIKA_TRY(record, read_record(layout_.root));
  record.kept = true;
  TROIKA_CHECK(write_record(layout_.root, record));
  ended_ = true;
  return Done{};
}

}  // namespace troika::local
