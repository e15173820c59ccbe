// A whole cluster of real processes on this machine: a model, a certificate authority, a leader with its
// gateway, and an agent for every node, each with its own copy of the model. Nothing of it is faked but the
// machines.
//
// Owns its directory (a lock file says so) and everything that runs for it; end() leaves nothing. After the
// owner was itself killed, sweep_stale() of the next one does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client.hpp"
#include "cli/local/children.hpp"
#include "cli/local/copy.hpp"
#include "cli/local/http.hpp"
#include "cli/local/processes.hpp"
#include "cli/local/shape.hpp"
#include "engine/maker/model_maker.hpp"
#include "platform/files.hpp"

namespace troika::local {

using cli::Answer;
using cli::Global;

struct Options {
  std::string root;  // empty: a new folder PREFIX.XXXXXX in the temp folder; else it must not exist
  std::string prefix = "troika-demo";
  std::string programs;  // their directory; empty: see find_programs
  Shape shape;
  maker::MakerOptions model;   // its layers are those of the shape
  std::function<bool()> stop;  // asked in every wait; true ends it with the reason "interrupted"
};

struct ModelFacts {
  maker::MadeModel made;
  double make_seconds = 0;
  std::uint32_t copies = 0;
  CopyFacts copied;  // of all copies together
};

// What end() found.
struct Ending {
  std::vector<std::string> left;  // still running after every program had been told to end and had ended
  std::vector<std::uint16_t> busy_ports;   // after that
  std::vector<std::string> shared_memory;  // of ours in /dev/shm
  bool directory_removed = false;
  std::vector<std::string> exits;  // programs that did not end with status 0
  bool clean() const {
    return left.empty() && busy_ports.empty() && shared_memory.empty() && directory_removed && exits.empty();
  }
};
std::string text(const Ending& ending);

using Condition = std::function<bool(const protocol::StatusReply&)>;

class LocalCluster {
 public:
  // Files only; starts nothing.
  static Result<std::unique_ptr<LocalCluster>> make(Options options);
  // Ends and removes everything by force, unless end() did or keep() was called.
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  Status start();  // the leader and all agents
  Status start_leader();
  Status start_agent(const std::string& node);

  // What the leader says, again and again until `holds`. Errors: `limit` passed, with the last status in
  // short.
  Result<protocol::StatusReply> wait_for(const std::string& what, const Condition& holds,
                                         Duration limit) const;
  // The same for anything else that can be looked at.
  Status wait_until(const std::string& what, const std::function<bool()>& holds, Duration limit) const;
  Answer<protocol::StatusReply> status() const { return cli::ask_status(address_); }
  Answer<protocol::CommandDone> command(protocol::Verb verb, const std::string& replica) const;
  Answer<protocol::IncidentsReply> incidents() const;
  Result<HttpReply> ask(const HttpRequest& request, const BodyReader& reader = {}) const;

  pid_t leader() const { return leader_; }
  pid_t agent(const std::string& node) const;
  // Of a program name ("troika-keeper"), live ones.
  std::vector<Process> running(std::string_view program = {}) const;
  // SIGKILL or another deadly signal, and waits until the process is gone (its remains are not the caller's
  // concern).
  Status kill_and_wait(pid_t pid, int signal) const;

  const Shape& shape() const { return options_.shape; }
  const Layout& layout() const { return layout_; }
  const Ports& ports() const { return ports_; }
  const Global& address() const { return address_; }
  const ModelFacts& model() const { return model_facts_; }
  const Children& children() const { return children_; }

  // Options::stop says so.
  bool stopped() const { return options_.stop && options_.stop(); }

  // Stops the replicas, then every program by SIGTERM, looks for anything that remained, kills it, removes
  // the folder.
  Ending end();
  // From now on nobody's: everything goes on when this object is gone.
  Status keep();

 private:
  LocalCluster(Options options, Layout layout, platform::DirectoryLock lock, PortBlock block,
               Programs programs);
  Status prepare();
  Status make_files();
  Status make_certificates();
  Status make_copies();
  void end_program(const std::string& what, pid_t pid, Ending& ending);

  Options options_;
  Layout layout_;
  platform::DirectoryLock lock_;
  PortBlock block_;
  Ports ports_;
  Programs programs_;
  Global address_;
  ModelFacts model_facts_;
  Children children_;
  pid_t leader_ = 0;
  std::map<std::string, pid_t> agents_;
  bool ended_ = false;
};

}  // namespace troika::local
