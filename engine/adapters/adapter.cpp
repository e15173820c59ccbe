#include "engine/adapters/adapter.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "engine/adapters/native.hpp"

namespace troika::adapters {
namespace {

constexpr std::size_t kMostRanks = 64;
constexpr std::uint32_t kMostLayers = 10'000;
constexpr Tokens kMostTokens{1u << 24};
constexpr std::uint32_t kMostRunning = 65'536;
constexpr std::size_t kLongestModelName = 128;
constexpr std::size_t kLongestAddress = 262;  // a DNS name, a colon, a port

Error bad(const std::string& what, std::string reason) {
  return Error{"accept the stage's plan", what, std::move(reason)};
}

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Status check_model_name(const std::string& name) {
  const bool good =
      !name.empty() && name.size() <= kLongestModelName && letter_or_digit(name.front()) &&
      std::all_of(name.begin(), name.end(), [](char c) {
        return letter_or_digit(c) || std::string_view{"._-/:@+"}.find(c) != std::string_view::npos;
      });
  if (good) return Done{};
  return bad("model name", "1 to 128 letters, digits and ._-/:@+ are expected, a letter or digit first");
}

Status check_address(const std::string& address) {
  const Error wrong = bad("next link \"" + address + "\"", "HOST:PORT is expected");
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || address.size() > kLongestAddress) return wrong;
  const std::string_view host = std::string_view{address}.substr(0, colon);
  const std::string_view port = std::string_view{address}.substr(colon + 1);
  const bool good_host =
      host.front() != '-' && std::all_of(host.begin(), host.end(), [](char c) {
        return letter_or_digit(c) || std::string_view{".-:[]"}.find(c) != std::string_view::npos;
      });
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (!good_host || error != std::errc{} || end != port.data() + port.size() || number == 0) return wrong;
  return Done{};
}

}  // namespace

Status check_plan(const StagePlan& plan) {
  TROIKA_CHECK(check_name("replica", plan.stage.replica));
  TROIKA_CHECK(check_model_name(plan.model));
  if (plan.epoch.count == 0) return bad("epoch", "0 is no epoch");
  if (plan.layers.empty() || plan.layers.size() > kMostRanks)
    return bad("layers", "1 to 64 ranks are expected");
  std::uint64_t sum = 0;
  for (const std::uint32_t layers : plan.layers) {
    if (layers == 0) return bad("layers", "every rank needs a layer at least");
    sum += layers;
  }
  if (sum > kMostLayers) return bad("layers", "more than 10000");
  if (plan.stage.rank.count >= plan.layers.size())
    return bad("rank " + std::to_string(plan.stage.rank.count),
               "the plan has " + std::to_string(plan.layers.size()) + " ranks");
  if (plan.context_length.count == 0 || plan.context_length > kMostTokens)
    return bad("context length", "1 to 16777216 tokens are expected");
  if (plan.chunked_prefill.count == 0 || plan.chunked_prefill > kMostTokens)
    return bad("chunked prefill", "1 to 16777216 tokens are expected");
  if (plan.max_running == 0 || plan.max_running > kMostRunning)
    return bad("max running", "1 to 65536 requests are expected");
  if (plan.layers.size() > 1 || !plan.next_link.empty()) TROIKA_CHECK(check_address(plan.next_link));
  return Done{};
}

LayerRange layers_of(const StagePlan& plan) {
  LayerRange range;
  for (std::uint32_t rank = 0; rank < plan.stage.rank.count; ++rank)
    range.begin += plan.layers[rank];
  range.end = range.begin + plan.layers[plan.stage.rank.count];
  return range;
}

std::optional<std::uint64_t> counter_in(std::string_view metrics, std::string_view name) {
  std::optional<double> sum;
  while (!metrics.empty()) {
    const std::size_t end = metrics.find('\n');
    const std::string_view line = metrics.substr(0, end);
    metrics.remove_prefix(end == std::string_view::npos ? metrics.size() : end + 1);
    if (line.substr(0, name.size()) != name) continue;
    std::string_view rest = line.substr(name.size());
    if (!rest.empty() && rest.front() == '{') {
      const std::size_t close = rest.rfind('}');
      if (close == std::string_view::npos) continue;
      rest.remove_prefix(close + 1);
    }
    if (rest.empty() || rest.front() != ' ') continue;
    const double value = std::strtod(std::string(rest).c_str(), nullptr);
    if (std::isfinite(value) && value >= 0) sum = sum.value_or(0) + value;
  }
  if (!sum) return std::nullopt;
  return static_cast<std::uint64_t>(*sum);
}

Result<const EngineAdapter*> adapter_for(std::string_view kind) {
  if (kind == native_adapter().kind()) return &native_adapter();
  return Error{"start an engine of kind", std::string(kind), "this version of Troika starts native only"};
}

}  // namespace troika::adapters
