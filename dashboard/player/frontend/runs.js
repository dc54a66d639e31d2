// The run on show, the run before it as a ghost, and one that a reader has pinned to compare with.

class Runs {
  constructor(view) {
    this.view = view;
    // Those before stand in a line of their own where there is room.
    [this.own, this.older] = [element("ul", {}), element("ul", {})];
    this.list = element("div", { class: "fp-run-lists" }, this.own, this.older);
    this.pin = element("button", { type: "button", class: "fp-pin", "data-testid": "replay-pin" });
    this.pin.onclick = () => this.toggle();
    // Of two charts in the room of one, the other.
    this.swap = element("button", { type: "button", class: "fp-pin", "data-testid": "replay-swap" });
    this.swap.onclick = () => {
      const { dataset } = this.view.node;
      dataset.chart = dataset.chart === "1" ? "0" : "1";
      this.update();
    };
    this.node = element("div", { class: "fp-runs" }, this.list, this.swap, this.pin);
  }

  // What a later run is compared with.
  static kept(data) {
    const curves = new Map(data.panels.map((panel) => [panel.key, panel.curves]));
    return { ...data.run, curves, sentence: data.sentences.at(-1) ?? "" };
  }

  change(before, after) {
    if (!before?.run || !after.run || before.run.identity === after.run.identity) return;
    // A run of which only the start was shown has nothing to compare with.
    this.ghost = before.rounds > 0 ? Runs.kept(before) : undefined;
  }

  toggle() {
    const { data } = this.view;
    this.pinned = this.pinned ? undefined : Runs.kept(data);
    this.update();
    for (const panel of this.view.panels.values()) panel.draw();
  }

  // The others, nearest last; a pinned run needs no ghost of itself.
  others() {
    const { run } = this.view.data;
    if (!run) return [];
    const found = [];
    if (this.ghost && this.ghost.identity !== this.pinned?.identity) found.push({ ...this.ghost, word: "before" });
    if (this.pinned && this.pinned.identity !== run.identity) found.push({ ...this.pinned, word: "pinned" });
    return found;
  }

  traces(panel) {
    const { theme } = this.view;
    return this.others().flatMap((other) => (other.curves.get(panel.key) ?? []).map((curve, at) => {
      const pinned = other.word === "pinned";
      const name = escaped(`${other.word}: ${other.label}${at ? `, ${curve.name}` : ""}`);
      return { type: "scatter", mode: "lines", x: curve.x, y: curve.y, name, showlegend: false,
        hovertemplate: `<b>${name}</b><br>%{y:.4~g}<extra></extra>`,
        line: { color: pinned ? theme.text : theme.quiet, width: pinned ? 1.8 : 3, dash: at ? "dot" : "solid" },
        opacity: pinned ? 0.9 : 0.35 };
    }));
  }

  update() {
    const { data, grid, theme } = this.view;
    if (!data.run) return this.node.remove();
    if (!this.node.isConnected) grid.before(this.node);
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.curve : undefined;
    const sample = (look) => {
      const svg = drawing("svg", { viewBox: "0 0 22 8", width: 22, height: 8, "aria-hidden": "true" });
      svg.append(drawing("line", { x1: 1, x2: 21, y1: 4, y2: 4, ...look }));
      return svg;
    };
    const entry = (word, label, svg, names) => {
      const parts = [svg, element("span", { text: word === "now" || word === "side" ? label : `${word}: ${label}` })];
      if (!names) return element("li", { title: label, class: `fp-run-${word}` }, ...parts);
      const button = element("button", { type: "button", class: "fp-entry", "data-curve": names[0], title: `Show or hide: ${label}`,
        "data-testid": "replay-legend-entry", "aria-pressed": String(!names.some((name) => this.view.hidden.has(name))) }, ...parts);
      button.onclick = () => names.forEach((name) => this.view.toggle(name));
      return element("li", { class: `fp-run-${word}` }, button);
    };
    const curves = data.panels[0]?.curves ?? [];
    const sides = data.stage?.sides ?? [];
    const line = ({ colour, dash }) => ({ stroke: sides.length ? theme.text : colour[theme.scheme], "stroke-width": 2.4, "stroke-dasharray": DASHES[dash] ?? "" });
    // Of two methods dashes tell what a curve is, and colours and markers whose.
    const named = (name) => curves.find((curve) => curve.name === name);
    const own = sides.length ? Object.entries(data.lecture.curves).map(([what, names]) => entry("now", what, sample(line(named(names[0]))), names))
      : curves.map((curve, at) => entry("now", at ? curve.name : data.run.label, sample(line(curve)), [curve.name]));
    const looks = {
      before: { stroke: theme.quiet, "stroke-width": 3, "stroke-opacity": 0.35 },
      pinned: { stroke: theme.text, "stroke-width": 1.8 },
    };
    this.own.replaceChildren(...own, ...sides.map(({ title }, at) => entry("side", title, swatch(named(data.lecture.curves.answer[at]), "lines", theme.scheme))));
    this.older.replaceChildren(...this.others().map((other) => entry(other.word, other.label, sample(looks[other.word]))));
    if (focused) this.list.querySelector(`[data-curve="${CSS.escape(focused)}"]`)?.focus();
    const other = data.panels[this.view.node.dataset.chart === "1" ? 0 : 1];
    this.swap.textContent = other?.title.split(",")[0] ?? "";
    this.swap.hidden = !data.stage?.sides.length || !other;
    this.pin.textContent = this.pinned ? "Let go" : "Keep";
    this.pin.title = this.pinned ? `Let go of the run that is kept: ${this.pinned.label}. It ended: ${this.pinned.sentence}`
      : "Keep this run on the charts and compare the next ones with it";
    this.pin.setAttribute("aria-pressed", String(Boolean(this.pinned)));
    return undefined;
  }
}
