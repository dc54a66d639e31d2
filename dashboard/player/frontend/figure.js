// A panel as a Plotly figure: traces and layout in the colours of the theme.

// The axes say what is measured; a tooltip says which curve, where, and how much.
function hoverText(panel, curve) {
  const label = curve.labels.length ? "%{text}<br>" : "";
  return `<b>${escaped(curve.name)}</b><br>${label}%{customdata[1]}<br>at ${escaped(panel.xTitle)} ` +
    `%{customdata[0]}<extra></extra>`;
}

function hoverNumbers(curve, y) {
  return Array.from(y, (value, at) => [typeof curve.x[at] === "string" ? escaped(curve.x[at]) : raised(curve.x[at]),
    raised(value)]);
}

// Bands of a few curves are read by their colour; many over each other would become one brown.
function bandTraces(curve, colour, bands) {
  const edge = { type: "scatter", mode: "lines", x: curve.x, hoverinfo: "skip", showlegend: false,
    line: { width: 0, color: colour }, legendgroup: curve.name };
  return [
    { ...edge, y: curve.lower },
    { ...edge, y: curve.upper, fill: "tonexty", fillcolor: withAlpha(colour, Math.min(0.16, 0.64 / bands)) },
  ];
}

function curveTrace(panel, curve, theme, round) {
  const colour = curve.colour[theme.scheme];
  const y = rowOf(curve, round);
  const trace = {
    x: curve.x, y, customdata: hoverNumbers(curve, y), name: escaped(curve.name), legendgroup: curve.name,
    hovertemplate: hoverText(panel, curve), text: curve.labels.length
      ? curve.labels.map((label) => label.split("\n").map(escaped).join("<br>")) : undefined,
    meta: curve.name,
  };
  if (curve.whiskers) {
    trace.error_y = { type: "data", symmetric: false, thickness: 1, width: 3, color: withAlpha(colour, 0.6),
      array: curve.upper.map((top, at) => top - curve.y[at]),
      arrayminus: curve.lower.map((low, at) => curve.y[at] - low) };
  }
  if (panel.kind === "bars") {
    return { ...trace, type: "bar", marker: { color: colour, line: { color: theme.background, width: 1 } } };
  }
  const alone = curve.x.length === 1 ? 9 : 6; // no line leads the eye to it
  const marker = { color: colour, size: panel.kind === "scatter" ? 8 : alone, symbol: curve.symbol,
    line: { color: theme.background, width: panel.kind === "scatter" ? 1 : 0 }, maxdisplayed: panel.compact && panel.follows ? 7 : 0 };
  if (panel.kind === "scatter") return { ...trace, type: "scatter", mode: "markers", marker };
  const line = { color: colour, width: curve.guide ? 1.3 : 2.2, dash: curve.dash };
  if (panel.kind === "area") {
    return { ...trace, type: "scatter", mode: "lines", stackgroup: "all",
      fillcolor: withAlpha(colour, 0.45), line: { ...line, width: 1, dash: "solid" } };
  }
  return { ...trace, type: "scatter", mode: curve.marker ? "lines+markers" : "lines", line, marker };
}

function heatTrace(panel, theme, round) {
  const [rows, columns] = [panel.rowLabels.length, panel.columnLabels.length];
  const z = [];
  const first = panel.frames ? round * rows * columns : 0;
  for (let row = 0; row < rows; row += 1) {
    z.push(panel.values.subarray(first + row * columns, first + (row + 1) * columns));
  }
  const colours = theme.ramps[panel.palette].colours;
  return {
    type: "heatmap", z, customdata: z.map((row) => Array.from(row, raised)), x: panel.columnLabels.map(escaped), y: panel.rowLabels.map(escaped),
    zmin: panel.low, zmax: panel.high, ...(Math.max(rows, columns) > 24 ? {} : { xgap: 1, ygap: 1 }),
    colorscale: colours.map((colour, at) => [at / (colours.length - 1), colour]),
    hovertemplate: "%{y}, %{x}<br><b>%{customdata}</b><extra></extra>",
    colorbar: { thickness: 10, outlinewidth: 0, len: 1, ypad: 0, tickfont: { color: theme.quiet, size: 11 },
      exponentformat: "power", nticks: 5 },
  };
}

