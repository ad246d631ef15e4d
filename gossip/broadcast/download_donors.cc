// The part of Download that chooses donors: which gives which part, which is asked again, and when all are given up.
#include <algorithm>

#include "gossip/broadcast/download.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

// SNAPSHOT_JOIN names a cut to another donor in one frame.
bool fits_a_frame(const HaveSet& names) {
  ByteWriter out;
  names.encode(out);
  return out.size() + Hash256::size + 1 <= limits::frame_bytes_max;
}

}  // namespace

// Any donor may be asked for its parts now.
void Download::take_back(Donor& donor) {
  unasked_.insert(donor.parts.begin(), donor.parts.end());
  donor.parts.clear();
  donor.arriving = {};
}

// A donor that refused for good is not asked again while this cut is fetched.
Download::Donor Download::refusal(bool later) const {
  Donor donor;
  donor.state = Donor::State::refused;
  donor.later = later;
  donor.again = true;
  donor.deadline = later ? core_.now + refused_for : never;
  return donor;
}

void Download::want_more(Link& link, Donor& donor) {
  while (donor.parts.size() < parts_in_flight && !unasked_.empty()) {
    donor.parts.push_back(*unasked_.begin());
    unasked_.erase(unasked_.begin());
    core_.send(link, encode(SnapshotWant{donor.number, donor.parts.back(), false}));
  }
}

void Download::link_lost(LinkId link) {
  const auto at = donors_.find(link);
  if (at != donors_.end()) {
    take_back(at->second);
    donors_.erase(at);
  }
  if (busy() && !knows_cut_ && donors_.empty()) stop();
}

// ---- time ----

// Gives up on silent donors; donors that refused may be asked again.
void Download::watch_donors() {
  for (auto at = donors_.begin(); at != donors_.end();) {
    Donor& donor = at->second;
    const bool idle = donor.state == Donor::State::giving && donor.parts.empty();
    const bool refused = donor.state == Donor::State::refused;
    if (idle || refused || core_.now < donor.deadline) {
      if (!idle && !refused) due_by(donor.deadline);
      ++at;
      continue;
    }
    Link* link = core_.find(at->first);
    if (link != nullptr) parts(*link).joining.ask_again_at = core_.now + progress_deadline;
    if (link != nullptr && donor.number != 0) core_.send(*link, encode(SnapshotWant{donor.number, 0, true}));
    take_back(donor);
    if (knows_cut_) {
      donor = refusal(true);  // else a donor that never answers could keep us at this cut for ever
      donor.silent = true;
      ++at;
    } else {
      at = donors_.erase(at);
    }
  }
  if (!knows_cut_ && donors_.empty()) stop();
}

// Asks further links that may be able to make this cut.
void Download::seek_donors() {
  const Manifest& manifest = *core_.store.snapshots().intake();
  const bool asks = fits_a_frame(manifest.names);
  std::size_t useful = 0, hopeful = 0, refused = 0, silent = 0, links = 0;
  for (const auto& [id, donor] : donors_) {
    const bool no = donor.state == Donor::State::refused;
    useful += no ? 0 : 1;
    hopeful += donor.state == Donor::State::giving || (!no && !donor.again) ? 1 : 0;
    refused += no && !donor.later ? 1 : 0;
    silent += donor.silent ? 1 : 0;
  }
  core_.each_link([&](Link& link) {
    JoiningLink& its = parts(link).joining;
    ++links;
    const auto at = donors_.find(link.id);
    const bool known = at != donors_.end();
    if (known && at->second.state == Donor::State::giving) want_more(link, at->second);
    const bool again = known && at->second.state == Donor::State::refused && core_.now >= at->second.deadline;
    const bool may = asks && (!known || again) && !its.serving && core_.now >= its.ask_again_at;
    if (!may || useful >= donors_max || unasked_.empty()) return;
    ++useful;
    hopeful += again ? 0 : 1;
    Donor& donor = donors_[link.id];
    donor.state = Donor::State::asked;
    donor.deadline = core_.now + answer_deadline;
    core_.send(link, encode(SnapshotJoin{hash_, manifest.names}));
  });
  const Duration waited = core_.now - progress_at_;
  const bool nobody = links > 0 && hopeful == 0;
  const Duration patience = silent == 0 ? answer_deadline : silence_deadline;
  if ((nobody && refused == links && waited >= given_up_after) || (nobody && waited >= patience)) {
    core_.note(Note::Level::info, "nobody can go on with the download of the weights; beginning a new one");
    abandon();
  }
}

}  // namespace rumor::gossip
