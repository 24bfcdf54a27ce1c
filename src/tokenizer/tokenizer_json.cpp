#include "tokenizer/tokenizer_json.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/string_index.h"
#include "tokenizer/tokenizer_json_sax.h"

namespace hadal::tokenizer {
namespace {

using nlohmann::json;

/// What was found, for messages: a type, or a short text as it stands.
std::string describe(const json& value) {
  return value.is_string() ? fmt::format("\"{}\"", printable(value.get_ref<const std::string&>(), 100))
                           : std::string(value.type_name());
}

/// A member of an object; null stands for a missing one, as in the format.
const json& member(const json& object, const char* key) {
  static const json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

Result<bool> read_bool(const json& object, const char* key, std::string_view place) {
  const json& value = member(object, key);
  if (!value.is_boolean()) {
    return fail(ErrorCode::kCorrupt, "{}.{}: found {}, expected true or false", place, key, describe(value));
  }
  return value.get<bool>();
}

/// A boolean that may be missing.
Result<bool> read_bool_or(const json& object, const char* key, bool otherwise, std::string_view place) {
  return member(object, key).is_null() ? Result<bool>(otherwise) : read_bool(object, key, place);
}

/// The `type` of a component.
Result<std::string> read_type(const json& component, std::string_view place) {
  if (!component.is_object() || !member(component, "type").is_string()) {
    return fail(ErrorCode::kCorrupt, "{}: found {}, expected an object with a type", place,
                describe(component));
  }
  return member(component, "type").get<std::string>();
}

Result<const json*> read_list(const json& object, const char* key, std::string_view place) {
  const json& list = member(object, key);
  if (!list.is_array()) {
    return fail(ErrorCode::kCorrupt, "{}.{}: found {}, expected a list", place, key, describe(list));
  }
  return &list;
}

Result<void> read_vocabulary(const RawTokenizerFile& raw, TokenizerFile& file, StringIndex& index) {
  if (!raw.has_vocab || raw.vocab.empty()) {
    return fail(ErrorCode::kCorrupt, "model.vocab: missing, empty or not an object");
  }
  uint64_t largest = 0;
  for (const auto& [spelling, id] : raw.vocab) {
    if (id >= static_cast<uint64_t>(kMaxVocabSize)) {
      return fail(ErrorCode::kCorrupt, "model.vocab[\"{}\"]: id {}, expected below {}",
                  printable(spelling, 100), id, kMaxVocabSize);
    }
    largest = std::max(largest, id);
  }
  file.spellings.resize(largest + 1);
  for (const auto& [spelling, id] : raw.vocab) {
    if (spelling.empty()) {
      return fail(ErrorCode::kCorrupt, "model.vocab: id {} has an empty spelling", id);
    }
    if (!file.spellings[id].empty()) {
      return fail(ErrorCode::kCorrupt, "model.vocab: id {} belongs to \"{}\" and to \"{}\"", id,
                  printable(file.spellings[id], 100), printable(spelling, 100));
    }
    if (!index.insert(spelling, static_cast<int32_t>(id))) {
      return fail(ErrorCode::kCorrupt, "model.vocab: key \"{}\" is repeated", printable(spelling, 100));
    }
    file.spellings[id] = spelling;
  }
  // C0, C1 and F5..FF are in no valid UTF-8, and some vocabularies leave them out.
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool occurs = byte < 0xC0 || (byte > 0xC1 && byte < 0xF5);
    std::string spelling;
    const uint32_t code_point = spelling_of_byte(static_cast<uint8_t>(byte));
    if (code_point < 0x80) {
      spelling.push_back(static_cast<char>(code_point));
    } else {
      spelling.push_back(static_cast<char>(0xC0 | code_point >> 6));
      spelling.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
    }
    if (occurs && !index.find(spelling)) {
      return fail(ErrorCode::kCorrupt, "model.vocab: no token for the byte 0x{:02X} (spelled \"{}\")", byte,
                  spelling);
    }
  }
  return {};
}

Result<void> read_merges(const RawTokenizerFile& raw, const StringIndex& index, TokenizerFile& file) {
  if (!raw.has_merges) {
    return fail(ErrorCode::kCorrupt, "model.merges: missing or not a list");
  }
  if (raw.merges.size() > kMaxMerges) {
    return fail(ErrorCode::kUnsupported, "model.merges: {}, expected at most {}", raw.merges.size(),
                kMaxMerges);
  }
  file.merges.reserve(raw.merges.size());
  std::string whole;
  for (const auto& [left, right] : raw.merges) {
    const auto id_of = [&](const std::string& spelling) -> Result<int32_t> {
      if (const auto id = index.find(spelling)) {
        return *id;
      }
      return fail(ErrorCode::kCorrupt, "model.merges[{}]: \"{}\" is not in the vocabulary",
                  file.merges.size(), printable(spelling, 100));
    };
    whole.assign(left).append(right);
    HADAL_TRY(const int32_t left_id, id_of(left));
    HADAL_TRY(const int32_t right_id, id_of(right));
    HADAL_TRY(const int32_t whole_id, id_of(whole));
    file.merges.push_back({left_id, right_id, whole_id});
  }
  return {};
}

Result<void> read_model(const RawTokenizerFile& raw, TokenizerFile& file, StringIndex& index) {
  const json& model = member(raw.rest, "model");
  HADAL_TRY(const std::string type, read_type(model, "model"));
  if (type != "BPE") {
    return fail(ErrorCode::kUnsupported, "model.type: \"{}\", expected \"BPE\"", printable(type, 100));
  }
  const json& dropout = member(model, "dropout");
  if (!dropout.is_null() && dropout != json(0.0)) {
    return fail(ErrorCode::kUnsupported, "model.dropout: set, but encoding must not be random");
  }
  for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json& value = member(model, key);
    if (!value.is_null() && value != json("")) {
      return fail(ErrorCode::kUnsupported, "model.{}: {}, expected none", key, describe(value));
    }
  }
  // unk_token, fuse_unk and byte_fallback say what to do with bytes without a token: there are none.
  HADAL_TRY(file.ignore_merges, read_bool_or(model, "ignore_merges", false, "model"));
  HADAL_CHECK(read_vocabulary(raw, file, index));
  return read_merges(raw, index, file);
}

Result<void> read_added_tokens(const json& root, const StringIndex& vocabulary, TokenizerFile& file) {
  const json& list = member(root, "added_tokens");
  if (list.is_null()) {
    return {};
  }
  if (!list.is_array()) {
    return fail(ErrorCode::kCorrupt, "added_tokens: found {}, expected a list", describe(list));
  }
  std::set<std::string_view> contents;
  std::set<int32_t> ids;
  file.added_tokens.reserve(list.size());
  size_t total_bytes = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = fmt::format("added_tokens[{}]", i);
    const json& entry = list[i];
    if (!entry.is_object()) {
      return fail(ErrorCode::kCorrupt, "{}: found {}, expected an object", place, describe(entry));
    }
    const json& id = member(entry, "id");
    const json& content = member(entry, "content");
    if (!content.is_string() || content.get_ref<const std::string&>().empty()) {
      return fail(ErrorCode::kCorrupt, "{}.content: found {}, expected a text", place, describe(content));
    }
    AddedToken token;
    token.content = content.get<std::string>();
    if (token.content.size() > kMaxAddedTokenBytes) {
      return fail(ErrorCode::kUnsupported, "{}.content: {} bytes, expected at most {}", place,
                  token.content.size(), kMaxAddedTokenBytes);
    }
    const std::string shown = printable(token.content, 100);
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(kMaxVocabSize)) {
      return fail(ErrorCode::kCorrupt, "{}.id of \"{}\": found {}, expected an integer from 0 below {}",
                  place, shown, id.is_number() ? id.dump() : describe(id), kMaxVocabSize);
    }
    token.id = id.get<int32_t>();
    HADAL_TRY(token.single_word, read_bool(entry, "single_word", place));
    HADAL_TRY(token.lstrip, read_bool(entry, "lstrip", place));
    HADAL_TRY(token.rstrip, read_bool(entry, "rstrip", place));
    HADAL_TRY(token.normalized, read_bool(entry, "normalized", place));
    HADAL_TRY(token.special, read_bool(entry, "special", place));
    const auto in_vocabulary = vocabulary.find(token.content);
    if (in_vocabulary && *in_vocabulary != token.id) {
      return fail(ErrorCode::kCorrupt, "{}.id of \"{}\": {}, but model.vocab says {}", place, shown, token.id,
                  *in_vocabulary);
    }
    const auto index = static_cast<size_t>(token.id);
    if (!in_vocabulary && index < file.spellings.size() && !file.spellings[index].empty()) {
      return fail(ErrorCode::kCorrupt, "{}.id of \"{}\": {}, but model.vocab gives that id to \"{}\"", place,
                  shown, token.id, printable(file.spellings[index], 100));
    }
    total_bytes += token.content.size();
    if (total_bytes > TokenTrie::kMaxBytes) {
      return fail(ErrorCode::kUnsupported, "{}: the added tokens have more than {} bytes in all", place,
                  TokenTrie::kMaxBytes);
    }
    file.added_tokens.push_back(std::move(token));
    // The vector has its capacity, so the views stay valid.
    if (!contents.insert(file.added_tokens.back().content).second) {
      return fail(ErrorCode::kCorrupt, "{}.content: \"{}\" is repeated", place, shown);
    }
    if (!ids.insert(file.added_tokens.back().id).second) {
      return fail(ErrorCode::kCorrupt, "{}.id of \"{}\": {} is repeated", place, shown, index);
    }
  }
  return {};
}

