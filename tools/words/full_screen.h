// FullScreen: shows the terminal as one picture that is redrawn, as long as the object lives. The previous content
// returns afterwards, also after Ctrl-C (watch_for_signals() must be armed).
//
// It writes the sequences that every terminal since the VT100 knows, and xterm's for the second screen.
//
// Thread: one owner; one at a time.
#pragma once

#include <termios.h>

#include <optional>
#include <string>

namespace rumor::tools {

class FullScreen {
 public:
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // Replaces the shown text; lines beyond the window's size are cut.
  void show(const std::string& text);
  // Waits so long for a key or a signal; true for q, Q, Escape, Ctrl-C, or when the keyboard is gone.
  bool asked_to_end(double seconds);

 private:
  std::optional<termios> before_;  // none: stdin is no terminal
};

}  // namespace rumor::tools
