#pragma once
// The input items of a Responses request, checked in their order and turned into a conversation.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "recipe/content.h"
#include "recipe/responses/request.h"
#include "recipe/responses/tools.h"

namespace hadal::recipe::responses {

/// Definitions that become known at a message of the conversation.
struct KnownFrom {
  size_t message = 0;
  std::vector<std::string> names;
};

class HistoryConverter {
 public:
  /// The first `num_previous` items are those of earlier responses.
  HistoryConverter(std::span<Item> items, size_t num_previous, ToolTable& tools, Conversation& conversation,
                   ModelVersion version, const ConversionOptions& options);

  Result<void> convert();

  const std::vector<KnownFrom>& known_from() const { return known_from_; }

 private:
  /// The name of an item in errors.
  std::string place_of(size_t index) const;
  Result<void> check_images(size_t index);
  Result<void> check_image(Item& item, size_t index, size_t number);
  Result<void> convert_item(size_t index);
  Result<void> convert_message(size_t index);
  Result<void> convert_reasoning(const Item& item);
  Result<void> convert_call(size_t index);
  Result<void> convert_output(size_t index);
  void convert_content(const Item& item, size_t index);
  void add_file(const ContentPart& part, bool is_user);
  /// Ends the assistant's turn, if one is open, and what answers its calls.
  Result<void> finish_turn();
  void append_answers();
  std::string_view first_unanswered() const;
  Message& open_turn();

  std::span<Item> items_;
  const size_t num_previous_;
  ToolTable& tools_;
  Conversation& conversation_;
  ContentBuilder content_;
  const bool is_v4_;
  /// Whether summaries stand in for reasoning that a client did not give back; not where giving it back is
  /// demanded.
  const bool uses_summaries_;
  /// Whether the last message is a turn of the assistant to which more may be added.
  bool turn_is_open_ = false;
  /// Calls of the last turn that are not answered yet -> place among the calls; and the answers by place.
  std::map<std::string_view, size_t> unanswered_;
  std::map<size_t, Message> answers_;
  std::vector<std::vector<std::string>> found_;  ///< tools found by answers of the last turn
  std::map<std::string_view, bool> all_calls_;   ///< every call id so far; whether it was answered
  std::vector<KnownFrom> known_from_;
};

}  // namespace hadal::recipe::responses
