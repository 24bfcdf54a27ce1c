// Runs a fuzz target over files without libFuzzer, so that the seeds are a test with any compiler.
//
//   fuzz_NAME FILE_OR_FOLDER...

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void run_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<uint8_t> input(bytes.begin(), bytes.end());
  input.shrink_to_fit();  // so that a read past the end is one past the allocation
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  size_t num_files = 0;
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path path = argv[i];
    if (!std::filesystem::exists(path)) {
      std::fprintf(stderr, "%s does not exist\n", path.c_str());
      return 1;
    }
    if (!std::filesystem::is_directory(path)) {
      run_file(path);
      ++num_files;
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) {
        run_file(entry.path());
        ++num_files;
      }
    }
  }
  std::printf("%zu inputs\n", num_files);
  return num_files > 0 ? 0 : 1;
}
