#pragma once
// Stop strings over a stream of plain text, for completions without a protocol.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/parse/marker.h"

namespace hadal::recipe {

/// Passes text on until a stop string is complete. Text that may still become one is held back, so nothing of
/// a stop string is ever passed on. The string that is complete first ends the stream; of several that end at
/// the same byte it is the first of the list. Empty stop strings are ignored.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stop_strings);

  /// The text that is safe to show now. After a stop string it is always empty.
  std::string push(std::string_view text);

  /// What was held back; at the end of the stream.
  std::string finish();

  bool stopped() const { return stopped_.has_value(); }
  /// The stop string that ended the stream, if one did.
  std::optional<std::string_view> stop_string() const;

 private:
  MarkerSet markers_;
  std::string held_;
  std::optional<size_t> stopped_;
};

}  // namespace hadal::recipe
