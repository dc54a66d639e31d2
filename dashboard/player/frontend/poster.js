// A poster: the views lie in the file, and so does the chart library; nothing is fetched.

async function unpacked(node) {
  const packed = Uint8Array.from(atob(node.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function openPoster() {
  const places = [...document.querySelectorAll(".poster-view")];
  const views = await Promise.all(places.map((place) => unpacked(place.firstElementChild)));
  const charts = document.getElementById("poster-charts");
  if (charts.textContent) {
    window.fedpcaPlotly = unpacked(charts).then((bytes) => {
      document.head.append(element("script", { text: new TextDecoder().decode(bytes) }));
      return window.Plotly;
    });
  }
  const show = () => places.forEach((parentElement, at) => mount({ data: views[at], parentElement }));
  show();
  turnDials(views, show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
}

// Another value of a dial is another run in the first view; words about the poster's own run rest then.
function turnDials(views, show) {
  const own = views[0];
  const dials = [...document.querySelectorAll(".poster-dial")];
  const live = document.querySelector(".poster-live");
  const turn = async (dial) => {
    const range = dial.querySelector("input");
    const value = dial.querySelectorAll("script")[range.value];
    for (const other of dials) {
      const { dataset } = other.querySelector("input");
      if (other !== dial) other.querySelector("input").value = dataset.own;
      other.querySelector("output").textContent = other.querySelectorAll("script")[other.querySelector("input").value].dataset.value;
    }
    const view = value.textContent ? await unpacked(value) : own;
    if (range.value !== String([...dial.querySelectorAll("script")].indexOf(value))) return; // turned on
    views[0] = view;
    document.body.classList.toggle("poster-turned", view !== own);
    live.href = value.dataset.live;
    document.querySelector("link[rel=canonical]").href = value.dataset.live;
    show();
  };
  for (const dial of dials) dial.querySelector("input").addEventListener("input", () => turn(dial));
}

openPoster().catch((reason) => {
  const text = `This browser cannot open the poster (${reason.message}); it needs one of 2023 or later.`;
  for (const place of document.querySelectorAll(".poster-view")) place.append(element("p", { text }));
});
