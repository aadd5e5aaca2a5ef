"""A receiver of webhooks: an HTTP server that answers, fails, hangs, drips or redirects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What arrived, and how the next requests are answered: a status, or "hang", "slow", "drip" or "redirect".

    An answer that is slow takes no time: a test that counts them moves the clock.
    """

    url: str = ""
    behaviour: str = "200"
    requests: list[Received] = field(default_factory=list)
    arrivals: asyncio.Condition = field(default_factory=asyncio.Condition)
    is_let_go: asyncio.Event = field(default_factory=asyncio.Event)
    """Ends the connections that hang."""
    slow_answers: int = 0

    async def arrived(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        async with self.arrivals:
            await self.arrivals.wait_for(lambda: len(self.requests) >= count)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        async with self.arrivals:
            self.requests.append(Received(first.split(" ")[1], headers, body))
            self.arrivals.notify_all()
        try:
            if self.behaviour == "hang":
                await asyncio.wait_for(self.is_let_go.wait(), 30)
            elif self.behaviour == "slow":
                self.slow_answers += 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            elif self.behaviour == "drip":
                for byte in b"HTTP/1.1 200 OK" * 100:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.05)
            elif self.behaviour == "redirect":
                writer.write(f"HTTP/1.1 307 Elsewhere\r\nLocation: {self.url}other\r\n\r\n".encode())
            elif self.behaviour == "no http":
                writer.write(b"hello\r\n")
            else:
                writer.write(f"HTTP/1.1 {self.behaviour} Status\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Yield a receiver that listens on this machine."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.answer, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        yield receiver
    finally:
        server.close()
