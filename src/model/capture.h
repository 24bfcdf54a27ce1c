#pragma once
// Intermediate values of a forward pass, for comparison with goldens and between runs.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hadal::model {

/// What a model records when asked (Model::set_capture). Arrays are indexed by position; rows that were not
/// computed hold zeros (float32) or -1 (ids).
struct Capture {
  bool hidden = false;  ///< "streams" [layers, T, m, H]
  bool router = false;  ///< "experts", "expert_weights" [layers, T, k], best first
  bool index = false;   ///< "topk.L" [T, index_topk] ascending, "candidates" [T, blocks], padded with -1
  bool engram = false;  ///< "engram_ids.L" [T, columns]
  bool draft = false;   ///< "target_features" [targets, T, H], of those positions that a draft window holds
  int64_t num_positions = 0;  ///< T

  struct Floats {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  struct Ids {
    std::vector<int64_t> shape;
    std::vector<int64_t> values;
  };
  std::map<std::string, Floats> floats;
  std::map<std::string, Ids> ids;

  float* float_array(const std::string& name, std::vector<int64_t> shape) {
    auto& array = floats[name];
    if (array.values.empty()) {
      int64_t count = 1;
      for (const int64_t extent : shape) {
        count *= extent;
      }
      array = {std::move(shape), std::vector<float>(static_cast<size_t>(count), 0.0F)};
    }
    return array.values.data();
  }
  int64_t* id_array(const std::string& name, std::vector<int64_t> shape) {
    auto& array = ids[name];
    if (array.values.empty()) {
      int64_t count = 1;
      for (const int64_t extent : shape) {
        count *= extent;
      }
      array = {std::move(shape), std::vector<int64_t>(static_cast<size_t>(count), -1)};
    }
    return array.values.data();
  }
};

}  // namespace hadal::model
