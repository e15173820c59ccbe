#include "config/section.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "vocabulary/names.hpp"
#include "vocabulary/time.hpp"

namespace troika::config {
namespace {

constexpr std::string_view kTextExpected = "a text in quotes is expected";
constexpr std::string_view kNoNul = "a text without the character NUL (\\u0000) is expected";

// PATH_MAX and NAME_MAX of Linux.
constexpr std::size_t kLongestSystemPath = 4096;
constexpr std::size_t kLongestName = 255;
constexpr std::size_t kRoomBelow = 512;  // for what Troika puts below a folder: stages/REPLICA-RANK-EPOCH/...
constexpr std::size_t kLongestPath = kLongestSystemPath - kRoomBelow;

bool has_long_name(std::string_view path) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > kLongestName) return true;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return false;
}

// Edits (a character added, taken away or changed) from one word to the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

std::string suggestion(std::string_view key, const std::vector<std::string>& allowed) {
  const auto nearer = [&](const std::string& a, const std::string& b) {
    return distance(key, a) < distance(key, b);
  };
  const auto nearest = std::min_element(allowed.begin(), allowed.end(), nearer);
  constexpr std::size_t kLongestKey =
      64;  // longer ones are no slip of the pen, and the distance is quadratic
  if (key.size() <= kLongestKey && nearest != allowed.end() &&
      distance(key, *nearest) <= 1 + nearest->size() / 3)
    return "no such key; did you mean \"" + *nearest + "\"?";
  std::string list;
  for (const std::string& one : allowed)
    list += (list.empty() ? "" : ", ") + one;
  return "no such key; allowed here: " + list;
}

std::string range_text(IntegerRange range) {
  return "a whole number from " + std::to_string(range.least) + " to " + std::to_string(range.most) +
         " is expected";
}

std::string short_number(double value) {
  std::array<char, 32> room{};
  const auto [end, error] = std::to_chars(room.data(), room.data() + room.size(), value);
  return error == std::errc{} ? std::string(room.data(), end) : std::string("?");
}

std::string range_text(NumberRange range) {
  if (range.least > 0)
    return "a number from " + short_number(range.least) + " to " + short_number(range.most) + " is expected";
  return "a number above " + short_number(range.above) + ", at most " + short_number(range.most) +
         ", is expected";
}

struct ByteUnit {
  std::string_view suffix;
  unsigned shift;
};
constexpr std::array<ByteUnit, 5> kByteUnits{{{"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};

std::string bytes_text(Bytes bytes) {
  const ByteUnit* best = &kByteUnits[0];
  for (const ByteUnit& unit : kByteUnits)
    if (bytes.count > 0 && bytes.count % (1ull << unit.shift) == 0) best = &unit;
  return std::to_string(bytes.count >> best->shift) + std::string(best->suffix);
}

bool model_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:").find(c) != std::string_view::npos;
}

std::string item_key(std::string_view key, std::size_t index) {
  return std::string(key) + "[" + std::to_string(index) + "]";
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  const Error bad{"read the size", "\"" + std::string(text) + "\"",
                  "a whole number with a unit is expected: B, KiB, MiB, GiB or TiB, such as \"16GiB\""};
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data()) return bad;
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const ByteUnit& unit : kByteUnits) {
    if (suffix != unit.suffix) continue;
    if (number > (std::numeric_limits<std::uint64_t>::max() >> unit.shift)) return bad;
    return Bytes{number << unit.shift};
  }
  return bad;
}

Section::Section(Document& document, const toml::table* table, std::string path)
    : document_(&document), table_(table), path_(std::move(path)) {}

std::string Section::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

const toml::node* Section::find(std::string_view key) const {
  return table_ == nullptr ? nullptr : table_->get(key);
}

const toml::node* Section::take(std::string_view key, Need need, std::string_view expected) {
  asked_.emplace_back(key);
  const toml::node* const node = find(key);
  if (node == nullptr && need == Need::Required) missing(key, std::string(expected));
  return node;
}

void Section::add(std::string_view key, std::string expected, std::string code) {
  const toml::node* const node = find(key);
  if (node == nullptr) return missing(key, std::move(expected), std::move(code));
  document_->add(node->source(), path_of(key), document_->written(*node), std::move(expected),
                 std::move(code));
}

