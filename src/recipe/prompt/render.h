#pragma once
// Conversation -> prompt, byte for byte as the model was trained.

#include "recipe/conversation.h"
#include "recipe/prepared_request.h"

namespace hadal::recipe {

/// Renders the prompt, with the ranges of the special tokens that the renderer itself wrote: text of messages
/// never makes a special range, whatever it spells. Linear in the size of the conversation (n log n in the
/// number of tool calls of one turn). Consumes the image sources.
Prompt render_prompt(Conversation&& conversation, ModelVersion version, const SpecialTokens& tokens);

}  // namespace hadal::recipe
