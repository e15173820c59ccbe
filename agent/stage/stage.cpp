#include "agent/stage/stage.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>

#include "agent/stage/exit_findings.hpp"
#include "platform/cgroup.hpp"
#include "platform/clock.hpp"
#include "platform/files.hpp"
#include "platform/log.hpp"
#include "platform/procfs.hpp"
#include "platform/tree.hpp"

namespace troika::agent {
namespace {

namespace asio = boost::asio;
using protocol::StageState;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kLongestDetail = 512;
constexpr Bytes kLargestLog{256u << 20};
constexpr seconds kRecordPatience{30};  // from the lock until the record: two durable writes and an exec
constexpr milliseconds kReconnect{200};
constexpr seconds kAfterKill{2};  // dying takes time where many GiB are given back
constexpr milliseconds kSweepAgain{200};
constexpr seconds kLookAgain{2};

}  // namespace

Stage::Stage(const StageHome& home, const StageKey& key, std::optional<StageFile> file)
    : home_(home), key_(key), file_(std::move(file)), timer_(home.executor) {
  report_.replica = key.stage.replica;
  report_.rank = key.stage.rank;
  report_.epoch = key.epoch;
  report_.state = StageState::Starting;
  if (file_) {
    if (const auto adapter = adapters::adapter_for(file_->engine); adapter.ok()) adapter_ = *adapter;
  }
}

std::shared_ptr<Stage> Stage::fresh(const StageHome& home, StageFile file, std::string keeper_program) {
  const StageKey key = file.key();
  std::shared_ptr<Stage> stage{new Stage{home, key, std::move(file)}};
  stage->keeper_program_ = std::move(keeper_program);
  return stage;
}

std::shared_ptr<Stage> Stage::found(const StageHome& home, const StageKey& key, std::optional<StageFile> file,
                                    std::string problem) {
  std::shared_ptr<Stage> stage{new Stage{home, key, std::move(file)}};
  stage->problem_ = std::move(problem);
  return stage;
}

std::string Stage::directory() const {
  return home_.run_dir + "/stages/" + folder_of(key_);
}

void Stage::begin() {
  asio::co_spawn(
      home_.executor, [self = shared_from_this()] { return self->live(); }, asio::detached);
}

asio::awaitable<void> Stage::live() {
  // Of a stage that was found nothing is said before it is known how it stands.
  if (!keeper_program_.empty()) enter(StageState::Starting, {});
  const bool started = keeper_program_.empty() ? co_await await_record() : co_await launch();
  if (started) co_await follow();
  if (!ended_ && !read_exit_record()) nobody_saw_the_end();
  co_await settle();
}

asio::awaitable<bool> Stage::launch() {
  const Status started = co_await start_keeper(keeper_program_, directory());
  if (started.ok()) co_return co_await await_record();
  ended_ = true;
  drop_link_key();
  report_.detail = started.error().message();
  enter(StageState::Exited, {finding(Code::START_FAILED, home_.node, troika::text(key_.stage),
                                     started.error().message(), "check the engine's profile in agent.toml")});
  co_return false;
}

// Until the record is there, or there is no keeper that could write it.
asio::awaitable<bool> Stage::await_record() {
  if (!problem_.empty()) co_return false;
  const Instant deadline = platform::now() + kRecordPatience;
  while (true) {
    const bool alive = keeper_lives(directory());
    const auto text = platform::read_file(directory() + "/" + keeper::kRecordFile, Bytes{65536});
    const auto record = text.ok() ? keeper::read_record(*text) : Result<keeper::Record>{text.error()};
    if (record.ok()) {
      record_ = *record;
      report_.pid = record_.stage.pid;
      if (::access((directory() + "/" + keeper::kReadyFile).c_str(), F_OK) == 0)
        report_.state = StageState::Ready;
      co_return alive;
    }
    if (!alive || platform::now() > deadline) co_return false;
    co_await pause(milliseconds{20});
  }
}

// Returns when the keeper is gone or has nothing more to say.
asio::awaitable<void> Stage::follow() {
  if (report_.state == StageState::Starting)
    enter(StageState::Loading, {});
  else
    home_.report(report_);
  while (true) {
    auto connected = co_await KeeperLine::connect(directory());
    if (connected.ok()) {
      line_ = *std::move(connected);
      line_->send("follow");
      if (stop_grace_) send_stop();
      while (true) {
        const auto line = co_await line_->read_line();
        if (!line.ok()) break;
        take_line(*line);
      }
      line_.reset();
    }
    if (cleared_ || !keeper_lives(directory())) co_return;
    // It lives and cannot be reached (its socket is gone with the directory): signals still reach it.
    if (stop_grace_ && !connected.ok()) (void)platform::signal_process(record_.keeper, SIGTERM);
    co_await pause(kReconnect);
  }
}

void Stage::take_line(const std::string& line) {
  if (line.compare(0, 4, "log ") == 0) {
    take_output(std::string_view{line}.substr(4));
  } else if (line.compare(0, 7, "status ") == 0) {
    if (const auto status = parse_keeper_status(line); status.ok()) take_status(*status);
  } else if (line.compare(0, 4, "gap ") == 0) {
    scan_logs();
  }
}

void Stage::take_output(std::string_view line) {
  if (adapter_ == nullptr || !file_ || ended_) return;
  const adapters::LogReading reading = adapter_->read_log_line(file_->plan, line);
  if (reading.text.empty()) return;
  report_.detail = reading.text.substr(0, kLongestDetail);
  switch (reading.kind) {
    case adapters::LogReading::Kind::Nothing:
      break;
    case adapters::LogReading::Kind::Progress:
      report_.progress = std::max(report_.progress, reading.done);
      report_.progress_total = reading.total;
      break;
    case adapters::LogReading::Kind::Ready:
      if (!over_) become_ready(reading.text);
      break;
    case adapters::LogReading::Kind::Failed:
      failure_ = {reading.text.substr(0, kLongestDetail), reading.follows};
      break;
  }
}

// After a flood that left lines out, or an end that nobody followed: what matters is on disk.
void Stage::scan_logs() {
  for (const char* name : {keeper::kOldLogFile, keeper::kLogFile}) {
    const auto text = platform::read_file(directory() + "/" + name, kLargestLog);
    std::string_view rest = text.ok() ? std::string_view{*text} : std::string_view{};
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      take_output(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }
}

void Stage::become_ready(const std::string& words) {
  if (report_.state != StageState::Starting && report_.state != StageState::Loading) return;
  // The line will be gone from the log some day; an agent that comes then must still know. Without the file
  // it asks the log, so that a full disk is no reason to fail.
  (void)platform::write_file_durably(directory() + "/" + keeper::kReadyFile, words + "\n", 0600);
  drop_link_key();
  if (report_.progress_total.count != 0) report_.progress = report_.progress_total;
  enter(StageState::Ready, {});
}

void Stage::take_status(const KeeperStatus& status) {
  if (status.stage != 0) report_.pid = status.stage;
  switch (status.state) {
    case KeeperStatus::State::Running:
    case KeeperStatus::State::Stopping:
      return;
    case KeeperStatus::State::Ended:
    case KeeperStatus::State::Cleared:
      if (!ended_) take_exit({true, status.code, status.signal, status.requested});
      cleared_ = status.state == KeeperStatus::State::Cleared;
      overdue_at_ = status.left != 0 ? std::optional{platform::now() + kAfterKill} : std::nullopt;
      if (status.state == KeeperStatus::State::Cleared && !status.recorded && line_) line_->send("forget");
      return;
  }
}

void Stage::take_exit(const protocol::ExitStatus& exit) {
  ended_ = true;
  report_.exit = exit;
  drop_link_key();
  report_.detail = "ended with " + exit_text(exit);
  if (!failure_.reason.empty())
    report_.detail = (report_.detail + ": " + failure_.reason).substr(0, kLongestDetail);
  std::vector<Finding> findings = exit_findings(home_.node, key_, exit, failure_);
  platform::log(text(key_) + " ended with " + exit_text(exit) +
                (exit.requested ? ", as asked" : ", not asked to"));
  // A release that is overdue stays the more urgent word.
  if (report_.state == StageState::NotReleased) {
    report_.findings.insert(report_.findings.end(), findings.begin(), findings.end());
    return;
  }
  enter(StageState::Exited, std::move(findings));
}

bool Stage::read_exit_record() {
  const auto text = platform::read_file(directory() + "/" + keeper::kExitFile, Bytes{65536});
  if (!text.ok()) return false;
  const auto exit = keeper::read_exit(*text);
  if (!exit.ok()) return false;
  // Its last words, which nobody was there to hear: why it ended.
  over_ = true;
  scan_logs();
  take_exit({true, exit->code, exit->signal, exit->requested});
  return true;
}

// The keeper was killed, or the record is lost: what is left of the stage has no parent any more.
void Stage::nobody_saw_the_end() {
  ended_ = true;
  report_.exit = {false, 0, 0, stop_grace_.has_value()};
  drop_link_key();
  std::vector<Finding> findings = exit_findings(home_.node, key_, report_.exit, {});
  if (!problem_.empty()) findings.front().message += " (" + problem_ + ")";
  const Release remains = look_for_remains(release_query());
  for (const platform::ProcessId& id : remains.left)
    findings.push_back(finding(Code::ORPHAN, home_.node, std::to_string(id.pid),
                               "process " + std::to_string(id.pid) + " of " + text(key_) +
                                   " has no keeper: " + platform::command_line(id.pid),
                               "it is killed now", {{"pid", std::int64_t{id.pid}}}));
  platform::log(text(key_) + " has no keeper any more; " + std::to_string(remains.left.size()) +
                " processes are swept");
  enter(StageState::Exited, std::move(findings));
}

// Kills what is left and looks again until nothing is.
asio::awaitable<void> Stage::settle() {
  const Instant patience = platform::now() + kAfterKill;
  std::vector<platform::ProcessId> named;
  while (true) {
    Release release = look_for_remains(release_query());
    if (release.verdict == Release::Verdict::Released) {
      // Once more: what forked during the look is found by the second one.
      release = look_for_remains(release_query());
      if (release.verdict == Release::Verdict::Released) break;
    }
    if (release.verdict == Release::Verdict::Left) (void)platform::kill_round(release_query().tree);
    const bool cannot = release.verdict == Release::Verdict::CannotTell;
    const StageState state = cannot ? StageState::CannotTell : StageState::NotReleased;
    if ((cannot || platform::now() >= patience) && (report_.state != state || release.left != named)) {
      named = release.left;
      std::vector<Finding> findings = std::move(release.findings);
      const auto why = exit_findings(home_.node, key_, report_.exit, failure_);
      findings.insert(findings.end(), why.begin(), why.end());
      enter(state, std::move(findings));
    }
    co_await pause(cannot ? Duration{kLookAgain} : Duration{kSweepAgain});
  }
  if (!record_.cgroup.empty()) {
    if (const auto cgroup = platform::Cgroup::open(record_.cgroup); cgroup.ok()) (void)cgroup->remove();
  }
  report_.pid = 0;
  overdue_at_.reset();
  std::erase_if(report_.findings,
                [](const Finding& f) { return f.code == Code::NOT_RELEASED || f.code == Code::CANNOT_TELL; });
  enter(StageState::Released, report_.findings);
  home_.released(key_);
}

void Stage::stop(Duration grace) {
  if (ended_) return;
  if (stop_grace_ && *stop_grace_ <= grace && line_) {
    // Asked for already; the keeper counts from the first time.
    return;
  }
  stop_grace_ = grace;
  const Instant overdue = platform::now() + grace + kAfterKill;
  if (!overdue_at_ || overdue < *overdue_at_) overdue_at_ = overdue;
  send_stop();
}

void Stage::send_stop() {
  if (line_) line_->send("stop " + std::to_string(*stop_grace_ / milliseconds{1}));
}

void Stage::look_at_time() {
  if (!overdue_at_ || platform::now() < *overdue_at_) return;
  const bool said = report_.state == StageState::NotReleased || report_.state == StageState::CannotTell;
  overdue_at_ = platform::now() + kAfterKill;
  const Release release = look_for_remains(release_query());
  if (release.verdict == Release::Verdict::Released || said) return;
  std::vector<Finding> findings = release.findings;
  findings.insert(findings.end(), report_.findings.begin(), report_.findings.end());
  enter(release.verdict == Release::Verdict::CannotTell ? StageState::CannotTell : StageState::NotReleased,
        std::move(findings));
}

void Stage::enter(StageState state, std::vector<Finding> findings) {
  report_.state = state;
  report_.findings = std::move(findings);
  home_.report(report_);
}

ReleaseQuery Stage::release_query() const {
  ReleaseQuery query;
  query.node = home_.node;
  query.key = key_;
  query.tree.mark = mark_of(home_.cluster, home_.node, key_);
  query.tree.cgroup = record_.cgroup;
  query.tree.not_before = record_.stage.start;
  query.shared_memory = shared_memory_prefix(home_.cluster, home_.node, key_);
  if (file_ && !file_->api.empty()) query.addresses.push_back(file_->api);
  if (file_ && !file_->link.empty()) query.addresses.push_back(file_->link);
  return query;
}

void Stage::drop_link_key() const {
  ::unlink((directory() + "/" + keeper::kLinkKeyFile).c_str());
}

asio::awaitable<void> Stage::pause(Duration duration) {
  timer_.expires_after(duration);
  boost::system::error_code ignored;
  co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace troika::agent
