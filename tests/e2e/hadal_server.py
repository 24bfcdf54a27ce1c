"""Starts `hadal serve` for tests and reads what it exposes."""

import http.client
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time

import openai
from prometheus_client.parser import text_string_to_metric_families

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HADAL_TEST_BINARY", ROOT / "build/bin/hadal")).resolve()
TINY = ROOT / "models/tiny"
SLOWNESS = float(os.environ.get("HADAL_TEST_SLOWNESS", "1"))
START_SECONDS = 60 * SLOWNESS
REQUEST_SECONDS = 60 * SLOWNESS


def clean_environment():
    """Settings of whoever runs the tests must not reach the server."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("HADAL_", "DEEPINFER_"))}


def run_hadal(*arguments, stdin="", check=True, environment=None):
    """Runs the binary to its end."""
    run = subprocess.run(
        [BINARY, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=REQUEST_SECONDS,
        env=clean_environment() | (environment or {}),
        check=False,
    )
    if check:
        assert run.returncode == 0, f"hadal {arguments} exited with {run.returncode}:\n{run.stderr}"
    return run


class Server:
    """A running server. `url` is where it listens, `model` the name that it gives its model (None names none)."""

    def __init__(self, *options, model=TINY, key="unused"):
        self.key = key
        self._log = tempfile.TemporaryFile(mode="w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [BINARY, "serve", *([] if model is None else ["--model", str(model)]), "--port", "0", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=clean_environment(),
        )
        self.url = self._wait_for_address()
        self.host, port = re.fullmatch(r"http://(.+):(\d+)", self.url).groups()
        self.port = int(port)
        self.model = self.client().models.list().data[0].id

    def _wait_for_address(self):
        found = []

        def read():
            for line in self._process.stdout:  # also keeps the pipe from filling up
                match = re.fullmatch(r"listening on (http://\S+)\n", line)
                if match:
                    found.append(match.group(1))
                    listening.set()
            listening.set()

        listening = threading.Event()
        threading.Thread(target=read, daemon=True).start()
        if not listening.wait(START_SECONDS) or not found:
            self._process.kill()
            raise AssertionError(f"the server did not start:\n{self.log()}")
        return found[0]

    def log(self):
        self._log.seek(0)
        return self._log.read()

    def stop(self, seconds=30 * SLOWNESS):
        """Asks it to end as an operator would; its exit status."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise AssertionError(f"the server did not end on SIGTERM:\n{self.log()}") from None

    def kill(self):
        self._process.kill()
        self._process.wait()

    def client(self, **options):
        return openai.OpenAI(
            base_url=f"{self.url}/v1",
            **{"api_key": self.key, "timeout": REQUEST_SECONDS, "max_retries": 0} | options,
        )

    def request(self, method, path, body=None, headers=None):
        """Plain HTTP: status, headers and body. A body that is not bytes is sent as JSON."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=REQUEST_SECONDS)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"} | (headers or {}))
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def send_head(self, path, headers, begin=b""):
        """A POST whose body is only begun: status, headers and body of the answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=REQUEST_SECONDS)
        try:
            connection.putrequest("POST", path)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(begin)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def _memory(self, name):
        status = pathlib.Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return int(re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE).group(1)) * 1024

    def resident_bytes(self):
        return self._memory("VmRSS")

    def peak_bytes(self):
        return self._memory("VmHWM")

    def cpu_seconds(self):
        """CPU time of all its threads so far."""
        fields = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def limit_descriptors(self, count):
        """Lowers the number of files that the running server may open."""
        hard = resource.prlimit(self._process.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(self._process.pid, resource.RLIMIT_NOFILE, (count, hard))

    def is_running(self):
        return self._process.poll() is None

    def metrics(self):
        """All samples of /metrics: {(name, labels as a sorted tuple): value}."""
        status, headers, body = self.request("GET", "/metrics")
        assert status == 200
        assert headers.get_content_type() == "text/plain"
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(body.decode())
            for sample in family.samples
        }

    def metric(self, name, **labels):
        return self.metrics().get((name, tuple(sorted(labels.items()))), 0)


def wait_until(condition, seconds=20 * SLOWNESS):
    """Whether the condition became true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())
