#include "cache/disk_tier.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

namespace hadal::cache {
namespace {

constexpr std::string_view kExtension = ".segment";
constexpr std::string_view kUnfinished = ".unfinished";
constexpr uint64_t kMaxQueuedBytes = uint64_t{1} << 30;

/// Whether a file is called as this class calls its files; no other file is ever removed.
bool is_own_name(const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  return stem.size() == 2 * sizeof(PrefixKey::bytes) &&
         stem.find_first_not_of("0123456789abcdef") == std::string::npos;
}

void remove_own(const std::filesystem::path& path) {
  if (is_own_name(path)) {
    (void)::unlink(path.c_str());
  }
}

/// Marks a file as used now, for the order of eviction after a restart.
void touch(const std::filesystem::path& path) {
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

int64_t modification_time(const std::filesystem::path& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0
             ? int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec
             : 0;
}

}  // namespace

Result<std::unique_ptr<DiskTier>> DiskTier::open(const std::filesystem::path& directory, uint64_t limit_bytes,
                                                 const SegmentShape& shape,
                                                 std::shared_ptr<MemoryBudget> budget) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return fail(ErrorCode::kIo, "{}: {}", directory.string(), error.message());
  }
  const std::filesystem::path lock_path = directory / "lock";
  int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) {
    // A read-only directory can still be read from, and a read lock keeps writers away.
    lock = ::open(lock_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  }
  if (lock < 0) {
    return fail(ErrorCode::kIo, "{}: {}", lock_path.string(), std::strerror(errno));
  }
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    ::close(lock);
    return reason == EWOULDBLOCK
               ? fail(ErrorCode::kResourceExhausted, "{}: in use by another process", directory.string())
               : fail(ErrorCode::kIo, "{}: {}", lock_path.string(), std::strerror(reason));
  }
  return std::unique_ptr<DiskTier>(new DiskTier(directory, lock, limit_bytes, shape, std::move(budget)));
}

DiskTier::DiskTier(std::filesystem::path directory, int lock, uint64_t limit_bytes, const SegmentShape& shape,
                   std::shared_ptr<MemoryBudget> budget)
    : directory_(std::move(directory)),
      lock_(lock),
      limit_bytes_(limit_bytes),
      shape_(shape),
      budget_(std::move(budget)) {
  stats_.limit_bytes = limit_bytes;
  scan();
  writer_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "cache-write");
    write_loop();
  });
  reader_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "cache-read");
    read_loop();
  });
}

DiskTier::~DiskTier() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  writer_.join();
  reader_.join();
  ::close(lock_);
}

std::filesystem::path DiskTier::path_of(const PrefixKey& key) const {
  return directory_ / (hex(key) + std::string(kExtension));
}

void DiskTier::scan() {
  struct Found {
    int64_t time = 0;
    std::filesystem::path path;
    SegmentHeader header;
  };
  std::vector<Found> found;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(directory_, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::filesystem::path& path = it->path();
    if (path.extension() == kUnfinished) {  // left behind by a process that was killed
      remove_own(path);
    }
    if (path.extension() != kExtension) {
      continue;
    }
    auto header = read_segment_header(path);
    if (!header || path.stem() != hex(header->key)) {
      spdlog::debug("cache: {}", header ? path.string() + ": renamed" : header.error().message);
      ++stats_.bad_files_total;
      remove_own(path);
      continue;
    }
    found.push_back({modification_time(path), path, *header});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::pair(a.time, a.path) < std::pair(b.time, b.path);
  });
  for (const Found& file : found) {
    const SegmentHeader& header = file.header;
    stats_.bytes += header.file_bytes();
    if (header.identity != shape_.identity) {
      foreign_.push_back({file.path, header.file_bytes()});
      continue;
    }
    by_use_.push_back(header.key);
    known_[header.key] = {{header.parent, static_cast<int64_t>(header.first_block),
                           static_cast<int64_t>(header.num_blocks), header.memory_bytes()},
                          header.file_bytes(),
                          std::prev(by_use_.end())};
  }
  stats_.segments = static_cast<int64_t>(known_.size());
  (void)make_room(0);  // the limit may be lower than last time
}

std::optional<DiskTier::Entry> DiskTier::find(const PrefixKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  return found != known_.end() ? std::optional(found->second.entry) : std::nullopt;
}

void DiskTier::offer(PrefixSegment segment) {
  const uint64_t bytes = header_of(segment, shape_).file_bytes();
  {
    const std::lock_guard lock(mutex_);
    if (known_.contains(segment.key()) || queued_.contains(segment.key())) {
      return;
    }
    if (queued_bytes_ + bytes > kMaxQueuedBytes || bytes > limit_bytes_) {
      ++stats_.dropped_total;
      return;
    }
    queued_[segment.key()] = bytes;
    queued_bytes_ += bytes;
    to_write_.push_back(std::move(segment));
  }
  changed_.notify_all();
}

