#include "engine/output_split.h"

#include <utility>

namespace hadal::engine {

std::vector<Output> split_output(Output output) {
  std::vector<Output> parts;
  if (output.tokens.size() <= 1) {
    parts.push_back(std::move(output));
    return parts;
  }
  const auto count = static_cast<int64_t>(output.tokens.size());
  for (int64_t i = 0; i < count; ++i) {
    Output& part = parts.emplace_back();
    part.tokens.push_back(std::move(output.tokens[static_cast<size_t>(i)]));
    part.usage = output.usage;
    part.usage.completion_tokens -= count - 1 - i;
  }
  parts.back().finish = output.finish;
  parts.back().error = std::move(output.error);
  return parts;
}

}  // namespace hadal::engine
