#include "recipe/schema/references.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace hadal::recipe {
namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

struct Uri {
  std::string_view without_fragment;
  std::string_view fragment;
};

Uri split_fragment(std::string_view uri) {
  const size_t hash = std::min(uri.find('#'), uri.size());
  return {uri.substr(0, hash), uri.substr(std::min(hash + 1, uri.size()))};
}

bool has_scheme(std::string_view uri) {
  const size_t end = uri.find_first_of(":/?#");
  return end != std::string_view::npos && end != 0 && uri[end] == ':';
}

/// Removes `.` and `..` segments of an absolute path.
std::string normal_path(std::string_view path) {
  std::vector<std::string_view> segments;
  size_t at = 0;
  while (at <= path.size()) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view segment = path.substr(at, end - at);
    const bool last = end == path.size();
    if (segment == "..") {
      if (segments.size() > 1) {
        segments.pop_back();
      }
      if (last) {
        segments.emplace_back();
      }
    } else if (segment == ".") {
      if (last) {
        segments.emplace_back();
      }
    } else {
      segments.push_back(segment);
    }
    at = end + 1;
  }
  std::string out;
  for (size_t index = 0; index < segments.size(); ++index) {
    out += index == 0 ? "" : "/";
    out += segments[index];
  }
  return out;
}

/// RFC 3986, section 5.2, without fragments. A base without a scheme is used all the same.
std::string resolve_uri(std::string_view base, std::string_view reference) {
  if (reference.empty() || base.empty() || has_scheme(reference)) {
    return std::string(reference.empty() ? base : reference);
  }
  size_t authority = has_scheme(base) ? base.find(':') + 1 : 0;
  if (reference.starts_with("//")) {
    return std::string(base.substr(0, authority)) + std::string(reference);
  }
  size_t path = authority;
  if (base.substr(authority).starts_with("//")) {
    path = std::min(base.find_first_of("/?", authority + 2), base.size());
  }
  const size_t query = std::min(base.find('?', path), base.size());
  if (reference.starts_with('?')) {
    return std::string(base.substr(0, query)) + std::string(reference);
  }
  const size_t reference_query = std::min(reference.find('?'), reference.size());
  std::string merged(reference.substr(0, reference_query));
  if (!reference.starts_with('/')) {
    const std::string_view base_path = base.substr(path, query - path);
    const size_t slash = base_path.rfind('/');
    merged = (slash == std::string_view::npos ? (path > authority ? "/" : "")
                                              : std::string(base_path.substr(0, slash + 1))) +
             merged;
  }
  return std::string(base.substr(0, path)) + normal_path(merged) +
         std::string(reference.substr(reference_query));
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 2 < text.size()) {
      unsigned value = 0;
      std::from_chars(text.data() + at + 1, text.data() + at + 3, value, 16);
      out += static_cast<char>(value);
      at += 2;
    } else {
      out += text[at];
    }
  }
  return out;
}

std::string_view id_of(const JsonValue& schema, Draft draft) {
  const JsonValue* id = schema.find(draft == Draft::k4 ? "id" : "$id");
  return id != nullptr && id->is_string() ? id->as_string() : std::string_view();
}

std::string_view metaschema_of(Draft draft) {
  switch (draft) {
    case Draft::k4:
      return "http://json-schema.org/draft-04/schema";
    case Draft::k6:
      return "http://json-schema.org/draft-06/schema";
    case Draft::k7:
      return "http://json-schema.org/draft-07/schema";
    case Draft::k2019:
      return "https://json-schema.org/draft/2019-09/schema";
    case Draft::k2020:
      return "https://json-schema.org/draft/2020-12/schema";
  }
  return "";
}

class ReferenceChecker {
 public:
  ReferenceChecker(const JsonValue& root, Draft draft) : root_(root), draft_(draft) {}

  Result<void> check() {
    HADAL_CHECK(collect_resources());
    enqueue(&root_, base_of_root_);
    while (!queue_.empty()) {
      const Place place = queue_.back();
      queue_.pop_back();
      HADAL_CHECK(check_place(place));
    }
    return {};
  }

