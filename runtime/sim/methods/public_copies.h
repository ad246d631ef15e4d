// PublicCopies: what peers know of one another where each has weights of its own.
//
// A peer's public copy is what it has told of its weights so far. It moves by the compressed difference,
//
//   q = compress(weights - copy);  copy += q
//
// and whoever holds the copy moves it by the same q. What q leaves out stays in the difference: nothing is lost, only
// told later. (Koloskova, Stich, Jaggi, ICML 2019, "Decentralized stochastic optimization and gossip algorithms with
// compressed communication"; Koloskova, Lin, Stich, Jaggi, ICLR 2020.) Compression and coding are those of updates
// (compress/compressor.h, compress/update.h). All holders have equal bits, each as late as its link: links keep order
// and lose nothing.
//
// Who holds whose copy may change at any time. A new holder gets the whole copy, 4 bytes a parameter. The papers also
// show how to keep only the weighted sum of all neighbours' copies; that ends with the first neighbour that leaves, as
// nobody knows what its part of the sum was.
//
// Thread: one owner. Memory: a model for each peer, and one for each that it hears.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "compress/compressor.h"
#include "runtime/sim/methods/method_record.h"
#include "runtime/sim/network.h"

namespace rumor::sim {

class PublicCopies {
 public:
  // Of a message beside its payload: kind, length and the sender's step.
  static constexpr std::size_t head_bytes = 16;

  // Peer i hears those in heard[i]. All begin with `start` and know it of each other. Refers to layout and record.
  PublicCopies(const RunConfig& config, const ClusterOptions& options, const ParamLayout& layout,
               std::span<const float> start, const std::vector<std::vector<std::size_t>>& heard, MethodRecord& record);

  // From now on peer i hears those in heard[i]: links that are new begin with the whole copy, as soon as there is one.
  void connect(const std::vector<std::vector<std::size_t>>& heard, TimePoint now);
  // A peer without weights gets some, and all who hear it get them whole.
  void adopt(std::size_t peer, std::span<const float> weights, TimePoint now);
  // It is away: its copy and what was on the way to it are gone. Links go with the next connect().
  void forget(std::size_t peer);

  // Whether something that it has sent has not left it yet.
  bool uplink_busy(std::size_t peer, TimePoint now) const { return network_.waiting(peer, now) > 0; }
  // Sends q to all who hear the peer. `density`: entries / parameters. Errors: Errc::not_finite.
  Result<void> tell(std::size_t peer, std::span<const float> weights, double density, TimePoint now);
  // Takes in all that has arrived.
  void hear(std::size_t peer, TimePoint now);

  std::span<const float> own(std::size_t peer) const { return peers_[peer].own; }
  struct Copy {
    std::size_t of;
    std::span<const float> weights;
  };
  // The copies that it holds by now, ascending.
  std::vector<Copy> held(std::size_t peer) const;

  // Fills in what messages cost.
  void report(SimResult& result) const;

 private:
  struct Heard {
    std::uint64_t link;       // its number: what was sent over an earlier one does not count
    std::vector<float> copy;  // empty: still on its way
  };
  struct Message {
    TimePoint arrives;
    std::size_t from;
    std::uint64_t link;
    std::size_t bytes;
    std::shared_ptr<const compress::SparseUpdate> change;  // or:
    std::shared_ptr<const std::vector<float>> whole;
  };
  struct Peer {
    std::vector<float> own;                         // empty: none yet
    std::map<std::size_t, Heard> heard;             // by peer
    std::map<std::size_t, std::uint64_t> listeners;  // link, by peer
    std::deque<Message> inbox;                      // in the order of arrival
  };

  void send(std::size_t to, Message message, TimePoint now);
  void send_whole(std::size_t from, std::size_t to, TimePoint now);

  const ParamLayout& layout_;
  MethodRecord& record_;
  Network network_;
  compress::Compressor compressor_;  // of all peers, one after another: nothing is left in it
  float unit_;                       // of the weight grid
  std::vector<float> difference_;
  std::vector<Peer> peers_;
  std::uint64_t links_ = 0, told_ = 0, entries_ = 0, payload_bytes_ = 0;
  double bound_bits_ = 0;
};

// copy += change, exactly as every holder does it. `unit`: of the weight grid.
void move_copy(std::span<float> copy, const ParamLayout& layout, const compress::SparseUpdate& change, float unit);

}  // namespace rumor::sim
