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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
}

openPoster().catch((reason) => {
  const text = `This browser cannot open the poster (${reason.message}); it needs one of 2023 or later.`;
  for (const place of document.querySelectorAll(".poster-view")) place.append(element("p", { text }));
});
