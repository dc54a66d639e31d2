// Two methods side by side: their messages on the way, and below the pictures what each has learnt.

const OTHERS = [MARKERS.circle, ...["triangle-up", "diamond", "cross", "triangle-down", "star", "hexagon", "x"].map((name) => MARKERS[name])];
const HUES = { light: ["#0072b2", "#d55e00", "#00795c", "#b0468e", "#8822ee"], dark: ["#56b4e9", "#ff9a5a", "#2fd0a3", "#f0a0cf", "#f0e442"] };

class DuelView {
  constructor(view) {
    this.view = view;
    this.wires = drawing("svg", { class: "fp-wires", "aria-hidden": "true" });
    this.clients = element("div", { class: "fp-clients" });
    this.node = element("section", { class: "fp-strip", "aria-label": "Clients and their messages" });
    this.sizes = new ResizeObserver(() => this.lay());
    this.sizes.observe(this.node);
  }

  update(stage) {
    // What an attack has just got is looked at where it got it.
    const got = this.stage && stage.sides.find(({ title, since }) => since > this.view.round
      && this.stage.sides.some((before) => before.title === title && before.attack && before.since === null));
    if (got) this.view.place = this.view.round = got.since;
    this.stage = stage;
    const { theme } = this.view;
    this.cards = clientCards(stage, theme);
    this.cards.forEach((card, at) => card.querySelector("small").prepend(this.mark(at)));
    this.clients.replaceChildren(...this.cards);
    this.node.dataset.many = String(stage.names.length > 12);
    this.invitation = element("b", { class: "fp-invitation", text: stage.invitation });
    this.sides = stage.sides.map((side, at) => this.side(side, at));
    this.node.replaceChildren(this.clients, ...this.sides.map(({ sent }) => sent), this.wires);
    for (const old of this.view.node.querySelectorAll(":scope > .fp-learnt")) old.remove();
    this.view.node.append(...this.sides.map(({ learnt }) => learnt));
    this.shown = this.room = undefined;
    requestAnimationFrame(() => this.lay());
  }

  side(side, at) {
    const { theme } = this.view;
    const picture = (part, name) => {
      const canvas = element("canvas", { width: part.columns, height: part.rows, role: "img", "aria-label": name });
      return { canvas, part, context: canvas.getContext("2d") };
    };
    const message = picture(side.message, `Its latest message by ${side.title}, column by column`);
    const words = element("span", { title: side.help }, element("b", { text: side.kind }));
    const sent = element("div", { class: "fp-sent", "data-protection": side.protection }, message.canvas, words);
    const components = picture(side.components, `The first directions learnt by ${side.title}, as pictures`);
    const map = element("canvas", { class: "fp-map", role: "img", "data-testid": `learnt-${at}`,
      "aria-label": `Records of all clients along the first two directions learnt by ${side.title}`,
      title: `Records of all clients along the first two directions learnt by ${side.title}, coloured by client; squares: ${this.stage.names[this.stage.attacked]}` });
    const off = element("b", { class: "fp-off-by" });
    const learnt = element("section", { class: `fp-learnt fp-learnt-${at}` },
      element("div", { class: "fp-title" }, "Learnt: joint PCA ", simulationTag(), off),
      element("div", { class: "fp-answers" }, element("div", { class: "fp-map-box" }, map, at ? null : this.whose()),
        element("div", { class: "fp-tiles" }, components.canvas, "directions")));
    learnt.style.setProperty("--fp-side", side.colour[theme.scheme]);
    sent.style.setProperty("--fp-side", side.colour[theme.scheme]);
    return { side, sent, message, learnt, components, map, off };
  }

  // Marks of one shape and colour are the records of one client, and stand below its card.
  whose() {
    const { owners, names, attacked, alone } = this.stage;
    const others = [...new Set(owners)].filter((one) => one !== attacked).slice(0, 3);
    const said = `${names[attacked]} ${alone}`;
    return element("div", { class: "fp-whose", title: `How far off the PCA of its own records is: ${said}` },
      this.mark(attacked), element("b", { text: said }),
      element("span", {}, ...others.map((one) => this.mark(one)), "others"));
  }

  // Shapes tell eight clients apart, and with them colours that stay apart without the cones for red
  // or for green tell forty; the attacked one is the only square.
  look(owner) {
    const { scheme, text } = this.view.theme;
    if (owner === this.stage.attacked) return { path: MARKERS.square, colour: text };
    return { path: OTHERS[owner % OTHERS.length], colour: HUES[scheme][owner % HUES[scheme].length] };
  }

  mark(owner) {
    const { path, colour } = this.look(owner);
    const svg = drawing("svg", { class: "fp-mark", viewBox: "-6 -6 12 12", "aria-hidden": "true" });
    svg.append(drawing("path", { d: path, fill: colour }));
    return svg;
  }

  // All sizes are asked before anything is drawn: a question after that lays the page out once more.
  lay() {
    if (!this.cards) return;
    this.room = this.sides.map(({ map }) => [map.clientWidth, map.clientHeight]);
    const box = this.node.getBoundingClientRect();
    if (box.width) this.wire(box);
    this.shown = undefined;
    this.show();
  }

  // Out of every card up to one line, along it, and down into both messages.
  wire(box) {
    const ends = this.sides.map(({ message }) => message.canvas.getBoundingClientRect());
    const below = ends.some((end) => end.top > this.clients.getBoundingClientRect().bottom - 4);
    this.paths = below ? [] : this.cards.flatMap((card, at) => {
      const from = card.getBoundingClientRect();
      const [x, top] = [from.left + from.width / 2 - box.left, from.top - box.top];
      return ends.map((end) => {
        const line = drawing("path", { class: "fp-wire",
          d: `M${x} ${top}V3H${end.left + 24 - box.left}V${end.top - box.top}` });
        line.classList.toggle("fp-attacked", at === this.stage.attacked);
        return line;
      });
    });
    this.wires.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    // The attacked client's lies above the others.
    this.wires.replaceChildren(...[...this.paths].sort((one, other) => one.classList.length - other.classList.length));
  }

