#include "models/data/data_hash.h"

#include <algorithm>
#include <vector>

#include "runtime/base/bytes.h"

namespace rumor::models {

namespace {
constexpr std::uint64_t block_tokens = 1 << 18;
}

Hash256 training_data_hash(const DataSet& data) {
  ByteWriter out;
  for (const std::uint32_t size : {data.inputs, data.classes, data.train.rows, data.vocabulary, data.context})
    out.u32(size);
  out.u64(data.train_tokens.size());
  out.raw(sha256(data.train.pixels).view());
  out.raw(sha256(data.train.label).view());
  std::vector<Token> block;
  for (std::uint64_t at = 0; at < data.train_tokens.size(); at += block_tokens) {
    block.resize(std::min(block_tokens, data.train_tokens.size() - at));
    data.train_tokens.copy(at, block);
    out.raw(sha256({reinterpret_cast<const std::uint8_t*>(block.data()), block.size() * sizeof(Token)}).view());
  }
  return sha256(out.bytes());
}

}  // namespace rumor::models
