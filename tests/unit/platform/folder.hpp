// A folder of a test's own, gone with it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "platform/files.hpp"

namespace troika::platform {

class Folder {
 public:
  // `base` ends with a slash.
  explicit Folder(const std::string& base = testing::TempDir())
      : path_(base + "troika-test-" + random_hex(8)) {
    const Status made = make_directories(path_, 0700);
    EXPECT_TRUE(made.ok()) << made.error().message();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    const Status removed = remove_tree(path_);
    EXPECT_TRUE(removed.ok()) << removed.error().message();
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string content_of(const std::string& path) {
  auto content = read_file(path, Bytes{1u << 20});
  EXPECT_TRUE(content.ok()) << (content.ok() ? "" : content.error().message());
  return content.ok() ? *content : std::string();
}

}  // namespace troika::platform
