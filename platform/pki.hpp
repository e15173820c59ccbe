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
// NAME.crt and NAME.key (0600), of the cluster of the directory's authority and signed by the directory's
// authority; existing files are never overwritten.
Result<IssuedFiles> issue(const std::string& directory, const Identity& identity, Duration valid);
// The same as if made at `now`: what was made two hours ago and valid for one has expired.
Result<IssuedFiles> issue(const std::string& directory, const Identity& identity, Duration valid,
                          WallTime now);

// The cluster that the directory's authority was made for.
Result<std::string> authority_cluster(const std::string& directory);

struct CertificateFacts {
  std::string path;
  std::string subject;  // "troika://lab/agent/spark-1"; the authority's: "troika://lab"
  WallTime valid_from;
  WallTime valid_until;
  std::string problem;  // why it cannot be read, or is not of the folder's authority; empty: good
};
// Every *.crt of the directory, by path, each checked against the directory's ca.crt; dates are the reader's
// to judge.
Result<std::vector<CertificateFacts>> list_certificates(const std::string& directory);

}  // namespace troika::platform
