"""Asking the model and collecting what comes back, streamed or not."""

import dataclasses

NO_THINKING = {"thinking": {"type": "disabled"}}


@dataclasses.dataclass
class Answer:
    content: str
    reasoning: str
    finish_reason: str
    usage: tuple | None  # prompt, completion and total tokens


def chat(client, model, text, **options):
    """One greedy answer without thinking, unless the options say otherwise."""
    options = {"temperature": 0, "extra_body": NO_THINKING} | options
    messages = [{"role": "user", "content": text}]
    return collect_chat(client.chat.completions.create(model=model, messages=messages, **options))


def collect_chat(response):
    if hasattr(response, "choices"):
        (choice,) = response.choices
        assert choice.message.role == "assistant"
        return Answer(
            choice.message.content or "",
            getattr(choice.message, "reasoning_content", None) or "",
            choice.finish_reason,
            counts(response.usage),
        )
    answer = Answer("", "", None, None)
    ids = set()
    for chunk in response:
        ids.add(chunk.id)
        if chunk.usage:
            assert answer.usage is None
            answer.usage = counts(chunk.usage)
        for choice in chunk.choices:
            assert answer.finish_reason is None, "nothing may follow the finish reason"
            answer.content += choice.delta.content or ""
            answer.reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            answer.finish_reason = choice.finish_reason
    assert len(ids) == 1
    return answer


def complete(client, model, prompt, **options):
    options = {"temperature": 0, "max_tokens": 32} | options
    return collect_completion(client.completions.create(model=model, prompt=prompt, **options))


def collect_completion(response):
    if hasattr(response, "choices"):
        (choice,) = response.choices
        return Answer(choice.text, "", choice.finish_reason, counts(response.usage))
    answer = Answer("", "", None, None)
    for chunk in response:
        if chunk.usage:
            answer.usage = counts(chunk.usage)
        for choice in chunk.choices:
            assert answer.finish_reason is None, "nothing may follow the finish reason"
            answer.content += choice.text
            answer.finish_reason = choice.finish_reason
    return answer


def counts(usage):
    if usage is None:
        return None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    return usage.prompt_tokens, usage.completion_tokens, usage.total_tokens