Result<SplitStep> read_split(const json& component, const std::string& place) {
  using Behavior = SplitStep::Behavior;
  SplitStep step;
  step.place = place;
  const json& pattern = member(component, "pattern");
  const json& regex = pattern.is_object() ? member(pattern, "Regex") : pattern;
  const json& literal = pattern.is_object() ? member(pattern, "String") : pattern;
  if (!pattern.is_object() || regex.is_string() == literal.is_string()) {
    return fail(ErrorCode::kCorrupt, "{}.pattern: expected an object with one of \"Regex\" and \"String\"",
                place);
  }
  step.literal = literal.is_string();
  step.pattern = (step.literal ? literal : regex).get<std::string>();
  HADAL_TRY(step.invert, read_bool_or(component, "invert", false, place));
  static constexpr std::pair<std::string_view, Behavior> kBehaviors[] = {
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous},
  };
  const json& behavior = member(component, "behavior");
  for (const auto& [name, value] : kBehaviors) {
    if (behavior == json(name)) {
      step.behavior = value;
      return step;
    }
  }
  return fail(ErrorCode::kUnsupported,
              "{}.behavior: found {}, expected Removed, Isolated, MergedWithPrevious, "
              "MergedWithNext or Contiguous",
              place, describe(behavior));
}

/// ByteLevel: with its own regex it is one more Split.
Result<void> read_byte_level(const json& component, const std::string& place, std::vector<SplitStep>& steps) {
  HADAL_TRY(const bool add_prefix_space, read_bool_or(component, "add_prefix_space", true, place));
  HADAL_TRY(const bool use_regex, read_bool_or(component, "use_regex", true, place));
  if (add_prefix_space) {
    return fail(ErrorCode::kUnsupported, "{}.add_prefix_space: true, expected false", place);
  }
  if (use_regex) {
    SplitStep step;
    step.pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    step.place = place;
    steps.push_back(std::move(step));
  }
  return {};
}

