// Asks for /status once a second, for /history and /events every two, and shows the answers. Figures of /status need no
// code here: figures.js shows all that /figures describes.
"use strict";

const token = (() => {  // from ?token=; kept for this tab, and removed from the address line
  const address = new URL(location.href);
  const given = address.searchParams.get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    address.searchParams.delete("token");
    window.history.replaceState(null, "", address);
  }
  return { get: () => sessionStorage.getItem("token"), set: (value) => sessionStorage.setItem("token", value) };
})();

async function ask(path) {
  const headers = token.get() ? { Authorization: "Bearer " + token.get() } : {};
  const answer = await fetch(path, { cache: "no-store", headers });
  byId("ask").hidden = answer.status !== 401;
  if (answer.status === 401) throw new Error(token.get() ? "that is not its token" : "it needs a token");
  if (!answer.ok) throw new Error(answer.status === 503 ? "it is starting" : "HTTP status " + answer.status);
  return answer.json();
}

const lossChart = new Chart(byId("loss_chart"), { label: "Loss", format: (y) => decimal(y, 3), axis: short });
const accuracyChart = new Chart(byId("accuracy_chart"), { label: "Accuracy", format: (y) => percent(y, 1),
  axis: (y, step) => percent(y, step < .01 ? 1 : 0) });
const trafficChart = new Chart(byId("traffic_chart"), { label: "Bytes", format: bytes,
  axis: (y) => bytes(y).replace(".0 ", " "), log: true });
const graph = new Graph(byId("graph"), byId("graph_detail"));
let cards = null, latest = null, past = null, before = null;

const tiles = {};
function tile(name, value, detail, mood) {
  if (!tiles[name]) {
    const box = document.createElement("div");
    tiles[name] = [element("dd", "", "figure"), element("dd", "", "soft")];
    box.append(element("dt", name), ...tiles[name]);
    byId("tiles").append(box);
  }
  tiles[name][0].textContent = value;
  tiles[name][0].className = "figure " + (mood || "");
  tiles[name][1].textContent = detail || "\u00a0";
}

// Bytes a second since the last answer: of all links, and of each.
function rates(s) {
  const now = { at: performance.now(), sent: s.traffic.sent_bytes, received: s.traffic.received_bytes, links: {} };
  for (const p of s.peers) now.links[p.node_id] = p.sent_bytes + p.received_bytes;
  const seconds = before ? (now.at - before.at) / 1000 : 0;
  const rate = (a, b) => seconds > 0 && known(a) && known(b) ? Math.max(0, a - b) / seconds : undefined;
  const found = { sent: rate(now.sent, before?.sent), received: rate(now.received, before?.received), links: {} };
  for (const id of Object.keys(now.links)) found.links[id] = rate(now.links[id], before?.links[id]);
  before = now;
  return found;
}

// Neighbours, and the peers that train with this one over other peers, by id.
function everybody(s, linkRates) {
  const all = new Map();
  for (const p of s.peers)
    all.set(p.node_id, { id: p.node_id, link: true, address: p.address, equal: p.digest_equal, age: p.age_s,
      roundTrip: p.round_trip_ms, behind: p.behind, sent: p.sent_bytes,
      received: p.received_bytes, rate: linkRates[p.node_id] });
  for (const p of s.compression.staleness.peers) {
    if (!all.has(p.node_id)) all.set(p.node_id, { id: p.node_id, link: false });
    all.get(p.node_id).staleness = p;
  }
  return [...all.values()].sort((a, b) => a.id < b.id ? -1 : 1);
}

function showTop(s) {
  byId("run").textContent = s.run || "rumor";
  byId("phase").textContent = s.phase;
  byId("phase").className = "pill" + (s.phase === "training" ? " good" : "");
  byId("node").textContent = s.node_id.slice(0, 16);
  byId("run_id").textContent = s.run_id.slice(0, 16);
  byId("digest").textContent = s.digest;
  byId("limit").textContent = s.limit.text;
  const done = s.progress;
  byId("bar").firstElementChild.style.width = 100 * done + "%";
  byId("bar").setAttribute("aria-valuenow", Math.floor(100 * done));
  let text = `${count(s.samples)} of ${count(s.samples_planned)} samples, all peers together`;
  const then = past && past.seconds.length > 1 ? Math.max(0, past.seconds.length - 30) : -1;
  const speed = then < 0 ? 0 : (s.samples - past.samples[then]) / Math.max(1e-3, s.uptime_s - past.seconds[then]);
  if (done < 1 && speed > 0)
    text += ` \u00b7 ${count(speed)} a second \u00b7 about ${duration((s.samples_planned - s.samples) / speed)} left`;
  byId("done").textContent = text;
  document.title = `${Math.floor(100 * done)} % \u00b7 ${s.run || "rumor"}`;
}

