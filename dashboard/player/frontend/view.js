// The view: one per place on the page, kept while the page lives, updated in place.

const VIEWS = new WeakMap();
const SETTLED_MS = 2000;
let views = 0;

// The Tab key meets navigation and settings first; one link leads past them to the play button.
function aimSkip() {
  const play = document.querySelector("[data-testid=replay-play]");
  let link = document.querySelector(".fp-skip");
  if (!play) {
    link?.remove();
    return;
  }
  if (!link) {
    link = element("a", { class: "fp-skip", text: "Skip to the picture" });
    link.onclick = (event) => {
      event.preventDefault(); // the address keeps settings, not places
      document.querySelector(link.hash)?.focus();
    };
    document.body.prepend(link);
  }
  link.setAttribute("href", `#${play.id}`);
}

class View {
  constructor(parent) {
    for (const stale of parent.querySelectorAll(":scope > .fp-replay")) stale.remove();
    views += 1;
    this.id = views;
    this.mounts = [];
    this.round = 0;
    // Where the reader wants to be, also while a run or its first look is shorter; Infinity, at the end.
    this.place = 0;
    this.hidden = new Set();
    this.panels = new Map();
    this.pictures = [];
    this.gallery = element("div", { class: "fp-gallery" });
    this.grid = element("div", { class: "fp-grid" });
    this.sentence = element("p", { class: "fp-sentence", "data-testid": "replay-sentence" });
    this.node = element("div", { class: "fp-replay" }, this.gallery, this.grid);
    this.runs = new Runs(this);
    this.lecture = new LectureKeys(this);
    this.transport = new Transport(this);
    this.readout = new Readout(this);
    this.transport.face(false);
    this.node.addEventListener("keydown", (event) => {
      if (this.data.playback) this.transport.key(event);
    });
    // After a click on a chart or an image the keyboard moves the rounds.
    this.node.addEventListener("pointerup", (event) => {
      if (this.data.playback && event.target.closest(".fp-stage, .fp-canvas")) {
        this.transport.range.focus({ preventScroll: true });
      }
    });
    parent.append(this.node);
  }

  update(bytes) {
    const theme = readTheme(this.node, this.theme);
    this.measure(); // before anything is changed, which would have to be laid out for the answer
    const digest = this.data?.digest;
    const data = decode(bytes);
    if (digest === data.digest && this.theme.signature === theme.signature) return;
    const first = this.data === undefined;
    const begun = first || this.data.rounds === 0;
    this.runs.change(this.data, data);
    this.lecture.hideCurves(this.data, data);
    this.data = data;
    this.theme = { ...theme, large: data.lecture?.on ?? false, titled: data.stage?.sides.length > 0 };
    this.node.dataset.scheme = theme.scheme;
    this.node.style.setProperty("--fp-simulation", data.simulationColour[theme.scheme]);
    this.node.style.setProperty("--fp-quiet", theme.quiet);
    if (first) this.place = data.start ?? Infinity;
    this.round = Math.min(this.place, data.rounds);
    this.node.dataset.key = data.key;
    this.node.dataset.testid = data.playback ? "replay" : "chart";
    this.updateStage();
    this.updateImages();
    this.updatePanels();
    if (data.playback) {
      if (!this.transport.node.isConnected) this.node.append(this.transport.node, this.readout.node);
      aimSkip();
      this.readout.node.classList.toggle("fp-unseen", data.stage !== null);
      if (data.stage && !this.lecture.link.isConnected) this.transport.node.append(this.lecture.link, this.lecture.full);
      this.transport.update();
      this.readout.update();
    } else {
      this.transport.stop();
      this.transport.node.remove();
      this.readout.node.remove();
    }
    this.node.dataset.rounds = data.rounds;
    this.node.dataset.digest = data.digest;
    this.show();
    if (begun && data.autoplay && data.rounds > 0) {
      // Who asked for less motion sees where it ends, unless the link says which round.
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      this.place = data.start || (still ? Infinity : 0);
      this.round = Math.min(this.place, data.rounds);
      this.show();
      if (!still) this.transport.start(!data.start && data.stage?.sides.length ? "opening" : "at once");
    }
  }

  updateStage() {
    const { stage, sentences } = this.data;
    this.node.classList.toggle("fp-scene", stage !== null);
    const duel = stage?.sides.length > 0;
    this.node.classList.toggle("fp-duel", duel);
    if (this.stage && !(stage && this.stage instanceof (duel ? DuelView : StageView))) {
      this.stage.destroy();
      this.stage = undefined;
    }
    if (stage) {
      this.stage ??= duel ? new DuelView(this) : new StageView(this);
      if (!this.stage.node.isConnected) this.node.prepend(this.stage.node);
      this.stage.update(stage);
      // What waits for a round may come to the page after that round has been played.
      this.late ??= setInterval(() => this.release(), 400);
    }
    this.runs.update();
    this.lecture.update();
    if (sentences.length === 0) this.sentence.remove();
    else if (!this.sentence.isConnected) this.grid.after(this.sentence);
  }

