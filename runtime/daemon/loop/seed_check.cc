#include "runtime/daemon/loop/seed_check.h"

#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <asio/ip/tcp.hpp>

#include "gossip/asio/address.h"
#include "runtime/base/text.h"

namespace rumor::daemon {

namespace {

bool is_name(const std::string& host) {
  asio::error_code no_address;
  asio::ip::make_address(host, no_address);
  return bool(no_address);
}

}  // namespace

Lookup look_up(const std::string& host) {
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  asio::error_code error;
  const auto found = resolver.resolve(host, "1", error);
  if (!error) return found.empty() ? Lookup::unknown : Lookup::found;
  const bool unknown = error == asio::error::host_not_found || error == asio::error::no_data;
  return unknown ? Lookup::unknown : Lookup::failed;
}

Result<SeedCheck> check_seeds(const std::vector<std::string>& seeds, std::size_t known_addresses,
                              const std::function<Lookup(const std::string& host)>& look_up_host) {
  SeedCheck checked;
  std::size_t unknown = 0;
  bool answers = true;
  for (const std::string& seed : seeds) {
    const auto address = net::parse_address(seed);
    if (!address || address->port == 0)
      return Error{Errc::usage, str("seed ", seed, " has no port that can be dialled: write host:port, such as ",
                                    address ? address->host : "192.0.2.7", ":7711")};
    if (!is_name(address->host)) continue;
    switch (answers ? look_up_host(address->host) : Lookup::failed) {
      case Lookup::found: break;
      case Lookup::failed:
        answers = false;
        checked.warnings.push_back(str("seed ", seed, ": the name service did not answer; it is asked again"));
        break;
      case Lookup::unknown:
        ++unknown;
        checked.warnings.push_back(str("seed ", seed, ": there is no host of this name; check the spelling"));
        break;
    }
  }
  if (unknown == 0 || unknown < seeds.size() || known_addresses > 0) return checked;
  return Error{Errc::usage, str(checked.warnings.front(), unknown > 1 ? " (no other seed is known either)" : "",
                                ". Give --seed HOST:PORT of a peer that runs, or leave --seed out to be the first")};
}

}  // namespace rumor::daemon
