// The page for people at a peer's status address: one piece of HTML, style and script, nothing loaded from elsewhere.
//
// Its source is page/index.html, page.css and the .js files beside them; page/embed.py joins them when Rumor is built.
// It asks for /status, /figures, /history and /events by itself; what comes from other peers is set as text only.
#pragma once

#include <string_view>

namespace rumor::daemon {

extern const std::string_view status_page;
// The Content-Security-Policy to serve it with: only the page's own script and style, by their hashes, and only
// requests to this server.
extern const std::string_view status_page_policy;

}  // namespace rumor::daemon
