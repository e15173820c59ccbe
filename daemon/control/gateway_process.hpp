// Keeps one `troikad gateway` running: finds one that runs, else starts it, in a session of its own so that
// it outlives the leader.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "daemon/incidents/gateway_trouble.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon {

class GatewayProcess {
 public:
  // Between two starts, doubling from the first to the last while it keeps ending; one that ran for kGood
  // resets it.
  static constexpr Duration kFirstPause = std::chrono::milliseconds{500};
  static constexpr Duration kLastPause = std::chrono::seconds{30};
  static constexpr Duration kGood = std::chrono::minutes{1};
  static constexpr std::size_t kMostWords = 2048;  // bytes read of its last words

  // program: this one. config: the file it is given. words_file: where a gateway that cannot run says why.
  GatewayProcess(std::string program, std::string config, std::string lock_file, std::string words_file);

  // Each tick. Looks whether one runs and starts one when it is time.
  void tick(Instant now);
  // As of the last tick.
  bool running() const { return running_; }
  // How the one that this leader had started ended, if the last tick saw it end; told once.
  std::optional<GatewayEnd> take_end() { return std::exchange(end_, std::nullopt); }

 private:
  void reap();
  void start(Instant now);
  bool someone_holds_the_lock() const;

  std::string program_;
  std::string config_;
  std::string lock_file_;
  std::string words_file_;
  pid_t child_ = 0;  // 0: none of ours
  std::optional<GatewayEnd> end_;
  Instant started_{};
  Instant next_start_{};
  Duration pause_ = kFirstPause;
  bool running_ = false;
};

}  // namespace troika::daemon
