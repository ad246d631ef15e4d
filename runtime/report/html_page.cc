#include "runtime/report/html_page.h"

#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

constexpr const char* style = R"css(
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2328; background: #fff;
  max-width: 1360px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; }
td, th { padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid #d8dee4; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 1rem; }
figure { margin: 0; border: 1px solid #d8dee4; border-radius: 6px; padding: .5rem; }
svg { width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: #57606a; }
svg text.title { font-size: 14px; fill: #1f2328; font-weight: 600; }
.grid { stroke: #eaeef2; }
.legend { margin: .2rem .5rem; font-size: .85rem; }
.good { color: #1a7f37; } .bad { color: #d1242f; }
)css";

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" ",
             "content=\"width=device-width, initial-scale=1\"><title>", title, "</title><style>", style,
             "</style></head><body>", body, "</body></html>\n");
}

}  // namespace rumor::sim
