#include "gpu/device/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/text.h"

namespace rumor::gpu {
namespace {

constexpr const char* file_name = "librumor_cuda.so";

std::vector<std::string> places() {
  if (const char* named = std::getenv("RUMOR_CUDA")) return {named};
  // The folders of the program and of the library that contains this code, if it is in one.
  std::set<std::filesystem::path> folders;
  std::error_code failed;
  const auto add = [&](const std::filesystem::path& file) {
    const std::filesystem::path whole = std::filesystem::canonical(file, failed);
    if (!failed) folders.insert(whole.parent_path());
  };
  add("/proc/self/exe");
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&places), &own) != 0 && own.dli_fname != nullptr) add(own.dli_fname);
  std::vector<std::string> files;
  for (const std::filesystem::path& folder : folders)
    for (const auto& at : {folder, folder / ".." / "gpu", folder / ".." / ".." / "gpu", folder / ".." / "lib"})
      files.push_back(at / file_name);
  files.emplace_back(file_name);
  return files;
}

}  // namespace

Result<const GpuTable*> open_plugin(const char* file) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return Error{Errc::not_found, why != nullptr ? why : "it cannot be opened"};
  }
  using Entry = const GpuTable* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, table_symbol));
  const GpuTable* const table = entry != nullptr ? entry() : nullptr;
  if (table != nullptr && table->version == table_version && table->bytes == sizeof(GpuTable)) return table;
  const std::string has = table != nullptr ? str("version ", table->version, " of the table") : "no table";
  dlclose(library);
  return Error{Errc::mismatch, str(file, " has ", has, " and this program needs version ", table_version,
                                   "; both must come from one build")};
}

Result<const GpuTable*> open_plugin() {
  std::string missing;
  for (const std::string& file : places()) {
    const bool is_path = file.find('/') != std::string::npos;
    if (is_path && access(file.c_str(), F_OK) != 0) {
      missing += str(missing.empty() ? "" : ", ", "no ", file);
      continue;
    }
    Result<const GpuTable*> table = open_plugin(file.c_str());
    if (table || table.error().code == Errc::mismatch) return table;
    missing += str(missing.empty() ? "" : ", ", table.error().text);
  }
  return Error{Errc::not_found,
               str("the CUDA plugin is not there (", missing, "); build with nvcc installed, or use --device cpu")};
}

Result<std::unique_ptr<Gpu>> open_gpu(int ordinal) {
  const auto table = open_plugin();
  if (!table) return table.error();
  return Gpu::open(**table, ordinal);
}

Result<std::unique_ptr<GpuGroup>> open_gpus(std::span<const int> ordinals) {
  const auto table = open_plugin();
  if (!table) return table.error();
  return GpuGroup::open(**table, ordinals);
}

}  // namespace rumor::gpu
