// Why a model is not there whole: what its downloader wrote (failure mode 7: it hides the reason), and
// whether what is missing fits on the disk (mode 9). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vocabulary/finding.hpp"
#include "vocabulary/units.hpp"

namespace troika::policies {

// One finding for each reason found in the output of hf, huggingface_hub, hf_xet or rsync, with the last line
// that tells it as evidence: DISK_FULL, FETCH_AUTH, FETCH_STALLED, or PARTIAL, whose subject is the file.
// `text` may hold anything; its parts between line feeds or carriage returns are its lines.
std::vector<Finding> judge_download(std::string_view text);

// By a finding of this code the file's bytes must be fetched, all of them: a downloader does not trust a
// part.
bool must_be_fetched(Code code);

struct DiskRoom {
  Bytes missing;  // of files that must be fetched
  Bytes bad;      // that such files take now; a downloader keeps them until the new ones are whole
  std::optional<Bytes> free;  // for users that are not root; nothing: it could not be asked for
};
// DISK_FULL where what is missing and 5 % (mode 9) do not fit; CANNOT_TELL where that is not known. What is
// proven already needs no room: nothing missing is never a fault.
std::optional<Finding> judge_room(const std::string& directory, const DiskRoom& room);

}  // namespace troika::policies
