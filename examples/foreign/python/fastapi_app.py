"""FastAPI under uvicorn: HTTP at /hello and an echo over WebSocket at /ws. uvicorn closes connections that are idle for 5 s, without
saying so in its answers, and pings WebSockets after 20 s."""

from fastapi import FastAPI, WebSocket, WebSocketDisconnect

app = FastAPI()


@app.get("/hello")
async def hello():
    return {"hello": "world"}


@app.websocket("/ws")
async def echo(socket: WebSocket):
    await socket.accept()
    try:
        while True:
            await socket.send_text(await socket.receive_text())
    except WebSocketDisconnect:
        pass
