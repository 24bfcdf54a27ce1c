#include "recipe/logprobs.h"

#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "recipe/json_text.h"
#include "recipe/json_value.h"

namespace hadal::recipe {

namespace {

/// The double that is written with the digits of the float: -0.1, not -0.10000000149011612. JSON has no
/// infinity: the logarithm of 0 is shown as a number far below all others.
double widened(float value) {
  if (!std::isfinite(value)) {
    return -9999.0;
  }
  char digits[32];
  const auto written = std::to_chars(std::begin(digits), std::end(digits), value);
  double wide = value;
  std::from_chars(digits, written.ptr, wide);
  return wide;
}

void append_token(std::string& out, int32_t token, float logprob, const tokenizer::Tokenizer& tokenizer) {
  const std::string_view bytes = tokenizer.token_bytes(token);
  out += "{\"token\":";
  if (find_invalid_utf8(bytes) == std::string_view::npos) {
    append_json_string(out, bytes);
  } else {
    std::string escaped;
    for (const char byte : bytes) {
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
    append_json_string(out, escaped);
  }
  out += ",\"logprob\":";
  append_json_double(out, widened(logprob), JsonStyle::kCompact);
  out += ",\"bytes\":[";
  for (size_t at = 0; at < bytes.size(); ++at) {
    out += at == 0 ? "" : ",";
    out += std::to_string(static_cast<unsigned char>(bytes[at]));
  }
  out += ']';
}

}  // namespace

void append_logprobs(std::string& out, std::span<const OutputTokenInfo> tokens,
                     const tokenizer::Tokenizer& tokenizer) {
  out += '[';
  std::string_view separator;
  for (const OutputTokenInfo& token : tokens) {
    out += separator;
    separator = ",";
    append_token(out, token.token, token.logprob.value_or(0), tokenizer);
    out += ",\"top_logprobs\":[";
    std::string_view top_separator;
    for (const TokenAlternative& top : token.top) {
      out += top_separator;
      top_separator = ",";
      append_token(out, top.token, top.logprob, tokenizer);
      out += '}';
    }
    out += "]}";
  }
  out += ']';
}

Json logprobs_json(std::span<const OutputTokenInfo> tokens, const tokenizer::Tokenizer& tokenizer) {
  std::string text;
  append_logprobs(text, tokens, tokenizer);
  return Json::parse(text, nullptr, false);
}

}  // namespace hadal::recipe
