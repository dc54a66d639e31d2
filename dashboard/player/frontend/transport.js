// Play, step, scrub; the keyboard does the same.

const SPEEDS = [1, 2, 5, 10, 20, 50];
const [REST, READ, OPENING] = [2000, 1500, 6]; // milliseconds before the first message, after each, and of how many

class Transport {
  constructor(view) {
    this.view = view;
    const button = (name, symbol, id, action) => {
      const node = element("button", { type: "button", class: "fp-button", title: name, "aria-label": name,
        "data-testid": `replay-${id}` }, icon(ICONS[symbol]));
      node.onclick = action;
      return node;
    };
    this.first = button("First (Home)", "first", "first", () => view.go(0, true));
    this.back = button("Step back (left arrow)", "back", "back", () => view.go(view.round - 1, true));
    this.play = button("Play (space)", "play", "play", () => this.toggle());
    this.play.classList.add("fp-play");
    this.play.id = `fp-play-${view.id}`;
    this.forward = button("Step forward (right arrow)", "forward", "forward", () => view.go(view.round + 1, true));
    this.last = button("Last (End)", "last", "last", () => view.go(view.data.rounds, true));
    this.range = element("input", { type: "range", min: 0, step: 1, class: "fp-range", "data-testid": "replay-range" });
    this.range.oninput = () => view.go(Number(this.range.value), true);
    this.word = element("span", { class: "fp-round-word" });
    this.count = element("span");
    this.number = element("span", { class: "fp-round", role: "status", "data-testid": "replay-round" }, this.word, this.count);
    this.speed = element("select", { class: "fp-speed", "aria-label": "Speed, steps per second", title: "Steps per second", "data-testid": "replay-speed" },
      ...SPEEDS.map((speed) => element("option", { value: speed, text: `${speed} / s` })));
    this.rests = element("span", { class: "fp-rests" });
    this.node = element("div", { class: "fp-transport", role: "group", "aria-label": "Replay" },
      element("div", { class: "fp-buttons" }, this.first, this.back, this.play, this.forward, this.last),
      this.rests, this.range, this.number, this.speed);
  }

  update() {
    const { rounds, roundLabel } = this.view.data;
    this.range.max = rounds;
    this.range.setAttribute("aria-label", `Current ${roundLabel}`);
    this.word.textContent = `${roundLabel} `;
    this.count.style.minWidth = `${2 * String(rounds).length + 3}ch`;
    if (!this.chosen && rounds > 0) {
      // A whole run in about ten seconds, unless the reader chooses.
      this.speed.value = SPEEDS.find((speed) => speed >= rounds / 10) ?? SPEEDS.at(-1);
      this.chosen = true;
    }
    for (const control of [this.first, this.back, this.play, this.forward, this.last, this.range]) {
      control.disabled = rounds === 0;
    }
    // Nothing to count or to pace; the room is kept.
    for (const part of [this.number, this.speed]) part.style.visibility = rounds === 0 ? "hidden" : "";
    if (rounds === 0) this.stop();
  }

  show() {
    const { data, round } = this.view;
    // Read out a step, not every round of a play; the slider reads out itself.
    const silent = this.playing || document.activeElement === this.range;
    this.number.setAttribute("aria-live", silent ? "off" : "polite");
    this.range.value = round;
    this.range.style.setProperty("--fp-done", `${data.rounds ? (100 * round) / data.rounds : 0}%`);
    this.range.setAttribute("aria-valuetext", `${data.roundLabel} ${round} of ${data.rounds}`);
    this.count.textContent = `${round} / ${data.rounds}`;
    this.tellRest();
  }

  // Where two methods rest before their end, so that nobody takes what they have learnt for all.
  tellRest() {
    const { data, round } = this.view;
    if (!data?.stage?.sides.length) return;
    const opens = this.view.pictures.some(({ landing }) => landing !== undefined);
    this.word.textContent = opens ? "opening message " : `${data.roundLabel} `;
    this.rests.textContent = "Press play.";
    this.rests.style.visibility = opens || this.playing || round === 0 || round === data.rounds ? "hidden" : "";
  }

  get playing() {
    return this.timer !== undefined;
  }

  toggle() {
    if (this.playing) this.stop();
    else this.start();
  }

  // Milliseconds from one round to the next. What opens rests long enough to be read.
  get step() {
    if (!this.opening) return 1000 / Number(this.speed.value);
    return this.view.round === 0 ? REST : READ;
  }

  // Where what opens stops by itself: when the server has all records of one side.
  get climax() {
    const known = this.view.data.stage.sides.map(({ since }) => since ?? Infinity);
    return Math.min(...known);
  }

  // ``how``: "at once", the first step follows without a pause, as a picture that opens should move;
  // "opening", the first messages rest.
  start(how = "") {
    const { view } = this;
    this.opening = how === "opening";
    if (view.round >= view.data.rounds) view.go(0, false);
    let since = performance.now() - (how === "at once" ? this.step : 0);
    const tick = (now) => {
      const { step } = this;
      // A page that stands still, as while charts load, swallows no rounds: it goes on where it was.
      const steps = Math.min(Math.floor((now - since) / step), Math.ceil(50 / step));
      if (steps > 0) {
        since = Math.max(since + steps * step, now - step);
        view.go(view.round + steps, false);
        if (view.round >= view.data.rounds || (this.opening && view.round === this.climax)) return this.stop();
        this.opening &&= view.round < Math.min(this.climax, OPENING);
      }
      this.timer = requestAnimationFrame(tick);
      return undefined;
    };
    this.timer = requestAnimationFrame(tick);
    this.face(true);
  }

  stop() {
    cancelAnimationFrame(this.timer);
    this.timer = undefined;
    this.opening = false;
    this.face(false);
  }

  face(playing) {
    const name = playing ? "Pause (space)" : "Play (space)";
    this.play.replaceChildren(icon(playing ? ICONS.pause : ICONS.play));
    this.play.setAttribute("aria-label", name);
    this.play.title = name;
    this.view.node.dataset.playing = String(playing);
    this.tellRest();
  }

  // Space on a button or a choice keeps its own meaning.
  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.tagName === "SELECT") return;
    const { view } = this;
    const acts = {
      ArrowLeft: () => view.go(view.round - 1, true),
      ArrowRight: () => view.go(view.round + 1, true),
      Home: () => view.go(0, true),
      End: () => view.go(view.data.rounds, true),
    };
    if (event.target.tagName !== "BUTTON") acts[" "] = () => this.toggle();
    if (!acts[event.key] || view.data.rounds === 0) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }
}
