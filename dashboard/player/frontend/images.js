// Rows of replayed images: bytes through a palette onto a canvas.

const LANDS = 20; // milliseconds between two records

class ImageView {
  constructor(image, view) {
    this.image = image;
    this.view = view;
    this.canvas = element("canvas", { width: image.columns, height: image.rows, role: "img", class: "fp-canvas",
      "data-testid": "replay-canvas", style: `--fp-ratio:${image.columns / image.rows}` });
    this.canvas.onpointermove = (event) => this.point(event);
    this.context = this.canvas.getContext("2d");
    this.pixels = this.context.createImageData(image.columns, image.rows);
    this.words = new Uint32Array(this.pixels.data.buffer);
    const title = element("div", { class: "fp-image-title" }, element("span", { text: image.title }),
      image.simulationOnly ? simulationTag() : null,
      element("span", { class: "fp-tools" }, this.tool("png"), this.tool("svg")));
    this.caption = element("div", { class: "fp-caption", "data-testid": "replay-caption" });
    this.bar = image.showScale ? element("div", { class: "fp-bar", "aria-hidden": "true" }) : null;
    const scale = this.bar && element("div", { class: "fp-scale" },
      element("span", { text: raised(image.low) }), this.bar, element("span", { text: raised(image.high) }));
    this.node = element("div", { class: "fp-image", style: `max-width:${image.size}px` }, title, this.canvas, scale,
      image.captions.length ? this.caption : null);
  }

  tool(format) {
    const name = `Download “${this.image.title}” as ${format.toUpperCase()}`;
    const button = element("button", { type: "button", class: "fp-tool", title: name, "aria-label": name },
      format.toUpperCase());
    button.onclick = () => this.save(format);
    return button;
  }

  // The picture as it stands: every value a square of at least a few dots, without smoothing.
  save(format) {
    const { image, view } = this;
    const scale = Math.max(1, Math.ceil(512 / Math.max(image.columns, image.rows)));
    const [width, height] = [image.columns * scale, image.rows * scale];
    let address = this.canvas.toDataURL("image/png");
    if (format === "png") {
      const large = element("canvas", { width, height });
      const context = large.getContext("2d");
      context.imageSmoothingEnabled = false;
      context.drawImage(this.canvas, 0, 0, width, height);
      address = large.toDataURL("image/png");
    } else {
      const svg = drawing("svg", { xmlns: SVG, viewBox: `0 0 ${image.columns} ${image.rows}`, width, height });
      const title = drawing("title");
      title.textContent = this.canvas.getAttribute("aria-label");
      svg.append(title, drawing("image", { href: address, width: image.columns, height: image.rows,
        style: "image-rendering: pixelated" }));
      address = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
    }
    const name = image.title.toLowerCase().replace(/[^\p{L}\d]+/gu, "-").replace(/^-|-$/g, "");
    const when = image.count === 1 ? "" : `-${view.data.roundLabel}-${view.round}`;
    element("a", { href: address, download: `${name}${when}.${format}` }).click();
  }

  // The value under the pointer, as exactly as a byte can tell.
  point(event) {
    const { image } = this;
    const row = Math.min(Math.floor((event.offsetY / this.canvas.clientHeight) * image.rows), image.rows - 1);
    const column = Math.min(Math.floor((event.offsetX / this.canvas.clientWidth) * image.columns), image.columns - 1);
    if (row < 0 || column < 0) return;
    const byte = image.frames[(this.frame * image.rows + row) * image.columns + column];
    const value = image.low + ((image.high - image.low) * byte) / 255;
    this.canvas.title = `row ${row + 1}, column ${column + 1}: about ${written(value)}`;
  }

  // One record after another, once the messages have arrived.
  land([rows, columns], caption) {
    this.tiles = 0;
    const { view } = this;
    this.caption.textContent = `Opening message ${view.round}: tile by tile.`;
    const wide = Math.ceil(this.image.columns / columns);
    let tile = -TRAVEL / LANDS;
    this.landing = setInterval(() => {
      tile += 1;
      if (tile < 0) return;
      this.context.putImageData(this.pixels, 0, 0, (tile % wide) * columns, Math.floor(tile / wide) * rows, columns, rows);
      this.tiles = tile + 1;
      this.view.stage?.stamps();
      if (tile > wide * Math.ceil(this.image.rows / rows)) this.landed(caption);
    }, LANDS);
  }

  // What is said of the whole picture waits for its last record.
  landed(caption) {
    this.caption.textContent = caption;
    this.still();
    this.view.stage?.stamps();
    this.view.transport.tellRest();
  }

  // Nothing lands any more: all has, or another picture took this one's place.
  still() {
    clearInterval(this.landing);
    this.landing = undefined;
  }

  draw() {
    const { image, view, words } = this;
    const at = image.count === 1 ? 0 : Math.min(view.round, image.count - 1);
    const caption = image.captions[image.captions.length === 1 ? 0 : view.round] ?? "";
    const { packed, gradient } = view.theme.ramps[image.palette];
    const size = image.rows * image.columns;
    const first = at * size;
    const lands = view.transport.opening && view.data.stage?.sides.length > 0 && at === this.frame + 1;
    this.frame = at;
    for (let i = 0; i < size; i += 1) words[i] = packed[image.frames[first + i]];
    this.still();
    if (lands) this.land(view.data.stage.tile, caption);
    else this.context.putImageData(this.pixels, 0, 0);
    if (this.bar) this.bar.style.background = gradient;
    if (!lands) this.caption.textContent = caption;
    const when = image.count === 1 ? "" : `, ${view.data.roundLabel} ${view.round} of ${view.data.rounds}`;
    this.canvas.setAttribute("aria-label",
      [`${image.title}${when}.`, image.description, caption].filter(Boolean).join(" "));
    this.canvas.dataset.frame = at;
  }
}
