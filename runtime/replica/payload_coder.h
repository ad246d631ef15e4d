// PayloadCoder: the codings of a link (gossip/contract/link_coder.h) by the link forms of compress.
//
// Coding::adapt is LinkForm::adapt, Coding::link is LinkForm::link. A record before the update stays as it is. The
// histories of the two directions are made when the first linked payload comes by: a link that is never slow has none.
//
// Thread: one owner. Memory: nothing, or a LinkHistory for each direction in use; the layout is referred to and
// must outlive the coder.
#pragma once

#include <optional>

#include "compress/link/adapt.h"
#include "gossip/contract/link_coder.h"
#include "runtime/base/param_layout.h"

namespace rumor {

class PayloadCoder final : public gossip::LinkCoder {
 public:
  explicit PayloadCoder(const ParamLayout& layout) : layout_(layout) {}

  Bytes encode(gossip::Coding coding, BytesView payload) override;
  Result<Bytes> decode(gossip::Coding coding, BytesView bytes) override;

 private:
  compress::LinkHistory* history(gossip::Coding coding, std::optional<compress::LinkHistory>& of_direction);

  const ParamLayout& layout_;
  std::optional<compress::LinkHistory> sent_, received_;
};

}  // namespace rumor