void Section::add_item(std::string_view key, std::size_t index, std::string expected) {
  const toml::node* const list = find(key);
  const toml::node* const item = list != nullptr && list->is_array() ? list->as_array()->get(index) : nullptr;
  if (item == nullptr) return add(key, std::move(expected));
  document_->add(item->source(), path_of(item_key(key, index)), document_->written(*item),
                 std::move(expected));
  // The list as a whole is not good either.
  document_->mark_bad(path_of(key));
}

void Section::missing(std::string_view key, std::string expected, std::string code) {
  // A whole table is missing from the file, not from a line.
  const bool somewhere = table_ != nullptr && !path_.empty();
  document_->add(somewhere ? table_->source() : toml::source_region{}, path_of(key), "", std::move(expected),
                 std::move(code));
}

Section Section::table(std::string_view key, Need need) {
  const std::string expected = "a table [" + path_of(key) + "] is expected";
  const toml::node* const node = take(key, need, expected);
  if (node != nullptr && !node->is_table()) add(key, expected);
  return Section(*document_, node == nullptr ? nullptr : node->as_table(), path_of(key));
}

std::vector<Section> Section::tables(std::string_view key) {
  const std::string expected = "a list of tables [[" + path_of(key) + "]] is expected";
  std::vector<Section> sections;
  const toml::node* const node = take(key, Need::Optional, expected);
  if (node == nullptr) return sections;
  const toml::array* const list = node->as_array();
  if (list == nullptr) {
    add(key, expected);
    return sections;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const toml::table* const table = list->get(i)->as_table();
    if (table == nullptr)
      add_item(key, i, expected);
    else
      sections.emplace_back(*document_, table, path_of(item_key(key, i)));
  }
  return sections;
}

void Section::text(std::string_view key, std::string& out, Need need) {
  const toml::node* const node = take(key, need, kTextExpected);
  if (node == nullptr) return;
  const auto value = node->value_exact<std::string>();
  if (!value || value->empty())
    return add(key, std::string(kTextExpected) + (value ? ", not an empty one" : ""));
  if (value->find('\0') != std::string::npos) return add(key, std::string(kNoNul));
  out = *value;
}

void Section::name(std::string_view key, std::string& out, Need need) {
  std::string found;
  text(key, found, need);
  if (found.empty()) return;
  if (const Status status = check_name(key, found); !status.ok()) return add(key, status.error().reason);
  out = found;
}

void Section::model_name(std::string_view key, std::string& out, Need need) {
  constexpr std::size_t kLongest = 128;
  std::string found;
  text(key, found, need);
  if (found.empty()) return;
  if (found.size() > kLongest || !std::all_of(found.begin(), found.end(), model_letter))
    return add(key, "1 to 128 letters, digits and - _ . / : are expected");
  out = found;
}

void Section::path(std::string_view key, std::string& out, Need need) {
  std::string found;
  text(key, found, need);
  if (found.empty()) return;
  if (found.front() != '/') return add(key, "an absolute path is expected, beginning with /");
  if (found.size() > kLongestPath || has_long_name(found))
    return add(key, "a path of at most " + std::to_string(kLongestPath) +
                        " bytes is expected, each name in it of " + std::to_string(kLongestName) +
                        " at most");
  out = found;
}

void Section::endpoint(std::string_view key, Endpoint& out, Need need) {
  std::string found;
  text(key, found, need);
  if (found.empty()) return;
  const auto parsed = parse_endpoint(found);
  if (!parsed.ok()) return add(key, parsed.error().reason);
  out = *parsed;
}

bool Section::whole(std::string_view key, IntegerRange range, std::int64_t& out) {
  const toml::node* const node = take(key, Need::Optional, {});
  if (node == nullptr) return false;
  const auto value = node->value_exact<std::int64_t>();
  if (!value || *value < range.least || *value > range.most) {
    add(key, range_text(range));
    return false;
  }
  out = *value;
  return true;
}

void Section::integer(std::string_view key, std::uint32_t& out, IntegerRange range) {
  std::int64_t value = 0;
  if (whole(key, range, value)) out = static_cast<std::uint32_t>(value);
}

void Section::tokens(std::string_view key, Tokens& out, IntegerRange range) {
  std::int64_t value = 0;
  if (whole(key, range, value)) out = Tokens{static_cast<std::uint64_t>(value)};
}