// Traces, and for every trace the curve it belongs to (for showing and hiding).
function tracesOf(panel, theme, round, hidden) {
  if (panel.kind === "heat") return [heatTrace(panel, theme, round)];
  const traces = [];
  const bands = panel.curves.filter((curve) => curve.lower && !curve.whiskers && !hidden.has(curve.name)).length;
  for (const curve of panel.curves) {
    const own = curve.lower && !curve.whiskers ? bandTraces(curve, curve.colour[theme.scheme], bands) : [];
    own.push(curveTrace(panel, curve, theme, round));
    for (const trace of own) traces.push({ ...trace, visible: !hidden.has(curve.name) });
  }
  return traces;
}

function axis(title, log, range, theme) {
  return {
    title: { text: escaped(title), font: { size: 13, color: theme.quiet }, standoff: 8 },
    type: log ? "log" : undefined,
    range: range ? range.map((end) => (log ? Math.log10(end) : end)) : undefined,
    autorange: range ? false : undefined,
    // Plotly enlarges powers of ten by a quarter.
    tickfont: { color: theme.quiet, size: log ? 11 : 12 },
    gridcolor: theme.grid, linecolor: theme.frame, zeroline: false, automargin: true,
    exponentformat: "power", minexponent: 3, nticks: 7, ticks: "",
  };
}

// From the least to the largest x and y of a panel, as its axes measure them.
function extent(panel, axis, log, range) {
  const values = range ? [...range] : panel.curves.flatMap((curve) => Array.from(curve[axis]));
  if (!range && axis === "y") values.push(...panel.baselines.map(({ value }) => value));
  const shown = values.map((value) => (log ? Math.log10(value) : value)).filter(Number.isFinite);
  return [shown.reduce((a, b) => Math.min(a, b), Infinity), shown.reduce((a, b) => Math.max(a, b), -Infinity)];
}

// Whether points, or the lines between them, lie in a box of [left, right, bottom, top].
function crosses(points, lines, box) {
  return points.some((point, at) => {
    const [[x0, y0], [x1, y1]] = [point, points[lines ? at + 1 : at] ?? point].sort((one, other) => one[0] - other[0]);
    const inside = [Math.max(x0, box[0]), Math.min(x1, box[1])];
    if (!(inside[0] <= inside[1])) return false;
    const ends = x1 > x0 ? inside.map((x) => y0 + ((y1 - y0) * (x - x0)) / (x1 - x0)) : [y0, y1];
    return Math.min(...ends) <= box[3] && Math.max(...ends) >= box[2];
  });
}

