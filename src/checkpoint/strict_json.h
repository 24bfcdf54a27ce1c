#pragma once
// JSON of checkpoint files, read strictly: nlohmann's reader keeps the last of two equal keys without a
// word, so everything here goes through its event interface instead.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/result.h"

namespace hadal::checkpoint {

/// Base of the event handlers of this folder. Every event is refused unless a derived class accepts it;
/// the first refusal ends the parse and is kept in `error()`.
class JsonHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Json = nlohmann::json;

  bool null() override { return unexpected("null"); }
  bool boolean(bool value) override { return unexpected(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return unexpected(fmt::format("{}", value)); }
  bool number_unsigned(number_unsigned_t value) override { return unexpected(fmt::format("{}", value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) override { return unexpected(text); }
  bool string(string_t& value) override { return unexpected(fmt::format("\"{}\"", printable(value, 100))); }
  bool binary(binary_t& /*value*/) override { return unexpected("binary data"); }
  bool start_object(size_t /*count*/) override { return unexpected("an object"); }
  bool key(string_t& name) override { return unexpected(fmt::format("key \"{}\"", printable(name, 100))); }
  bool end_object() override { return unexpected("}"); }
  bool start_array(size_t /*count*/) override { return unexpected("an array"); }
  bool end_array() override { return unexpected("]"); }
  bool parse_error(size_t position, const std::string& last_token, const Json::exception& reason) override;

  const std::string& error() const { return error_; }

 protected:
  bool refuse(std::string message) {
    error_ = std::move(message);
    return false;
  }
  /// Refuses `found` with what this place expects.
  virtual bool unexpected(std::string_view found) = 0;

 private:
  std::string error_;
};

/// Runs `handler` over `text`, which must be one JSON value with nothing behind it. A refusal is kCorrupt
/// and starts with `source_name`.
Result<void> read_json(std::string_view text, std::string_view source_name, JsonHandler& handler);

/// The whole document as a tree. Refuses equal keys in one object and nesting beyond 32.
Result<nlohmann::json> parse_strict_json(std::string_view text, std::string_view source_name);

}  // namespace hadal::checkpoint
