// ViewTrail: the views of a stream's steps as bytes (runtime/AUDIT.md, "The tape"). A view is the set of updates that
// the weights held when a step was computed. Written and read in the same order, step by step, each view costs only
// what is new since the one before.
//
// Thread: one owner. Memory: one have-set, and an id for each stream in it.
#pragma once

#include <map>
#include <vector>

#include "gossip/contract/have_set.h"

namespace rumor::audit {

class ViewTrail {
 public:
  // The next view is the first again, for bytes that can be read without those before.
  void restart() { *this = {}; }
  // Whether the next view has to be written whole: it lacks names of the last one, or it is the first.
  bool needs_whole(const gossip::HaveSet& view) const;
  // Requires: whole where needs_whole().
  void write(const gossip::HaveSet& view, bool whole, ByteWriter& out);
  // Reads the next view. Errors: Errc::corrupt, Errc::limit; the trail cannot be read any further then.
  Result<void> read(bool whole, ByteReader& in);
  // The last view that was written or read.
  const gossip::HaveSet& view() const { return view_; }

 private:
  void name(const StreamId& stream);
  void write_news(const gossip::HaveSet& news, ByteWriter& out);
  Result<void> read_news(ByteReader& in);
  Result<void> read_ranges(const StreamId& stream, ByteReader& in);

  bool begun_ = false;
  gossip::HaveSet view_;
  std::vector<StreamId> streams_;           // by their numbers in the tape
  std::map<StreamId, std::size_t> number_;
};

}  // namespace rumor::audit
