#pragma once
// Chat Completions: chunks of a stream.

#include <memory>
#include <string>
#include <string_view>

#include "recipe/generator_base.h"

namespace hadal::recipe {

/// Events have no name; their data are `chat.completion.chunk` objects. The final `data: [DONE]` is left to
/// whoever writes the stream.
class ChatGenerator final : public GeneratorBase {
 public:
  ChatGenerator(const PreparedRequest& request, GeneratorOptions options,
                std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

  Json response() const override;

 protected:
  bool keeps_text_behind_calls() const override { return true; }
  void on_start() override;
  void on_reasoning(const AnswerItem& item, const Delta& delta, bool begins) override;
  void on_content(const AnswerItem& item, const Delta& delta, bool begins) override;
  void on_call(const AnswerItem& item) override;
  void on_arguments(const AnswerItem& item, std::string_view text) override;
  void on_finish() override;

 private:
  void emit_chunk(std::string_view delta, std::string_view logprobs, std::string_view finish_reason,
                  std::string_view usage);
  void emit_delta(std::string_view delta, std::string_view logprobs = "null");
  std::string logprobs(std::string_view key, const Delta& delta) const;

  std::string chunk_begin_;  ///< up to the choices
  bool usage_in_own_chunk_;  ///< behind the last choice
  bool chunks_have_usage_;   ///< the key, with null
  bool has_content_ = false;
  uint64_t num_calls_ = 0;
};

}  // namespace hadal::recipe
