export default function ({ parentElement }) {
  const mark = document.createElement("span");
  mark.className = "fp-upload";
  parentElement.replaceChildren(mark);
  const name = () => {
    const places = "[data-testid=stFileUploaderDropzone][role=presentation]";
    for (const place of document.querySelectorAll(places)) place.setAttribute("role", "group");
  };
  const watch = new MutationObserver(name);
  watch.observe(document.body, { childList: true, subtree: true });
  name();
  return () => watch.disconnect();
}
