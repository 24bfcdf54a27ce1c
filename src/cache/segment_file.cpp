#include "cache/segment_file.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <span>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hadal::cache {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::array<char, 8> kMagic{'H', 'A', 'D', 'A', 'L', 'K', 'V', 1};
constexpr size_t kHeaderBytes = 176;
constexpr size_t kCheckedHeaderBytes = 160;
constexpr size_t kTokenBytes = kBlockTokens * sizeof(int32_t);

using HeaderBytes = std::array<std::byte, kHeaderBytes>;
using Digest = std::array<std::byte, 16>;

class File {
 public:
  File(const std::filesystem::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  bool write(const void* data, size_t bytes) const {
    const auto* from = static_cast<const std::byte*>(data);
    while (bytes > 0) {
      const ssize_t done = ::write(fd_, from, bytes);
      if (done < 0 && errno == EINTR) {
        continue;
      }
      if (done <= 0) {
        return false;
      }
      from += done;
      bytes -= static_cast<size_t>(done);
    }
    return true;
  }
  bool read(void* data, size_t bytes) const {
    auto* to = static_cast<std::byte*>(data);
    while (bytes > 0) {
      const ssize_t done = ::read(fd_, to, bytes);
      if (done < 0 && errno == EINTR) {
        continue;
      }
      if (done <= 0) {
        return false;
      }
      to += done;
      bytes -= static_cast<size_t>(done);
    }
    return true;
  }

 private:
  int fd_;
};

class Checksum {
 public:
  Checksum() { XXH3_128bits_reset(&state_); }
  void add(const void* data, size_t bytes) { XXH3_128bits_update(&state_, data, bytes); }
  Digest finish() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_));
    return std::bit_cast<Digest>(canonical);
  }

 private:
  XXH3_state_t state_;
};

/// Calls visit(data, bytes) for everything behind the header, in order.
template <class Segment, class Visit>
void each_piece(Segment& segment, const SegmentHeader& header, Visit&& visit) {
  for (auto& block : segment.blocks) {
    visit(block.tokens.data(), kTokenBytes);
    visit(block.context.data(), header.context_ids * sizeof(int32_t));
    if (header.block_bytes > 0) {
      visit(block.block->data(), header.block_bytes);
    }
  }
}

struct Fields {
  template <class Bytes, class Header, class Copy>
  static void each(Bytes* bytes, Header& header, Copy&& copy) {
    size_t at = kMagic.size();
    const auto field = [&](auto& value) {
      copy(bytes + at, &value, sizeof(value));
      at += sizeof(value);
    };
    field(header.identity);
    field(header.parent);
    field(header.key);
    field(header.first_block);
    field(header.num_blocks);
    field(header.block_bytes);
    field(header.context_ids);
    field(header.snapshot_bytes);
  }
};

HeaderBytes encode(const SegmentHeader& header, const Digest& payload) {
  HeaderBytes bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  Fields::each(bytes.data(), header,
               [](std::byte* to, const void* from, size_t count) { std::memcpy(to, from, count); });
  std::memcpy(bytes.data() + kCheckedHeaderBytes - payload.size(), payload.data(), payload.size());
  Checksum checksum;
  checksum.add(bytes.data(), kCheckedHeaderBytes);
  const Digest digest = checksum.finish();
  std::memcpy(bytes.data() + kCheckedHeaderBytes, digest.data(), digest.size());
  return bytes;
}

struct OpenSegment {
  SegmentHeader header;
  Digest payload{};
};

Result<OpenSegment> read_header(const File& file, const std::filesystem::path& path) {
  struct stat status{};
  if (!file.is_open() || ::fstat(file.fd(), &status) != 0) {
    return fail(ErrorCode::kIo, "{}: {}", path.string(), std::strerror(errno));
  }
  HeaderBytes bytes;
  if (!S_ISREG(status.st_mode) || static_cast<uint64_t>(status.st_size) < kHeaderBytes ||
      !file.read(bytes.data(), bytes.size())) {
    return fail(ErrorCode::kCorrupt, "{}: shorter than the header of a segment", path.string());
  }
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return fail(ErrorCode::kCorrupt, "{}: no segment of format version {}", path.string(), int{kMagic[7]});
  }
  Checksum checksum;
  checksum.add(bytes.data(), kCheckedHeaderBytes);
  const Digest digest = checksum.finish();
  if (std::memcmp(bytes.data() + kCheckedHeaderBytes, digest.data(), digest.size()) != 0) {
    return fail(ErrorCode::kCorrupt, "{}: the checksum of the header is wrong", path.string());
  }
  OpenSegment open;
  Fields::each(bytes.data(), open.header,
               [](const std::byte* from, void* to, size_t count) { std::memcpy(to, from, count); });
  std::memcpy(open.payload.data(), bytes.data() + kCheckedHeaderBytes - open.payload.size(),
              open.payload.size());
  const auto& header = open.header;
  constexpr uint64_t kSane = uint64_t{1} << 40;  // keeps the products below from wrapping
  const bool is_sane = header.num_blocks > 0 && header.num_blocks < kSane / kBlockTokens &&
                       header.first_block < kSane / kBlockTokens && header.block_bytes < kSane / 1024 &&
                       header.snapshot_bytes < kSane &&
                       (header.context_ids == 0 || header.context_ids == kBlockTokens) &&
                       header.num_blocks < (uint64_t{1} << 62) / (header.block_bytes + 2 * kTokenBytes);
  if (!is_sane || header.file_bytes() != static_cast<uint64_t>(status.st_size)) {
    return fail(ErrorCode::kCorrupt, "{}: {} bytes, not the length that its header tells", path.string(),
                status.st_size);
  }
  return open;
}

}  // namespace

