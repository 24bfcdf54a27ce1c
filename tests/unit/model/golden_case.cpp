#include "golden_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tiny_models.h"

namespace hadal::model {
namespace {

std::filesystem::path data_path(const std::string& name) {
  return std::filesystem::path(HADAL_MODEL_DATA) / name;
}

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  return nlohmann::json::parse(file);
}

template <class T>
GoldenCase::Array<T> array_of(const checkpoint::SafetensorsFile& file, const std::string& name,
                              checkpoint::DType dtype) {
  const auto view = file.tensor(name).value();
  EXPECT_EQ(view.dtype, dtype) << name;
  return {view.shape, {reinterpret_cast<const T*>(view.data), view.bytes / sizeof(T)}};
}

}  // namespace

GoldenCase GoldenCase::load(const std::string& name) {
  return {name.substr(0, name.find('/')), read_json(data_path(name + ".json")),
          checkpoint::SafetensorsFile::open(data_path(name + ".safetensors")).value()};
}

GoldenCase::Array<float> GoldenCase::floats(const std::string& name) const {
  return array_of<float>(file_, name, checkpoint::DType::kF32);
}

GoldenCase::Array<int32_t> GoldenCase::ids(const std::string& name) const {
  return array_of<int32_t>(file_, name, checkpoint::DType::kI32);
}

bool GoldenCase::has(const std::string& name) const {
  return file_.header().tensors.contains(name);
}

std::vector<std::string> GoldenCase::names(const std::string& prefix) const {
  std::vector<std::string> found;
  for (const auto& [name, info] : file_.header().tensors) {
    if (name.starts_with(prefix)) {
      found.push_back(name);
    }
  }
  return found;
}

const nlohmann::json& GoldenCase::mode_info(PrecisionMode mode) const {
  return info_.at("modes").at(precision_name(mode));
}

std::vector<GoldenRun> all_golden_runs() {
  std::vector<GoldenRun> runs;
  for (const auto& folder : std::filesystem::directory_iterator(HADAL_MODEL_DATA)) {
    if (!std::filesystem::is_directory(std::filesystem::path(HADAL_TINY_CHECKPOINTS) /
                                       folder.path().filename())) {
      continue;
    }
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      if (file.path().extension() != ".json") {
        continue;
      }
      const std::string name = folder.path().filename().string() + "/" + file.path().stem().string();
      const auto info = read_json(file.path());
      for (const auto& [mode, unused] : info.at("modes").items()) {
        runs.push_back({name, parse_precision(mode).value()});
      }
    }
  }
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return std::pair(a.name, a.mode) < std::pair(b.name, b.mode);
  });
  return runs;
}

}  // namespace hadal::model
