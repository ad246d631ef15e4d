#include "models/weights/weight_files.h"

#include <filesystem>
#include <set>
#include <utility>

#include "models/data/mapped_file.h"
#include "models/weights/shard_index.h"
#include "runtime/base/text.h"

namespace rumor::models {

namespace fs = std::filesystem;

std::string WeightFiles::file_in(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  for (const std::string_view name : {std::string_view("model.safetensors"), shard_index_name})
    if (const std::string inside = str(path, "/", name); fs::exists(inside, ignored)) return inside;
  return {};
}

Result<WeightFiles> WeightFiles::open(const std::string& path) {
  WeightFiles files;
  files.name_ = file_in(path);
  if (files.name_.empty())
    return Error{Errc::not_found, str("there is no model.safetensors and no ", shard_index_name, " in ", path)};
  const bool is_index = files.name_.ends_with(".index.json");
  if (auto opened = is_index ? files.open_shards(files.name_) : files.add(files.name_); !opened)
    return opened.error();
  return files;
}

const WeightFiles::Tensor* WeightFiles::find(std::string_view name) const {
  const auto at = tensors_.find(name);
  return at == tensors_.end() ? nullptr : &at->second;
}

Result<void> WeightFiles::add(const std::string& path) {
  auto content = SafetensorsFile::read(path);
  if (!content) return content.error();
  files_.push_back(std::make_unique<const File>(File{path, std::move(content).value()}));
  const File& file = *files_.back();
  for (const SafetensorsEntry& entry : file.content.entries()) {
    const auto [at, is_new] = tensors_.emplace(entry.name, Tensor{&file.content, &entry, &file.path});
    if (!is_new)
      return Error{Errc::corrupt, str(name_, ": tensor ", entry.name, " is in ", *at->second.path, " and in ", path,
                                      "; which one counts is not known")};
  }
  return {};
}

Result<void> WeightFiles::open_shards(const std::string& index_path) {
  const auto text = MappedFile::open(index_path);
  if (!text) return text.error();
  const BytesView bytes = (*text)->bytes();
  if (bytes.size() > shard_index_bytes_max)
    return Error{Errc::corrupt, str(index_path, " has ", bytes.size(), " bytes, more than an index may have")};
  const auto index = parse_shard_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, index_path);
  if (!index) return index.error();
  const std::string folder = fs::path(index_path).parent_path().string();
  const auto path_of = [&](const std::string& shard) { return folder.empty() ? shard : str(folder, "/", shard); };
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : *index) shards.insert(shard);
  for (const std::string& shard : shards) {
    auto added = add(path_of(shard));
    if (!added && added.error().code == Errc::not_found)
      return Error{Errc::not_found, str(index_path, " names the shard ", shard, ", which is not there; download it ",
                                        "again, or copy all files of the checkpoint")};
    if (!added) return added;
  }
  for (const auto& [tensor, shard] : *index) {
    const Tensor* found = find(tensor);
    if (found == nullptr || *found->path != path_of(shard))
      return Error{Errc::corrupt, str(index_path, ": tensor ", tensor, " is not in ", shard, ", where the index has ",
                                      "it", found == nullptr ? ", nor in another shard" : ", but in " + *found->path)};
  }
  return {};
}

}  // namespace rumor::models
