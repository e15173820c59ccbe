#include "engine/native/service/pipeline.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <chrono>

#include "engine/native/service/stage_log.hpp"

namespace troika::native {

namespace asio = boost::asio;
using asio::ip::tcp;

Pipeline::Pipeline(asio::io_context& io, const StageOptions& options, const ModelConfig& config,
                   PipelineEvents events)
    : io_(io), options_(options), config_(config), events_(std::move(events)) {
  // A step holds at most a chunk of prefill, or one row of each sequence if those are more.
  limits_ = {config.hidden,     options.chunked_prefill, options.max_running,
             config.vocabulary, options.context_length,  options.ranks};
}

Hello Pipeline::hello(std::uint32_t from) const {
  Hello hello;
  hello.cluster = options_.cluster;
  hello.replica = options_.replica;
  hello.epoch = options_.epoch;
  hello.from_rank = from;
  hello.to_rank = from + 1 == options_.ranks ? 0 : from + 1;
  hello.ranks = options_.ranks;
  hello.hidden = config_.hidden;
  hello.layers = config_.layers;
  const auto end = options_.layers->end == config_.layers ? 0 : options_.layers->end;
  hello.boundary = from == options_.rank ? end : options_.layers->begin;
  hello.rows = options_.chunked_prefill;
  hello.sequences = options_.max_running;
  hello.context = options_.context_length;
  return hello;
}

Status Pipeline::start() {
  if (options_.ranks > 1) {
    TROIKA_TRY(key, read_link_key(options_.link_key_file));
    listener_.emplace(io_, hello(options_.previous_rank()), key,
                      [this](tcp::socket socket) { opened_previous(std::move(socket)); });
    TROIKA_CHECK(listener_->listen(*options_.link_listen));
    asio::co_spawn(io_, dial_link(io_, *options_.link_next, hello(options_.rank), key),
                   [this](const std::exception_ptr& error, const std::shared_ptr<tcp::socket>& socket) {
                     if (error) return fail("the link to the next rank cannot be dialled");
                     opened_next(std::move(*socket));
                   });
  }
  worker_ = std::make_unique<Worker>(
      io_, [this](const std::atomic<bool>& stop) { return load(stop); },
      [this](const Status& status) { loaded(status); },
      [this](const Status& status, Step step, const StepTokens& tokens) {
        stepped(status, std::move(step), tokens);
      });
  return Done{};
}

// On the compute thread.
Result<std::unique_ptr<Stage>> Pipeline::load(const std::atomic<bool>& stop) const {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  auto last_time = began;
  std::uint64_t last_bytes = 0;
  bool first = true;
  const auto progress = [&](std::uint64_t done, std::uint64_t total) {
    const auto now = Clock::now();
    if (first || done - last_bytes >= total / 20 || now - last_time >= std::chrono::seconds(1)) {
      stage_log(fmt::format("loading {}/{}", done, total));
      first = false;
      last_bytes = done;
      last_time = now;
    }
    return !stop.load();
  };
  const StageShape shape{*options_.layers, kv_tokens(options_, config_), options_.threads};
  auto stage = Stage::load(options_.model, config_, shape, progress);
  if (stage.ok()) {
    const auto& weights = (*stage)->weights();
    stage_log(fmt::format("loaded layers={}:{} tensors={} bytes={} seconds={:.2f}", weights.range.begin,
                          weights.range.end, weights.tensors, weights.bytes,
                          std::chrono::duration<double>(Clock::now() - began).count()));
  }
  return stage;
}

void Pipeline::loaded(const Status& status) {
  if (!status.ok()) return events_.refused(status.error());
  loaded_ = true;
  advance();
}

void Pipeline::opened_previous(tcp::socket socket) {
  const auto rank = options_.previous_rank();
  stage_log(fmt::format("link from rank {} open", rank));
  previous_ = std::make_shared<LinkReader>(
      std::move(socket), limits_, [this](FrameKind kind, const std::string& payload) { take(kind, payload); },
      [this, rank](const std::string& reason) {
        fail(fmt::format("lost the link from rank {}: {}", rank, reason));
      });
  previous_->start();
  advance();
}

void Pipeline::opened_next(tcp::socket socket) {
  const auto rank = options_.next_rank();
  stage_log(fmt::format("link to rank {} open", rank));
  next_ = std::make_shared<LinkWriter>(std::move(socket), [this, rank](const std::string& reason) {
    fail(fmt::format("lost the link to rank {}: {}", rank, reason));
  });
  next_->start();
  advance();
}

// Ready needs weights and both links; then the survey goes round once, begun by rank 0, so that rank 0 is
// ready last.
void Pipeline::advance() {
  const bool complete = loaded_ && (options_.ranks == 1 || (previous_ && next_));
  if (!complete) return;
  Survey own{kv_tokens(options_, config_), {options_.layers->size()}};
  if (options_.ranks == 1) {
    ready_ = true;
    return events_.ready(own);
  }
  if (options_.first()) {
    if (!survey_sent_) next_->send(encode(own));
    survey_sent_ = true;
    return;
  }
  if (!ready_) events_.ready(own);
  ready_ = true;
  if (!survey_) return;
  survey_->kv_tokens = std::min(survey_->kv_tokens, own.kv_tokens);
  survey_->layer_counts.push_back(options_.layers->size());
  next_->send(encode(*survey_));
  survey_.reset();
}

void Pipeline::take_survey(const Survey& survey) {
  if (!options_.first()) {
    if (survey_sent_ || survey.layer_counts.size() != options_.rank)
      return fail("a survey that was not expected");
    survey_sent_ = true;
    survey_ = survey;
    return advance();
  }
  if (ready_ || survey.layer_counts.size() != options_.ranks) return fail("a survey that was not expected");
  ready_ = true;
  events_.ready(survey);
}

void Pipeline::take(FrameKind kind, const std::string& payload) {
  switch (kind) {
    case FrameKind::Survey: {
      const auto survey = decode_survey(payload, limits_);
      return survey.ok() ? take_survey(*survey) : fail(survey.error().message());
    }
    case FrameKind::Step: {
      if (options_.first() || !ready_) return fail("a step that was not expected");
      auto step = decode_step(payload, limits_);
      if (!step.ok()) return fail(step.error().message());
      if (!worker_->submit(std::move(*step))) fail("more steps than can be in flight");
      return;
    }
    case FrameKind::Tokens: {
      if (!options_.first() || !ready_) return fail("tokens that were not expected");
      const auto tokens = decode_tokens(payload, limits_);
      if (!tokens.ok()) return fail(tokens.error().message());
      events_.tokens(*tokens);
      return;
    }
  }
}

void Pipeline::run(Step step) {
  TROIKA_INVARIANT(options_.first() && ready_);
  if (!worker_->submit(std::move(step))) fail("more steps than can be in flight");
}

void Pipeline::stepped(const Status& status, Step step, const StepTokens& tokens) {
  if (!status.ok()) return fail(status.error().message());
  if (options_.ranks == 1) return events_.tokens(tokens);
  next_->send(options_.last() ? encode(tokens) : encode(step));
}

void Pipeline::fail(std::string reason) {
  events_.failed(std::move(reason));
}

}  // namespace troika::native
