// One stage of one epoch on this node, from its start (or from when it was found) until nothing of it is
// left.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/stage/exit_findings.hpp"
#include "agent/stage/keeper_line.hpp"
#include "agent/stage/launch.hpp"
#include "agent/stage/release.hpp"
#include "agent/stage/stage_file.hpp"
#include "engine/adapters/adapter.hpp"
#include "protocol/messages.hpp"

namespace troika::agent {

// What all stages of a node share.
struct StageHome {
  boost::asio::any_io_executor executor;
  std::string cluster;
  std::string node;
  std::string run_dir;
  // A state was entered: the leader is to know.
  std::function<void(const protocol::StageReport&)> report;
  // Nothing is left of it.
  std::function<void(const StageKey&)> released;
};

class Stage : public std::enable_shared_from_this<Stage> {
 public:
  // A stage that is to be started; its run directory is made already.
  static std::shared_ptr<Stage> fresh(const StageHome& home, StageFile file, std::string keeper_program);
  // One whose run directory was found. `problem`: why it could not be read, empty: it could.
  static std::shared_ptr<Stage> found(const StageHome& home, const StageKey& key,
                                      std::optional<StageFile> file, std::string problem);

  void begin();
  // SIGTERM now, SIGKILL to the whole tree after `grace`. May come again; a shorter grace wins.
  void stop(Duration grace);
  // Called about twice a second: a stage that should be gone and is not is said to be so.
  void look_at_time();

  const StageKey& key() const { return key_; }
  const std::optional<StageFile>& file() const { return file_; }
  const protocol::StageReport& report() const { return report_; }
  std::string directory() const;
  void say_again() { home_.report(report_); }

 private:
  Stage(const StageHome& home, const StageKey& key, std::optional<StageFile> file);

  boost::asio::awaitable<void> live();
  boost::asio::awaitable<bool> launch();
  boost::asio::awaitable<bool> await_record();
  boost::asio::awaitable<void> follow();
  boost::asio::awaitable<void> settle();
  boost::asio::awaitable<void> pause(Duration duration);

  void take_line(const std::string& line);
  void take_status(const KeeperStatus& status);
  void take_output(std::string_view line);
  void scan_logs();
  void become_ready(const std::string& words);
  void take_exit(const protocol::ExitStatus& exit);
  void nobody_saw_the_end();
  bool read_exit_record();
  void send_stop();
  void enter(protocol::StageState state, std::vector<Finding> findings);
  ReleaseQuery release_query() const;
  void drop_link_key() const;

  const StageHome& home_;
  StageKey key_;
  std::optional<StageFile> file_;
  const adapters::EngineAdapter* adapter_ = nullptr;
  std::string keeper_program_;  // empty: it was found
  std::string problem_;
  keeper::Record record_;
  protocol::StageReport report_;
  std::unique_ptr<KeeperLine> line_;
  boost::asio::steady_timer timer_;
  LastWords failure_;                   // reason that the stage gave for its end
  bool over_ = false;                   // it has ended unheard: its log is read for the reason only
  bool ended_ = false;                  // the main process is known to have ended
  bool cleared_ = false;                // and its keeper says that nothing of it is left
  std::optional<Duration> stop_grace_;  // asked for
  std::optional<Instant> overdue_at_;   // it should be gone by then
};

}  // namespace troika::agent
