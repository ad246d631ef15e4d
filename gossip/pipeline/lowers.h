// Lowers: a replica's neighbours in the stage below. Which transfers of theirs have not ended, and how many
// more they may begin (PIPELINE.md, 4 and 5).
//
// Thread: one owner. Memory: the pieces of one transfer for each neighbour, and some bytes for each that has
// not ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "gossip/contract/events.h"
#include "gossip/pipeline/uppers.h"
#include "gossip/wire/wire.h"

namespace rumor::gossip {

class Lowers {
 public:
  // window: transfers without an answer that each neighbour may have. bytes_max: of one.
  Lowers(std::uint64_t window, std::uint64_t bytes_max) : window_(window), bytes_max_(bytes_max) {}

  void add(LinkId link) { lowers_[link].limit = window_; }
  bool has(LinkId link) const { return lowers_.contains(link); }
  std::size_t size() const { return lowers_.size(); }
  // The micro-batches that came from there and have not ended, oldest first.
  std::vector<Slot> remove(LinkId link);

  // A transfer whose last piece has come.
  struct Arrived {
    std::uint64_t transfer = 0;
    ActivationsBegin begin;
    Bytes bytes;
  };
  struct Taken {
    std::optional<std::string_view> wrong;  // the reason why the piece has no place here
    std::optional<Arrived> arrived;
  };
  // Requires of this and the following: has(link).
  Taken take(LinkId link, const Activations& piece);
  void hold(LinkId link, std::uint64_t transfer, Slot slot) { lowers_.at(link).held[transfer] = slot; }
  std::optional<Slot> find(LinkId link, std::uint64_t transfer) const;
  bool was_begun(LinkId link, std::uint64_t transfer) const { return transfer <= lowers_.at(link).begun; }
  // The transfer has its answer, or is dropped without one: it leaves room for another one.
  void make_room(LinkId link) { ++lowers_.at(link).limit; }
  // The transfer has ended.
  void forget(LinkId link, std::uint64_t transfer) { lowers_.at(link).held.erase(transfer); }

  // The limits that have risen since the last call. None while we are closed: then no limit rises.
  std::vector<std::pair<LinkId, std::uint64_t>> take_credits(bool is_open);

 private:
  struct Lower {
    std::uint64_t begun = 0, limit = 0, said = 0;  // numbers of transfers; said: in the last CREDIT
    std::map<std::uint64_t, Slot> held;
    std::optional<Arrived> arriving;
  };

  std::map<LinkId, Lower> lowers_;
  std::uint64_t window_, bytes_max_;
};

}  // namespace rumor::gossip
