// All recorded outputs in all their cuts: events and whole answers equal those of the reference.

#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <regex>

#include <gtest/gtest.h>
#include <zlib.h>

#include "recipe/json_text.h"
#include "recipe/parse_lines.h"

namespace hadal::recipe {
namespace {

using AnyJson = nlohmann::json;  // compared whatever the order of keys

/// What the cases need of the real tokenizer.
class RecordedTokenizer final : public tokenizer::Tokenizer {
 public:
  explicit RecordedTokenizer(const AnyJson& recorded) {
    for (const auto& [id, token] : recorded["tokens"].items()) {
      const bool added = token.is_object();
      tokens_[std::stoi(id)] = {added ? token["added"].get<std::string>() : unhex(token.get<std::string>()),
                                added};
    }
    for (const auto& [text, length] : recorded["lengths"].items()) {
      lengths_[text] = length;
    }
  }

  void encode_plain(std::string_view, std::vector<int32_t>&) const override {
    ADD_FAILURE() << "nobody encodes plain text here";
  }
  void encode_with_special(std::string_view text, std::vector<int32_t>& ids) const override {
    const auto found = lengths_.find(std::string(text));
    ids.resize(ids.size() + (found == lengths_.end() ? 0 : found->second));  // only lengths matter
  }
  std::string decode(std::span<const int32_t>, bool) const override { return {}; }
  std::string_view token_bytes(int32_t id) const override {
    const auto found = tokens_.find(id);
    return found == tokens_.end() ? std::string_view() : found->second.bytes;
  }
  std::string_view token_spelling(int32_t id) const override { return token_bytes(id); }
  std::optional<int32_t> token_id(std::string_view spelling) const override {
    for (const auto& [id, token] : tokens_) {
      if (token.added && token.bytes == spelling) {
        return id;
      }
    }
    return std::nullopt;
  }
  bool is_added_token(int32_t id) const override {
    const auto found = tokens_.find(id);
    return found != tokens_.end() && found->second.added;
  }
  bool is_special_token(int32_t id) const override { return is_added_token(id); }
  int32_t vocab_size() const override { return tokens_.rbegin()->first + 1; }

 private:
  struct Token {
    std::string bytes;
    bool added = false;
  };

  static std::string unhex(const std::string& digits) {
    std::string bytes;
    for (size_t at = 0; at + 1 < digits.size(); at += 2) {
      bytes.push_back(static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16)));
    }
    return bytes;
  }

  std::map<int32_t, Token> tokens_;
  std::map<std::string, size_t> lengths_;
};

std::vector<std::string> lines_of(const std::string& name) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(
      gzopen((HADAL_RECIPE_OUTPUT_DATA "/" + name).c_str(), "rb"), gzclose);
  EXPECT_NE(file, nullptr) << name;
  std::string text;
  std::vector<char> buffer(1 << 20);
  while (file) {
    const int size = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (size <= 0) {
      break;
    }
    text.append(buffer.data(), static_cast<size_t>(size));
  }
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// Generated call ids as the recorded cases show them.
AnyJson with_fixed_ids(const AnyJson& value) {
  static const std::regex kCallId("call_([0-9]+)_(ET_)?[A-Za-z0-9]{24}");
  return AnyJson::parse(std::regex_replace(value.dump(), kCallId, "call_$1_$2XXXXXXXXXXXXXXXXXXXX0000"));
}

bool same(const AnyJson& want, const AnyJson& have) {
  if (want.is_number() && have.is_number()) {
    return want == have || want.get<float>() == have.get<float>();  // log-probabilities are floats
  }
  if (want.is_array() && have.is_array()) {
    return std::equal(want.begin(), want.end(), have.begin(), have.end(), same);
  }
  if (want.is_object() && have.is_object()) {
    return want.size() == have.size() &&
           std::all_of(want.items().begin(), want.items().end(), [&](const auto& item) {
             return have.contains(item.key()) && same(item.value(), have[item.key()]);
           });
  }
  return want == have;
}

/// The run's events, with those in full that are recorded in short. Fields that the short form does not tell
/// of are missing in them.
std::vector<AnyJson> events_of(const AnyJson& one_case, const AnyJson& run, const AnyJson& created) {
  std::vector<AnyJson> events;
  for (AnyJson event : run.contains("events") ? run["events"] : run["events_compact"]) {
    if (event.is_array()) {
      if (one_case["protocol"] == "chat") {
        event = {{"choices",
                  {{{"index", 0}, {"delta", event[0]}, {"logprobs", nullptr}, {"finish_reason", nullptr}}}}};
      } else if (one_case["protocol"] == "messages") {
        event = {{"type", "content_block_delta"}, {"index", event[0]}, {"delta", event[1]}};
      } else {
        event = {{"type", event[0]},
                 {"output_index", event[1]},
                 {"delta", event[2]},
                 {"sequence_number", event[3]}};
      }
      event["recorded in short"] = true;
    }
    if (event.contains("response") && event["response"] == "CREATED") {
      event["response"] = created;
    }
    events.push_back(std::move(event));
  }
  return events;
}