function showTiles(s, speed) {
  const t = s.traffic, links = s.peers.length;
  tile("Loss", decimal(s.loss, 3), "own batches " + decimal(s.train_loss, 3));
  if (known(s.accuracy)) tile("Accuracy", percent(s.accuracy, 1), "on the test set");
  tile("Peers training", count(s.live_peers), `${links} ${links === 1 ? "neighbour" : "neighbours"}`);
  tile(/average|codistill/.test(s.exchange) ? "Same copies" : "Same bits",
    !links ? "alone" : s.digests_equal ? "yes" : "under way",
    count(s.updates) + " updates", links && s.digests_equal ? "good" : "");
  tile("Smaller than dense", t.ratio > 0 ? count(t.ratio) + " \u00d7" : dash,
    `${bytes(t.update_bytes_mean)} for ${bytes(t.dense_update_bytes)}`);
  tile("Sending", bytes(speed.sent) + (known(speed.sent) ? "/s" : ""),
    `receiving ${bytes(speed.received)}${known(speed.received) ? "/s" : ""}`);
}

function showCurves() {
  if (!past) return;
  const axis = document.querySelector("input[name=axis]:checked").value;
  const xs = [...past[axis], axis === "samples" ? latest.samples : latest.uptime_s];
  const line = (key, now) => [...past[key], now].map((y, i) => [xs[i], y]);
  const formatX = axis === "samples" ? short : duration;
  lossChart.show([
    { name: "test", style: "line1", points: line("loss", latest.test_loss) },
    { name: "own batches", style: "line1 dotted", points: line("train_loss", latest.train_loss) }], formatX);
  byId("accuracy_figure").hidden = !known(latest.accuracy);
  accuracyChart.show([{ name: "test", style: "line2", points: line("accuracy", latest.accuracy) }], formatX);
  const t = latest.traffic;
  trafficChart.show([
    { name: "sent", style: "line1", points: line("sent_bytes", t.sent_bytes) },
    { name: "received", style: "line2", points: line("received_bytes", t.received_bytes) },
    { name: "dense", style: "line3", points: line("dense_bytes", t.dense_bytes) }], formatX);
  byId("traffic_text").textContent = t.sent_bytes > 0 && t.dense_bytes > 0
    ? `${bytes(t.sent_bytes)} sent in all, messages and other peers' updates included; dense exchange would have ` +
      `taken ${bytes(t.dense_bytes)} for this peer's own updates alone.`
    : "Nothing was sent yet.";
}

function showEvents(list) {
  const made = list.slice(-200).reverse().map((event) => {
    const item = document.createElement("li"), at = new Date(1000 * event.at);
    item.className = `${event.kind} ${event.level}`;
    const time = element("time", at.toLocaleTimeString("en-GB"));
    time.dateTime = at.toISOString();
    time.title = at.toLocaleString();
    const prefix = event.level === "info" ? "" : event.level + ": ";
    item.append(time, element("i", ""), element("span", prefix + event.text));
    return item;
  });
  const list_ = byId("events");
  if (list_.childElementCount !== made.length || list_.firstElementChild?.textContent !== made[0]?.textContent)
    list_.replaceChildren(...made);
}

function notice(text) {
  if (byId("notice").textContent === (text || "")) return;
  byId("notice").hidden = !text;
  byId("notice").textContent = text || "";
}

let turn = 0;
async function follow() {
  try {
    cards ??= new FigureCards(byId("groups"), byId("events_card"), await ask("/figures"));
    latest = await ask("/status");
    if (turn++ % 2 === 0) {
      past = await ask("/history");
      showEvents(await ask("/events"));
    }
    const speed = rates(latest), peers = everybody(latest, speed.links);
    showTop(latest);
    showTiles(latest, speed);
    graph.show(latest.node_id, peers);
    cards.show(latest);
    showCurves();
    notice(latest.identity_trouble || latest.waiting_for || latest.storage_trouble || latest.audit_trouble);
    document.body.dataset.ready = "yes";
  } catch (problem) {
    notice("No answer from the peer: " + problem.message + ". These are its last figures.");
  }
  setTimeout(follow, 1000);
}
for (const choice of document.querySelectorAll("input[name=axis]")) choice.addEventListener("change", showCurves);
byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(byId("token").value);
});
follow();
