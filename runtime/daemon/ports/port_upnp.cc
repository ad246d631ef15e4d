// UPnP's Internet Gateway Device: a search by multicast (SSDP), a description to read, then calls by SOAP.
//
// UPNP_GetValidIGD() would spare some lines, but takes other arguments since version 2.2.8 (API 18).
#include <miniupnpc/miniupnpc.h>
#include <miniupnpc/upnpcommands.h>
#include <miniupnpc/upnperrors.h>

#include <array>
#include <cstring>
#include <optional>

#include "gossip/asio/address.h"
#include "runtime/base/text.h"
#include "runtime/daemon/ports/port_protocol.h"

namespace rumor::daemon {

namespace {

constexpr int search_ms = 1000;  // for each kind of device; the library cannot be interrupted
constexpr const char* kinds[] = {"urn:schemas-upnp-org:device:InternetGatewayDevice:1",
                                 "urn:schemas-upnp-org:device:InternetGatewayDevice:2",
                                 "urn:schemas-upnp-org:service:WANIPConnection:1"};
constexpr int taken = 718, only_permanent = 725;  // of AddPortMapping: ConflictInMappingEntry, OnlyPermanentLeases…
constexpr int ports_tried = 4;

std::string printable(const char* text) {
  std::string out;
  for (const char c : std::string(text == nullptr ? "" : text).substr(0, 80))
    out.push_back(c >= ' ' && c < 0x7f ? c : '?');
  return out;
}

std::string upnp_reason(int code) {
  const char* text = strupnperror(code);
  return str("UPnP error ", code, text == nullptr ? "" : str(" (", printable(text), ")"));
}

// "http://192.168.1.1:5000/rootDesc.xml" -> "192.168.1.1".
std::string host_of(const char* url) {
  const std::string text = printable(url);
  const std::size_t begin = text.find("//");
  if (begin == std::string::npos) return {};
  return text.substr(begin + 2, text.find_first_of(":/", begin + 2) - begin - 2);
}

class Upnp final : public PortProtocol {
 public:
  Upnp(const PortRequest& request, Stopping stopping)
      : request_(request), stopping_(std::move(stopping)), outside_port_(request.port) {}
  ~Upnp() override { forget(); }
  Upnp(const Upnp&) = delete;
  Upnp& operator=(const Upnp&) = delete;

  std::string name() const override { return "UPnP"; }

  Result<std::string> outside_address() override {
    if (!urls_)
      if (auto found = search(); !found) return found.error();
    char address[64] = {};
    const int code = UPNP_GetExternalIPAddress(urls_->controlURL, data_.first.servicetype, address);
    if (code != UPNPCOMMAND_SUCCESS) return refused(code);
    return std::string(printable(address));
  }

  Result<PortLease> map() override {
    const std::string wanted = std::to_string(lease_wanted.count());
    int code = UPNPCOMMAND_UNKNOWN_ERROR;
    for (int attempt = 0; attempt < ports_tried && !stopping_(); ++attempt) {
      code = add(wanted.c_str());
      if (code == UPNPCOMMAND_SUCCESS) return PortLease{outside_port_, lease_wanted};
      if (code == only_permanent && add("0") == UPNPCOMMAND_SUCCESS) return PortLease{outside_port_, {}};
      if (code != taken) break;
      outside_port_ = static_cast<std::uint16_t>(1024 + (outside_port_ + 9973) % (65536 - 1024));
    }
    return refused(code);
  }

  void unmap() override {
    if (urls_)
      UPNP_DeletePortMapping(urls_->controlURL, data_.first.servicetype, std::to_string(outside_port_).c_str(), "TCP",
                             nullptr);
  }

 private:
  // Accepts only the answer of the router itself: another device may claim to be a router.
  Result<void> search() {
    std::string others;
    for (const char* kind : kinds) {
      if (stopping_()) return Error{Errc::not_found, "given up"};
      const std::array<const char*, 2> one{kind, nullptr};
      int failure = 0;
      UPNPDev* const list = upnpDiscoverDevices(one.data(), search_ms, request_.gateway.local.c_str(), nullptr,
                                                UPNP_LOCAL_PORT_ANY, 0, 2, &failure, 0);
      for (const UPNPDev* device = list; device != nullptr && !urls_ && !stopping_(); device = device->pNext) {
        const std::string host = host_of(device->descURL);
        if (host == request_.gateway.router)
          open(device->descURL);
        else
          others = host;
      }
      freeUPNPDevlist(list);
      if (urls_) return {};
    }
    if (!others.empty())
      return Error{Errc::not_found, str("no answer from ", request_.gateway.router, ", but one from ", others,
                                        "; if that is the router, name it instead of auto")};
    return Error{Errc::not_found, "no answer"};
  }

  void open(const char* description) {
    UPNPUrls urls{};
    char local[64] = {};
    data_ = {};
    const bool read = UPNP_GetIGDFromUrl(description, &urls, &data_, local, sizeof local) == 1;
    if (!read) return;
    urls_ = urls;
    if (std::strstr(data_.first.servicetype, ":service:WAN") == nullptr || urls.controlURL == nullptr) forget();
  }

  void forget() {
    if (urls_) FreeUPNPUrls(&*urls_);
    urls_.reset();
  }

  int add(const char* lease) {
    return UPNP_AddPortMapping(urls_->controlURL, data_.first.servicetype, std::to_string(outside_port_).c_str(),
                               std::to_string(request_.port).c_str(), request_.gateway.local.c_str(), "rumor", "TCP",
                               nullptr, lease);
  }

  // It may have restarted elsewhere: the next time it is searched again.
  Error refused(int code) {
    forget();
    return {Errc::io, upnp_reason(code)};
  }

  PortRequest request_;
  Stopping stopping_;
  std::optional<UPNPUrls> urls_;
  IGDdatas data_{};
  std::uint16_t outside_port_;
};

}  // namespace

std::unique_ptr<PortProtocol> make_upnp(const PortRequest& request, const Stopping& stopping) {
  return std::make_unique<Upnp>(request, stopping);
}

}  // namespace rumor::daemon
