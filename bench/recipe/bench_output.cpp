// Time from an output token to its events, one thread, in processor time:
//
//   bench_output
//
// The claim: the time for a token does not grow with the answer. For each kind of output and each protocol it
// prints one JSON object a line: nanoseconds a token for answers of 1,000 to 256,000 tokens, and the ratio of
// the longest to the 4,000-token one (1 is flat; short answers pay for their first and last events).

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipe/response_generator.h"
#include "thread_time.h"

namespace {

using namespace hadal::recipe;

constexpr std::string_view kOpen =
    "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"write\">\n<｜DSML｜ parameter name=\"k\" ";
constexpr std::string_view kClose = "</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";
constexpr std::string_view kCall =
    "<｜DSML｜ invoke name=\"get\">\n<｜DSML｜ parameter name=\"k\" string=\"false\">12</｜DSML｜ "
    "parameter>\n"
    "</｜DSML｜ invoke>\n";

struct Kind {
  std::string_view name;
  std::string head;
  std::string body;  ///< repeated
  std::string tail;
  bool json = false;
};

std::vector<Kind> kinds() {
  const std::string prose = "The quick brown fox, 日本語 and <b>x</b>;\nnext line.\n\n";
  return {
      {"reasoning", "", prose, "</think>ok"},
      {"content", "</think>", prose, ""},
      {"string_argument", "</think>" + std::string(kOpen) + "string=\"true\">", prose + "say \"x\" \\",
       std::string(kClose)},
      {"raw_argument", "</think>" + std::string(kOpen) + "string=\"false\">[0", ", {\"a\": [1.5, \"b\\n\"]}",
       "]" + std::string(kClose)},
      {"calls", "</think><｜DSML｜ calls>\n", std::string(kCall), "</｜DSML｜ calls>"},
      {"json_mode", "</think>```json\n[0", ", {\"a\": \"b\\n```\"}", "]\n```", true},
  };
}

/// An answer in pieces of about a token's size.
std::vector<std::string> pieces_of(const Kind& kind, size_t num_tokens) {
  constexpr size_t kTokenBytes = 4;
  std::string text = kind.head;
  while (text.size() < num_tokens * kTokenBytes) {
    text += kind.body;
  }
  text += kind.tail;
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(at + kTokenBytes, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
      ++end;
    }
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

double nanoseconds_a_token(Protocol protocol, const Kind& kind, size_t num_tokens) {
  PreparedRequest request;
  request.protocol = protocol;
  request.stream = true;
  request.thinking = true;
  request.parsing.parse_tool_calls = true;
  request.parsing.parse_json_output = kind.json;
  request.parsing.thinking_initial_stage = ThinkingStage::kReasoningStart;
  request.parsing.stop_sequences = {"\nUser:", "<END>"};
  const std::vector<std::string> pieces = pieces_of(kind, num_tokens);
  size_t event_bytes = 0;
  const auto answer = [&] {
    const auto generator = ResponseGenerator::create(request, {}, nullptr);
    for (const std::string& piece : pieces) {
      for (const Event& event : generator->push_text(piece)) {
        event_bytes += event.data.size();
      }
    }
    for (const Event& event : generator->finish(OutputFinish::kStop)) {
      event_bytes += event.data.size();
    }
  };
  const double best = best_seconds(answer, /*least_rounds=*/2, /*enough=*/0.2);
  return event_bytes == 0 ? 0 : best * 1e9 / static_cast<double>(pieces.size());
}

}  // namespace

int main() {
  constexpr std::pair<Protocol, std::string_view> kProtocols[] = {
      {Protocol::kChat, "chat"}, {Protocol::kMessages, "messages"}, {Protocol::kResponses, "responses"}};
  constexpr size_t kTokens[] = {1'000, 4'000, 16'000, 64'000, 256'000};
  for (const Kind& kind : kinds()) {
    for (const auto& [protocol, name] : kProtocols) {
      std::printf("{\"output\":\"%s\",\"protocol\":\"%s\",\"ns_per_token\":{", std::string(kind.name).c_str(),
                  std::string(name).c_str());
      double base = 0;
      double last = 0;
      for (const size_t tokens : kTokens) {
        last = nanoseconds_a_token(protocol, kind, tokens);
        base = tokens == 4'000 ? last : base;
        std::printf("%s\"%zu\":%.0f", tokens == kTokens[0] ? "" : ",", tokens, last);
      }
      std::printf("},\"longest_to_4000\":%.2f}\n", last / base);
    }
  }
}
