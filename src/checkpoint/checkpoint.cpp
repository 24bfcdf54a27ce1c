#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/mapped_file.h"
#include "base/thread_pool.h"
#include "checkpoint/model_files.h"
#include "checkpoint/shard_index.h"
#include "checkpoint/tensor_catalog.h"

namespace hadal::checkpoint {
namespace {

constexpr size_t kMaxIndexBytes = 256 << 20;
constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kPrefix = "model.";

using Views = std::map<std::string, TensorView, std::less<>>;

struct OpenedShards {
  std::vector<std::string> names;
  std::vector<SafetensorsFile> files;
};

/// Maps the shards and parses their headers, several at a time: a true checkpoint has 10 MB of headers.
Result<OpenedShards> open_shards(const std::filesystem::path& directory, std::vector<std::string> names) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& name : names) {
    HADAL_TRY(auto path, resolve_model_file(directory, name));
    paths.push_back(std::move(path));
  }
  std::vector<std::optional<Result<SafetensorsFile>>> opened(paths.size());
  ThreadPool pool(static_cast<int>(std::min<size_t>(paths.size(), 8)));
  pool.parallel_for(std::ssize(paths), [&](int64_t index) {
    opened[static_cast<size_t>(index)] = SafetensorsFile::open(paths[static_cast<size_t>(index)]);
  });
  OpenedShards out{.names = std::move(names), .files = {}};
  for (auto& result : opened) {
    HADAL_TRY(SafetensorsFile file, std::move(*result));
    out.files.push_back(std::move(file));
  }
  return out;
}

/// Index and headers must say the same of every tensor.
Result<void> check_index(const ShardIndex& index, const OpenedShards& shards,
                         const std::string& source_name) {
  size_t num_found = 0;
  uint64_t total = 0;
  for (size_t shard = 0; shard < shards.files.size(); ++shard) {
    for (const auto& [name, info] : shards.files[shard].header().tensors) {
      const auto entry = index.tensors.find(name);
      if (entry == index.tensors.end()) {
        return fail(ErrorCode::kCorrupt, "{}: tensor \"{}\": not listed, but {} holds it", source_name,
                    printable(name, 200), shards.names[shard]);
      }
      if (entry->second != shard) {
        return fail(ErrorCode::kCorrupt, "{}: tensor \"{}\": listed in {}, but {} holds it", source_name,
                    printable(name, 200), shards.names[entry->second], shards.names[shard]);
      }
      ++num_found;
      total += info.end - info.begin;
    }
  }
  if (num_found != index.tensors.size()) {
    for (const auto& [name, shard] : index.tensors) {
      if (!shards.files[shard].header().tensors.contains(name)) {
        return fail(ErrorCode::kCorrupt, "{}: tensor \"{}\": listed in {}, but that file does not hold it",
                    source_name, printable(name, 200), shards.names[shard]);
      }
    }
  }
  if (index.total_size && *index.total_size != total) {
    spdlog::warn("{}: metadata.total_size is {}, but the tensors take {} bytes", source_name,
                 *index.total_size, total);
  }
  return {};
}

/// All tensors under their names without prefix.
Result<Views> collect_views(const std::vector<SafetensorsFile>& files, const std::string& directory) {
  const std::string* with_prefix = nullptr;
  const std::string* without_prefix = nullptr;
  Views views;
  for (const SafetensorsFile& file : files) {
    for (const auto& [name, info] : file.header().tensors) {
      const bool has_prefix = name.starts_with(kPrefix);
      (has_prefix ? with_prefix : without_prefix) = &name;
      if (with_prefix != nullptr && without_prefix != nullptr) {
        return fail(ErrorCode::kCorrupt,
                    "{}: tensor \"{}\" has the prefix \"{}\" and \"{}\" has not, expected it on all or none",
                    directory, printable(*with_prefix, 200), kPrefix, printable(*without_prefix, 200));
      }
      views.emplace(has_prefix ? name.substr(kPrefix.size()) : name, file.view(info));
    }
  }
  return views;
}

Result<void> check_tensor(const Views& views, const ExpectedTensor& expected, const std::string& directory) {
  const auto found = views.find(expected.name);
  if (found == views.end()) {
    return fail(ErrorCode::kNotFound, "{}: tensor \"{}\": missing, expected {} [{}]", directory,
                expected.name, dtype_name(expected.dtype), fmt::join(expected.shape, ", "));
  }
  const TensorView& view = found->second;
  if (view.dtype != expected.dtype || view.shape != expected.shape) {
    return fail(ErrorCode::kCorrupt, "{}: tensor \"{}\": found {} [{}], expected {} [{}]", directory,
                expected.name, dtype_name(view.dtype), fmt::join(view.shape, ", "),
                dtype_name(expected.dtype), fmt::join(expected.shape, ", "));
  }
  // Kernels read elements in place. Every usual writer aligns them.
  if (reinterpret_cast<uintptr_t>(view.data) % dtype_size(view.dtype) != 0) {
    return fail(
        ErrorCode::kUnsupported,
        "{}: tensor \"{}\": its data is not aligned to {} bytes in the file; write the file anew with the "
        "safetensors library",
        directory, expected.name, dtype_size(view.dtype));
  }
  return {};
}

