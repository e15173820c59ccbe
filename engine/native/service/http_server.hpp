// Rank 0's HTTP/1.1 API.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "engine/native/service/engine.hpp"
#include "engine/native/service/link.hpp"

namespace troika::native {

// What the API tells about the replica.
struct ApiInfo {
  std::string model;  // served name
  std::string replica;
  std::uint64_t epoch = 0;
  std::uint32_t context_length = 0;
  std::uint32_t chunked_prefill = 0;
  std::uint32_t max_running = 0;
  std::vector<std::uint32_t> layer_counts;  // by rank
  std::uint64_t kv_tokens = 0;              // the least of all ranks
  std::int64_t started = 0;                 // seconds since 1970
};

class HttpServer {
 public:
  HttpServer(boost::asio::io_context& io, const tokenizer::Tokenizer& tokenizer, Engine& engine,
             ApiInfo info);
  ~HttpServer();
  // Returns where it listens (a port 0 is chosen by the system).
  Result<boost::asio::ip::tcp::endpoint> listen(const HostPort& where);

 private:
  class State;
  std::shared_ptr<State> state_;
};

// Prometheus text, and the JSON of /server_info and /v1/models.
std::string metrics_text(const Engine& engine);
std::string server_info_body(const ApiInfo& info);
std::string models_body(const ApiInfo& info);

}  // namespace troika::native
