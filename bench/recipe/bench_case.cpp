// One request and one answer as hadal handles them, timed; compare.py runs it beside the reference package:
//
//   bench_case TOKENIZER.json CASE.json RESULT.json
//
// CASE: {"protocol", "body": request body as text, "chunks": [[token ids], ...]}. RESULT: {"render_us": from
// the body to the prompt's token ids, "parse_us": from the chunks to events and response, "ids", "events",
// "response"}. Least processor time of one thread over about half a second.

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "recipe/prepared_request.h"
#include "recipe/prompt/encode.h"
#include "recipe/response_generator.h"
#include "thread_time.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace hadal::recipe;
using hadal::tokenizer::Tokenizer;

struct Answer {
  std::vector<Event> events;
  Json response;
};

Answer answer(const PreparedRequest& request, const std::vector<std::vector<OutputTokenInfo>>& chunks,
              const std::shared_ptr<const Tokenizer>& tokenizer) {
  GeneratorOptions options;
  options.response_id = "resp-bench";
  options.response_model = "bench-model";
  options.system_fingerprint = "fp-bench";
  options.as_reference = true;
  const auto generator = ResponseGenerator::create(request, options, tokenizer);
  Answer result;
  const auto add = [&](std::vector<Event> events) {
    std::move(events.begin(), events.end(), std::back_inserter(result.events));
  };
  add(generator->start());
  for (const auto& chunk : chunks) {
    add(generator->push_tokens(chunk));
  }
  add(generator->finish(OutputFinish::kStop));
  result.response = generator->response();
  return result;
}

int fail(const std::string& message) {
  std::fprintf(stderr, "bench_case: %s\n", message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    return fail("usage: bench_case TOKENIZER.json CASE.json RESULT.json");
  }
  const auto tokenizer = Tokenizer::load(argv[1]);
  if (!tokenizer) {
    return fail(tokenizer.error().message);
  }
  const auto test_case = nlohmann::json::parse(std::ifstream(argv[2]), nullptr, false);
  if (!test_case.is_object()) {
    return fail(std::string(argv[2]) + " is not a JSON object");
  }
  const auto name = test_case.at("protocol").get<std::string>();
  const Protocol protocol =
      name == "chat" ? Protocol::kChat : (name == "messages" ? Protocol::kMessages : Protocol::kResponses);
  const auto body = test_case.at("body").get<std::string>();
  std::vector<std::vector<OutputTokenInfo>> chunks;
  for (const auto& ids : test_case.at("chunks")) {
    chunks.emplace_back();
    for (const auto& id : ids) {
      chunks.back().push_back({id.get<int32_t>(), std::nullopt, {}});
    }
  }
  const auto prepared = prepare_request(protocol, body, {});
  if (!prepared) {
    return fail(prepared.error().message);
  }
  const auto ids = encode_prompt(prepared->prompt, **tokenizer);
  if (!ids) {
    return fail(ids.error().message);
  }
  nlohmann::json result;
  result["render_us"] = 1e6 * best_seconds([&] {
                          const auto again = prepare_request(protocol, body, {});
                          (void)encode_prompt(again->prompt, **tokenizer);
                        });
  result["parse_us"] = 1e6 * best_seconds([&] { (void)answer(*prepared, chunks, *tokenizer); });
  const Answer once = answer(*prepared, chunks, *tokenizer);
  result["ids"] = *ids;
  result["events"] = nlohmann::json::array();
  for (const Event& event : once.events) {
    result["events"].push_back(nlohmann::json::parse(event.data, nullptr, false));
  }
  result["response"] = nlohmann::json::parse(once.response.dump(), nullptr, false);
  std::ofstream(argv[3]) << result.dump();
  return 0;
}
