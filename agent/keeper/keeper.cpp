#include "agent/keeper/keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <vector>

#include "platform/cgroup.hpp"
#include "platform/clock.hpp"
#include "platform/files.hpp"
#include "platform/procfs.hpp"
#include "vocabulary/time.hpp"

namespace troika::keeper {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Bytes kLargestSpec{1u << 20};
constexpr milliseconds kFirstPassWait{5};  // doubled while nothing changes
constexpr milliseconds kLongestPassWait{1000};
constexpr seconds kRecordRetry{1};  // a full disk may have room again
constexpr seconds kPatienceWithoutDirectory{60};
constexpr seconds kLastWords{2};           // for followers that are behind when all is done
constexpr std::size_t kReadsAtOnce = 64;   // of the output pipe before others get their turn
constexpr rlim_t kRoomToLock = 64u << 20;  // below it a locked process could run into the limit

// Under memory pressure the keeper must act at once, and the kernel's killer must take the stage rather than
// it.
void harden() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && (::geteuid() == 0 || limit.rlim_cur >= kRoomToLock))
    ::mlockall(MCL_CURRENT | MCL_FUTURE);
  const platform::UniqueFd fd{::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)};
  if (fd) [[maybe_unused]]
    const auto written = ::write(fd.get(), "-999", 4);
  // Refused by qemu-user: then what the stage leaves behind is found by its mark only.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Result<platform::UniqueFd> catch_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT})
    ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  platform::UniqueFd fd{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd) return system_error("catch signals for", "the keeper", errno);
  return fd;
}

std::string_view text(bool yes) {
  return yes ? "1" : "0";
}

}  // namespace

Keeper::Keeper(RunDirectory directory, Spec spec)
    : directory_(std::move(directory)), spec_(std::move(spec)), log_(directory_, spec_.log_limit) {}

Result<std::unique_ptr<Keeper>> Keeper::start(const std::string& run_directory) {
  TROIKA_TRY(text, platform::read_file(run_directory + "/" + kSpecFile, kLargestSpec));
  TROIKA_TRY(spec, read_spec(text));
  TROIKA_TRY(directory, RunDirectory::open(run_directory));
  TROIKA_CHECK(directory.reserve_exit());
  std::unique_ptr<Keeper> keeper{new Keeper{std::move(directory), std::move(spec)}};
  TROIKA_TRY(clients, Clients::listen(keeper->directory_));
  keeper->clients_ = std::move(clients);
  TROIKA_TRY(signals, catch_signals());
  keeper->signals_ = std::move(signals);
  harden();
  TROIKA_CHECK(keeper->start_stage());
  return keeper;
}

Status Keeper::start_stage() {
  platform::UniqueFd procs;
  if (!spec_.cgroup.empty()) {
    const auto cgroup = platform::Cgroup::make(spec_.cgroup);
    if (cgroup.ok()) {
      if (auto fd = cgroup->open_procs(); fd.ok()) procs = *std::move(fd);
      cgroup_ = cgroup->path();
    } else {
      say("no cgroup for the stage (" + cgroup.error().reason + "): its tree is found by descent and mark");
    }
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("make a pipe for", spec_.argv[0], errno);
  output_.reset(ends[0]);
  const platform::UniqueFd stage_end{ends[1]};
  ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);

  platform::SpawnPlan plan;
  plan.argv = spec_.argv;
  plan.environment = spec_.environment;
  plan.environment.push_back(std::string(platform::kStageVariable) + "=" + spec_.mark);
  plan.directory = spec_.directory;
  plan.output = plan.error = stage_end.get();
  plan.new_session = true;
  plan.parent_death_signal = SIGKILL;
  plan.cgroup_procs = procs.get();
  plan.oom_score_adj = "0";
  auto child = platform::spawn(plan);
  if (!child.ok() && plan.cgroup_procs >= 0) {
    // The cgroup may be one that processes may not join (a threaded domain): a stage does without.
    remove_cgroup();
    plan.cgroup_procs = -1;
    child = platform::spawn(plan);
  }
  if (!child.ok()) return child.error();
  stage_ = *std::move(child);
  const auto self = platform::read_stat(::getpid());
  const Record record{self.ok() ? self->id : platform::ProcessId{::getpid(), 0}, stage_.id, cgroup_,
                      rfc3339(platform::wall_now())};
  const Status written =
      platform::write_file_durably(directory_.path() + "/" + kRecordFile, write(record), 0600);
  if (!written.ok()) {
    // Nobody could find it again: better no stage than an unknown one.
    (void)platform::kill_tree({spec_.mark, ::getpid(), cgroup_, stage_.id.start}, seconds{10});
    return written.error();
  }
  say("stage is process " + std::to_string(stage_.id.pid));
  return Done{};
}

