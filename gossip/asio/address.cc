#include "gossip/asio/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor::net {
namespace {

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Error texts go to a terminal, and the text may come from a peer: nothing but plain ASCII is repeated.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 80)) out.push_back(c > ' ' && c < 0x7f ? c : '?');
  return out;
}

Error malformed(std::string_view text, const std::string& why) {
  return {Errc::usage, str("'", printable(text), "' is not an address: ", why,
                           "; write host:port, as in 127.0.0.1:7001 or [::1]:7001")};
}

bool ipv6_literal(const std::string& host) {
  in6_addr parsed;
  return inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

bool host_name(std::string_view host) {
  return !host.empty() && host.size() <= 253 && letter_or_digit(host.front()) &&
         std::all_of(host.begin(), host.end(),
                     [](char c) { return letter_or_digit(c) || c == '.' || c == '-' || c == '_'; });
}

}  // namespace

std::string Address::text() const {
  const bool brackets = host.find(':') != std::string::npos;
  return brackets ? str('[', host, "]:", port) : str(host, ':', port);
}

Result<Address> parse_address(std::string_view text) {
  if (text.size() > limits::address_bytes_max) return malformed(text, "it is too long");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return malformed(text, "the port is missing");

  Address address;
  const std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    address.host = host.substr(1, host.size() - 2);
    if (!ipv6_literal(address.host)) return malformed(text, "no IPv6 address in the brackets");
  } else {
    address.host = host;
    if (host.find(':') != std::string_view::npos) return malformed(text, "an IPv6 address needs brackets");
    if (!host_name(host)) return malformed(text, "no host name before the colon");
  }

  const std::string_view digits = text.substr(colon + 1);
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, address.port);
  if (digits.empty() || error != std::errc{} || stop != end)
    return malformed(text, "the port is no number up to 65535");
  return address;
}

bool is_loopback(const std::string& host) {
  std::string lower = host;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (lower == "localhost") return true;
  in_addr four;
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six;
  if (inet_pton(AF_INET6, host.c_str(), &six) != 1) return false;
  if (IN6_IS_ADDR_V4MAPPED(&six)) return six.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&six);
}

}  // namespace rumor::net
