// This peer in the middle, around it its neighbours and, dashed, the peers that train with it over other peers.
//
// new Graph(box, detail)     detail: element for the figures of the chosen peer
// graph.show(selfId, peers)  peers: as everybody() of page.js makes them, by id, so that each keeps its place
"use strict";

class Graph {
  constructor(box, detail) {
    this.box = box;
    this.detail = detail;
    this.chosen = null;
    this.peers = [];
    this.svg = shape("svg", { role: "group", "aria-label": "This peer and its neighbours" });
    box.append(this.svg);
    new ResizeObserver(() => this.draw()).observe(box);
  }

  show(self, peers) {
    this.self = self;
    this.more = Math.max(0, peers.length - 40);
    this.peers = peers.slice(0, 40);
    this.box.classList.toggle("few", peers.length < 3);
    this.draw();
  }

  choose(id) {
    this.chosen = this.chosen === id ? null : id;
    this.draw();
  }

  draw() {
    const width = this.box.clientWidth, height = this.box.clientHeight;
    if (!width) return;
    const focused = document.activeElement && document.activeElement.dataset
      && this.svg.contains(document.activeElement) ? document.activeElement.dataset.node : null;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren();
    const many = this.peers.length > 12, radius = many ? 9 : 14;
    const { middle, places } = this.places(width, height);
    this.peers.forEach((peer, i) => this.edge(peer, middle, places[i]));
    this.svg.append(shape("circle", { class: "self", cx: middle.x, cy: middle.y, r: 24 }),
      shape("text", { class: "me", x: middle.x, y: middle.y + 4 }, "this"));
    if (!this.peers.length)
      this.svg.append(shape("text", { class: "sub", x: middle.x, y: middle.y + 48 }, "no neighbour yet"));
    if (this.more)
      this.svg.append(shape("text", { class: "sub", x: middle.x, y: height - 4 },
        `and ${this.more} more, in the table`));
    this.peers.forEach((peer, i) => this.node(peer, places[i], radius,
      !many || this.chosen === peer.id ? (places[i].y < middle.y - 1 ? -radius - 8 : radius + 17) : 0));
    if (focused) {
      const again = [...this.svg.querySelectorAll(".peer")].find((node) => node.dataset.node === focused);
      if (again) again.focus();
    }
    this.tell();
  }

  // On an ellipse that fills the box, for any number of peers: three of them reach less far down than up.
  places(width, height) {
    const turns = this.peers.map((_, i) =>
      2 * Math.PI * (i + (this.peers.length === 2 ? .5 : 0)) / this.peers.length);
    const ups = turns.map((turn) => Math.cos(turn)), top = Math.max(...ups, .5), bottom = Math.min(...ups, -.5);
    const edge = 42, scale = (height - 2 * edge) / (top - bottom);
    const middle = { x: width / 2, y: edge + scale * top };
    if (!turns.length) middle.y = height / 2;
    const places = turns.map((turn) => ({ x: middle.x + Math.sin(turn) * Math.min(width / 2 - 48, 1.6 * scale),
      y: middle.y - Math.cos(turn) * scale }));
    return { middle, places };
  }

  // A line is one unit wider for ten times as many bytes a second.
  edge(peer, from, to) {
    if (!peer.link) return;
    const flow = Math.max(1, Math.log10(Math.max(10, peer.rate || 0)) - 1);
    this.svg.append(shape("line", { x1: from.x, y1: from.y, x2: to.x, y2: to.y,
      "stroke-width": flow.toFixed(1) }));
  }

  // labelAt: distance of the name below the node; 0: no name.
  node(peer, at, radius, labelAt) {
    const name = `peer ${brief(peer.id)}${peer.link ? "" : ", not a neighbour"}, ` +
      (peer.equal ? "same bits" : peer.link ? "bits under way" : "reached over others");
    const group = shape("g", { class: `peer${peer.equal ? " equal" : ""}${peer.link ? "" : " far"}`, tabindex: "0",
      role: "button", "aria-label": name, "aria-pressed": String(this.chosen === peer.id) });
    group.dataset.node = peer.id;
    group.append(shape("circle", { cx: at.x, cy: at.y, r: radius }));
    if (labelAt) group.append(shape("text", { x: at.x, y: at.y + labelAt }, brief(peer.id)));
    group.addEventListener("click", () => this.choose(peer.id));
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.choose(peer.id);
    });
    this.svg.append(group);
  }

  tell() {
    const peer = this.peers.find((one) => one.id === this.chosen);
    const told = !peer ? (this.peers.length
      ? "Green ring: the same bits as here. Wider line: more bytes a second. Choose a peer for its figures."
      : "Other peers join with --seed and the address this peer listens on.") : "";
    if (told !== this.told || peer) this.detail.replaceChildren(...(peer ? this.figures(peer) : [told]));
    this.told = told;
  }
  figures(peer) {
    const parts = [element("b", brief(peer.id)), ` ${peer.address || "not a neighbour of this peer"} `];
    if (peer.link)
      parts.push(`\u00b7 linked for ${duration(peer.age)} \u00b7 round trip ${decimal(peer.roundTrip, 1)} ms ` +
        `\u00b7 ${count(peer.behind)} updates behind \u00b7 sent ${bytes(peer.sent)}, ` +
        `received ${bytes(peer.received)} `);
    if (peer.staleness)
      parts.push(`\u00b7 staleness ${decimal(peer.staleness.mean, 1)}, at most ${peer.staleness.max}`);
    return parts;
  }
}
