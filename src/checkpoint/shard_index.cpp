#include "checkpoint/shard_index.h"

#include "checkpoint/strict_json.h"

namespace hadal::checkpoint {
namespace {

constexpr size_t kMaxShards = 100'000;
constexpr size_t kMaxDepth = 32;

bool is_shard_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".safetensors";
  return name.size() > kSuffix.size() && name.size() <= 255 && name.ends_with(kSuffix) &&
         name.front() != '.' && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

/// {"weight_map": {TENSOR: SHARD, ..}, "metadata": {"total_size": N, ..}}; other fields are passed over.
class IndexHandler : public JsonHandler {
 public:
  bool null() override { return skip("null"); }
  bool boolean(bool value) override { return skip(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return skip(fmt::format("{}", value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) override { return skip(text); }
  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ == 2 && section_ == Section::kMetadata && is_total_size_) {
      total_size_ = value;
    }
    return skip(fmt::format("{}", value));
  }
  bool string(string_t& value) override {
    if (!in_weight_map()) {
      return skip("text");
    }
    if (!is_shard_name(value)) {
      return refuse(
          fmt::format("tensor \"{}\": found file \"{}\", expected a plain name ending in .safetensors",
                      printable(tensor_->first, 200), printable(value, 200)));
    }
    const auto [shard, is_new] = shards_.try_emplace(std::move(value), static_cast<uint32_t>(shards_.size()));
    if (is_new && shards_.size() > kMaxShards) {
      return refuse(fmt::format("more than {} shards", kMaxShards));
    }
    tensor_->second = shard->second;
    return true;
  }
  bool start_object(size_t /*count*/) override {
    // Inside weight_map only texts may follow a key.
    return (depth_ == 1 || !in_weight_map()) ? descend() : unexpected("an object");
  }
  bool start_array(size_t /*count*/) override {
    return depth_ == 0 || section_ == Section::kWeightMap ? unexpected("an array") : descend();
  }
  bool end_object() override { return ascend(); }
  bool end_array() override { return ascend(); }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      section_ = name == "weight_map" ? Section::kWeightMap
                 : name == "metadata" ? Section::kMetadata
                                      : Section::kOther;
      return section_ != Section::kWeightMap || !std::exchange(has_weight_map_, true) ||
             refuse("weight_map appears twice");
    }
    if (in_weight_map()) {
      const auto [entry, is_new] = tensors_.try_emplace(std::move(name), 0);
      tensor_ = &*entry;
      return is_new || refuse(fmt::format("tensor \"{}\": appears twice", printable(entry->first, 200)));
    }
    is_total_size_ = name == "total_size";
    return true;
  }

  /// The finished index; shards get their final, ascending order here.
  Result<ShardIndex> take(std::string_view source_name) {
    if (tensors_.empty()) {
      return fail(ErrorCode::kCorrupt, "{}: weight_map: missing or empty, expected an entry for each tensor",
                  source_name);
    }
    ShardIndex out{.shards = {}, .tensors = std::move(tensors_), .total_size = total_size_};
    std::vector<uint32_t> final_position(shards_.size());
    for (const auto& [name, position] : shards_) {
      final_position[position] = static_cast<uint32_t>(out.shards.size());
      out.shards.push_back(name);
    }
    for (auto& [name, shard] : out.tensors) {
      shard = final_position[shard];
    }
    return out;
  }

 protected:
  bool unexpected(std::string_view found) override {
    if (in_weight_map() && tensor_ != nullptr) {
      return refuse(fmt::format("tensor \"{}\": found {}, expected a file name",
                                printable(tensor_->first, 200), found));
    }
    return refuse(fmt::format("found {}, expected an object", found));
  }

 private:
  enum class Section { kOther, kWeightMap, kMetadata };

  bool in_weight_map() const { return depth_ == 2 && section_ == Section::kWeightMap; }
  bool skip(std::string_view found) {
    const bool belongs = depth_ >= 2 ? !in_weight_map() : depth_ == 1 && section_ != Section::kWeightMap;
    return belongs || unexpected(found);
  }
  bool descend() {
    return ++depth_ <= kMaxDepth || refuse(fmt::format("nested deeper than {} levels", kMaxDepth));
  }
  bool ascend() {
    --depth_;
    return true;
  }

  std::map<std::string, uint32_t, std::less<>> tensors_;
  std::map<std::string, uint32_t, std::less<>> shards_;  // in order of first appearance
  std::optional<uint64_t> total_size_;
  Section section_ = Section::kOther;
  std::pair<const std::string, uint32_t>* tensor_ = nullptr;
  size_t depth_ = 0;
  bool has_weight_map_ = false;
  bool is_total_size_ = false;
};

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view json, std::string_view source_name) {
  IndexHandler handler;
  HADAL_CHECK(read_json(json, source_name, handler));
  return handler.take(source_name);
}

}  // namespace hadal::checkpoint
