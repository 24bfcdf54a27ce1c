// The header of a safetensors file as hostile input. Layout: 8 bytes little-endian length N, N bytes of JSON,
// then the data part, which the tensors must tile exactly.
#include <algorithm>
#include <optional>

#include "checkpoint/safetensors.h"
#include "checkpoint/strict_json.h"

namespace hadal::checkpoint {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxTensors = 250'000;  // a whole release has 96,000
constexpr size_t kMaxRank = 16;

/// {"__metadata__": {text: text}, NAME: {"dtype": text, "shape": [..], "data_offsets": [begin, end]}, ..}
class HeaderHandler : public JsonHandler {
 public:
  explicit HeaderHandler(uint64_t data_bytes) : data_bytes_(data_bytes) {}

  std::map<std::string, TensorInfo, std::less<>> take() { return std::move(tensors_); }

  bool start_object(size_t /*count*/) override {
    if (where_ == Where::kStart) {
      where_ = Where::kTop;
      return true;
    }
    if (where_ == Where::kTop) {
      where_ = current_ == nullptr ? Where::kMetadata : Where::kTensor;
      has_dtype_ = has_shape_ = has_offsets_ = false;
      return true;
    }
    return unexpected("an object");
  }

  bool key(string_t& name) override {
    switch (where_) {
      case Where::kTop:
        return start_entry(std::move(name));
      case Where::kMetadata:
        return true;
      default:
        return start_field(name);
    }
  }

  bool string(string_t& value) override {
    if (where_ == Where::kMetadata) {
      return true;
    }
    if (where_ != Where::kTensor || field_ != Field::kDType) {
      return unexpected(fmt::format("\"{}\"", printable(value, 100)));
    }
    const auto dtype = dtype_from_name(value);
    if (!dtype) {
      return refuse_tensor(fmt::format("dtype \"{}\" is unknown", printable(value, 60)));
    }
    current_->second.dtype = *dtype;
    return true;
  }

