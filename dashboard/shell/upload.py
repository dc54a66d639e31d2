"""The upload: Streamlit's, whose place for a file is named and so may not be an ornament."""

from typing import Any

import streamlit as st

#: The place has a name, takes the focus, and yet has the role of an ornament: a group it is.
_role = st.components.v2.component(
    "fedpca_upload",
    js="""export default function ({ parentElement }) {
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
}""",
    isolate_styles=False,
)


def upload(label: str, **options: Any) -> Any:
    """Draw `st.file_uploader`; returns what it returns."""
    file = st.file_uploader(label, **options)
    _role(key="upload_role", height="content")
    return file
