#pragma once
// model.safetensors.index.json: which shard holds which tensor.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hadal::checkpoint {

struct ShardIndex {
  std::vector<std::string> shards;                       ///< file names, ascending, each once
  std::map<std::string, uint32_t, std::less<>> tensors;  ///< tensor name -> position in `shards`
  std::optional<uint64_t> total_size;                    ///< what metadata.total_size claims, in bytes
};

/// Parses an index. Refuses duplicate names, and shard names that are not a plain "*.safetensors" file name.
Result<ShardIndex> parse_shard_index(std::string_view json, std::string_view source_name);

}  // namespace hadal::checkpoint
