// The page at a peer's status address: HTML, style and script in one piece, nothing loaded from elsewhere.
//
// It fetches /status once a second (runtime/status_json.cc says what is in it) and shows what it finds; a
// field that is missing shows as a dash. Texts are only ever set as text: addresses and reasons come from
// other peers.
#pragma once

namespace rumor::daemon {

inline constexpr char status_page[] = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rumor peer</title>
<link rel="icon" href="data:,">
<style>
  :root { color-scheme: light dark; --ink: #1c2024; --soft: #5c666e; --page: #f6f7f8; --card: #ffffff;
          --line: #dfe3e6; --good: #18794e; --warn: #ad5700; --loss: #3358d4; --hit: #18794e; }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #edeef0; --soft: #a0a8b0; --page: #111315; --card: #191c1f; --line: #2e3338;
            --good: #3dd68c; --warn: #ffa057; --loss: #9eb1ff; --hit: #3dd68c; } }
  * { box-sizing: border-box; }
  body { margin: 0 auto; max-width: 68rem; padding: 1rem; background: var(--page); color: var(--ink);
         font: 16px/1.45 system-ui, sans-serif; }
  header { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; }
  h1 { font-size: 1.3rem; margin: 0; }
  h2 { font-size: 1rem; margin: 0 0 .5rem; }
  .soft { color: var(--soft); font-size: .875rem; overflow-wrap: anywhere; }
  .mono { font-family: ui-monospace, monospace; }
  .good { color: var(--good); } .warn { color: var(--warn); }
  #notice { margin: .75rem 0 0; padding: .5rem .75rem; border: 1px solid var(--warn); border-radius: .5rem; }
  #bar { height: .5rem; margin: .75rem 0; background: var(--line); border-radius: .25rem; overflow: hidden; }
  #bar div { height: 100%; width: 0; background: var(--loss); transition: width .5s; }
  .grid { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); }
  .card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
          padding: .6rem .8rem; }
  .figure { font-size: 1.35rem; font-weight: 600; font-variant-numeric: tabular-nums; }
  section.card { margin-top: .75rem; }
  svg { display: block; width: 100%; height: 8rem; }
  polyline { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .875rem; }
  th, td { text-align: right; padding: .25rem .6rem; white-space: nowrap; border-top: 1px solid var(--line); }
  th { font-weight: 600; color: var(--soft); border-top: 0; }
  th:first-child, td:first-child { text-align: left; padding-left: 0; }
</style>
</head>
<body>
<header><h1>rumor <span id="run"></span></h1><span id="phase" class="soft"></span></header>
<div class="soft">peer <span id="node" class="mono">&ndash;</span>
  in run <span id="run_id" class="mono">&ndash;</span></div>
<p id="notice" class="warn" role="status" hidden></p>
<div id="bar" role="progressbar" aria-label="samples trained" aria-valuemin="0" aria-valuemax="100">
  <div></div></div>
<main>
  <div class="grid" id="figures"></div>
  <section class="card"><h2><span style="color:var(--loss)">Loss</span> and
    <span style="color:var(--hit)">accuracy</span>, since this page was opened</h2>
    <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
      <polyline id="loss_line" stroke="var(--loss)"/><polyline id="hit_line" stroke="var(--hit)"/></svg>
  </section>
  <section class="card"><h2>Neighbours</h2><div class="scroll"><table>
    <thead><tr><th>address</th><th>peer</th><th>updates</th><th>same bits</th><th>sent</th><th>received</th>
    </tr></thead>
    <tbody id="peers"></tbody></table></div></section>
  <section class="card"><h2>What is sent of each tensor</h2><div class="scroll"><table>
    <thead><tr><th>tensor</th><th>parameters</th><th>entries</th><th>density</th><th>waiting (rms)</th>
    </tr></thead>
    <tbody id="tensors"></tbody></table></div></section>
  <p class="soft">Digest of what this peer has applied: <span id="digest" class="mono">&ndash;</span>.
    Equal digests mean equal weights, bit for bit.
    For programs: <a href="/status">/status</a>, <a href="/metrics">/metrics</a>.</p>
</main>
)page"
R"page(<script>
"use strict";
const byId = (id) => document.getElementById(id);
const known = (x) => typeof x === "number" && isFinite(x);
const count = (x) => known(x) ? Math.round(x).toLocaleString("en") : "\u2013";
const decimal = (x, digits) => known(x) ? x.toFixed(digits) : "\u2013";
const percent = (x, digits) => known(x) ? (100 * x).toFixed(digits) + " %" : "\u2013";
const times = (x) => known(x) && x > 0 ? count(x) + " \u00d7" : "\u2013";
function bytes(x) {
  if (!known(x)) return "\u2013";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (x >= 1000 && unit < units.length - 1) { x /= 1000; ++unit; }
  return x.toFixed(unit && x < 100 ? 1 : 0) + " " + units[unit];
}
function element(tag, text, name) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

