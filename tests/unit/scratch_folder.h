// A folder of its own for a test, gone with all that is in it when the test is over.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

#include "runtime/base/check.h"

namespace rumor {

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "rumor-test-XXXXXX").string();
    RUMOR_CHECK(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(const std::string& name = {}) const {
    return name.empty() ? folder_ : folder_ + "/" + name;
  }
  std::size_t entries() const {
    const std::filesystem::directory_iterator begin(folder_);
    return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
  }

 private:
  std::string folder_;
};

}  // namespace rumor
