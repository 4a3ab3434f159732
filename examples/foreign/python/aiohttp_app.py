"""aiohttp: HTTP at /hello and an echo over WebSocket at /ws. Idle connections are closed after 75 s."""

import os

from aiohttp import WSMsgType, web


async def hello(request):
    return web.json_response({"hello": "world"})


async def echo(request):
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type == WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type == WSMsgType.BINARY:
            await socket.send_bytes(message.data)
    return socket


app = web.Application()
app.add_routes([web.get("/hello", hello), web.get("/ws", echo)])
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]), print=None)
