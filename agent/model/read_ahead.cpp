#include "agent/model/read_ahead.hpp"

namespace troika::model {

ReadAhead::ReadAhead() {
  for (Piece& piece : pieces_)
    piece.bytes = aligned_bytes(kDiskPiece);
}

ReadAhead::~ReadAhead() {
  settle();
  {
    const std::lock_guard guard(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ReadAhead::open(FileReader file) {
  settle();
  file_ = std::move(file);
  offset_ = 0;
  from_disk_ = false;
}

FileReader ReadAhead::take() {
  settle();
  FileReader file = *std::move(file_);
  file_.reset();
  return file;
}

void ReadAhead::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return wanted_ == nullptr; });
}

Result<std::string_view> ReadAhead::next() {
  if (offset_ >= file_->stamp().bytes) return std::string_view{};  // one that grew since is told by its stamp
  if (!from_disk_) {
    char* const bytes = pieces_[0].bytes.get();
    const std::size_t cached = file_->read_cached(offset_, bytes, kCachedPiece);
    if (cached > 0) {
      offset_ += cached;
      return std::string_view{bytes, cached};
    }
    // At a multiple of kCachedPiece: a cached piece is shorter at the end alone.
    from_disk_ = true;
    turn_ = 0;
    fetch(pieces_[0], offset_);
  }
  Piece& piece = pieces_[turn_];
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return piece.got.has_value(); });
  }
  if (!piece.got->ok()) return piece.got->error();
  const std::size_t size = piece.got->value();
  turn_ = 1 - turn_;
  offset_ = piece.offset + size;
  if (size == kDiskPiece)
    fetch(pieces_[turn_], offset_);
  else
    pieces_[turn_].got = std::size_t{0};  // the end was met
  return std::string_view{piece.bytes.get(), size};
}

void ReadAhead::fetch(Piece& piece, std::uint64_t offset) {
  if (!thread_.joinable()) thread_ = std::thread([this] { read_for_ever(); });
  {
    const std::lock_guard guard(mutex_);
    piece.offset = offset;
    piece.got.reset();
    wanted_ = &piece;
  }
  changed_.notify_all();
}

void ReadAhead::read_for_ever() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return wanted_ != nullptr || ending_; });
    if (ending_) return;
    Piece& piece = *wanted_;
    lock.unlock();
    const std::size_t cached = file_->read_cached(piece.offset, piece.bytes.get(), kDiskPiece);
    Result<std::size_t> got = cached > 0
                                  ? Result<std::size_t>{cached}
                                  : file_->read_past_cache(piece.offset, piece.bytes.get(), kDiskPiece);
    lock.lock();
    piece.got = std::move(got);
    wanted_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace troika::model
