#include "checkpoint/strict_json.h"

namespace hadal::checkpoint {
namespace {

constexpr size_t kMaxDepth = 32;

/// Builds the tree and refuses what a tree would hide.
class TreeBuilder : public JsonHandler {
 public:
  bool null() override { return place(nullptr); }
  bool boolean(bool value) override { return place(value); }
  bool number_integer(number_integer_t value) override { return place(value); }
  bool number_unsigned(number_unsigned_t value) override { return place(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return place(value); }
  bool string(string_t& value) override { return place(std::move(value)); }
  bool start_object(size_t /*count*/) override { return open(Json::object()); }
  bool start_array(size_t /*count*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    auto [entry, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(name);
    slot_ = &entry->second;
    return is_new || refuse(fmt::format("key \"{}\" appears twice in one object", printable(name, 100)));
  }

  Json take() { return std::move(root_); }

 protected:
  bool unexpected(std::string_view found) override { return refuse(fmt::format("unexpected {}", found)); }

 private:
  Json* add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  bool place(Json value) {
    add(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() == kMaxDepth) {
      return refuse(fmt::format("nested deeper than {} levels", kMaxDepth));
    }
    open_.push_back(add(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;  // stays valid: a container only grows while it is the innermost open one
  Json* slot_ = nullptr;     // where the value of the last key goes
};

}  // namespace

bool JsonHandler::parse_error(size_t position, const std::string& /*last_token*/,
                              const Json::exception& reason) {
  // The library's own tag in front ("[json.exception.parse_error.101] ") means nothing to a reader.
  std::string_view text = reason.what();
  if (const size_t tag_end = text.find("] "); text.starts_with('[') && tag_end != text.npos) {
    text.remove_prefix(tag_end + 2);
  }
  return refuse(fmt::format("not valid JSON at byte {}: {}", position, printable(text, 300)));
}

Result<void> read_json(std::string_view text, std::string_view source_name, JsonHandler& handler) {
  // The library takes a NUL for the end of its input and would never look at what follows.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    return fail(ErrorCode::kCorrupt, "{}: NUL byte at byte {}, expected JSON text", source_name, nul);
  }
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &handler)) {
    return fail(ErrorCode::kCorrupt, "{}: {}", source_name, handler.error());
  }
  return {};
}

Result<nlohmann::json> parse_strict_json(std::string_view text, std::string_view source_name) {
  TreeBuilder builder;
  HADAL_CHECK(read_json(text, source_name, builder));
  return builder.take();
}

}  // namespace hadal::checkpoint
