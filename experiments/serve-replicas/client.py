"""Clients that do not wait for answers before they send the next request, and clients that do."""

import http.client
import random
import threading
import time
from dataclasses import dataclass

# After the first attempt.
RETRIES = 3
# Before the first retry; twice as long before each further one.
BACKOFF_S = 0.1
# A shorter time than HAProxy's timeout http-keep-alive.
IDLE_S = 5.0
SETTLE_S = 1.0
AGAIN = {429, 502, 503, 504}


@dataclass
class Outcome:
    due: float
    seconds: float
    status: int | None
    retries: int
    answer: bytes


class Client:
    """One connection, opened anew when it was closed."""

    def __init__(self, port):
        self.port, self.connection, self.used = port, None, 0.0

    def once(self, path, body):
        if self.connection is not None and time.monotonic() - self.used > IDLE_S:
            self.close()
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            self.connection.request("POST", path, body, {"Content-Type": "image/jpeg"})
            answer = self.connection.getresponse()
            content = answer.read()
            self.used = time.monotonic()
            return answer.status, answer.getheader("Retry-After"), content
        except (http.client.HTTPException, OSError):
            self.close()
            return None, None, b""

    def ask(self, path, body, due):
        for attempt in range(RETRIES + 1):
            status, wait, answer = self.once(path, body)
            if status is not None and status not in AGAIN or attempt == RETRIES:
                return Outcome(due, time.monotonic() - due, status, attempt, answer)
            time.sleep(max(BACKOFF_S * 2**attempt, float(wait or 0)))

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


class Schedule:
    """Requests at random moments (a Poisson process) until `stop`, whether answers have come or not. A request's time begins when it was due."""

    def __init__(self, port, path, bodies, per_s, clients=64):
        self.port, self.path, self.bodies, self.per_s = port, path, bodies, per_s
        self.outcomes, self.lock, self.count, self.ended = [], threading.Lock(), 0, threading.Event()
        self.due, self.end = time.monotonic(), float("inf")
        self.random = random.Random(29)
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def work(self):
        client = Client(self.port)
        while True:
            with self.lock:
                number, self.count = self.count, self.count + 1
                self.due += self.random.expovariate(self.per_s)
                due = self.due
            self.ended.wait(max(0.0, due - time.monotonic()))
            # What was due before is still sent, even if all clients were busy then.
            if due > self.end:
                break
            outcome = client.ask(self.path, self.bodies[number % len(self.bodies)], due)
            with self.lock:
                self.outcomes.append(outcome)
        client.close()

    def stop(self):
        self.end = time.monotonic()
        self.ended.set()
        for thread in self.threads:
            thread.join()
        return self.outcomes


def saturate(port, path, bodies, seconds, clients, look):
    """Answers per second for clients that ask again as soon as they are answered, how many requests failed, how many were sent again, and
    what `look` returned at the beginning and at the end of that time."""
    answered, failed, again, ended = [], [], [], threading.Event()

    def work(number):
        client = Client(port)
        while not ended.is_set():
            outcome = client.ask(path, bodies[number % len(bodies)], time.monotonic())
            (answered if outcome.status == 200 else failed).append(time.monotonic())
            again.extend([outcome] if outcome.retries else [])
        client.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    # Until the queues are full.
    time.sleep(SETTLE_S)
    began, first = time.monotonic(), look()
    time.sleep(seconds)
    end, last = time.monotonic(), look()
    ended.set()
    for thread in threads:
        thread.join()
    per_s = sum(began <= moment < end for moment in answered) / (end - began)
    return per_s, len(failed), len(again), first, last
