from locust import FastHttpUser, constant_throughput, task


class Asker(FastHttpUser):
    wait_time = constant_throughput(50)

    @task
    def ask(self):
        self.client.get("/")
