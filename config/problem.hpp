// What is wrong with a configuration file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troika::config {

struct Problem {
  std::string file;
  std::uint32_t line = 0;  // from 1; 0: the file as a whole
  std::uint32_t column = 0;
  std::string key;       // "admission.rate", "replica[1].layers"
  std::string value;     // as written, cut to a line; empty: missing
  std::string expected;  // what is allowed: "a number above 0 is expected"
  std::string code;      // of the finding where there is one: "MICRO_BATCH_ONE"; else empty

  // With the code in front of what is expected.
  // "cluster.toml:12:8: admission.rate = \"fast\": a number above 0 is expected"
  std::string message() const;
};

template <class T>
struct Loaded {
  std::optional<T> config;        // absent if there is any problem
  std::vector<Problem> problems;  // in the order of the file
};

}  // namespace troika::config
