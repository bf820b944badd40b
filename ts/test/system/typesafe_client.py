"""Makes calls with the public Python client: reads a list of calls from stdin, writes a line of JSON for each outcome.

A call has `base_url` and `api_key`, and for a decision `state` and `questions`; without these it lists the models. A
call with `async` uses the asynchronous client. `headers` and `max_retries` are for the tests of refusals.
"""
import asyncio
import json
import sys

import typesafe_sdk as sdk


def arguments(call):
    """Returns the settings of the client and of the request, which is None for a list of the models."""
    retry = {"retry": sdk.RetryPolicy(max_retries=call["max_retries"])} if "max_retries" in call else {}
    settings = {"base_url": call["base_url"], "api_key": call["api_key"], "headers": call.get("headers"), **retry}
    request = {"state": call["state"], "questions": call["questions"]} if "questions" in call else None
    return settings, request


async def ask_async(settings, request):
    async with sdk.AsyncTypeSafeClient(**settings) as client:
        return await (client.system_one(**request) if request else client.models.list())


def ask(settings, request):
    with sdk.TypeSafeClient(**settings) as client:
        return client.system_one(**request) if request else client.models.list()


def described(result):
    """Returns the client's form of an answer, with the names of its types."""
    said = {"type": type(result).__name__, "request_id": result.request_id, **result.model_dump(mode="json")}
    if isinstance(result, sdk.SystemOneResponse):
        kinds = {"nouls": result.nouls, "choices": result.choices, "scores": result.scores}
        said["kinds"] = {kind: {name: type(answer).__name__ for name, answer in found.items()} for kind, found in kinds.items()}
    return said


def refused(error):
    """Returns the client's form of an error, with the names of its classes."""
    said = {"error": [kind.__name__ for kind in type(error).__mro__], "message": str(error)}
    if isinstance(error, sdk.TypeSafeAPIError):
        said |= {"status": error.status, "request_id": error.request_id, "retry_after": error.headers.get("retry-after")}
    return said


for call in json.load(sys.stdin):
    settings, request = arguments(call)
    try:
        result = asyncio.run(ask_async(settings, request)) if call.get("async") else ask(settings, request)
        print(json.dumps(described(result)))
    except sdk.TypeSafeError as error:
        print(json.dumps(refused(error)))
