#include "test_rows.h"

#include <cmath>
#include <limits>

#include "engine/philox.h"

namespace hadal::engine {

std::vector<float> make_row(std::string_view kind, uint32_t row_seed, int64_t num_tokens) {
  std::vector<float> row;
  row.reserve(static_cast<size_t>(num_tokens));
  for (int64_t token = 0; token < num_tokens; ++token) {
    const uint32_t word = philox4x32({static_cast<uint32_t>(token), 0, 0, 7}, {row_seed, 0})[0];
    const double high = word >> 8;
    double logit = 0;
    if (kind == "flat") {
      logit = high * 0x1p-20 - 8;
    } else if (kind == "coarse") {
      logit = (static_cast<double>(word % 9) - 4) * 0.5;
    } else if (kind == "peaked") {
      logit = 24 - std::sqrt(high * 0x1p-10);
    } else {
      logit = word % 3 == 0 ? high * 0x1p-21 - 4 : -std::numeric_limits<double>::infinity();
    }
    row.push_back(static_cast<float>(logit));
  }
  return row;
}

}  // namespace hadal::engine
