"""An echo with the package websockets: it offers compression, and pings each client after 20 s."""

import asyncio
import os

from websockets.asyncio.server import serve


async def echo(websocket):
    async for message in websocket:
        await websocket.send(message)


async def main():
    async with serve(echo, "127.0.0.1", int(os.environ["PORT"])) as server:
        await server.serve_forever()


asyncio.run(main())
