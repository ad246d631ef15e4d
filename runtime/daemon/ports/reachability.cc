#include "runtime/daemon/ports/reachability.h"

#include "gossip/asio/address.h"
#include "runtime/base/text.h"

namespace rumor::daemon {

void Reachability::open(const RunConfig& config, const std::string& bound) {
  own_ = config.advertise.empty() ? std::vector<std::string>{bound} : config.advertise;
  if (config.map_port.empty()) return;
  request_ = port_request(bound, config.map_port);
  if (!*request_ || !config.advertise.empty()) return;
  // A listener on all addresses has one that the router's network can dial.
  own_ = {net::Address{(**request_).gateway.local, (**request_).port}.text()};
}

void Reachability::begin(asio::io_context& loop, Told told) {
  if (!request_) return;
  if (!*request_) {
    text_ = request_->error().text;
    // An address that is already public is no problem.
    const auto level =
        request_->error().code == Errc::mismatch ? gossip::Note::Level::info : gossip::Note::Level::warning;
    return told(level, "no port is asked of a router: " + text_, false);
  }
  text_ = "asking the router " + (**request_).gateway.router;
  mapper_.emplace(loop, **request_, [this, told = std::move(told)](const PortNews& news) {
    if (!mapper_) return;
    const bool moved = news.address != outside_;
    outside_ = news.address;
    text_ = news.text;
    told(news.address.empty() ? gossip::Note::Level::warning : gossip::Note::Level::info, news.text, moved);
  });
}

void Reachability::stop() {
  if (mapper_) mapper_->stop();
}

bool Reachability::asks_now(TimePoint now) {
  if (now < next_dial_back_) return false;
  next_dial_back_ = now + dial_back_interval;
  return true;
}

std::vector<std::string> Reachability::addresses() const {
  std::vector<std::string> all = own_;
  if (!outside_.empty()) all.push_back(outside_);
  return all;
}

}  // namespace rumor::daemon
