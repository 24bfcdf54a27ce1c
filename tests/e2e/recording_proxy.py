"""Passes requests on to a server and keeps what was asked and answered."""

import dataclasses
import http.client
import http.server
import json
import threading


@dataclasses.dataclass
class Exchange:
    method: str
    path: str
    headers: dict
    body: bytes
    status: int

    def json(self):
        return json.loads(self.body)


class RecordingProxy:
    """`url` is where clients find it, `server` what it passes them to; `exchanges` grows as they are answered."""

    def __init__(self, server):
        self.server = server
        self.exchanges = []
        exchanges = self.exchanges

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                dropped = ("host", "connection", "content-length", "transfer-encoding")
                headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
                connection = http.client.HTTPConnection(server.host, server.port)
                try:
                    connection.request(self.command, self.path, body, headers)
                    response = connection.getresponse()
                    exchanges.append(Exchange(self.command, self.path, dict(self.headers), body, response.status))
                    self.send_response(response.status)
                    for name, value in response.getheaders():
                        if name.lower() not in dropped:
                            self.send_header(name, value)
                    self.send_header("Connection", "close")
                    self.end_headers()
                    while piece := response.read1():
                        self.wfile.write(piece)
                        self.wfile.flush()
                finally:
                    connection.close()
                self.close_connection = True

            do_GET = do_HEAD = do_POST = pass_on  # noqa: N815

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def posts(self, path):
        """What was posted to a path and answered with 200, whatever its query string."""
        return [
            each
            for each in self.exchanges
            if (each.method, each.path.partition("?")[0], each.status) == ("POST", path, 200)
        ]

    def close(self):
        self._server.shutdown()
        self._server.server_close()