  bool start_array(size_t /*count*/) override {
    if (where_ != Where::kTensor || field_ == Field::kDType) {
      return unexpected("an array");
    }
    where_ = Where::kNumbers;
    num_offsets_ = 0;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (where_ != Where::kNumbers) {
      return unexpected(fmt::format("{}", value));
    }
    if (field_ == Field::kShape) {
      auto& shape = current_->second.shape;
      if (shape.size() == kMaxRank || value > static_cast<uint64_t>(INT64_MAX)) {
        return refuse_tensor(
            fmt::format("shape: found extent {} at index {}, expected at most {} extents below 2^63", value,
                        shape.size(), kMaxRank));
      }
      shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (num_offsets_ == 2) {
      return refuse_tensor("data_offsets: more than two numbers");
    }
    (num_offsets_++ == 0 ? current_->second.begin : current_->second.end) = value;
    return true;
  }

  bool end_array() override {
    if (field_ == Field::kOffsets && num_offsets_ != 2) {
      return refuse_tensor(fmt::format("data_offsets: {} numbers, expected two", num_offsets_));
    }
    where_ = Where::kTensor;
    return true;
  }

  bool end_object() override {
    switch (where_) {
      case Where::kTensor:
        where_ = Where::kTop;
        return check_tensor();
      case Where::kMetadata:
        where_ = Where::kTop;
        return true;
      default:
        where_ = Where::kDone;
        return true;
    }
  }

 protected:
  bool unexpected(std::string_view found) override {
    constexpr std::string_view kExpected[] = {
        "an object", "an object", "text", "a field value", "a non-negative integer", "the end"};
    const std::string message =
        fmt::format("found {}, expected {}", found, kExpected[static_cast<size_t>(where_)]);
    if (current_ != nullptr && where_ != Where::kStart && where_ != Where::kDone) {
      return refuse_tensor(message);
    }
    return refuse(fmt::format("header: {}", message));
  }

 private:
  enum class Where { kStart, kTop, kMetadata, kTensor, kNumbers, kDone };
  enum class Field { kDType, kShape, kOffsets };

  bool start_entry(std::string name) {
    if (name == "__metadata__") {
      current_ = nullptr;
      if (std::exchange(has_metadata_, true)) {
        return refuse("header: __metadata__ appears twice");
      }
      return true;
    }
    if (tensors_.size() == kMaxTensors) {
      return refuse(fmt::format("header: more than {} tensors", kMaxTensors));
    }
    const auto [entry, is_new] = tensors_.try_emplace(std::move(name));
    current_ = &*entry;
    return is_new || refuse_tensor("appears twice");
  }

  bool start_field(const std::string& name) {
    bool* seen = nullptr;
    if (name == "dtype") {
      field_ = Field::kDType;
      seen = &has_dtype_;
    } else if (name == "shape") {
      field_ = Field::kShape;
      seen = &has_shape_;
    } else if (name == "data_offsets") {
      field_ = Field::kOffsets;
      seen = &has_offsets_;
    } else {
      return refuse_tensor(fmt::format("field \"{}\" is unknown", printable(name, 60)));
    }
    return !std::exchange(*seen, true) || refuse_tensor(fmt::format("{} appears twice", name));
  }

  /// What a tensor says of itself: complete, and a byte range that fits its shape and the file.
  bool check_tensor() {
    if (!has_dtype_ || !has_shape_ || !has_offsets_) {
      return refuse_tensor(fmt::format("{} missing", !has_dtype_   ? "dtype"
                                                     : !has_shape_ ? "shape"
                                                                   : "data_offsets"));
    }
    const TensorInfo& info = current_->second;
    if (info.begin > info.end || info.end > data_bytes_) {
      return refuse_tensor(
          fmt::format("data_offsets [{}, {}], expected an ascending range within the {} bytes of data",
                      info.begin, info.end, data_bytes_));
    }
    const auto bytes = tensor_bytes(info.dtype, info.shape);
    if (!bytes) {
      return refuse_tensor(
          fmt::format("shape [{}]: its size in bytes exceeds 64 bits", fmt::join(info.shape, ", ")));
    }
    if (*bytes != info.end - info.begin) {
      return refuse_tensor(fmt::format("data_offsets [{}, {}] hold {} bytes, expected {} for {} [{}]",
                                       info.begin, info.end, info.end - info.begin, *bytes,
                                       dtype_name(info.dtype), fmt::join(info.shape, ", ")));
    }
    return true;
  }

  bool refuse_tensor(std::string_view message) {
    return refuse(fmt::format("tensor \"{}\": {}", printable(current_->first, 200), message));
  }

  uint64_t data_bytes_;
  std::map<std::string, TensorInfo, std::less<>> tensors_;
  Where where_ = Where::kStart;
  Field field_ = Field::kDType;
  std::pair<const std::string, TensorInfo>* current_ = nullptr;  // null: in __metadata__, or none yet
  bool has_metadata_ = false;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  int num_offsets_ = 0;
};

/// The tensors must follow each other without gap or overlap from 0 to the end of the data.
Result<void> check_tiling(const std::map<std::string, TensorInfo, std::less<>>& tensors, uint64_t data_bytes,
                          std::string_view source_name) {
  using Entry = std::pair<const std::string, TensorInfo>;
  std::vector<const Entry*> order;
  order.reserve(tensors.size());
  for (const Entry& entry : tensors) {
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t reached = 0;
  const Entry* previous = nullptr;
  for (const Entry* entry : order) {
    const TensorInfo& info = entry->second;
    if (info.begin < reached) {
      return fail(ErrorCode::kCorrupt,
                  "{}: tensor \"{}\": data_offsets [{}, {}] overlap tensor \"{}\" [{}, {}]", source_name,
                  printable(entry->first, 200), info.begin, info.end, printable(previous->first, 200),
                  previous->second.begin, previous->second.end);
    }
    if (info.begin > reached) {
      return fail(
          ErrorCode::kCorrupt,
          "{}: tensor \"{}\": data_offsets begin at {}, expected {} (bytes in between belong to no tensor)",
          source_name, printable(entry->first, 200), info.begin, reached);
    }
    reached = info.end;
    previous = entry;
  }
  if (reached != data_bytes) {
    return fail(ErrorCode::kCorrupt, "{}: the tensors end at byte {} of the data, expected its end at {}",
                source_name, reached, data_bytes);
  }
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> file, uint64_t file_size,
                                                   std::string_view source_name) {
  if (file_size < kLengthBytes || file.size() < kLengthBytes) {
    return fail(ErrorCode::kCorrupt, "{}: {} bytes, expected at least the {} of a header length", source_name,
                file_size, kLengthBytes);
  }
  uint64_t length = 0;
  for (size_t index = kLengthBytes; index-- > 0;) {
    length = length << 8 | std::to_integer<uint64_t>(file[index]);
  }
  if (length > kMaxHeaderBytes || length > file_size - kLengthBytes || length > file.size() - kLengthBytes) {
    return fail(ErrorCode::kCorrupt,
                "{}: header length {}, expected at most {} and within the file of {} bytes", source_name,
                length, kMaxHeaderBytes, file_size);
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes,
                              static_cast<size_t>(length));
  if (!text.starts_with('{')) {
    return fail(ErrorCode::kCorrupt, "{}: header begins with \"{}\", expected \"{{\"", source_name,
                printable(text.substr(0, 1), 4));
  }
  const uint64_t data_bytes = file_size - kLengthBytes - length;
  HeaderHandler handler(data_bytes);
  HADAL_CHECK(read_json(text, source_name, handler));
  SafetensorsHeader header{.tensors = handler.take(), .data_offset = kLengthBytes + length};
  HADAL_CHECK(check_tiling(header.tensors, data_bytes, source_name));
  return header;
}

}  // namespace hadal::checkpoint
