// The fuzz targets without a fuzzer: feeds each file of a corpus to one of them, then the file cut off at each of its
// first 256 bytes, then with one bit flipped at up to 200 places. The target itself tells what is wrong, by aborting.
//
// usage: fuzz_replay TARGET CORPUS_FOLDER...     exit status 1 for a folder without files, or one that cannot be read
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "tests/fuzz/target.h"

namespace {

using rumor::test::FuzzTarget;

constexpr std::size_t cuts_max = 256;
constexpr std::size_t flips_max = 200;

struct Counts {
  std::size_t files = 0, cuts = 0, flips = 0;
};

// In a block of its own size, so that the address sanitizer sees a read one byte past the end.
void feed(FuzzTarget target, const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> input(data, data + size);
  target(input.data(), input.size());
}

void feed_cut(FuzzTarget target, const std::vector<std::uint8_t>& file, Counts& counts) {
  const std::size_t end = std::min(file.size(), cuts_max);
  for (std::size_t size = 0; size < end; ++size) feed(target, file.data(), size);
  counts.cuts += end;
}

// Every bit of a short file; of a longer one, bits spread evenly from the first byte to the last.
void feed_flipped(FuzzTarget target, std::vector<std::uint8_t> file, Counts& counts) {
  const std::size_t bits = file.size() * 8;
  const std::size_t flips = std::min(bits, flips_max);
  for (std::size_t i = 0; i < flips; ++i) {
    const std::size_t bit = flips < 2 ? 0 : i * (bits - 1) / (flips - 1);
    const auto mask = static_cast<std::uint8_t>(1u << (bit % 8));
    file[bit / 8] ^= mask;
    feed(target, file.data(), file.size());
    file[bit / 8] ^= mask;
  }
  counts.flips += flips;
}

bool replay_file(FuzzTarget target, const std::filesystem::path& path, Counts& counts) {
  std::ifstream stream(path, std::ios::binary);
  const std::vector<std::uint8_t> file{std::istreambuf_iterator<char>(stream),
                                       std::istreambuf_iterator<char>()};
  if (!stream.is_open() || stream.bad()) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  // Names what was fed last, for the log of a crash: the standard error of the target follows it.
  std::fprintf(stderr, "%s: %zu bytes\n", path.filename().c_str(), file.size());
  feed(target, file.data(), file.size());
  ++counts.files;
  feed_cut(target, file, counts);
  feed_flipped(target, file, counts);
  return true;
}

bool replay_folder(FuzzTarget target, const char* folder, Counts& counts) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_regular_file()) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  if (error || paths.empty()) {
    std::fprintf(stderr, "%s: %s\n", folder, error ? error.message().c_str() : "no files to replay");
    return false;
  }
  return std::all_of(paths.begin(), paths.end(), [&](const auto& path) { return replay_file(target, path, counts); });
}

}  // namespace

int main(int argc, char** argv) {
  const auto& targets = rumor::test::fuzz_targets();
  const auto found = argc > 2 ? targets.find(argv[1]) : targets.end();
  if (found == targets.end()) {
    std::fprintf(stderr, "usage: %s TARGET CORPUS_FOLDER...     TARGET is one of", argv[0]);
    for (const auto& [name, target] : targets) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  Counts counts;
  bool ok = true;
  for (int i = 2; i < argc; ++i) ok = replay_folder(found->second, argv[i], counts) && ok;
  std::printf("%zu files, %zu cut off, %zu with a bit flipped\n", counts.files, counts.cuts, counts.flips);
  return ok ? 0 : 1;
}