/// Hyper-connection tensors of layouts that give other results: hc_*_norm.weight (norms not yet folded in)
/// and hc_head_* (the mixer that the unshifted form has behind its last layer).
bool is_unsupported_mixer(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  if (name.starts_with("hc_head_")) {
    return true;
  }
  if (!name.ends_with(kWeight)) {
    return false;
  }
  name.remove_suffix(kWeight.size());
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return last.starts_with("hc_") && last.ends_with("_norm");
}

/// Presence, dtype and shape of all that the configuration calls for.
Result<void> check_tensors(const ModelConfig& config, const Views& views, const std::string& directory) {
  for (const auto& [name, view] : views) {
    if (is_unsupported_mixer(name)) {
      return fail(
          ErrorCode::kUnsupported,
          "{}: tensor \"{}\": belongs to another layout of the hyper-connections, expected the shifted form "
          "with norms folded into hc_*_fn",
          directory, printable(name, 200));
    }
  }
  size_t num_expected = 0;
  HADAL_CHECK(for_each_expected_tensor(config, [&](const ExpectedTensor& expected) {
    ++num_expected;
    return check_tensor(views, expected, directory);
  }));
  if (num_expected < views.size()) {
    spdlog::info("{}: {} tensors that the configuration does not call for are not used", directory,
                 views.size() - num_expected);
  }
  return {};
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& directory) {
  Checkpoint out;
  out.directory_ = directory;
  HADAL_TRY(out.config_, load_model_config(directory));

  auto index_path = resolve_model_file(directory, kIndexName);
  if (index_path) {
    const std::string source_name = (directory / kIndexName).string();
    HADAL_TRY(const std::string text, read_text_file(*index_path, kMaxIndexBytes));
    HADAL_TRY(const ShardIndex index, parse_shard_index(text, source_name));
    HADAL_TRY(OpenedShards shards, open_shards(directory, index.shards));
    HADAL_CHECK(check_index(index, shards, source_name));
    out.shards_ = std::move(shards.files);
  } else {
    // A small model may be one file without an index. If neither is there, the index is what to ask for.
    auto single = resolve_model_file(directory, kSingleName);
    if (index_path.error().code != ErrorCode::kNotFound ||
        (!single && single.error().code == ErrorCode::kNotFound)) {
      return tl::make_unexpected(std::move(index_path).error());
    }
    HADAL_TRY(OpenedShards shards, open_shards(directory, {std::string(kSingleName)}));
    out.shards_ = std::move(shards.files);
  }

  HADAL_TRY(out.views_, collect_views(out.shards_, directory.string()));
  HADAL_CHECK(check_tensors(out.config_, out.views_, directory.string()));
  out.advise_random_tables();
  return out;
}

void Checkpoint::advise_random_tables() const {
  // Rows of the Engram tables are read one by one from all over: read-ahead would fetch 30 times too much.
  for (const auto& [name, view] : views_) {
    if (part_of(name) != PartKind::kEngramTables) {
      continue;
    }
    for (const SafetensorsFile& shard : shards_) {
      const auto bytes = shard.mapping().bytes();
      if (std::less_equal<>()(bytes.data(), view.data) &&
          std::less<>()(view.data, bytes.data() + bytes.size())) {
        shard.mapping().advise(static_cast<size_t>(view.data - bytes.data()), view.bytes,
                               MappedFile::Advice::kRandom);
      }
    }
  }
}

bool Checkpoint::has(std::string_view name) const {
  return views_.find(name) != views_.end();
}

Result<TensorView> Checkpoint::tensor(std::string_view name) const {
  const auto found = views_.find(name);
  if (found == views_.end()) {
    return fail(ErrorCode::kNotFound, "{}: no tensor \"{}\"", directory_.string(), printable(name, 200));
  }
  return found->second;
}

std::vector<Checkpoint::Part> Checkpoint::parts() const {
  std::vector<Part> out;
  for (int kind = 0; kind < kNumPartKinds; ++kind) {
    out.push_back({.name = std::string(part_name(static_cast<PartKind>(kind)))});
  }
  for (const auto& [name, view] : views_) {
    Part& part = out[static_cast<size_t>(part_of(name))];
    part.bytes += view.bytes;
    ++part.tensors;
  }
  std::erase_if(out, [](const Part& part) { return part.tensors == 0; });
  return out;
}

uint64_t Checkpoint::total_bytes() const {
  uint64_t total = 0;
  for (const auto& [name, view] : views_) {
    total += view.bytes;
  }
  return total;
}

}  // namespace hadal::checkpoint
