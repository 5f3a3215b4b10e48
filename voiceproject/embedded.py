"""What the embedded default needs and the real services bring themselves: one channel layer for all threads."""

from __future__ import annotations

import asyncio
from typing import Any

from channels.layers import InMemoryChannelLayer


class EmbeddedChannelLayer(InMemoryChannelLayer):
    """Channels' in-memory layer lives in one event loop; this one lets worker threads send into it.

    The loop in which the first consumer receives is its home: sends from other loops are handed over to it.
    With no home yet (nobody looks) a send has nobody to reach and is dropped, as with any layer.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.home: asyncio.AbstractEventLoop | None = None

    async def new_channel(self, prefix: str = "specific") -> str:
        self.home = asyncio.get_running_loop()
        return await super().new_channel(prefix)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        home = self.home
        if home is None or home is asyncio.get_running_loop() or not home.is_running():
            await super().group_send(group, message)
            return
        done = asyncio.run_coroutine_threadsafe(super().group_send(group, message), home)
        await asyncio.shield(asyncio.wrap_future(done))  # who stops waiting does not take it back
