#pragma once
#include "recipe/conversation.h"
#include "recipe/prompt/builder.h"

namespace hadal::recipe {

/// Writes the V4 prompt. See render_prompt().
void render_v4(Conversation& conversation, PromptBuilder& prompt);

}  // namespace hadal::recipe
