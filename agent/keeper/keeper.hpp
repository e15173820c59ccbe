// The life of one stage, from its parent's side: start it, drain its output, reap it, write down how it
// ended, leave nothing of it behind. One thread, one loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/keeper/bounded_log.hpp"
#include "agent/keeper/clients.hpp"
#include "agent/keeper/record.hpp"
#include "agent/keeper/run_directory.hpp"
#include "agent/keeper/tail.hpp"
#include "platform/tree.hpp"
#include "vocabulary/result.hpp"

namespace troika::keeper {

class Keeper {
 public:
  // Starts the stage and writes the record. To be called in the process that shall be the parent.
  static Result<std::unique_ptr<Keeper>> start(const std::string& run_directory);
  Keeper(const Keeper&) = delete;
  // Returns when the stage's whole tree is gone and the exit status is on disk (or nobody can be told any
  // more).
  void run();

 private:
  enum class State { Running, Stopping, Ended, Cleared };

  explicit Keeper(RunDirectory directory, Spec spec);
  Status start_stage();
  void loop_once();
  int next_timeout_ms() const;
  void handle_signals();
  void drain_output();
  void take_output(std::string_view output);
  void say(const std::string& text);
  void reap();
  void record_exit();
  void ask_to_stop(Duration grace);
  void pass();
  void remove_cgroup();
  void set_state(State state);
  std::string status_line() const;
  Clients::Answer answer(std::string_view line);
  void replay(const std::function<void(const std::string&)>& send) const;
  bool done();

  RunDirectory directory_;
  Spec spec_;
  BoundedLog log_;
  Tail tail_;
  std::optional<Clients> clients_;
  platform::UniqueFd signals_;
  platform::UniqueFd output_;
  platform::Child stage_;
  std::string cgroup_;

  State state_ = State::Running;
  std::optional<Exit> exit_;  // once the main process has been reaped
  bool requested_ = false;
  bool recorded_ = false;
  bool forgotten_ = false;
  bool killing_ = false;  // the whole tree is being killed
  int empty_passes_ = 0;
  std::size_t left_ = 0;  // of the last pass
  Duration pass_wait_{};
  std::optional<Instant> kill_at_;
  std::optional<Instant> next_pass_;
  std::optional<Instant> next_record_;
  std::optional<Instant> linger_;   // until then followers may read the last words
  std::optional<Instant> give_up_;  // when the run directory is gone: nobody can come any more
};

}  // namespace troika::keeper
