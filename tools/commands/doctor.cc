// rumor doctor: finds problems that would keep a peer of this machine from training well, and names the fix of each.
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "gossip/asio/address.h"
#include "gpu/device/plugin.h"
#include "models/data/dataset.h"
#include "models/kernels/kernels.h"
#include "runtime/base/text.h"
#include "runtime/daemon/ports/port_mapper.h"
#include "runtime/daemon/ports/port_probe.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/daemon/status/version.h"
#include "tools/commands/doctor_stages.h"
#include "tools/words/command.h"
#include "tools/words/findings.h"
#include "tools/words/peer_report.h"

namespace rumor::tools {
namespace {

using Seconds = std::chrono::duration<double>;

// A dial that nobody answers is given up before.
constexpr double dial_backs_take = 15;

double unix_seconds() {
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The clock decides when tokens expire and how events are ordered; TLS here checks no dates. A working clock is between
// 2025 and 2100.
void check_clock(Findings& out) {
  constexpr double year = 365.25 * 86400;
  const double now = unix_seconds();
  const int said = static_cast<int>(1970 + now / year);
  if (now < 55 * year || now > 130 * year)
    return out.bad("clock", str("says it is the year ", said), "set it: timedatectl set-ntp true");
  out.good("clock", str("plausible (", said, ")"));
}

void check_processor(Findings& out) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const std::string kernels = models::kernels().name;
  const std::string told = str(cores, cores == 1 ? " core, " : " cores, ", kernels, " kernels");
  if (kernels == "portable")
    return out.warn("processor", told,
                    "without AVX2 steps take several times as long; RUMOR_KERNELS may be set to less");
  out.good("processor", told);
}

void check_gpu(Findings& out) {
  const auto gpu = gpu::open_gpu(0);
  const auto info = gpu ? (*gpu)->describe() : Result<gpu::DeviceInfo>(gpu.error());
  if (info)
    return out.good("GPU", str(info->name, ", ", bytes_text(static_cast<double>(info->free_bytes)), " free of ",
                               bytes_text(static_cast<double>(info->memory_bytes)), "; models train there with ",
                               "rumor peer --device cuda"));
  std::error_code ignored;
  if (std::filesystem::exists("/dev/nvidiactl", ignored) || std::getenv("RUMOR_CUDA") != nullptr)
    return out.warn("GPU", info.error().text, "until then models train on the processor (--device cpu, the default)");
  out.good("GPU", "none, and none is needed: models train on the processor");
}

// Checks the free space for checkpoints (two, and one being written) and the log at their largest.
void check_disk(Findings& out, const std::string& state, const RunConfig& config) {
  std::filesystem::path folder = state.empty() ? "." : state;
  std::error_code error;
  while (!std::filesystem::exists(folder, error) && folder.has_parent_path()) folder = folder.parent_path();
  if (folder.empty()) folder = ".";
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0)
    return out.bad("disk", str("cannot look at ", folder.string()), "choose another place with --state DIR");
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  const double log = static_cast<double>(config.log_bytes);
  if (free < 256e6)
    return out.bad("disk", str(bytes_text(free), " free at ", folder.string()),
                   "make room or choose another place with --state DIR; checkpoints would stop");
  if (free < log)
    return out.warn("disk",
                    str(bytes_text(free), " free at ", folder.string(), ", and the log may take ", bytes_text(log)),
                    str("lower it: network.log_mib = ", static_cast<std::uint64_t>(free / 2 / (1 << 20))));
  out.good("disk", str(bytes_text(free), " free at ", folder.string()));
}

void check_state(Findings& out, const std::string& state) {
  std::error_code ignored;
  if (state.empty() || !std::filesystem::exists(state, ignored)) return;
  if (!std::filesystem::is_directory(state, ignored))
    return out.bad("state", state + " is no directory", "choose another with --state DIR");
  const auto lock = daemon::StateLock::acquire(state);
  if (!lock) return out.warn("state", lock.error().text, "fine if that is the peer you ask about");
  const std::string key = state + "/identity.pem";
  const auto mode = std::filesystem::status(key, ignored).permissions();
  using std::filesystem::perms;
  if (std::filesystem::exists(key, ignored) && (mode & (perms::group_all | perms::others_all)) != perms::none)
    return out.bad("state", key + " can be read by others, and who copies it is this peer", "chmod 600 " + key);
  out.good("state", state);
}

void check_data(Findings& out, const RunConfig& config) {
  const auto data = models::load_data(config.data, config.model.context);
  if (!data)
    return out.bad("data", data.error().text, "the message says which file is missing, and data.path where to look");
  out.good("data",
           str(config.data.kind, ", ", count_text(static_cast<double>((*data)->train_rows())), " rows to train on"));
  check_borders(out, config, **data);
}

// A port in use is no problem if a peer of this run holds it; that peer is checked below.
void check_port(Findings& out, const char* what, const std::string& address, const char* option) {
  if (address.empty()) return;
  if (const auto free = daemon::probe_port(address); !free)
    return out.warn(what, free.error().text, str("fine if your peer runs there; else choose another with ", option));
  out.good(what, address + " is free");
}

// Asks the router only for its identity, not for a port.
void check_router(Findings& out, const RunConfig& config) {
  const auto request = daemon::port_request(config.listen, config.map_port);
  if (!request && request.error().code == Errc::mismatch) return out.good("router", request.error().text);
  if (!request) return out.warn("router", request.error().text, "or leave network.map_port out");
  const auto said = daemon::ask_router(*request);
  if (said) return out.good("router", *said);
  out.warn("router", said.error().text,
           str("allow UPnP or NAT-PMP in its settings, or forward port ", request->port,
               " there by hand and set network.advertise; the peer dials others all the same"));
}

void check_advertised(Findings& out, const RunConfig& config) {
  const auto address = net::parse_address(config.listen);
  if (!address) return out.bad("reachability", address.error().text, "--listen HOST:PORT");
  if (net::is_loopback(address->host))
    return out.good("reachability", str("on this machine only (--listen ", config.listen, ")"));
  const bool everywhere = address->host == "0.0.0.0" || address->host == "::";
  if (everywhere && config.advertise.empty() && config.map_port.empty())
    return out.bad("reachability", str("others are told to dial ", config.listen, ", which is nowhere"),
                   "say how others reach this machine: network.advertise = [\"my.host.name:7001\"]; at home, ask the "
                   "router: network.map_port = \"auto\"");
  if (address->port == 0)
    return out.warn("reachability", "the port is another one at each start",
                    "--listen HOST:7001, and open it in the firewall");
  out.good("reachability",
           str("listens on ", config.listen, "; whether a router or firewall lets others in only they can ",
               "tell: `rumor doctor --dial HOST:PORT` on their machine"));
}

void check_dial(Findings& out, const std::string& what, const std::string& address) {
  const auto began = std::chrono::steady_clock::now();
  const auto dialled = daemon::probe_peer(address);
  const double ms = Seconds(std::chrono::steady_clock::now() - began).count() * 1000;
  if (!dialled)
    return out.bad(what, str(address, ": ", dialled.error().text),
                   "does a peer listen there, and does a firewall let you through?");
  out.good(what, str(address, " takes connections (", fixed(ms, 1), " ms)"));
}

// From outside in: a peer has neighbours try every ten minutes whether they can dial it (PROTOCOL.md 5.11).
void check_reached(Findings& out, const PeerReport& peer) {
  const double asked = peer.number("reach.asked_seconds_ago").value_or(0);
  const auto reached = peer.number("reach.seconds_ago");
  const bool in_vain = asked >= dial_backs_take && reached.value_or(asked + 1) > asked;
  if (reached && !in_vain)
    return out.good("reachability", str(peer.text("reach.by").substr(0, 8), " has dialled this peer ",
                                        fixed(*reached, 0), " s ago"));
  if (!in_vain) return;
  out.warn("reachability", str("neighbours were asked ", fixed(asked, 0), " s ago to dial this peer, and none could"),
           "it trains all the same; to let others in, start it with --map-port auto, or open its --listen port in "
           "firewall and router and set network.advertise");
}

// Checks a running peer by its status address.
void check_peer(Findings& out, const std::string& address, const std::string& token) {
  const auto peer = ask_peer(address, token);
  if (!peer) return out.bad("peer", peer.error().text, "start it with --status " + address);
  if (const auto of_peer = peer->text("version"); !of_peer.empty() && of_peer != daemon::version())
    out.warn("version", str("the peer is ", of_peer, ", this command ", daemon::version()),
             "use the same build for both");
  const double ahead = peer->number("unix_s").value_or(unix_seconds()) - unix_seconds();
  if (std::abs(ahead) > 30)
    out.warn("clock", str("the peer's differs by ", fixed(ahead, 0), " s"),
             "timedatectl set-ntp true on both machines");
  if (const auto trouble = peer->text("identity_trouble"); !trouble.empty())
    out.bad("identity", trouble, "rumor peer wants a --state directory of its own on each machine, never a copy");
  if (const auto trouble = peer->text("storage_trouble"); !trouble.empty())
    out.bad("peer", "cannot keep its state: " + trouble, "make room, or fix the disk; it trains on meanwhile");
  if (const auto mapping = peer->text("port_mapping"); !mapping.empty()) {
    if (mapping.find("leads here") != std::string::npos)
      out.good("router", mapping);
    else
      out.warn("router", mapping, "the peer dials others all the same, and asks again every five minutes");
  }
  check_reached(out, *peer);
  check_stage(out, *peer);
  const double links = peer->number("links").value_or(0);
  const std::string waiting = peer->text("waiting_for");
  if (links == 0)
    out.warn("peer", str("is alone", waiting.empty() ? "" : ": " + waiting), "give it --seed HOST:PORT of another");
  else
    out.good("peer", str("neighbours: ", links, "; limit: ", peer->text("limit.text")));
}

}  // namespace

int run_doctor_command(const DoctorCommand& command) {
  const auto token = load_status_token(command.token);
  if (!token) return fail(token.error());
  Findings out;
  out.good("version", str("rumor ", daemon::version()));
  check_clock(out);
  check_processor(out);
  check_gpu(out);
  if (!command.run.name.empty()) {
    auto config = load_run(command.run);
    if (!config) return fail(config.error());
    out.good("run file", command.run.name + " is sound");
    check_disk(out, command.state, *config);
    check_state(out, command.state);
    check_data(out, *config);
    check_port(out, "listen", config->listen, "--listen");
    check_port(out, "status", config->status, "--status");
    check_advertised(out, *config);
    if (!config->map_port.empty()) check_router(out, *config);
    for (const std::string& seed : config->seeds) check_dial(out, "seed", seed);
  } else {
    check_disk(out, command.state, RunConfig{});
    check_state(out, command.state);
  }
  for (const std::string& address : command.dial) check_dial(out, "dial", address);
  if (!command.peer.empty()) check_peer(out, command.peer, *token);
  std::fputs(out.text().c_str(), stdout);
  return out.broken() ? 1 : 0;
}

}  // namespace rumor::tools
