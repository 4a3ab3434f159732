#!/usr/bin/env python3
"""A TCP proxy that holds every piece of a stream back for a fixed time on each way.

  delay.py PORT_OF_SERVER MILLISECONDS

Prints its own port. It shares no code with Stepladder. Python's event loop wakes up to 1 ms late, and its own work adds to that.
"""

import asyncio
import socket
import sys


class Half(asyncio.Protocol):
    """One side of a connection: what it reads goes to the other side after the delay."""

    def __init__(self, delay_s):
        self.delay_s, self.other, self.transport, self.early = delay_s, None, None, []

    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def later(self, call, *words):
        asyncio.get_running_loop().call_later(self.delay_s, call, *words)

    def data_received(self, data):
        self.later(self.forward, data)

    def forward(self, data):
        if self.other is None:
            self.early.append(data)
        elif not self.other.transport.is_closing():
            self.other.transport.write(data)

    def connection_lost(self, _):
        if self.other:
            self.later(self.other.transport.close)

    def join(self, other):
        self.other, early = other, self.early
        self.early = []
        for data in early:
            self.forward(data)


async def main(port, delay_s):
    loop = asyncio.get_running_loop()

    class Front(Half):
        def connection_made(self, transport):
            super().connection_made(transport)
            loop.create_task(self.reach())

        async def reach(self):
            # The handshake of TCP takes a round trip.
            await asyncio.sleep(2 * delay_s)
            _, back = await loop.create_connection(lambda: Half(delay_s), "127.0.0.1", port)
            back.join(self)
            self.join(back)

    server = await loop.create_server(lambda: Front(delay_s), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]) / 1000))