bool same_event(AnyJson want, const AnyJson& have) {
  if (want.erase("recorded in short") > 0) {
    for (const auto& [key, value] : want.items()) {
      if (!have.contains(key) || !same(value, have[key])) {
        return false;
      }
    }
    return true;
  }
  if (want.contains("response") && want["response"] == "FINAL") {
    return have["type"] == want["type"];
  }
  return same(want, have);
}

AnyJson response_of(const AnyJson& one_case, const AnyJson& run) {
  const AnyJson& response = run["response"];
  if (response == "same") {
    return one_case["response"];
  }
  if (response.is_object() && response.size() == 1 && response.contains("same_but_usage")) {
    AnyJson whole = one_case["response"];
    whole["usage"] = response["same_but_usage"];
    return whole;
  }
  return response;
}

/// What differs, or nothing.
std::string difference(const AnyJson& one_case, const AnyJson& answer) {
  if (!answer.contains("runs") || answer["runs"].size() != one_case["runs"].size()) {
    return "number of runs: " + answer.dump();
  }
  AnyJson created;
  for (size_t index = 0; index < one_case["runs"].size(); ++index) {
    const AnyJson& want = one_case["runs"][index];
    const AnyJson have = with_fixed_ids(answer["runs"][index]);
    const std::string where = "run " + want["chunking"].get<std::string>() + ": ";
    if (want.contains("stream_error")) {
      if (want["stream_error"] != have.value("stream_error", "")) {
        return where + "no error";
      }
      continue;
    }
    const std::vector<AnyJson> events = events_of(one_case, want, created);
    if (index == 0 && !events.empty() && events[0].contains("response")) {
      created = events[0]["response"];
    }
    if (events.size() != have["events"].size()) {
      return where + std::to_string(events.size()) + " events, not " + std::to_string(have["events"].size());
    }
    for (size_t event = 0; event < events.size(); ++event) {
      if (!same_event(events[event], have["events"][event])) {
        return where + "event " + std::to_string(event) + "\n" + events[event].dump() + "\n" +
               have["events"][event].dump();
      }
    }
    if (!same(response_of(one_case, want), have["response"])) {
      return where + "response\n" + response_of(one_case, want).dump() + "\n" + have["response"].dump();
    }
  }
  return {};
}

/// What the reference has in whole Chat messages beyond what the API says.
void add_extra_fields(AnyJson& message) {
  if (message["content"].is_null()) {
    message["content"] = "";
  }
  for (size_t index = 0; message.contains("tool_calls") && index < message["tool_calls"].size(); ++index) {
    message["tool_calls"][index]["index"] = index;
  }
}

class OutputGoldens : public ::testing::TestWithParam<std::string> {
 protected:
  static const TokenizerSet& tokenizers() {
    static const TokenizerSet set = [] {
      std::ifstream file(HADAL_RECIPE_OUTPUT_DATA "/tokenizer.json");
      const auto tokenizer = std::make_shared<const RecordedTokenizer>(AnyJson::parse(file));
      return TokenizerSet{tokenizer, tokenizer};
    }();
    return set;
  }
};

TEST_P(OutputGoldens, EqualTheReference) {
  size_t compared = 0;
  for (const std::string& line : lines_of("parse_" + GetParam() + ".jsonl.gz")) {
    const AnyJson one_case = AnyJson::parse(line);
    const std::string answer = parse_line(line, tokenizers());
    ASSERT_TRUE(AnyJson::accept(answer)) << answer;
    if (!one_case.contains("oracle_quirk")) {
      ++compared;
      EXPECT_EQ(difference(one_case, AnyJson::parse(answer)), "") << one_case["id"];
    }
  }
  EXPECT_GT(compared, 200U);
}

/// As the server runs it the parser loses nothing. Where the reference does not lose anything either, the
/// answers are the same.
TEST_P(OutputGoldens, DifferFromTheReferenceOnlyWhereItLosesSomething) {
  std::vector<std::string> different;
  for (const std::string& line : lines_of("parse_" + GetParam() + ".jsonl.gz")) {
    AnyJson one_case = AnyJson::parse(line);
    if (one_case.contains("oracle_quirk") ||
        one_case["id"].get<std::string>().find("/json/") != std::string::npos) {
      continue;
    }
    one_case["lossless"] = true;
    AnyJson answer = AnyJson::parse(parse_line(one_case.dump(), tokenizers()));
    for (AnyJson& run : answer["runs"]) {
      if (GetParam() == "chat") {
        add_extra_fields(run["response"]["choices"][0]["message"]);
      }
    }
    if (!difference(one_case, answer).empty()) {
      different.push_back(one_case["id"]);
    }
  }
  std::ifstream file(HADAL_RECIPE_OUTPUT_DATA "/different.json");
  EXPECT_EQ(different, AnyJson::parse(file)[GetParam()].get<std::vector<std::string>>())
      << "the whole list: " << AnyJson(different).dump();
}

INSTANTIATE_TEST_SUITE_P(Protocols, OutputGoldens, ::testing::Values("chat", "messages", "responses"),
                         [](const auto& protocol) { return protocol.param; });

}  // namespace
}  // namespace hadal::recipe
