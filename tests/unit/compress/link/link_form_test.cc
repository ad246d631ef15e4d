// Transport messages: what comes back, how long they are, and that damage never passes.
#include "compress/link/link_form.h"

#include <boost/test/unit_test.hpp>

#include "tests/shortened.h"
#include "tests/unit/compress/generated.h"
#include "tests/unit/threads.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(link_form)

namespace {

constexpr LinkForm choices[] = {LinkForm::canonical, LinkForm::adapt, LinkForm::link};

// One end of a connection and the other.
struct Link {
  explicit Link(const ParamLayout& layout) : sender(layout), receiver(layout) {}
  LinkHistory sender, receiver;
};

LinkHistory* history_for(LinkForm choice, LinkHistory& history) {
  return choice == LinkForm::link ? &history : nullptr;
}

// Rows and columns of their own densities, signs along the rows: what the models of ADAPT and LINK look for.
SparseUpdate clustered(Prng& prng, std::uint32_t rows, std::uint32_t columns, std::uint32_t one_in) {
  SparseUpdate update;
  std::vector<std::uint32_t> column_weight(columns);
  for (std::uint32_t& weight : column_weight) weight = static_cast<std::uint32_t>(1 + prng.below(8));
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint64_t row_weight = prng.chance(1, 4) ? 8 : 1;
    const auto sign = static_cast<std::uint8_t>(prng.below(2));
    for (std::uint32_t column = 0; column < columns; ++column) {
      if (!prng.chance(row_weight * column_weight[column], 8 * one_in)) continue;
      update.index.push_back(row * columns + column);
      update.negative.push_back(prng.chance(1, 8) ? sign ^ 1 : sign);
    }
  }
  if (!update.index.empty()) update.step = 777;
  return update;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_update_comes_back_by_every_choice) {
  Prng prng(51);
  for (int i = 0; i < 600; ++i) {
    const ParamLayout layout = random_layout(prng, 8, 600);
    Link link(layout);
    for (int message = 0; message < 3; ++message) {
      SparseUpdate update = any_update(prng, layout);
      if (i % 2 == 0) give_own_steps(prng, layout, update);
      const std::size_t canonical = encode(layout, update).size();
      for (const LinkForm choice : choices) {
        const Bytes bytes = encode_link_form(layout, update, choice, history_for(choice, link.sender));
        BOOST_TEST_REQUIRE(bytes.size() <= canonical);
        const auto back = decode_link_form(layout, bytes, history_for(choice, link.receiver));
        BOOST_TEST_REQUIRE(back.ok());
        BOOST_TEST_REQUIRE((*back == update));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(many_segments_come_back_on_one_and_two_threads) {
  Prng prng(52);
  rumor::test::Threads two(2);
  for (int i = 0; i < 6; ++i) {
    const ParamLayout layout = large_layout(prng);
    const std::uint32_t count = 16'384 + static_cast<std::uint32_t>(prng.below(layout.params() - 16'384));
    const SparseUpdate update = random_update(prng, layout.params(), count, 99);
    const Bytes payload = encode(layout, update);
    for (const CodecOptions& options :
         {CodecOptions{&two, nullptr}, CodecOptions{nullptr, &rice_kernels_portable}}) {
      BOOST_TEST_REQUIRE((encode(layout, update, options) == payload));
      BOOST_TEST_REQUIRE((decode(layout, payload, options).value() == update));
    }
    for (const LinkForm choice : choices) {
      Link one_link(layout), other_link(layout);
      const Bytes bytes = encode_link_form(layout, update, choice, history_for(choice, one_link.sender));
      const Bytes again =
          encode_link_form(layout, update, choice, history_for(choice, other_link.sender), {&two, nullptr});
      BOOST_TEST_REQUIRE((bytes == again));
      const auto back =
          decode_link_form(layout, bytes, history_for(choice, one_link.receiver), {&two, nullptr});
      BOOST_TEST_REQUIRE(back.ok());
      BOOST_TEST_REQUIRE((*back == update));
    }
  }
}

BOOST_AUTO_TEST_CASE(clustered_updates_are_shorter_and_payloads_travel) {
  Prng prng(53);
  const ParamLayout layout = ParamLayout::create({{"w", {256, 300}}}).value();
  Link link(layout);
  for (int i = 0; i < 5; ++i) {
    const SparseUpdate update = clustered(prng, 256, 300, 40);
    const Bytes payload = encode(layout, update);
    for (const LinkForm choice : choices) {
      const auto message = to_link_form(layout, payload, choice, history_for(choice, link.sender));
      BOOST_TEST_REQUIRE(message.ok());
      if (choice == LinkForm::canonical) BOOST_TEST((*message == payload));
      if (choice != LinkForm::canonical) BOOST_TEST(message->size() * 100 < payload.size() * 92);
      const std::vector<SegmentMode> modes = link_form_modes(layout, *message);
      BOOST_TEST_REQUIRE(modes.size() == 1u);
      if (choice == LinkForm::canonical) BOOST_TEST((modes[0] == SegmentMode::rice));
      if (choice == LinkForm::adapt) BOOST_TEST((modes[0] == SegmentMode::adapt));
      // Each update has other rows and columns, so a history is of little use, and does no harm.
      if (choice == LinkForm::link)
        BOOST_TEST(message->size() <=
                   encode_link_form(layout, update, LinkForm::adapt, nullptr).size());
      const auto back = from_link_form(layout, *message, history_for(choice, link.receiver));
      BOOST_TEST_REQUIRE(back.ok());
      BOOST_TEST_REQUIRE((*back == payload));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_history_of_the_same_rows_and_columns_shortens) {
  Prng prng(56);
  const ParamLayout layout = ParamLayout::create({{"w", {256, 300}}}).value();
  const SparseUpdate update = clustered(prng, 256, 300, 40);
  const std::size_t alone = encode_link_form(layout, update, LinkForm::adapt, nullptr).size();
  LinkHistory sender(layout), receiver(layout);
  Bytes message;
  for (int i = 0; i < 4; ++i) {
    message = encode_link_form(layout, update, LinkForm::link, &sender);
    const auto back = decode_link_form(layout, message, &receiver);
    BOOST_TEST_REQUIRE(back.ok());
    BOOST_TEST_REQUIRE((*back == update));
  }
  BOOST_TEST((link_form_modes(layout, message) == std::vector<SegmentMode>{SegmentMode::link}));
  BOOST_TEST(message.size() < alone);
}

BOOST_AUTO_TEST_CASE(modes_are_taken_where_they_are_shortest) {
  Prng prng(54);
  // A handful of entries among very many parameters; and nearly all of few.
  const ParamLayout sparse = layout_of({1 << 20}), dense = layout_of({600});
  const SparseUpdate most = random_update(prng, 600, 400, 3);
  BOOST_TEST(encode_link_form(dense, most, LinkForm::adapt, nullptr).size() <=
             3u + 4 + (600 + 400 + 7) / 8);
  int shorter = 0;
  const int tries = static_cast<int>(rumor::test::shortened(40));
  for (int i = 0; i < tries; ++i) {
    const SparseUpdate few = random_update(prng, 1 << 20, 3, 1);
    shorter +=
        encode_link_form(sparse, few, LinkForm::adapt, nullptr).size() <= encode(sparse, few).size();
  }
  BOOST_TEST(shorter == tries);
}

BOOST_AUTO_TEST_CASE(damage_is_refused_or_decodes_to_some_update) {
  Prng prng(55);
  int refused = 0, accepted = 0;
  for (int i = 0; i < 40; ++i) {
    const ParamLayout layout = i % 8 == 0 ? large_layout(prng) : random_layout(prng, 4, 200);
    const SparseUpdate update =
        i % 8 == 0 ? random_update(prng, layout.params(), 20'000, 5) : any_update(prng, layout);
    const Bytes good = encode_link_form(layout, update, LinkForm::adapt, nullptr);
    for (int flip = 0; flip < 300; ++flip) {
      Bytes bytes = good;
      bytes[prng.below(bytes.size())] ^= static_cast<std::uint8_t>(1u << prng.below(8));
      if (flip % 10 == 0) bytes.resize(prng.below(bytes.size() + 1));
      const auto back = decode_link_form(layout, bytes, nullptr);
      back.ok() ? ++accepted : ++refused;
      // An accepted message decodes to a valid update.
      if (back.ok()) BOOST_TEST_REQUIRE((decode(layout, encode(layout, *back)).value() == *back));
    }
  }
  BOOST_TEST(refused > 1000);
  BOOST_TEST(accepted > 10);
}

BOOST_AUTO_TEST_CASE(refusals) {
  const ParamLayout layout = layout_of({16, 4});
  const auto refused = [&](const Bytes& bytes, const char* word) {
    const auto back = decode_link_form(layout, bytes, nullptr);
    BOOST_TEST_REQUIRE(!back.ok());
    BOOST_TEST_CONTEXT(back.error().text) BOOST_TEST(back.error().text.find(word) != std::string::npos);
  };
  refused({}, "empty");
  refused({0x06}, "without entries");
  refused({0x04}, "version");
  // The worked example with mode 0, and with LINK where there is no history.
  refused({0x3e, 0x24, 0x0b, 0x00, 0x00, 0x00}, "unknown mode");
  refused({0x3e, 0x24, 0xab, 0x00, 0x00, 0x00}, "damaged in segment");
  refused({0x0e, 0x2c, 0x05, 0x00, 0x00, 0x00}, "filling");  // a step of one, mode RICE
}

BOOST_AUTO_TEST_SUITE_END()
