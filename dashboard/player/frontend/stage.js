// The stage: clients on the left, the messages of a round on their way, the server on the right.

const TRAVEL = 620; // milliseconds of a message, less where rounds follow each other faster

// A picture of some private records of every client, with its name.
function clientCards(stage, theme) {
  const size = stage.rows * stage.columns;
  const { packed } = theme.ramps.grey;
  return stage.names.map((name, at) => {
    const canvas = element("canvas", { width: stage.columns, height: stage.rows, "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(stage.columns, stage.rows);
    const words = new Uint32Array(pixels.data.buffer);
    for (let i = 0; i < size; i += 1) words[i] = packed[stage.thumbnails[at * size + i]];
    context.putImageData(pixels, 0, 0);
    const card = element("div", { class: "fp-client", title: `${name}: private records (simulation only)` },
      canvas, element("span", { text: name }), element("small", { text: at }));
    card.classList.toggle("fp-attacked", at === stage.attacked);
    return card;
  });
}

// A message on its way along a wire; it goes when it arrives.
function packet(path, pace) {
  const attacked = path.classList.contains("fp-attacked");
  const dot = drawing("circle", { r: attacked ? 5 : 3.4, class: "fp-packet" });
  dot.classList.toggle("fp-attacked", attacked);
  dot.style.offsetPath = `path("${path.getAttribute("d")}")`;
  const flight = dot.animate([{ offsetDistance: "0%", opacity: 1 }, { offsetDistance: "100%", opacity: 1 }],
    { duration: pace, easing: "ease-in-out" });
  flight.onfinish = () => dot.remove();
  return dot;
}

class StageView {
  constructor(view) {
    this.view = view;
    this.clients = element("div", { class: "fp-clients" });
    this.wires = drawing("svg", { class: "fp-wires", "aria-hidden": "true" });
    this.shield = element("div", { class: "fp-shield" });
    this.word = element("div", { class: "fp-message" });
    this.answer = element("div", { class: "fp-message fp-answer" });
    this.holds = element("div", { class: "fp-holds" });
    this.server = element("div", { class: "fp-server" },
      element("div", { class: "fp-server-face", "aria-hidden": "true" }, element("i"), element("i"), element("i")),
      element("div", { class: "fp-server-text" }, element("b", { text: "Server" }), this.holds));
    this.between = element("div", { class: "fp-between" }, this.word, this.shield, this.answer);
    this.node = element("section", { class: "fp-stagebox", "aria-label": "Clients, messages and the server" },
      this.clients, this.between, this.server, this.wires);
    this.sizes = new ResizeObserver(() => this.lay());
    this.sizes.observe(this.node);
  }

  update(stage) {
    this.stage = stage;
    this.cards = clientCards(stage, this.view.theme);
    this.clients.replaceChildren(...this.cards);
    this.node.dataset.many = String(stage.names.length > 12);
    this.node.dataset.protection = stage.protection;
    this.shield.textContent = stage.protectionLabel;
    this.shield.hidden = !stage.protectionLabel;
    this.shield.title = stage.protectionHelp;
    this.word.textContent = stage.message;
    this.answer.textContent = stage.answer;
    this.shown = undefined;
    requestAnimationFrame(() => this.lay());
  }

  // Where the wires run: out of every card into the gap between two rows, along it to the right, and
  // on to the server; through one point where only sums arrive.
  lay() {
    if (!this.cards) return;
    const box = this.node.getBoundingClientRect();
    if (!box.width) return;
    this.wires.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    const server = this.server.getBoundingClientRect();
    const [end, middle] = [server.left - box.left, server.top + server.height / 2 - box.top];
    const edge = Math.max(...this.cards.map((card) => card.getBoundingClientRect().right)) - box.left;
    // One bundle where the words stand, which opens before the server.
    const join = Math.min(Math.max(this.clients.getBoundingClientRect().right - box.left, edge + 48), (edge + end) / 2);
    const open = Math.max(end - 56, join);
    const places = this.places(box);
    const order = [...places.keys()].sort((one, other) => places[one].along - places[other].along);
    const lane = (at, room) => middle + (order.indexOf(at) - (places.length - 1) / 2) * (room / places.length);
    const tight = Math.min(16, 2.4 * places.length);
    this.paths = places.map(({ x, from, along }, at) => {
      const bend = Math.min(5, Math.abs(along - from));
      const leave = `M${x} ${from}V${along + Math.sign(from - along) * bend}Q${x} ${along} ${x + bend} ${along}H${edge}`;
      const curve = (from, to, start, stop) => `C${(from + to) / 2} ${start} ${(from + to) / 2} ${stop} ${to} ${stop}`;
      const [bundle, into] = this.stage.summed ? [middle, middle] : [lane(at, tight), lane(at, Math.min(server.height - 18, 6 * places.length))];
      const line = drawing("path", { class: "fp-wire",
        d: `${leave}${curve(edge, join, along, bundle)}H${open}${curve(open, end, bundle, into)}` });
      line.classList.toggle("fp-attacked", at === this.stage.attacked);
      return line;
    });
    this.wires.replaceChildren(...this.paths);
    this.shown = undefined;
    this.show();
  }

  // Where a card's wire starts, and how high it runs: rows share the gap between them two by two,
  // and each card has its own line there, the further left the nearer to the middle.
  places(box) {
    const sides = this.cards.map((card) => card.getBoundingClientRect());
    const tops = [...new Set(sides.map((side) => side.top))];
    const rows = tops.map((top) => sides.filter((side) => side.top === top));
    const gap = rows.length > 1 ? rows[1][0].top - rows[0][0].bottom : 12;
    const step = Math.min(2.5, (gap / 2 - 1) / Math.max(...rows.map((row) => row.length)));
    return sides.map((side) => {
      const row = tops.indexOf(side.top);
      const above = row % 2 === 1 || (row > 0 && row === rows.length - 1);
      const lane = (0.5 + rows[row].indexOf(side)) * step;
      const x = side.left + side.width / 2 - box.left;
      return above ? { x, from: side.top - box.top, along: side.top - gap / 2 + lane - box.top }
        : { x, from: side.bottom - box.top, along: side.bottom + gap / 2 - lane - box.top };
    });
  }

  show() {
    const { stage, view } = this;
    if (!stage || !this.paths) return;
    const round = Math.min(view.round, stage.present.length - 1);
    if (this.shown === round) return;
    const forward = this.shown !== undefined && round === this.shown + 1;
    this.shown = round;
    const present = stage.present[round];
    // Before the first message nobody is absent.
    for (const drawn of [this.cards, this.paths]) {
      drawn.forEach(({ classList }, at) => {
        classList.toggle("fp-present", present[at] === "1");
        classList.toggle("fp-absent", round > 0 && present[at] !== "1");
      });
    }
    this.holds.textContent = stage.server[round];
    if (forward && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.send(present);
  }

  send(present) {
    const pace = Math.min(TRAVEL, this.view.transport.step * 0.9);
    for (const old of this.wires.querySelectorAll("circle")) old.remove();
    this.paths.forEach((path, at) => {
      if (present[at] === "1") this.wires.append(packet(path, pace));
    });
    this.server.animate([{ filter: "brightness(1)" }, { filter: "brightness(1.12)" }, { filter: "brightness(1)" }],
      { duration: pace, delay: pace * 0.7 });
  }

  destroy() {
    this.sizes.disconnect();
    this.node.remove();
  }
}
