"""Python's own http.server as it is: a thread for each connection, HTTP/1.0, so each answer ends its connection.

Its listen backlog is 5.
"""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hello(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"hello":"world"}'
        self.send_response(200 if self.path == "/hello" else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Hello).serve_forever()
