#include "output_support.h"

#include <algorithm>
#include <array>
#include <ostream>

namespace hadal::recipe::testing {

namespace {

constexpr std::array<std::string_view, 4> kAdded = {"<｜end▁of▁sentence｜>", "</think>", "｜DSML｜",
                                                    "<｜User｜>"};

}  // namespace

void ByteTokenizer::encode_plain(std::string_view text, std::vector<int32_t>& ids) const {
  for (const char byte : text) {
    ids.push_back(static_cast<unsigned char>(byte));
  }
}

void ByteTokenizer::encode_with_special(std::string_view text, std::vector<int32_t>& ids) const {
  while (!text.empty()) {
    size_t size = 1;
    auto id = static_cast<int32_t>(static_cast<unsigned char>(text.front()));
    for (size_t index = 0; index < kAdded.size(); ++index) {
      if (text.starts_with(kAdded[index])) {
        size = kAdded[index].size();
        id = static_cast<int32_t>(256 + index);
      }
    }
    ids.push_back(id);
    text.remove_prefix(size);
  }
}

std::string ByteTokenizer::decode(std::span<const int32_t> ids, bool) const {
  std::string text;
  for (const int32_t id : ids) {
    text += token_bytes(id);
  }
  return text;
}

std::string_view ByteTokenizer::token_bytes(int32_t id) const {
  static const std::string kBytes = [] {
    std::string all;
    for (int byte = 0; byte < 256; ++byte) {
      all.push_back(static_cast<char>(byte));
    }
    return all;
  }();
  if (id < 0 || id >= vocab_size()) {
    return {};
  }
  return id < 256 ? std::string_view(kBytes).substr(static_cast<size_t>(id), 1)
                  : kAdded[static_cast<size_t>(id - 256)];
}

std::optional<int32_t> ByteTokenizer::token_id(std::string_view spelling) const {
  for (int32_t id = 0; id < vocab_size(); ++id) {
    if (token_bytes(id) == spelling) {
      return id;
    }
  }
  return std::nullopt;
}

std::shared_ptr<const tokenizer::Tokenizer> byte_tokenizer() {
  static const auto tokenizer = std::make_shared<const ByteTokenizer>();
  return tokenizer;
}

std::vector<int32_t> ids_of(std::string_view text) {
  std::vector<int32_t> ids;
  byte_tokenizer()->encode_with_special(text, ids);
  return ids;
}

std::string Dsml::parameter(std::string_view key, std::string_view value, bool string) const {
  const std::string space = spaced ? " " : "";
  return "<｜DSML｜" + space + "parameter name=\"" + std::string(key) + "\" string=\"" +
         (string ? "true" : "false") + "\">" + std::string(value) + "</｜DSML｜" + space + "parameter>\n";
}

std::string Dsml::invoke(std::string_view name, std::string_view parameters) const {
  const std::string space = spaced ? " " : "";
  return "<｜DSML｜" + space + "invoke name=\"" + std::string(name) + "\">\n" + std::string(parameters) +
         "</｜DSML｜" + space + "invoke>\n";
}

std::string Dsml::open() const {
  return spaced ? "<｜DSML｜ calls>\n" : "<｜DSML｜tool_calls>\n";
}
std::string Dsml::close() const {
  return spaced ? "</｜DSML｜ calls>" : "</｜DSML｜tool_calls>";
}

void Parsed::add(const std::vector<Piece>& pieces) {
  const auto say = [&](char what) {
    if (order.empty() || order.back() != what) {
      order.push_back(what);
    }
  };
  for (const Piece& piece : pieces) {
    switch (piece.kind) {
      case PieceKind::kReasoning:
        reasoning += piece.text;
        say('r');
        break;
      case PieceKind::kContent:
        content += piece.text;
        say('c');
        break;
      case PieceKind::kCallStart:
        calls.push_back({piece.text, ""});
        order.push_back('T');
        break;
      case PieceKind::kArguments:
        calls.back().arguments += piece.text;
        break;
      case PieceKind::kCallEnd:
        calls.back().complete = piece.complete;
        break;
    }
  }
}

std::ostream& operator<<(std::ostream& out, const Parsed& parsed) {
  out << parsed.order << " reasoning=" << Json(parsed.reasoning) << " content=" << Json(parsed.content);
  for (const ParsedCall& call : parsed.calls) {
    out << " " << call.name << "(" << call.arguments << (call.complete ? ")" : "...");
  }
  return out << " stop=" << parsed.stop << (parsed.cut_off ? " cut off" : "");
}

namespace {

Parsed rest_of(OutputParser& parser, Parsed parsed) {
  parser.finish();
  parsed.add(parser.take());
  parsed.stop = parser.stop_sequence().value_or("");
  parsed.cut_off = parser.call_cut_off();
  return parsed;
}

}  // namespace

Parsed parse_pieces(const ParserSettings& settings, const std::vector<std::string>& pieces) {
  OutputParser parser(settings, nullptr);
  Parsed parsed;
  for (const std::string& piece : pieces) {
    parser.push_text(piece);
    parsed.add(parser.take());
  }
  return rest_of(parser, std::move(parsed));
}

Parsed parse_text(const ParserSettings& settings, std::string_view text) {
  return parse_pieces(settings, {std::string(text)});
}

Parsed parse_ids(const ParserSettings& settings, const std::vector<int32_t>& ids) {
  OutputParser parser(settings, byte_tokenizer());
  Parsed parsed;
  for (const int32_t id : ids) {
    parser.push_tokens({&id, 1});
    parsed.add(parser.take());
  }
  return rest_of(parser, std::move(parsed));
}

ParserSettings tools() {
  ParserSettings settings;
  settings.options.parse_tool_calls = true;
  return settings;
}

ParserSettings thinking_tools() {
  ParserSettings settings = tools();
  settings.options.thinking_initial_stage = ThinkingStage::kReasoningStart;
  return settings;
}

std::vector<std::string> cut(std::string_view text, const std::vector<size_t>& offsets) {
  std::vector<std::string> pieces;
  size_t begin = 0;
  for (const size_t offset : offsets) {
    pieces.emplace_back(text.substr(begin, offset - begin));
    begin = offset;
  }
  pieces.emplace_back(text.substr(begin));
  return pieces;
}

PreparedRequest request_for(Protocol protocol, bool thinking) {
  PreparedRequest request;
  request.protocol = protocol;
  request.stream = true;
  request.thinking = thinking;
  request.parsing = thinking ? thinking_tools().options : tools().options;
  return request;
}

GeneratorOptions generator_options() {
  GeneratorOptions options;
  options.response_id = "id-1";
  options.response_model = "model-1";
  options.created_unix_seconds = 1700000000;
  options.prompt_tokens = 100;
  options.cached_tokens = 60;
  options.call_id_seed = 7;
  return options;
}

namespace {

void append(std::vector<Event>& all, std::vector<Event> events) {
  all.insert(all.end(), std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
}

}  // namespace

Streamed stream(const PreparedRequest& request, const std::vector<std::string>& pieces, OutputFinish finish) {
  const auto generator = ResponseGenerator::create(request, generator_options(), nullptr);
  Streamed streamed;
  append(streamed.events, generator->start());
  for (const std::string& piece : pieces) {
    append(streamed.events, generator->push_text(piece));
  }
  append(streamed.events, generator->finish(finish));
  streamed.response = generator->response();
  return streamed;
}

Streamed stream_ids(const PreparedRequest& request, const std::vector<int32_t>& ids, OutputFinish finish) {
  const auto generator = ResponseGenerator::create(request, generator_options(), byte_tokenizer());
  Streamed streamed;
  append(streamed.events, generator->start());
  for (const int32_t id : ids) {
    append(streamed.events, generator->push_tokens({OutputTokenInfo{.token = id, .logprob = {}, .top = {}}}));
  }
  append(streamed.events, generator->finish(finish));
  streamed.response = generator->response();
  return streamed;
}

}  // namespace hadal::recipe::testing
