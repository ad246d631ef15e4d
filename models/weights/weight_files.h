// WeightFiles: the tensors of a checkpoint in one safetensors file, or in several with an index as Hugging Face's
// transformers writes them (models/weights/shard_index.h).
//
// Files are held open, not read into memory. A tensor that is in two files is an error, and so is one that the index
// puts into a file where it is not. Tensors that the index does not name belong to the checkpoint like the others.
//
// Thread: immutable once opened. Memory: the headers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/weights/safetensors.h"
#include "runtime/base/result.h"

namespace rumor::models {

class WeightFiles {
 public:
  // A tensor and the file that holds it. Pointers are valid as long as the WeightFiles.
  struct Tensor {
    const SafetensorsFile* file = nullptr;
    const SafetensorsEntry* entry = nullptr;
    const std::string* path = nullptr;  // of the file, for errors
  };

  // The file to open for `path`: of a folder its model.safetensors or, without one, its model.safetensors.index.json,
  // as transformers chooses; empty if it has neither. Of anything else the path itself.
  static std::string file_in(const std::string& path);

  // `path`: a safetensors file, an index (*.index.json), or a folder with either. Errors: Errc::not_found (no such
  // file, or a shard is missing), Errc::io, Errc::corrupt (file and place). Each names the file.
  static Result<WeightFiles> open(const std::string& path);

  // The file or the index, for errors.
  const std::string& name() const { return name_; }
  // Null when there is none. Valid as long as this object.
  const Tensor* find(std::string_view name) const;
  // By name.
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }

 private:
  struct File {
    std::string path;
    SafetensorsFile content;
  };

  Result<void> add(const std::string& path);
  Result<void> open_shards(const std::string& index_path);

  std::string name_;
  std::vector<std::unique_ptr<const File>> files_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace rumor::models
