#include "cli/memory.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/terminal.hpp"

namespace troika::cli {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// As XDG asks: a path that is not absolute is as if it were not set.
std::string own_state() {
  if (const std::string state = variable("XDG_STATE_HOME"); state.starts_with('/')) return state + "/troika";
  const std::string home = variable("HOME");
  return home.starts_with('/') ? home + "/.local/state/troika" : "";
}

// Empty: this user has no place.
std::string state_directory() {
  constexpr const char* kSystem = "/var/lib/troika";
  if (const std::string told = variable("TROIKA_STATE_DIR"); !told.empty()) return told;
  if (::geteuid() == 0 || ::access(kSystem, W_OK) == 0) return kSystem;
  return own_state();
}

void tell(const Error& error) {
  std::fprintf(stderr, "troika: no proof is remembered: %s\n", shown(error.message()).c_str());
}

}  // namespace

std::unique_ptr<model::ProofRecord> open_record() {
  const std::string directory = state_directory();
  if (directory.empty()) {
    tell({"find a place for the record of proofs", "$HOME", "not set; set TROIKA_STATE_DIR"});
    return nullptr;
  }
  auto record = model::ProofRecord::open(directory + "/proofs.sqlite");
  if (record.ok()) return *std::move(record);
  tell(record.error());
  return nullptr;
}

void tell_health(model::ProofRecord* record) {
  if (record == nullptr) return;
  if (const Status health = record->health(); !health.ok()) tell(health.error());
}

}  // namespace troika::cli
