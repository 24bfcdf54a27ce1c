#pragma once
// What the reading of a request left out or replaced, as sentences for the client or the log.

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hadal::recipe {

/// Bounded however long the request is: notices of the same kind are counted, the rest cut after 32.
class Notices {
 public:
  void add(std::string notice) {
    if (notices_.size() < kMost) {
      notices_.push_back(std::move(notice));
    } else {
      ++more_;
    }
  }
  void image_replaced() { ++images_; }
  void document_replaced() { ++documents_; }

  std::vector<std::string> take() {
    if (more_ != 0) {
      notices_.push_back(fmt::format("{} more things were left out", more_));
    }
    if (images_ != 0) {
      notices_.push_back(fmt::format(
          "{} image(s): the model has no images; each stands as a notice in the prompt", images_));
    }
    if (documents_ != 0) {
      notices_.push_back(
          fmt::format("{} document(s): not of a kind that can be read; each stands as a notice in the prompt",
                      documents_));
    }
    return std::move(notices_);
  }

 private:
  static constexpr size_t kMost = 32;
  std::vector<std::string> notices_;
  size_t more_ = 0;
  size_t images_ = 0;
  size_t documents_ = 0;
};

}  // namespace hadal::recipe
