#include "agent/keeper/record.hpp"

#include <charconv>

namespace troika::keeper {
namespace {

constexpr std::string_view kFormat = "1";

using Fields = std::vector<std::pair<std::string, std::string>>;

class Text {
 public:
  Text() { add("format", kFormat); }
  Text& add(std::string_view key, std::string_view value) {
    text_ += std::string(key) + " " + encode(value) + "\n";
    return *this;
  }
  template <class Number>
  Text& number(std::string_view key, Number value) {
    return add(key, std::to_string(value));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

Result<Fields> parse(std::string_view what, std::string_view text) {
  const auto bad = [&](std::string reason) {
    return Error{"read the " + std::string(what), "", std::move(reason)};
  };
  Fields fields;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    // A torn last line: the writer did not get to its end.
    if (end == std::string_view::npos) return bad("the last line is not complete");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return bad("a line without a value");
    TROIKA_TRY(value, decode(line.substr(space + 1)));
    fields.emplace_back(line.substr(0, space), value);
  }
  if (fields.empty() || fields[0].first != "format") return bad("it does not begin with its format");
  if (fields[0].second != kFormat) return bad("format " + fields[0].second + " is not known here");
  return fields;
}

// Reads fields by name into variables; remembers the first that is missing or malformed.
class Picker {
 public:
  Picker(std::string_view what, Fields fields) : what_(what), fields_(std::move(fields)) {}

  void text(std::string_view key, std::string& value) {
    for (const auto& [name, content] : fields_) {
      if (name == key) {
        value = content;
        return;
      }
    }
    complain(key, "is missing");
  }
  template <class Number>
  void number(std::string_view key, Number& value) {
    std::string content;
    text(key, content);
    const auto [end, error] = std::from_chars(content.data(), content.data() + content.size(), value);
    if (error != std::errc{} || end != content.data() + content.size()) complain(key, "is not a number");
  }
  void flag(std::string_view key, bool& value) {
    int number_value = 0;
    number(key, number_value);
    value = number_value != 0;
  }
  void list(std::string_view key, std::vector<std::string>& values) {
    for (const auto& [name, content] : fields_)
      if (name == key) values.push_back(content);
  }
  Status status() const {
    if (complaint_.empty()) return Done{};
    return Error{"read the " + std::string(what_), "", complaint_};
  }

 private:
  void complain(std::string_view key, std::string_view how) {
    if (complaint_.empty()) complaint_ = std::string(key) + " " + std::string(how);
  }
  std::string_view what_;
  Fields fields_;
  std::string complaint_;
};

bool plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '%';
}

}  // namespace

std::string encode(std::string_view value) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : value) {
    if (plain(c)) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

Result<std::string> decode(std::string_view value) {
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '%') {
      out.push_back(value[i]);
      continue;
    }
    unsigned byte = 0;
    const char* begin = value.data() + i + 1;
    if (i + 3 > value.size() || std::from_chars(begin, begin + 2, byte, 16).ptr != begin + 2)
      return Error{"read a value", "", "% is not followed by two hexadecimal digits"};
    out.push_back(static_cast<char>(byte));
    i += 2;
  }
  return out;
}

std::string write(const Spec& spec) {
  Text text;
  text.add("mark", spec.mark)
      .add("directory", spec.directory)
      .number("log_limit", spec.log_limit.count)
      .add("cgroup", spec.cgroup)
      .add("secret", spec.secret)
      .number("grace_ms", spec.grace_ms);
  for (const std::string& word : spec.argv)
    text.add("arg", word);
  for (const std::string& variable : spec.environment)
    text.add("env", variable);
  return text.take();
}

std::string write(const Record& record) {
  return Text{}
      .number("keeper", record.keeper.pid)
      .number("keeper_start", record.keeper.start)
      .number("stage", record.stage.pid)
      .number("stage_start", record.stage.start)
      .add("cgroup", record.cgroup)
      .add("at", record.at)
      .take();
}

std::string write(const Exit& exit) {
  return Text{}
      .number("code", exit.code)
      .number("signal", exit.signal)
      .number("requested", exit.requested ? 1 : 0)
      .add("at", exit.at)
      .take();
}

Result<Spec> read_spec(std::string_view text) {
  TROIKA_TRY(fields, parse("stage's specification", text));
  Picker pick{"stage's specification", std::move(fields)};
  Spec spec;
  pick.text("mark", spec.mark);
  pick.text("directory", spec.directory);
  pick.number("log_limit", spec.log_limit.count);
  pick.text("cgroup", spec.cgroup);
  pick.text("secret", spec.secret);
  pick.number("grace_ms", spec.grace_ms);
  pick.list("arg", spec.argv);
  pick.list("env", spec.environment);
  TROIKA_CHECK(pick.status());
  if (spec.argv.empty()) return Error{"read the stage's specification", "", "arg is missing"};
  if (spec.mark.empty()) return Error{"read the stage's specification", "", "mark is empty"};
  return spec;
}

Result<Record> read_record(std::string_view text) {
  TROIKA_TRY(fields, parse("stage's record", text));
  Picker pick{"stage's record", std::move(fields)};
  Record record;
  pick.number("keeper", record.keeper.pid);
  pick.number("keeper_start", record.keeper.start);
  pick.number("stage", record.stage.pid);
  pick.number("stage_start", record.stage.start);
  pick.text("cgroup", record.cgroup);
  pick.text("at", record.at);
  TROIKA_CHECK(pick.status());
  return record;
}

Result<Exit> read_exit(std::string_view text) {
  TROIKA_TRY(fields, parse("exit record", text));
  Picker pick{"exit record", std::move(fields)};
  Exit exit;
  pick.number("code", exit.code);
  pick.number("signal", exit.signal);
  pick.flag("requested", exit.requested);
  pick.text("at", exit.at);
  TROIKA_CHECK(pick.status());
  return exit;
}

}  // namespace troika::keeper
