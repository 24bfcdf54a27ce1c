#include "base/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hadal {
namespace {

Result<std::pair<int, size_t>> open_regular(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const int reason = errno;
    return fail(reason == ENOENT || reason == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo, "{}: {}",
                path.string(), std::strerror(reason));
  }
  struct stat info{};
  if (::fstat(descriptor, &info) != 0) {
    const int reason = errno;
    ::close(descriptor);
    return fail(ErrorCode::kIo, "{}: {}", path.string(), std::strerror(reason));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return fail(ErrorCode::kInvalidArgument, "{}: not a regular file", path.string());
  }
  return std::pair{descriptor, static_cast<size_t>(info.st_size)};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  HADAL_TRY(const auto opened, open_regular(path));
  const auto [descriptor, size] = opened;
  if (size == 0) {
    ::close(descriptor);
    return MappedFile(nullptr, 0);
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  const int reason = errno;
  ::close(descriptor);
  if (data == MAP_FAILED) {
    return fail(ErrorCode::kIo, "{}: cannot map {} bytes: {}", path.string(), size, std::strerror(reason));
  }
  return MappedFile(static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() {
  reset();
}

void MappedFile::reset() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_);
    data_ = nullptr;
    size_ = 0;
  }
}

void MappedFile::advise(size_t offset, size_t length, Advice advice) const {
  if (offset >= size_ || length == 0) {
    return;
  }
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page * page;
  const size_t end = std::min(size_, offset + length);
  // Advice only: a refusal changes nothing that is visible.
  (void)::madvise(const_cast<std::byte*>(data_) + begin, end - begin,
                  advice == Advice::kRandom ? MADV_RANDOM : MADV_WILLNEED);
}

Result<std::string> read_text_file(const std::filesystem::path& path, size_t max_bytes) {
  HADAL_TRY(const auto opened, open_regular(path));
  const auto [descriptor, size] = opened;
  if (size > max_bytes) {
    ::close(descriptor);
    return fail(ErrorCode::kInvalidArgument, "{}: {} bytes, expected at most {}", path.string(), size,
                max_bytes);
  }
  std::string text(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(descriptor, text.data() + done, size - done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      const int reason = errno;
      ::close(descriptor);
      return fail(ErrorCode::kIo, "{}: read failed: {}", path.string(),
                  got == 0 ? "file shrank" : std::strerror(reason));
    }
    done += static_cast<size_t>(got);
  }
  ::close(descriptor);
  return text;
}

}  // namespace hadal
