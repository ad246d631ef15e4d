// Fuzzes the container of checkpoints behind its hash: the input is sealed here, so that every
// field is reached. A container that is accepted must restore into a replica or be refused for its
// fingerprint, and encode to itself.
#include "runtime/base/check.h"
#include "runtime/base/sha256.h"
#include "runtime/checkpoint.h"

using namespace rumor;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, data + size);
  const Hash256 hash = sha256(bytes);
  bytes.insert(bytes.end(), hash.bytes.begin(), hash.bytes.end());
  const auto form = read_checkpoint_form(bytes);
  if (!form) return 0;
  const auto checkpoint = decode_checkpoint(*form, bytes);
  if (!checkpoint) return 0;
  const Bytes again = encode_checkpoint(*form, checkpoint->replica, checkpoint->local);
  RUMOR_CHECK(again == bytes);
  Replica replica(form->run, form->layout, LargeVector<std::int32_t>(form->layout.params()));
  if (replica.restore(checkpoint->replica)) RUMOR_CHECK(replica.verify());
  return 0;
}
