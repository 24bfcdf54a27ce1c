#pragma once
// Segments of the prefix tree in a directory, for the next start of the program and for what memory has no
// room for. A cache, no database: whatever is wrong with a file makes it a miss and a number in the
// statistics, never an error of a request.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "cache/segment_file.h"

namespace hadal::cache {

struct DiskStats {
  uint64_t bytes = 0;  ///< of all segments in the directory
  uint64_t limit_bytes = 0;
  int64_t segments = 0;  ///< of this model
  int64_t queued = 0;    ///< segments that wait to be written
  uint64_t written_total = 0;
  uint64_t loaded_total = 0;
  uint64_t evicted_total = 0;
  uint64_t dropped_total = 0;  ///< not written, since the disk did not keep up or the segment is too large
  uint64_t write_errors_total = 0;  ///< disk full, read-only, ...
  uint64_t bad_files_total = 0;     ///< truncated, damaged, renamed, of another version
};

/// Any thread may call it. Two threads of its own read and write.
class DiskTier {
 public:
  /// Takes the directory (made if it is not there) for this process alone and reads the headers of what is
  /// in it. kResourceExhausted: another process has it; kIo: it cannot be made or locked.
  static Result<std::unique_ptr<DiskTier>> open(const std::filesystem::path& directory, uint64_t limit_bytes,
                                                const SegmentShape& shape,
                                                std::shared_ptr<MemoryBudget> budget);
  /// Writes what is queued, which is bounded, and lets go of the directory.
  ~DiskTier();
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;

  struct Entry {
    PrefixKey parent;
    int64_t first_block = 0;
    int64_t num_blocks = 0;
    uint64_t memory_bytes = 0;
  };
  /// The segment that ends with `key`.
  std::optional<Entry> find(const PrefixKey& key) const;

  /// Queues a segment to be written unless it is there already; never waits. The segment's memory is held
  /// until then; beyond a bound of queued bytes it is dropped.
  void offer(PrefixSegment segment);

  /// Reads segments, in this order, and hands over those before the first failure, on the reading thread.
  void load(std::vector<PrefixKey> keys, std::function<void(std::vector<PrefixSegment>)> done);

  /// Waits until everything offered so far is written or given up.
  void flush();

  DiskStats stats() const;

 private:
  struct Known {
    Entry entry;
    uint64_t file_bytes = 0;
    std::list<PrefixKey>::iterator use;  ///< place in by_use_
  };
  struct Load {
    std::vector<PrefixKey> keys;
    std::function<void(std::vector<PrefixSegment>)> done;
  };

  DiskTier(std::filesystem::path directory, int lock, uint64_t limit_bytes, const SegmentShape& shape,
           std::shared_ptr<MemoryBudget> budget);
  void scan();
  void write_loop();
  void read_loop();
  void write(const PrefixSegment& segment);
  bool make_room(uint64_t bytes);
  void forget(const PrefixKey& key);
  std::filesystem::path path_of(const PrefixKey& key) const;

  const std::filesystem::path directory_;
  const int lock_;  ///< descriptor of the locked file
  const uint64_t limit_bytes_;
  const SegmentShape shape_;
  const std::shared_ptr<MemoryBudget> budget_;

  mutable std::mutex mutex_;  ///< guards everything below
  std::condition_variable changed_;
  std::unordered_map<PrefixKey, Known> known_;
  std::list<PrefixKey> by_use_;  ///< of known_, least recently used first
  struct Foreign {
    std::filesystem::path path;
    uint64_t bytes = 0;
  };
  std::deque<Foreign> foreign_;  ///< segments of other models, oldest first
  std::deque<PrefixSegment> to_write_;
  std::unordered_map<PrefixKey, uint64_t> queued_;  ///< keys of to_write_ and of the one being written
  uint64_t queued_bytes_ = 0;
  std::deque<Load> to_load_;
  DiskStats stats_;
  bool is_stopping_ = false;

  std::thread writer_;
  std::thread reader_;
};

}  // namespace hadal::cache
