#include "runtime/replica/payload_coder.h"

#include "compress/link/link_form.h"
#include "compress/payload/recorded.h"
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
  const auto recorded = compress::split_record(payload);
  Result<Bytes> coded =
      compress::to_link_form(layout_, recorded ? recorded->update : payload, choice, history(coding, sent_));
  RUMOR_CHECK(coded.ok());  // it is in our store, so it was decoded once
  return recorded ? compress::with_record(recorded->record, *coded) : std::move(coded).value();
}

Result<Bytes> PayloadCoder::decode(Coding coding, BytesView bytes) {
  const auto recorded = compress::split_record(bytes);
  auto payload = compress::from_link_form(layout_, recorded ? recorded->update : bytes, history(coding, received_));
  if (!payload || !recorded) return payload;
  return compress::with_record(recorded->record, *payload);
}

}  // namespace rumor
