// Live members of a pipeline, found over real sockets: only those whose own key answers.
#include "runtime/daemon/stages/stage_census.h"

#include <asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <map>
#include <optional>

using namespace rumor;
using namespace rumor::daemon;

namespace {

class Answering final : public net::TransportEvents {
 public:
  explicit Answering(asio::io_context& io) : transport_(io, net::Identity::ephemeral(), *this) {}

  std::string listen() { return transport_.listen("127.0.0.1:0").value(); }
  NodeId id() const { return transport_.id(); }
  void stop() { transport_.stop(); }
  int frames() const { return frames_; }
  void on_link_up(const gossip::LinkUp&) override {}
  void on_frame(gossip::LinkId, BytesView) override { ++frames_; }
  void on_link_down(gossip::LinkId, const std::string&) override {}
  void on_dial_failed(const std::string&, const std::string&) override {}
  void on_backlog(gossip::LinkId, bool) override {}

 private:
  net::Transport transport_;
  int frames_ = 0;
};

std::vector<StagePeer> found_by(asio::io_context& io, StageCensus& census, std::vector<gossip::StageMember> members) {
  std::optional<std::vector<StagePeer>> found;
  census.look(std::move(members), [&](std::vector<StagePeer> live) { found = std::move(live); });
  BOOST_TEST(!found);
  BOOST_TEST(census.is_busy());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!found && std::chrono::steady_clock::now() < end) io.run_one_until(end);
  BOOST_REQUIRE(found);
  BOOST_TEST(!census.is_busy());
  return *found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stage_census)

BOOST_AUTO_TEST_CASE(a_member_lives_if_its_own_key_answers_or_it_is_linked) {
  asio::io_context io;
  Answering one(io), other(io);
  const std::string address = one.listen(), closed = other.listen();
  other.stop();
  const NodeId stranger = net::Identity::ephemeral().id(), linked = net::Identity::ephemeral().id();
  StageCensus census(io);
  const auto found = found_by(io, census, {{one.id(), 2, {closed, address}, false, {}},
                                           {other.id(), 1, {closed}, false, {}},
                                           {stranger, 3, {address}, false, {}},
                                           {net::Identity::ephemeral().id(), 3, {}, false, {}},
                                           {linked, 4, {}, true, {}}});
  std::map<NodeId, std::uint32_t> stages;
  for (const StagePeer& peer : found) stages[peer.node] = peer.stage;
  BOOST_TEST((stages == std::map<NodeId, std::uint32_t>{{one.id(), 2}, {linked, 4}}));
  BOOST_TEST(one.frames() == 0);
  // The next look knows nothing of the last.
  BOOST_TEST(found_by(io, census, {{other.id(), 1, {closed}, false, {}}}).empty());
  BOOST_TEST(found_by(io, census, {}).empty());
}

BOOST_AUTO_TEST_CASE(a_look_that_is_stopped_says_nothing) {
  asio::io_context io;
  Answering one(io);
  StageCensus census(io);
  census.look({{one.id(), 2, {one.listen()}, false, {}}}, [](const auto&) { BOOST_ERROR("it was stopped"); });
  census.stop();
  one.stop();
  io.run();
  BOOST_TEST(!census.is_busy());
}

BOOST_AUTO_TEST_SUITE_END()
