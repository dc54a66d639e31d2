// Links in plain HTML to pages of this application: opened as Streamlit opens its own, in the session
// that is there, by the way on which the browser's "back" opens a page; and the button that copies a
// link. This runs whenever a list of the pages, or of a page's tabs, comes or changes.

if (!window.fedpcaLinks) {
  window.fedpcaLinks = { followed: "" };

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.fp-way, nav[data-query] a");
    if (!link || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const state = document.querySelector("[data-test-connection-state]")?.dataset;
    if (state?.testConnectionState !== "CONNECTED") return; // then the browser opens it, in a new session
    event.preventDefault();
    const pages = link.closest("nav[data-query]");
    // On a phone the list lies over the page, which is what the visitor wants to see now.
    const drawer = link.closest(".fp-pages") && window.matchMedia("(max-width: 768px)").matches;
    if (drawer) document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click();
    if (link.getAttribute("aria-current") && link.pathname === window.location.pathname) return;
    window.fedpcaLinks.followed = pages && !drawer ? pages.className : "";
    const address = new URL(link.href);
    if (pages) address.search = pages.dataset.query;
    for (const [name, value] of new URLSearchParams(window.location.search)) {
      if (name.startsWith("embed")) address.searchParams.append(name, value);
    }
    window.history.pushState({}, "", address);
    window.dispatchEvent(new PopStateEvent("popstate"));
  });

  // A scene knows the round that is on show, and copies its own link.
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".fp-copy");
    if (!button) return;
    const moment = document.querySelector("[data-testid=replay-link]");
    // It stops at that button: what is open shuts at every click outside that the page hears of.
    moment?.dispatchEvent(new MouseEvent("click"));
    const address = moment?.dataset.address ?? button.dataset.link;
    button.dataset.address = address;
    const told = (words) => { button.nextElementSibling.textContent = words; };
    const copied = navigator.clipboard?.writeText(address) ?? Promise.reject();
    copied.then(() => told("Copied"), () => told("Copy it from below"));
  });

  window.addEventListener("popstate", () => {
    const links = [...document.querySelectorAll(".fp-pages a")];
    const name = window.location.pathname.split("/").pop() || "home";
    const here = links.find((link) => link.dataset.tabs.split(" ").includes(name));
    if (!here) return;
    for (const link of links) link.removeAttribute("aria-current");
    here.setAttribute("aria-current", "page");
  });
}

// A new list took the place of that in which somebody followed a link: they stay where they were.
{
  const { followed } = window.fedpcaLinks;
  const current = followed && document.querySelector(`.${followed} [aria-current]`);
  if (current && document.activeElement === document.body) {
    current.focus({ preventScroll: true });
    window.fedpcaLinks.followed = "";
  }
}
