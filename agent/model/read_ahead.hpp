// A file's bytes in order, with the next ones being read from the disk while the last ones are worked on.
// Bytes that the page cache has come in small pieces that stay in the processor's own cache; everything else
// in large ones, read by a thread of this object, which starts when it is first needed.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "agent/model/file_reader.hpp"

namespace troika::model {

class ReadAhead {
 public:
  static constexpr std::size_t kCachedPiece = 256u << 10;
  static constexpr std::size_t kDiskPiece = 1u << 20;

  ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();

  // From its first byte. The file before it is closed.
  void open(FileReader file);
  FileReader take();  // gives the file back

  // The next bytes; empty: the end. Valid until the next call.
  Result<std::string_view> next();

 private:
  struct Piece {
    AlignedBytes bytes;
    std::uint64_t offset = 0;
    std::optional<Result<std::size_t>> got;  // nothing: it is being read
  };

  void settle();                                   // until nothing is being read
  void fetch(Piece& piece, std::uint64_t offset);  // begins to read it
  void read_for_ever();

  std::optional<FileReader> file_;
  std::uint64_t offset_ = 0;  // of the bytes that the next call gives
  bool from_disk_ = false;    // pieces_ are being filled by the thread
  std::size_t turn_ = 0;      // the piece that the next call gives
  std::array<Piece, 2> pieces_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Piece* wanted_ = nullptr;  // under the mutex, as is its `got`
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troika::model
