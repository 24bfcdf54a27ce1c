"""The command-line agents that users point at local servers, as they are published: one turn with a tool each.

run_e2e (tools/common.sh) installs them from package-lock.json. They get a home of their own, a key that is none, and
a proxy for everything but this machine that does not exist, so that nothing is asked of anybody else.
"""

import contextlib
import json
import os
import subprocess

import pytest
from hadal_server import REQUEST_SECONDS, ROOT
from recording_proxy import RecordingProxy
from scripted import MODEL, answer, calls, cut, render, serving

EOS = "<｜end▁of▁sentence｜>"
INSTALLED = ROOT / ".agents"
COMMAND = "ls -1; echo marker-$((40+2))"


def program(name, pattern):
    found = [] if os.environ.get("HADAL_TEST_AGENTS") == "none" else sorted(INSTALLED.glob(pattern))
    if not found:
        pytest.skip(f"{name} is not installed (no npm, or its registry lacks the package); see tests/e2e/README.md")
    return found[0]


@pytest.fixture
def codex(tmp_path):
    return Agent(program("codex", "node_modules/codex-linux-*/vendor/*/bin/codex"), tmp_path)


@pytest.fixture
def claude(tmp_path):
    return Agent(program("claude", "node_modules/@anthropic-ai/claude-code-linux-*/claude"), tmp_path)


class Agent:
    def __init__(self, binary, folder):
        self.binary = binary
        self.home = folder / "home"
        self.work = folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        (self.work / "notes.txt").write_text("hello\n", encoding="utf-8")

    def run(self, *arguments, **environment):
        nowhere = "http://127.0.0.1:9"
        run = subprocess.run(
            [self.binary, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=self.work,
            timeout=2 * REQUEST_SECONDS,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "HTTP_PROXY": nowhere,
                "HTTPS_PROXY": nowhere,
                "NO_PROXY": "127.0.0.1",
            }
            | environment,
        )
        assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
        return run.stdout


def run_codex(codex, url, prompt, *options):
    (codex.home / "config.toml").write_text(
        f"""
model = "{MODEL}"
model_provider = "hadal"
model_reasoning_effort = "high"

[model_providers.hadal]
name = "hadal"
base_url = "{url}/v1"
wire_api = "responses"
""",
        encoding="utf-8",
    )
    flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return codex.run("exec", *flags, *options, prompt, CODEX_HOME=str(codex.home))


def run_claude(claude, url, prompt, *options):
    return claude.run(
        "-p",
        prompt,
        "--output-format",
        "json",
        *options,
        ANTHROPIC_BASE_URL=url,
        ANTHROPIC_AUTH_TOKEN="unused",
        ANTHROPIC_MODEL=MODEL,
        ANTHROPIC_DEFAULT_HAIKU_MODEL=MODEL,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
    )


@contextlib.contextmanager
def recorded(*answers, options=()):
    with serving(*answers, options=options) as server:
        proxy = RecordingProxy(server)
        try:
            yield proxy
        finally:
            proxy.close()


def test_codex_runs_a_command(codex):
    first = "I list them.</think>" + "I look." + calls(("exec_command", {"cmd": COMMAND}))
    with recorded({"pieces": cut(first)}, answer("Seen.</think>", "There is notes.txt.")) as proxy:
        out = run_codex(codex, proxy.url, "List the files")
        assert out.strip() == "There is notes.txt."
        assert {each.status for each in proxy.exchanges} == {200}
        first_request, second = (each.json() for each in proxy.posts("/v1/responses"))
    (output,) = [item for item in second["input"] if item["type"] == "function_call_output"]
    assert "notes.txt\nmarker-42" in output["output"]
    assert "namespace" in {tool["type"] for tool in first_request["tools"]}
    prompt = render("responses", second)
    assert "<think>" + first + EOS in prompt
    assert "notes.txt\nmarker-42" in prompt


