// The table under the transport: every curve's value at the current round.

// One column per quantity. Panels that draw the same quantity share it; an x axis that does not
// count rounds (bytes, seconds) gets a column of its own.
function columnsOf(panels) {
  const columns = [];
  const add = (title, panel, part, curves) => {
    const cells = new Map(curves.map((curve) => [curve.name, { curve, values: curve[part], same: curve.same[part] }]));
    const same = columns.find((column) => column.title === title);
    if (same) {
      const agree = [...cells].every(([name, cell]) => !same.cells.has(name) || same.cells.get(name).same === cell.same);
      if (agree) {
        for (const [name, cell] of cells) if (!same.cells.has(name)) same.cells.set(name, cell);
        return;
      }
      columns.push({ title: `${title} (${panel.title})`, cells });
      return;
    }
    columns.push({ title, cells });
  };
  for (const panel of panels) {
    if (!panel.follows) continue;
    const curves = panel.curves.filter((curve) => !curve.guide && !curve.frames);
    if (curves.length) add(panel.yTitle, panel, "y", curves);
  }
  for (const panel of panels) {
    if (!panel.follows) continue;
    const curves = panel.curves.filter((curve) => !curve.guide && !curve.frames && !countsRounds(curve));
    if (curves.length) add(panel.xTitle, panel, "x", curves);
  }
  return columns;
}

class Readout {
  constructor(view) {
    this.view = view;
    this.table = element("table", { class: "fp-readout", "data-testid": "replay-readout" });
    this.node = element("div", { class: "fp-readout-box", role: "group", tabindex: 0, "aria-label": "Values at the current round" }, this.table);
  }

  update() {
    const { view } = this;
    this.columns = columnsOf(view.data.panels);
    this.cells = [];
    const rows = new Map();
    for (const panel of view.data.panels) {
      for (const curve of panel.curves) {
        if (this.columns.some((column) => column.cells.has(curve.name)) && !curve.guide && !rows.has(curve.name)) {
          rows.set(curve.name, { curve, kind: panel.kind });
        }
      }
    }
    this.node.hidden = rows.size === 0;
    this.corner = element("th", { scope: "col" });
    const head = element("tr", {}, this.corner, ...this.columns.map((column) => element("th", { scope: "col", text: column.title })));
    const body = [...rows].map(([name, { curve, kind }]) => {
      const row = element("tr", { "data-curve": name },
        element("th", { scope: "row" }, swatch(curve, kind, view.theme.scheme), element("span", { text: name }),
          curve.simulationOnly ? simulationTag() : null));
      for (const column of this.columns) {
        const cell = element("td", { text: "–", "data-name": column.title });
        row.append(cell);
        cell.classList.toggle("fp-none", !column.cells.has(name));
        if (column.cells.has(name)) this.cells.push({ cell, ...column.cells.get(name) });
      }
      return row;
    });
    this.table.classList.toggle("fp-several", this.columns.length > 1);
    this.table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
    this.hide();
  }

  hide() {
    for (const row of this.table.querySelectorAll("tbody tr")) {
      row.classList.toggle("fp-off", this.view.hidden.has(row.dataset.curve));
    }
  }

  // A curve that has ended keeps its last value, marked as such.
  show() {
    const { view } = this;
    this.corner.textContent = `at ${view.data.roundLabel} ${view.round}`;
    for (const { cell, curve, values } of this.cells) {
      const ended = view.round > curve.last && curve.last >= 0;
      cell.textContent = written(values[ended ? curve.last : view.round]);
      cell.classList.toggle("fp-ended", ended);
      if (ended) cell.title = `ended at ${view.data.roundLabel} ${curve.last}`;
      else cell.removeAttribute("title");
    }
  }
}
