// The page for people at a peer's status address: one piece of HTML, style and script, nothing loaded from elsewhere.
//
// Its source is page/index.html, page.css and the .js files beside them; page/embed.py joins them when Rumor is built.
// It asks for /status, /history and /events by itself; all it shows of other peers it sets as text.
#pragma once

#include <string_view>

namespace rumor::daemon {

extern const std::string_view status_page;
// The Content-Security-Policy to serve it with: what stands in the page may run, by its hash, and may only talk to us.
extern const std::string_view status_page_policy;

}  // namespace rumor::daemon
