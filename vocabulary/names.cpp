#include "vocabulary/names.hpp"

#include <algorithm>
#include <charconv>

namespace troika {
namespace {

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string text(const StageId& stage) {
  return stage.replica + "/" + std::to_string(stage.rank.count);
}

Result<StageId> parse_stage_id(std::string_view text) {
  const Error bad{"read the stage", std::string(text), "REPLICA/RANK is expected, such as a/0"};
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return bad;
  StageId stage{std::string(text.substr(0, slash)), Rank{}};
  if (!check_name("replica", stage.replica).ok()) return bad;
  const std::string_view rank = text.substr(slash + 1);
  const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), stage.rank.count);
  if (error != std::errc{} || end != rank.data() + rank.size()) return bad;
  return stage;
}

Status check_name(std::string_view kind, std::string_view name) {
  constexpr std::size_t kMaxLength = 63;  // a DNS label
  const bool good =
      !name.empty() && name.size() <= kMaxLength && letter_or_digit(name.front()) &&
      letter_or_digit(name.back()) &&
      std::all_of(name.begin(), name.end(), [](char c) { return letter_or_digit(c) || c == '-'; });
  if (good) return Done{};
  return Error{"accept the " + std::string(kind) + " name", "\"" + std::string(name) + "\"",
               "1 to 63 of a-z, 0-9 and '-' are expected, a letter or digit first and last"};
}

}  // namespace troika
