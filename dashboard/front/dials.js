// What a dial means, and what it does over its range, beside the dial that is in hand.

if (!window.fedpcaDials) {
  const note = document.createElement("div");
  window.fedpcaDials = note;
  note.className = "fp-note";
  note.id = "fp-note";
  note.setAttribute("role", "tooltip");
  note.hidden = true;

  const held = (name) => JSON.parse(document.querySelector(name)?.dataset.held ?? "{}");
  const dialOf = (node) => node.closest?.(".st-key-scene_row [class*=st-key-]");

  // Between the places where it was computed.
  const between = (points, place, column) => {
    const at = Math.max(1, points.findIndex(([there]) => there >= place));
    const [low, high] = [points[at - 1], points[at]];
    if (!high) return low[column];
    return low[column] + ((place - low[0]) / (high[0] - low[0] || 1)) * (high[column] - low[column]);
  };

  const here = (key, range) => {
    const curves = held(".fp-curves")[key];
    if (!range || !curves) return "";
    const place = (range.value - range.min) / (range.max - range.min);
    const off = (column) => Object.entries(curves).map(([method, points]) => `${method} ${between(points, place, column).toFixed(0)}°`);
    return `\nHere, between values that were computed, about: answer off by ${off(1).join(", ")}; attack off by ${off(2).join(", ")}.`;
  };

  const show = (dial) => {
    const key = /st-key-(\S+)/.exec(dial.className)[1];
    const words = held(".fp-dials")[key];
    if (!words) return hide();
    note.textContent = words + here(key, dial.querySelector("input[type=range]"));
    note.hidden = false;
    (document.querySelector("[data-testid=stMain]") ?? document.body).append(note);
    const box = dial.getBoundingClientRect();
    const low = box.bottom + note.offsetHeight + 8 > window.innerHeight;
    note.style.left = `${Math.max(8, Math.min(box.left, window.innerWidth - note.offsetWidth - 8))}px`;
    note.style.top = `${low ? box.top - note.offsetHeight - 4 : box.bottom + 4}px`;
    dial.querySelector("input")?.setAttribute("aria-describedby", note.id);
    return undefined;
  };
  const hide = () => { note.hidden = true; };

  for (const [come, go] of [["focusin", "focusout"], ["pointerover", "pointerout"]]) {
    document.addEventListener(come, ({ target }) => { const dial = dialOf(target); if (dial) show(dial); });
    document.addEventListener(go, ({ target, relatedTarget }) => {
      const dial = dialOf(target);
      if (dial && !dial.contains(relatedTarget)) hide();
    });
  }
  document.addEventListener("input", ({ target }) => { const dial = dialOf(target); if (dial) show(dial); });
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") hide(); });
}
