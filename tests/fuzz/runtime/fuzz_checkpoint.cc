// Fuzzes the container of checkpoints, and that of public copies, behind its hash: the input is sealed here, so that
// every field is reached. A container that is accepted must restore into a replica or be refused for its fingerprint,
// and encode to itself.
#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/sha256.h"
#include "runtime/replica/checkpoint.h"
#include "tests/fuzz/target.h"

using namespace rumor;

namespace {

void restore(const RunForm& form, const ReplicaState& state) {
  Replica replica(form.run, form.layout, LargeVector<std::int32_t>(form.layout.params()));
  if (replica.restore(state)) RUMOR_CHECK(replica.verify());
}

// A copy is read for a run that is known: as if that were its own.
void read_copy(const Bytes& bytes) {
  ByteReader in(BytesView(bytes).subspan(std::min<std::size_t>(8, bytes.size())));
  const auto form = RunForm::decode(in);
  if (!form) return;
  const auto copy = decode_copy(*form, bytes);
  if (!copy) return;
  RUMOR_CHECK(encode_copy(*form, *copy) == bytes);
  restore(*form, *copy);
}

}  // namespace

FUZZ_TARGET(checkpoint) {
  Bytes bytes(data, data + size);
  const Hash256 hash = sha256(bytes);
  bytes.insert(bytes.end(), hash.bytes.begin(), hash.bytes.end());
  read_copy(bytes);
  const auto form = read_checkpoint_form(bytes);
  if (!form) return 0;
  const auto checkpoint = decode_checkpoint(*form, bytes);
  if (!checkpoint) return 0;
  const Bytes again = encode_checkpoint(*form, checkpoint->replica, checkpoint->local);
  RUMOR_CHECK(again == bytes);
  restore(*form, checkpoint->replica);
  return 0;
}
