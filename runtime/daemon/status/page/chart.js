// A line chart that can be read by pointer and by arrow keys.
//
// new Chart(box, {label, format, axis, log})   box: an element with a size; format: of a value,
//                                            and axis(y, step): shorter; log: decades
// chart.show([{name, points: [[x, y], ...], style}], formatX)
"use strict";

// Round numbers between low and high, about `wanted` of them.
function roundTicks(low, high, wanted) {
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-6; t += step)
    ticks.push(Math.abs(t) < step / 1e6 ? 0 : t);
  return ticks;
}

class Chart {
  constructor(box, options) {
    this.box = box;
    this.options = options;
    this.series = [];
    this.cursor = null;  // index into the x values
    this.svg = shape("svg", { role: "img", tabindex: "0" });
    this.tip = element("div", "", "tip");
    this.tip.hidden = true;
    box.append(this.svg, this.tip);
    new ResizeObserver(() => this.draw()).observe(box);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerdown", (event) => this.point(event));
    for (const end of ["pointerleave", "blur"]) this.svg.addEventListener(end, () => this.read(null));
    this.svg.addEventListener("keydown", (event) => this.key(event));
  }

  show(series, formatX) {
    this.series = series.map((s) => ({ ...s, points: s.points.filter(([x, y]) => known(x) && known(y)
      && (!this.options.log || y > 0)) })).filter((s) => s.points.length);
    this.formatX = formatX;
    this.xs = [...new Set(this.series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
    this.draw();
  }

  // Sets the maps from values to the screen.
  fit() {
    const { log } = this.options;
    const ys = this.series.flatMap((s) => s.points.map((p) => log ? Math.log10(p[1]) : p[1]));
    let low = Math.min(...ys), high = Math.max(...ys);
    if (high - low < 1e-9) { high += Math.abs(high) * .05 || 1; low -= Math.abs(low) * .05; }
    if (log) { low = Math.floor(low); high = Math.ceil(high); }
    const first = this.xs[0], last = Math.max(this.xs[this.xs.length - 1], first + 1e-9);
    const left = 48, right = 12, top = 8, bottom = 24;
    const width = this.box.clientWidth, height = this.box.clientHeight;
    this.low = low;
    this.high = high;
    this.width = width;
    this.bottom = height - bottom;
    this.left = left;
    this.toX = (x) => left + (width - left - right) * (x - first) / (last - first);
    this.toY = (y) => height - bottom - (height - top - bottom) * ((log ? Math.log10(y) : y) - low) / (high - low);
  }

  draw() {
    this.svg.replaceChildren();
    const width = this.box.clientWidth, height = this.box.clientHeight;
    if (!width) return;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("aria-label", this.summary());
    if (!this.xs || this.xs.length < 2) {
      this.svg.append(shape("text", { class: "empty", x: width / 2, y: height / 2, "text-anchor": "middle" },
        "nothing to draw yet"));
      return;
    }
    this.fit();
    this.axes();
    for (const s of this.series)
      this.svg.append(shape("path", { class: s.style, d: "M" + s.points.map(([x, y]) =>
        this.toX(x).toFixed(1) + " " + this.toY(y).toFixed(1)).join("L") }));
    this.mark();
  }

  axes() {
    const { log, format, axis = format } = this.options;
    const decades = [];
    const stride = Math.max(1, Math.ceil((this.high - this.low) / 5));
    for (let d = this.low; d <= this.high; d += stride) decades.push(10 ** d);
    const ticks = log ? decades : roundTicks(this.low, this.high, 4);
    for (const y of ticks) {
      const at = this.toY(y);
      this.svg.append(shape("line", { class: "grid", x1: this.left, x2: this.width - 12, y1: at, y2: at }),
        shape("text", { x: this.left - 8, y: at + 4, "text-anchor": "end" }, axis(y, ticks[1] - ticks[0])));
    }
    const first = this.xs[0], last = this.xs[this.xs.length - 1];
    let before = "";
    for (const x of roundTicks(first, last, this.width < 400 ? 4 : 6)) {
      const label = this.formatX(x);
      if (label === before) continue;  // the same label twice
      before = label;
      this.svg.append(shape("text", { x: Math.min(this.toX(x), this.width - 16), y: this.bottom + 18,
        "text-anchor": "middle" }, label));
    }
  }

  summary() {
    const parts = this.series.map((s) => `${s.name} now ${this.options.format(s.points[s.points.length - 1][1])}, ` +
      `at first ${this.options.format(s.points[0][1])}`);
    return `${this.options.label}: ${parts.join("; ") || "nothing yet"}. Arrow keys read single points.`;
  }

  point(event) {
    if (!this.xs || this.xs.length < 2 || !this.toX) return;
    const at = event.clientX - this.svg.getBoundingClientRect().left;
    let best = 0;
    this.xs.forEach((x, i) => { if (Math.abs(this.toX(x) - at) < Math.abs(this.toX(this.xs[best]) - at)) best = i; });
    this.read(best);
  }
  key(event) {
    const end = (this.xs || []).length - 1;
    if (end < 1) return;
    const now = this.cursor ?? end;
    const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: end, Escape: null };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const to = moves[event.key];
    this.read(to === null ? null : Math.max(0, Math.min(end, to)));
  }
  read(index) {
    this.cursor = index;
    this.draw();
  }

  // The line at the cursor, with the values there.
  mark() {
    const at = this.cursor === null ? undefined : this.xs[Math.min(this.cursor, this.xs.length - 1)];
    this.tip.hidden = at === undefined;
    if (at === undefined) return;
    const x = this.toX(at);
    this.svg.append(shape("line", { class: "cursor", x1: x, x2: x, y1: 8, y2: this.bottom }));
    const rows = [this.formatX(at)];
    for (const s of this.series) {
      const near = s.points.reduce((a, b) => Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a);
      rows.push(`${s.name} ${this.options.format(near[1])}`);
      this.svg.append(shape("circle", { class: s.style, cx: this.toX(near[0]), cy: this.toY(near[1]), r: 3.5 }));
    }
    this.tip.replaceChildren(...rows.map((row) => element("div", row)));
    this.tip.style.left = Math.max(0, Math.min(this.width - this.tip.offsetWidth,
      x + (x > this.width / 2 ? -this.tip.offsetWidth - 10 : 10))) + "px";
    this.svg.setAttribute("aria-label", `${this.options.label}: ${rows.join(", ")}`);
  }
}
