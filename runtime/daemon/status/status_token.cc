#include "runtime/daemon/status/status_token.h"

#include <algorithm>

#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/base/types.h"
#include "runtime/daemon/state/storage.h"

namespace rumor::daemon {
namespace {

constexpr std::size_t token_min = 16, token_max = 256;

BytesView bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

Result<std::string> read_status_token(const std::string& path) {
  const auto bytes = read_file(path);
  if (!bytes) return Error{bytes.error().code, "status token: " + bytes.error().text};
  const auto end = std::find_if(bytes->begin(), bytes->end(), [](std::uint8_t c) { return c == '\n' || c == '\r'; });
  std::string token(bytes->begin(), end);
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!printable || token.size() < token_min || token.size() > token_max)
    return Error{Errc::usage,
                 str(path, " holds no status token: its first line wants ", token_min, " to ", token_max,
                     " printable characters without blanks; make one with `openssl rand -hex 24 > ", path, "`")};
  return token;
}

// Hashes have one length, and what a comparison of them gives away says nothing of the token.
bool same_token(std::string_view one, std::string_view other) {
  const auto a = sha256(bytes_of(one)), b = sha256(bytes_of(other));
  std::uint8_t different = 0;
  for (std::size_t i = 0; i < a.view().size(); ++i) different |= a.view()[i] ^ b.view()[i];
  return different == 0;
}

}  // namespace rumor::daemon
