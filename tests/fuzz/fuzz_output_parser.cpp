// Arbitrary output cut at arbitrary places: the parser says the same for the whole output and for its pieces,
// arguments of whole calls are JSON, all text is UTF-8, and the whole answers of a protocol do not depend on
// the cuts either.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipe/json_value.h"
#include "recipe/parse/output_parser.h"
#include "recipe/parse/stop_matcher.h"
#include "recipe/response_generator.h"

namespace {

using namespace hadal::recipe;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// The first bytes of the input choose the settings and the cuts, the rest is the output. Rare letters stand
/// for markers, so that short inputs reach deep states.
struct Input {
  ParserSettings settings;
  Protocol protocol = Protocol::kChat;
  std::vector<std::string> pieces;
  std::string text;
};

std::string_view expansion(uint8_t letter) {
  switch (letter) {
    case 0x01:
      return "</think>";
    case 0x02:
      return "<｜DSML｜";
    case 0x03:
      return "</｜DSML｜";
    case 0x04:
      return " calls>";
    case 0x05:
      return " invoke name=\"";
    case 0x06:
      return " parameter name=\"";
    case 0x07:
      return "\" string=\"true\">";
    case 0x08:
      return "\" string=\"false\">";
    case 0x0B:
      return "```json\n";
    case 0x0C:
      return "\n```";
    case 0x0E:
      return "STOP";
    case 0x0F:
      return "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"k\" "
             "string=\"false\">";
    default:
      return {};
  }
}

Input read(std::span<const uint8_t> data) {
  constexpr size_t kHead = 8;
  Input input;
  uint8_t head[kHead] = {};
  const size_t size = std::min(data.size(), kHead);
  std::copy_n(data.begin(), size, head);
  ParsingOptions& options = input.settings.options;
  options.parse_tool_calls = (head[0] & 1) == 0;
  options.parse_json_output = (head[0] & 2) != 0;
  options.starts_in_tool_calls = (head[0] & 4) != 0;
  options.thinking_initial_stage = static_cast<ThinkingStage>((head[0] >> 3) & 3);
  if ((head[0] & 32) != 0) {
    options.stop_sequences = {"STOP", "\n\n"};
  }
  if ((head[0] & 64) != 0) {
    options.stop_sequences.emplace_back("}");
  }
  // As the reference does it only where the cuts do not matter.
  input.settings.as_reference = (head[0] & 128) != 0 && !options.parse_json_output;
  input.protocol = static_cast<Protocol>(head[1] % 3);
  uint32_t step = 2;
  std::string piece;
  for (const uint8_t letter : data.subspan(size)) {
    const std::string_view whole = expansion(letter);
    const std::string_view part =
        whole.empty() ? std::string_view(reinterpret_cast<const char*>(&letter), 1) : whole;
    for (const char byte : part) {
      piece.push_back(byte);
      input.text.push_back(byte);
      step = (step * 5 + 1) % 64;
      if ((head[2 + step % 6] >> (step % 8) & 1) != 0) {
        input.pieces.push_back(std::exchange(piece, {}));
      }
    }
  }
  input.pieces.push_back(piece);
  return input;
}

struct Said {
  std::string text[3];  // reasoning, content, calls
  std::string stop;
  bool cut_off = false;
  bool operator==(const Said&) const = default;
};

Said parse(const ParserSettings& settings, const std::vector<std::string>& pieces) {
  OutputParser parser(settings, nullptr);
  Said said;
  std::string arguments;
  const auto add = [&] {
    for (const Piece& piece : parser.take()) {
      require(find_invalid_utf8(piece.text) == std::string_view::npos);
      switch (piece.kind) {
        case PieceKind::kReasoning:
          said.text[0] += piece.text;
          break;
        case PieceKind::kContent:
          said.text[1] += piece.text;
          break;
        case PieceKind::kCallStart:
          said.text[2] += "\ncall " + piece.text + " ";
          arguments.clear();
          break;
        case PieceKind::kArguments:
          said.text[2] += piece.text;
          arguments += piece.text;
          break;
        case PieceKind::kCallEnd:
          require(!piece.complete || Json::accept(arguments));
          said.text[2] += piece.complete ? ";" : "...";
          break;
      }
    }
  };
  for (const std::string& piece : pieces) {
    parser.push_text(piece);
    add();
  }
  parser.finish();
  add();
  said.stop = parser.stop_sequence().value_or("");
  said.cut_off = parser.call_cut_off();
  return said;
}

Json response(const Input& input, const std::vector<std::string>& pieces) {
  PreparedRequest request;
  request.protocol = input.protocol;
  request.thinking = input.settings.options.thinking_initial_stage != ThinkingStage::kOff;
  request.parsing = input.settings.options;
  request.custom_tools = {"f"};
  GeneratorOptions options;
  options.as_reference = input.settings.as_reference;
  const auto generator = ResponseGenerator::create(request, options, nullptr);
  const auto check = [](const std::vector<Event>& events) {
    for (const Event& event : events) {
      require(Json::accept(event.data));
    }
  };
  check(generator->start());
  for (const std::string& piece : pieces) {
    check(generator->push_text(piece, 0));
  }
  check(generator->finish(OutputFinish::kStop));
  return generator->response();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Input input = read({data, size});
  const std::vector<std::string> whole = {input.text};
  require(parse(input.settings, whole) == parse(input.settings, input.pieces));
  require(response(input, whole) == response(input, input.pieces));

  StopMatcher at_once(input.settings.options.stop_sequences);
  StopMatcher in_pieces(input.settings.options.stop_sequences);
  std::string shown = at_once.push(input.text);
  shown += at_once.finish();
  std::string pieces_shown;
  for (const std::string& piece : input.pieces) {
    pieces_shown += in_pieces.push(piece);
  }
  pieces_shown += in_pieces.finish();
  require(shown == pieces_shown && at_once.stop_string() == in_pieces.stop_string());
  return 0;
}
