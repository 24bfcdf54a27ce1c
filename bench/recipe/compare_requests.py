"""Times the reference package (pip install deepseek-recipe==0.2.0) with the bodies that `bench_request --write DIR` leaves.

    python compare_requests.py DIR

Prints one JSON object a line: microseconds from body to prompt, the least over about half a second.
"""
import json
import pathlib
import sys
import time

import deepseek_recipe as reference

REQUESTS = {"chat": "ChatCompletionRequest", "messages": "MessagesRequest", "responses": "ResponsesRequest"}


def best_us(call):
    best, total = 1e9, 0.0
    while total < 0.5:
        begin = time.thread_time()
        call()
        taken = time.thread_time() - begin
        best, total = min(best, taken), total + taken
    return best * 1e6
