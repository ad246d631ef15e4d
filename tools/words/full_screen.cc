#include "tools/words/full_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <sstream>

#include "tools/words/command.h"

namespace rumor::tools {
namespace {

constexpr const char* second_screen = "\x1b[?1049h\x1b[?25l";  // and no cursor
constexpr const char* first_screen = "\x1b[?25h\x1b[?1049l";
constexpr const char* home = "\x1b[H";
constexpr const char* rest_of_line = "\x1b[K";
constexpr const char* rest_of_screen = "\x1b[J";

void write_all(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

winsize window() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    size.ws_col = 80, size.ws_row = 24;
  return size;
}

}  // namespace

FullScreen::FullScreen() {
  termios keys{};
  if (tcgetattr(STDIN_FILENO, &keys) == 0) {
    before_ = keys;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // each key at once, and unseen; Ctrl-C stays a signal
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  write_all(second_screen);
}

FullScreen::~FullScreen() {
  write_all(first_screen);
  if (before_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &*before_);
}

void FullScreen::show(const std::string& text) {
  const winsize size = window();
  std::istringstream lines(text);
  std::string out = home, line;
  for (int row = 0; row < size.ws_row && std::getline(lines, line); ++row)
    out += (row > 0 ? "\r\n" : "") + line.substr(0, size.ws_col) + rest_of_line;
  write_all(out + rest_of_screen);
}

bool FullScreen::asked_to_end(double seconds) {
  pollfd keyboard{.fd = before_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
  const int ready = poll(&keyboard, 1, static_cast<int>(seconds * 1000));
  if (interrupted()) return true;
  if (ready <= 0) return ready < 0 && errno != EINTR;
  char key = 0;
  return read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == '\x1b' || key == '\x03';
}

}  // namespace rumor::tools
