#include "runtime/sim/world/network.h"

#include "runtime/base/text.h"
#include "runtime/run/toml_table.h"

namespace rumor::sim {

namespace {
constexpr std::uint64_t bytes_per_mbit = 125'000;

NetworkModel make(std::string name, Duration low, Duration high, Duration jitter, std::uint64_t up_mbit,
                  std::uint64_t down_mbit) {
  return {std::move(name), low, high, jitter, up_mbit * bytes_per_mbit, down_mbit * bytes_per_mbit};
}
}  // namespace

Result<NetworkModel> NetworkModel::preset(const std::string& name) {
  if (name == "lan") return make("lan", 100us, 300us, 20us, 1000, 1000);
  if (name == "wan") return make("wan", 10ms, 80ms, 2ms, 100, 100);
  if (name == "home") return make("home", 5ms, 60ms, 10ms, 20, 100);
  return Error{Errc::usage,
               str("there is no network '", name, "'; choose lan, wan, home, or the name of a .toml file")};
}

Result<NetworkModel> NetworkModel::parse(std::string_view text, const std::string& source) {
  const Result<toml::table> parsed = parse_toml(text, source);
  if (!parsed) return parsed.error();
  const toml::table& table = *parsed;
  NetworkModel model;
  model.name = source;
  for (auto&& [key, value] : table) {
    const std::string name{std::string_view{key}};
    const auto number = value.value<double>();
    const bool positive = number && *number >= 0 && *number <= 1e6;
    if (name == "latency_ms" && value.is_array() && value.as_array()->size() == 2) {
      const double low = (*value.as_array())[0].value_or(-1.0), high = (*value.as_array())[1].value_or(-1.0);
      if (low < 0 || high < low || high > 1e6)
        return Error{Errc::usage, source + ": latency_ms wants [least, most] in milliseconds"};
      model.latency_min = from_seconds(low * 1e-3);
      model.latency_max = from_seconds(high * 1e-3);
    } else if (name == "jitter_ms" && positive) {
      model.jitter = from_seconds(*number * 1e-3);
    } else if ((name == "up_mbit" || name == "down_mbit") && positive && *number >= 0.001) {
      (name == "up_mbit" ? model.up_bytes_per_second : model.down_bytes_per_second) =
          static_cast<std::uint64_t>(*number * static_cast<double>(bytes_per_mbit));
    } else {
      return Error{Errc::usage, str(source, ": ", name,
                                    " is not a key of a network file, or its value does not fit; known: "
                                    "latency_ms = [least, most], jitter_ms, up_mbit, down_mbit")};
    }
  }
  return model;
}

FabricOptions fabric_of(const NetworkModel& model) {
  FabricOptions fabric;
  fabric.latency_min = model.latency_min;
  fabric.latency_max = model.latency_max;
  fabric.jitter = model.jitter;
  fabric.bytes_per_second = model.up_bytes_per_second;
  fabric.down_bytes_per_second = model.down_bytes_per_second;
  return fabric;
}

}  // namespace rumor::sim
