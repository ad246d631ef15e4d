// Figures as people read them. A value that is missing or no number is a dash.
"use strict";
const byId = (id) => document.getElementById(id);
const known = (x) => typeof x === "number" && isFinite(x);
const dash = "\u2013";
const count = (x) => known(x) ? Math.round(x).toLocaleString("en") : dash;
const decimal = (x, digits) => known(x) ? x.toFixed(digits) : dash;
const percent = (x, digits) => known(x) ? (100 * x).toFixed(digits) + " %" : dash;
const brief = (id) => (id || "").slice(0, 8);

function bytes(x) {
  if (!known(x)) return dash;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (x >= 1000 && unit < units.length - 1) { x /= 1000; ++unit; }
  return x.toFixed(unit && x < 100 ? 1 : 0) + " " + units[unit];
}

// 12300 -> "12.3k": for axes.
function short(x) {
  const units = ["", "k", "M", "G", "T"];
  let unit = 0;
  while (Math.abs(x) >= 1000 && unit < units.length - 1) { x /= 1000; ++unit; }
  return parseFloat(x.toPrecision(3)) + units[unit];
}

// For small weights and changes: "1.3e-4".
const tiny = (x) => !known(x) ? dash : x === 0 ? "0" : x.toExponential(1).replace("-", "\u2212");

function duration(seconds) {
  if (!known(seconds)) return dash;
  if (seconds < 90) return Math.round(seconds) + " s";
  if (seconds < 5400) return Math.round(seconds / 60) + " min";
  if (seconds < 172800) return (seconds / 3600).toFixed(1) + " h";
  return (seconds / 86400).toFixed(1) + " days";
}

// A value in the form that /figures names (runtime/base/figures.h); empty: it is not shown.
function figureText(form, x) {
  if (typeof x === "boolean") return x ? "yes" : form === "equal" ? "under way" : "no";
  if (typeof x === "string") return form === "id" ? brief(x) : x;
  if (!known(x)) return "";
  const size = Math.abs(x);
  switch (form) {
    case "fault": return x > 0 ? count(x) : "";
    case "small": return size < .01 ? tiny(x) : decimal(x, 3);
    case "decimal": return size >= 1000 ? count(x) : decimal(x, 3);
    case "share": return percent(x, size >= .01 || size === 0 ? 1 : 3);
    case "bytes": case "flow": return bytes(x);
    case "seconds": return duration(x);
    case "ms": return decimal(x, 1) + " ms";
    default: return count(x);
  }
}

// Texts come from other peers too: they are only ever set as text.
function element(tag, text, name) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}
function shape(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
