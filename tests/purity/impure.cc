// One call of every kind that the core may not make; tests/purity.sh must find each. Compiled, never run.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

namespace rumor::impure {

long clock_of_the_system() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

void sleep_a_while() {
  std::this_thread::sleep_for(std::chrono::seconds(1));
}

void lock_and_run(std::mutex& mutex) {
  const std::lock_guard<std::mutex> lock(mutex);
  std::thread([] {}).detach();
}

bool ask_the_network(pollfd* sockets) {
  sockets->fd = ::socket(AF_INET, SOCK_STREAM, 0);
  return ::poll(sockets, 1, 0) == 1;
}

unsigned draw() {
  return std::random_device{}();
}

const char* ask_the_environment() {
  return std::getenv("HOME");
}

bool read_a_file(char& letter) {
  return static_cast<bool>(std::ifstream("/etc/hostname").get(letter));
}

}  // namespace rumor::impure