// Where a baseline's label stands, [left, right or center, above or below], so that no curve runs through
// it; undefined where none is free. Sizes are those of a chart on a phone.
function labelPlaces(panel) {
  const across = (value) => (panel.logX ? Math.log10(value) : value);
  const up = (value) => (panel.logY ? Math.log10(value) : value);
  const curves = panel.curves.filter((curve) => !curve.frames && typeof curve.x[0] !== "string");
  const [left, right] = extent({ ...panel, curves }, "x", panel.logX, panel.xRange);
  const [bottom, top] = extent({ ...panel, curves }, "y", panel.logY, panel.yRange);
  const lines = panel.kind !== "scatter";
  const highestBar = panel.kind === "bars" ? extent({ ...panel, baselines: [] }, "y", panel.logY)[1] : -Infinity;
  const drawn = curves.map((curve) => Array.from(curve.x, (x, at) => [across(x), up(curve.y[at])]));
  const high = ((top - bottom) * 20) / (panel.compact ? 60 : Math.max(panel.height - 80, 120));
  // A label keeps clear of a marker's edge, not of its centre alone.
  const clear = lines && !curves.some(({ marker }) => marker) ? 3 : 6;
  const [aside, over] = [((right - left) * clear) / 280, ((high / 20) * clear)];
  const taken = [];
  return panel.baselines.map((baseline, at) => {
    const wide = (right - left) * Math.min(0.95, (6.5 * baseline.label.length) / 280);
    const sides = [...(at % 2 ? ["left", "right"] : ["right", "left"]), "center"];
    const places = ["bottom", "top"].flatMap((anchor) => sides.map((side) => [side, anchor]));
    const found = places.find(([side, anchor]) => {
      const low = up(baseline.value) - (anchor === "top" ? high : 0);
      const from = { left, center: (left + right - wide) / 2, right: right - wide }[side];
      const box = [from, from + wide, low, low + high];
      const around = [box[0] - aside, box[1] + aside, box[2] - over, box[3] + over];
      const outside = panel.yRange && (low < bottom || low + high > top) && anchor === "top";
      const touched = taken.some((other) => other[0] < box[1] && box[0] < other[1] && other[2] < box[3] && box[2] < other[3]);
      if (outside || touched || highestBar > low || drawn.some((points) => crosses(points, lines, around))) return false;
      taken.push(box);
      return true;
    });
    return found ?? (panel.compact ? places[0] : undefined);
  });
}

// Whether a curve or line has a mark of its own as simulation only: not where the whole chart has it.
function tagged(panel, line) {
  return line.simulationOnly && !panel.simulationOnly;
}

// The places of a log axis where its curves have points, if these are few and far apart: doublings,
// say, between which Plotly would write every digit.
function fewPlaces(panel, [least, most]) {
  const found = [...new Set(panel.curves.filter(({ guide }) => !guide).flatMap(({ x }) => Array.from(x)))]
    .filter((x) => x > 0).sort((one, other) => one - other);
  const apart = found.every((x, at) => at === 0 || Math.log10(x / found[at - 1]) > (most - least) / 9);
  return apart && found.length > 1 && found.length < 9 ? found : null;
}

// Baselines whose labels would write over each other or over curves move to the legend, told apart
// by dash.
const BASELINE_DASHES = ["5px 4px", "1px 3px", "11px 4px", "11px 3px 2px 3px", "2px 6px", "7px 2px"];

function crowded(panel) {
  panel.places ??= labelPlaces(panel);
  return panel.baselines.length > 2 || panel.places.includes(undefined);
}

function baselineDash(panel, at) {
  return BASELINE_DASHES[crowded(panel) ? at % BASELINE_DASHES.length : 0];
}

function baselineLayout(panel, theme) {
  const shapes = [];
  const annotations = [];
  panel.baselines.forEach((baseline, at) => {
    const colour = baseline.colour[theme.scheme];
    shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, yref: "y", y0: baseline.value,
      y1: baseline.value, layer: "below",
      line: { color: colour, width: 1.4, dash: baselineDash(panel, at) } });
    if (crowded(panel)) return;
    const [side, anchor] = panel.places[at];
    annotations.push({ xref: "paper", x: { left: 0.01, center: 0.5, right: 0.99 }[side], xanchor: side,
      yref: "y", y: panel.logY ? Math.log10(baseline.value) : baseline.value, yanchor: anchor,
      text: (tagged(panel, baseline) ? "◇ " : "") + escaped(baseline.label), showarrow: false,
      font: { size: 11.5, color: colour }, bgcolor: withAlpha(theme.background, 0.6), borderpad: 1 });
  });
  return { shapes, annotations };
}