def test_codex_edits_with_apply_patch(codex):
    """A custom tool: its text goes to the agent as it was written, and back into the prompt."""
    patch = "*** Begin Patch\n*** Add File: new.txt\n+one \"two\" \\ three 🙂\n*** End Patch"
    first = "I write it.</think>" + "I add it." + calls(("apply_patch", {"input": patch}))
    catalog = codex.home / "models.json"
    catalog.write_text(
        json.dumps(
            {
                "models": [
                    {
                        "slug": MODEL,
                        "display_name": MODEL,
                        "description": "A local model",
                        "default_reasoning_level": "high",
                        "supported_reasoning_levels": [{"effort": "high", "description": "Thinks"}],
                        "shell_type": "unified_exec",
                        "apply_patch_tool_type": "freeform",
                        "visibility": "list",
                        "supported_in_api": True,
                        "supports_reasoning_summaries": True,
                        "supports_parallel_tool_calls": True,
                        "support_verbosity": False,
                        "priority": 1,
                        "base_instructions": "You are a coding agent.",
                        "truncation_policy": {"mode": "tokens", "limit": 10000},
                        "context_window": 131072,
                        "experimental_supported_tools": [],
                        "input_modalities": ["text"],
                    }
                ]
            }
        ),
        encoding="utf-8",
    )
    with recorded({"pieces": cut(first)}, answer("Done.</think>", "Added.")) as proxy:
        out = run_codex(codex, proxy.url, "Add a file", "-c", f"model_catalog_json={json.dumps(str(catalog))}")
        assert out.strip() == "Added."
        assert (codex.work / "new.txt").read_text(encoding="utf-8") == 'one "two" \\ three 🙂\n'
        first_request, second = (each.json() for each in proxy.posts("/v1/responses"))
    assert ("custom", "apply_patch") in {(tool["type"], tool.get("name")) for tool in first_request["tools"]}
    (call,) = [item for item in second["input"] if item["type"] == "custom_tool_call"]
    assert call["input"] == patch
    assert "<think>" + first + EOS in render("responses", second)


def test_claude_runs_a_command(claude):
    first = "I list them.</think>" + "I look." + calls(("Bash", {"command": COMMAND, "description": "List the files"}))
    with recorded({"pieces": cut(first)}, answer("Seen.</think>", "There is notes.txt.")) as proxy:
        result = json.loads(run_claude(claude, proxy.url, "List the files", "--allowedTools", "Bash"))
        assert (result["result"], result["is_error"]) == ("There is notes.txt.", False)
        assert {each.status for each in proxy.exchanges} == {200}
        posts = proxy.posts("/v1/messages")
        second = posts[1].json()
    assert posts[0].path.endswith("?beta=true")
    (output,) = [
        block for turn in second["messages"] for block in turn["content"] if isinstance(block, dict) and block["type"] == "tool_result"
    ]
    assert output["content"] == "notes.txt\nmarker-42"
    assert not output["is_error"]
    prompt = render("messages", second)
    assert "<think>" + first + EOS in prompt
    assert "<tool_result>notes.txt\nmarker-42</tool_result>" in prompt


def test_claude_reads_and_writes_in_parallel(claude):
    """Two calls in one turn, each with its result, and text of every kind in arguments."""
    text = 'a "quoted" \\ line 🙂\n'
    target = claude.work / "new.txt"
    invocations = [("Read", {"file_path": str(claude.work / "notes.txt")}), ("Write", {"file_path": str(target), "content": text})]
    first = "Both.</think>" + calls(*invocations)
    with recorded({"pieces": cut(first)}, answer("Done.</think>", "Written.")) as proxy:
        result = json.loads(run_claude(claude, proxy.url, "Copy", "--allowedTools", "Read", "Write"))
        assert result["result"] == "Written."
        second = proxy.posts("/v1/messages")[1].json()
    assert target.read_text(encoding="utf-8") == text
    prompt = render("messages", second)
    assert "<think>" + first + EOS in prompt
    assert prompt.count("<tool_result>") == 2


def test_claude_asks_for_less_when_the_context_is_short(claude):
    """B32: it reads both numbers out of the error and asks again with fewer max_tokens."""
    with recorded(answer("x</think>", "Fits.")) as proxy:
        run_claude(claude, proxy.url, "Hi")
        body = proxy.posts("/v1/messages")[0].json()
        _, _, counted = proxy.server.request("POST", "/v1/messages/count_tokens", body)
    limit = json.loads(counted)["input_tokens"] + 20_000
    assert body["max_tokens"] > 20_000
    with recorded(answer("x</think>", "Fits."), options=("--max-model-len", str(limit))) as proxy:
        result = json.loads(run_claude(claude, proxy.url, "Hi"))
        assert result["result"] == "Fits."
        assert [each.status for each in proxy.exchanges] == [400, 200]
        assert proxy.exchanges[1].json()["max_tokens"] < 20_000
