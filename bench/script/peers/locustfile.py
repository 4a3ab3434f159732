import json
import os

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
        self.socket.send(json.dumps({"n": self.n}))
        assert json.loads(self.socket.recv())["n"] == self.n
        self.n += 1
        if self.n == TRIPS:
            done.append(self.n)
            if len(done) == CLIENTS:
                print("round trips:", sum(done), flush=True)
                self.environment.runner.quit()
            raise StopUser