void Section::number(std::string_view key, double& out, NumberRange range) {
  const toml::node* const node = take(key, Need::Optional, {});
  if (node == nullptr) return;
  const auto value = node->is_number() ? node->value<double>() : std::optional<double>{};
  // Also refuses nan.
  if (!value || !(*value > range.above && *value >= range.least && *value <= range.most))
    return add(key, range_text(range));
  out = *value;
}

void Section::bytes(std::string_view key, Bytes& out, BytesRange range) {
  const toml::node* const node = take(key, Need::Optional, {});
  if (node == nullptr) return;
  const std::string expected =
      "a size is expected, such as \"16GiB\", \"512MiB\" or a whole number of bytes" +
      (range.least.count > 0 ? ", at least " + bytes_text(range.least) : std::string()) + ", at most " +
      bytes_text(range.most) + (range.or_none ? "; or 0" : "");
  Bytes found;
  if (const auto number = node->value_exact<std::int64_t>()) {
    if (*number < 0) return add(key, expected);
    found = Bytes{static_cast<std::uint64_t>(*number)};
  } else {
    const auto word = node->value_exact<std::string>();
    const auto parsed = word ? parse_bytes(*word) : Result<Bytes>{Error{}};
    if (!parsed.ok()) return add(key, expected);
    found = *parsed;
  }
  const bool none = range.or_none && found.count == 0;
  if (!none && (found < range.least || found > range.most)) return add(key, expected);
  out = found;
}

void Section::duration(std::string_view key, Duration& out, DurationRange range) {
  const toml::node* const node = take(key, Need::Optional, {});
  if (node == nullptr) return;
  const auto word = node->value_exact<std::string>();
  const auto parsed = word ? parse_duration(*word) : Result<Duration>{Error{}};
  if (!parsed.ok() || *parsed < range.least || *parsed > range.most)
    return add(key, "a duration is expected, such as \"250ms\", \"60s\", \"30m\" or \"2h\", at least " +
                        duration_text(range.least) + ", at most " + duration_text(range.most));
  out = *parsed;
}

void Section::texts(std::string_view key, std::vector<std::string>& out, Need need) {
  constexpr std::string_view kExpected = "a list of texts is expected";
  const toml::node* const node = take(key, need, kExpected);
  if (node == nullptr) return;
  const toml::array* const list = node->as_array();
  if (list == nullptr) return add(key, std::string(kExpected));
  std::vector<std::string> found;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto value = list->get(i)->value_exact<std::string>();
    if (!value)
      add_item(key, i, std::string(kTextExpected));
    else if (value->find('\0') != std::string::npos)
      add_item(key, i, std::string(kNoNul));
    else
      found.push_back(*value);
  }
  if (good(key)) out = std::move(found);
}

void Section::integers(std::string_view key, std::vector<std::uint32_t>& out, IntegerRange range) {
  constexpr std::string_view kExpected = "a list of whole numbers is expected, such as [14, 14, 15]";
  const toml::node* const node = take(key, Need::Required, kExpected);
  if (node == nullptr) return;
  const toml::array* const list = node->as_array();
  if (list == nullptr || list->empty()) return add(key, std::string(kExpected));
  std::vector<std::uint32_t> found;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto value = list->get(i)->value_exact<std::int64_t>();
    if (!value || *value < range.least || *value > range.most)
      add_item(key, i, range_text(range));
    else
      found.push_back(static_cast<std::uint32_t>(*value));
  }
  if (good(key)) out = std::move(found);
}

void Section::refuse(std::string_view key, const std::string& why, const std::string& code) {
  asked_.emplace_back(key);
  if (has(key)) add(key, why, code);
}

void Section::finish() {
  if (table_ == nullptr) return;
  for (const auto& [key, value] : *table_) {
    if (std::find(asked_.begin(), asked_.end(), key.str()) != asked_.end()) continue;
    document_->add(key.source(), path_of(key.str()), document_->written(value),
                   suggestion(key.str(), asked_));
  }
}

void relate(Section& a, std::string_view a_key, Section& b, std::string_view b_key, bool holds,
            const std::string& expected_of_a, const std::string& expected_of_b) {
  if (holds || !a.good(a_key) || !b.good(b_key)) return;
  if (a.has(a_key))
    a.add(a_key, expected_of_a);
  else
    b.add(b_key, expected_of_b);
}

}  // namespace troika::config