void DiskTier::write_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_stopping_ || !to_write_.empty(); });
    if (to_write_.empty()) {
      return;
    }
    {
      const PrefixSegment segment = std::move(to_write_.front());
      to_write_.pop_front();
      lock.unlock();
      write(segment);
      lock.lock();
      queued_bytes_ -= queued_[segment.key()];
      queued_.erase(segment.key());
    }
    changed_.notify_all();
  }
}

void DiskTier::write(const PrefixSegment& segment) {
  const SegmentHeader header = header_of(segment, shape_);
  if (!make_room(header.file_bytes())) {
    const std::lock_guard lock(mutex_);
    ++stats_.dropped_total;
    return;
  }
  const std::filesystem::path path = path_of(segment.key());
  const std::filesystem::path unfinished = directory_ / (hex(segment.key()) + std::string(kUnfinished));
  Result<void> written = write_segment(unfinished, segment, shape_);
  if (written && ::rename(unfinished.c_str(), path.c_str()) != 0) {
    written = fail(ErrorCode::kIo, "{}: {}", path.string(), std::strerror(errno));
  }
  if (!written) {
    (void)::unlink(unfinished.c_str());
  }
  const std::lock_guard lock(mutex_);
  if (!written) {
    if (stats_.write_errors_total++ == 0) {
      spdlog::warn("cache: cannot write, going on in memory alone: {}", written.error().message);
    }
    return;
  }
  ++stats_.written_total;
  stats_.bytes += header.file_bytes();
  by_use_.push_back(header.key);
  known_[header.key] = {
      {header.parent, segment.first_block, static_cast<int64_t>(header.num_blocks), header.memory_bytes()},
      header.file_bytes(),
      std::prev(by_use_.end())};
  stats_.segments = static_cast<int64_t>(known_.size());
}

/// Removes files, those of other models first, until `bytes` more fit; false if they cannot be removed. The
/// lock is not held meanwhile: the step thread must not wait for a disk.
bool DiskTier::make_room(uint64_t bytes) {
  while (true) {
    Foreign oldest;
    {
      const std::lock_guard lock(mutex_);
      if (stats_.bytes + bytes <= limit_bytes_) {
        return true;
      }
      if (!foreign_.empty()) {
        oldest = std::move(foreign_.front());
        foreign_.pop_front();
        stats_.bytes -= oldest.bytes;
      } else if (!by_use_.empty()) {
        const PrefixKey key = by_use_.front();
        oldest = {path_of(key), known_[key].file_bytes};
        forget(key);
      } else {
        return false;
      }
      ++stats_.evicted_total;
    }
    if (::unlink(oldest.path.c_str()) != 0 && errno != ENOENT) {
      const std::lock_guard lock(mutex_);
      stats_.bytes += oldest.bytes;  // it still takes its place
      return false;
    }
  }
}

/// With the lock held.
void DiskTier::forget(const PrefixKey& key) {
  const auto found = known_.find(key);
  if (found != known_.end()) {
    stats_.bytes -= found->second.file_bytes;
    by_use_.erase(found->second.use);
    known_.erase(found);
    stats_.segments = static_cast<int64_t>(known_.size());
  }
}

void DiskTier::load(std::vector<PrefixKey> keys, std::function<void(std::vector<PrefixSegment>)> done) {
  {
    const std::lock_guard lock(mutex_);
    to_load_.push_back({std::move(keys), std::move(done)});
  }
  changed_.notify_all();
}

void DiskTier::read_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_stopping_ || !to_load_.empty(); });
    if (is_stopping_) {
      return;
    }
    const Load load = std::move(to_load_.front());
    to_load_.pop_front();
    lock.unlock();
    std::vector<PrefixSegment> segments;
    for (const PrefixKey& key : load.keys) {
      const std::filesystem::path path = path_of(key);
      Result<PrefixSegment> segment = read_segment(path, key, shape_, budget_);
      if (!segment) {
        spdlog::warn("cache: a miss: {}", segment.error().message);
        (void)::unlink(path.c_str());
        const std::lock_guard relock(mutex_);
        ++stats_.bad_files_total;
        forget(key);
        break;
      }
      touch(path);
      const std::lock_guard relock(mutex_);
      ++stats_.loaded_total;
      if (const auto found = known_.find(key); found != known_.end()) {
        by_use_.splice(by_use_.end(), by_use_, found->second.use);
      }
      segments.push_back(std::move(*segment));
    }
    load.done(std::move(segments));
    lock.lock();
  }
}

void DiskTier::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queued_.empty(); });
}

DiskStats DiskTier::stats() const {
  const std::lock_guard lock(mutex_);
  DiskStats stats = stats_;
  stats.queued = static_cast<int64_t>(queued_.size());
  return stats;
}

}  // namespace hadal::cache
