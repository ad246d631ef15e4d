#include "runtime/daemon/status/http_get.h"

#include <httplib.h>

#include "gossip/asio/address.h"
#include "runtime/base/text.h"

namespace rumor::daemon {

Result<std::string> http_get(const std::string& host_port, const std::string& path, const std::string& token) {
  const auto address = net::parse_address(host_port);
  if (!address) return address.error();
  httplib::Client client(address->host, address->port);
  client.set_connection_timeout(2);
  client.set_read_timeout(2);
  if (!token.empty()) client.set_bearer_token_auth(token.c_str());
  const auto response = client.Get(path.c_str());
  if (!response)
    return Error{Errc::not_found, str("nobody answers at ", host_port,
                                      "; is a peer running there with --status ", host_port, "?")};
  if (response->status == 401)
    return Error{Errc::usage, str(host_port, token.empty() ? " needs a token: give the file that holds it with "
                                                           : " refuses this token; give its own with ",
                                  "--status-token FILE")};
  if (response->status != 200)
    return Error{Errc::io, str(host_port, " answered ", path, " with HTTP status ", response->status,
                               "; is it a peer's status address?")};
  return response->body;
}

Result<HttpAnswer> http_post(const std::string& host_port, const std::string& path, const std::string& body) {
  const auto address = net::parse_address(host_port);
  if (!address) return address.error();
  httplib::Client client(address->host, address->port);
  client.set_connection_timeout(1);
  client.set_read_timeout(5);
  const auto response = client.Post(path.c_str(), body, "application/octet-stream");
  if (!response) return Error{Errc::not_found, str("nobody answers at ", host_port)};
  return HttpAnswer{response->status, response->body};
}

}  // namespace rumor::daemon