uint64_t SegmentHeader::file_bytes() const {
  return kHeaderBytes + snapshot_bytes +
         num_blocks * (kTokenBytes + context_ids * sizeof(int32_t) + block_bytes);
}

uint64_t SegmentHeader::memory_bytes() const {
  return snapshot_bytes + num_blocks * block_bytes + PrefixTree::node_bytes(static_cast<int64_t>(num_blocks));
}

SegmentHeader header_of(const PrefixSegment& segment, const SegmentShape& shape) {
  SegmentHeader header;
  header.identity = shape.identity;
  header.parent = segment.parent;
  header.key = segment.key();
  header.first_block = static_cast<uint64_t>(segment.first_block);
  header.num_blocks = segment.blocks.size();
  header.block_bytes = shape.block_bytes;
  header.context_ids = segment.blocks.front().context.size();
  header.snapshot_bytes = segment.snapshot->rows.size();
  return header;
}

Result<SegmentHeader> read_segment_header(const std::filesystem::path& path) {
  const File file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  HADAL_TRY(const OpenSegment open, read_header(file, path));
  return open.header;
}

Result<void> write_segment(const std::filesystem::path& path, const PrefixSegment& segment,
                           const SegmentShape& shape) {
  const SegmentHeader header = header_of(segment, shape);
  Checksum checksum;
  each_piece(segment, header, [&](const void* data, size_t bytes) { checksum.add(data, bytes); });
  checksum.add(segment.snapshot->rows.data(), segment.snapshot->rows.size());
  const HeaderBytes head = encode(header, checksum.finish());

  const File file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  bool is_written = file.is_open() && file.write(head.data(), head.size());
  each_piece(segment, header,
             [&](const void* data, size_t bytes) { is_written = is_written && file.write(data, bytes); });
  is_written = is_written && file.write(segment.snapshot->rows.data(), segment.snapshot->rows.size());
  if (!is_written) {
    return fail(ErrorCode::kIo, "{}: {}", path.string(), std::strerror(errno));
  }
  return {};
}

Result<PrefixSegment> read_segment(const std::filesystem::path& path, const PrefixKey& key,
                                   const SegmentShape& shape, const std::shared_ptr<MemoryBudget>& budget) {
  const File file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  HADAL_TRY(const OpenSegment open, read_header(file, path));
  const SegmentHeader& header = open.header;
  if (header.key != key || header.identity != shape.identity || header.block_bytes != shape.block_bytes ||
      header.snapshot_bytes != shape.snapshot_bytes) {
    return fail(ErrorCode::kCorrupt, "{}: a segment of another model or another prefix", path.string());
  }
  PrefixSegment segment;
  segment.parent = header.parent;
  segment.first_block = static_cast<int64_t>(header.first_block);
  segment.blocks.resize(header.num_blocks);
  for (PrefixBlock& block : segment.blocks) {
    block.context.resize(header.context_ids);
    block.block =
        header.block_bytes > 0 ? std::make_shared<Block>(header.block_bytes, budget) : BlockPointer();
  }
  auto snapshot = std::make_shared<StateSnapshot>(
      static_cast<int64_t>(header.first_block + header.num_blocks) * kBlockTokens, header.snapshot_bytes,
      budget);
  Checksum checksum;
  bool is_read = true;
  const auto read = [&](void* data, size_t bytes) {
    is_read = is_read && file.read(data, bytes);
    if (is_read) {
      checksum.add(data, bytes);
    }
  };
  each_piece(segment, header, read);
  read(snapshot->rows.data(), snapshot->rows.size());
  if (!is_read || checksum.finish() != open.payload) {
    return fail(ErrorCode::kCorrupt, "{}: {}", path.string(),
                is_read ? "the checksum of the content is wrong" : "cannot be read to its end");
  }
  PrefixKey at = segment.parent;
  for (PrefixBlock& block : segment.blocks) {
    at = block.key = child_key(at, block.tokens);
  }
  if (at != key) {
    return fail(ErrorCode::kCorrupt, "{}: its tokens do not make its key", path.string());
  }
  segment.snapshot = std::move(snapshot);
  return segment;
}

}  // namespace hadal::cache
