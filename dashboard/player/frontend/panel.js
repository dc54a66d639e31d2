// One chart with its title, legend, tools, and the cursor that follows the round.

// Plotly is fetched once per page, from this application's own static folder.
function loadPlotly() {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  if (!window.fedpcaPlotly) {
    const own = document.querySelector('script[src*="static/js/"]');
    const base = own ? own.src.split("static/js/")[0] : new URL("./", document.baseURI).href;
    window.fedpcaPlotly = new Promise((resolve, reject) => {
      const script = element("script", { src: `${base}app/static/plotly-charts.min.js` });
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => {
        window.fedpcaPlotly = null;
        reject(new Error("not loaded"));
      };
      document.head.append(script);
    });
  }
  return window.fedpcaPlotly;
}

// First drawings are tasks of their own, so that a page's first chart is seen before its last is drawn.
let turns = Promise.resolve();
function nextTurn() {
  turns = turns.then(() => new Promise((begin) => { setTimeout(begin); }));
  return turns;
}

const DASHES = { solid: "", dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "12 4", longdashdot: "12 3 2 3" };

// Plotly's markers as paths about the middle of a swatch.
const MARKERS = {
  circle: "M-4.4 0a4.4 4.4 0 1 0 8.8 0a4.4 4.4 0 1 0-8.8 0z",
  diamond: "M0-5.6 5.6 0 0 5.6-5.6 0z",
  square: "M-4.4-4.4H4.4V4.4H-4.4z",
  "triangle-up": "M0-5 5 4H-5z",
  "triangle-down": "M0 5-5-4H5z",
  x: "M-4.6-2.6-2.6-4.6 0-2 2.6-4.6 4.6-2.6 2 0 4.6 2.6 2.6 4.6 0 2-2.6 4.6-4.6 2.6-2 0z",
  cross: "M-1.6-5H1.6V-1.6H5V1.6H1.6V5H-1.6V1.6H-5V-1.6H-1.6z",
  star: "M0-5.6 1.3-1.8 5.3-1.7 2.1.7 3.3 4.5 0 2.2-3.3 4.5-2.1.7-5.3-1.7-1.3-1.8z",
  hexagon: "M0-5 4.4-2.5V2.5L0 5-4.4 2.5V-2.5z",
};

function swatch(curve, kind, scheme) {
  const svg = drawing("svg", { viewBox: "0 0 26 12", width: 26, height: 12, "aria-hidden": "true" });
  const colour = curve.colour[scheme];
  if (kind === "bars" || kind === "area") {
    svg.append(drawing("rect", { x: 6, y: 1, width: 14, height: 10, rx: 2, fill: colour }));
    return svg;
  }
  if (kind !== "scatter") {
    svg.append(drawing("line", { x1: 1, y1: 6, x2: 25, y2: 6, stroke: colour,
      "stroke-width": curve.guide ? 1.4 : 2.4, "stroke-dasharray": curve.strokes ?? DASHES[curve.dash] ?? "" }));
  }
  if (kind === "scatter" || curve.marker) {
    svg.append(drawing("path", { d: MARKERS[curve.symbol] ?? MARKERS.circle, fill: colour, "data-marker": curve.symbol,
      transform: `translate(13 6)${kind === "scatter" ? "" : " scale(0.7)"}` }));
  }
  return svg;
}

class PanelView {
  constructor(key, view) {
    this.view = view;
    const id = `fp-${view.id}-${key}`;
    this.title = element("div", { class: "fp-title", id: `${id}-title` });
    this.reset = this.tool("Reset zoom", icon(ICONS.reset), () => this.resetZoom());
    this.png = this.tool("Download as PNG", "PNG", () => this.save("png"));
    this.svg = this.tool("Download as SVG", "SVG", () => this.save("svg"));
    this.legend = element("ul", { class: "fp-legend" });
    this.plot = element("div", { class: "fp-plot", "data-panel": key, "data-testid": `replay-plot-${key}` });
    this.overlay = drawing("svg", { class: "fp-overlay", "aria-hidden": "true", "data-testid": `replay-cursor-${key}` });
    this.description = element("figcaption", { class: "fp-unseen", id: `${id}-text` });
    this.node = element("figure", { class: "fp-panel", role: "figure", "aria-labelledby": `${id}-title`,
      "aria-describedby": `${id}-text` },
    element("div", { class: "fp-panel-head" }, this.title,
      element("div", { class: "fp-tools" }, this.reset, this.png, this.svg)),
    this.legend, element("div", { class: "fp-stage" }, this.plot, this.overlay), this.description);
    this.drawing = Promise.resolve();
    this.sizes = new ResizeObserver(([{ contentRect }]) => {
      this.width = contentRect.width;
      this.fit();
    });
    this.sizes.observe(this.plot);
  }

