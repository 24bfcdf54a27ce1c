"""A server that answers from a script, and what scripts are made of."""

import contextlib
import json
import tempfile

from hadal_server import Server, run_hadal

MODEL = "DeepSeek-V4.1-Flash"
DSML = "｜DSML｜"


def calls(*invocations):
    """Tool calls as the model writes them; each is a name and its arguments."""
    lines = [f"<{DSML} calls>"]
    for name, arguments in invocations:
        lines.append(f'<{DSML} invoke name="{name}">')
        for key, value in arguments.items():
            is_text = isinstance(value, str)
            text = value if is_text else json.dumps(value, ensure_ascii=False)
            lines.append(f'<{DSML} parameter name="{key}" string="{json.dumps(is_text)}">{text}</{DSML} parameter>')
        lines.append(f"</{DSML} invoke>")
    return "\n\n" + "\n".join([*lines, f"</{DSML} calls>"])


def cut(text, size=7):
    """The text in pieces of that many characters."""
    return [text[i : i + size] for i in range(0, len(text), size)]


def answer(*texts, **options):
    return {"pieces": [piece for text in texts for piece in cut(text)]} | options


@contextlib.contextmanager
def serving(*answers, options=(), model=None):
    """A server whose answers those are, in order and again from the first."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as script:
        script.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in answers)
        script.flush()
        server = Server("--script", script.name, *options, model=model)
    try:
        yield server
    except BaseException:
        server.kill()
        raise
    assert server.stop() == 0


def render(protocol, request, **options):
    """The prompt that a request becomes."""
    line = {"id": 1, "protocol": protocol, "request": request} | options
    (result,) = run_hadal("recipe", "render", stdin=json.dumps(line) + "\n").stdout.splitlines()
    return json.loads(result)["result"]["prompt"]


class Sent:
    """Remembers the bodies that a client of either package sends: Sent(openai).client(openai.OpenAI(...))."""

    def __init__(self):
        self.bodies = []

    def http_client(self, package):
        """For `http_client=` of a client of that package."""

        def remember(request):
            self.bodies.append(json.loads(request.content))

        return package.DefaultHttpxClient(event_hooks={"request": [remember]})