void Keeper::remove_cgroup() {
  if (cgroup_.empty()) return;
  if (const auto cgroup = platform::Cgroup::open(cgroup_); cgroup.ok()) (void)cgroup->remove();
  cgroup_.clear();
}

void Keeper::run() {
  while (!done())
    loop_once();
  clients_->flush([this](const auto& send) { replay(send); });
  ::unlinkat(directory_.fd(), kSocketFile, 0);
}

void Keeper::loop_once() {
  std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}, {output_.get(), POLLIN, 0}};
  const std::size_t first_client = polled.size();
  clients_->add_to(polled);
  if (::poll(polled.data(), polled.size(), next_timeout_ms()) < 0) return;  // EINTR: signals come as data
  if (polled[1].revents != 0) drain_output();
  if (polled[0].revents != 0) handle_signals();
  if (killing_ && next_pass_ && platform::now() >= *next_pass_) pass();
  if (kill_at_ && platform::now() >= *kill_at_) {
    say("the grace is over: SIGKILL to the whole tree");
    kill_at_.reset();
    killing_ = true;
    pass();
  }
  if (next_record_ && platform::now() >= *next_record_) record_exit();
  const auto replay_to = [this](const auto& send) { replay(send); };
  clients_->serve(
      polled.data() + first_client, [this](std::string_view line) { return answer(line); }, replay_to);
  clients_->flush(replay_to);
}

void Keeper::replay(const std::function<void(const std::string&)>& send) const {
  for (const std::string& line : tail_.lines())
    send("log " + line);
  send(status_line());
}

int Keeper::next_timeout_ms() const {
  std::optional<Instant> next;
  const auto take = [&](const std::optional<Instant>& at) {
    if (at && (!next || *at < *next)) next = at;
  };
  take(kill_at_);
  take(killing_ ? next_pass_ : std::nullopt);
  take(next_record_);
  take(give_up_);
  take(linger_);
  if (!next) return -1;
  const auto wait = std::chrono::ceil<milliseconds>(*next - platform::now());
  return static_cast<int>(std::clamp<milliseconds::rep>(wait.count(), 0, 60'000));
}

void Keeper::handle_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) ask_to_stop(milliseconds{spec_.grace_ms});
  }
  reap();
}

void Keeper::drain_output() {
  std::array<char, 65536> buffer;
  for (std::size_t i = 0; i < kReadsAtOnce && output_; ++i) {
    const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      take_output({buffer.data(), static_cast<std::size_t>(got)});
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    output_.reset();  // no writer is left
  }
}

void Keeper::take_output(std::string_view output) {
  log_.append(output);
  tail_.append(output, [this](const std::string& line) { clients_->show_output(line); });
}

void Keeper::say(const std::string& words) {
  take_output(rfc3339(platform::wall_now()) + " troika-keeper: " + words + "\n");
}

void Keeper::reap() {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) break;
    if (info.si_pid != stage_.id.pid) continue;  // an orphan of the stage that came to its subreaper
    Exit exit;
    exit.code = info.si_code == CLD_EXITED ? info.si_status : 0;
    exit.signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    exit.requested = requested_;
    exit.at = rfc3339(platform::wall_now());
    exit_ = exit;
  }
  if (!exit_ || state_ == State::Ended || state_ == State::Cleared) return;
  drain_output();
  record_exit();
  say("the stage ended with " +
      (exit_->signal != 0 ? "signal " + std::to_string(exit_->signal)
                          : "code " + std::to_string(exit_->code)) +
      (exit_->requested ? ", as asked" : ", not asked to"));
  if (!spec_.secret.empty()) ::unlink(spec_.secret.c_str());
  kill_at_.reset();
  killing_ = true;
  empty_passes_ = 0;
  set_state(State::Ended);
  pass();
}

void Keeper::record_exit() {
  next_record_.reset();
  const Status written = directory_.write_exit(*exit_);
  recorded_ = written.ok();
  if (recorded_) return;
  say(written.error().message());
  if (!directory_.vanished()) {
    next_record_ = platform::now() + kRecordRetry;
  } else if (!give_up_) {
    give_up_ = platform::now() + kPatienceWithoutDirectory;
  }
}

