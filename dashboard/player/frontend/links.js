// Links in plain HTML to pages of this application: opened as Streamlit opens its own, in the session
// that is there, by the way on which the browser's "back" opens a page.

if (!window.fedpcaLinks) {
  window.fedpcaLinks = true;
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.fp-way");
    if (!link || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const address = new URL(link.href);
    for (const [name, value] of new URLSearchParams(window.location.search)) {
      if (name.startsWith("embed")) address.searchParams.append(name, value);
    }
    window.history.pushState({}, "", address);
    window.dispatchEvent(new PopStateEvent("popstate"));
  });
}
