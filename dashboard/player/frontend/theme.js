// The colours and fonts in force, read from Streamlit's CSS variables.

function channels(colour) {
  const hex = colour.trim();
  if (/^#[0-9a-f]{6}$/i.test(hex)) return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  if (/^#[0-9a-f]{3}$/i.test(hex)) return [1, 2, 3].map((at) => parseInt(hex[at] + hex[at], 16));
  const numbers = hex.match(/[\d.]+/g);
  return numbers && numbers.length >= 3 ? numbers.slice(0, 3).map(Number) : [128, 128, 128];
}

function withAlpha(colour, alpha) {
  return `rgba(${channels(colour).join(",")},${alpha})`;
}

function mixed(colour, other, share) {
  const b = channels(other);
  return `rgb(${channels(colour).map((a, i) => Math.round(a * share + b[i] * (1 - share))).join(",")})`;
}

// Relative luminance as WCAG has it: above 0.179 black has the larger contrast, below it white.
function luminance(colour) {
  const [r, g, b] = channels(colour).map((a) => (a <= 10 ? a / 3294 : ((a / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// 256 colours between the given ones, packed for a canvas, and the CSS gradient of the same.
function ramp(colours) {
  const stops = colours.map(channels);
  const packed = new Uint32Array(256);
  for (let i = 0; i < 256; i += 1) {
    const place = (i / 255) * (stops.length - 1);
    const at = Math.min(Math.floor(place), stops.length - 2);
    const [r, g, b] = [0, 1, 2].map((c) => {
      return Math.round(stops[at][c] + (stops[at + 1][c] - stops[at][c]) * (place - at));
    });
    packed[i] = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  }
  return { packed, colours, gradient: `linear-gradient(to right, ${colours.join(", ")})` };
}

// ``known``: what was read before, which is given back where nothing has changed.
function readTheme(node, known) {
  const style = getComputedStyle(node);
  const get = (name) => style.getPropertyValue(name).trim();
  const list = (name) => get(name).split(/,(?![^(]*\))/).map((part) => part.trim()).filter(Boolean);
  const background = get("--st-background-color") || "#ffffff";
  const text = get("--st-text-color") || "#111111";
  const [r, g, b] = channels(background);
  const signature = [
    background, text, get("--st-primary-color"), get("--st-border-color"), get("--st-font"),
    get("--st-chart-diverging-colors"), get("--st-chart-sequential-colors"),
  ].join("|");
  if (known?.signature === signature) return known;
  return {
    signature,
    scheme: 0.299 * r + 0.587 * g + 0.114 * b < 128 ? "dark" : "light",
    background,
    text,
    quiet: mixed(text, background, 0.8),
    grid: mixed(text, background, 0.13),
    frame: mixed(text, background, 0.35),
    font: get("--st-font") || "sans-serif",
    ramps: {
      diverging: ramp(list("--st-chart-diverging-colors")),
      sequential: ramp(list("--st-chart-sequential-colors")),
      grey: ramp(["#000000", "#ffffff"]),
    },
  };
}
