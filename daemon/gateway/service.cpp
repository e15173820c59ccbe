#include "daemon/gateway/service.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <exception>
#include <optional>
#include <utility>

#include "daemon/gateway/resident.hpp"
#include "platform/clock.hpp"
#include "platform/files.hpp"
#include "platform/log.hpp"

namespace troika::daemon::gateway {
namespace {

// Counts for as long as it lives, whatever way the coroutine ends.
class Counted {
 public:
  explicit Counted(std::uint32_t& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::uint32_t& count_;
};

// capacity: of the KV cache, 0 where it is not known.
Tokens wanted_output(const Ask& ask, Tokens prompt, Tokens window, Tokens capacity) {
  if (ask.max_output) return *ask.max_output;
  // None named: the engine may write up to the end of what fits, so that is what is accounted.
  const Tokens end = capacity.count != 0 ? std::min(window, capacity) : window;
  return prompt < end ? end - prompt : Tokens{1};
}

constexpr std::string_view kModels = "/v1/models";

// %2F and the like of a model's name in a path. Malformed ones stay as they are.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* first = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(first, first + 2, value, 16).ptr == first + 2) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

nlohmann::json model_object(const ServiceFacts& facts) {
  return {{"id", facts.model},
          {"object", "model"},
          {"created", facts.started},
          {"owned_by", "troika"},
          {"max_model_len", facts.rule.window.count}};
}

std::string_view outcome(const Delivery& delivery) {
  switch (delivery.end) {
    case End::Delivered:
      return delivery.code == Code::COMPLETE_NO_DONE ? "complete_no_done" : "complete";
    case End::Refused:
      return "refused_by_engine";
    case End::ClientGone:
      return "client_gone";
    case End::Failed:
      return code(delivery.trouble);
  }
  return "";
}

// A client that is gone needs no answer, and nothing else is to be done about it.
asio::awaitable<void> say(Exchange& exchange, HttpAnswer answer) {
  const auto told = co_await exchange.answer(std::move(answer));
  if (!told.ok()) co_return;
}

}  // namespace

Service::Service(ServiceFacts facts, Door& door, Ledger& ledger, RouteBook& routes, CountPrompt count,
                 asio::any_io_executor worker, Hooks hooks)
    : facts_(std::move(facts)),
      door_(door),
      ledger_(ledger),
      routes_(routes),
      count_(std::move(count)),
      worker_(std::move(worker)),
      hooks_(std::move(hooks)) {}

Service::~Service() = default;

asio::awaitable<void> Service::serve(Exchange& exchange) {
  const auto& request = exchange.request();
  for (const Form form : {Form::Chat, Form::Text}) {
    if (request.path != path(form)) continue;
    if (request.method == "POST") {
      co_await complete(exchange, form);
      co_return;
    }
    auto answer = error_answer(Trouble::MethodNotAllowed, "POST is expected");
    answer.headers.emplace_back("Allow", "POST");
    co_await say(exchange, std::move(answer));
    co_return;
  }
  co_await say(exchange, answer_to_get(request));
}

HttpAnswer Service::answer_to_get(const HttpRequest& request) const {
  const bool get = request.method == "GET" || request.method == "HEAD";
  const std::string_view path = request.path;
  if (get && path == kModels) return models();
  if (get && path.size() > kModels.size() + 1 && path.substr(0, kModels.size() + 1) == "/v1/models/")
    return model(unescaped(path.substr(kModels.size() + 1)));
  if (get && request.path == "/healthz") return health();
  return error_answer(Trouble::NotFound, "no such path: " + request.method + " " + request.path);
}

asio::awaitable<void> Service::serve_metrics(Exchange& exchange) {
  if (exchange.request().path == "/metrics")
    co_await say(exchange, metrics());
  else
    co_await say(exchange, error_answer(Trouble::NotFound, "/metrics is here"));
}

HttpAnswer Service::metrics() const {
  Gauges gauges;
  gauges.in_flight = door_.in_flight();
  gauges.active_tokens = door_.active_tokens().count;
  gauges.connections = connections_ ? connections_() : 0;
  gauges.routed = routes_.target(0) != nullptr && !draining_;
  gauges.resident_bytes = resident_bytes();
  Counters counters = counters_;
  counters.admitted = ledger_.admitted();
  HttpAnswer answer;
  answer.content_type = "text/plain; version=0.0.4";
  answer.body = prometheus_text(counters, gauges);
  return answer;
}

HttpAnswer Service::models() const {
  HttpAnswer answer;
  answer.body =
      nlohmann::json{{"object", "list"}, {"data", nlohmann::json::array({model_object(facts_)})}}.dump();
  return answer;
}

HttpAnswer Service::model(const std::string& name) const {
  if (name != facts_.model) return unknown_model(name);
  HttpAnswer answer;
  answer.body = model_object(facts_).dump();
  return answer;
}

HttpAnswer Service::unknown_model(const std::string& name) const {
  return error_answer(Trouble::ModelNotFound,
                      "the model \"" + name + "\" is not served here; \"" + facts_.model + "\" is", 0,
                      "model");
}

HttpAnswer Service::health() const {
  HttpAnswer answer;
  nlohmann::json body;
  const auto* target = routes_.target(0);
  if (target != nullptr && !draining_) {
    if (const auto written = ledger_.writable(platform::now()); !written.ok()) {
      answer.status = 503;
      body = {{"status", code(Trouble::LedgerUnavailable)},
              {"reason", "the record of requests cannot be written: " + written.error().message()}};
      answer.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      return answer;
    }
    body = {{"status", "ok"}, {"replica", target->replica}, {"epoch", target->epoch.count}};
  } else {
    answer.status = 503;
    const auto& route = routes_.route();
    const bool drained = draining_ || (route && route->draining);
    std::string reason = draining_                         ? "the gateway is ending"
                         : route && !route->reason.empty() ? route->reason
                         : route                           ? "no replica is proven"
                                                           : "no leader has told a route yet";
    body = {{"status", drained ? "draining" : "no_replica"}, {"reason", std::move(reason)}};
  }
  answer.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return answer;
}

asio::awaitable<void> Service::turn_away(Exchange& exchange, Trouble trouble, HttpAnswer answer) {
  counters_.refuse(code(trouble));
  if (hooks_.changed) hooks_.changed();
  co_await say(exchange, std::move(answer));
}

asio::awaitable<Result<Tokens>> Service::count(const Ask& ask) {
  const auto work = [this, &ask]() -> asio::awaitable<std::optional<Result<Tokens>>> {
    try {
      co_return count_(ask.json);
    } catch (const std::exception& e) {
      co_return Error{"count the tokens of", "prompt", e.what()};
    }
  };
  auto counted = co_await asio::co_spawn(worker_, work, asio::use_awaitable);
  co_return std::move(*counted);
}

asio::awaitable<void> Service::complete(Exchange& exchange, Form form) {
  const Counted in_hand(in_hand_);
  if (draining_)
    co_return co_await turn_away(exchange, Trouble::Draining,
                                 error_answer(Trouble::Draining, "the gateway is ending", 5));
  auto read = read_ask(form, exchange.request().body);
  if (const auto* objection = std::get_if<Objection>(&read))
    co_return co_await turn_away(exchange, objection->trouble,
                                 error_answer(objection->trouble, objection->message, 0, objection->param));
  const Ask ask = std::move(std::get<Ask>(read));
  if (ask.model && *ask.model != facts_.model)
    co_return co_await turn_away(exchange, Trouble::ModelNotFound, unknown_model(*ask.model));
  if (exchange.request().body.size() > kSmallBody) {
    if (auto turned = door_.refused_at_sight())
      co_return co_await turn_away(exchange, turned->trouble, std::move(turned->answer));
  }
  const auto prompt = co_await count(ask);
  if (!prompt.ok())
    co_return co_await turn_away(
        exchange, Trouble::InvalidRequest,
        error_answer(Trouble::InvalidRequest, prompt.error().subject + ": " + prompt.error().reason, 0,
                     prompt.error().subject));
  Guest guest;
  guest.request = "req-" + platform::random_hex(12);
  guest.form = form;
  guest.body = exchange.request().body;
  guest.size = {*prompt, wanted_output(ask, *prompt, facts_.rule.window, door_.smallest_capacity())};
  auto entry = co_await door_.enter(exchange, guest);
  if (auto* turned = std::get_if<Turned>(&entry))
    co_return co_await turn_away(exchange, turned->trouble, std::move(turned->answer));
  if (auto* passed = std::get_if<Passed>(&entry)) co_await carry(exchange, ask, guest, std::move(*passed));
}

asio::awaitable<Delivery> Service::attempt(Exchange& exchange, const Ask& ask, const Guest& guest,
                                           const Passed& passed) {
  exchange.on_gone([upstream = passed.upstream] { upstream->cancel(); });
  Awaited awaited{guest.request, ask.stream, guest.size.max_output};
  auto delivery = co_await deliver(exchange, passed.upstream, std::move(awaited), facts_.delivery);
  exchange.on_gone({});
  // Whatever is still open towards the engine is of no use to anybody.
  passed.upstream->cancel();
  co_return delivery;
}

asio::awaitable<void> Service::carry(Exchange& exchange, const Ask& ask, const Guest& guest, Passed passed) {
  counters_.prompt_tokens += guest.size.prompt.count;
  if (hooks_.changed) hooks_.changed();
  const Instant admitted_at = platform::now();
  Duration before{};  // of an attempt that failed
  auto delivery = co_await attempt(exchange, ask, guest, passed);
  if (delivery.end == End::Failed && !delivery.started && !exchange.gone()) {
    report(guest, passed, delivery);
    auto other = co_await door_.replay(passed, guest);
    if (other.ok()) {
      ++counters_.replayed;
      passed = std::move(other).value();
      before = platform::now() - admitted_at;
      delivery = co_await attempt(exchange, ask, guest, passed);
      if (delivery.end == End::Failed) report(guest, passed, delivery);
    }
  } else if (delivery.end == End::Failed || delivery.code == Code::COMPLETE_NO_DONE) {
    report(guest, passed, delivery);
  }
  if (delivery.first_byte_after >= Duration::zero()) counters_.first_byte(before + delivery.first_byte_after);
  settle(guest, passed, delivery);
  if (delivery.end == End::Failed && !delivery.started)
    co_await tell_failure(exchange, delivery, guest.request);
}

asio::awaitable<void> Service::tell_failure(Exchange& exchange, const Delivery& delivery,
                                            const std::string& request) {
  co_await say(exchange, error_answer(delivery.trouble, delivery.reason + " (request " + request + ")"));
}

void Service::settle(const Guest& guest, const Passed& passed, const Delivery& delivery) {
  door_.leave(passed);
  counters_.completion_tokens += delivery.completion.count;
  switch (delivery.end) {
    case End::Delivered:
    case End::Refused:
      ++counters_.completed;
      break;
    case End::ClientGone:
      ++counters_.client_gone;
      break;
    case End::Failed:
      counters_.fail(code(delivery.trouble));
      break;
  }
  auto written = ledger_.finish(guest.request, outcome(delivery), delivery.completion, platform::wall_now());
  // The admission is written; that its end is not costs a line in the record only.
  if (!written.ok())
    platform::log("the end of " + guest.request + " is not recorded: " + written.error().message());
  if (hooks_.changed) hooks_.changed();
}

void Service::report(const Guest& guest, const Passed& passed, const Delivery& delivery) {
  if (!hooks_.request_failed) return;
  protocol::RequestFailed failed;
  failed.request = guest.request;
  failed.replica = passed.target.replica;
  failed.epoch = passed.target.epoch;
  const bool warning = delivery.end == End::Delivered;
  failed.finding =
      finding(warning ? Code::COMPLETE_NO_DONE : delivery.code, passed.target.node, guest.request,
              warning ? "the answer was whole but ended without [DONE]" : delivery.reason,
              warning ? "" : "see the incidents of replica " + passed.target.replica,
              {{"replica", passed.target.replica},
               {"epoch", static_cast<std::int64_t>(passed.target.epoch.count)},
               {"completion_tokens", static_cast<std::int64_t>(delivery.completion.count)},
               {"client_had_bytes", delivery.started}});
  hooks_.request_failed(std::move(failed));
}

protocol::GatewayStats Service::stats() const {
  protocol::GatewayStats stats;
  stats.in_flight = door_.in_flight();
  stats.admitted = ledger_.admitted();
  stats.refused = counters_.refused_total;
  stats.completed = counters_.completed;
  stats.failed = counters_.failed_total;
  stats.loads = door_.loads();
  if (const auto& route = routes_.route()) stats.generation = route->generation;
  return stats;
}

}  // namespace troika::daemon::gateway