const figures = {};
function figure(name, value, detail, mood) {
  if (!figures[name]) {
    const card = element("div", "", "card");
    figures[name] = [element("div", "", "figure"), element("div", "", "soft")];
    card.append(element("div", name, "soft"), ...figures[name]);
    byId("figures").append(card);
  }
  figures[name][0].textContent = value;
  figures[name][0].className = "figure " + (mood || "");
  figures[name][1].textContent = detail || "";
}
function rows(id, list, cells) {
  const made = list.map((item) => {
    const row = document.createElement("tr");
    row.append(...cells(item).map((cell) => cell instanceof Node ? cell : element("td", cell)));
    return row;
  });
  byId(id).replaceChildren(...made);
}

const history = [];
function draw(s) {
  const last = history[history.length - 1];
  if (last && last.samples === s.samples) return;
  history.push({ samples: s.samples, loss: s.loss, accuracy: s.accuracy });
  if (history.length > 600) history.splice(1, 1);
  const first = history[0].samples, width = Math.max(1, s.samples - first);
  const losses = history.map((h) => h.loss).filter(known);
  const low = Math.min(...losses), high = Math.max(...losses, low + 1e-9);
  const line = (key, height) => history.filter((h) => known(h[key]))
    .map((h) => (100 * (h.samples - first) / width).toFixed(2) + "," + (97 - 94 * height(h[key])).toFixed(2))
    .join(" ");
  byId("loss_line").setAttribute("points", line("loss", (x) => (x - low) / (high - low)));
  byId("hit_line").setAttribute("points", line("accuracy", (x) => x));
}

let before = null;
function rates(traffic) {
  const now = { at: performance.now(), sent: traffic.sent_bytes, received: traffic.received_bytes };
  const seconds = before ? (now.at - before.at) / 1000 : 0;
  const rate = (key) => seconds > 0 && known(now[key]) && known(before[key])
    ? bytes(Math.max(0, now[key] - before[key]) / seconds) + "/s" : "\u2013";
  const result = [rate("sent"), rate("received")];
  before = now;
  return result;
}

function show(s) {
  const traffic = s.traffic || {}, compression = s.compression || {}, peers = s.peers || [];
  byId("run").textContent = s.run || "peer";
  byId("phase").textContent = s.phase || "";
  byId("node").textContent = (s.node_id || "\u2013").slice(0, 16);
  byId("run_id").textContent = s.run_id || "\u2013";
  byId("digest").textContent = s.digest || "\u2013";
  const done = s.samples_planned > 0 ? Math.min(1, s.samples / s.samples_planned) : 0;
  byId("bar").firstElementChild.style.width = 100 * done + "%";
  byId("bar").setAttribute("aria-valuenow", Math.round(100 * done));
  const share = s.samples_planned > 0 ? Math.floor(100 * done) + " % \u00b7 " : "";
  document.title = share + "rumor " + (s.run || "peer");

  const [up, down] = rates(traffic);
  figure("samples, all peers", count(s.samples),
         s.samples_planned > 0 ? "of " + count(s.samples_planned) : "");
  figure("loss", decimal(s.loss, 4), "own batches " + decimal(s.train_loss, 4));
  if (known(s.accuracy)) figure("accuracy", percent(s.accuracy, 2), "on the test set");
  figure("peers training", count(s.live_peers),
         peers.length + (peers.length === 1 ? " neighbour, " : " neighbours, ") +
         count(s.members) + " known");
  figure("same bits", !peers.length ? "alone" : s.digests_equal ? "yes" : "under way",
         count(s.updates) + " updates applied", s.digests_equal && peers.length ? "good" : "");
  figure("sent", up, bytes(traffic.sent_bytes) + " in all");
  figure("received", down, bytes(traffic.received_bytes) + " in all");
  figure("compression", times(traffic.ratio), bytes(traffic.update_bytes_mean) + " for " +
         bytes(traffic.dense_update_bytes) + " of update");
  figure("density", percent(compression.density, 3),
         decimal(compression.bits_per_entry, 2) + " bits an entry");
  rows("peers", peers, (p) => [
    p.address || "\u2013", element("td", (p.node_id || "").slice(0, 8), "mono"), count(p.updates),
    p.digest_equal ? element("td", "yes", "good") : "under way",
    bytes(p.sent_bytes), bytes(p.received_bytes)]);
  rows("tensors", compression.tensors || [], (t) => [
    t.name, count(t.params), count(t.entries), percent(t.density, 3),
    known(t.residual_rms) ? t.residual_rms.toExponential(2) : "\u2013"]);
  draw(s);
}
function notice(text) {
  byId("notice").hidden = !text;
  byId("notice").textContent = text || "";
}
async function follow() {
  try {
    const answer = await fetch("/status", { cache: "no-store" });
    if (!answer.ok)
      throw new Error(answer.status === 503 ? "the peer is starting" : "status " + answer.status);
    const status = await answer.json();
    show(status);
    notice(status.waiting_for);
  } catch (problem) {
    notice("No news from the peer: " + problem.message + ". What stands here is the last it said.");
  }
  setTimeout(follow, 1000);
}
follow();
</script>
</body>
</html>
)page";

}  // namespace rumor::daemon
