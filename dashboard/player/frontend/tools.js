// Small helpers: making elements, writing numbers.

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function drawing(tag, attributes = {}) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function icon(path) {
  const svg = drawing("svg", { viewBox: "0 0 24 24", width: 18, height: 18, "aria-hidden": "true" });
  svg.append(drawing("path", { d: path, fill: "currentColor" }));
  return svg;
}

const ICONS = {
  play: "M8 5v14l11-7z",
  pause: "M7 5h4v14H7zM13 5h4v14h-4z",
  first: "M6 6h2.2v12H6zM18 6v12l-8.5-6z",
  last: "M15.8 6H18v12h-2.2zM6 6v12l8.5-6z",
  back: "M15.5 5v14l-9-7z",
  forward: "M8.5 5v14l9-7z",
  full: "M5 5h5v2H7v3H5zM14 5h5v5h-2V7h-3zM5 14h2v3h3v2H5zM17 14h2v5h-5v-2h3z",
  link: "M10.6 13.4a1 1 0 0 1-1.4 1.4 4 4 0 0 1 0-5.7l3-3a4 4 0 0 1 5.7 5.7l-1.5 1.5-.1-2 .2-.9a2 2 0 0 0-2.8-2.8l-3 3a2 2 0 0 0-.1 2.8zm2.8-2.8a1 1 0 0 1 1.4-1.4 4 4 0 0 1 0 5.7l-3 3a4 4 0 0 1-5.7-5.7l1.5-1.5.1 2-.2.9a2 2 0 0 0 2.8 2.8l3-3a2 2 0 0 0 .1-2.8z",
  reset: "M12 5a7 7 0 1 1-6.6 4.7l1.9.7A5 5 0 1 0 12 7v3L7.5 6 12 2z",
};

const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

const GROUPED = new Intl.NumberFormat("en-GB"); // made once: every tooltip of a chart needs it

// A number in at most twelve characters: 0.1234, 12.34, 12,345,678 or 1.23e−6.
function written(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text;
  if (Number.isInteger(value) && size < 1e9) text = GROUPED.format(value);
  else if (size >= 1e5 || size < 1e-3) text = value.toExponential(2).replace("e+", "e");
  else text = value.toPrecision(4);
  return text.replace(/-/g, "−");
}

// The same with the power of ten raised, for labels that stand alone.
function raised(value) {
  const text = written(value);
  const at = text.indexOf("e");
  if (at < 0) return text;
  const power = [...text.slice(at + 1).replace("−", "-")].map((c) => SUPERSCRIPT[c]).join("");
  return `${text.slice(0, at)} × 10${power}`;
}

// Plotly reads a little HTML in labels; names come from data and must stay text.
function escaped(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function simulationTag() {
  return element("span", {
    class: "fp-tag",
    text: "simulation only",
    title: "Needs the clients' private data: a simulation can draw this, the server of a real deployment cannot.",
  });
}
