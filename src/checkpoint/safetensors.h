#pragma once
// One safetensors file: header checked in full before any tensor is used, data memory-mapped.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace hadal::checkpoint {

enum class DType : uint8_t {
  kF32,
  kBF16,
  kF16,
  kF64,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kBool
};

std::string_view dtype_name(DType dtype);  ///< the safetensors spelling, e.g. "F8_E4M3"
size_t dtype_size(DType dtype);            ///< bytes per element
std::optional<DType> dtype_from_name(std::string_view name);

/// Bytes of a dense tensor; nothing if an extent is negative or the product does not fit 64 bits.
std::optional<uint64_t> tensor_bytes(DType dtype, std::span<const int64_t> shape);

/// A tensor's bytes inside a mapped file, row-major. Does not own the mapping.
struct TensorView {
  const std::byte* data = nullptr;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  size_t bytes = 0;
};

/// What a header says of one tensor; offsets are relative to the data part, end exclusive.
struct TensorInfo {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, TensorInfo, std::less<>> tensors;
  uint64_t data_offset = 0;  ///< where the data part starts in the file
};

/// Parses a header from the first bytes of a file of `file_size` bytes. `source_name` leads every error.
/// Refuses: header lengths past the file or above 100 MB, malformed JSON, duplicate names, unknown dtypes,
/// negative or overflowing shapes, byte ranges that are reversed, overlap, leave holes, do not match the
/// shape, or lie past the end. All of it is kCorrupt and names the tensor.
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> file, uint64_t file_size,
                                                   std::string_view source_name);

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  const SafetensorsHeader& header() const { return header_; }
  /// kNotFound if there is none of that name.
  Result<TensorView> tensor(std::string_view name) const;
  /// The view of one of this file's own header entries.
  TensorView view(const TensorInfo& info) const;
  const MappedFile& mapping() const { return file_; }

 private:
  SafetensorsFile(MappedFile file, SafetensorsHeader header, std::string name)
      : file_(std::move(file)), header_(std::move(header)), name_(std::move(name)) {}
  MappedFile file_;
  SafetensorsHeader header_;
  std::string name_;
};

/// A tensor for write_safetensors; does not own its bytes.
struct TensorToWrite {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes tensors as one safetensors file, replacing `path` only when all is written. Data is ordered by
/// element size, then name, so that every element is aligned. Used for captures and tests.
Result<void> write_safetensors(const std::filesystem::path& path,
                               const std::map<std::string, TensorToWrite>& tensors);

}  // namespace hadal::checkpoint
