#!/usr/bin/env python3
"""Time and memory until hadal is ready on a checkpoint of the true size (sparse files, all zeros; ~100 MB of disk).

    python bench/startup/sparse_checkpoint.py build/bin/hadal [--tokenizer TOKENIZER.json]

Prints seconds and peak resident memory of `hadal inspect` and of `hadal serve` until its line `listening on`, each
against its bar (10 s, 2 GB), and exits with 1 if one is missed. The files are written by tools/sparse_checkpoint.py
into a temporary folder. Without a tokenizer file the tiny model's is used.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
MAX_SECONDS = 10.0
MAX_BYTES = 2e9


def peak_bytes(pid):
    """Peak resident memory so far; 0 when the process has gone."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


class Watched:
    """A child process whose peak memory is read until it ends."""

    def __init__(self, command):
        self.start = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.peak = 0
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def _watch(self):
        while self.process.poll() is None:
            self.peak = max(self.peak, peak_bytes(self.process.pid))
            time.sleep(0.01)

    def seconds(self):
        return time.monotonic() - self.start

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.thread.join()


def inspect(hadal, model):
    run = Watched([hadal, "inspect", str(model)])
    text = run.process.stdout.read()
    run.process.wait()
    seconds = run.seconds()
    run.stop()
    if run.process.returncode != 0:
        sys.exit("hadal inspect failed")
    return text, seconds, run.peak


def serve(hadal, model):
    run = Watched([hadal, "serve", "--model", str(model), "--port", "0"])
    ready = any(line.startswith("listening on") for line in run.process.stdout)
    seconds = run.seconds()
    run.stop()
    if not ready:
        sys.exit("hadal serve ended before it was ready")
    return seconds, run.peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hadal")
    parser.add_argument("--tokenizer", default=str(REPO / "models/tiny/tokenizer.json"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hadal-sparse-") as folder:
        subprocess.run([sys.executable, REPO / "tools/sparse_checkpoint.py", folder, "--tokenizer", arguments.tokenizer],
                       check=True, stdout=subprocess.DEVNULL)
        text, *inspected = inspect(arguments.hadal, folder)
        served = serve(arguments.hadal, folder)
        size = sum(path.stat().st_size for path in pathlib.Path(folder).glob("*.safetensors"))
    print(text.splitlines()[1].strip())
    print(f"{size / 1e9:.0f} GB of files")
    missed = False
    for name, (seconds, peak) in (("inspect", inspected), ("serve", served)):
        missed |= seconds > MAX_SECONDS or peak > MAX_BYTES
        print(f"{name:8} ready in {seconds:5.2f} s (bar {MAX_SECONDS:.0f}), peak {peak / 1e6:6.0f} MB (bar {MAX_BYTES / 1e6:.0f})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