Result<void> read_pre_tokenizer(const json& root, TokenizerFile& file) {
  const json& whole = member(root, "pre_tokenizer");
  HADAL_TRY(const std::string whole_type, read_type(whole, "pre_tokenizer"));
  const bool sequence = whole_type == "Sequence";
  const json* list = nullptr;
  if (sequence) {
    HADAL_TRY(list, read_list(whole, "pretokenizers", "pre_tokenizer"));
  }
  const size_t count = sequence ? list->size() : 1;
  constexpr size_t kMaxSteps = 32;
  if (count > kMaxSteps) {
    return fail(ErrorCode::kUnsupported, "pre_tokenizer.pretokenizers: {} steps, expected at most {}", count,
                kMaxSteps);
  }
  bool byte_level = false;
  for (size_t i = 0; i < count; ++i) {
    const json& component = sequence ? (*list)[i] : whole;
    const std::string place = sequence ? fmt::format("pre_tokenizer.pretokenizers[{}]", i) : "pre_tokenizer";
    HADAL_TRY(const std::string type, read_type(component, place));
    if (byte_level) {
      return fail(ErrorCode::kUnsupported, "{}: \"{}\" after ByteLevel", place, printable(type, 100));
    }
    if (type == "Split") {
      HADAL_TRY(SplitStep step, read_split(component, place));
      file.split_steps.push_back(std::move(step));
    } else if (type == "Digits") {
      HADAL_TRY(const bool individual, read_bool(component, "individual_digits", place));
      SplitStep step;
      step.pattern = R"(\p{N})";
      step.behavior = individual ? SplitStep::Behavior::kIsolated : SplitStep::Behavior::kContiguous;
      step.place = place;
      file.split_steps.push_back(std::move(step));
    } else if (type == "ByteLevel") {
      HADAL_CHECK(read_byte_level(component, place, file.split_steps));
      byte_level = true;
    } else {
      return fail(ErrorCode::kUnsupported, "{}.type: \"{}\", expected Split, Digits or ByteLevel", place,
                  printable(type, 100));
    }
  }
  if (!byte_level) {
    return fail(ErrorCode::kUnsupported, "pre_tokenizer: without ByteLevel, expected it as the last step");
  }
  return {};
}

