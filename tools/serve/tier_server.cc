#include "tools/serve/tier_server.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "gossip/asio/address.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/daemon/status/http_get.h"
#include "runtime/daemon/status/http_listener.h"

namespace rumor::tools {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t server_threads = 8;
constexpr std::size_t json_bytes_of_number = 24;  // the longest that a program prints, with its comma
constexpr std::size_t answer_bytes_max = 64 << 10;
constexpr std::chrono::seconds left_alone(1);     // the next tier, after it failed

// An HTTP status and a reason for people.
struct Refusal {
  int status = 400;
  std::string why;
};

void refuse(httplib::Response& response, const Refusal& refusal) {
  response.status = refusal.status;
  // A request may have named anything, so what is no UTF-8 is replaced.
  const std::string text = Json{{"error", refusal.why}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  response.set_content(text + "\n", "application/json");
}

// Whether the next tier sent what a tier sends.
bool is_answer(const std::string& body) {
  const auto json = body.size() > answer_bytes_max ? Json() : Json::parse(body, nullptr, false);
  return json.is_object() && json.contains("class") && json.contains("tier");
}

std::optional<std::uint32_t> number_in(const std::string& text) {
  std::uint32_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

}  // namespace

struct TierServer::Impl {
  Impl(Tier of_tier, TierRules of_rules)
      : tier(std::move(of_tier)),
        rules(std::move(of_rules)),
        listener("", "--listen", server_threads,
                 std::min(views_max * tier.inputs() * json_bytes_of_number + 1024, limits::border_bytes_max)) {}

  struct Counters {
    std::uint64_t requests = 0, answered = 0, passed_on = 0, next_failed = 0, refused = 0;
    std::uint64_t received_bytes = 0, passed_on_bytes = 0;
    std::uint64_t labelled = 0, right = 0;  // of the requests that this tier answered itself
  };
  // One request, read and computed.
  struct Seen {
    std::vector<float> probability;  // [classes], of the thing
    Bytes features;                  // for the next tier
    double entropy = 0;
    std::optional<std::uint32_t> label;
  };

  void add_handlers();
  std::string status_json() const;
  std::optional<Refusal> misfit(const httplib::Request& request) const;
  std::optional<Refusal> see(const httplib::Request& request, Seen& seen);
  void compute(const Views& views, Seen& seen);
  void classify(const httplib::Request& request, httplib::Response& response);
  std::string own_answer(const Seen& seen, const std::string& why);
  // The answer of the next tier; or the reason why there is none.
  Result<std::string> ask_next(const Seen& seen);
  void note_refusal(httplib::Response& response, const Refusal& refusal);

  Tier tier;
  TierRules rules;
  std::mutex computing;             // guards tier
  mutable std::mutex mutex;         // guards the following
  Counters counters;
  Clock::time_point next_from{};    // the next tier is asked again from then on
  daemon::HttpListener listener;    // ends first
};

// A tier below says which it is.
std::optional<Refusal> TierServer::Impl::misfit(const httplib::Request& request) const {
  if (request.has_param("pipeline") && request.get_param_value("pipeline") != tier.pipeline())
    return Refusal{409, "the tier below has another run file or other keys; all tiers need the same"};
  if (request.has_param("tier") && request.get_param_value("tier") != std::to_string(tier.stage() - 1))
    return Refusal{409, str("features of tier ", request.get_param_value("tier"), ", and this is tier ", tier.stage(),
                            "; give --next of each tier the address of the one above it")};
  return std::nullopt;
}

std::optional<Refusal> TierServer::Impl::see(const httplib::Request& request, Seen& seen) {
  if (auto wrong = misfit(request)) return wrong;
  if (request.has_param("label")) {
    seen.label = number_in(request.get_param_value("label"));
    if (!seen.label || *seen.label >= tier.classes())
      return Refusal{400, str("label wants a class from 0 to ", tier.classes() - 1)};
  }
  const auto numbers = tier.stage() == 1 ? compress::BorderNumbers::f32 : rules.numbers;
  auto views = read_views(request.get_header_value("Content-Type"), request.body, numbers, tier.inputs());
  if (!views) return Refusal{400, views.error().text};
  if (views->count > 1 && rules.sensors == Sensors::one)
    return Refusal{400, str(views->count, " views of one thing; start this tier with --sensors max or mean")};
  if (tier.stage() == 1)
    for (float& value : views->values) value = (value - rules.mean) * rules.scale;
  compute(*views, seen);
  const auto is_finite = [](float one) { return std::isfinite(one); };
  if (!std::all_of(seen.probability.begin(), seen.probability.end(), is_finite))
    return Refusal{400, "the values are so large that the model computes no number; normalise them (--mean, --scale)"};
  seen.entropy = normalised_entropy(seen.probability);
  return std::nullopt;
}

// Views become one before the tier's own layers. In the first tier they are pictures, so each has features of its own,
// and the exit answers with the mean of the probabilities.
void TierServer::Impl::compute(const Views& views, Seen& seen) {
  const bool joins = tier.stage() > 1;
  const std::vector<float> input = joins ? aggregate(rules.sensors, views) : views.values;
  const std::uint32_t rows = joins ? 1 : views.count;
  Tier::Computed made;
  {
    const std::lock_guard<std::mutex> hold(computing);
    made = tier.compute(input, rows);
  }
  seen.probability = aggregate(Sensors::mean, {std::move(made.probability), rows});
  if (!tier.is_last()) compress::encode_border(rules.numbers, tier.features(), made.features, seen.features);
}

std::string TierServer::Impl::own_answer(const Seen& seen, const std::string& why) {
  const std::uint32_t best = best_class(seen.probability);
  {
    const std::lock_guard<std::mutex> hold(mutex);
    ++counters.answered;
    if (seen.label) ++counters.labelled, counters.right += *seen.label == best;
  }
  const Json answer = {{"class", best},           {"probabilities", seen.probability}, {"entropy", seen.entropy},
                       {"tier", tier.stage()},    {"why", why}};
  return answer.dump() + "\n";
}

Result<std::string> TierServer::Impl::ask_next(const Seen& seen) {
  {
    const std::lock_guard<std::mutex> hold(mutex);
    if (Clock::now() < next_from) return Error{Errc::io, "it failed within the last second"};
    counters.passed_on_bytes += seen.features.size();
  }
  std::string path = str("/classify?tier=", tier.stage(), "&pipeline=", tier.pipeline());
  if (seen.label) path += str("&label=", *seen.label);
  const std::string body(seen.features.begin(), seen.features.end());
  const auto response = daemon::http_post(rules.next, path, body);
  if (response && response->status == 200 && is_answer(response->body)) {
    const std::lock_guard<std::mutex> hold(mutex);
    ++counters.passed_on;
    return response->body;
  }
  const std::lock_guard<std::mutex> hold(mutex);
  ++counters.next_failed;
  if (!response) next_from = Clock::now() + left_alone;
  if (!response) return response.error();
  return Error{Errc::io, response->status == 200 ? "it is no tier" : str("it answers HTTP status ", response->status)};
}

void TierServer::Impl::note_refusal(httplib::Response& response, const Refusal& refusal) {
  refuse(response, refusal);
  const std::lock_guard<std::mutex> hold(mutex);
  ++counters.refused;
}

void TierServer::Impl::classify(const httplib::Request& request, httplib::Response& response) {
  Seen seen;
  if (const auto refusal = see(request, seen)) return note_refusal(response, *refusal);
  {
    const std::lock_guard<std::mutex> hold(mutex);
    ++counters.requests;
    counters.received_bytes += request.body.size();
  }
  std::string why;
  if (tier.is_last()) {
    why = "the last tier";
  } else if (seen.entropy < rules.exit_below) {
    why = "sure";
  } else if (rules.next.empty()) {
    why = "not sure, and there is no --next";
  } else if (const auto answer = ask_next(seen)) {
    return response.set_content(*answer, "application/json");
  } else {
    why = str("not sure, and the next tier ", rules.next, " is missing: ", answer.error().text);
  }
  response.set_content(own_answer(seen, why), "application/json");
}

void TierServer::Impl::add_handlers() {
  httplib::Server& server = listener.server;
  server.Post("/classify", [this](const httplib::Request& request, httplib::Response& response) {
    classify(request, response);
  });
  server.Post("/features", [this](const httplib::Request& request, httplib::Response& response) {
    Seen seen;
    if (const auto refusal = see(request, seen)) return note_refusal(response, *refusal);
    if (tier.is_last()) return note_refusal(response, {404, "the last tier has no features; POST /classify"});
    response.set_content(std::string(seen.features.begin(), seen.features.end()), "application/octet-stream");
  });
  server.Get("/status", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(status_json(), "application/json");
  });
  server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    const bool large = response.status == 413;
    refuse(response, {response.status, large ? str("the body is larger than ", views_max, " views, or is sent "
                                                 "as a form; set Content-Type: application/octet-stream")
                                             : "POST /classify, POST /features or GET /status"});
  });
}

