#include "runtime/replica/payload_coder.h"

#include "compress/link/link_form.h"
#include "runtime/base/check.h"

namespace rumor {

using compress::LinkForm;
using gossip::Coding;

compress::LinkHistory* PayloadCoder::history(Coding coding, std::optional<compress::LinkHistory>& of_direction) {
  if (coding != Coding::link) return nullptr;
  if (!of_direction) of_direction.emplace(layout_);
  return &*of_direction;
}

Bytes PayloadCoder::encode(Coding coding, BytesView payload) {
  const LinkForm choice = coding == Coding::link ? LinkForm::link : LinkForm::adapt;
  Result<Bytes> coded = compress::to_link_form(layout_, payload, choice, history(coding, sent_));
  RUMOR_CHECK(coded.ok());  // it is in our store, so it was decoded once
  return std::move(coded).value();
}

Result<Bytes> PayloadCoder::decode(Coding coding, BytesView bytes) {
  return compress::from_link_form(layout_, bytes, history(coding, received_));
}

}  // namespace rumor
