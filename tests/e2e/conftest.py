import json

import pytest

from hadal_server import TINY, Server


@pytest.fixture(scope="session")
def server():
    server = Server()
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def client(server):
    return server.client()


@pytest.fixture(scope="session")
def samples():
    """Dialogues with the tokens that the embedded model was found to answer, greedily."""
    lines = (TINY / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
