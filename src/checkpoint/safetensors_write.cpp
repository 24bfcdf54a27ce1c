#include <algorithm>
#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "checkpoint/safetensors.h"

namespace hadal::checkpoint {
namespace {

/// The file that `path` stands for, symbolic links followed. What is there must be a regular file: renaming
/// over a device would take its place.
Result<std::filesystem::path> final_target(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  if (error) {
    return fail(ErrorCode::kIo, "{}: {}", path.string(), error.message());
  }
  const auto status = std::filesystem::status(target, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return fail(ErrorCode::kInvalidArgument, "{}: not a regular file", path.string());
  }
  return target;
}

}  // namespace

Result<void> write_safetensors(const std::filesystem::path& path,
                               const std::map<std::string, TensorToWrite>& tensors) {
  using Entry = std::pair<const std::string, TensorToWrite>;
  std::vector<const Entry*> order;
  for (const Entry& entry : tensors) {
    const auto& [name, tensor] = entry;
    if (name == "__metadata__") {
      return fail(ErrorCode::kInvalidArgument, "{}: a tensor cannot be called __metadata__", path.string());
    }
    const auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
    if (!bytes || *bytes != tensor.bytes.size()) {
      return fail(ErrorCode::kInvalidArgument,
                  "{}: tensor \"{}\": {} bytes, expected as many as {} [{}] takes", path.string(),
                  printable(name, 200), tensor.bytes.size(), dtype_name(tensor.dtype),
                  fmt::join(tensor.shape, ", "));
    }
    order.push_back(&entry);
  }
  // Wide elements first: with a data part that starts at a multiple of 8 every element is then aligned.
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    const size_t a_size = dtype_size(a->second.dtype);
    const size_t b_size = dtype_size(b->second.dtype);
    return a_size != b_size ? a_size > b_size : a->first < b->first;
  });

  nlohmann::json header = nlohmann::json::object();
  uint64_t offset = 0;
  for (const Entry* entry : order) {
    const TensorToWrite& tensor = entry->second;
    header[entry->first] = {{"dtype", std::string(dtype_name(tensor.dtype))},
                            {"shape", tensor.shape},
                            {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {  // dump() has no other way to say so
    return fail(ErrorCode::kInvalidArgument, "{}: a tensor name is not valid UTF-8", path.string());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');

  HADAL_TRY(const std::filesystem::path target, final_target(path));
  // Written beside the target and renamed, so that a reader never sees half a file.
  std::filesystem::path partial = target;
  partial += ".partial";
  {
    std::ofstream out(partial, std::ios::binary | std::ios::trunc);
    for (uint64_t length = text.size(), index = 0; index < 8; ++index, length >>= 8) {
      out.put(static_cast<char>(length & 0xff));
    }
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    for (const Entry* entry : order) {
      const auto bytes = entry->second.bytes;
      out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    out.close();
    if (!out) {
      std::error_code ignored;
      std::filesystem::remove(partial, ignored);
      return fail(ErrorCode::kIo, "{}: cannot write {} bytes", partial.string(), 8 + text.size() + offset);
    }
  }
  std::error_code reason;
  std::filesystem::rename(partial, target, reason);
  if (reason) {
    return fail(ErrorCode::kIo, "{}: {}", path.string(), reason.message());
  }
  return {};
}

}  // namespace hadal::checkpoint
