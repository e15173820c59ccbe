// One rank of the pipeline: its links, its compute thread, and what passes between them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "engine/native/service/link.hpp"
#include "engine/native/service/options.hpp"
#include "engine/native/service/worker.hpp"

namespace troika::native {

// All on the I/O thread.
struct PipelineEvents {
  std::function<void(const Survey& survey)>
      ready;  // on rank 0 the survey of all ranks, elsewhere of this one
  std::function<void(const StepTokens& tokens)> tokens;  // rank 0
  std::function<void(std::string reason)> failed;        // there is no way on
  std::function<void(Error)> refused;                    // the model cannot be loaded
};

class Pipeline {
 public:
  Pipeline(boost::asio::io_context& io, const StageOptions& options, const ModelConfig& config,
           PipelineEvents events);

  // Listens, dials and loads. Error: the key or the address cannot be used.
  Status start();
  // Rank 0: sends a step through. Its tokens come back by events.tokens.
  void run(Step step);

 private:
  Hello hello(std::uint32_t from) const;
  Result<std::unique_ptr<Stage>> load(const std::atomic<bool>& stop) const;
  void loaded(const Status& status);
  void stepped(const Status& status, Step step, const StepTokens& tokens);
  void take(FrameKind kind, const std::string& payload);
  void take_survey(const Survey& survey);
  void opened_previous(boost::asio::ip::tcp::socket socket);
  void opened_next(boost::asio::ip::tcp::socket socket);
  void advance();
  void fail(std::string reason);

  boost::asio::io_context& io_;
  const StageOptions& options_;
  const ModelConfig& config_;
  PipelineEvents events_;
  WireLimits limits_;
  std::optional<LinkListener> listener_;
  std::shared_ptr<LinkReader> previous_;
  std::shared_ptr<LinkWriter> next_;
  bool loaded_ = false;
  bool ready_ = false;
  bool survey_sent_ = false;
  std::optional<Survey> survey_;  // what the previous rank said
  std::unique_ptr<Worker> worker_;
};

}  // namespace troika::native
