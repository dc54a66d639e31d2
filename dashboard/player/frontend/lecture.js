// A scene before a room: keys that act wherever the focus is, the full screen, a link to this moment.

const TYPING = "textarea, select, [contenteditable], input:not([type=range]):not([type=checkbox]):not([type=radio])";

class LectureKeys {
  constructor(view) {
    this.view = view;
    this.key = (event) => this.press(event);
    document.addEventListener("keydown", this.key, true);
    this.full = element("button", { type: "button", class: "fp-button fp-small", title: "Full screen (f)", "aria-label": "Full screen (f)" }, icon(ICONS.full));
    this.full.onclick = () => this.fullScreen();
    this.link = element("button", { type: "button", class: "fp-button fp-small", title: "Copy a link to this moment", "aria-label": "Copy a link to this moment", "data-testid": "replay-link" }, icon(ICONS.link));
    this.link.onclick = () => this.copy();
  }

  fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen?.();
  }

  // The address as it stands (of the live page, on a poster), with the round; it opens paused.
  address() {
    const { view } = this;
    const url = new URL(document.querySelector("link[rel=canonical]")?.href ?? window.location.href);
    url.searchParams.set("round", view.round);
    url.searchParams.set("autoplay", "false");
    const { hide, curves } = view.data.lecture;
    url.searchParams.delete("hide");
    for (const part of hide.filter((part) => !curves[part])) url.searchParams.append("hide", part);
    for (const part of this.curvesOff()) url.searchParams.append("hide", part);
    return url.href;
  }

  // What a link calls the curves that are hidden now.
  curvesOff() {
    return Object.entries(this.view.data.lecture.curves).flatMap(([part, names]) => (names.every((name) => this.view.hidden.has(name)) ? part : []));
  }

  // A curve stays hidden when its method, and so its name, changes.
  hideCurves(before, after) {
    const asked = (data) => data.lecture.hide.filter((part) => data.lecture.curves[part]);
    const off = !before || String(asked(before)) !== String(asked(after)) ? asked(after) : this.curvesOff();
    for (const name of Object.values(before?.lecture.curves ?? {}).flat()) this.view.hidden.delete(name);
    for (const name of off.flatMap((part) => after.lecture.curves[part])) this.view.hidden.add(name);
  }

  copy() {
    const address = this.address();
    this.link.dataset.address = address;
    navigator.clipboard?.writeText(address).then(() => { this.link.textContent = "Copied"; }, () => {});
  }

  // Only in a lecture, where the page has one picture; whoever types goes on typing.
  press(event) {
    const { view } = this;
    if (!view.data.lecture.on || event.altKey || event.ctrlKey || event.metaKey || event.target.matches?.(TYPING)) return;
    const button = (key) => document.querySelector(`.st-key-${key} button:not(:disabled)`)?.click();
    const slides = event.target.matches?.("input[type=range]") && !view.node.contains(event.target);
    const acts = { " ": () => view.transport.toggle(), n: () => button("story_next"), p: () => button("story_back"), f: () => this.fullScreen() };
    if (!slides) Object.assign(acts, { ArrowLeft: () => view.go(view.round - 1, true), ArrowRight: () => view.go(view.round + 1, true) });
    if (event.key === "Enter" && event.target === document.body) acts.Enter = () => button("story_show");
    if (!acts[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }

  update() {
    const { on, hide, section } = this.view.data.lecture;
    this.view.node.dataset.hide = hide.join(" ");
    this.view.node.classList.toggle("fp-lecture", on);
    this.full.hidden = !on;
    if (this.seen === section) return;
    this.seen = section;
    if (section && section !== "scene") setTimeout(() => document.querySelector(`.st-key-section_${section}`)?.scrollIntoView(), 600);
  }

  destroy() {
    document.removeEventListener("keydown", this.key, true);
  }
}