/// Components that must do nothing to text: null, or a Sequence of such.
Result<void> check_normalizer(const json& root) {
  const json& normalizer = member(root, "normalizer");
  if (normalizer.is_null()) {
    return {};
  }
  HADAL_TRY(const std::string type, read_type(normalizer, "normalizer"));
  if (type != "Sequence") {
    return fail(ErrorCode::kUnsupported, "normalizer.type: \"{}\", expected no normalizer",
                printable(type, 100));
  }
  HADAL_TRY(const json* list, read_list(normalizer, "normalizers", "normalizer"));
  if (!list->empty()) {
    const json& first = (*list)[0];
    return fail(ErrorCode::kUnsupported, "normalizer.normalizers[0]: {}, expected no normalizer",
                first.is_object() ? describe(member(first, "type")) : describe(first));
  }
  return {};
}

/// Post-processors only add special tokens or offsets; encoding here is without them. Unknown ones may do
/// more.
Result<void> check_post_processor(const json& component, const std::string& place, int depth) {
  if (component.is_null()) {
    return {};
  }
  HADAL_TRY(const std::string type, read_type(component, place));
  if (type == "Sequence" && depth < 4) {
    HADAL_TRY(const json* list, read_list(component, "processors", place));
    for (size_t i = 0; i < list->size(); ++i) {
      HADAL_CHECK(check_post_processor((*list)[i], fmt::format("{}.processors[{}]", place, i), depth + 1));
    }
    return {};
  }
  if (type != "ByteLevel" && type != "TemplateProcessing") {
    return fail(ErrorCode::kUnsupported, "{}.type: \"{}\", expected ByteLevel or TemplateProcessing", place,
                printable(type, 100));
  }
  return {};
}

Result<void> check_other_parts(const json& root) {
  const json& version = member(root, "version");
  if (!version.is_null() && version != json("1.0")) {
    return fail(ErrorCode::kUnsupported, "version: {}, expected \"1.0\"", describe(version));
  }
  for (const char* const key : {"truncation", "padding"}) {
    if (!member(root, key).is_null()) {
      return fail(ErrorCode::kUnsupported, "{}: set, expected null", key);
    }
  }
  HADAL_CHECK(check_normalizer(root));
  HADAL_CHECK(check_post_processor(member(root, "post_processor"), "post_processor", 0));
  HADAL_TRY(const std::string decoder, read_type(member(root, "decoder"), "decoder"));
  if (decoder != "ByteLevel") {
    return fail(ErrorCode::kUnsupported, "decoder.type: \"{}\", expected \"ByteLevel\"",
                printable(decoder, 100));
  }
  return {};
}

Result<TokenizerFile> read_parts(std::string_view json_text) {
  HADAL_TRY(const RawTokenizerFile raw, parse_tokenizer_json(json_text));
  if (!raw.rest.is_object()) {
    return fail(ErrorCode::kCorrupt, "found {}, expected an object", describe(raw.rest));
  }
  TokenizerFile file;
  StringIndex index(raw.vocab.size());
  HADAL_CHECK(check_other_parts(raw.rest));
  HADAL_CHECK(read_model(raw, file, index));
  HADAL_CHECK(read_added_tokens(raw.rest, index, file));
  HADAL_CHECK(read_pre_tokenizer(raw.rest, file));
  return file;
}

}  // namespace

Result<TokenizerFile> read_tokenizer_json(std::string_view json_text, std::string_view source_name) {
  if (json_text.size() > kMaxTokenizerFileBytes) {
    return fail(ErrorCode::kUnsupported, "{}: {} bytes, expected at most {}", source_name, json_text.size(),
                kMaxTokenizerFileBytes);
  }
  auto file = read_parts(json_text);
  if (!file) {
    return fail_within(source_name, std::move(file).error());
  }
  return file;
}

}  // namespace hadal::tokenizer
