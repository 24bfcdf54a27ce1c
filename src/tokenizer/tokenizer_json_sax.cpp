#include "tokenizer/tokenizer_json_sax.h"

#include <optional>

#include "base/log.h"

namespace hadal::tokenizer {
namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 64;

class Handler final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return value(nullptr, "null"); }
  bool boolean(bool v) override { return value(v, "a boolean"); }
  bool number_float(double v, const std::string& /*text*/) override { return value(v, "a fraction"); }
  bool number_integer(int64_t v) override { return value(v, "a negative number"); }
  bool binary(json::binary_t& /*v*/) override { return stop("binary data"); }

  bool number_unsigned(uint64_t v) override {
    if (mode_ == Mode::kVocab) {
      file_.vocab.emplace_back(std::move(key_), v);
      return true;
    }
    return value(v, "a number");
  }

  bool string(std::string& v) override {
    if (mode_ == Mode::kMerges) {
      return merge_string(v);
    }
    if (mode_ == Mode::kMergePair) {
      pair_.push_back(std::move(v));
      return pair_.size() <= 2 || merge_error("a list of more than two parts");
    }
    return value(std::move(v), "a string");
  }

  bool key(std::string& v) override {
    key_ = std::move(v);
    const bool seen =
        mode_ == Mode::kOther &&
        (open_.back()->contains(key_) ||
         (in_model() && ((key_ == "vocab" && file_.has_vocab) || (key_ == "merges" && file_.has_merges))));
    return !seen || stop(fmt::format("key \"{}\" is repeated", printable(key_, 100)));
  }

  bool start_object(size_t /*size*/) override {
    if (mode_ != Mode::kOther) {
      return wrong_value("an object");
    }
    if (in_model() && key_ == "vocab") {
      mode_ = Mode::kVocab;
      file_.has_vocab = true;
      return true;
    }
    return open(json::object());
  }

  bool end_object() override {
    if (mode_ == Mode::kVocab) {
      mode_ = Mode::kOther;
    } else {
      open_.pop_back();
    }
    return true;
  }

  bool start_array(size_t /*size*/) override {
    if (mode_ == Mode::kMerges) {
      mode_ = Mode::kMergePair;
      pair_.clear();
      return true;
    }
    if (mode_ != Mode::kOther) {
      return wrong_value("a list");
    }
    if (in_model() && key_ == "merges") {
      mode_ = Mode::kMerges;
      file_.has_merges = true;
      return true;
    }
    return open(json::array());
  }

  bool end_array() override {
    if (mode_ == Mode::kMergePair) {
      mode_ = Mode::kMerges;
      if (pair_.size() != 2) {
        return merge_error("a list of less than two parts");
      }
      file_.merges.emplace_back(std::move(pair_[0]), std::move(pair_[1]));
    } else if (mode_ == Mode::kMerges) {
      mode_ = Mode::kOther;
    } else {
      open_.pop_back();
    }
    return true;
  }

  bool parse_error(size_t position, const std::string& /*token*/, const json::exception& error) override {
    return stop(fmt::format("not valid JSON at byte {}: {}", position, printable(error.what())));
  }

  RawTokenizerFile& file() { return file_; }
  const std::string& message() const { return message_; }

 private:
  enum class Mode { kOther, kVocab, kMerges, kMergePair };

  bool stop(std::string message) {
    message_ = std::move(message);
    return false;
  }

  bool in_model() const { return open_.size() == 2 && open_.back() == model_ && model_->is_object(); }

  bool merge_error(std::string_view found) {
    return stop(fmt::format("model.merges[{}]: found {}, expected two parts, as \"a b\" or as a list",
                            file_.merges.size(), found));
  }

  bool merge_string(const std::string& text) {
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      return merge_error(fmt::format("\"{}\"", printable(text, 100)));
    }
    file_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    return true;
  }

  bool wrong_value(std::string_view kind) {
    if (mode_ == Mode::kVocab) {
      return stop(fmt::format("model.vocab[\"{}\"]: found {}, expected an id", printable(key_, 100), kind));
    }
    return merge_error(kind);
  }

  bool value(json v, std::string_view kind) {
    return mode_ == Mode::kOther ? add(std::move(v)) != nullptr : wrong_value(kind);
  }

  json* add(json v) {
    if (open_.empty()) {
      file_.rest = std::move(v);
      return &file_.rest;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(v));
      return &parent.back();
    }
    return &(parent[key_] = std::move(v));
  }

  bool open(json container) {
    if (open_.size() == kMaxDepth) {
      return stop(fmt::format("nested deeper than {} levels", kMaxDepth));
    }
    const bool is_model = open_.size() == 1 && open_.back()->is_object() && key_ == "model";
    // Addresses stay: an object is a map of nodes, and a list only grows while none of its items is open.
    open_.push_back(add(std::move(container)));
    if (is_model) {
      model_ = open_.back();
    }
    return true;
  }

  RawTokenizerFile file_;
  std::vector<json*> open_;
  const json* model_ = nullptr;
  Mode mode_ = Mode::kOther;
  std::string key_;
  std::vector<std::string> pair_;
  std::string message_;
};

}  // namespace

Result<RawTokenizerFile> parse_tokenizer_json(std::string_view json_text) {
  Handler handler;
  if (!json::sax_parse(json_text.begin(), json_text.end(), &handler)) {
    return fail(ErrorCode::kCorrupt, "{}", handler.message());
  }
  return std::move(handler.file());
}

}  // namespace hadal::tokenizer
