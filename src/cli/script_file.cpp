#include "cli/script_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/mapped_file.h"
#include "checkpoint/strict_json.h"

namespace hadal::cli {
namespace {

using engine::ScriptedAnswer;
using Json = nlohmann::json;

constexpr size_t kMaxBytes = size_t{256} << 20;
constexpr int64_t kMaxDelayMs = 3'600'000;
constexpr std::array<std::string_view, 5> kFields{"pieces", "token_ids", "finish", "delay_ms",
                                                  "prompt_tokens"};

std::string show(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), 60);
}

Result<int64_t> whole_number(const Json& value, std::string_view field, int64_t highest) {
  const bool is_in_range =
      value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(highest);
  if (!is_in_range) {
    return fail(ErrorCode::kInvalidArgument, "{}: found {}, expected a whole number from 0 to {}", field,
                show(value), highest);
  }
  return value.get<int64_t>();
}

Result<void> expect_array(const Json& value, std::string_view field, std::string_view of) {
  if (!value.is_array()) {
    return fail(ErrorCode::kInvalidArgument, "{}: found {}, expected an array of {}", field, show(value), of);
  }
  return {};
}

Result<std::vector<std::vector<int32_t>>> read_pieces(const Json& value,
                                                      const tokenizer::Tokenizer& tokenizer) {
  HADAL_CHECK(expect_array(value, "pieces", "strings"));
  std::vector<std::string> pieces;
  for (size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_string()) {
      return fail(ErrorCode::kInvalidArgument, "pieces[{}]: found {}, expected a string", i, show(value[i]));
    }
    pieces.push_back(value[i].get<std::string>());
  }
  return encode_pieces(pieces, tokenizer);
}

Result<std::vector<std::vector<int32_t>>> read_token_ids(const Json& value, int32_t vocab_size) {
  HADAL_CHECK(expect_array(value, "token_ids", "arrays of token ids"));
  std::vector<std::vector<int32_t>> pieces;
  for (size_t i = 0; i < value.size(); ++i) {
    HADAL_CHECK(expect_array(value[i], fmt::format("token_ids[{}]", i), "token ids"));
    std::vector<int32_t>& ids = pieces.emplace_back();
    for (size_t j = 0; j < value[i].size(); ++j) {
      HADAL_TRY(const int64_t id,
                whole_number(value[i][j], fmt::format("token_ids[{}][{}]", i, j), int64_t{vocab_size} - 1));
      ids.push_back(static_cast<int32_t>(id));
    }
  }
  return pieces;
}

Result<ScriptedAnswer> read_answer(const Json& line, const tokenizer::Tokenizer& tokenizer) {
  if (!line.is_object()) {
    return fail(ErrorCode::kInvalidArgument, "found {}, expected an object", show(line));
  }
  for (const auto& member : line.items()) {
    if (std::find(kFields.begin(), kFields.end(), member.key()) == kFields.end()) {
      return fail(ErrorCode::kInvalidArgument, "{}: unknown field; expected {}", printable(member.key(), 60),
                  fmt::join(kFields, ", "));
    }
  }
  if (line.contains("pieces") == line.contains("token_ids")) {
    return fail(ErrorCode::kInvalidArgument, "pieces: expected this or token_ids, and not both");
  }
  ScriptedAnswer answer;
  if (line.contains("pieces")) {
    HADAL_TRY(answer.pieces, read_pieces(line["pieces"], tokenizer));
  } else {
    HADAL_TRY(answer.pieces, read_token_ids(line["token_ids"], tokenizer.vocab_size()));
  }
  if (const auto finish = line.find("finish"); finish != line.end()) {
    if (*finish != "stop" && *finish != "length") {
      return fail(ErrorCode::kInvalidArgument, "finish: found {}, expected \"stop\" or \"length\"",
                  show(*finish));
    }
    answer.finish = *finish == "stop" ? engine::FinishReason::kStop : engine::FinishReason::kLength;
  }
  if (const auto delay = line.find("delay_ms"); delay != line.end()) {
    HADAL_TRY(const int64_t milliseconds, whole_number(*delay, "delay_ms", kMaxDelayMs));
    answer.delay = std::chrono::milliseconds(milliseconds);
  }
  if (const auto count = line.find("prompt_tokens"); count != line.end()) {
    HADAL_TRY(answer.prompt_tokens,
              whole_number(*count, "prompt_tokens", std::numeric_limits<int32_t>::max()));
  }
  return answer;
}

}  // namespace

std::vector<std::vector<int32_t>> encode_pieces(const std::vector<std::string>& pieces,
                                                const tokenizer::Tokenizer& tokenizer) {
  std::string text;
  std::vector<size_t> ends;  // of each piece in the whole text
  for (const std::string& piece : pieces) {
    text += piece;
    ends.push_back(text.size());
  }
  std::vector<int32_t> whole;
  tokenizer.encode_with_special(text, whole);

  std::vector<std::vector<int32_t>> result(pieces.size());
  size_t piece = 0;
  size_t done = 0;  // bytes that have their ids
  const auto encode_until = [&](size_t end) {
    while (done < end) {
      while (ends[piece] <= done) {
        ++piece;
      }
      const size_t next = std::min(end, ends[piece]);
      tokenizer.encode_plain(std::string_view(text).substr(done, next - done), result[piece]);
      done = next;
    }
  };
  size_t at = 0;
  for (const int32_t id : whole) {
    const size_t length = tokenizer.token_bytes(id).size();
    if (tokenizer.is_added_token(id)) {
      encode_until(at);
      done = at + length;
      while (ends[piece] < done) {
        ++piece;
      }
      result[piece].push_back(id);
    }
    at += length;
  }
  encode_until(text.size());
  return result;
}

Result<std::vector<ScriptedAnswer>> parse_script(std::string_view text, std::string_view source_name,
                                                 const tokenizer::Tokenizer& tokenizer) {
  std::vector<ScriptedAnswer> script;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) {
      continue;
    }
    const std::string place = fmt::format("{}:{}", source_name, number);
    auto parsed = checkpoint::parse_strict_json(line, place);
    if (!parsed) {
      return fail(ErrorCode::kInvalidArgument, "{}", parsed.error().message);
    }
    auto answer = read_answer(*parsed, tokenizer);
    if (!answer) {
      return fail_within(place, std::move(answer.error()));
    }
    script.push_back(std::move(*answer));
  }
  if (script.empty()) {
    return fail(ErrorCode::kInvalidArgument, "{}: no answers, expected one on each line", source_name);
  }
  return script;
}

Result<std::vector<ScriptedAnswer>> read_script(const std::filesystem::path& file,
                                                const tokenizer::Tokenizer& tokenizer) {
  HADAL_TRY(const std::string text, read_text_file(file, kMaxBytes));
  return parse_script(text, file.string(), tokenizer);
}

}  // namespace hadal::cli
