// One table of a TOML document, read field by field: each call reads one key into a field, or adds what is
// wrong with it; a key that no call asked for is a problem. Inside config/ only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/cluster.hpp"
#include "config/document.hpp"
#include "vocabulary/units.hpp"

namespace troika::config {

enum class Need { Optional, Required };

struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
};
struct NumberRange {
  double above = 0;  // exclusive
  double most = 0;
  double least = 0;  // inclusive, in place of `above`; 0: none
};
// Above any machine of today; it catches a slip of the pen.
inline constexpr Bytes kMostBytes{16ull << 40};
struct BytesRange {
  Bytes least{};
  Bytes most = kMostBytes;
  bool or_none = false;  // 0 is allowed too
};
struct DurationRange {
  Duration least{};
  Duration most{};
};

class Section {
 public:
  // table: null where the file does not have it; then fields keep their values, and required ones are
  // problems.
  Section(Document& document, const toml::table* table, std::string path);

  Section table(std::string_view key, Need need = Need::Optional);
  std::vector<Section> tables(std::string_view key);  // [[key]]

  // Absent and optional: the field keeps its value.
  void text(std::string_view key, std::string& out, Need need);
  void name(std::string_view key, std::string& out, Need need);  // as check_name allows
  void model_name(std::string_view key, std::string& out, Need need);
  // Absolute, with room for the names of files below it.
  void path(std::string_view key, std::string& out, Need need);
  void endpoint(std::string_view key, Endpoint& out, Need need);
  void integer(std::string_view key, std::uint32_t& out, IntegerRange range);
  void tokens(std::string_view key, Tokens& out, IntegerRange range);
  void number(std::string_view key, double& out, NumberRange range);
  void bytes(std::string_view key, Bytes& out, BytesRange range);           // "16GiB", or a number of bytes
  void duration(std::string_view key, Duration& out, DurationRange range);  // "30m"
  void texts(std::string_view key, std::vector<std::string>& out, Need need);
  void integers(std::string_view key, std::vector<std::uint32_t>& out, IntegerRange range);
  template <class T>
  void choice(std::string_view key, T& out, const std::vector<std::pair<std::string_view, T>>& allowed,
              Need need) {
    std::string found, list;
    text(key, found, need);
    if (found.empty()) return;
    for (const auto& [word, value] : allowed) {
      if (word == found) {
        out = value;
        return;
      }
      list += (list.empty() ? "" : ", ") + std::string(word);
    }
    add(key, "one of " + list + " is expected");
  }
  // A key that may stand here but not in this case.
  void refuse(std::string_view key, const std::string& why, const std::string& code = {});
  // Every key that was not asked for is a problem, with the nearest one that may stand here.
  void finish();

  bool exists() const { return table_ != nullptr; }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool good(std::string_view key) const { return !document_->bad(path_of(key)); }
  // A problem with the value of a key that is there, or with an item of a list.
  void add(std::string_view key, std::string expected, std::string code = {});
  void add_item(std::string_view key, std::size_t index, std::string expected);
  void missing(std::string_view key, std::string expected, std::string code = {});
  std::string path_of(std::string_view key) const;
  const toml::table* raw() const { return table_; }

 private:
  const toml::node* find(std::string_view key) const;
  // The node of a key, recorded as asked for; null where absent (a problem if needed).
  const toml::node* take(std::string_view key, Need need, std::string_view expected);
  bool whole(std::string_view key, IntegerRange range, std::int64_t& out);

  Document* document_;
  const toml::table* table_;
  std::string path_;
  std::vector<std::string> asked_;
};

// A condition on two fields that are each good; the problem stands at the first of them that the file has,
// with what is expected of that one.
void relate(Section& a, std::string_view a_key, Section& b, std::string_view b_key, bool holds,
            const std::string& expected_of_a, const std::string& expected_of_b);

Result<Bytes> parse_bytes(std::string_view text);  // "512MiB"

}  // namespace troika::config