TierServer::TierServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<TierServer>> TierServer::start(Tier tier, TierRules rules, const std::string& host_port) {
  const auto wanted = net::parse_address(host_port);
  if (!wanted) return wanted.error();
  if (!rules.next.empty())
    if (const auto next = net::parse_address(rules.next); !next) return next.error();
  auto impl = std::make_unique<Impl>(std::move(tier), std::move(rules));
  impl->add_handlers();
  if (Result<void> bound = impl->listener.bind(*wanted); !bound) return bound.error();
  if (Result<void> running = impl->listener.run(); !running) return running.error();
  return std::unique_ptr<TierServer>(new TierServer(std::move(impl)));
}

TierServer::~TierServer() = default;

const std::string& TierServer::address() const { return impl_->listener.address(); }

std::string TierServer::status_json() const { return impl_->status_json(); }

std::string TierServer::Impl::status_json() const {
  const std::lock_guard<std::mutex> hold(mutex);
  const Counters& c = counters;
  const auto of_requests = [&](std::uint64_t count) {
    return c.requests == 0 ? Json() : Json(static_cast<double>(count) / static_cast<double>(c.requests));
  };
  const Json accuracy = c.labelled == 0 ? Json() : Json(static_cast<double>(c.right) / static_cast<double>(c.labelled));
  const Json status = {
      {"tier", tier.stage()},
      {"tiers", tier.stages()},
      {"pipeline", tier.pipeline()},
      {"inputs", tier.inputs()},
      {"features", tier.features()},
      {"exit_below", rules.exit_below},
      {"next", rules.next},
      {"requests", c.requests},
      {"answered", c.answered},
      {"share_answered", of_requests(c.answered)},
      {"passed_on", c.passed_on},
      {"next_failed", c.next_failed},
      {"refused", c.refused},
      {"received_bytes", c.received_bytes},
      {"passed_on_bytes", c.passed_on_bytes},
      {"passed_on_bytes_per_request", of_requests(c.passed_on_bytes)},
      {"labelled", c.labelled},
      {"accuracy", accuracy}};
  return status.dump() + "\n";
}

}  // namespace rumor::tools
