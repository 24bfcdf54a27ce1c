// Bodies of the routes that make answers: whatever comes in, either a request that the engine can run comes
// out or a refusal in the protocol's shape.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <nlohmann/json.hpp>

#include "recipe/prepared_request.h"
#include "server/completion_request.h"
#include "server/conversation_request.h"
#include "server/token_routes.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace hadal;

/// A token a byte, and the special tokens behind them.
class ByteTokenizer final : public tokenizer::Tokenizer {
 public:
  ByteTokenizer() {
    for (int byte = 0; byte < 256; ++byte) {
      bytes_.push_back(std::string(1, static_cast<char>(byte)));
    }
    const recipe::SpecialTokens special;
    bytes_.insert(bytes_.end(), special.spellings.begin(), special.spellings.end());
  }
  void encode_plain(std::string_view text, std::vector<int32_t>& ids) const override {
    for (const char byte : text) {
      ids.push_back(static_cast<unsigned char>(byte));
    }
  }
  void encode_with_special(std::string_view text, std::vector<int32_t>& ids) const override {
    encode_plain(text, ids);
  }
  std::string decode(std::span<const int32_t> ids, bool) const override {
    std::string text;
    for (const int32_t id : ids) {
      text += token_bytes(id);
    }
    return text;
  }
  std::string_view token_bytes(int32_t id) const override {
    return id >= 0 && id < vocab_size() ? std::string_view(bytes_[static_cast<size_t>(id)])
                                        : std::string_view();
  }
  std::string_view token_spelling(int32_t id) const override { return token_bytes(id); }
  std::optional<int32_t> token_id(std::string_view spelling) const override {
    for (int32_t id = 256; id < vocab_size(); ++id) {
      if (bytes_[static_cast<size_t>(id)] == spelling) {
        return id;
      }
    }
    return std::nullopt;
  }
  bool is_added_token(int32_t id) const override { return id >= 256 && id < vocab_size(); }
  bool is_special_token(int32_t id) const override { return is_added_token(id); }
  int32_t vocab_size() const override { return static_cast<int32_t>(bytes_.size()); }

 private:
  std::vector<std::string> bytes_;
};

const server::ModelService& service() {
  static const server::ModelService made = [] {
    server::ModelService model;
    model.tokenizer = std::make_shared<const ByteTokenizer>();
    model.names = {"m", "DeepSeek-V4.1-Flash", "DeepSeek-V4-Pro"};
    model.vocab_size = model.tokenizer->vocab_size();
    model.context_limit = 4096;
    model.bos_token_id = 256;
    model.reserved_token_ids = {5};
    return model;
  }();
  return made;
}

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void check_refusal(const server::HttpResponse& response) {
  require(response.status >= 400 && response.status < 500);
  const auto body = nlohmann::json::parse(response.body, nullptr, false);
  require(body.is_object() && body.contains("error") && body["error"].contains("message"));
}

void check_request(const std::vector<int32_t>& prompt, const engine::SamplingParams& sampling) {
  require(!prompt.empty());
  for (const int32_t id : prompt) {
    require(id >= 0 && id < service().vocab_size);
  }
  require(sampling.max_tokens >= 1);
  require(static_cast<int64_t>(prompt.size()) + sampling.max_tokens <= service().context_limit);
  require(sampling.temperature >= 0 && sampling.top_p > 0 && sampling.top_p <= 1);
  require(sampling.top_k == -1 || sampling.top_k >= 1);
}

void check_conversation(recipe::Protocol protocol, std::string_view body) {
  const auto request = server::read_conversation_request(protocol, body, service(), {});
  if (request) {
    check_request(request->request.prompt, request->request.sampling);
  } else {
    check_refusal(request.error());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0: {
      const auto request = server::read_completion_request(body, service(), {});
      if (request) {
        for (const auto& prompt : request->prompts) {
          check_request(prompt.ids, request->sampling);
        }
      } else {
        check_refusal(server::error_response(server::ErrorStyle::kOpenAi, request.error()));
      }
      break;
    }
    case 1:
      check_conversation(recipe::Protocol::kChat, body);
      break;
    case 2:
      check_conversation(recipe::Protocol::kMessages, body);
      break;
    case 3:
      check_conversation(recipe::Protocol::kResponses, body);
      break;
    case 4:
      require(nlohmann::json::accept(server::tokenize(body, service(), {}).body));
      break;
    default:
      require(nlohmann::json::accept(server::detokenize(body, service()).body));
      break;
  }
  return 0;
}
