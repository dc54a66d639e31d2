"""The upload: Streamlit's, whose place for a file is named and so may not be an ornament."""

from pathlib import Path
from typing import Any

import streamlit as st

#: Megabytes of one's own file: server.maxUploadSize in .streamlit/config.toml, or
#: STREAMLIT_SERVER_MAX_UPLOAD_SIZE.
UPLOAD_MB = int(st.get_option("server.maxUploadSize"))
_SCRIPT = Path(__file__).resolve().parents[1] / "upload.js"
#: The place has a name, takes the focus, and yet has the role of an ornament: a group it is.
_role = st.components.v2.component(
    "fedpca_upload", js=_SCRIPT.read_text(encoding="utf-8"), isolate_styles=False
)


def upload(label: str, **options: Any) -> Any:
    file = st.file_uploader(label, **options)
    _role(key="upload_role", height="content")
    return file
