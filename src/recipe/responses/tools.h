#pragma once
// The tools of a Responses request as the prompt shows them: names with namespaces, descriptions, custom
// tools.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "recipe/notices.h"
#include "recipe/responses/request.h"
#include "recipe/tool_rules.h"

namespace hadal::recipe::responses {

class ToolTable {
 public:
  ToolTable(ModelVersion version, const ConversionOptions& options, JsonArena& arena, Notices& left_out)
      : notices(left_out), version_(version), options_(options), arena_(arena) {}

  /// Checks names and kinds of the declared tools and takes them in. Tools of kinds that cannot be served are
  /// left out with a notice.
  Result<void> declare(std::span<const ToolField> tools);

  /// Checks names and kinds of tools. `place` names their list in errors.
  Result<void> check_all(std::span<const ToolField> tools, const std::string& place) const;

  /// Takes in tools that a tool search in the history found; checked already. Gives their names.
  std::vector<std::string> add_found(std::span<const ToolField> tools, const std::string& place);

  /// The name that the prompt has for a tool; of an unknown one in a namespace, what it would be.
  std::string shown_name(std::string_view name, std::optional<std::string_view> name_space) const;
  bool knows(std::string_view name, std::string_view name_space) const {
    return names_.contains(std::pair(std::string(name_space), std::string(name)));
  }

  /// All tools in order, declared ones first; may be taken once.
  std::vector<RequestedTool> take_tools() { return std::move(tools_); }

  Notices& notices;
  /// What goes into the prepared request.
  std::map<std::string, std::pair<std::string, std::string>> namespaces;
  std::set<std::string> found;
  std::set<std::string> custom;
  bool has_tool_search = false;

 private:
  Result<void> check(const ToolField& tool, const std::string& place) const;
  Result<void> check_namespace(const ToolField& tool, const std::string& place) const;
  std::vector<std::string> add_all(std::span<const ToolField> tools, const std::string& place, bool is_found);
  void reserve_names(std::span<const ToolField> tools);
  void add(const ToolField& tool, const std::string& place, bool is_found, std::vector<std::string>& names);
  void add_function(const FunctionField& function, std::string name, std::string_view name_space_description,
                    bool is_found);
  void add_custom(const ToolField& tool, bool is_found);
  std::string new_name(std::string_view name_space, std::string_view name);
  std::string joined(std::string_view name_space, std::string_view name) const;

  ModelVersion version_;
  const ConversionOptions& options_;
  JsonArena& arena_;
  std::vector<RequestedTool> tools_;
  std::set<std::string> taken_;                ///< names that the prompt has already
  std::map<std::string, size_t> next_suffix_;  ///< of each name that was taken when it was wanted
  std::map<std::pair<std::string, std::string>, std::string> names_;  ///< (namespace, name) -> shown name
};

}  // namespace hadal::recipe::responses
