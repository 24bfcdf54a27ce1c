#pragma once
// The version, from the build.

namespace hadal::cli {

inline constexpr const char* kVersion = HADAL_VERSION;

}  // namespace hadal::cli
