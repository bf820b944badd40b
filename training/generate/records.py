"""Generates rules and thresholds over JSON records, with computed answers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from ..data.question import Choice, Noul, Question, choice, noul, score
from ..data.rows import State

Value = int | str | bool | list[str] | None
Fields = dict[str, Value]
# A condition in words, and whether it holds.
Condition = tuple[str, bool]


@dataclass(frozen=True)
class Chances:
    """The probabilities of what records hold and of how they are asked about. Fields that end in `_below` divide one
    draw: each is the upper end of its part."""

    flag_is_set: float = 0.5
    date: float = 0.3
    nullable: float = 0.25
    tags: float = 0.2
    number: float = 0.3
    # Of a record's shape.
    flat_below: float = 0.75
    wrapped_below: float = 0.9
    # Of a condition on a number.
    between: float = 0.12
    no_equality: float = 0.9
    multiple: float = 0.5
    larger: float = 0.5
    # Of a condition on a name.
    own_name: float = 0.5
    is_name_below: float = 0.45
    is_not_name_below: float = 0.6
    one_of_names_below: float = 0.85
    own_name_among: float = 0.4
    says_one_of: float = 0.5
    # Of a condition on a flag, a date, tags or a value that may be null.
    flag_claimed_set: float = 0.5
    before: float = 0.5
    other_tag: float = 0.5
    claimed_empty: float = 0.5
    second_condition: float = 0.3
    # Of a question.
    plain_condition_below: float = 0.45
    action_when_below: float = 0.65
    policy_in_state_below: float = 0.8
    action_not_when_below: float = 0.9
    criteria: float = 0.25
    band_as_score: float = 0.5
    value_of_field: float = 0.5


CHANCES = Chances()

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
# By how much a threshold is a multiple or a part of a value.
FACTORS = (1.3, 6)
# Fields that may be null, and tags.
NULLABLE = ("assignee", "approved_by", "error", "phone", "coupon")
TAGS = ("new", "legacy", "beta", "eu", "gift", "bulk", "test")
# Wordings of a condition, and of a rule with an action; what the two sides of a rule mean, and names of three bands.
CHECKED = ("Is it true that {}?", "{}?", "Does this hold: {}?", "Check: {}.", "{}.", "Is it so that {}?")
WHEN = (
    "Should we {small}? {action} when {text}.",
    "{action}? Rule: only if {text}.",
    "{action} if {text}.",
    "{action}? We do so when {text}.",
)
RULE_SIDES = ({"true": "the rule applies", "false": "the rule does not apply"}, {"true": "yes, do it", "false": "no"})
BANDS = (("low", "medium", "high"), ("small", "normal", "large"), ("ok", "warning", "critical"), ("A", "B", "C"))


def words(key: str) -> str:
    """Returns a key as words."""
    return key.replace("_", " ")


def number_of(fields: Fields, key: str) -> int:
    """Returns the value of a field that is a number."""
    value = fields[key]
    if not isinstance(value, int):
        raise TypeError(f"{key} is no number: {value!r}")
    return value


def name_of(fields: Fields, key: str) -> str:
    """Returns the value of a field that is a name."""
    value = fields[key]
    if not isinstance(value, str):
        raise TypeError(f"{key} is no name: {value!r}")
    return value


def record(rng: Random) -> Fields:
    """Returns a flat record of a few typed fields, of which one is sometimes null."""
    fields: Fields = {key: rng.randint(*NUMBERS[key]) for key in rng.sample(list(NUMBERS), rng.randint(1, 3))}
    fields |= {key: rng.choice(NAMES[key]) for key in rng.sample(list(NAMES), rng.randint(0, 3))}
    fields |= {key: rng.random() < CHANCES.flag_is_set for key in rng.sample(FLAGS, rng.randint(0, 2))}
    if rng.random() < CHANCES.date:
        day = str(date(2024, 1, 1) + timedelta(days=rng.randrange(900)))
        fields[rng.choice(DATES)] = day
    if rng.random() < CHANCES.nullable:
        value = rng.choice((None, None, rng.choice(PEOPLE)))
        fields[rng.choice(NULLABLE)] = value
    if rng.random() < CHANCES.tags:
        fields["tags"] = rng.sample(TAGS, rng.randint(0, 3))
    if rng.random() < CHANCES.number:
        fields["id"] = rng.randrange(1000, 99999)
    return {key: fields[key] for key in rng.sample(list(fields), len(fields))}


def nested(rng: Random, flat: Fields) -> State:
    """Returns the same record, sometimes inside another or among other parts."""
    draw = rng.random()
    if draw < CHANCES.flat_below:
        return flat
    if draw < CHANCES.wrapped_below:
        return {rng.choice(("order", "ticket", "request", "user", "event")): flat}
    keys = list(flat)
    half = len(keys) // 2
    return {"meta": {key: flat[key] for key in keys[:half]}, "data": {key: flat[key] for key in keys[half:]}}


def near(rng: Random, value: int, high: int) -> int:
    """Returns a threshold that equals the value, is next to it, or is further away; half of them are a multiple or a
    part of it, since a comparison is learned from those that are easy."""
    far = max(21, high // 2)
    close, far_off = (rng.randint(1, 20), -rng.randint(1, 20)), (rng.randint(20, far), -rng.randint(20, far))
    if rng.random() < CHANCES.multiple and abs(value) > 1:
        factor = rng.uniform(*FACTORS)
        return round(value * factor if rng.random() < CHANCES.larger else value / factor)
    return value + rng.choice((0, 1, -1, *close, *far_off))


def number_condition(rng: Random, key: str, value: int) -> Condition:
    """Returns a comparison of a number with a threshold, and whether it holds."""
    highest = NUMBERS[key][1]
    threshold = near(rng, value, highest)
    if rng.random() < CHANCES.between:
        low, high = sorted((threshold, near(rng, value, highest)))
        return f"the {words(key)} is between {low} and {high}", low <= value <= high
    phrases, holds = rng.choice(COMPARE[:4] if rng.random() < CHANCES.no_equality else COMPARE)
    phrase = rng.choice(phrases)
    said = phrase.format(threshold) if "{}" in phrase else f"{phrase} {threshold}"
    if phrase[0] in "<>=":
        return f"{rng.choice((key, words(key)))} {said}", holds(value, threshold)
    return rng.choice((f"{words(key)} is {said}", f"the {words(key)} is {said}")), holds(value, threshold)


def name_condition(rng: Random, key: str, value: str) -> Condition:
    """Returns a condition of equality or membership, and whether it holds."""
    pool, said = NAMES[key], words(key)
    other = value if rng.random() < CHANCES.own_name else rng.choice(pool)
    draw = rng.random()
    if draw < CHANCES.is_name_below:
        return rng.choice((f"{said} is {other}", f"the {said} is {other}", f"{key} = {other}")), value == other
    if draw < CHANCES.is_not_name_below:
        return rng.choice((f"{said} is not {other}", f"the {said} is anything but {other}")), value != other
    members = rng.sample(pool, rng.randint(2, 3))
    if rng.random() < CHANCES.own_name_among and value not in members:
        members[0] = value
    if draw < CHANCES.one_of_names_below:
        one_of = "one of " if rng.random() < CHANCES.says_one_of else ""
        return f"{said} is {one_of}{', '.join(members[:-1])} or {members[-1]}", value in members
    return f"{said} is neither {' nor '.join(members)}", value not in members


def condition(rng: Random, fields: Fields) -> Condition:
    """Returns a condition on one field, and whether it holds."""
    key = rng.choice([key for key in fields if key != "id"])
    value = fields[key]
    if isinstance(value, bool):
        return flag_condition(rng, key, value)
    if isinstance(value, int):
        return number_condition(rng, key, value)
    if isinstance(value, list):
        other = not value or rng.random() < CHANCES.other_tag
        tag = rng.choice(TAGS) if other else rng.choice(value)
        return rng.choice((f"it is tagged {tag}", f"the tags include {tag}")), tag in value
    if isinstance(value, str) and key in NAMES:
        return name_condition(rng, key, value)
    if isinstance(value, str) and key in DATES:
        return date_condition(rng, key, value)
    empty = rng.random() < CHANCES.claimed_empty
    text = rng.choice((f"there is no {words(key)}", f"{words(key)} is null")) if empty else f"{words(key)} is set"
    return text, (value is None) == empty


def flag_condition(rng: Random, key: str, value: bool) -> Condition:
    """Returns a condition on a flag, and whether it holds."""
    claimed = rng.random() < CHANCES.flag_claimed_set
    said = words(key)
    is_set, is_not = (f"{said} is true", f"it is {said}"), (f"{said} is false", f"it is not {said}")
    return rng.choice(is_set if claimed else is_not), value == claimed


def date_condition(rng: Random, key: str, value: str) -> Condition:
    """Returns a comparison with a day, and whether it holds."""
    days = rng.choice((0, 1, -1, rng.randint(2, 400), -rng.randint(2, 400)))
    day = str(date.fromisoformat(value) + timedelta(days=days))
    if rng.random() < CHANCES.before:
        return f"{words(key)} is before {day}", value < day
    return f"{words(key)} is after {day}", value > day


def rule(rng: Random, fields: Fields) -> Condition:
    """Returns one condition, or two that are joined by "and", "or" or "but not", and whether it holds."""
    text, holds = condition(rng, fields)
    if rng.random() < CHANCES.second_condition:
        other, also = condition(rng, fields)
        joint = rng.randrange(3)
        if joint == 0:
            return f"{text} and {other}", holds and also
        if joint == 1:
            return f"{text} or {other}", holds or also
        return f"{text}, but not when {other}", holds and not also
    return text, holds


def yes_no(rng: Random, fields: Fields) -> tuple[Noul, bool, str | None]:
    """Returns a noul question on a rule, its answer, and the policy if it belongs to the state."""
    (text, holds), action = rule(rng, fields), rng.choice(ACTIONS)
    draw, small = rng.random(), action[0].lower() + action[1:]
    policy = None
    if draw < CHANCES.plain_condition_below:
        asked = rng.choice(CHECKED).format(text)
    elif draw < CHANCES.action_when_below:
        asked = rng.choice(WHEN).format(action=action, small=small, text=text)
    elif draw < CHANCES.policy_in_state_below:
        asked = rng.choice((f"{action}?", f"Should we {small}?", f"Does the policy say to {small}?"))
        policy = f"{action} when {text}."
    elif draw < CHANCES.action_not_when_below:
        asked, holds = f"Should we {small}? Do not {small} when {text}. Otherwise do.", not holds
    else:
        asked, holds = f"{action} unless {text}.", not holds
    criteria = rng.choice(RULE_SIDES) if rng.random() < CHANCES.criteria else None
    return noul(asked, criteria), holds, policy


def band(rng: Random, key: str, value: int) -> tuple[Question, int | str]:
    """Returns the question in which of three ranges a number is, as a score or a choice."""
    low, high = NUMBERS[key]
    first = rng.randint(low + (high - low) // 6, low + (high - low) // 2)
    second = rng.randint(first + 1, high)
    index = 2 if value >= second else 1 if value >= first else 0
    whole = (f"below {first}", f"{first} to {second - 1}", f"{second} or more")
    said = rng.choice((whole, (f"under {first}", f"at least {first} but under {second}", f"at least {second}")))
    if rng.random() < CHANCES.band_as_score:
        return score(f"How high is the {words(key)}?", said), index
    names = rng.choice(BANDS)
    return choice(f"Which band does the {words(key)} fall in?", dict(zip(names, said, strict=True))), names[index]


def lookup(rng: Random, key: str, value: str) -> tuple[Choice, str]:
    """Returns the question for the value of a field, or for the team to which that value sends the record."""
    pool = NAMES[key]
    if rng.random() < CHANCES.value_of_field:
        asked = rng.choice((f"What is the {words(key)}?", f"Read the {words(key)}."))
        return choice(asked, dict.fromkeys(pool, "")), value
    teams = rng.sample(TEAMS, len(pool))
    asked = rng.choice(("Where should this go?", "Which team owns this?"))
    criteria = {team: f"{words(key)} is {name}" for team, name in zip(teams, pool, strict=True)}
    return choice(asked, criteria), teams[pool.index(value)]
