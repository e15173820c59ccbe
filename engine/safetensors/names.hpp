// Many names at once: each is kept once, has a number, and is found by its text. Meant for the tensors of a
// model (some have more than a million).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace troika::safetensors {

class NameTable {
 public:
  NameTable();

  struct Place {
    std::uint32_t id = 0;  // 0, 1, 2... in the order of their coming
    bool fresh = false;
  };
  // Keeps a copy. At most 2^31 names.
  Place insert(std::string_view name);
  std::optional<std::uint32_t> find(std::string_view name) const;
  // Valid as long as the table or what it was moved to.
  std::string_view name(std::uint32_t id) const { return names_[id]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(names_.size()); }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t number = 0;  // id + 1; 0: free
  };
  std::uint64_t hash(std::string_view name) const;
  std::size_t slot_of(std::string_view name, std::uint32_t hash) const;
  std::string_view keep(std::string_view name);
  void grow();

  // Names come from files that anybody may have written: without a secret they could be chosen to share one
  // slot.
  std::array<std::uint64_t, 2> secret_;
  std::vector<std::string_view> names_;
  std::vector<Slot> slots_;  // a power of two; at most two thirds taken
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* room_ = nullptr;  // in the last chunk
  std::size_t left_ = 0;
};

}  // namespace troika::safetensors
