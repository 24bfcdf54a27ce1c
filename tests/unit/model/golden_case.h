#pragma once
// One golden case: NAME.json and NAME.safetensors (tests/data/model/README.md).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"
#include "model/precision.h"

namespace hadal::model {

class GoldenCase {
 public:
  /// "tiny/short"
  static GoldenCase load(const std::string& name);

  template <class T>
  struct Array {
    std::vector<int64_t> shape;
    std::span<const T> values;
    /// Row `i` of the first axis.
    std::span<const T> row(int64_t i) const {
      const size_t size = values.size() / static_cast<size_t>(shape[0]);
      return values.subspan(static_cast<size_t>(i) * size, size);
    }
  };
  Array<float> floats(const std::string& name) const;
  Array<int32_t> ids(const std::string& name) const;
  bool has(const std::string& name) const;
  /// Names that start with `prefix`.
  std::vector<std::string> names(const std::string& prefix) const;

  const nlohmann::json& info() const { return info_; }
  const nlohmann::json& mode_info(PrecisionMode mode) const;
  const std::string& checkpoint() const { return checkpoint_; }
  std::vector<int32_t> token_ids() const { return info_.at("ids").get<std::vector<int32_t>>(); }
  std::string kind() const { return info_.at("kind").get<std::string>(); }

 private:
  GoldenCase(std::string checkpoint, nlohmann::json info, checkpoint::SafetensorsFile file)
      : checkpoint_(std::move(checkpoint)), info_(std::move(info)), file_(std::move(file)) {}
  std::string checkpoint_;
  nlohmann::json info_;
  checkpoint::SafetensorsFile file_;
};

/// A case under one of its modes.
struct GoldenRun {
  std::string name;
  PrecisionMode mode = PrecisionMode::kF32;
};

/// All cases in the data folder with all of their modes, sorted.
std::vector<GoldenRun> all_golden_runs();

}  // namespace hadal::model
