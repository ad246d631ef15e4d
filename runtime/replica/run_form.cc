#include "runtime/replica/run_form.h"

namespace rumor {

void RunForm::encode(ByteWriter& out) const {
  out.raw(run.view());
  layout.encode(out);
  out.u8(static_cast<std::uint8_t>(grid_bits));
}

Result<RunForm> RunForm::decode(ByteReader& in) {
  RunForm form;
  form.run = in.id<RunId>();
  auto tensors = ParamLayout::decode(in);
  if (!tensors) return tensors.error();
  form.layout = std::move(tensors).value();
  form.grid_bits = in.u8();
  if (in.failed() || form.grid_bits < 8 || form.grid_bits > 30)
    return Error{Errc::corrupt, "the weight grid is out of range"};
  return form;
}

}  // namespace rumor
