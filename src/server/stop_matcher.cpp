#include "server/stop_matcher.h"

#include <algorithm>

namespace hadal::server {

StopMatcher::StopMatcher(const std::vector<std::string>& sequences) {
  for (const std::string& text : sequences) {
    if (text.empty()) {
      continue;
    }
    Sequence sequence{text, std::vector<size_t>(text.size() + 1, 0), 0};
    size_t border = 0;
    for (size_t i = 1; i < text.size(); ++i) {
      while (border > 0 && text[i] != text[border]) {
        border = sequence.fallback[border];
      }
      border += text[i] == text[border] ? 1 : 0;
      sequence.fallback[i + 1] = border;
    }
    sequences_.push_back(std::move(sequence));
  }
}

bool StopMatcher::push(std::string_view text, std::string& out) {
  if (is_stopped_) {
    return true;
  }
  if (sequences_.empty()) {
    out += text;
    return false;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    for (Sequence& sequence : sequences_) {
      while (sequence.matched > 0 && sequence.text[sequence.matched] != text[i]) {
        sequence.matched = sequence.fallback[sequence.matched];
      }
      sequence.matched += sequence.text[sequence.matched] == text[i] ? 1 : 0;
      if (sequence.matched == sequence.text.size()) {
        held_ += text.substr(0, i + 1);
        held_.resize(held_.size() - sequence.text.size());
        out += held_;
        held_.clear();
        is_stopped_ = true;
        return true;
      }
    }
  }
  size_t longest = 0;
  for (const Sequence& sequence : sequences_) {
    longest = std::max(longest, sequence.matched);
  }
  held_ += text;
  out.append(held_, 0, held_.size() - longest);
  held_.erase(0, held_.size() - longest);
  return false;
}

void StopMatcher::finish(std::string& out) {
  if (!is_stopped_) {
    out += held_;
    held_.clear();
  }
}

}  // namespace hadal::server