// Beside pictures a chart has little room: its title names what is drawn, the play bar the round.
function compact(layout, { large, titled }) {
  layout.margin = large ? { l: 60, r: 14, t: 8, b: 30 } : { l: titled ? 58 : 44, r: 10, t: 6, b: titled ? 36 : 22 };
  for (const axis of [layout.xaxis, layout.yaxis]) {
    if (titled) Object.assign(axis.title, { font: { ...axis.title.font, size: 12 }, standoff: 4 });
    else axis.title = undefined;
    const plain = axis === layout.xaxis || axis.range?.every((end) => Math.abs(end) < 3); // 0.1, 1, 10
    if (axis.type === "log") axis.tickformat = plain ? "~g" : undefined;
    axis.automargin = false; // what is written there has its room, and a second round of layout costs
    axis.nticks = large ? 2 : axis === layout.yaxis ? 3 : 4;
    const size = large ? 16.5 : 11;
    // Plotly writes powers of ten larger by a quarter.
    axis.tickfont = { ...axis.tickfont, size: axis.type === "log" && !plain ? size / 1.25 : size };
    // Powers of ten only: what lies between would write over them, and smaller.
    if (axis === layout.xaxis && axis.type === "log") axis.dtick = 1;
    else if (axis.type === "log") axis.dtick = axis.range ? Math.max(1, Math.ceil((axis.range[1] - axis.range[0]) / 2 - 0.05)) : 1;
  }
  layout.yaxis.ticklabelstandoff = 5; // clear of a dot at the start
  layout.yaxis.exponentformat = layout.yaxis.type === "log" ? "power" : "SI";
  layout.yaxis.minexponent = layout.yaxis.type === "log" ? 1 : 3;
}

// Between two powers of ten Plotly writes digits alone, and small: so there are powers only on a long
// axis, and numbers in full on a short one: 1, 2 and 5 of each ten where there is no room for all nine.
function tickLogarithms(axis, [least, most], long, theme, tight) {
  if (!(most - least < long)) axis.nticks = Math.min(7, Math.max(2, Math.floor((most - least) / 0.66)));
  else if (least >= -4 && most <= 6) {
    const format = least >= 0 && most > 4 ? "~s" : "~g";
    Object.assign(axis, { tickformat: format, nticks: long + 2, tickfont: { color: theme.quiet, size: 12 } });
    if (tight && most - least > 0.8) axis.dtick = "D2"; // within less, one power of ten stands alone
  }
}

// The numbers in the cells, black or white, whichever stands out more: one of them always does enough.
function cellNumbers(panel, theme) {
  const { colours } = theme.ramps[panel.palette];
  const columns = panel.columnLabels.length;
  const numbers = [];
  panel.values.forEach((value, at) => {
    if (!Number.isFinite(value)) return; // a cell that was not run
    const place = Math.min(1, Math.max(0, (value - panel.low) / (panel.high - panel.low))) * (colours.length - 1);
    const next = colours[Math.min(colours.length - 1, Math.floor(place) + 1)];
    const pale = luminance(mixed(next, colours[Math.floor(place)], place % 1)) > 0.179;
    numbers.push({ x: at % columns, y: Math.floor(at / columns), showarrow: false,
      text: String(Number(value.toPrecision(3))), font: { color: pale ? "#000000" : "#ffffff" } });
  });
  return numbers;
}

// Ticks of a heat map whose labels are long: so few that they do not touch, and cut short; a tooltip
// says the whole.
function tickNames(axis, labels, count, most) {
  if (labels.every((label) => label.length <= most)) return;
  const step = Math.ceil(labels.length / count);
  const some = labels.filter((label, at) => at % step === 0);
  const cut = (label) => (label.length > most ? `${label.slice(0, most - 1).trimEnd()}…` : label);
  Object.assign(axis, { tickmode: "array", tickvals: some.map(escaped), ticktext: some.map(cut).map(escaped) });
}

