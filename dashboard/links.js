// Links in plain HTML to pages of this application: opened as Streamlit opens its own, in the session
// that is there, by the way on which the browser's "back" opens a page. This runs whenever the list of
// the pages comes or changes.

if (!window.fedpcaLinks) {
  window.fedpcaLinks = { followed: false };

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.fp-way, .fp-pages a");
    if (!link || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const state = document.querySelector("[data-test-connection-state]")?.dataset;
    if (state?.testConnectionState !== "CONNECTED") return; // then the browser opens it, in a new session
    event.preventDefault();
    const pages = link.closest(".fp-pages");
    // On a phone the list lies over the page, which is what the visitor wants to see now.
    const drawer = pages && window.matchMedia("(max-width: 768px)").matches;
    if (drawer) document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click();
    if (link.getAttribute("aria-current")) return;
    window.fedpcaLinks.followed = Boolean(pages) && !drawer;
    const address = new URL(link.href);
    if (pages) address.search = pages.dataset.query;
    for (const [name, value] of new URLSearchParams(window.location.search)) {
      if (name.startsWith("embed")) address.searchParams.append(name, value);
    }
    window.history.pushState({}, "", address);
    window.dispatchEvent(new PopStateEvent("popstate"));
  });

  window.addEventListener("popstate", () => {
    const links = [...document.querySelectorAll(".fp-pages a")];
    const here = links.find((link) => link.pathname === window.location.pathname);
    if (!here) return;
    for (const link of links) link.removeAttribute("aria-current");
    here.setAttribute("aria-current", "page");
  });
}

// A new list took the place of that in which somebody followed a link: they stay where they were.
if (window.fedpcaLinks.followed && document.activeElement === document.body) {
  document.querySelector(".fp-pages [aria-current]")?.focus({ preventScroll: true });
}
window.fedpcaLinks.followed = false;
