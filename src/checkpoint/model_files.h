#pragma once
// Files of a checkpoint directory, found without leaving it.

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hadal::checkpoint {

/// The real path of `name` (a plain file name) in `directory`, symbolic links followed. The target must lie
/// inside the directory, or, if the directory is a snapshot of the Hugging Face cache
/// (models--ORG--NAME/snapshots/HASH), in the blobs folder of the same models-- folder. kNotFound for a
/// missing file (with the download command in a snapshot), kInvalidArgument for a name or link that leaves,
/// and for what is not a regular file.
Result<std::filesystem::path> resolve_model_file(const std::filesystem::path& directory,
                                                 std::string_view name);

}  // namespace hadal::checkpoint
