#include "checkpoint/safetensors.h"

#include <utility>

#include "base/log.h"

namespace hadal::checkpoint {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  size_t bytes;
};

constexpr std::array<DTypeRow, 16> kDTypes = {{
    {DType::kF32, "F32", 4},
    {DType::kBF16, "BF16", 2},
    {DType::kF16, "F16", 2},
    {DType::kF64, "F64", 8},
    {DType::kF8E4M3, "F8_E4M3", 1},
    {DType::kF8E5M2, "F8_E5M2", 1},
    {DType::kF8E8M0, "F8_E8M0", 1},
    {DType::kI8, "I8", 1},
    {DType::kU8, "U8", 1},
    {DType::kI16, "I16", 2},
    {DType::kU16, "U16", 2},
    {DType::kI32, "I32", 4},
    {DType::kU32, "U32", 4},
    {DType::kI64, "I64", 8},
    {DType::kU64, "U64", 8},
    {DType::kBool, "BOOL", 1},
}};

// The table is indexed by the enumerator.
constexpr bool table_is_in_order() {
  for (size_t index = 0; index < kDTypes.size(); ++index) {
    if (static_cast<size_t>(kDTypes[index].dtype) != index) {
      return false;
    }
  }
  return true;
}
static_assert(table_is_in_order());

}  // namespace

std::string_view dtype_name(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].name;
}

size_t dtype_size(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].bytes;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> tensor_bytes(DType dtype, std::span<const int64_t> shape) {
  uint64_t bytes = dtype_size(dtype);
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  HADAL_TRY(MappedFile file, MappedFile::open(path));
  HADAL_TRY(SafetensorsHeader header,
            parse_safetensors_header(file.bytes(), file.bytes().size(), path.string()));
  return SafetensorsFile(std::move(file), std::move(header), path.string());
}

Result<TensorView> SafetensorsFile::tensor(std::string_view name) const {
  const auto found = header_.tensors.find(name);
  if (found == header_.tensors.end()) {
    return fail(ErrorCode::kNotFound, "{}: no tensor \"{}\"", name_, printable(name, 200));
  }
  return view(found->second);
}

TensorView SafetensorsFile::view(const TensorInfo& info) const {
  return TensorView{.data = file_.bytes().data() + header_.data_offset + info.begin,
                    .dtype = info.dtype,
                    .shape = info.shape,
                    .bytes = static_cast<size_t>(info.end - info.begin)};
}

}  // namespace hadal::checkpoint
