#include "recipe/parse/stop_matcher.h"

#include <utility>

namespace hadal::recipe {

namespace {

std::vector<Marker> plain_markers(std::vector<std::string> texts) {
  std::vector<Marker> markers;
  for (std::string& text : texts) {
    markers.emplace_back(std::move(text));
  }
  return markers;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stop_strings)
    : markers_(plain_markers(std::move(stop_strings))) {}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) {
    return {};
  }
  std::string shown = std::move(held_);
  held_.clear();
  for (const char byte : text) {
    shown.push_back(byte);
    stopped_ = markers_.step(byte, Origin::kText);
    if (stopped_) {
      shown.resize(shown.size() - markers_.marker(*stopped_).size());
      return shown;
    }
  }
  held_ = shown.substr(shown.size() - markers_.longest_match());
  shown.resize(shown.size() - held_.size());
  return shown;
}

std::string StopMatcher::finish() {
  return std::exchange(held_, {});
}

std::optional<std::string_view> StopMatcher::stop_string() const {
  return stopped_ ? std::optional(markers_.marker(*stopped_).bytes()) : std::nullopt;
}

}  // namespace hadal::recipe
