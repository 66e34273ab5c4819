"""Processes: replicas of `locdiff serve`, and HAProxy in front of them."""

import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

# As in deploy/: one thread, and images may wait for ten seconds.
SETTINGS = {"RAYON_NUM_THREADS": "1", "LOCDIFF_WORKERS": "1", "LOCDIFF_MAX_WAIT_MS": "10000"}
# `add server` does not use default-server: the same options as in deploy/haproxy/haproxy.cfg, from there.
CONFIGURATION = Path("deploy/haproxy/haproxy.cfg")
CHECKS = re.search(r"^ *default-server (.*)$", CONFIGURATION.read_text(), re.MULTILINE).group(1)
TICKS = os.sysconf("SC_CLK_TCK")


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)


class Replica:
    def __init__(self, program, home, name):
        self.name, self.began = name, time.monotonic()
        command = [program, "serve", "--port", "0", "--log", "error", "--model", "earth-view"]
        environment = {**os.environ, **SETTINGS, "LOCDIFF_HOME": home}
        # A session of its own: Linux shares the processors among sessions (autogroup), as it does among services.
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.address = self.process.stdout.readline().strip().removeprefix("http://")

    def wait(self):
        wait_until(self.is_ready, f"{self.name} was never ready")

    def is_ready(self):
        try:
            return self.get("/health/ready") == "ready\n"
        except (urllib.error.URLError, OSError):
            return False

    def get(self, path):
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return answer.read().decode()

    def waiting_images(self):
        return float(re.search(r"^locdiff_waiting_images (\S+)", self.get("/metrics"), re.MULTILINE).group(1))

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident_mb(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text()).group(1)) / 1024

    def stop(self, how=signal.SIGTERM):
        """Sends a signal, waits, and returns the exit code."""
        self.process.send_signal(how)
        return self.process.wait(timeout=60)


class Proxy:
    """HAProxy with the shipped configuration; only the list of replicas is the experiment's."""

    def __init__(self, folder, replicas):
        self.admin = folder / "admin.sock"
        with socket.socket() as free, socket.socket() as other:
            free.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            self.port, stats = free.getsockname()[1], other.getsockname()[1]
        servers = "".join(f"    server {replica.name} {replica.address}\n" for replica in replicas)
        (folder / "replicas.cfg").write_text(f"backend replicas\n{servers}")
        environment = {
            **os.environ,
            "LOCDIFF_LISTEN": f"127.0.0.1:{self.port}",
            "LOCDIFF_STATS": f"127.0.0.1:{stats}",
            "LOCDIFF_ADMIN": str(self.admin),
        }
        self.log = (folder / "haproxy.log").open("w")
        command = ["haproxy", "-db", "-f", str(CONFIGURATION), "-f", str(folder / "replicas.cfg")]
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log, start_new_session=True)
        wait_until(self.admin.exists, "HAProxy did not start")
        self.wait_for({replica.name for replica in replicas})

    def command(self, text):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.admin))
            connection.sendall(f"{text}\n".encode())
            parts = iter(lambda: connection.recv(65536), b"")
            return b"".join(parts).decode()

    def table(self):
        """Of each replica: its state, and its open requests."""
        head, *lines = self.command("show stat replicas 4 -1").lstrip("# ").strip().splitlines()
        rows = [dict(zip(head.split(","), line.split(","))) for line in lines]
        return {row["svname"]: (row["status"], int(row["scur"])) for row in rows}

    def wait_for(self, names):
        """Until the replicas that get requests are these."""
        up = lambda: {name for name, (state, _) in self.table().items() if state.startswith("UP")}
        wait_until(lambda: up() == names, f"HAProxy did not come to use {names}")

    def add(self, replica):
        name = f"replicas/{replica.name}"
        said = self.command(f"add server {name} {replica.address} {CHECKS}")
        if "registered" not in said:
            raise RuntimeError(said)
        # In this order: otherwise it would get requests before its first check.
        self.command(f"enable server {name}; set server {name} health down; enable health {name}")

    def set_state(self, replica, state):
        self.command(f"set server replicas/{replica.name} state {state}")

    def drain(self, replica):
        """No new requests for it; returns when it has none left."""
        self.set_state(replica, "drain")
        wait_until(lambda: self.table()[replica.name][1] == 0, f"{replica.name} still has requests")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()
