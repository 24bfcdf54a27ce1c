#include "recipe/response_generator.h"

#include <utility>

#include "recipe/chat/events.h"
#include "recipe/messages/events.h"
#include "recipe/responses/events.h"

namespace hadal::recipe {

std::unique_ptr<ResponseGenerator> ResponseGenerator::create(
    const PreparedRequest& request, GeneratorOptions options,
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  switch (request.protocol) {
    case Protocol::kMessages:
      return std::make_unique<MessagesGenerator>(request, std::move(options), std::move(tokenizer));
    case Protocol::kResponses:
      return std::make_unique<ResponsesGenerator>(request, std::move(options), std::move(tokenizer));
    case Protocol::kChat:
      break;
  }
  return std::make_unique<ChatGenerator>(request, std::move(options), std::move(tokenizer));
}

}  // namespace hadal::recipe
