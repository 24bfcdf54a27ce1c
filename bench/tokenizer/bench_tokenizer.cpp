// Speed of the tokenizer on given texts, one thread, in processor time:
//
//   bench_tokenizer TOKENIZER.json FILE...
//
// Prints one JSON object a line: the time to load, then for each file the speed of encoding it once, in
// documents of about 32 kB, after the first tenth of the documents warmed the caches; the text that is timed
// was never seen before. Files whose name contains "hostile" are encoded whole, as one document, without
// warming. `ids_hash` lets another program check that it got the same ids (FNV-1a over the ids as 32-bit
// little-endian words). compare.py makes the texts and measures other tokenizers on them.

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <time.h>

#include "base/mapped_file.h"
#include "tokenizer/tokenizer.h"

namespace {

/// Seconds of processor time that this thread has used: what else runs on the machine does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Documents of about `bytes` that end at a newline, or at a character where there is none.
std::vector<std::string_view> documents(std::string_view text, size_t bytes) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    size_t size = text.size();
    if (size > bytes) {
      size = text.find('\n', bytes);
      size = size == std::string_view::npos ? text.size() : size + 1;
    }
    result.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return result;
}

uint32_t crc32_of(const std::vector<int32_t>& ids) {
  uint32_t crc = ~uint32_t{0};
  for (const int32_t id : ids) {
    for (uint32_t shift = 0; shift < 32; shift += 8) {
      crc ^= static_cast<uint32_t>(id) >> shift & 0xFF;
      for (int bit = 0; bit < 8; ++bit) {
        crc = crc >> 1 ^ (0xEDB88320U & (0U - (crc & 1)));
      }
    }
  }
  return ~crc;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s TOKENIZER.json FILE...\n", argv[0]);
    return 2;
  }
  const double load_start = thread_seconds();
  const auto loaded = hadal::tokenizer::Tokenizer::load(argv[1]);
  if (!loaded) {
    std::fprintf(stderr, "%s\n", loaded.error().message.c_str());
    return 1;
  }
  std::printf("{\"load_s\": %.4f}\n", thread_seconds() - load_start);
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    const auto text = hadal::read_text_file(name, size_t{1} << 30);
    if (!text) {
      std::fprintf(stderr, "%s\n", text.error().message.c_str());
      return 1;
    }
    const bool whole = name.find("hostile") != std::string::npos;
    const auto parts = documents(*text, whole ? text->size() : size_t{32} << 10);
    const size_t warm = whole ? 0 : parts.size() / 10;
    std::vector<int32_t> warm_ids;
    for (size_t part = 0; part < warm; ++part) {
      (*loaded)->encode_plain(parts[part], warm_ids);
    }
    std::vector<int32_t> ids;
    ids.reserve(text->size() / 2);
    size_t bytes = 0;
    const double start = thread_seconds();
    for (size_t part = warm; part < parts.size(); ++part) {
      (*loaded)->encode_plain(parts[part], ids);
      bytes += parts[part].size();
    }
    const double seconds = thread_seconds() - start;
    std::printf(
        "{\"file\": \"%s\", \"bytes\": %zu, \"tokens\": %zu, \"seconds\": %.6f, \"mb_per_s\": %.1f, "
        "\"ids_crc32\": %u}\n",
        name.c_str(), bytes, ids.size(), seconds, static_cast<double>(bytes) / seconds / 1e6, crc32_of(ids));
  }
  return 0;
}
