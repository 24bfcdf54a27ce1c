#pragma once
// One segment of the prefix tree as a file. All numbers are little-endian.
//
//   offset  bytes
//        0      8  "HADALKV" and the format version, now 1
//        8     32  identity of model and layout: a root key without tenant and salt
//       40     32  key before the first block
//       72     32  key after the last block
//      104      8  number of blocks before the first
//      112      8  number of blocks, at least 1
//      120      8  bytes of a block
//      128      8  Engram ids of a block: 0 or 128
//      136      8  bytes of the snapshot
//      144     16  XXH3-128 of everything behind the header
//      160     16  XXH3-128 of the 160 bytes before it
//      176         for each block its 128 token ids, its Engram ids, its rows; then the snapshot
//
// A file is valid only if it is whole: both checksums, its length, and the keys computed anew from its
// tokens.

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/result.h"
#include "cache/memory_budget.h"
#include "cache/prefix_tree.h"

namespace hadal::cache {

/// What segments of one model have in common.
struct SegmentShape {
  PrefixKey identity;
  size_t block_bytes = 0;
  size_t snapshot_bytes = 0;
};

struct SegmentHeader {
  PrefixKey identity;
  PrefixKey parent;
  PrefixKey key;
  uint64_t first_block = 0;
  uint64_t num_blocks = 0;
  uint64_t block_bytes = 0;
  uint64_t context_ids = 0;
  uint64_t snapshot_bytes = 0;

  uint64_t file_bytes() const;
  /// Memory that the segment takes once it is read.
  uint64_t memory_bytes() const;
};

/// Header of a segment that is to be written.
SegmentHeader header_of(const PrefixSegment& segment, const SegmentShape& shape);

/// The header of a file of any model. kCorrupt: no segment, another version, a wrong checksum or length.
Result<SegmentHeader> read_segment_header(const std::filesystem::path& path);

/// Writes a new file; kIo with the system's reason, and perhaps a part of the file, on failure.
Result<void> write_segment(const std::filesystem::path& path, const PrefixSegment& segment,
                           const SegmentShape& shape);

/// Reads and checks a whole file. kCorrupt if it is not the segment `key` of this shape, or damaged; kIo if
/// it cannot be read. Allocates no more than a file of its length can hold.
Result<PrefixSegment> read_segment(const std::filesystem::path& path, const PrefixKey& key,
                                   const SegmentShape& shape, const std::shared_ptr<MemoryBudget>& budget);

}  // namespace hadal::cache
