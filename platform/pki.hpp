// The cluster's own certificate authority: files in one directory, made with OpenSSL, P-256 keys.
#pragma once

#include <string>
#include <vector>

#include "platform/tls.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::platform {

struct IssuedFiles {
  std::string certificate;
  std::string key;
};

// ca.crt and ca.key (0600) in `directory`; an existing authority is never overwritten.
Status make_authority(const std::string& directory, const std::string& cluster, Duration valid);
// NAME.crt and NAME.key (0600) signed by the directory's authority; an existing pair is never overwritten.
Result<IssuedFiles> issue(const std::string& directory, const Identity& identity, Duration valid);

}  // namespace troika::platform
