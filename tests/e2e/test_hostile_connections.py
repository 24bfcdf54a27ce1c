"""Connections that no client should make, over raw sockets: smuggling, slowness, silence and too many of them."""

import contextlib
import json
import resource
import socket
import struct
import time

import pytest
from hadal_server import SLOWNESS, Server, wait_until

PATIENCE = 20 * SLOWNESS
CHAT = "/v1/chat/completions"
STREAMS = [CHAT, "/v1/completions", "/v1/messages", "/v1/responses"]


@pytest.fixture(scope="module")
def impatient():
    """A server with short time-outs."""
    server = Server(
        *("--header-timeout", "500ms", "--body-timeout", "500ms", "--idle-timeout", "1s", "--write-timeout", "1s"),
        *("--max-stream-buffer", "64KiB"),
    )
    yield server
    assert server.stop() == 0


@contextlib.contextmanager
def connection(server, receive_buffer=None):
    with socket.socket() as peer:
        if receive_buffer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        peer.settimeout(PATIENCE)
        peer.connect((server.host, server.port))
        yield peer


def read_to_end(peer):
    """What came until the server closed; a connection that stays open is an error."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := peer.recv(65536):
            found += piece
    return found


def exchange(server, data):
    """Everything that the server says to these bytes before it closes."""
    with connection(server) as peer:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            peer.sendall(data)
        return read_to_end(peer)


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def request_body(path, stream=True, tokens=2000):
    body = {"model": "tiny", "stream": stream}
    if path == "/v1/completions":
        return body | {"prompt": "x", "max_tokens": tokens, "ignore_eos": True}
    if path == "/v1/responses":
        return body | {"input": "x", "max_output_tokens": tokens, "ignore_eos": True}
    return body | {"messages": [{"role": "user", "content": "x"}], "max_tokens": tokens, "ignore_eos": True}


def post(path, body, headers=""):
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


def answers_on(server):
    assert server.is_running()
    assert server.request("GET", "/healthz")[0] == 200


SMUGGLED = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 2\r\n\r\n{}",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 0x2\r\n\r\n{}",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length : 2\r\n\r\n{}",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"POST /tokenize HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /tokenize HTTP/1.1\nHost: x\nContent-Length: 0\n\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\nX: y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz  HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /hea\x7flthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n{}",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n{}",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;" + b"x" * 100_000 + b"\r\n{}\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: x\r\nExpect: 200-maybe\r\nContent-Length: 2\r\n\r\n{}",
    ],
    ids=lambda data: data[:90].decode("latin-1").encode("unicode_escape").decode(),
)
def test_what_two_parsers_could_read_differently_is_refused(impatient, data):
    answer = exchange(impatient, data + SMUGGLED)
    assert status_of(answer) in (400, 413, 417, 431, 501, 505), answer[:200]
    assert answer.count(b"\r\nDate: ") == 1, "the bytes behind it were taken for a request"
    assert b"hadal_build_info" not in answer
    answers_on(impatient)


def test_a_folded_header_is_one_header(impatient):
    folded = b"POST /tokenize HTTP/1.1\r\nHost: x\r\nX: a\r\n Content-Length: 300\r\nContent-Length: 2\r\n\r\n{}"
    answer = exchange(impatient, folded + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.endswith(b"ok\n"), answer


def test_upgrades_are_not_followed(impatient):
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    answer = exchange(impatient, b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + upgrade + b"\r\n")
    assert status_of(answer) == 200
    assert b"101" not in answer.split(b"\r\n")[0]
    assert status_of(exchange(impatient, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) in (400, 505)


def test_tls_on_a_plain_port_is_closed(impatient):
    assert exchange(impatient, bytes.fromhex("16030100c8010000c40303") + b"\x00" * 200) == b""
    answers_on(impatient)


def test_expect_is_answered_before_the_body(impatient):
    with connection(impatient) as peer:
        head = b"POST /tokenize HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 15\r\n\r\n"
        peer.sendall(head)
        assert peer.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.sendall(b'{"prompt": "x"}')
        assert status_of(peer.recv(65536)) == 200
    # Where the answer is already known nobody has to send a body.
    answer = exchange(impatient, b"POST /nothing HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 15\r\n\r\n")
    assert status_of(answer) == 404


@pytest.mark.parametrize(
    "begin",
    [b"GET /healthz HT", b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"],
    ids=["headers", "body"],
)
def test_bytes_that_trickle_in_do_not_hold_a_connection(impatient, begin):
    with connection(impatient) as peer:
        peer.sendall(begin)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(int(PATIENCE / 0.05)):
                peer.sendall(b"a")
                time.sleep(0.05)
                peer.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    answer = peer.recv(65536)
                    assert status_of(answer) == 408
                    return
                peer.settimeout(PATIENCE)
        pytest.fail("the server went on waiting")


def test_an_idle_connection_is_closed(impatient):
    with connection(impatient) as peer:
        assert peer.recv(1) == b""
    with connection(impatient) as peer:
        peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert status_of(read_to_end(peer)) == 200


@pytest.mark.parametrize("path", STREAMS)
def test_a_reset_or_half_closed_stream_ends_the_request(server, path):
    for ends in ("reset", "half"):
        with connection(server) as peer:
            peer.sendall(post(path, request_body(path)))
            assert status_of(peer.recv(100)) == 200
            if ends == "reset":
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                peer.shutdown(socket.SHUT_WR)
                read_to_end(peer)
        assert wait_until(lambda: server.metric("hadal_running") == 0)
    answers_on(server)


def test_a_reader_that_never_reads_is_given_up(impatient):
    """The answer is more than the buffers of the system hold. tests/unit/server does the same with streams."""
    before = impatient.metric("hadal_http_timeouts_total")
    body = {"prompt": "deep sea " * 1_000_000, "return_token_strs": True}
    with connection(impatient, receive_buffer=2048) as peer:
        peer.sendall(post("/tokenize", body))
        assert wait_until(lambda: impatient.metric("hadal_http_timeouts_total") > before, 3 * PATIENCE)
        assert wait_until(lambda: impatient.metric("hadal_http_connections") <= 1)
    answers_on(impatient)


def test_thousands_of_idle_connections_do_not_disturb(server):
    """As many as this process may have, up to 5000."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 6000), hard))
    try:
        count = min(5000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
        before = server.resident_bytes()
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(connection(server))
            assert wait_until(lambda: server.metric("hadal_http_connections") >= count)
            assert server.resident_bytes() - before < count * 32 * 1024
            status, _, _ = server.request("POST", "/v1/completions", {"model": "tiny", "prompt": "x", "max_tokens": 2})
            assert status == 200
        assert wait_until(lambda: server.metric("hadal_http_connections") < 20)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_server_without_descriptors_neither_spins_nor_dies():
    """Its limit is lowered while it runs, so that accepting fails with EMFILE."""
    server = Server()
    try:
        server.limit_descriptors(64)
        with contextlib.ExitStack() as stack:
            for _ in range(200):
                peer = stack.enter_context(connection(server))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    peer.sendall(b"GET /healthz HTTP/1.1\r\n")  # begun, so that it is not merely idle
            assert wait_until(lambda: "cannot accept" in server.log())
            used = server.cpu_seconds()
            time.sleep(1)
            assert server.cpu_seconds() - used < 0.5, "it spins"
        assert wait_until(lambda: server.request("GET", "/healthz")[0] == 200)
        assert server.metric("hadal_http_accept_errors_total") > 0
    finally:
        assert server.stop() == 0


def test_every_route_asks_for_the_key():
    server = Server("--api-key", "secret", key="secret")
    try:
        routes = [
            ("POST", "/v1/chat/completions"),
            ("POST", "/v1/completions"),
            ("POST", "/v1/messages"),
            ("POST", "/v1/messages/count_tokens"),
            ("POST", "/v1/responses"),
            ("GET", "/v1/responses/resp_1"),
            ("DELETE", "/v1/responses/resp_1"),
            ("GET", "/v1/responses/resp_1/input_items"),
            ("POST", "/v1/responses/resp_1/cancel"),
            ("POST", "/tokenize"),
            ("POST", "/detokenize"),
            ("GET", "/v1/models"),
            ("GET", "/v1/models/tiny"),
            ("GET", "/metrics"),
            ("GET", "/"),
            ("OPTIONS", "/v1/models"),
            ("OPTIONS", "/v1/chat/completions"),
            ("HEAD", "/metrics"),
            ("GET", "/v1/models/"),
            ("GET", "//v1/models"),
            ("GET", "/v1//models"),
            ("GET", "/v1%2Fmodels"),
            ("GET", "/%761/models"),
            ("GET", "/v1/./models"),
            ("GET", "/healthz/../metrics"),
            ("GET", "/healthz/"),
            ("GET", "/healthz%2f..%2fmetrics"),
            ("GET", "/healthz;/metrics"),
            ("GET", "http://x/metrics"),
            ("GET", "/nothing"),
        ]
        wrong = [
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "secret"},
            {"Authorization": "Basic secret"},
            {"Authorization": "Bearer secret "  "x"},
            {"Authorization": "Bearer "},
            {"Authorization": "Bearer secre"},
            {"Authorization": "Bearer secretsecret"},
            {"x-api-key": "wrong"},
            {"x-api-key": ""},
            {"x-api-key": "secret", "Authorization": "Bearer wrong"},
            {"x-api-key": "wrong", "Authorization": "Bearer secret"},
        ]
        for method, path in routes:
            for headers in wrong:
                lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                answer = exchange(server, f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{lines}\r\n".encode())
                assert status_of(answer) == 401, (method, path, headers, answer[:200])
                assert b"hadal_build_info" not in answer and b'"tiny"' not in answer
        for doubled in ("Authorization: Bearer secret\r\nAuthorization: Bearer secret\r\n", "x-api-key: secret\r\nX-API-Key: secret\r\n"):
            answer = exchange(server, f"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{doubled}\r\n".encode())
            assert status_of(answer) == 401
        for path in ("/healthz", "/readyz"):
            answer = exchange(server, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            assert status_of(answer) == 200
        # With the key the same spellings are no routes.
        for path in ("/v1/models/", "//v1/models", "/v1//models", "/v1%2Fmodels", "/healthz/../metrics"):
            assert server.request("GET", path)[0] == 404, path
        assert server.request("GET", "/v1/models", headers={"x-api-key": "secret"})[0] == 200
    finally:
        assert server.stop() == 0