 private:
  struct Place {
    const JsonValue* schema = nullptr;
    const std::string* base = nullptr;  ///< URI that references here are relative to; nodes of a set, stable
  };

  const std::string* intern(std::string uri) { return &*uris_.insert(std::move(uri)).first; }

  /// The base inside a schema that may have an id of its own.
  const std::string* base_inside(const JsonValue& schema, const std::string* base) {
    const std::string_view id = split_fragment(id_of(schema, draft_)).without_fragment;
    return id.empty() ? base : intern(resolve_uri(*base, id));
  }

  /// Finds every id and anchor, also in schemas that nothing leads to. Ids are limited in number and length,
  /// as each is kept in full, resolved against the ones around it.
  Result<void> collect_resources() {
    constexpr size_t kMostIds = 1024;
    constexpr size_t kLongestId = 2048;
    const std::string* none = intern("");
    std::vector<Place> left{{&root_, none}};
    base_of_root_ = base_inside(root_, none);
    resources_.emplace(none, &root_);
    while (!left.empty()) {
      const Place place = left.back();
      left.pop_back();
      if (id_of(*place.schema, draft_).size() > kLongestId || uris_.size() > kMostIds) {
        return fail(ErrorCode::kResourceExhausted, "more than {} ids, or one of more than {} bytes", kMostIds,
                    kLongestId);
      }
      const std::string* base = base_inside(*place.schema, place.base);
      if (base != place.base) {
        resources_.emplace(base, place.schema);
      }
      const std::string_view fragment = split_fragment(id_of(*place.schema, draft_)).fragment;
      if (!fragment.empty()) {
        anchors_.emplace(std::pair(base, std::string(fragment)), place.schema);
      }
      for (const JsonMember& member : place.schema->members()) {
        if ((member.key == "$anchor" || member.key == "$dynamicAnchor") && member.value.is_string()) {
          anchors_.emplace(std::pair(base, std::string(member.value.as_string())), place.schema);
        }
        if (const auto rule = keyword_rule(member.key, draft_)) {
          for_each_subschema(member.value, *rule,
                             [&](const JsonValue& subschema) { left.push_back({&subschema, base}); });
        }
      }
    }
    return {};
  }

  void enqueue(const JsonValue* schema, const std::string* base) {
    if (schema->is_object() && seen_.insert(schema).second) {
      queue_.push_back({schema, base});
    }
  }

  Result<void> check_place(Place place) {
    for (const JsonMember& member : place.schema->members()) {
      const auto rule = keyword_rule(member.key, draft_);
      if (!rule) {
        continue;
      }
      if (member.key == "$ref" || member.key == "$dynamicRef") {
        HADAL_CHECK(follow(member.value.as_string(), place.base));
      } else if (member.key != "$defs" && member.key != "definitions" && member.key != "contentSchema") {
        for_each_subschema(member.value, *rule, [&](const JsonValue& subschema) {
          enqueue(&subschema, base_inside(subschema, place.base));
        });
      }
    }
    return {};
  }

  Result<void> follow(std::string_view reference, const std::string* base) {
    if (!followed_.emplace(base, std::string(reference)).second) {
      return {};
    }
    const Uri parts = split_fragment(reference);
    const std::string uri = resolve_uri(*base, parts.without_fragment);
    const auto known = uris_.find(uri);
    const auto resource = known == uris_.end() ? resources_.end() : resources_.find(&*known);
    if (resource == resources_.end()) {
      if (uri == metaschema_of(draft_)) {
        return {};
      }
      return missing_resource(uri, reference);
    }
    const std::string* target = resource->first;
    if (parts.fragment.empty()) {
      enqueue(resource->second, target);
      return {};
    }
    if (parts.fragment.starts_with('/')) {
      return follow_pointer(*resource->second, parts.fragment, target);
    }
    const auto anchor = anchors_.find(std::pair(target, std::string(parts.fragment)));
    if (anchor == anchors_.end()) {
      return fail(ErrorCode::kInvalidArgument, "Anchor '{}' does not exist", parts.fragment);
    }
    enqueue(anchor->second, target);
    return {};
  }

