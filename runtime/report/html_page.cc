#include "runtime/report/html_page.h"

#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

constexpr const char* style = R"css(
:root { color-scheme: light dark; --page: #fff; --ink: #1f2328; --soft: #57606a; --line: #d8dee4; --grid: #eaeef2;
  --good: #1a7f37; --bad: #d1242f; --c0: #1f6feb; --c1: #d1242f; --c2: #1a7f37; --c3: #9a6700; --c4: #8250df;
  --c5: #bf3989; --c6: #0a7ea4; --c7: #57606a; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d1117; --ink: #e6edf3; --soft: #9da7b3; --line: #30363d; --grid: #21262d;
    --good: #3fb950; --bad: #ff7b72; --c0: #58a6ff; --c1: #ff7b72; --c2: #3fb950; --c3: #d29922; --c4: #bc8cff;
    --c5: #f778ba; --c6: #39c5cf; --c7: #9da7b3; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 1360px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p { max-width: 60rem; }
.wide { overflow-x: auto; }
code { overflow-wrap: anywhere; }
table { border-collapse: collapse; }
td, th { padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; } td.n { font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 1rem; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 6px; padding: .5rem; }
svg { width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
svg text.title { font-size: 14px; fill: var(--ink); font-weight: 600; }
svg text.mark { fill: var(--ink); stroke: var(--page); stroke-width: 3px; paint-order: stroke; }
.grid { stroke: var(--grid); }
.best { stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 5 4; fill: none; }
.legend { margin: .2rem .5rem; font-size: .85rem; }
.legend span { display: inline-block; }
.legend svg { width: 1.1em; height: 1.1em; vertical-align: -.15em; }
.good { color: var(--good); } .bad { color: var(--bad); }
)css";

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" ",
             "content=\"width=device-width, initial-scale=1\"><title>", title, "</title><style>", style,
             "</style></head><body>", body, "</body></html>\n");
}

}  // namespace rumor::sim
