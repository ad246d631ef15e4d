// A folder for files of a test, removed at the end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "runtime/base/types.h"

namespace rumor::models {

struct Scratch {
  std::filesystem::path path;

  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "rumor-models-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void write(const std::string& name, BytesView bytes) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void write(const std::string& name, std::string_view text) const {
    write(name, BytesView{reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  // The text without this folder's random name.
  std::string cut(std::string text) const {
    const std::string prefix = path.string() + "/";
    for (std::size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
    return text;
  }
};

}  // namespace rumor::models
