#pragma once
// Checkpoints for tests: headers are real, data are holes in sparse files.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"

namespace hadal::checkpoint {

namespace fs = std::filesystem;
using nlohmann::json;

/// A new directory, removed with all that is in it.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (fs::temp_directory_path() / "hadal-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.is_open()) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_file(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

inline std::string length_prefix(uint64_t length) {
  std::string out(8, '\0');
  for (char& byte : out) {
    byte = static_cast<char>(length & 0xff);
    length >>= 8;
  }
  return out;
}

/// A safetensors file with this header text and `data_bytes` zeros that take no disk.
inline void write_sparse_shard(const fs::path& path, const std::string& header, uint64_t data_bytes) {
  write_file(path, length_prefix(header.size()) + header);
  fs::resize_file(path, 8 + header.size() + data_bytes);
}

inline fs::path data_path(const std::string& name) {
  return fs::path(HADAL_CHECKPOINT_DATA) / name;
}

inline json config_of(const std::string& name) {
  return json::parse(read_file(data_path(name) / "config.json"));
}

/// Tensors of one shard as name -> {"dtype":, "shape":}; offsets are made when it is written.
using ShardTensors = std::map<std::string, json>;

/// A checkpoint that a test changes before it is written.
struct CheckpointDraft {
  json config;
  std::map<std::string, ShardTensors> shards;
  json index = json::object();  ///< weight_map; filled by write() if empty

  /// One of the checkpoints in the data folder.
  static CheckpointDraft load(const std::string& name) {
    CheckpointDraft out{.config = config_of(name), .shards = {}};
    for (const auto& entry : fs::directory_iterator(data_path(name))) {
      if (entry.path().extension() == ".header") {
        json header = json::parse(read_file(entry.path()));
        header.erase("__metadata__");
        ShardTensors& shard = out.shards[entry.path().stem().string()];
        for (auto& [tensor, info] : header.items()) {
          info.erase("data_offsets");
          shard[tensor] = info;
        }
      }
    }
    EXPECT_FALSE(out.shards.empty()) << name;
    return out;
  }

  ShardTensors& first_shard() { return shards.begin()->second; }

  json weight_map() const {
    json map = json::object();
    for (const auto& [file, tensors] : shards) {
      for (const auto& [tensor, info] : tensors) {
        map[tensor] = file;
      }
    }
    return map;
  }

  void write(const fs::path& directory) const {
    write_file(directory / "config.json", config.dump());
    write_file(directory / "model.safetensors.index.json",
               json{{"weight_map", index.empty() ? weight_map() : index}}.dump());
    for (const auto& [file, tensors] : shards) {
      write_shard(directory / file, tensors);
    }
  }

  static void write_shard(const fs::path& path, const ShardTensors& tensors) {
    std::vector<std::pair<std::string, json>> order(tensors.begin(), tensors.end());
    const auto element = [](const json& info) {
      return dtype_size(dtype_from_name(info["dtype"].get<std::string>()).value_or(DType::kU8));
    };
    std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
      const size_t a_size = element(a.second);
      const size_t b_size = element(b.second);
      return a_size != b_size ? a_size > b_size : a.first < b.first;
    });
    json header = json::object();
    uint64_t offset = 0;
    for (auto& [name, info] : order) {
      uint64_t bytes = element(info);
      for (const json& extent : info["shape"]) {
        bytes *= extent.get<uint64_t>();
      }
      info["data_offsets"] = {offset, offset + bytes};
      offset += bytes;
      header[name] = info;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    write_sparse_shard(path, text, offset);
  }
};

}  // namespace hadal::checkpoint
