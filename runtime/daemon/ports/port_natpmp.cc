// NAT-PMP (RFC 6886): a packet to the router, and its answer.
#include <arpa/inet.h>
#include <natpmp.h>
#include <poll.h>

#include "runtime/base/text.h"
#include "runtime/daemon/ports/port_protocol.h"

namespace rumor::daemon {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The library repeats a packet after 250 ms and 500 ms more: three are lost before a router counts as deaf.
constexpr milliseconds answer_within{1250}, looks_every{50};

const char* natpmp_reason(int code) {
  switch (code) {
    case NATPMP_ERR_UNSUPPORTEDVERSION: return "it speaks another version";
    case NATPMP_ERR_UNSUPPORTEDOPCODE: return "it knows no TCP mappings";
    case NATPMP_ERR_NOTAUTHORIZED: return "it does not let machines open ports; allow it in its settings";
    case NATPMP_ERR_NETWORKFAILURE: return "it has no address outside: its own link is down";
    case NATPMP_ERR_OUTOFRESOURCES: return "it has no mapping left";
    default: return "it answers with an error";
  }
}

// One request on a socket of its own, so that no late answer to another is taken for its.
class Exchange {
 public:
  explicit Exchange(const std::string& router) {
    in_addr address{};
    inet_pton(AF_INET, router.c_str(), &address);
    open_ = initnatpmp(&natpmp_, 1, address.s_addr) == 0;
  }
  ~Exchange() {
    if (open_) closenatpmp(&natpmp_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  template <class Ask>
  Result<natpmpresp_t> run(Ask ask, const Stopping& stopping) {
    if (!open_ || ask(&natpmp_) < 0) return Error{Errc::not_found, "the router cannot be asked"};
    const Clock::time_point end = Clock::now() + answer_within;
    natpmpresp_t answer{};
    int code = NATPMP_TRYAGAIN;
    while ((code = readnatpmpresponseorretry(&natpmp_, &answer)) == NATPMP_TRYAGAIN) {
      if (stopping()) return Error{Errc::not_found, "given up"};
      if (Clock::now() >= end) return Error{Errc::not_found, "no answer"};
      pollfd readable{natpmp_.s, POLLIN, 0};
      poll(&readable, 1, static_cast<int>(looks_every.count()));
    }
    if (code == NATPMP_ERR_NOGATEWAYSUPPORT || code == NATPMP_ERR_RECVFROM) return Error{Errc::not_found, "no answer"};
    if (code != 0) return Error{Errc::io, natpmp_reason(code)};
    return answer;
  }

 private:
  natpmp_t natpmp_{};
  bool open_ = false;
};

class NatPmp final : public PortProtocol {
 public:
  NatPmp(const PortRequest& request, Stopping stopping)
      : request_(request), stopping_(std::move(stopping)), outside_port_(request.port) {}

  std::string name() const override { return "NAT-PMP"; }

  Result<std::string> outside_address() override {
    const auto answer = Exchange(request_.gateway.router).run(sendpublicaddressrequest, stopping_);
    if (!answer) return answer.error();
    if (answer->type != NATPMP_RESPTYPE_PUBLICADDRESS) return Error{Errc::io, "it answers what was not asked"};
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &answer->pnu.publicaddress.addr, text, sizeof text);
    return std::string(text);
  }

  Result<PortLease> map() override {
    const auto answer = ask(static_cast<std::uint32_t>(lease_wanted.count()), stopping_);
    if (!answer) return answer.error();
    const auto& given = answer->pnu.newportmapping;
    if (answer->type != NATPMP_RESPTYPE_TCPPORTMAPPING || given.privateport != request_.port ||
        given.mappedpublicport == 0 || given.lifetime == 0)
      return Error{Errc::io, "it answers what was not asked"};
    outside_port_ = given.mappedpublicport;
    return PortLease{given.mappedpublicport, std::chrono::seconds(given.lifetime)};
  }

  void unmap() override {
    outside_port_ = 0;  // RFC 6886, 3.4: lifetime and outside port are zero
    (void)ask(0, [] { return false; });
  }

 private:
  Result<natpmpresp_t> ask(std::uint32_t lifetime, const Stopping& stopping) {
    return Exchange(request_.gateway.router).run([&](natpmp_t* natpmp) {
      return sendnewportmappingrequest(natpmp, NATPMP_PROTOCOL_TCP, request_.port, outside_port_, lifetime);
    }, stopping);
  }

  PortRequest request_;
  Stopping stopping_;
  std::uint16_t outside_port_;
};

}  // namespace

std::unique_ptr<PortProtocol> make_natpmp(const PortRequest& request, const Stopping& stopping) {
  return std::make_unique<NatPmp>(request, stopping);
}

}  // namespace rumor::daemon
