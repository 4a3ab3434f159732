import json
import os
import time

from locust import User, constant_pacing, task
from locust.exception import StopUser
from websocket import create_connection

CLIENTS, TRIPS = int(os.environ["CLIENTS"]), int(os.environ["TRIPS"])
done = []


class Echo(User):
    wait_time = constant_pacing(0.1)

    def on_start(self):
        self.socket, self.n = create_connection(self.host), 0

    @task
    def echo(self):
        start = time.perf_counter()
        self.socket.send(json.dumps({"n": self.n}))
        text = self.socket.recv()
        assert json.loads(text)["n"] == self.n
        # What Locust's documentation asks of clients of other protocols: this is what it measures.
        response_time = (time.perf_counter() - start) * 1000
        self.environment.events.request.fire(
            request_type="WS", name="echo", response_time=response_time, response_length=len(text), exception=None, context={}
        )
        self.n += 1
        if self.n == TRIPS:
            done.append(self.n)
            if len(done) == CLIENTS:
                print("round trips:", sum(done), flush=True)
                self.environment.runner.quit()
            raise StopUser