void Keeper::ask_to_stop(Duration grace) {
  if (exit_) return;
  requested_ = true;
  const Instant deadline = platform::now() + grace;
  if (!kill_at_ || deadline < *kill_at_) kill_at_ = deadline;
  if (state_ == State::Running && grace > Duration::zero()) {
    (void)platform::signal_pidfd(stage_.pidfd.get(), SIGTERM);
    say("SIGTERM to the stage, SIGKILL in " + std::to_string(grace / milliseconds{1}) + " ms");
  }
  if (state_ == State::Running) set_state(State::Stopping);
}

void Keeper::pass() {
  const auto round = platform::kill_round({spec_.mark, ::getpid(), cgroup_, stage_.id.start});
  const std::size_t left = round.ok() ? round->left.size() : left_;
  if (!round.ok()) say(round.error().message());
  if (exit_ && left > left_) say(std::to_string(left) + " more processes of the stage: SIGKILL");
  empty_passes_ = round.ok() && left == 0 ? empty_passes_ + 1 : 0;
  // What dies is waited for by SIGCHLD and by looking again, less and less often.
  pass_wait_ = left != left_ || left == 0
                   ? Duration{kFirstPassWait}
                   : std::min<Duration>(std::max<Duration>(pass_wait_ * 2, kFirstPassWait), kLongestPassWait);
  const bool changed = left != left_;
  left_ = left;
  next_pass_ = platform::now() + pass_wait_;
  if (exit_ && empty_passes_ >= 2) {
    killing_ = false;
    next_pass_.reset();
    drain_output();
    tail_.finish([this](const std::string& line) { clients_->show_output(line); });
    remove_cgroup();
    say("nothing of the stage is left");
    set_state(State::Cleared);
  } else if (changed && exit_) {
    clients_->tell_followers(status_line());
  }
}

void Keeper::set_state(State state) {
  state_ = state;
  clients_->tell_followers(status_line());
}

std::string Keeper::status_line() const {
  std::string line = "status state=";
  switch (state_) {
    case State::Running:
      line += "running";
      break;
    case State::Stopping:
      line += "stopping";
      break;
    case State::Ended:
      line += "ended";
      break;
    case State::Cleared:
      line += "cleared";
      break;
  }
  line += " stage=" + std::to_string(stage_.id.pid) + " start=" + std::to_string(stage_.id.start);
  line += " requested=" + std::string(text(exit_ ? exit_->requested : requested_));
  if (exit_) line += " code=" + std::to_string(exit_->code) + " signal=" + std::to_string(exit_->signal);
  line += " left=" + std::to_string(left_) + " log_bytes=" + std::to_string(log_.written());
  line += " lost_bytes=" + std::to_string(log_.lost()) + " recorded=" + std::string(text(recorded_));
  return line;
}

Clients::Answer Keeper::answer(std::string_view line) {
  if (line == "status") return {status_line()};
  if (line == "follow") return {"ok", true};
  if (line == "kill") {
    ask_to_stop(Duration::zero());
    return {"ok"};
  }
  if (line == "forget") {
    if (state_ != State::Cleared) return {"error the stage is not gone"};
    forgotten_ = true;
    return {"ok"};
  }
  if (line.substr(0, 5) == "stop ") {
    const std::string_view figure = line.substr(5);
    std::uint32_t grace_ms = 0;
    const auto [end, error] = std::from_chars(figure.data(), figure.data() + figure.size(), grace_ms);
    if (error == std::errc{} && end == figure.data() + figure.size()) {
      ask_to_stop(milliseconds{grace_ms});
      return {"ok"};
    }
    return {"error stop needs a number of milliseconds"};
  }
  return {"error status, follow, stop MS, kill or forget is expected"};
}

bool Keeper::done() {
  if (state_ != State::Cleared) return false;
  if (recorded_ || forgotten_) {
    if (!linger_) linger_ = platform::now() + kLastWords;
    return !clients_->queued() || platform::now() >= *linger_;
  }
  // The directory is gone and with it the way for new clients: those that follow have been told.
  return give_up_ && ((clients_->empty() && directory_.vanished()) || platform::now() >= *give_up_);
}

}  // namespace troika::keeper
