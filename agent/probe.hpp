// The proof that a stage of rank 0 generates: a real completion, the counter around it, the settings in
// force.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <string>

#include "engine/adapters/adapter.hpp"
#include "protocol/messages.hpp"

namespace troika::agent {

struct ProbePlan {
  protocol::Probe probe;
  std::string api;    // host:port
  std::string model;  // served name
  const adapters::EngineAdapter* adapter = nullptr;
};

// Takes at most probe.timeout_ms; every failure is told in `error`.
boost::asio::awaitable<protocol::ProbeDone> run_probe(boost::asio::any_io_executor executor, ProbePlan plan);

}  // namespace troika::agent
