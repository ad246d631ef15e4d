// TierServer: answers for a tier over HTTP, and asks the next tier when its own exit is not sure (runtime/TIERS.md).
//
//   POST /classify  a picture or features -> class, probabilities, entropy, and the tier that answered, as JSON
//   POST /features  the same -> this tier's features, as bytes for the next tier's /classify
//   GET /status     counters, as JSON
//
// Nobody is asked for a password, and nothing that a request says changes the model.
//
// Threads: serves on eight threads of its own; computing is one request at a time, waiting for the next tier is not.
// Limits: bodies of views_max views, 64 MiB at most; 1 s for a request to arrive. The next tier has 1 s to accept and
// 5 s to answer, and is left alone for 1 s after it failed.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "tools/serve/tier.h"
#include "tools/serve/views.h"

namespace rumor::tools {

struct TierRules {
  compress::BorderNumbers numbers = compress::BorderNumbers::f32;  // of features between tiers
  double exit_below = 0.5;         // the exit answers where its normalised entropy is below this
  std::string next;                // HOST:PORT of the tier above; empty: none
  Sensors sensors = Sensors::one;
  float mean = 0, scale = 1;       // of the first tier: x = (value - mean) * scale
};

class TierServer {
 public:
  // Serves at "host:port", port 0 for any free one. Errors: Errc::usage (a malformed address), Errc::io (naming the
  // address and the system's reason).
  static Result<std::unique_ptr<TierServer>> start(Tier tier, TierRules rules, const std::string& host_port);

  // Ends after the requests under way.
  ~TierServer();
  TierServer(const TierServer&) = delete;
  TierServer& operator=(const TierServer&) = delete;

  // With the real port.
  const std::string& address() const;
  // The text of /status.
  std::string status_json() const;

 private:
  struct Impl;
  explicit TierServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rumor::tools