  show() {
    const { stage, view } = this;
    if (!stage || !this.sides) return;
    const round = Math.min(view.round, stage.present.length - 1);
    if (this.shown === round) return;
    const forward = this.shown !== undefined && round === this.shown + 1;
    this.shown = round;
    const present = stage.present[round];
    this.cards.forEach(({ classList }, at) => {
      classList.toggle("fp-present", present[at] === "1");
      classList.toggle("fp-absent", round > 0 && present[at] !== "1");
    });
    this.sides.forEach(({ side, sent, message, components, map, off }, at) => {
      this.paint(message, round);
      this.paint(components, round);
      if (this.room) this.scatter(map, side, round, this.room[at]); // `lay` draws it first
      off.textContent = side.off[round];
      sent.classList.toggle("fp-sending", round > 0);
    });
    this.stamps();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (round > 0) this.aim(still);
    if (forward && !still) this.send(present);
  }

  // On a phone, where the pictures lie in a row to be swiped, what the server rebuilds comes to the
  // middle with the first message.
  aim(still) {
    const { gallery, pictures } = this.view;
    if (this.aimed || pictures.length < 3) return;
    this.aimed = true;
    const [first, second] = pictures.map(({ node }) => node.getBoundingClientRect());
    gallery.scrollBy({ left: second.left - first.left - (gallery.clientWidth - second.width) / 2, behavior: still ? "auto" : "smooth" });
  }

  // Below the picture that got its stamp, where the eye is, stands where to look next.
  stamps() {
    const pictures = this.view.pictures.slice(1);
    const [left, right] = this.sides.map(({ side }, at) => this.stamp(pictures[at], side, this.shown));
    this.invitation.hidden = !(left && !right && this.stage.invitation);
    const row = pictures[0]?.node.parentElement;
    if (row && this.invitation.parentElement !== row) row.append(this.invitation);
  }

  // What the server has whole, and is drawn, is stamped; before, it is counted.
  stamp(picture, side, round) {
    if (!picture) return false;
    picture.stamp ??= picture.node.appendChild(element("div", { class: "fp-stamp", "aria-hidden": "true" }));
    const got = side.since !== null && round >= side.since;
    const has = got && picture.landing === undefined;
    const drawn = got ? Math.min(picture.tiles ?? 0, parseInt(side.stamp, 10)) : 0;
    picture.stamp.classList.toggle("fp-exact", has);
    picture.stamp.replaceChildren(element("b", { text: has ? side.stamp : side.stamp.replace(/^\S+/, drawn) }),
      has ? element("span", { text: side.note }) : "");
    picture.node.classList.toggle("fp-leaks", has);
    picture.attack ??= picture.node.appendChild(element("button", { type: "button", class: "fp-attack", "data-testid": "attack" }));
    picture.attack.hidden = !side.attack || round === 0;
    picture.attack.replaceChildren("Attack harder", element("span", { text: ` (${side.attack})` }));
    picture.attack.onclick = () => {
      picture.attack.disabled = true;
      this.view.choose({ attack: side.title });
    };
    return has;
  }

  paint({ context, part }, round) {
    const size = part.rows * part.columns;
    const first = Math.min(round, part.count - 1) * size;
    const { packed } = this.view.theme.ramps.diverging;
    const pixels = context.createImageData(part.columns, part.rows);
    const words = new Uint32Array(pixels.data.buffer);
    for (let i = 0; i < size; i += 1) words[i] = packed[part.frames[first + i]];
    context.putImageData(pixels, 0, 0);
  }

  // The attacked client's records as squares, above those of the others.
  scatter(canvas, side, round, [wide, high]) {
    const { stage, view: { theme } } = this;
    const { owners, attacked } = stage;
    const scale = window.devicePixelRatio || 1;
    if (!wide) return;
    Object.assign(canvas, { width: wide * scale, height: high * scale });
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.fillStyle = theme.grid;
    context.fillRect(0, high / 2, wide, 1);
    context.fillRect(wide / 2, 0, 1, high);
    const first = round * owners.length * 2;
    const place = (i) => [4 + (side.places[first + 2 * i] / 255) * (wide - 8), high - 4 - (side.places[first + 2 * i + 1] / 255) * (high - 8)];
    const all = [...owners.keys()];
    const looks = stage.names.map((name, owner) => this.look(owner)).map(({ path, colour }) => ({ path: new Path2D(path), colour }));
    for (const i of all.sort((one, other) => (owners[one] === attacked) - (owners[other] === attacked))) {
      const { path, colour } = looks[owners[i]];
      context.setTransform(0.58 * scale, 0, 0, 0.58 * scale, place(i)[0] * scale, place(i)[1] * scale);
      context.fillStyle = colour;
      context.fill(path);
    }
  }

  send(present) {
    const pace = Math.min(TRAVEL, this.view.transport.step * 0.9);
    for (const old of this.wires.querySelectorAll("circle")) old.remove();
    this.paths.forEach((path, at) => {
      if (present[Math.floor(at / 2)] === "1") this.wires.append(packet(path, pace));
    });
  }

  destroy() {
    this.sizes.disconnect();
    for (const { learnt } of this.sides ?? []) learnt.remove();
    this.node.remove();
  }
}
