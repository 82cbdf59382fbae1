"""A TCP proxy that holds back what clients send for a time that standard input sets, in milliseconds.

Answers are not held back: a round trip takes so much longer, once. The loop waits by `select`, which counts
microseconds; `epoll` (and with it uvloop) would turn 0.2 ms into 1.
"""

from __future__ import annotations

import asyncio
import selectors
import sys

READ_BYTES = 65536


class Proxy:
    def __init__(self, port: int) -> None:
        self._port = port
        self.delay_s = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, back, held=True))
                group.create_task(self._carry(there, writer, held=False))
        except* OSError:
            pass
        finally:
            writer.close()
            back.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, held: bool) -> None:
        """A client of a database waits for its answer, so nothing queues up behind what is held back."""
        while data := await reader.read(READ_BYTES):
            if held and self.delay_s:
                await asyncio.sleep(self.delay_s)
            writer.write(data)
        writer.write_eof()


async def main(port: int) -> None:
    proxy = Proxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    print(f"ready {server.sockets[0].getsockname()[1]}", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        proxy.delay_s = float(line) / 1000
        print("set", flush=True)
    server.close()


if __name__ == "__main__":
    select_loop = lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())  # noqa: E731
    with asyncio.Runner(loop_factory=select_loop) as runner:
        runner.run(main(int(sys.argv[1])))
