// toml++ with its assertions as exceptions: some texts ("a.= 1") break them, and a configuration file must
// not be able to end a program, or to lead it into what the assertion excludes where assertions are compiled
// out.
#pragma once

#include <stdexcept>

namespace troika::config {

struct TomlInvariant : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void break_toml(const char* assertion);  // throws TomlInvariant

}  // namespace troika::config

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) \
  (static_cast<bool>(expr) ? static_cast<void>(0) : ::troika::config::break_toml(#expr))
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
