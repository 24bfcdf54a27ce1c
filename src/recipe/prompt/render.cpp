#include "recipe/prompt/render.h"

#include "recipe/prompt/builder.h"
#include "recipe/prompt/render_v4.h"
#include "recipe/prompt/render_v41.h"

namespace hadal::recipe {
namespace {

/// A guess from above in most cases, so that the text grows without moving.
size_t expected_size(const Conversation& conversation) {
  constexpr size_t kHead = 3072;
  constexpr size_t kPerMessage = 64;
  constexpr size_t kPerCall = 256;
  constexpr size_t kPerTool = 512;
  size_t bytes = kHead + conversation.tools.size() * kPerTool;
  for (const Message& message : conversation.messages) {
    bytes += kPerMessage + message.content.size() + (message.reasoning ? message.reasoning->size() : 0);
    if (message.tool_calls) {
      for (const ToolCall& call : *message.tool_calls) {
        bytes += kPerCall + call.arguments.size();
      }
    }
  }
  return bytes;
}

}  // namespace

Prompt render_prompt(Conversation&& conversation, ModelVersion version, const SpecialTokens& tokens) {
  PromptBuilder prompt(tokens, expected_size(conversation));
  if (version == ModelVersion::kV4) {
    render_v4(conversation, prompt);
  } else {
    render_v41(conversation, prompt);
  }
  return prompt.take();
}

}  // namespace hadal::recipe