function layoutOf(panel, theme, coarse, narrow) {
  const layout = {
    height: panel.height, margin: { l: 56, r: 14, t: 10, b: 46 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: theme.font, color: theme.quiet, size: 12 },
    showlegend: false, hovermode: "closest", dragmode: coarse ? false : "zoom",
    hoverlabel: { bgcolor: theme.background, bordercolor: theme.frame, align: "left",
      font: { family: theme.font, color: theme.text, size: 12 } },
    uirevision: panel.axesId,
    barmode: panel.stack ? "stack" : "group", bargap: 0.25, bargroupgap: 0.08,
    xaxis: axis(panel.xTitle, panel.logX, panel.xRange, theme),
    yaxis: axis(panel.yTitle, panel.logY, panel.yRange, theme),
    ...baselineLayout(panel, theme),
  };
  layout.xaxis.showgrid = false;
  layout.xaxis.showline = true;
  layout.xaxis.exponentformat = panel.logX ? "power" : "SI";
  layout.xaxis.minexponent = panel.logX ? 3 : 5;
  if (panel.logX) {
    const ends = extent(panel, "x", true, panel.xRange);
    const places = fewPlaces(panel, ends);
    tickLogarithms(layout.xaxis, ends, 3, theme, narrow);
    if (places && layout.xaxis.tickformat) Object.assign(layout.xaxis, { tickmode: "array", tickvals: places });
  }
  if (panel.logY) tickLogarithms(layout.yaxis, extent(panel, "y", true, panel.yRange), 2, theme, true);
  if (panel.integerX) layout.xaxis.tickformat = ",d";
  // Fewer whole numbers than ticks: Plotly would write some twice.
  const ends = [...(panel.xRange ? [panel.xRange] : []), ...panel.curves.map(({ x }) => [x[0], x[x.length - 1]])];
  const few = panel.integerX && ends.every(([from, to]) => Math.abs(to - from) < 6);
  if (few && !panel.logX) layout.xaxis.dtick = 1;
  const size = theme.large ? 17 : 11.5;
  panel.marks.forEach((mark, at) => {
    layout.shapes.push({ type: "line", xref: "x", x0: mark.value, x1: mark.value, yref: "paper", y0: 0, y1: 1,
      line: { color: theme.text, width: 1.6, dash: "2px 3px" } });
    const late = panel.xRange && mark.value > (panel.xRange[0] + panel.xRange[1]) / 2;
    // From the bottom up: curves of errors begin at the top.
    layout.annotations.push({ xref: "x", x: panel.logX ? Math.log10(mark.value) : mark.value, xanchor: late ? "right" : "left", yref: "paper", y: 0, yanchor: "bottom", yshift: 1.5 * size * at,
      text: escaped(mark.label), showarrow: false, font: { size, color: theme.text }, bgcolor: withAlpha(theme.background, 0.75), borderpad: 2 });
  });
  if (panel.compact) compact(layout, theme);
  if (panel.kind === "bars" && typeof panel.curves[0].x[0] === "string") {
    // Every bar keeps its label, however many there are.
    Object.assign(layout.xaxis, { type: "category", tickmode: "linear", dtick: 1, tickangle: "auto" });
  }
  if (panel.kind === "heat") {
    layout.xaxis = { ...layout.xaxis, type: "category", showline: false, nticks: 12, tickangle: "auto" };
    layout.yaxis = { ...layout.yaxis, type: "category", autorange: "reversed", showgrid: false, nticks: 14 };
    if (panel.showValues) layout.annotations.push(...cellNumbers(panel, theme));
    tickNames(layout.xaxis, panel.columnLabels, 12, narrow ? 9 : 16);
    tickNames(layout.yaxis, panel.rowLabels, 14, narrow ? 17 : 30);
    layout.margin.r = 6;
  }
  return layout;
}

// The figure for a file: with the title and a legend inside, on the page's own paper.
function exportFigure(panel, theme, round, hidden, layout) {
  return {
    data: tracesOf(panel, theme, round, hidden).map((trace) => (
      { ...trace, showlegend: trace.showlegend ?? panel.kind !== "heat" }
    )),
    layout: {
      ...layout, width: 900, height: 560, paper_bgcolor: theme.background,
      title: { text: escaped(panel.title), x: 0.02, font: { size: 18, color: theme.text } },
      margin: { l: 70, r: 30, t: 56, b: 60 }, showlegend: panel.curves.length > 0,
      legend: { orientation: "h", y: -0.18, font: { color: theme.text } },
    },
  };
}
