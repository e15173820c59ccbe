// What the gateway counts, and the Prometheus text of it. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "vocabulary/units.hpp"

namespace troika::daemon::gateway {

struct Counters {
  // Upper bounds in seconds; prefill of a full window takes about a minute on the hardware this is for.
  static constexpr std::array<double, 12> kBounds{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320};

  std::uint64_t admitted = 0;                                 // since the ledger began
  std::map<std::string, std::uint64_t, std::less<>> refused;  // by code: a fixed set, not the client's text
  std::map<std::string, std::uint64_t, std::less<>> failed;   // by code
  std::uint64_t refused_total = 0;
  std::uint64_t failed_total = 0;
  std::uint64_t completed = 0;
  std::uint64_t client_gone = 0;
  std::uint64_t replayed = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::array<std::uint64_t, kBounds.size() + 1> ttft{};  // not cumulative; the last: beyond every bound
  double ttft_sum = 0;

  void refuse(std::string_view code);
  void fail(std::string_view code);
  // From admission to the first byte of the answer.
  void first_byte(Duration after);
};

struct Gauges {
  std::uint32_t in_flight = 0;
  std::uint64_t active_tokens = 0;
  std::size_t connections = 0;
  bool routed = false;
  std::uint64_t resident_bytes = 0;
};

std::string prometheus_text(const Counters& counters, const Gauges& gauges);

}  // namespace troika::daemon::gateway
