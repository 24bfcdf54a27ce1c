#include "cli/model_identity.h"

#include <algorithm>
#include <vector>

#include "base/mapped_file.h"
#include "cache/prefix_key.h"
#include "cli/version.h"

namespace hadal::cli {
namespace {

constexpr size_t kWholeBytes = size_t{16} << 20;
constexpr size_t kSampleBytes = 4096;
constexpr size_t kSamples = 256;

Result<void> add_file(cache::ContentDigest& digest, const std::filesystem::path& path) {
  HADAL_TRY(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  digest.add(path.filename().string());
  digest.add(std::to_string(bytes.size()));
  if (bytes.size() <= kWholeBytes) {
    digest.add(bytes);
    return {};
  }
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  digest.add(error ? "" : std::to_string(time.time_since_epoch().count()));
  for (size_t i = 0; i < kSamples; ++i) {
    digest.add(bytes.subspan((bytes.size() - kSampleBytes) / (kSamples - 1) * i, kSampleBytes));
  }
  return {};
}

}  // namespace

Result<std::string> model_identity(const checkpoint::Checkpoint& checkpoint, const ModelSettings& settings) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(checkpoint.directory(), error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const auto& path = it->path();
    const bool decides = path.extension() == ".safetensors" || path.filename() == "config.json" ||
                         path.filename() == "tokenizer.json";
    if (decides) {
      files.push_back(path);
    }
  }
  if (error) {
    return fail(ErrorCode::kIo, "{}: {}", checkpoint.directory().string(), error.message());
  }
  std::sort(files.begin(), files.end());
  cache::ContentDigest digest;
  for (const std::string& part : {std::string(kVersion), settings.precision, settings.replay,
                                  std::to_string(settings.replay == "off" ? 0 : settings.replay_keep)}) {
    digest.add(part);
  }
  for (const auto& file : files) {
    HADAL_CHECK(add_file(digest, file));
  }
  return digest.finish();
}

}  // namespace hadal::cli
