// Every frame there and back, at its bounds, cut short and damaged; and the example of PROTOCOL.md,
// section 10.
#include "gossip/wire/wire.h"

#include <boost/test/unit_test.hpp>

#include "gossip/contract/stream_name.h"
#include "runtime/base/limits.h"
#include "runtime/base/prng.h"

namespace rumor::gossip {

namespace {

template <class AnId>
AnId counting(std::uint8_t first) {
  AnId id;
  for (auto& byte : id.bytes) byte = first++;
  return id;
}

PeerRecord record(std::size_t addresses = 1) {
  return {counting<NodeId>(0x20), 7, std::vector<std::string>(addresses, "peer.example:7001"),
          counting<Signature>(0x40), Bytes(200, 9)};
}

const Bytes payload{0xc0, 0xff, 0xee};

Data data() {
  Data message;
  message.header.key.seq = 300;
  message.header.signature.bytes.fill(0xaa);
  message.header.fingerprint = 0x0102030405060708;
  message.header.period = 5;
  message.header.samples = 32;
  message.payload = payload;
  message.coding = Coding::link;
  return message;
}

UpdateHeader header() {
  UpdateHeader whole{{counting<StreamId>(1), 9}, counting<NodeId>(2), counting<Hash256>(3), 4, 5, 6};
  whole.signature = counting<Signature>(7);
  return whole;
}

Revocation proof() {
  const NodeId node = counting<NodeId>(1);
  return Revocation::proof(node, {stream_of(node, 1), 300}, {{stream_of(node, 2), 9}});
}

HaveSet example_set() {
  HaveSet set;
  set.insert(counting<StreamId>(0), {1, 300});
  set.insert(UpdateKey{counting<StreamId>(0), 302});
  return set;
}

Hello of_stage(Hello hello) {
  hello.pipeline = counting<PipelineId>(4);
  hello.self.stage = 2;
  return hello;
}

std::vector<Bytes> one_of_each() {
  Hello hello;
  hello.run = counting<RunId>(1);
  hello.run_name = "fashion-mlp";
  hello.stream = counting<StreamId>(3);
  hello.self = record(8);
  hello.digest = {{counting<Hash256>(9), 77, 5}, 99, true, true};
  hello.lonely = hello.errand = true;
  hello.began = 1'764'000'000'123;
  SnapshotOffer offer{3, counting<Hash256>(1), 1'000'000, 17, 200, {}, 500, 6};
  SnapshotOffer refusal;
  refusal.refusal = "busy";
  return {
      encode(hello),
      encode(of_stage(hello)),
      encode(Reject{Reject::Code::other_run,
                    "why",
                    counting<RunId>(1),
                    "other",
                    {record()},
                    {7, 0, UINT32_MAX},
                    {1, 2}}),
      encode(Bye{Bye::Code::surplus, "enough", {record(), record(2)}}),
      encode(Ping{1234567}),
      encode(Pong{7}),
      encode(Peers{{record(), record(0)}}),
      encode(StreamDef{4, counting<StreamId>(1), {}}),
      encode(StreamDef{0, counting<StreamId>(0), counting<NodeId>(0x20)}),
      encode(Have{{{0, 1}, {0, 300}, {9, seq_max}}}),
      encode(Want{{{1, {5, 9}}, {0, {3, 3}}}}),
      encode(Subscribe{12, true}),
      encode(Decline{12}),
      encode(Invite{counting<NodeId>(1), counting<NodeId>(2)}),
      encode(data()),
      encode(Digest{{counting<Hash256>(2), 5, 6}, 7, false, false}),
      encode(Digest{{counting<Hash256>(2), 5, 6}, 7, true, true, 8}),
      encode(Vector{example_set(), true, false}),
      encode(NotAvailable{{{1, {1, 512}}}}),
      encode(SnapshotAsk{88, true, counting<Hash256>(4)}),
      encode(offer),
      encode(refusal),
      encode(SnapshotWant{3, 9}),
      encode(SnapshotWant{3, 0, true}),
      encode(SnapshotData{3, 9, payload, true}),
      encode(DataMore{payload, true}),
      encode(SnapshotJoin{counting<Hash256>(1), HaveSet{}}),
      encode(CopyAsk{}),
      encode(CopyAsk{300}),
      encode(Copy{Copy::Begin{300, 70'000}, payload, true}),
      encode(Copy{std::nullopt, payload, false}),
      encode(Buffers{counting<NodeId>(1), 300, 70'000, counting<Signature>(2), payload}),
      encode(Revocations{{{counting<NodeId>(1), {}, {1, seq_max}, counting<Signature>(3)},
                          {counting<NodeId>(1), counting<StreamId>(2), {5, 9}, counting<Signature>(4)}}}),
      encode(TakenBack{Revocation::withdrawal(counting<NodeId>(1), {counting<StreamId>(2), 700})}),
      encode(TakenBack{proof()}),
      encode(StateWant{{counting<StreamId>(2), 700}, 300}),
      encode(StateData{{counting<StreamId>(2), 700}, 300, payload}),
      encode(StateData{{counting<StreamId>(2), 700}, 0, {}}),
      encode(Charge{{counting<StreamId>(2), 700}}),
      encode(Headers{3, 17, {counting<HalfHash>(1), counting<HalfHash>(2)}}),
      encode(Stage{counting<PipelineId>(1), 2, 3, 7}),
      encode(Credit{300}),
      encode(Activations{300, ActivationsBegin{{counting<StreamId>(1), 9}, 16, 2, 70'000}, payload, true}),
      encode(Activations{300, std::nullopt, payload, false}),
      encode(Gradients{1, GradientsBegin{2.5f, 3}, payload, false}),
      encode(Gradients{1, std::nullopt, payload, true}),
      encode(Outcome{300, Outcome::Kind::refused}), encode(Over{}),
      encode(Equivocation{header(), {}}),
      encode(Equivocation{header(), header()})};
}

Bytes encode_again(const Frame& frame) {
  return std::visit(
      [](const auto& message) -> Bytes {
        if constexpr (std::is_same_v<std::decay_t<decltype(message)>, Skipped>) {
          return {};
        } else {
          return encode(message);
        }
      },
      frame);
}

std::string reason(const Bytes& bytes) {
  const Result<Frame> frame = decode(bytes);
  return frame.ok() ? "" : frame.error().text;
}

Bytes from_hex(std::string_view text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size();) {
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
    i += 2;
  }
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(wire)

BOOST_AUTO_TEST_CASE(frames_come_back_as_they_went) {
  for (const Bytes& bytes : one_of_each()) {
    const Result<Frame> frame = decode(bytes);
    BOOST_REQUIRE_MESSAGE(frame.ok(), reason(bytes));
    BOOST_TEST(encode_again(frame.value()) == bytes, boost::test_tools::per_element());
  }
  const Frame back = decode(encode(Have{{{2, 5}, {0, 9}}})).value();
  BOOST_TEST((std::get<Have>(back).keys == std::vector<WireKey>{{2, 5}, {0, 9}}));
  const Bytes update = encode(data());
  const Data there = std::get<Data>(decode(update).value());
  BOOST_TEST(there.header.fingerprint == 0x0102030405060708u);
  BOOST_TEST((there.coding == Coding::link));
  BOOST_TEST(there.payload.size() == payload.size());
}

BOOST_AUTO_TEST_CASE(truncations_and_flips_are_refused_or_stay_valid) {
  Prng prng(5);
  for (const Bytes& bytes : one_of_each()) {
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const Result<Frame> frame = decode(BytesView(bytes).first(size));
      if (!frame.ok()) BOOST_TEST(!frame.error().text.empty());
      if (frame.ok()) BOOST_TEST(encode_again(frame.value()).size() <= size + 16);
    }
    for (int i = 0; i < 300; ++i) {
      Bytes flipped = bytes;
      flipped[prng.below(flipped.size())] ^= static_cast<std::uint8_t>(1u << prng.below(8));
      const Result<Frame> frame = decode(flipped);
      if (frame.ok()) BOOST_TEST(encode_again(frame.value()).size() <= flipped.size() + 16);
    }
  }
  // These are whole only at full length.
  for (const Bytes& bytes : {encode(Vector{example_set(), false, true}),
                             encode(SnapshotData{1, 2, BytesView(payload).first(1)})}) {
    for (std::size_t size = 0; size < bytes.size(); ++size)
      BOOST_TEST(!decode(BytesView(bytes).first(size)).ok());
  }
}

BOOST_AUTO_TEST_CASE(bounds_have_reasons) {
  BOOST_TEST(reason({}) == "an empty frame");
  BOOST_TEST(reason({0}) == "unknown frame type 0");
  BOOST_TEST(reason({127}) == "unknown frame type 127");
  BOOST_TEST(std::holds_alternative<Skipped>(decode(Bytes{200, 1, 2}).value()));
  Bytes long_ping(2000, 0);
  long_ping[0] = static_cast<std::uint8_t>(FrameType::ping);
  BOOST_TEST(reason(long_ping) == "frame of type 4 is too long");

  BOOST_TEST((Have{}.invalid() == "a wrong number of keys"));
  BOOST_TEST((Have{std::vector<WireKey>(limits::keys_per_frame_max, {0, 1})}.invalid() == std::nullopt));
  BOOST_TEST((Have{std::vector<WireKey>(limits::keys_per_frame_max + 1, {0, 1})}.invalid() ==
              "a wrong number of keys"));
  BOOST_TEST((Have{{{0, 0}}}.invalid() == "a sequence number out of range"));
  BOOST_TEST((Have{{{0, seq_max + 1}}}.invalid() == "a sequence number out of range"));
  BOOST_TEST((Want{{{0, {1, 513}}}}.invalid() == "too many keys"));
  BOOST_TEST((Want{{{0, {2, 1}}}}.invalid() == "a range that is none"));
  BOOST_TEST((record(9).invalid() == "too many addresses"));
  BOOST_TEST((PeerRecord{counting<NodeId>(1), 1, {"line\nbreak:1"}}.invalid() == "an address that is none"));
  BOOST_TEST(
      (PeerRecord{counting<NodeId>(1), 1, {std::string(257, 'a')}}.invalid() == "an address that is none"));
  BOOST_TEST((PeerRecord{counting<NodeId>(1), record_number_max + 1, {}}.invalid() ==
              "a record number out of range"));
  BOOST_TEST((Peers{std::vector<PeerRecord>(65, record())}.invalid() == "too many records"));
  BOOST_TEST((SnapshotOffer{1, {}, limits::snapshot_bytes_max + 1, 0, 0, {}, 100}.invalid() ==
              "a size out of range"));
}

// An announcement waits as long as the update that it offers (PROTOCOL.md 6.1.2).
BOOST_AUTO_TEST_CASE(announcements_wait_behind_data) {
  BOOST_TEST((row_of<Have>.lane == row_of<Data>.lane));
  BOOST_TEST((row_of<Want>.lane == Lane::control));
}

BOOST_AUTO_TEST_CASE(frames_of_copies) {
  BOOST_TEST((encode(CopyAsk{300}) == Bytes{129, 1, 0xac, 0x02}));
  BOOST_TEST((encode(CopyAsk{}) == Bytes{129, 0, 0}));
  BOOST_TEST((encode(Copy{Copy::Begin{300, 9}, payload, true}) == Bytes{130, 3, 0xac, 0x02, 9, 0xc0, 0xff, 0xee}));
  BOOST_TEST((encode(Copy{std::nullopt, payload, false}) == Bytes{130, 0, 0xc0, 0xff, 0xee}));
  BOOST_TEST(reason({129, 0, 1}) == "frame of type 129 has an update of a copy that is not held");
  BOOST_TEST(reason({129, 2, 1}) == "frame of type 129 has cut short, or unknown flags");
  BOOST_TEST(reason({129, 1, 1, 0}) == "frame of type 129 has cut short, or unknown flags");
  BOOST_TEST(reason({130, 4, 1}) == "frame of type 130 has cut short, or unknown flags");
  BOOST_TEST(reason({130, 0}) == "frame of type 130 has a piece of a wrong size");
  BOOST_TEST(reason({130, 2, 1, 2, 1, 2, 3}) == "frame of type 130 has a piece longer than its copy");
  BOOST_TEST((CopyAsk{seq_max + 1}.invalid() == "a sequence number out of range"));

  const auto copy = std::make_shared<const Bytes>(limits::piece_bytes_max + 1, std::uint8_t{7});
  const Bytes first = encode_piece(copy, 0, 5).joined(), last = encode_piece(copy, limits::piece_bytes_max, 5).joined();
  const auto begins = decode(first), ends = decode(last);
  const auto& one = std::get<Copy>(*begins);
  BOOST_TEST((one.begin && one.begin->seq == 5 && one.begin->bytes == copy->size() && one.more));
  const auto& other = std::get<Copy>(*ends);
  BOOST_TEST((!other.begin && !other.more && other.bytes.size() == 1));
}

BOOST_AUTO_TEST_CASE(frames_of_buffers) {
  Buffers message{counting<NodeId>(1), 1, 0, {}, payload};
  const Bytes bytes = encode(message);
  BOOST_TEST(bytes.size() == 1 + 32 + 1 + 1 + 64 + payload.size());
  BOOST_TEST(reason(Bytes(bytes.begin(), bytes.begin() + 50)) == "frame of type 131 has cut short");
  BOOST_TEST(reason(Bytes(bytes.begin(), bytes.begin() + 99)) == "frame of type 131 has buffers of a wrong size");
  message.number = 0;
  BOOST_TEST((message.invalid() == "a number out of range"));
  message = {NodeId{}, 1, 0, {}, payload};
  BOOST_TEST((message.invalid() == "buffers of no node"));
  const Bytes large(limits::buffers_bytes_max + 1);
  message = {counting<NodeId>(1), record_number_max, UINT64_MAX, {}, large};
  BOOST_TEST((message.invalid() == "buffers of a wrong size"));
  message.values = BytesView(large).first(limits::buffers_bytes_max);
  BOOST_TEST(encode(message).size() <= limits::frame_bytes_max);
}

BOOST_AUTO_TEST_CASE(frames_between_stages) {
  const ActivationsBegin begin{{counting<StreamId>(1), 9}, 2, 1, 3};
  const Bytes bytes = encode(Activations{1, begin, payload, false});
  BOOST_TEST((Bytes(bytes.begin(), bytes.begin() + 4) == Bytes{138, 2, 1, 1}));
  BOOST_TEST((Bytes(bytes.begin() + 19, bytes.end()) == Bytes{9, 2, 1, 3, 0xc0, 0xff, 0xee}));
  BOOST_TEST((encode(Gradients{1, GradientsBegin{1, 3}, payload, false}) ==
              Bytes{139, 2, 1, 0, 0, 0x80, 0x3f, 3, 0xc0, 0xff, 0xee}));
  BOOST_TEST(reason({138, 4, 1, 1}) == "frame of type 138 has cut short, or unknown flags");
  BOOST_TEST(reason({139, 0, 1}) == "frame of type 139 has a piece of a wrong size");
  BOOST_TEST(reason({139, 0, 0, 1}) == "frame of type 139 has a transfer out of range");
  BOOST_TEST(reason({139, 2, 1, 0, 0, 0, 0, 4, 1}) ==
             "frame of type 139 has a piece that does not fit its length");
  BOOST_TEST(reason({139, 3, 1, 0, 0, 0, 0, 1, 1}) ==
             "frame of type 139 has a piece that does not fit its length");
  const auto wrong = [&](auto change) {
    ActivationsBegin changed = begin;
    change(changed);
    return Activations{1, changed, payload, false}.invalid();
  };
  BOOST_TEST((wrong([](ActivationsBegin& b) { b.name.number = 0; }) == "a micro-batch without a name"));
  BOOST_TEST((wrong([](ActivationsBegin& b) { b.name.source = {}; }) == "a micro-batch without a name"));
  BOOST_TEST((wrong([](ActivationsBegin& b) { b.rows = 0; }) == "a micro-batch without rows"));
  BOOST_TEST((wrong([](ActivationsBegin& b) { b.label_bytes = 4; }) == "labels longer than the transfer"));
  BOOST_TEST(
      (wrong([](ActivationsBegin& b) { b.bytes = limits::border_bytes_max + 1; }) == "a border too long"));
  BOOST_TEST((Stage{counting<PipelineId>(1), 4, 3, 0}.invalid() == "a stage out of range"));
  BOOST_TEST((Stage{counting<PipelineId>(1), 0, 3, 0}.invalid() == "a stage out of range"));
  BOOST_TEST((Stage{PipelineId{}, 1, 3, 0}.invalid() == "a pipeline without a name"));
  BOOST_TEST((Outcome{1, static_cast<Outcome::Kind>(4)}.invalid() == "an unknown outcome"));
  BOOST_TEST((Credit{seq_max + 1}.invalid() == "a credit out of range"));
  PeerRecord beyond = record();
  beyond.stage = limits::stages_max + 1;
  BOOST_TEST((beyond.invalid() == "a stage out of range"));
  Hello hello{.stream = counting<StreamId>(3), .self = record()};
  BOOST_TEST(!hello.invalid());
  hello.self.stage = 1;
  BOOST_TEST((hello.invalid() == "a stage without its pipeline"));
  hello.pipeline = counting<PipelineId>(1);
  BOOST_TEST(!hello.invalid());
}

// Pieces share the bytes of the border.
BOOST_AUTO_TEST_CASE(long_borders_come_in_pieces) {
  const auto all = std::make_shared<const Bytes>(2 * limits::piece_bytes_max + 5, std::uint8_t{7});
  std::vector<OutFrame> frames =
      encode_in_pieces(4, ActivationsBegin{{counting<StreamId>(1), 9}, 2, 1, all->size()}, all);
  BOOST_REQUIRE(frames.size() == 3u);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(frames[i].shared == all);
    const Bytes whole = std::move(frames[i]).joined();
    const auto frame = decode(whole);
    BOOST_REQUIRE(frame.ok());
    const auto& piece = std::get<Activations>(*frame);
    BOOST_TEST((piece.begin.has_value() == (i == 0) && piece.more == (i < 2) && piece.transfer == 4));
    bytes += piece.bytes.size();
  }
  BOOST_TEST(bytes == all->size());
}

BOOST_AUTO_TEST_CASE(the_largest_frames_fit) {
  const std::string address(limits::address_bytes_max, 'a');
  const PeerRecord large{counting<NodeId>(1), record_number_max, std::vector<std::string>(8, address)};
  const Bytes peers = encode(Peers{std::vector<PeerRecord>(limits::records_per_frame_max, large)});
  BOOST_TEST(decode(peers).ok());
  Hello hello;
  hello.stream = counting<StreamId>(1);
  hello.self = large;
  hello.run_name = std::string(512, 'r');
  BOOST_TEST(decode(encode(hello)).ok());
  const Bytes longest(limits::payload_bytes_max, 1);
  Data update = data();
  update.payload = longest;
  BOOST_TEST((update.invalid() == "a piece too long"));
  std::size_t bytes = 0;
  std::vector<OutFrame> pieces = encode_in_pieces(update, std::make_shared<const Bytes>(longest));
  for (OutFrame& piece : pieces) {
    const std::size_t size = piece.size();
    const Bytes whole = std::move(piece).joined();
    BOOST_TEST(whole.size() == size);
    const auto frame = decode(whole);
    BOOST_REQUIRE(frame.ok());
    const bool last = &piece == &pieces.back();
    if (const Data* head = std::get_if<Data>(&*frame)) {
      BOOST_TEST(bytes == 0u);
      BOOST_TEST(head->more);
      bytes += head->payload.size();
    } else {
      const DataMore& more = std::get<DataMore>(*frame);
      BOOST_TEST(more.more == !last);
      bytes += more.bytes.size();
    }
  }
  BOOST_TEST(bytes == longest.size());
  const auto shorter = std::make_shared<const Bytes>(longest.begin(), longest.begin() + limits::piece_bytes_max);
  BOOST_TEST(encode_in_pieces(update, shorter).size() == 1u);
  BOOST_TEST(encode_in_pieces(update, shorter)[0].shared == shorter);
  HaveSet many;
  for (std::uint64_t i = 0; i < limits::ranges_per_frame_max; ++i)
    many.insert(UpdateKey{counting<StreamId>(1), 2 * i + 1});
  BOOST_TEST(decode(encode(Vector{many, false, false})).ok());
  many.insert(UpdateKey{counting<StreamId>(2), 1});
  BOOST_TEST((Vector{many, false, false}.invalid() == "too many ranges"));
}

BOOST_AUTO_TEST_CASE(the_example_of_the_specification) {
  const Bytes stream = from_hex(
      "07 12 10 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f"
      "1a 20 20 21 22 23 24 25 26 27 28 29 2a 2b 2c 2d 2e 2f"
      "30 31 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 3f");
  BOOST_TEST(encode(StreamDef{0, counting<StreamId>(0), counting<NodeId>(0x20)}) == stream,
             boost::test_tools::per_element());
  const Bytes have = from_hex("08 0a 02 00 00 12 03 01 ac 02");
  BOOST_TEST(encode(Have{{{0, 1}, {0, 300}}}) == have, boost::test_tools::per_element());
  std::string signature;
  for (int i = 0; i < 64; ++i) signature += "aa";
  const Bytes update = from_hex("0b 00 ac 02 05 20 08 07 06 05 04 03 02 01" + signature + "02 c0 ff ee");
  BOOST_TEST(encode(data()) == update, boost::test_tools::per_element());
  const Bytes vector = from_hex("0d 02 01 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 02 00 ab 02 00 00");
  BOOST_TEST(encode(Vector{example_set(), false, true}) == vector, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip
