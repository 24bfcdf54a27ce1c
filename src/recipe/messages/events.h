#pragma once
// Messages: events of a stream.

#include <memory>
#include <string>
#include <string_view>

#include "recipe/generator_base.h"

namespace hadal::recipe {

/// The name of an event is the `type` in its data. Every content block that starts is stopped; blocks follow
/// the order of the output.
class MessagesGenerator final : public GeneratorBase {
 public:
  using GeneratorBase::GeneratorBase;

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
  enum class Block { kNone, kThinking, kText, kToolUse };

  void open(Block block, std::string_view start);
  void close();
  /// A delta {"type":TYPE,KEY:text} of the open block.
  void emit_delta(std::string_view type, std::string_view key, std::string_view text);
  const std::string& signature() const;

  Block block_ = Block::kNone;
  uint64_t num_blocks_ = 0;
};

}  // namespace hadal::recipe
