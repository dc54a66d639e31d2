// The stage: clients on the left, the messages of a round on their way, the server on the right.

const TRAVEL = 620; // milliseconds of a message, less where rounds follow each other faster

class StageView {
  constructor(view) {
    this.view = view;
    this.clients = element("div", { class: "fp-clients" });
    this.wires = drawing("svg", { class: "fp-wires", "aria-hidden": "true" });
    this.shield = element("div", { class: "fp-shield" });
    this.word = element("div", { class: "fp-message" });
    this.holds = element("div", { class: "fp-holds" });
    this.server = element("div", { class: "fp-server" },
      element("div", { class: "fp-server-face", "aria-hidden": "true" }, element("i"), element("i"), element("i")),
      element("div", { class: "fp-server-text" }, element("b", { text: "Server" }), this.holds));
    this.between = element("div", { class: "fp-between" }, this.shield, this.word);
    this.node = element("section", { class: "fp-stagebox", "aria-label": "Clients, messages and the server" },
      this.clients, this.between, this.server, this.wires);
    this.sizes = new ResizeObserver(() => this.lay());
    this.sizes.observe(this.node);
  }

  update(stage) {
    this.stage = stage;
    const size = stage.rows * stage.columns;
    const { packed } = this.view.theme.ramps.grey;
    this.cards = stage.names.map((name, at) => {
      const canvas = element("canvas", { width: stage.columns, height: stage.rows, "aria-hidden": "true" });
      const context = canvas.getContext("2d");
      const pixels = context.createImageData(stage.columns, stage.rows);
      const words = new Uint32Array(pixels.data.buffer);
      for (let i = 0; i < size; i += 1) words[i] = packed[stage.thumbnails[at * size + i]];
      context.putImageData(pixels, 0, 0);
      const card = element("div", { class: "fp-client", title: `${name}: private records (simulation only)` },
        canvas, element("span", { text: name }));
      card.classList.toggle("fp-attacked", at === stage.attacked);
      return card;
    });
    this.clients.replaceChildren(...this.cards);
    this.node.dataset.many = String(stage.names.length > 12);
    this.node.dataset.protection = stage.protection;
    this.shield.textContent = stage.protectionLabel;
    this.shield.hidden = !stage.protectionLabel;
    this.word.textContent = stage.message;
    this.shown = undefined;
    requestAnimationFrame(() => this.lay());
  }

  // Where the wires run: from every card to the server, through one point where only sums arrive.
  lay() {
    if (!this.cards) return;
    const box = this.node.getBoundingClientRect();
    if (!box.width) return;
    this.wires.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    const upright = getComputedStyle(this.node).getPropertyValue("--fp-upright").trim() === "1";
    const end = this.server.getBoundingClientRect();
    const target = upright
      ? [end.left + end.width / 2 - box.left, end.top - box.top]
      : [end.left - box.left, end.top + end.height / 2 - box.top];
    const middle = this.between.getBoundingClientRect();
    const meet = [middle.left + middle.width / 2 - box.left, middle.top + middle.height / 2 - box.top];
    const sums = this.stage.protection === "sums";
    this.paths = this.cards.map((card, at) => {
      const from = card.getBoundingClientRect();
      const start = upright
        ? [from.left + from.width / 2 - box.left, from.bottom - box.top]
        : [from.right - box.left, from.top + from.height / 2 - box.top];
      const line = drawing("path", { class: "fp-wire",
        d: sums
          ? `M${start} Q${[(start[0] + meet[0]) / 2, start[1]]} ${meet} L${target}`
          : `M${start} C${upright ? [start[0], (start[1] + target[1]) / 2] : [(start[0] + target[0]) / 2, start[1]]} `
            + `${upright ? [target[0], (start[1] + target[1]) / 2] : [(start[0] + target[0]) / 2, target[1]]} ${target}` });
      line.classList.toggle("fp-attacked", at === this.stage.attacked);
      return line;
    });
    this.wires.replaceChildren(...this.paths);
    this.shown = undefined;
    this.show();
  }

  show() {
    const { stage, view } = this;
    if (!stage || !this.paths) return;
    const round = Math.min(view.round, stage.present.length - 1);
    if (this.shown === round) return;
    const forward = this.shown !== undefined && round === this.shown + 1;
    this.shown = round;
    const present = stage.present[round];
    this.cards.forEach((card, at) => card.classList.toggle("fp-present", present[at] === "1"));
    this.paths.forEach((path, at) => path.classList.toggle("fp-present", present[at] === "1"));
    this.holds.textContent = stage.server[round];
    if (forward && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.send(present);
  }

  send(present) {
    const pace = Math.min(TRAVEL, 900 / Math.max(Number(this.view.transport.speed.value), 1));
    for (const old of this.wires.querySelectorAll("circle")) old.remove();
    this.paths.forEach((path, at) => {
      if (present[at] !== "1") return;
      const dot = drawing("circle", { r: at === this.stage.attacked ? 5 : 3.4, class: "fp-packet" });
      dot.classList.toggle("fp-attacked", at === this.stage.attacked);
      dot.style.offsetPath = `path("${path.getAttribute("d")}")`;
      this.wires.append(dot);
      const flight = dot.animate([{ offsetDistance: "0%", opacity: 1 }, { offsetDistance: "100%", opacity: 1 }],
        { duration: pace, easing: "ease-in-out" });
      flight.onfinish = () => dot.remove();
    });
    this.server.animate([{ filter: "brightness(1)" }, { filter: "brightness(1.12)" }, { filter: "brightness(1)" }],
      { duration: pace, delay: pace * 0.7 });
  }

  destroy() {
    this.sizes.disconnect();
  }
}
