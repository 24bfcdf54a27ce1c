#pragma once
// Read-only memory-mapped files.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"

namespace hadal {

/// A whole file mapped read-only and shared with the page cache; unmapped by the destructor.
/// The bytes stay valid as long as the object lives, also after a move (the mapping itself never moves).
class MappedFile {
 public:
  /// Maps a regular file. Errors: kNotFound, kIo, kInvalidArgument (not a regular file). An empty file
  /// maps to an empty span.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Tells the kernel how a range will be used: random reads (no read-ahead) or needed soon.
  enum class Advice { kRandom, kWillNeed };
  void advise(size_t offset, size_t length, Advice advice) const;

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}
  void reset();
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// Reads a whole small text file; larger than `max_bytes` is an error that names both sizes.
Result<std::string> read_text_file(const std::filesystem::path& path, size_t max_bytes);

}  // namespace hadal
