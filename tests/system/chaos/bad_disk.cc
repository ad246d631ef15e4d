// A disk that is slow or fails, for one process: preloaded (LD_PRELOAD), it takes the place of fsync().
//
// The file named by the environment variable BAD_DISK says what each call meets: milliseconds to wait, then,
// if there is another word, an error EIO. It is read at every call, so a test can change its mind.
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

extern "C" int fsync(int) {
  const char* path = std::getenv("BAD_DISK");
  if (path == nullptr) return 0;
  std::ifstream orders(path);
  int wait_ms = 0;
  std::string failure;
  orders >> wait_ms >> failure;
  std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
  if (failure.empty()) return 0;
  errno = EIO;
  return -1;
}
