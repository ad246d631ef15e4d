// A peer and nothing else, for the thread sanitizer: `rumor peer` without the simulator, the other commands and CLI11.
//
// usage: peer_only peer RUN [--NAME VALUE]...    the options that peers.py gives
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/words/command.h"

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

int main(int argc, char** argv) {
  rumor::tools::PeerCommand command;
  if (argc < 3 || std::string(argv[1]) != "peer" || argc % 2 == 0) return 2;
  command.run.name = argv[2];
  for (int i = 3; i < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--listen") {
      command.listen = value;
    } else if (option == "--status") {
      command.status = value;
    } else if (option == "--state") {
      command.state = value;
    } else if (option == "--shard") {
      command.shard = value;
    } else if (option == "--stage") {
      command.stage = value;
    } else if (option == "--threads") {
      command.threads = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
    } else if (option == "--checkpoint-every") {
      command.checkpoint_every = std::strtod(value.c_str(), nullptr);
    } else if (option == "--json") {
      command.json = value;
    } else if (option == "--seed") {
      command.seeds = split(value);
    } else if (option == "--until-samples") {
      command.until_samples = std::strtoull(value.c_str(), nullptr, 10);
    } else if (option == "--set") {
      command.run.overrides.push_back(value);
    } else {
      std::fprintf(stderr, "peer_only: no option %s\n", option.c_str());
      return 2;
    }
  }
  return rumor::tools::run_peer_command(command);
}
