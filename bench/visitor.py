"""A visitor without a browser: Streamlit's own messages over a real websocket.

What a tab does while a page is open is done here too: fragments that ask to be run again are run
again at their interval, and a changed dial is a message with the whole state of the widgets.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import requests
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Common_pb2 import FileUploaderState, FileURLs, FileURLsRequest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

#: Seconds after which a server that does not answer counts as gone.
PATIENCE = 120


@contextmanager
def said_where_it_fails(errors: list[str]) -> Iterator[None]:
    """A visit that broke off is told at the end, and the others go on."""
    try:
        yield
    except (OSError, WebSocketException) as broken:
        errors.append(f"a visit broke off: {broken!r}")


class Visitor:
    """One session on one page.

    ``address`` has no scheme, ``query`` is the part of the link after the question mark, and what
    went wrong is written down in ``errors``, even where the visit breaks off.
    """

    def __init__(
        self, address: str, page: str, query: str = "", errors: list[str] | None = None
    ) -> None:
        self._page, self._query, self._hash = page, query, ""
        self._dials: dict[str, tuple[str, float, float, float, str]] = {}
        self._moved: dict[str, float] = {}
        self._polls: dict[str, asyncio.Task[None]] = {}
        self._pictures: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._address, self._session, self._place = address, "", ""
        self._browser = requests.Session()
        self._file, self._urls = FileUploaderState(), asyncio.Queue[FileURLs]()
        self.errors = [] if errors is None else errors
        self.bytes = 0

    async def __aenter__(self) -> Visitor:
        # A browser's first answer brings cookies: a seat behind a proxy, and a token.
        health = f"http://{self._address}/_stcore/health"
        answer = await asyncio.to_thread(self._browser.get, health, timeout=PATIENCE)
        answer.raise_for_status()
        self._cookies = {one.name: one.value or "" for one in self._browser.cookies}
        self._line = await connect(
            f"ws://{self._address}/_stcore/stream",
            additional_headers={"Cookie": "; ".join(map("=".join, self._cookies.items()))},
            max_size=None,
            open_timeout=PATIENCE,
            ping_interval=None,  # a browser waits for a busy server
            subprotocols=["streamlit"],  # type: ignore[list-item]
        )
        self._reader = asyncio.create_task(self._read())
        await self._run()
        return self

    async def __aexit__(self, *_: object) -> None:
        for poll in self._polls.values():
            poll.cancel()
        self._reader.cancel()
        await self._line.close()
        self._browser.close()

    async def picture(self, seconds: float) -> float | None:
        """Wait for a picture that was not there before; seconds it took, None if it never came."""
        began = time.monotonic()
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return None
        return time.monotonic() - began

    async def move(self, key: str, step: int, seconds: float) -> bool:
        """Set a slider to one of its positions, counted from its low end and round and round."""
        if not await self._came(lambda: key in self._dials, f"the dial “{key}”", seconds):
            return False
        identity, low, high, width, fragment = self._dials[key]
        count = round((high - low) / width) + 1
        self._moved[identity] = low + (step % count) * width
        self._changed.clear()
        await self._run(fragment)
        return True

    async def upload(self, name: str, content: bytes) -> bool:
        """Choose a file where the page has a place for one; whether the server took it."""
        if not await self._came(lambda: bool(self._place), "the place for a file", PATIENCE):
            return False
        asked = FileURLsRequest(request_id=name, session_id=self._session, file_names=[name])
        await self._line.send(BackMsg(file_urls_request=asked).SerializeToString())
        urls = await asyncio.wait_for(self._urls.get(), PATIENCE)
        answer = await asyncio.to_thread(
            self._browser.put,
            f"http://{self._address}/{urls.upload_url.lstrip('/')}",
            files={name: (name, content)},
            headers={"X-Xsrftoken": self._cookies.get("_streamlit_xsrf", "")},
            timeout=PATIENCE,
        )
        if not answer.ok:
            self.errors.append(f"the file {name} was refused: {answer.status_code} {answer.reason}")
            return False
        self._file = FileUploaderState()
        self._file.uploaded_file_info.add(
            name=name, size=len(content), file_id=urls.file_id, file_urls=urls
        )
        self._changed.clear()
        await self._run()
        return True

    async def _came(self, there: Callable[[], bool], what: str, seconds: float) -> bool:
        """Wait for a part of a page that is still on its way; what never came is an error."""
        try:
            async with asyncio.timeout(seconds):
                while not there():
                    await asyncio.sleep(0.05)
        except TimeoutError:
            self.errors.append(f"{what} of page “{self._page}” did not come")
            return False
        return True

    async def _run(self, fragment: str = "", poll: bool = False) -> None:
        if not fragment:
            self._end_polls()
        state = ClientState(
            query_string=self._query,
            page_name=self._page,
            page_script_hash=self._hash,
            fragment_id=fragment,
            is_auto_rerun=poll,
        )
        widgets = state.widget_states.widgets
        for identity, value in self._moved.items():
            widgets.add(id=identity, double_array_value={"data": [value]})
        if self._file.uploaded_file_info:
            widgets.add(id=self._place, file_uploader_state_value=self._file)
        await self._line.send(BackMsg(rerun_script=state).SerializeToString())

    async def _read(self) -> None:
        with said_where_it_fails(self.errors):  # also where nobody sends anything any more
            async for content in self._line:
                self.bytes += len(content)
                message = ForwardMsg()
                message.ParseFromString(content)
                kind = message.WhichOneof("type")
                if kind == "auto_rerun":
                    asked = message.auto_rerun
                    self._end_polls(asked.fragment_id)
                    self._polls[asked.fragment_id] = asyncio.create_task(
                        self._poll(asked.fragment_id, asked.interval)
                    )
                elif kind == "navigation":
                    self._hash = message.navigation.page_script_hash
                elif kind == "file_urls_response":
                    self._urls.put_nowait(message.file_urls_response.file_urls[0])
                elif kind == "new_session":
                    self._session = message.new_session.initialize.session_id
                    if not message.metadata.run.fragment_ids:
                        self._end_polls()  # the page runs anew, and says itself what to poll
                elif kind == "stop_auto_rerun":
                    for fragment in message.stop_auto_rerun.fragment_ids:
                        self._end_polls(fragment)
                elif kind == "delta" and message.delta.HasField("new_element"):
                    self._element(message.delta.new_element, message.delta.fragment_id)

    def _end_polls(self, fragment: str | None = None) -> None:
        for name in [fragment] if fragment is not None else list(self._polls):
            if (poll := self._polls.pop(name, None)) is not None:
                poll.cancel()

    async def _poll(self, fragment: str, interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            await self._run(fragment, poll=True)

    def _element(self, element: Any, fragment: str) -> None:
        kind = element.WhichOneof("type")
        if kind == "slider":
            dial = element.slider
            where = dial.id, dial.min, dial.max, dial.step, fragment
            self._dials[dial.id.rpartition("-")[2]] = where
        elif kind == "file_uploader":
            self._place = element.file_uploader.id
        elif kind == "exception":
            self.errors.append(element.exception.message[:200])
        elif kind == "alert" and "computations are waiting" in element.alert.body:
            self.errors.append(element.alert.body[:80])
        elif kind == "bidi_component":
            seen = hashlib.blake2b(element.bidi_component.SerializeToString()).hexdigest()
            name = element.bidi_component.component_name
            if self._pictures.get(name) != seen:
                self._pictures[name] = seen
                self._changed.set()
