#pragma once
// The one error type that crosses module borders, and the value-or-error type that carries it.

#include <string>
#include <utility>

#include <fmt/format.h>
#include <tl/expected.hpp>

namespace hadal {

/// What kind of failure it was; callers branch on this, people read the message.
enum class ErrorCode {
  kInvalidArgument,    ///< the caller's input is wrong; the message names the field
  kNotFound,           ///< a file, tensor, model or id that does not exist
  kCorrupt,            ///< a file whose content contradicts itself or its format
  kUnsupported,        ///< valid, but nothing that hadal can do
  kResourceExhausted,  ///< a limit was reached; the message says which
  kIo,                 ///< the operating system refused a read or write
  kCancelled,          ///< stopped on request
  kInternal,           ///< a fault of our own
};

/// A failure on input. `message` says where (field, file, tensor, byte offset), what was found and what
/// was expected; it is fit to be shown to the person who gave the input.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

/// A value of type T or an Error. Use `HADAL_TRY` to pass an error on.
template <class T>
using Result = tl::expected<T, Error>;

/// Builds the error side of a Result: `return fail(ErrorCode::kCorrupt, "{}: bad length {}", file, n);`
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::make_unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

/// The same error with text in front of its message, for a caller that knows the place better.
[[nodiscard]] inline tl::unexpected<Error> fail_within(std::string_view place, Error error) {
  error.message = fmt::format("{}: {}", place, error.message);
  return tl::make_unexpected(std::move(error));
}

}  // namespace hadal

#define HADAL_CONCAT_INNER(a, b) a##b
#define HADAL_CONCAT(a, b) HADAL_CONCAT_INNER(a, b)

/// `HADAL_TRY(auto x, f());` declares x with the value of f(), or returns its error.
#define HADAL_TRY(declaration, expression)                                             \
  auto HADAL_CONCAT(hadal_try_, __LINE__) = (expression);                              \
  if (!HADAL_CONCAT(hadal_try_, __LINE__)) {                                           \
    return tl::make_unexpected(std::move(HADAL_CONCAT(hadal_try_, __LINE__)).error()); \
  }                                                                                    \
  declaration = std::move(*HADAL_CONCAT(hadal_try_, __LINE__))

/// Runs an expression of type Result<void> and returns its error, if any.
#define HADAL_CHECK(expression)                                 \
  if (auto hadal_check = (expression); !hadal_check) {          \
    return tl::make_unexpected(std::move(hadal_check).error()); \
  }                                                             \
  static_assert(true, "")