  tool(name, content, action) {
    const button = element("button", { type: "button", class: "fp-tool", title: name, "aria-label": name }, content);
    button.onclick = action;
    return button;
  }

  update(panel) {
    this.panel = panel;
    this.node.classList.toggle("fp-compact", panel.compact);
    this.title.replaceChildren(panel.title, ...(panel.simulationOnly ? [" ", simulationTag()] : []));
    this.title.title = panel.compact ? panel.description : "";
    this.description.textContent = panel.description || `${panel.yTitle} against ${panel.xTitle}.`;
    this.drawLegend();
    this.draw();
  }

  drawLegend() {
    const { panel, view } = this;
    const focused = document.activeElement?.dataset?.curve;
    const items = panel.curves.map((curve) => {
      const button = element("button", { type: "button", class: "fp-entry", "data-curve": curve.name,
        "data-testid": "replay-legend-entry", "aria-pressed": String(!view.hidden.has(curve.name)),
        title: "Show or hide this curve" },
      swatch(curve, panel.kind, view.theme.scheme), element("span", { text: curve.name }));
      button.onclick = () => view.toggle(curve.name);
      return element("li", {}, button, tagged(panel, curve) ? simulationTag() : null);
    });
    panel.baselines.forEach((baseline, at) => {
      if (!tagged(panel, baseline) && !crowded(panel)) return;
      const strokes = baselineDash(panel, at).replaceAll("px", "");
      const sample = swatch({ ...baseline, strokes, guide: true }, "lines", view.theme.scheme);
      items.push(element("li", { class: "fp-entry" }, sample,
        element("span", { text: baseline.label }), tagged(panel, baseline) ? simulationTag() : null));
    });
    const had = this.legend.contains(document.activeElement);
    this.legend.replaceChildren(...items);
    this.legend.hidden = items.length === 0 || panel.compact;
    if (had && focused) this.legend.querySelector(`[data-curve="${CSS.escape(focused)}"]`)?.focus();
  }

  // As the browser last told: to ask amid a drawing lays the page out once more.
  wide() {
    this.width ??= this.plot.clientWidth;
    return this.width;
  }

  narrow() {
    return this.wide() > 0 && this.wide() < 420;
  }

  height() {
    if (this.panel.compact) return this.view.plotHeight;
    return this.narrow() ? Math.min(this.panel.height, 240) : this.panel.height;
  }

  figure() {
    const { panel, view } = this;
    const coarse = window.matchMedia("(pointer: coarse)").matches;
    const layout = layoutOf(panel, view.theme, coarse, this.narrow());
    layout.height = this.height();
    // Plotly would find the width out by styling the page once more; `fit` follows later changes.
    Object.assign(layout, { autosize: false, width: this.wide() || undefined });
    if (!panel.compact && this.narrow()) {
      layout.xaxis.nticks = 5;
      layout.margin.r = 8;
    }
    const own = tracesOf(panel, view.theme, view.round, view.hidden);
    return { data: [...view.runs.traces(panel), ...own], layout };
  }

  // Drawings follow one another, so that two quick updates never overlap inside Plotly.
  draw() {
    this.plot.style.minHeight = `${this.height()}px`; // no jump when the chart arrives
    this.drawing = this.drawing.then(() => loadPlotly()).then(async (plotly) => {
      if (!this.listening) await nextTurn();
      if (this.gone) return;
      // A chart that nobody sees is drawn when it comes into sight: `fit` hears of that.
      this.unseen = this.wide() === 0;
      if (this.unseen) {
        this.plot.dataset.drawn = this.view.data.digest;
        return;
      }
      const { data, layout } = this.figure();
      this.shown = this.view.round;
      await plotly.react(this.plot, data, layout, { displayModeBar: false, responsive: false, doubleClick: "reset" });
      if (!this.listening) this.listen();
      this.plot.dataset.drawn = this.view.data.digest;
      this.cursor();
    }).catch((reason) => {
      if (this.gone) return;
      this.plot.textContent = reason.message === "not loaded"
        ? "The chart library did not arrive; reload the page. The numbers are below and in the downloads."
        : `This chart could not be drawn (${reason.message}); reload the page.`;
    });
  }

