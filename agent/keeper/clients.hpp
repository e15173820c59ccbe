// The keeper's socket: lines of text, each answered by one line.
//
//   status      -> "status state=running|stopping|ended|cleared stage=PID start=TICKS requested=0|1 code=N
//   signal=N
//                  left=N log_bytes=N lost_bytes=N recorded=0|1"   (code and signal from "ended" on; left:
//                  processes of the stage that have not died yet; recorded: the exit status is on disk)
//   follow      -> "ok", then "log TEXT" for the last lines of output and every one to come, and a status
//   line at every
//                  change, the first at once. A client that reads too slowly gets "gap N" in place of N
//                  lines.
//   stop MS     -> "ok": SIGTERM now, SIGKILL to the whole tree after MS milliseconds; a shorter grace wins
//   kill        -> "ok": SIGKILL to the whole tree
//   forget      -> "ok": the keeper ends although the exit status could not be written; an error before
//   "cleared" else        -> "error TEXT"
#pragma once

#include <poll.h>

#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "agent/keeper/run_directory.hpp"
#include "platform/unique_fd.hpp"
#include "vocabulary/result.hpp"

namespace troika::keeper {

class Clients {
 public:
  static constexpr std::size_t kMost = 8;
  static constexpr std::size_t kLongestLine = 256;        // of a command
  static constexpr std::size_t kMostQueued = 256u << 10;  // bytes a client may leave unread

  struct Answer {
    std::string line;
    bool follow = false;  // the client gets log lines and changes from now on
  };
  using Command = std::function<Answer(std::string_view line)>;
  using Replay = std::function<void(const std::function<void(const std::string&)>& send)>;

  // Makes the socket in the directory. `command` answers a line; `replay` sends a new follower what was
  // before.
  static Result<Clients> listen(const RunDirectory& directory);

  void add_to(std::vector<pollfd>& polled) const;
  // Call with the array that add_to filled, from where it began.
  void serve(const pollfd* polled, const Command& command, const Replay& replay);
  void tell_followers(const std::string& line);
  void show_output(const std::string& line);  // as a log line, left out for those who are behind
  // Tries to send what is queued, without waiting. A follower that has caught up after a gap gets `replay`:
  // the log on disk may not have what it missed.
  void flush(const Replay& replay);
  bool empty() const { return clients_.empty(); }
  bool queued() const;

 private:
  struct Client {
    platform::UniqueFd fd;
    std::string in;
    std::string out;
    bool follows = false;
    std::size_t missed = 0;  // log lines left out since the last one
    bool closed = false;
  };

  explicit Clients(platform::UniqueFd listener) : listener_(std::move(listener)) {}
  void accept_one();
  void read_lines(Client& client, const Command& command, const Replay& replay);
  static void queue(Client& client, const std::string& line);
  static void write_out(Client& client);

  platform::UniqueFd listener_;
  std::list<Client> clients_;
};

}  // namespace troika::keeper
