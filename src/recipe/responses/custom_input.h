#pragma once
// The free text of a custom tool's call, out of the JSON arguments that the model writes for it.

#include <string>
#include <string_view>

namespace hadal::recipe {

/// Calls of custom tools are written as `{"input": "TEXT"}`; TEXT is given while the JSON arrives. Arguments
/// of another shape are given as they are.
class CustomInput {
 public:
  /// The text that a piece of the arguments adds. Escapes wait until they are whole.
  std::string push(std::string_view arguments);

  /// The call was cut off: what waits of an escape is given as it is.
  std::string cut_off();

 private:
  enum class State { kPrefix, kText, kDone, kOther };

  std::string unescape(std::string_view text);
  /// Appends the meaning of the escape that escape_ holds, if it is whole.
  void end_escape(std::string& out);

  State state_ = State::kPrefix;
  std::string prefix_;  ///< arguments of which it is unknown whether they have the expected shape
  std::string escape_;
};

}  // namespace hadal::recipe
