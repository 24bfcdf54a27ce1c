#pragma once
// Reading the content blocks of Messages requests.

#include <vector>

#include "base/result.h"
#include "recipe/fields.h"
#include "recipe/messages/request.h"

namespace hadal::recipe::messages {

/// Where blocks stand decides which kinds there may be.
enum class BlockContext { kMessage, kAssistant, kSystem, kToolResult, kDocument };

/// Reads a list of blocks.
Result<std::vector<Block>> read_blocks(const JsonValue& value, const Place& place, BlockContext context);

}  // namespace hadal::recipe::messages
