// TLS 1.3 with client certificates and roles. A certificate carries who it is for in a URI name of its
// subject alternative names: troika://CLUSTER/ROLE/NAME.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vocabulary/result.hpp"

namespace boost::asio::ssl {
class context;
}

namespace troika::platform {

enum class Role { Leader, Agent, Operator, Local };  // Local: a Unix socket's peer, never in a certificate
std::string_view name(Role role);
Result<Role> parse_role(std::string_view text);  // leader, agent, operator

inline constexpr std::string_view kIdentityScheme = "troika://";

struct Identity {
  std::string cluster;
  Role role{};
  std::string name;
  bool operator==(const Identity&) const = default;
};
std::string uri(const Identity& identity);
Result<Identity> parse_identity_uri(std::string_view uri);
// The certificate in `file` is of the cluster, role and name (empty: any) that its owner needs. Peers would
// refuse another one, and only their logs would tell why.
Status check_identity(const Identity& found, const Identity& needed, const std::string& file);

struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;  // refused if others than its owner may read it
};

// Both sides of TLS with one identity. Errors name the file and what is wrong (unreadable, not PEM, key does
// not belong to the certificate, not signed by the CA, expired or not yet valid with both times).
class TlsContext {
 public:
  static Result<std::shared_ptr<TlsContext>> load(const TlsFiles& files);
  TlsContext(std::unique_ptr<boost::asio::ssl::context> context, Identity identity);
  ~TlsContext();

  boost::asio::ssl::context& context() { return *context_; }
  const Identity& identity() const { return identity_; }

 private:
  std::unique_ptr<boost::asio::ssl::context> context_;
  Identity identity_;
};

}  // namespace troika::platform
