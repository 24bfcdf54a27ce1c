#pragma once
// Token ids on the command line.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hadal::cli {

/// "1,2,3", also with spaces or in brackets; "@FILE" reads the list from a file. Ids are in [0, vocab_size).
Result<std::vector<int32_t>> parse_token_list(std::string_view text, int64_t vocab_size);

}  // namespace hadal::cli