  static Result<void> missing_resource(const std::string& target, std::string_view reference) {
    if (!has_scheme(target)) {
      return fail(
          ErrorCode::kInvalidArgument,
          "Resource '{}' is not present in a registry and retrieving it failed: No base URI is available",
          reference);
    }
    return fail(
        ErrorCode::kInvalidArgument,
        "Resource '{0}' is not present in a registry and retrieving it failed: Retrieval is disabled, cannot "
        "fetch {0}",
        target);
  }

  Result<void> follow_pointer(const JsonValue& resource, std::string_view fragment, const std::string* base) {
    const std::string pointer = percent_decoded(fragment);
    const JsonValue* at = &resource;
    size_t start = 1;
    while (at != nullptr && start <= pointer.size()) {
      const size_t end = std::min(pointer.find('/', start), pointer.size());
      at = step(*at, std::string_view(pointer).substr(start, end - start));
      start = end + 1;
      if (at != nullptr) {
        base = base_inside(*at, base);
      }
    }
    if (at == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "Pointer '{}' does not exist", pointer);
    }
    enqueue(at, base);
    return {};
  }

  const JsonValue* step(const JsonValue& value, std::string_view escaped) {
    if (value.is_array()) {
      size_t index = 0;
      const auto [end, error] = std::from_chars(escaped.data(), escaped.data() + escaped.size(), index);
      const bool whole = error == std::errc() && end == escaped.data() + escaped.size();
      return whole && index < value.items().size() ? &value.items()[index] : nullptr;
    }
    std::string key;
    for (size_t at = 0; at < escaped.size(); ++at) {
      if (escaped[at] == '~' && at + 1 < escaped.size() &&
          (escaped[at + 1] == '0' || escaped[at + 1] == '1')) {
        key += escaped[++at] == '0' ? '~' : '/';
      } else {
        key += escaped[at];
      }
    }
    constexpr size_t kWide = 32;
    if (value.members().size() <= kWide) {
      return value.find(key);
    }
    // Many references into one wide object must not cost its width each.
    auto& index = indexes_[&value];
    if (index.empty()) {
      for (const JsonMember& member : value.members()) {
        index.emplace(member.key, &member.value);
      }
    }
    const auto found = index.find(key);
    return found == index.end() ? nullptr : found->second;
  }

  const JsonValue& root_;
  Draft draft_;
  std::unordered_set<std::string> uris_;
  const std::string* base_of_root_ = nullptr;
  std::unordered_map<const std::string*, const JsonValue*> resources_;
  std::map<std::pair<const std::string*, std::string>, const JsonValue*> anchors_;
  std::unordered_set<const JsonValue*> seen_;
  std::map<const JsonValue*, std::map<std::string_view, const JsonValue*>> indexes_;
  std::set<std::pair<const std::string*, std::string>> followed_;
  std::vector<Place> queue_;
};

}  // namespace

Result<void> check_uri_reference(std::string_view text) {
  constexpr std::string_view kAllowed = "-._~:/?#[]@!$&'()*+,;=";
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '%') {
      if (at + 2 >= text.size() || !is_hex(text[at + 1]) || !is_hex(text[at + 2])) {
        return fail(ErrorCode::kInvalidArgument,
                    "Invalid URI reference '{}': invalid percent-encoded octet at index {}", text, at);
      }
      at += 2;
      continue;
    }
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && kAllowed.find(c) == std::string_view::npos) {
      return fail(ErrorCode::kInvalidArgument, "Invalid URI reference '{}': unexpected character at index {}",
                  text, at);
    }
  }
  return {};
}

Result<void> check_references(const JsonValue& schema, Draft draft) {
  return ReferenceChecker(schema, draft).check();
}

}  // namespace hadal::recipe
