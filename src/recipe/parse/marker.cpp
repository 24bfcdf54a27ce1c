#include "recipe/parse/marker.h"

#include <algorithm>

namespace hadal::recipe {

Marker::Marker(std::string bytes, size_t special_begin, size_t special_end)
    : bytes_(std::move(bytes)),
      special_begin_(special_begin),
      special_end_(special_end),
      fallback_(bytes_.size() + 1, 0) {
  for (size_t at = 1, prefix = 0; at < bytes_.size(); ++at) {
    const auto same = [&](size_t other) {
      return bytes_[at] == bytes_[other] && special(at) == special(other);
    };
    while (prefix > 0 && !same(prefix)) {
      prefix = fallback_[prefix];
    }
    prefix += same(prefix) ? 1 : 0;
    fallback_[at + 1] = prefix;
  }
}

MarkerSet::MarkerSet(std::vector<Marker> markers) : markers_(std::move(markers)) {
  for (const Marker& marker : markers_) {
    if (marker.size() > 0) {
      starts_[static_cast<uint8_t>(marker.bytes().front())] = true;
    }
  }
  reset();
}

size_t MarkerSet::longest_match() const {
  return matched_.empty() ? 0 : *std::max_element(matched_.begin(), matched_.end());
}

}  // namespace hadal::recipe
