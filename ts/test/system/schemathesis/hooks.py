"""Adapts test cases to rules beyond the schema: JSON Schema cannot say that no two choices have the same value, and the
server refuses a request with 503 if its answer would be of use for only a few milliseconds."""

import schemathesis


def make_distinct(choices):
    given = set()
    for number, choice in enumerate(choices):
        if not isinstance(choice, dict) or not isinstance(choice.get("value"), (str, bool)):
            continue
        if repr(choice["value"]) in given:
            choice["value"] = f"another value, number {number}"
        given.add(repr(choice["value"]))


def give_time(headers):
    for name, value in headers.items():
        if name.lower() == "x-request-timeout-ms" and str(value).isdigit() and 0 < int(value) < 60_000:
            headers[name] = "60000"


@schemathesis.hook
def before_call(context, case, kwargs):
    give_time(case.headers or {})
    questions = case.body.get("questions") if isinstance(case.body, dict) else None
    for question in questions if isinstance(questions, list) else []:
        choices = question.get("choices") if isinstance(question, dict) else None
        if isinstance(choices, list):
            make_distinct(choices)
