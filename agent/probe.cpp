#include "agent/probe.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/http/exchange.hpp"
#include "platform/clock.hpp"

namespace troika::agent {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLargestAnswer = 4u << 20;
constexpr std::size_t kLongestText = 1024;
constexpr std::chrono::seconds kSmallLimit{10};  // for settings and counters, which take no time to make

// What the completion says: text and tokens by its own usage. An error: it is not a whole one.
Status read_completion(const HttpAnswer& answer, protocol::ProbeDone& done) {
  const auto bad = [](std::string reason) { return Error{"complete", "the probe", std::move(reason)}; };
  if (answer.status != 200)
    return bad("the stage answered " + std::to_string(answer.status) + ": " + answer.body.substr(0, 200));
  const Json json = Json::parse(answer.body, nullptr, false);
  if (!json.is_object()) return bad("the answer is not a JSON object");
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array() || choices->empty())
    return bad("the answer has no choices");
  const Json& first = choices->front();
  if (first.is_object() && first.contains("text") && first["text"].is_string())
    done.text = first["text"].get<std::string>().substr(0, kLongestText);
  const auto usage = json.find("usage");
  if (usage != json.end() && usage->is_object()) {
    const auto tokens = usage->find("completion_tokens");
    if (tokens != usage->end() && tokens->is_number_unsigned())
      done.completion_tokens = Tokens{tokens->get<std::uint64_t>()};
  }
  return Done{};
}

class Prober {
 public:
  Prober(boost::asio::any_io_executor executor, ProbePlan plan)
      : executor_(std::move(executor)), plan_(std::move(plan)), start_(platform::now()) {}

  boost::asio::awaitable<protocol::ProbeDone> run() {
    done_.request = plan_.probe.request;
    const Status result = co_await prove();
    if (!result.ok()) done_.error = result.error().message();
    done_.completed = result.ok();
    done_.seconds = platform::seconds_since(start_);
    co_return done_;
  }

 private:
  boost::asio::awaitable<Status> prove() {
    auto settings_text = co_await get(plan_.adapter->settings_path());
    if (!settings_text.ok()) co_return settings_text.error();
    const auto settings = plan_.adapter->read_settings(*settings_text);
    if (!settings.ok()) co_return settings.error();
    done_.effective = {std::string(plan_.adapter->kind()),
                       settings->model,
                       settings->context_length,
                       settings->chunked_prefill,
                       settings->max_running,
                       settings->layers,
                       0,
                       0};
    done_.kv_capacity = settings->kv_capacity;
    // Mode 59: an answer of somebody else, or of an earlier epoch, proves nothing.
    if (!settings->replica.empty() &&
        (settings->replica != plan_.probe.replica || settings->epoch != plan_.probe.epoch))
      co_return Error{
          "prove", "the stage at " + plan_.api,
          "it is of replica " + settings->replica + ", epoch " + std::to_string(settings->epoch.count)};
    const auto before = co_await counter();
    if (!before.ok()) co_return before.error();
    const Json request{{"model", plan_.model},
                       {"prompt", plan_.probe.prompt},
                       {"max_tokens", plan_.probe.max_tokens},
                       {"temperature", 0},
                       {"stream", false}};
    // Made before the co_await: g++ 12 destroys an aggregate twice that is made within it.
    HttpRequest post{"POST", std::string(plan_.adapter->completions_path()), "application/json",
                     request.dump(-1, ' ', false, Json::error_handler_t::replace)};
    auto answer = co_await fetch(executor_, plan_.api, std::move(post), left(), kLargestAnswer);
    if (!answer.ok()) co_return answer.error();
    if (const Status read = read_completion(*answer, done_); !read.ok()) co_return read;
    const auto after = co_await counter();
    if (!after.ok()) co_return after.error();
    done_.counter_advance = Tokens{*after >= *before ? *after - *before : 0};
    co_return Done{};
  }

  Duration left() const {
    const Duration all = std::chrono::milliseconds{plan_.probe.timeout_ms};
    return std::max(Duration{std::chrono::milliseconds{1}}, start_ + all - platform::now());
  }

  boost::asio::awaitable<Result<std::string>> get(std::string_view path) {
    HttpRequest request{"GET", std::string(path), {}, {}};
    auto answer = co_await fetch(executor_, plan_.api, std::move(request),
                                 std::min<Duration>(left(), kSmallLimit), kLargestAnswer);
    if (!answer.ok()) co_return answer.error();
    if (answer->status != 200)
      co_return Error{"get", plan_.api + std::string(path),
                      "the stage answered " + std::to_string(answer->status)};
    co_return std::move(answer->body);
  }

  boost::asio::awaitable<Result<std::uint64_t>> counter() {
    auto metrics = co_await get(plan_.adapter->metrics_path());
    if (!metrics.ok()) co_return metrics.error();
    const auto tokens = plan_.adapter->generated_tokens(*metrics);
    if (!tokens)
      co_return Error{"read the counter of generated tokens of", "the stage at " + plan_.api,
                      "it is not there"};
    co_return *tokens;
  }

  boost::asio::any_io_executor executor_;
  ProbePlan plan_;
  Instant start_;
  protocol::ProbeDone done_;
};

}  // namespace

boost::asio::awaitable<protocol::ProbeDone> run_probe(boost::asio::any_io_executor executor, ProbePlan plan) {
  Prober prober{std::move(executor), std::move(plan)};
  co_return co_await prober.run();
}

}  // namespace troika::agent
