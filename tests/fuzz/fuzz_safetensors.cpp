// Safetensors headers and shard indexes from untrusted files.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/shard_index.h"

namespace {

using namespace hadal::checkpoint;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// What a parsed header promises to those who map the file.
void check_header(const SafetensorsHeader& header, uint64_t file_size) {
  require(header.data_offset <= file_size);
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, info] : header.tensors) {
    require(info.begin <= info.end && info.end <= file_size - header.data_offset);
    require(tensor_bytes(info.dtype, info.shape) == info.end - info.begin);
    ranges.emplace_back(info.begin, info.end);
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t reached = 0;
  for (const auto& [begin, end] : ranges) {
    require(begin == reached);
    reached = end;
  }
  require(reached == file_size - header.data_offset);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  // As the whole file, and as the front of files whose data part the input may describe.
  for (const uint64_t data_bytes : {uint64_t{0}, uint64_t{20}, uint64_t{1} << 40}) {
    if (const auto header = parse_safetensors_header(bytes, size + data_bytes, "input")) {
      check_header(*header, size + data_bytes);
    }
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto index = parse_shard_index(text, "input")) {
    require(!index->shards.empty() && std::is_sorted(index->shards.begin(), index->shards.end()));
    for (const std::string& shard : index->shards) {
      require(shard.find('/') == shard.npos && shard.ends_with(".safetensors"));
    }
    for (const auto& [name, shard] : index->tensors) {
      require(shard < index->shards.size());
    }
  }
  return 0;
}
