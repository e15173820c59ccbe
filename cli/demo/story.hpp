// The demo's account of itself: numbered steps in plain lines with the time since it began, and the measured
// facts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::demo {

class Story {
 public:
  explicit Story(Instant began) : began_(began) {}

  void step(std::string title);            // what shall be seen next
  void tell(std::string_view text) const;  // what is done or waited for
  void seen(std::string_view text);        // what was observed
  // The step that has begun was not seen.
  void failed(const Error& error);
  void ended() { ended_ = true; }           // all steps were seen
  void block(std::string_view text) const;  // lines as they are, indented

  double seconds() const;  // since the beginning
  std::uint32_t steps() const { return static_cast<std::uint32_t>(steps_.size()); }
  const std::string& title() const { return steps_.back().title; }

  // What --json writes: see docs/demo-facts.md.
  nlohmann::json facts = nlohmann::json::object();
  nlohmann::json document() const;

 private:
  struct Step {
    std::string title;
    double began_s = 0;
    double seen_s = -1;  // of the last observation; negative: none
  };
  void line(std::string_view text) const;

  Instant began_;
  std::vector<Step> steps_;
  std::string failure_;
  bool ended_ = false;
};

// False: nobody reads the story any more.
bool story_is_read();

}  // namespace troika::demo
