"""What operators use: model list, health, metrics, keys, and an orderly end."""

import openai
import pytest
from answers import chat, complete
from hadal_server import Server, wait_until


def test_lists_its_models(client, server):
    models = client.models.list().data
    assert server.model in [model.id for model in models]
    for model in models:
        assert model.object == "model"
        assert client.models.retrieve(model.id) == model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_is_healthy_and_ready(server):
    for path in ("/healthz", "/readyz"):
        status, _, _ = server.request("GET", path)
        assert status == 200


def test_metrics_add_up_with_usage(client, server):
    names = ("hadal_prompt_tokens_total", "hadal_output_tokens_total")
    engine_names = ("hadal_engine_prompt_tokens_total", "hadal_engine_requests_total")
    assert wait_until(lambda: server.metric("hadal_running") == 0)
    before = server.metrics()
    answers = [
        chat(client, server.model, "Who are you?"),
        chat(client, server.model, "Who are you?", stream=True, stream_options={"include_usage": True}),
        complete(client, server.model, "Deck", max_tokens=9, extra_body={"ignore_eos": True}),
    ]
    prompt, output, _ = map(sum, zip(*(answer.usage for answer in answers), strict=True))
    expected = dict(zip(names + engine_names, (prompt, output, prompt, len(answers)), strict=True))

    def grown():
        after = server.metrics()
        return {name: after[name, ()] - before.get((name, ()), 0) for name in expected}

    # The counters of an answer may be added just after its last byte.
    wait_until(lambda: grown() == expected)
    assert grown() == expected


def test_histograms_are_cumulative(client, server):
    complete(client, server.model, "Deck", max_tokens=3)
    metrics = server.metrics()
    buckets = [
        (float(dict(labels)["le"]), value)
        for (name, labels), value in metrics.items()
        if name == "hadal_ttft_seconds_bucket"
    ]
    counts = [value for _, value in sorted(buckets)]
    assert counts == sorted(counts)
    assert counts[-1] == metrics["hadal_ttft_seconds_count", ()] > 0


def test_a_key_is_asked_for_when_one_is_set():
    server = Server("--api-key", "s3cret", key="s3cret")
    try:
        assert complete(server.client(), server.model, "Deck", max_tokens=2).content
        for wrong in ("", "s3cre", "s3cret2"):
            with pytest.raises(openai.AuthenticationError):
                server.client(api_key=wrong or "x").models.list()
        for path in ("/healthz", "/readyz"):
            assert server.request("GET", path, headers={"Authorization": ""})[0] == 200
        assert "s3cret" not in server.log()
    finally:
        assert server.stop() == 0


def test_a_model_may_be_given_names():
    server = Server("--served-model-name", "deep,alias")
    try:
        assert [model.id for model in server.client().models.list().data][:2] == ["deep", "alias"]
        assert chat(server.client(), "alias", "Who are you?").content
        assert complete(server.client(), "deep", "Deck", max_tokens=2).content
    finally:
        assert server.stop() == 0


def test_sigterm_ends_it_in_order_though_an_answer_is_being_streamed():
    server = Server("--shutdown-grace", "1s")
    stream = server.client().completions.create(
        model=server.model, prompt="Deck", max_tokens=4000, temperature=0, stream=True, extra_body={"ignore_eos": True}
    )
    next(iter(stream))
    assert server.stop() == 0
