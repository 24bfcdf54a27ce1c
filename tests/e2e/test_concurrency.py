"""An answer does not depend on who else is being answered, and ends when its reader leaves."""

import concurrent.futures
import threading

from answers import NO_THINKING, chat, complete
from hadal_server import wait_until

QUESTIONS = [
    "Who is the captain?",
    "Tell me a story.",
    "What can you do?",
    "Which rooms are on deck 2?",
    "Tell me about Mara Voss.",
    "What does the anglerfish eat?",
    "How deep is Hadal Station?",
    "Where is the galley?",
]


def mixed_jobs(server):
    """Greedy and sampled, chat and completion, streamed and not, of different lengths."""
    jobs = []
    for number, question in enumerate(QUESTIONS):
        chat_options = [{}, {"temperature": 2, "seed": 100 + number}][number % 2]
        completion_options = [{"temperature": 1.7, "seed": 200 + number}, {}][number % 2]
        stream = {"stream": True, "stream_options": {"include_usage": True}} if number % 4 < 2 else {}
        jobs.append(lambda c, q=question, o=chat_options | stream: chat(c, server.model, q, max_tokens=96, **o))
        jobs.append(
            lambda c, q=question, o=completion_options | stream, n=16 + 5 * number: complete(
                c, server.model, q, max_tokens=n, extra_body={"ignore_eos": True}, **o
            )
        )
    return jobs


def run_together(server, jobs):
    barrier = threading.Barrier(len(jobs))

    def run(job):
        client = server.client()  # a connection each, as different users have
        barrier.wait()
        return job(client)

    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def test_two_clients_at_once_get_what_each_gets_alone(client, server):
    for options in ({"temperature": 0}, {"temperature": 2, "seed": 5}):
        for stream in (False, True):
            jobs = [
                lambda c, q=question: chat(c, server.model, q, stream=stream, **options)
                for question in ("Tell me a story.", "Tell me about Mara Voss.")
            ]
            alone = [job(client) for job in jobs]
            for _ in range(3):
                assert run_together(server, jobs) == alone


def test_sixteen_clients_at_once_get_what_each_gets_alone(client, server):
    jobs = mixed_jobs(server)
    assert len(jobs) == 16
    alone = [job(client) for job in jobs]
    assert run_together(server, jobs) == alone
    assert run_together(server, jobs[::-1]) == alone[::-1]


def test_a_client_that_leaves_cancels_its_answer(server):
    cancelled = server.metric("hadal_engine_finished_total", reason="cancelled")
    generated = server.metric("hadal_engine_generation_tokens_total")
    with server.client() as client:
        stream = client.completions.create(
            model=server.model,
            prompt="One evening",
            max_tokens=3500,
            temperature=0,
            stream=True,
            extra_body={"ignore_eos": True},
        )
        for _, _ in zip(range(3), stream):
            pass
        assert server.metric("hadal_running") == 1
        stream.close()
    assert wait_until(lambda: server.metric("hadal_engine_finished_total", reason="cancelled") == cancelled + 1)
    assert wait_until(lambda: server.metric("hadal_running") == 0)
    assert server.metric("hadal_engine_generation_tokens_total") - generated < 3500
    assert wait_until(lambda: server.metric("hadal_requests_total", route="/v1/completions", finish="disconnected") >= 1)


def test_a_client_that_leaves_does_not_disturb_others(client, server):
    expected = chat(client, server.model, "Tell me a story.")

    def leave(own_client):
        stream = own_client.chat.completions.create(
            model=server.model,
            messages=[{"role": "user", "content": "Tell me a story."}],
            temperature=0,
            stream=True,
            extra_body=NO_THINKING,
        )
        next(iter(stream))
        stream.close()

    def stay(own_client):
        return chat(own_client, server.model, "Tell me a story.")

    results = run_together(server, [stay, leave, stay, leave, stay, leave])
    assert [result for result in results if result is not None] == [expected] * 3
