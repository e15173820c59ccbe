// troika-stage: one rank of a pipeline. Exit codes: 0 after SIGTERM, 1 failed, 2 usage, 3 model refused.
#include <fmt/format.h>
#include <sys/signalfd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>

#include "engine/native/service/http_server.hpp"
#include "engine/native/service/options.hpp"
#include "engine/native/service/pipeline.hpp"
#include "engine/native/service/stage_log.hpp"

namespace {

using namespace troika;
using namespace troika::native;

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kRefused = 3;

// At once: whoever waits for this process learns of the failure within milliseconds, and there is nothing to
// save.
[[noreturn]] void leave(int code, const std::string& reason) {
  stage_log("failed: " + reason);
  std::_Exit(code);
}

// SIGTERM and SIGINT. Blocked in every thread and read from a descriptor, so that a link that ends because
// the whole replica is being stopped can be told from one that is lost: the signal is pending then, even if
// not yet read.
sigset_t stop_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  return set;
}

bool stop_is_pending() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 &&
         (::sigismember(&pending, SIGTERM) == 1 || ::sigismember(&pending, SIGINT) == 1);
}

class Program {
 public:
  Program(StageOptions options, ModelConfig config)
      : options_(std::move(options)), config_(std::move(config)) {}

  int run() {
    if (options_.first()) {
      auto tokenizer = tokenizer::Tokenizer::load(options_.model);
      if (!tokenizer.ok()) leave(kRefused, tokenizer.error().message());
      if (tokenizer->size() > config_.vocabulary) {
        leave(kRefused, fmt::format("tokenizer.json has ids up to {}, vocab_size is {}",
                                    tokenizer->size() - 1, config_.vocabulary));
      }
      tokenizer_.emplace(std::move(*tokenizer));
    }
    const auto set = stop_signals();
    const int descriptor = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor < 0) leave(kFailed, system_error("create", "a signal descriptor", errno).message());
    boost::asio::posix::stream_descriptor signals(io_, descriptor);
    signals.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                       [this](const boost::system::error_code& error) {
                         if (!error) stop();
                       });
    PipelineEvents events;
    events.ready = [this](const Survey& survey) { ready(survey); };
    events.tokens = [this](const StepTokens& tokens) {
      if (const auto taken = engine_->take(tokens); !taken.ok()) leave(kFailed, taken.error().message());
    };
    events.failed = [this](const std::string& reason) {
      if (!io_.stopped() && !stop_is_pending()) leave(kFailed, reason);
      stop();
    };
    events.refused = [](const Error& error) { leave(kRefused, error.message()); };
    pipeline_.emplace(io_, options_, config_, std::move(events));
    if (const auto started = pipeline_->start(); !started.ok()) leave(kFailed, started.error().message());
    io_.run();
    pipeline_.reset();  // joins the compute thread
    return 0;
  }

 private:
  void stop() {
    if (io_.stopped()) return;
    stage_log("stopping");
    io_.stop();
  }

  void ready(const Survey& survey) {
    std::string api = "-";
    if (options_.first()) {
      // Chunks of prefill and decoding sequences of different ages fill the pipeline: one step a rank.
      const SchedulerLimits limits{options_.max_running, options_.chunked_prefill, options_.ranks, 256,
                                   survey.kv_tokens};
      engine_.emplace(limits, *tokenizer_, config_.eos,
                      [this](Step step) { pipeline_->run(std::move(step)); });
      ApiInfo info{options_.served_model_name, options_.replica,         options_.epoch,
                   options_.context_length,    options_.chunked_prefill, options_.max_running,
                   survey.layer_counts,        survey.kv_tokens,         0};
      info.started = std::chrono::duration_cast<std::chrono::seconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
      server_.emplace(io_, *tokenizer_, *engine_, std::move(info));
      const auto bound = server_->listen(*options_.api);
      if (!bound.ok()) leave(kFailed, bound.error().message());
      api = text(*bound);
    }
    stage_log(fmt::format("ready rank={} epoch={} api={} kv_tokens={}", options_.rank, options_.epoch, api,
                          survey.kv_tokens));
  }

  StageOptions options_;
  ModelConfig config_;
  std::optional<tokenizer::Tokenizer> tokenizer_;
  boost::asio::io_context io_{1};
  std::optional<Engine> engine_;
  std::optional<HttpServer> server_;
  std::optional<Pipeline> pipeline_;
};

int run(int argc, char** argv) {
  auto parsed = parse_options(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  auto& options = *parsed.options;
  set_log_prefix(fmt::format("troika-stage[{}/{} e{}]: ", options.replica, options.rank, options.epoch));
  std::signal(SIGPIPE, SIG_IGN);
  const auto set = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  auto config = load_config(options.model);
  if (!config.ok()) leave(kRefused, config.error().message());
  if (const auto fits = complete(options, *config); !fits.ok()) leave(kUsage, fits.error().message());
  Program program(options, *config);
  return program.run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    leave(kFailed, error.what());
  }
}
