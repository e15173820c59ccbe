// Bytes done of a known sum, with the rate and the time left: on a terminal one line that is written over,
// elsewhere a line every half minute. To stderr.
#pragma once

#include <cstdint>
#include <string>

#include "vocabulary/units.hpp"

namespace troika::cli {

struct Done {
  Bytes bytes;
  Bytes total;
  std::uint32_t files = 0;
  std::uint32_t files_total = 0;
};

// "12.4 of 156.7 GiB, 7 of 54 files, 2.3 GiB/s, 1m07s left". Nothing is said of the rate in the first
// half second.
std::string progress_text(const Done& done, double seconds);

class Progress {
 public:
  explicit Progress(std::string doing);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // the line on the terminal is taken away

  void tell(const Done& done, const std::string& more = {});  // `more` comes after the text, as it is

 private:
  std::string doing_;
  bool terminal_;
  Instant began_;
  Instant told_;
  bool shown_ = false;
};

}  // namespace troika::cli
