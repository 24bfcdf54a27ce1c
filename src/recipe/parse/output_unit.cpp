#include "recipe/parse/output_unit.h"

#include <utility>

namespace hadal::recipe {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

void UnitBuilder::add_token(std::string_view bytes, bool special) {
  if (special) {
    replace_partial();
  }
  const size_t begin = unit_.bytes.size();
  add(bytes, special ? Origin::kSpecialToken : Origin::kPlainToken);
  unit_.tokens.push_back({begin, unit_.bytes.size()});
}

void UnitBuilder::add(std::string_view bytes, Origin origin) {
  for (size_t at = 0; at < bytes.size();) {
    if (missing_ == 0) {
      const size_t begin = at;
      while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) {
        ++at;
      }
      append(bytes.substr(begin, at - begin), origin);
      if (at == bytes.size()) {
        return;
      }
    }
    const auto byte = static_cast<unsigned char>(bytes[at]);
    if (missing_ > 0) {
      if (byte < lowest_ || byte > highest_) {
        replace_partial();  // the byte is looked at again
        continue;
      }
      partial_.push_back(bytes[at++]);
      partial_origin_ = origin;
      lowest_ = 0x80;
      highest_ = 0xBF;
      if (--missing_ == 0) {
        append(partial_, origin);
        partial_.clear();
      }
      continue;
    }
    ++at;
    if (byte < 0xC2 || byte > 0xF4) {
      append(kReplacement, origin);
      continue;
    }
    partial_.assign(1, static_cast<char>(byte));
    partial_origin_ = origin;
    missing_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    // No overlong forms, no surrogates, nothing above U+10FFFF.
    lowest_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    highest_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
  }
}

void UnitBuilder::append(std::string_view bytes, Origin origin) {
  unit_.bytes.append(bytes);
  unit_.origins.append(bytes.size(), static_cast<char>(origin));
}

void UnitBuilder::replace_partial() {
  if (!partial_.empty()) {
    append(kReplacement, partial_origin_);
    partial_.clear();
    missing_ = 0;
  }
}

OutputUnit UnitBuilder::take() {
  return std::exchange(unit_, {});
}

}  // namespace hadal::recipe
