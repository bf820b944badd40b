"""Generates rules and thresholds over JSON records, with computed answers."""

from datetime import date, timedelta
from random import Random
from typing import Any, Callable

Condition = tuple[str, bool]

NUMBERS = {
    "amount": (1, 5000),
    "order_total": (5, 2000),
    "age": (1, 95),
    "attempts": (0, 12),
    "temperature": (-20, 60),
    "latency_ms": (5, 4000),
    "error_rate": (0, 100),
    "items": (1, 60),
    "risk_score": (0, 100),
    "days_open": (0, 120),
    "cpu_percent": (0, 100),
    "balance": (-500, 9000),
    "distance_km": (1, 900),
    "retries": (0, 9),
    "seats": (1, 300),
    "discount_percent": (0, 80),
    "hours_logged": (0, 16),
    "stock": (0, 400),
    "customers_affected": (0, 5000),
    "weight_kg": (1, 120),
    "rating": (1, 5),
    "files_changed": (1, 90),
    "price": (1, 999),
}
NAMES = {
    "status": ("open", "closed", "pending", "failed", "active", "cancelled"),
    "country": ("DE", "FR", "US", "BR", "IN", "JP"),
    "plan": ("free", "pro", "team", "enterprise"),
    "role": ("admin", "viewer", "editor", "owner"),
    "priority": ("low", "medium", "high", "urgent"),
    "channel": ("email", "phone", "chat", "web"),
    "env": ("prod", "staging", "dev"),
    "category": ("electronics", "grocery", "books", "clothing"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "currency": ("EUR", "USD", "GBP", "JPY"),
    "branch": ("main", "develop", "release", "hotfix"),
    "color": ("red", "green", "blue", "black"),
}
FLAGS = (
    "verified",
    "paid",
    "refunded",
    "blocked",
    "signed",
    "encrypted",
    "in_stock",
    "vip",
    "on_call",
    "archived",
    "workaround",
    "payments_failing",
)
DATES = ("created", "due", "last_login", "expires", "shipped_on")
PEOPLE = ("Ana", "Bob", "Chen", "Dana", "Eli", "Fatima", "Goran", "Hana")
ACTIONS = (
    "Escalate",
    "Approve",
    "Send to review",
    "Page someone",
    "Refund automatically",
    "Block the request",
    "Notify the manager",
    "Give priority",
    "Close the ticket",
    "Allow access",
    "Grant the discount",
    "Ship today",
    "Merge it",
    "Charge a fee",
    "Ask for a second signature",
)
TEAMS = ("billing", "support", "sales", "legal", "fraud", "shipping", "security", "platform", "web")
COMPARE: tuple[tuple[tuple[str, ...], Callable[[int, int], bool]], ...] = (
    (("over", "more than", "above", "greater than", ">"), lambda a, b: a > b),
    (("at least", "no less than", "{} or more", ">="), lambda a, b: a >= b),
    (("under", "less than", "below", "<"), lambda a, b: a < b),
    (("at most", "no more than", "up to", "{} or less", "<="), lambda a, b: a <= b),
    (("exactly", "equal to", "="), lambda a, b: a == b),
)


def words(key: str) -> str:
    """Returns a key as words."""
    return key.replace("_", " ")


def record(rng: Random) -> dict[str, Any]:
    """Returns a flat record of a few typed fields, of which one is sometimes null."""
    fields: dict[str, Any] = {key: rng.randint(*NUMBERS[key]) for key in rng.sample(list(NUMBERS), rng.randint(1, 3))}
    fields |= {key: rng.choice(NAMES[key]) for key in rng.sample(list(NAMES), rng.randint(0, 3))}
    fields |= {key: rng.random() < 0.5 for key in rng.sample(FLAGS, rng.randint(0, 2))}
    if rng.random() < 0.3:
        fields[rng.choice(DATES)] = str(date(2024, 1, 1) + timedelta(days=rng.randrange(900)))
    if rng.random() < 0.25:
        fields[rng.choice(("assignee", "approved_by", "error", "phone", "coupon"))] = rng.choice(
            (None, None, rng.choice(PEOPLE))
        )
    if rng.random() < 0.2:
        fields["tags"] = rng.sample(("new", "legacy", "beta", "eu", "gift", "bulk", "test"), rng.randint(0, 3))
    if rng.random() < 0.3:
        fields["id"] = rng.randrange(1000, 99999)
    return {key: fields[key] for key in rng.sample(list(fields), len(fields))}


def nested(rng: Random, flat: dict[str, Any]) -> Any:
    """Returns the same record, sometimes inside another or among other parts."""
    draw = rng.random()
    if draw < 0.75:
        return flat
    if draw < 0.9:
        return {rng.choice(("order", "ticket", "request", "user", "event")): flat}
    keys = list(flat)
    half = len(keys) // 2
    return {"meta": {key: flat[key] for key in keys[:half]}, "data": {key: flat[key] for key in keys[half:]}}


def near(rng: Random, value: int, high: int) -> int:
    """Returns a threshold that equals the value, is next to it, or is further away."""
    step = rng.choice(
        (
            0,
            1,
            -1,
            rng.randint(1, 20),
            -rng.randint(1, 20),
            rng.randint(20, max(21, high // 2)),
            -rng.randint(20, max(21, high // 2)),
        )
    )
    return value + step


def number_condition(rng: Random, key: str, value: int) -> Condition:
    """Returns a comparison of a number with a threshold, and whether it holds."""
    threshold = near(rng, value, NUMBERS[key][1])
    if rng.random() < 0.12:
        low, high = sorted((threshold, near(rng, value, NUMBERS[key][1])))
        return f"the {words(key)} is between {low} and {high}", low <= value <= high
    phrases, holds = rng.choice(COMPARE[:4] if rng.random() < 0.9 else COMPARE)
    phrase = rng.choice(phrases)
    said = phrase.format(threshold) if "{}" in phrase else f"{phrase} {threshold}"
    if phrase[0] in "<>=":
        return f"{rng.choice((key, words(key)))} {said}", holds(value, threshold)
    return rng.choice((f"{words(key)} is {said}", f"the {words(key)} is {said}")), holds(value, threshold)


def name_condition(rng: Random, key: str, value: str) -> Condition:
    """Returns a condition of equality or membership, and whether it holds."""
    pool = NAMES[key]
    other = value if rng.random() < 0.5 else rng.choice(pool)
    draw = rng.random()
    if draw < 0.45:
        return rng.choice(
            (f"{words(key)} is {other}", f"the {words(key)} is {other}", f"{key} = {other}")
        ), value == other
    if draw < 0.6:
        return rng.choice((f"{words(key)} is not {other}", f"the {words(key)} is anything but {other}")), value != other
    members = rng.sample(pool, rng.randint(2, 3))
    if rng.random() < 0.4 and value not in members:
        members[0] = value
    if draw < 0.85:
        return (
            f"{words(key)} is {'one of ' if rng.random() < 0.5 else ''}{', '.join(members[:-1])} or {members[-1]}",
            value in members,
        )
    return f"{words(key)} is neither {' nor '.join(members)}", value not in members


def condition(rng: Random, fields: dict[str, Any]) -> Condition:
    """Returns a condition on one field, and whether it holds."""
    key = rng.choice([key for key in fields if key != "id"])
    value = fields[key]
    if isinstance(value, bool):
        side = rng.random() < 0.5
        phrase = rng.choice(
            (f"{words(key)} is true", f"it is {words(key)}")
            if side
            else (f"{words(key)} is false", f"it is not {words(key)}")
        )
        return phrase, value == side
    if isinstance(value, int):
        return number_condition(rng, key, value)
    if key in NAMES:
        return name_condition(rng, key, value)
    if key in DATES:
        day = date.fromisoformat(value) + timedelta(
            days=rng.choice((0, 1, -1, rng.randint(2, 400), -rng.randint(2, 400)))
        )
        before = rng.random() < 0.5
        return f"{words(key)} is {'before' if before else 'after'} {day}", value < str(day) if before else value > str(
            day
        )
    if key == "tags":
        tag = (
            rng.choice(("new", "legacy", "beta", "eu", "gift", "bulk", "test"))
            if not value or rng.random() < 0.5
            else rng.choice(value)
        )
        return rng.choice((f"it is tagged {tag}", f"the tags include {tag}")), tag in value
    empty = rng.random() < 0.5
    return (rng.choice((f"there is no {words(key)}", f"{words(key)} is null")) if empty else f"{words(key)} is set"), (
        value is None
    ) == empty


def rule(rng: Random, fields: dict[str, Any]) -> Condition:
    """Returns one condition, or two that are joined by "and", "or" or "but not", and whether it holds."""
    text, holds = condition(rng, fields)
    if rng.random() < 0.3:
        other, also = condition(rng, fields)
        joint = rng.randrange(3)
        if joint == 0:
            return f"{text} and {other}", holds and also
        if joint == 1:
            return f"{text} or {other}", holds or also
        return f"{text}, but not when {other}", holds and not also
    return text, holds


def yes_no(rng: Random, fields: dict[str, Any]) -> tuple[dict[str, Any], bool, str | None]:
    """Returns a noul question on a rule, its answer, and the policy if it belongs to the state."""
    (text, holds), action = rule(rng, fields), rng.choice(ACTIONS)
    draw, small = rng.random(), action[0].lower() + action[1:]
    policy = None
    if draw < 0.45:
        asked = rng.choice(
            ("Is it true that {}?", "{}?", "Does this hold: {}?", "Check: {}.", "{}.", "Is it so that {}?")
        ).format(text)
    elif draw < 0.65:
        asked = rng.choice(
            (
                f"Should we {small}? {action} when {text}.",
                f"{action}? Rule: only if {text}.",
                f"{action} if {text}.",
                f"{action}? We do so when {text}.",
            )
        )
    elif draw < 0.8:
        asked, policy = (
            rng.choice((f"{action}?", f"Should we {small}?", f"Does the policy say to {small}?")),
            f"{action} when {text}.",
        )
    elif draw < 0.9:
        asked, holds = f"Should we {small}? Do not {small} when {text}. Otherwise do.", not holds
    else:
        asked, holds = f"{action} unless {text}.", not holds
    question: dict[str, Any] = {"type": "noul", "instructions": asked}
    if rng.random() < 0.25:
        question["criteria"] = rng.choice(
            ({"true": "the rule applies", "false": "the rule does not apply"}, {"true": "yes, do it", "false": "no"})
        )
    return question, bool(holds), policy


def band(rng: Random, key: str, value: int) -> tuple[dict[str, Any], int | str]:
    """Returns the question in which of three ranges a number is, as a score or a choice."""
    low, high = NUMBERS[key]
    first = rng.randint(low + (high - low) // 6, low + (high - low) // 2)
    second = rng.randint(first + 1, high)
    index = (value >= first) + (value >= second)
    said = rng.choice(
        (
            (f"below {first}", f"{first} to {second - 1}", f"{second} or more"),
            (f"under {first}", f"at least {first} but under {second}", f"at least {second}"),
        )
    )
    if rng.random() < 0.5:
        return {"type": "score", "instructions": f"How high is the {words(key)}?", "criteria": list(said)}, index
    names = rng.choice(
        (("low", "medium", "high"), ("small", "normal", "large"), ("ok", "warning", "critical"), ("A", "B", "C"))
    )
    return {
        "type": "choice",
        "instructions": f"Which band does the {words(key)} fall in?",
        "criteria": dict(zip(names, said)),
    }, names[index]


def lookup(rng: Random, key: str, value: str) -> tuple[dict[str, Any], str]:
    """Returns the question for the value of a field, or for the team to which that value sends the record."""
    pool = NAMES[key]
    if rng.random() < 0.5:
        return {
            "type": "choice",
            "instructions": rng.choice((f"What is the {words(key)}?", f"Read the {words(key)}.")),
            "criteria": dict.fromkeys(pool, ""),
        }, value
    teams = rng.sample(TEAMS, len(pool))
    question = {
        "type": "choice",
        "instructions": rng.choice(("Where should this go?", "Which team owns this?")),
        "criteria": {team: f"{words(key)} is {name}" for team, name in zip(teams, pool)},
    }
    return question, teams[pool.index(value)]
