#pragma once
// Responses: events of a stream.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "recipe/generator_base.h"
#include "recipe/responses/custom_input.h"
#include "recipe/responses/response.h"

namespace hadal::recipe {

/// The name of an event is the `type` in its data; sequence numbers start at 0. Items are closed when the
/// next one begins or at the end, and the objects of the last event hold them exactly as their own events
/// did.
class ResponsesGenerator final : public GeneratorBase {
 public:
  ResponsesGenerator(const PreparedRequest& request, GeneratorOptions options,
                     std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

  Json response() const override;

 protected:
  /// A client that sends such an answer back is refused: results must follow the calls.
  bool keeps_text_behind_calls() const override { return false; }
  void on_start() override;
  void on_reasoning(const AnswerItem& item, const Delta& delta, bool begins) override;
  void on_content(const AnswerItem& item, const Delta& delta, bool begins) override;
  void on_call(const AnswerItem& item) override;
  void on_arguments(const AnswerItem& item, std::string_view text) override;
  void on_finish() override;

 private:
  enum class Open { kNone, kReasoning, kMessage, kCall };

  void open_item(Open open, std::string_view id_prefix, const Json& item);
  void open_part(const Json& part);
  /// `next_is_call`: a call begins behind the item.
  void close_item(ResponseStatus status, bool next_is_call);
  void close_text(const AnswerItem& item, ResponseStatus status, bool next_is_call);
  void close_call(const AnswerItem& item, ResponseStatus status);
  void emit_response(std::string type);
  void emit_delta(std::string_view type, std::string_view text, bool in_part, std::string_view logprobs = {});
  /// Adds the type, the place of the open item and the sequence number.
  void emit_item_event(std::string type, Json fields, bool in_part);

  PreparedRequest request_;  ///< without its prompt
  Open open_ = Open::kNone;
  size_t item_ = 0;     ///< of the open one, in the answer
  uint64_t index_ = 0;  ///< of the open one, in the output
  std::string item_id_;
  CustomInput custom_;
  std::string custom_input_;
  Json output_ = Json::array();  ///< closed items
  uint64_t sequence_number_ = 0;
};

}  // namespace hadal::recipe
