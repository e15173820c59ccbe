#include "platform/tls.hpp"
#include "vocabulary/names.hpp"

namespace troika::platform {

std::string_view name(Role role) {
  switch (role) {
    case Role::Leader:
      return "leader";
    case Role::Agent:
      return "agent";
    case Role::Operator:
      return "operator";
    case Role::Local:
      return "local";
  }
  broken_invariant("role", __FILE__, __LINE__);
}

Result<Role> parse_role(std::string_view text) {
  for (const Role role : {Role::Leader, Role::Agent, Role::Operator})
    if (name(role) == text) return role;
  return Error{"read the role", "\"" + std::string(text) + "\"", "leader, agent or operator is expected"};
}

std::string uri(const Identity& identity) {
  return std::string(kIdentityScheme) + identity.cluster + "/" + std::string(name(identity.role)) + "/" +
         identity.name;
}

Result<Identity> parse_identity_uri(std::string_view text) {
  const auto bad = [&](const std::string& reason) {
    return Error{"read the identity", "\"" + std::string(text) + "\"", reason};
  };
  constexpr const char* kForm = "troika://CLUSTER/ROLE/NAME is expected";
  if (!text.starts_with(kIdentityScheme)) return bad(kForm);
  const std::string_view path = text.substr(kIdentityScheme.size());
  const std::size_t first = path.find('/');
  const std::size_t second = first == std::string_view::npos ? first : path.find('/', first + 1);
  if (second == std::string_view::npos) return bad(kForm);
  Identity identity;
  identity.cluster = path.substr(0, first);
  identity.name = path.substr(second + 1);
  const auto role = parse_role(path.substr(first + 1, second - first - 1));
  if (!role.ok()) return bad(role.error().reason);
  identity.role = *role;
  if (const auto good = check_name("cluster", identity.cluster); !good.ok()) return bad(good.error().reason);
  if (const auto good = check_name("peer", identity.name); !good.ok()) return bad(good.error().reason);
  return identity;
}

Status check_identity(const Identity& found, const Identity& needed, const std::string& file) {
  if (found.cluster == needed.cluster && found.role == needed.role &&
      (needed.name.empty() || found.name == needed.name))
    return Done{};
  const std::string role(name(needed.role));
  return Error{"use the certificate", file,
               "it is for " + uri(found) + ", and role " + role + " of cluster " + needed.cluster +
                   (needed.name.empty() ? "" : " by the name " + needed.name) +
                   " is needed: troika pki issue --role " + role + " --name " +
                   (needed.name.empty() ? "NAME" : needed.name)};
}

}  // namespace troika::platform
