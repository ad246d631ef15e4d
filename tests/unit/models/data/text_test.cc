// Text and token files as rows of a language model: windows, the part held out, layouts, damage.
#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <map>
#include <numeric>
#include <set>

#include "models/data/data_sources.h"
#include "runtime/base/prng.h"
#include "runtime/base/text.h"
#include "tests/unit/models/scratch.h"

namespace rumor::models {
namespace {

// 0, 1, 2, ... so that a token says where it stands.
std::string counted(std::size_t size) {
  std::string text(size, '\0');
  std::iota(text.begin(), text.end(), char{0});
  return text;
}

Bytes words(const std::vector<std::uint32_t>& values, std::size_t bytes_each) {
  Bytes bytes;
  for (const std::uint32_t value : values)
    for (std::size_t byte = 0; byte < bytes_each; ++byte)
      bytes.push_back(static_cast<std::uint8_t>(value >> (8 * byte)));
  return bytes;
}

// llm.c's layout.
Bytes llmc(std::vector<std::uint32_t> header, const std::vector<std::uint32_t>& tokens) {
  header.resize(256);
  Bytes bytes = words(header, 4);
  const Bytes rest = words(tokens, 2);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

Result<std::shared_ptr<const DataSet>> load(const std::string& kind, const std::string& path,
                                            std::uint32_t context) {
  return load_data({.kind = kind, .path = path, .seed = 1}, context);
}

std::vector<Token> all_of(const TokenArray& tokens) {
  std::vector<Token> out(tokens.size());
  tokens.copy(0, out);
  return out;
}

std::string complaint(const Scratch& scratch, const std::string& kind, const std::string& name,
                      std::uint32_t context = 4) {
  const auto loaded = load(kind, scratch / name, context);
  return loaded ? "" : scratch.cut(loaded.error().text);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(tokens_cross_the_borders_of_files) {
  TokenArray tokens;
  const auto bytes = std::make_shared<const Bytes>(Bytes{1, 2, 3});
  const auto wide = std::make_shared<const Bytes>(words({1000, 2000}, 2));
  tokens.append(bytes, *bytes, TokenArray::Width::byte);
  tokens.append(bytes, BytesView{}, TokenArray::Width::byte);
  tokens.append(wide, *wide, TokenArray::Width::word);
  tokens.append(bytes, *bytes, TokenArray::Width::byte);
  BOOST_TEST(tokens.size() == 8u);
  BOOST_TEST((all_of(tokens) == std::vector<Token>{1, 2, 3, 1000, 2000, 1, 2, 3}));
  for (std::uint64_t first = 0; first <= 8; ++first)
    for (std::uint64_t count = 0; first + count <= 8; ++count) {
      const std::vector<Token> whole = all_of(tokens), part = all_of(tokens.slice(first, count));
      BOOST_TEST(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)));
      BOOST_TEST(part.size() == count);
    }
}

BOOST_AUTO_TEST_CASE(a_text_is_cut_into_rows_and_its_end_is_held_out) {
  const Scratch scratch;
  scratch.write("a.txt", counted(200));
  const auto loaded = load("text", scratch / "a.txt", 4);
  BOOST_REQUIRE(loaded.ok());
  const DataSet& data = **loaded;
  BOOST_TEST(data.name == "a.txt");
  BOOST_TEST(data.train_rows() == 44u);  // (180 - 1) / 4
  BOOST_TEST(data.test_rows() == 4u);
  ModelConfig model;
  data.describe(model);
  BOOST_TEST(model.vocabulary == 256u);
  for (const auto& [given, taken] : {std::pair{272u, 272u}, {273u, 256u}, {255u, 256u}}) {  // padded by a sixteenth
    model.vocabulary = given;
    data.describe(model);
    BOOST_TEST(model.vocabulary == taken);
  }
  BOOST_TEST(model.inputs == 0u);
  BatchMemory memory;
  const std::uint32_t rows[] = {43, 0};
  const Batch batch = data.train_batch(rows, memory);
  BOOST_TEST(batch.rows == 2u);
  BOOST_TEST((batch.x.empty() && batch.label.empty()));
  BOOST_TEST((std::vector<Token>(batch.tokens.begin(), batch.tokens.end()) ==
              std::vector<Token>{172, 173, 174, 175, 176, 0, 1, 2, 3, 4}));
  const Batch test = data.test_batch(1, 1, memory);
  BOOST_TEST((std::vector<Token>(test.tokens.begin(), test.tokens.end()) ==
              std::vector<Token>{184, 185, 186, 187, 188}));
}

BOOST_AUTO_TEST_CASE(shards_of_a_text_are_disjoint_and_cover_its_rows) {
  const Scratch scratch;
  scratch.write("a.txt", counted(200));
  const auto data = load("text", scratch / "a.txt", 4).value();
  std::multiset<Token> seen;
  for (std::uint32_t index = 0; index < 3; ++index) {
    BatchSampler sampler(data, {index, 3}, 1, 7);
    for (std::uint32_t row = 0; row < sampler.rows(); ++row) {
      const Batch batch = sampler.next();
      BOOST_TEST(batch.tokens.size() == 5u);
      seen.insert(batch.tokens.begin(), batch.tokens.end() - 1);
    }
  }
  BOOST_TEST(seen.size() == 176u);
  BOOST_TEST((std::set<Token>(seen.begin(), seen.end()).size() == 176u));
}

BOOST_AUTO_TEST_CASE(a_skewed_shard_of_a_text_is_a_few_passages) {
  const Scratch scratch;
  scratch.write("a.txt", counted(200));
  const auto data = load("text", scratch / "a.txt", 4).value();
  std::multiset<std::uint32_t> seen;
  for (std::uint32_t index = 0; index < 4; ++index) {
    const std::vector<std::uint32_t> rows = shard_rows(*data, {index, 4, 5, 2});
    std::size_t jumps = 0;
    for (std::size_t i = 1; i < rows.size(); ++i) jumps += rows[i] != rows[i - 1] + 1;
    BOOST_TEST(jumps <= 1u);
    seen.insert(rows.begin(), rows.end());
  }
  BOOST_TEST(seen.size() == 44u);
  BOOST_TEST((std::set<std::uint32_t>(seen.begin(), seen.end()).size() == 44u));
}

BOOST_AUTO_TEST_CASE(a_folder_is_read_in_the_order_of_its_names_and_gzip_is_unpacked) {
  const Scratch scratch;
  scratch.write("all/b.txt", "world, and ");
  scratch.write("all/a.txt", "hello, ");
  scratch.write("all/.hidden", "no");
  scratch.write("all/deeper/c.txt", "no");
  gzFile file = gzopen((scratch / "all/c.gz").c_str(), "wb");
  BOOST_REQUIRE(gzwrite(file, "good night, world", 17) == 17);
  gzclose(file);
  const auto data = load("text", scratch / "all/", 2).value();
  BOOST_TEST(data->name == "all");
  std::string text;
  for (const TokenArray* part : {&data->train_tokens, &data->test_tokens})
    for (const Token token : all_of(*part)) text.push_back(static_cast<char>(token));
  BOOST_TEST(text == "hello, world, and good night, world");
  BOOST_TEST(data->test_tokens.size() == 3u);
}

BOOST_AUTO_TEST_CASE(evaluation_rows_are_spread_over_what_is_held_out) {
  TokenArray all;
  const auto bytes = std::make_shared<const Bytes>(Bytes(8 << 20));
  all.append(bytes, *bytes, TokenArray::Width::byte);
  const auto data = hold_out("zeros", all, 256, 64).value();
  BOOST_TEST(data->test_tokens.size() == 838'860u);
  BOOST_TEST(data->test_rows() == 2048u);  // 2^17 tokens
  BOOST_TEST(data->evaluation_block() == 16u);
  BatchMemory memory;
  BOOST_TEST(data->test_batch(2047, 1, memory).tokens.size() == 65u);
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_too_short_is_named) {
  const Scratch scratch;
  scratch.write("short.txt", "123456789");
  BOOST_TEST(
      complaint(scratch, "text", "short.txt") ==
      "short.txt has 9 tokens, too few for two rows of model.context + 1 = 5; lower model.context or take a "
      "longer text");
  BOOST_TEST(complaint(scratch, "text", "none.txt").find("no text at none.txt; set data.path") == 0u);
  BOOST_TEST(complaint(scratch, "tokens", "none").find("no none; set data.path") == 0u);
  scratch.write("only/train.bin", words({1, 2, 3, 4, 5, 6}, 2));
  BOOST_TEST(complaint(scratch, "tokens", "only").find("only has no *.bin file with val in its name") == 0u);
  BOOST_TEST(load("text", scratch / "short.txt", 0).ok() == false);
}

BOOST_AUTO_TEST_CASE(token_files_of_both_layouts_are_read) {
  const Scratch scratch;
  scratch.write("t/train.bin", words({1, 50256, 3, 4, 5, 6, 7}, 2));
  scratch.write("t/val.bin", words({9, 10, 11, 12, 13}, 2));
  scratch.write("t/tokenizer.bin", "anything");
  const auto nano = load("tokens", scratch / "t", 3).value();
  BOOST_TEST(nano->vocabulary == 50'257u);
  BOOST_TEST(nano->train_rows() == 2u);
  BOOST_TEST((all_of(nano->train_tokens) == std::vector<Token>{1, 50256, 3, 4, 5, 6, 7}));
  BOOST_TEST((all_of(nano->test_tokens) == std::vector<Token>{9, 10, 11, 12, 13}));

  scratch.write("l/fine_train_000001.bin", llmc({20'240'520, 1, 3}, {1, 2, 3}));
  scratch.write("l/fine_train_000002.bin", llmc({20'240'520, 1, 2}, {4, 50256}));
  scratch.write("l/fine_val_000000.bin", llmc({20'240'520, 1, 4}, {5, 6, 7, 8}));
  const auto llm = load("tokens", scratch / "l", 3).value();
  BOOST_TEST((all_of(llm->train_tokens) == std::vector<Token>{1, 2, 3, 4, 50256}));
  BOOST_TEST((all_of(llm->test_tokens) == std::vector<Token>{5, 6, 7, 8}));

  const auto one = load("tokens", scratch / "t/train.bin", 2).value();  // its end is held out
  BOOST_TEST((all_of(one->test_tokens) == std::vector<Token>{5, 6, 7}));
}

BOOST_AUTO_TEST_CASE(damaged_token_files_are_named_with_the_offset) {
  const Scratch scratch;
  const auto says = [&](const Bytes& bytes) {
    scratch.write("x.bin", bytes);
    return complaint(scratch, "tokens", "x.bin", 1);
  };
  std::vector<std::uint32_t> many(10'000, 7);
  BOOST_TEST(says(words(many, 2)) == "");
  many[9'001] = 50'257;
  BOOST_TEST(says(words(many, 2)) ==
             "x.bin, offset 18002: token 50257, but GPT-2 has 50257 tokens; are these 16-bit GPT-2 tokens?");
  BOOST_TEST(says(llmc({20'240'520, 1, 2}, {4, 60'000})).find("x.bin, offset 1026: token 60000") == 0u);
  BOOST_TEST(says({1, 0, 2, 0, 3}) == "x.bin, offset 4: half a token; tokens are 16 bits each");
  BOOST_TEST(says(llmc({20'240'520, 2, 2}, {4, 5})) == "x.bin, offset 4: version 2, expected 1");
  BOOST_TEST(says(llmc({20'240'520, 1, 3}, {4, 5})) ==
             "x.bin, offset 8: the header claims 3 tokens, the file has 2");
  BOOST_TEST(says(words({20'240'520, 1, 0}, 4)) ==
             "x.bin, offset 12: the file ends inside its header of 1024 bytes");
  BOOST_TEST(says(llmc({20'240'801, 7, 1}, {4, 5})).find("x.bin, offset 0: tokens of Llama 3") == 0u);
}

// The bytes that compress(1) writes after its header.
Bytes compressed(BytesView text) {
  std::map<std::pair<std::uint32_t, std::uint8_t>, std::uint32_t> table;
  std::vector<bool> bits;
  std::size_t group = 0;
  unsigned width = 9;
  std::uint32_t free = 257;
  const auto put = [&](std::uint32_t code) {
    for (unsigned bit = 0; bit < width; ++bit) bits.push_back(code >> bit & 1);
  };
  std::uint32_t code = text[0];
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (const auto known = table.find({code, text[i]}); known != table.end()) {
      code = known->second;
      continue;
    }
    put(code);
    // The reader is one entry behind when it takes its next code.
    if (free >= 1u << width && width < 16) {
      while ((bits.size() - group) % (8 * width) != 0) bits.push_back(false);
      group = bits.size();
      ++width;
    }
    if (free < 1u << 16) table[{code, text[i]}] = free++;
    code = text[i];
  }
  put(code);
  Bytes bytes((bits.size() + 7) / 8);
  for (std::size_t bit = 0; bit < bits.size(); ++bit)
    bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] | bits[bit] << (bit % 8));
  return bytes;
}

// A file like the Bible's, of `text` in pieces of `size`.
Bytes packed(const Bytes& text, std::uint32_t size) {
  std::vector<Bytes> pieces;
  for (std::size_t at = 0; at < text.size(); at += size)
    pieces.push_back(compressed(BytesView(text).subspan(at, std::min<std::size_t>(size, text.size() - at))));
  std::string head = "EC02Compressed Data File";
  head.resize(0x54, '\0');
  Bytes file(head.begin(), head.end());
  const auto big_endian = [&file](std::size_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<std::uint8_t>(value >> shift));
  };
  big_endian(size);
  big_endian(pieces.size());
  std::size_t at = 0x5c + 4 * (pieces.size() + 1) + 3;
  big_endian(at);
  for (const Bytes& piece : pieces) big_endian(at += piece.size());
  file.insert(file.end(), {0x1f, 0x9d, 0x90});
  for (const Bytes& piece : pieces) file.insert(file.end(), piece.begin(), piece.end());
  return file;
}

BOOST_AUTO_TEST_CASE(packed_pieces_unpack) {
  Prng prng(1);
  Bytes text;
  // Repeats and noise: codes grow beyond 9 bits, and some are used before they are complete.
  while (text.size() < 9'000)
    text.insert(text.end(), prng.below(9), static_cast<std::uint8_t>(prng.below(256)));
  for (const std::uint32_t size : {4096u, 9'100u}) {
    const auto unpacked = unpack_bible(packed(text, size), "f");
    BOOST_REQUIRE(unpacked.ok());
    BOOST_TEST((*unpacked == text));
  }
}

BOOST_AUTO_TEST_CASE(damaged_pieces_are_named_or_give_other_text_but_never_more) {
  const Bytes text(3'000, 'a');
  const Bytes good = packed(text, 1'000);
  const auto says = [](const Bytes& bytes) {
    const auto unpacked = unpack_bible(bytes, "f");
    if (unpacked) return std::string();
    BOOST_TEST((unpacked.error().code == Errc::corrupt));
    return unpacked.error().text.substr(0, unpacked.error().text.find(';'));
  };
  BOOST_TEST(says({}) == "f, offset 0: expected the header EC02Compressed Data File");
  for (std::size_t size = 0; size < good.size(); ++size)
    BOOST_TEST(says(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))) != "",
               "cut to " << size);
  Bytes bytes = good;
  bytes[0x5b] = 0;
  BOOST_TEST(says(bytes) == "f, offset 88: 0 pieces");
  bytes = good;
  bytes[0x5f] ^= 1;
  BOOST_TEST(says(bytes).find("f, offset 92: piece 0 goes from 110 to") == 0u);
  bytes = good;
  bytes[112] ^= 0xfe;  // the second code
  BOOST_TEST(says(bytes) == "f, offset 112: the compressed data is damaged");
  for (std::size_t at = 0; at < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      bytes = good;
      bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ 1 << bit);
      const auto unpacked = unpack_bible(bytes, "f");
      BOOST_TEST((!unpacked.ok() || unpacked->size() <= std::size_t{1} << 20));
    }
}

// The real things, where the packages are installed.
bool is_installed(const char* file) {
  return std::filesystem::is_regular_file(file);
}

BOOST_AUTO_TEST_CASE(an_absent_package_is_named) {
  for (const auto& [package, file] : {std::pair{"bible-kjv-text", "/usr/lib/bible.data"},
                                      std::pair{"dict-gcide", "/usr/share/dictd/gcide.dict.dz"}}) {
    const auto loaded = load("text", package, 64);
    BOOST_TEST(loaded.ok() == is_installed(file));
    if (!loaded) BOOST_TEST(loaded.error().text.find(str("apt-get install ", package)) != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(the_bible_reads, *boost::unit_test::precondition([](boost::unit_test::test_unit_id) {
                       return boost::test_tools::assertion_result(is_installed("/usr/lib/bible.data"));
                     })) {
  const auto data = load("text", "", 64).value();
  BOOST_TEST(data->name == "bible-kjv-text");
  const auto text_at = [](const TokenArray& tokens, std::uint64_t first, std::size_t count) {
    std::vector<Token> part(count);
    tokens.copy(first, part);
    return std::string(part.begin(), part.end());
  };
  BOOST_TEST(text_at(data->train_tokens, 63, 60) ==
             "Ge1:1 In the beginning God created the heaven and the earth.");
  const std::string end = "Rev22:21 The grace of our Lord Jesus Christ be with you all. Amen.\n";
  BOOST_TEST(text_at(data->test_tokens, data->test_tokens.size() - end.size(), end.size()) == end);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