  updateImages() {
    for (const former of this.pictures) former.still();
    this.pictures = [];
    const rows = this.data.images.map((row) => {
      const pictures = row.map((image) => new ImageView(image, this));
      this.pictures.push(...pictures);
      const widest = Math.max(...row.map((image) => image.size));
      const some = row.length === 4 ? 2 : Math.min(row.length, 3); // none is left alone in its line
      const style = `--fp-count:${row.length};--fp-some:${some};--fp-few:${Math.min(row.length, 2)};--fp-size:${widest}px`;
      return element("div", { class: `fp-row${row.length === 3 && !this.data.stage ? " fp-three" : ""}`, style }, ...pictures.map((picture) => picture.node));
    });
    this.gallery.replaceChildren(...rows);
    this.gallery.hidden = rows.length === 0;
  }

  // The height of compact charts, asked once for all of them: every answer styles the page anew.
  measure() {
    this.measured = this.node.className;
    this.plotHeight = parseInt(getComputedStyle(this.node).getPropertyValue("--fp-plot-height"), 10);
  }

  updatePanels() {
    if (this.measured !== this.node.className) this.measure();
    const wanted = new Set(this.data.panels.map((panel) => panel.key));
    for (const [key, panel] of this.panels) {
      if (!wanted.has(key)) {
        panel.destroy();
        this.panels.delete(key);
      }
    }
    this.grid.hidden = wanted.size === 0;
    this.grid.classList.toggle("fp-four", wanted.size === 4);
    this.data.panels.forEach((panel, at) => {
      if (!this.panels.has(panel.key)) this.panels.set(panel.key, new PanelView(panel.key, this));
      const { node } = this.panels.get(panel.key);
      if (this.grid.children[at] !== node) this.grid.insertBefore(node, this.grid.children[at] ?? null);
      this.panels.get(panel.key).update(panel);
    });
  }

  go(round, byHand) {
    const next = Math.min(Math.max(round, 0), this.data.rounds);
    if (byHand && this.transport.playing) this.transport.stop();
    this.place = next < this.data.rounds ? next : Infinity;
    if (next === this.round) return;
    this.round = next;
    this.show();
  }

  show() {
    this.node.dataset.round = this.round;
    if (this.data.stage) this.release();
    for (const picture of this.pictures) picture.draw();
    this.stage?.show();
    // Read out when somebody steps, not twenty times a second while it plays.
    this.sentence.setAttribute("aria-live", this.transport.playing ? "off" : "polite");
    this.sentence.textContent = this.data.sentences[this.round] ?? "";
    for (const panel of this.panels.values()) panel.move();
    if (this.data.playback) {
      this.transport.show();
      this.readout.show();
    }
  }

  // Sentences of the page that wait for the round they tell of; one that was read stays.
  release() {
    for (const late of document.querySelectorAll(".fp-late:not(.fp-come)")) {
      late.classList.toggle("fp-come", this.round >= Number(late.dataset.from));
    }
  }

  toggle(name) {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    for (const panel of this.panels.values()) {
      if (!panel.panel.curves.some((curve) => curve.name === name)) continue;
      panel.drawLegend();
      panel.draw();
    }
    this.runs.update();
    this.readout.hide();
  }

  destroy() {
    clearInterval(this.late);
    this.transport.stop();
    this.lecture.destroy();
    this.stage?.destroy();
    for (const picture of this.pictures) picture.still();
    for (const panel of this.panels.values()) panel.destroy();
    this.node.remove();
    aimSkip();
  }
}

// While this module still loads, newer data may come: Streamlit then mounts twice, in either order,
// and at once cleans up after the mount that is out of date. All mounts of one place share a view,
// which goes back to the data of the mount that is left, and goes when none is.
export default function mount({ data, parentElement, setTriggerValue }) {
  if (!VIEWS.has(parentElement)) VIEWS.set(parentElement, new View(parentElement));
  const view = VIEWS.get(parentElement);
  const own = { data };
  view.mounts.push(own);
  view.choose = (choice) => setTriggerValue("chosen", choice);
  view.update(data);
  // Those before it that were not cleaned up by then never will be.
  setTimeout(() => {
    if (view.mounts.includes(own)) view.mounts.splice(0, view.mounts.indexOf(own));
  }, SETTLED_MS);
  return () => {
    view.mounts = view.mounts.filter((other) => other !== own);
    const left = view.mounts.at(-1);
    if (left && parentElement.isConnected) {
      view.update(left.data);
      return;
    }
    view.destroy();
    VIEWS.delete(parentElement);
  };
}
