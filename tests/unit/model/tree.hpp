// A model directory of a test's own, and its manifest.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "agent/model/digest.hpp"
#include "agent/model/manifest.hpp"
#include "agent/model/proof.hpp"
#include "tests/unit/platform/folder.hpp"

namespace troika::model {

inline std::string little_endian(std::uint64_t value) {
  std::string out;
  for (int i = 0; i < 8; ++i)
    out.push_back(static_cast<char>(value >> (8 * i) & 255));
  return out;
}

inline std::string shard_of(const std::string& header, const std::string& data) {
  return little_endian(header.size()) + header + data;
}

// Case A01: 65 bytes.
inline const std::string kA01Header = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
inline std::string a01() {
  return shard_of(kA01Header, std::string("\x01\x02\x03\x04", 4));
}

inline std::string one_tensor(const std::string& name, const std::string& data = "data") {
  return shard_of("{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(data.size()) +
                      "],\"data_offsets\":[0," + std::to_string(data.size()) + "]}}",
                  data);
}

class TreeTest : public testing::Test {
 protected:
  // `base`: the folder in which the tree's own is made.
  explicit TreeTest(const std::string& base = testing::TempDir()) : folder_(base) {
    manifest_ = {"org/model", "0123456789012345678901234567890123456789", {}};
  }

  std::string path(const std::string& name) const { return folder_ / name; }
  // On disk only.
  void write(const std::string& name, const std::string& content) {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  void list(const std::string& name, const std::string& content) {
    manifest_.files[name] = {Bytes{content.size()}, sha256_hex(content), ""};
  }
  // On disk and in the manifest.
  void put(const std::string& name, const std::string& content) {
    write(name, content);
    list(name, content);
  }
  // `found` lies where the manifest expects `wanted`.
  void put_wrong(const std::string& name, const std::string& found, const std::string& wanted) {
    write(name, found);
    list(name, wanted);
  }

  ModelProof prove() {
    const std::atomic<bool> cancel{false};
    return prove_model(
        {folder_.path(), manifest_, "spark-1"}, [](const ProofProgress&) {}, cancel);
  }
  // The only finding of error severity; the test fails where there is not exactly one.
  Finding only_error() {
    const ModelProof proof = prove();
    std::vector<Finding> errors;
    for (const Finding& f : proof.findings)
      if (f.severity == Severity::Error) errors.push_back(f);
    EXPECT_EQ(errors.size(), 1u);
    for (const Finding& f : errors)
      EXPECT_EQ(f.node, "spark-1");
    std::string all;
    for (const Finding& f : errors)
      all += std::string(troika::name(f.code)) + " " + f.subject + ": " + f.message + "\n";
    if (errors.size() != 1) ADD_FAILURE() << all;
    return errors.empty() ? Finding{} : errors[0];
  }
  static std::string evidence(const Finding& f, const std::string& key) {
    for (const auto& [name, value] : f.evidence) {
      if (name != key) continue;
      if (const auto* text = std::get_if<std::string>(&value)) return *text;
      if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    }
    return "absent";
  }

  platform::Folder folder_;
  Manifest manifest_;
};

}  // namespace troika::model
