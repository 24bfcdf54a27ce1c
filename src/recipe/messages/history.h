#pragma once
// The messages of a Messages request, checked in their order and turned into a conversation.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "recipe/content.h"
#include "recipe/messages/request.h"

namespace hadal::recipe::messages {

/// Definitions that become known at a message of the conversation, by the names of the tools.
struct KnownFrom {
  size_t message = 0;
  std::vector<std::string_view> names;
};

class HistoryConverter {
 public:
  /// `tool_names` are those of all declared tools.
  HistoryConverter(std::span<const RequestMessage> messages, std::span<const std::string_view> tool_names,
                   Conversation& conversation, ModelVersion version, const ConversionOptions& options,
                   Notices& notices);

  Result<void> convert();

  /// Where tools that were found or added become known (V4.1 only).
  const std::vector<KnownFrom>& known_from() const { return known_from_; }

 private:
  Result<void> convert_user(size_t index);
  Result<void> convert_user_block(size_t index, size_t number, const Block& block);
  Result<void> convert_result(size_t index, size_t number, const Block& block);
  Result<void> convert_assistant(size_t index);
  Result<void> convert_assistant_block(size_t index, size_t number, const Block& block, Message& turn);
  Result<void> convert_system(size_t index);
  Result<void> check_tool_reference(size_t index, size_t number, std::string_view name) const;
  Result<void> add_image(const ImageField& image, const std::string& path, const std::string& error_path);
  Result<void> refuse_unanswered(size_t index, std::string_view place) const;
  Result<void> refuse_misplaced(size_t index, const Block& block, RequestMessage::Role role) const;
  void add_document(const Block& block);
  void push(Message message) { conversation_.messages.push_back(std::move(message)); }
  /// Ends the content that is being built and makes it a message.
  void push_content(Role role);
  bool results_go_on(size_t index) const;
  std::string unanswered() const;

  std::span<const RequestMessage> messages_;
  std::vector<std::string_view> tool_names_;  ///< sorted
  Conversation& conversation_;
  ContentBuilder content_;
  Notices& notices_;
  const bool is_v4_;
  const bool drops_server_blocks_;
  std::map<std::string_view, bool> calls_;  ///< ids of the last assistant turn; whether the result was seen
  size_t num_unanswered_ = 0;
  size_t calls_turn_ = 0;
  std::vector<std::string_view> found_tools_;  ///< references in the results of the running user turn
  std::vector<KnownFrom> known_from_;
};

}  // namespace hadal::recipe::messages
