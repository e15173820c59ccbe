// A TOML text, parsed, with the problems found in it. Inside config/ only.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.hpp"
#include "config/toml.hpp"

namespace troika::config {

// Without the byte order mark of UTF-8, where there is one.
std::string_view without_mark(std::string_view text);

class Document {
 public:
  // A syntax error is the document's only problem; its root is then empty. A byte order mark of UTF-8 is no
  // part of the text.
  Document(std::string_view text, std::string file);

  // The content of a file, or the problem with it; at most 256 KiB.
  static Loaded<std::string> read(const std::string& file);

  const toml::table& root() const { return root_; }
  bool parsed() const { return parsed_; }

  void add(const toml::source_region& where, std::string key, std::string value, std::string expected,
           std::string code = {});
  // Whether a problem with this key was added.
  bool bad(const std::string& key) const { return bad_.count(key) > 0; }
  void mark_bad(std::string key) { bad_.insert(std::move(key)); }
  // The value as it stands in the text, cut to one line.
  std::string written(const toml::node& value) const;
  // In the order of the file.
  std::vector<Problem> problems() const;

 private:
  void parse();
  std::string_view line(std::uint32_t number) const;

  std::string_view text_;
  std::string file_;
  toml::table root_;
  bool parsed_ = false;
  std::vector<Problem> problems_;
  std::set<std::string> bad_;
};

}  // namespace troika::config
