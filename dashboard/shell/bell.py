"""A bell: a thread of the server has a fragment of a visitor's page run again.

Streamlit runs a fragment when its tab asks for it, now and then or after a click; a page that waits
for something has to look again and again. Rung from a thread, the bell asks in the tab's place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from streamlit import runtime
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState

#: Rings; given whether there is still something to say when the page has time to hear it.
Ring = Callable[[Callable[[], bool]], None]


def here() -> Ring | None:
    """The bell of the fragment that runs now; None where no tab is behind it, as in a test.

    All that is asked of Streamlit about sessions is asked here. Without it nothing is lost: who
    waits hears of the end at the next look.
    """
    context = get_script_run_ctx()
    if context is None or not runtime.exists():
        return None
    server, name = runtime.get_instance(), context.session_id
    loop = getattr(server.stopped, "get_loop", lambda: None)()
    if not isinstance(loop, asyncio.AbstractEventLoop):
        return None
    # What a tab says of itself when it asks; newer with every look.
    asks = ClientState(
        query_string=context.query_string,
        page_script_hash=context.page_script_hash,
        fragment_id=ThreadState.get().fragment_id or "",
        is_auto_rerun=True,
    )
    if context.context_info is not None:
        asks.context_info.CopyFrom(context.context_info)

    async def tell(wanted: Callable[[], bool]) -> None:
        session = server.get_app_session(name)
        if not isinstance(session, AppSession):
            return  # the tab is gone; one that comes back runs its page anew
        # A request beside another would take its place: after a click on another page the visitor
        # would stay on this one. And the end of a run may not come after the next has begun.
        session.track_settling()
        await session.wait_until_settled()
        if wanted() and session.page_script_hash == asks.page_script_hash:
            session.request_rerun(asks)

    def ring(wanted: Callable[[], bool]) -> None:
        if not loop.is_closed():
            asyncio.run_coroutine_threadsafe(tell(wanted), loop)

    return ring
