"""Stored responses through the official client: found again, gone on from, deleted, and there after a restart."""

import openai
import pytest
from hadal_server import Server

QUESTION = "Who is the captain?"
ANSWER = "The captain is Mara Voss."
OPTIONS = {"temperature": 0, "reasoning": {"effort": "none"}, "max_output_tokens": 64}


def ask(client, server, **changes):
    return client.responses.create(**({"model": server.model, "input": QUESTION} | OPTIONS | changes))


def test_a_response_is_found_listed_and_deleted(client, server):
    response = ask(client, server)
    assert response.store is True
    assert client.responses.retrieve(response.id) == response
    (item,) = client.responses.input_items.list(response.id).data
    assert (item.role, item.content[0].text) == ("user", QUESTION)
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(response.id)
    client.responses.delete(response.id)
    for gone in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            gone(response.id)
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, server, previous_response_id=response.id)
    assert caught.value.param == "previous_response_id"
    assert caught.value.code == "previous_response_not_found"


def test_a_conversation_goes_on_as_if_it_was_sent_whole(client, server):
    first = ask(client, server)
    assert first.output_text == ANSWER
    second = ask(client, server, input="And who are you?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    whole = ask(
        client,
        server,
        input=[
            {"role": "user", "content": QUESTION},
            *(item.model_dump(exclude_none=True) for item in first.output),
            {"role": "user", "content": "And who are you?"},
        ],
        store=False,
    )
    assert whole.usage.input_tokens == second.usage.input_tokens
    assert whole.output_text == second.output_text
    assert whole.store is False
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(whole.id)


def test_a_stream_is_stored(client, server):
    with ask(client, server, stream=True) as stream:
        last = [event for event in stream][-1]
    assert last.type == "response.completed"
    assert client.responses.retrieve(last.response.id).output_text == ANSWER


def test_what_is_not_supported_is_refused_by_name(client, server):
    for changes in ({"background": True}, {"conversation": "conv_1"}, {"prompt": {"id": "pmpt_1"}}):
        with pytest.raises(openai.BadRequestError) as caught:
            ask(client, server, **changes)
        assert next(iter(changes)) in caught.value.body["message"]


def test_responses_survive_a_restart(tmp_path):
    path = tmp_path / "state" / "responses.db"
    server = Server("--responses-store", str(path))
    first = ask(server.client(), server)
    assert server.stop() == 0

    server = Server("--responses-store", str(path))
    client = server.client()
    assert client.responses.retrieve(first.id).output_text == ANSWER
    assert ask(client, server, previous_response_id=first.id).status == "completed"
    other = server.client(api_key="another")
    with pytest.raises(openai.NotFoundError):
        other.responses.retrieve(first.id)
    assert server.metric("hadal_stored_responses") == 2
    assert server.stop() == 0


def test_a_file_of_no_use_does_not_stop_the_server(tmp_path):
    path = tmp_path / "responses.db"
    path.write_bytes(b"not a database " * 1000)
    server = Server("--responses-store", str(path))
    response = ask(server.client(), server)
    assert server.client().responses.retrieve(response.id).id == response.id
    assert (tmp_path / "responses.db.unusable-1").read_bytes() == b"not a database " * 1000
    assert "unusable" in server.log()
    assert server.stop() == 0


def test_a_place_that_cannot_be_written_does_not_stop_answers():
    server = Server("--responses-store", "/proc/none/responses.db")
    client = server.client()
    assert ask(client, server).output_text == ANSWER
    assert ask(client, server).output_text == ANSWER
    assert server.metric("hadal_response_store_failures_total") >= 2
    assert server.log().count("responses are not stored") == 1
    assert server.stop() == 0