  listen() {
    this.listening = true;
    for (const event of ["plotly_afterplot", "plotly_relayout", "plotly_relayouting", "plotly_autosize"]) {
      this.plot.on(event, () => this.cursor());
    }
    this.plot.on("plotly_click", (event) => {
      const point = event.points[0];
      if (this.view.data.choosable && point.data.meta) {
        this.view.choose({ curve: point.data.meta, point: point.pointNumber });
      } else if (this.panel.follows && point.data.meta) this.view.go(point.pointNumber, true);
    });
  }

  fit() {
    if (!(this.listening || this.unseen) || this.gone || !this.plot.isConnected) return;
    cancelAnimationFrame(this.fitting);
    this.fitting = requestAnimationFrame(() => {
      this.view.measure();
      const { width, plot: { _fullLayout: full } } = this;
      // One that is being drawn for the first time has no size yet.
      const fits = !full || (Math.abs(width - full.width) <= 1 && Math.abs(this.height() - full.height) <= 1);
      if (width > 0 && (this.unseen || !fits)) this.draw();
    });
  }

  resetZoom() {
    if (!this.listening) return;
    const { xRange, yRange, logX, logY, kind } = this.panel;
    const change = {};
    for (const [name, range, log] of [["xaxis", xRange, logX], ["yaxis", yRange, logY]]) {
      if (range) change[`${name}.range`] = range.map((end) => (log ? Math.log10(end) : end));
      else change[`${name}.autorange`] = kind === "heat" && name === "yaxis" ? "reversed" : true;
    }
    window.Plotly.relayout(this.plot, change);
  }

  save(format) {
    if (!this.listening) return;
    const figure = exportFigure(this.panel, this.view.theme, this.view.round, this.view.hidden, this.figure().layout);
    window.Plotly.downloadImage(figure, { format, width: 900, height: 560, scale: format === "png" ? 2 : 1,
      filename: this.panel.key });
  }

  // A new round: curves with a row per round are redrawn, all others only get the cursor.
  move() {
    const { panel, view } = this;
    const changing = panel.frames > 0 || panel.curves.some((curve) => curve.frames > 0);
    if (changing && this.shown !== view.round) {
      if (!this.pending) {
        this.pending = true;
        this.drawing = this.drawing.then(() => { this.pending = false; });
        this.draw();
      }
    }
    this.cursor();
  }

  cursor() {
    const { panel, view, overlay } = this;
    const full = this.plot._fullLayout;
    if (!full || !full.xaxis || !panel.follows || !view.data.playback) return overlay.replaceChildren();
    const { xaxis, yaxis } = full;
    const [left, top, width, height] = [xaxis._offset, yaxis._offset, xaxis._length, yaxis._length];
    const parts = [];
    const places = new Set();
    for (const curve of panel.curves) {
      if (curve.guide || curve.frames || view.hidden.has(curve.name) || curve.last < 0) continue;
      const at = Math.min(view.round, curve.last);
      const x = left + xaxis.d2p(curve.x[at]);
      if (view.round <= curve.last) places.add(Math.round(x * 2) / 2);
      if (panel.kind === "area") continue;
      const y = top + yaxis.d2p(curve.y[at]);
      if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
      if (x < left - 1 || x > left + width + 1 || y < top - 1 || y > top + height + 1) continue;
      const colour = curve.colour[view.theme.scheme];
      const ended = view.round > curve.last;
      parts.push(drawing("circle", { cx: x, cy: y, r: 4.6, "data-curve": curve.name,
        fill: ended ? view.theme.background : colour, stroke: ended ? colour : view.theme.background, "stroke-width": 1.6 }));
    }
    // One line where all curves stand at the same x; on other axes the dots alone tell.
    if (places.size === 1) {
      const [x] = places;
      if (x >= left - 1 && x <= left + width + 1) {
        parts.unshift(drawing("line", { x1: x, x2: x, y1: top, y2: top + height, class: "fp-cursor" }));
      }
    }
    overlay.replaceChildren(...parts);
  }

  destroy() {
    this.gone = true;
    this.sizes.disconnect();
    if (this.listening) window.Plotly.purge(this.plot);
    this.node.remove();
  }
}
