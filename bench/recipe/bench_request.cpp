// Time from a request body to its prompt, one thread, in processor time:
//
//   bench_request [TOKENIZER.json]
//
// For each protocol and for conversations of 5 kB to 5 MB it prints one JSON object a line: microseconds for
// reading and rendering, MB of body a second, and with a tokenizer also microseconds for the token ids. The
// claim: MB a second do not fall with the length. compare.py has the reference package beside it.

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "recipe/json_text.h"
#include "recipe/prepared_request.h"
#include "recipe/prompt/encode.h"
#include "thread_time.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace hadal::recipe;

/// Text as agents send it: prose, code, some of it not English.
std::string sample_text(size_t bytes, uint32_t& state) {
  static const std::string_view pieces[] = {"The quick brown fox jumps over the lazy dog. ",
                                            "for (int i = 0; i < n; ++i) {\n  sum += a[i];\n}\n",
                                            "日本語の文章、",
                                            "\"quoted\" \\ back\tslash ",
                                            "https://example.org/a?b=c&d=e ",
                                            "12345.678 ",
                                            "naïve café — ok\n\n",
                                            "def f(x):\n    return {\"k\": [x, None]}\n"};
  std::string text;
  while (text.size() < bytes) {
    state = state * 1664525 + 1013904223;
    text += pieces[(state >> 24) % std::size(pieces)];
  }
  return text;
}

std::string quoted(const std::string& text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

constexpr std::string_view kParameters =
    R"({"type":"object","properties":{"path":{"type":"string","description":"Path of the file"},"limit":{"type":"integer","minimum":1}},"required":["path"]})";

std::string chat_body(size_t bytes) {
  uint32_t state = 1;
  std::string body =
      R"({"model":"DeepSeek-V4.1-Flash","tools":[{"type":"function","function":{"name":"read","description":"Reads a file.","parameters":)" +
      std::string(kParameters) + R"(}}],"messages":[{"role":"system","content":"You are an agent."})";
  for (int turn = 0; body.size() < bytes; ++turn) {
    const std::string id = "call_" + std::to_string(turn);
    body += R"(,{"role":"user","content":)" + quoted(sample_text(300, state)) + "}";
    body +=
        R"(,{"role":"assistant","content":)" + quoted(sample_text(100, state)) + R"(,"reasoning_content":)" +
        quoted(sample_text(400, state)) + R"(,"tool_calls":[{"id":")" + id +
        R"(","type":"function","function":{"name":"read","arguments":)" +
        quoted("{\"path\":" + quoted(sample_text(60, state)) + ",\"limit\":" + std::to_string(turn) + "}") +
        "}}]}";
    body += R"(,{"role":"tool","tool_call_id":")" + id + R"(","content":)" +
            quoted(sample_text(1000, state)) + "}";
    body += R"(,{"role":"assistant","content":)" + quoted(sample_text(300, state)) + "}";
  }
  return body + R"(,{"role":"user","content":"go on"}]})";
}

std::string messages_body(size_t bytes) {
  uint32_t state = 2;
  std::string body =
      R"({"model":"DeepSeek-V4.1-Flash","max_tokens":1000,"system":"You are an agent.","tools":[{"name":"read","description":"Reads a file.","input_schema":)" +
      std::string(kParameters) + R"(}],"messages":[)";
  for (int turn = 0; body.size() < bytes; ++turn) {
    const std::string id = "toolu_" + std::to_string(turn);
    body += turn == 0 ? R"({"role":"user","content":[)" : ",";
    body += R"({"type":"text","text":)" + quoted(sample_text(300, state)) + "}]}";
    body += R"(,{"role":"assistant","content":[{"type":"thinking","signature":"s","thinking":)" +
            quoted(sample_text(400, state)) + R"(},{"type":"text","text":)" +
            quoted(sample_text(200, state)) + R"(},{"type":"tool_use","id":")" + id +
            R"(","name":"read","input":{"path":)" + quoted(sample_text(60, state)) +
            ",\"limit\":" + std::to_string(turn) + "}}]}";
    body += R"(,{"role":"user","content":[{"type":"tool_result","tool_use_id":")" + id + R"(","content":)" +
            quoted(sample_text(1000, state)) + "}";
  }
  return body + "]}]}";
}

std::string responses_body(size_t bytes) {
  uint32_t state = 3;
  std::string body =
      R"({"model":"DeepSeek-V4.1-Flash","instructions":"You are an agent.","tools":[{"type":"function","name":"read","description":"Reads a file.","parameters":)" +
      std::string(kParameters) + R"(}],"input":[{"role":"user","content":"hi"})";
  for (int turn = 0; body.size() < bytes; ++turn) {
    const std::string id = "fc_" + std::to_string(turn);
    body += R"(,{"role":"user","content":[{"type":"input_text","text":)" + quoted(sample_text(300, state)) +
            "}]}";
    body += R"(,{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":)" +
            quoted(sample_text(400, state)) + "}]}";
    body += R"(,{"type":"function_call","name":"read","call_id":")" + id + R"(","arguments":)" +
            quoted("{\"path\":" + quoted(sample_text(60, state)) + "}") + "}";
    body += R"(,{"type":"function_call_output","call_id":")" + id + R"(","output":)" +
            quoted(sample_text(1000, state)) + "}";
    body += R"(,{"type":"message","role":"assistant","content":[{"type":"output_text","text":)" +
            quoted(sample_text(300, state)) + "}]}";
  }
  return body + "]}";
}

}  // namespace

int main(int argc, char** argv) {
  std::shared_ptr<const hadal::tokenizer::Tokenizer> tokenizer;
  if (argc > 1) {
    auto loaded = hadal::tokenizer::Tokenizer::load(argv[1]);
    if (!loaded) {
      std::fprintf(stderr, "%s\n", loaded.error().message.c_str());
      return 1;
    }
    tokenizer = *loaded;
  }
  struct Kind {
    const char* name;
    Protocol protocol;
    std::string (*make)(size_t);
  };
  for (const Kind& kind :
       {Kind{"chat", Protocol::kChat, chat_body}, Kind{"messages", Protocol::kMessages, messages_body},
        Kind{"responses", Protocol::kResponses, responses_body}}) {
    for (const size_t bytes : {size_t{5'000}, size_t{50'000}, size_t{500'000}, size_t{5'000'000}}) {
      const std::string body = kind.make(bytes);
      const auto prepared = prepare_request(kind.protocol, body, {});
      if (!prepared) {
        std::fprintf(stderr, "%s: %s\n", kind.name, prepared.error().message.c_str());
        return 1;
      }
      const double render = best_seconds([&] { (void)prepare_request(kind.protocol, body, {}); });
      std::printf(R"({"protocol":"%s","bytes":%zu,"render_us":%.1f,"mb_per_s":%.0f)", kind.name, body.size(),
                  render * 1e6, static_cast<double>(body.size()) / render / 1e6);
      if (tokenizer) {
        const auto ids = encode_prompt(prepared->prompt, *tokenizer);
        if (!ids) {
          std::fprintf(stderr, "%s\n", ids.error().message.c_str());
          return 1;
        }
        const double encode = best_seconds([&] { (void)encode_prompt(prepared->prompt, *tokenizer); });
        std::printf(R"(,"tokens":%zu,"encode_us":%.1f)", ids->size(), encode * 1e6);
      }
      std::printf("}\n");
      std::fflush(stdout);
    }
  }
  return 0;
}
