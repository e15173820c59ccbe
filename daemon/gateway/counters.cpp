#include "daemon/gateway/counters.hpp"

#include <fmt/format.h>

#include <string_view>

namespace troika::daemon::gateway {
namespace {

template <class T>
void sample(std::string& out, std::string_view type, std::string_view name, std::string_view help, T value) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
}

void by_code(std::string& out, std::string_view name, std::string_view help,
             const std::map<std::string, std::uint64_t, std::less<>>& counts) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} counter\n", name, help);
  for (const auto& [code, count] : counts)
    out += fmt::format("{}{{code=\"{}\"}} {}\n", name, code, count);
}

void add(std::map<std::string, std::uint64_t, std::less<>>& counts, std::string_view code) {
  const auto found = counts.find(code);
  if (found != counts.end())
    ++found->second;
  else
    counts.emplace(code, 1);
}

void histogram(std::string& out, const Counters& counters) {
  static constexpr std::string_view kName = "troika_gateway_ttft_seconds";
  out += fmt::format("# HELP {0} From admission to the first byte of the answer.\n# TYPE {0} histogram\n",
                     kName);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < Counters::kBounds.size(); ++i) {
    sum += counters.ttft[i];
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", kName, Counters::kBounds[i], sum);
  }
  sum += counters.ttft.back();
  out += fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", kName, sum,
                     counters.ttft_sum);
}

}  // namespace

void Counters::refuse(std::string_view code) {
  ++refused_total;
  add(refused, code);
}

void Counters::fail(std::string_view code) {
  ++failed_total;
  add(failed, code);
}

void Counters::first_byte(Duration after) {
  const double seconds = std::chrono::duration<double>(after).count();
  std::size_t bucket = 0;
  while (bucket < kBounds.size() && seconds > kBounds[bucket])
    ++bucket;
  ++ttft[bucket];
  ttft_sum += seconds;
}

std::string prometheus_text(const Counters& c, const Gauges& g) {
  std::string out;
  sample(out, "counter", "troika_gateway_admitted_total", "Requests admitted since the ledger began.",
         c.admitted);
  by_code(out, "troika_gateway_refused_total", "Requests refused since the gateway started.", c.refused);
  by_code(out, "troika_gateway_failed_total", "Admitted requests that failed.", c.failed);
  sample(out, "counter", "troika_gateway_completed_total", "Requests answered to the end.", c.completed);
  sample(out, "counter", "troika_gateway_client_gone_total", "Admitted requests whose client went away.",
         c.client_gone);
  sample(out, "counter", "troika_gateway_replayed_total",
         "Requests passed on a second time, to another replica.", c.replayed);
  sample(out, "counter", "troika_gateway_prompt_tokens_total", "Prompt tokens of admitted requests.",
         c.prompt_tokens);
  sample(out, "counter", "troika_gateway_completion_tokens_total", "Tokens of answers.", c.completion_tokens);
  sample(out, "gauge", "troika_gateway_in_flight", "Admitted requests whose answer has not ended.",
         g.in_flight);
  sample(out, "gauge", "troika_gateway_active_tokens", "Tokens that requests in flight may take.",
         g.active_tokens);
  sample(out, "gauge", "troika_gateway_connections", "Connections of clients.", g.connections);
  sample(out, "gauge", "troika_gateway_routed", "1 if a request would be routed now.", g.routed ? 1 : 0);
  sample(out, "gauge", "process_resident_memory_bytes", "Resident memory.", g.resident_bytes);
  histogram(out, c);
  return out;
}

}  // namespace troika::daemon::gateway
