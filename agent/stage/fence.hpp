// The highest term and epochs that were obeyed here, on disk before they are obeyed. The rules:
// policies/fencing.hpp.
#pragma once

#include <string>

#include "policies/fencing.hpp"
#include "vocabulary/result.hpp"

namespace troika::agent {

class Fence {
 public:
  // A file that is there and cannot be understood leaves a broken fence: nothing may be started while
  // anything of ours is held here, since nobody knows what was promised.
  static Fence load(const std::string& path);

  const policies::FenceState& state() const { return state_; }
  const std::string& broken() const { return broken_; }  // why; empty: it is sound
  // With nothing held, nothing can overlap: the fence begins anew.
  void begin_anew() { broken_.clear(); }

  // Makes the answer durable where it asks for it. An error: do not obey.
  Status take(const policies::FenceAnswer& answer);

 private:
  explicit Fence(std::string path) : path_(std::move(path)) {}
  std::string path_;
  policies::FenceState state_;
  std::string broken_;
};

}  // namespace troika::agent
