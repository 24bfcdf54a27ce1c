#pragma once
// How each setting is read into and written from the struct. Internal to base.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"

namespace hadal {

struct Setting {
  SettingInfo info;
  std::function<Result<void>(Settings&, std::string_view)> set;
  std::function<std::string(const Settings&)> print;  ///< never shows a secret
};

/// All settings in the order in which they are printed.
const std::vector<Setting>& settings_table();

}  // namespace hadal
