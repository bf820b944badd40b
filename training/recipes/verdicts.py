"""Asks about a claim and its evidence: a text, a record, a table, rules or a study. The questions are three-way
verdicts and a yes/no for each of them, in equal shares."""

from random import Random
from typing import Any

from ..data import wording as words
from .asking import CLAIM_KEYS, Scene, clause, noul, pick, questioned, said, whole
from ..data.layout import Asked, Group
from ..data.rows import Row
from .consistency import equal

SUPPORTED, OPEN, REFUTED, NOT_SUPPORTED = 0, 1, 2, 3
LABELS = {
    "entailment": SUPPORTED,
    "follows": SUPPORTED,
    "supported": SUPPORTED,
    "SUPPORTS": SUPPORTED,
    "true": SUPPORTED,
    "support": SUPPORTED,
    "neutral": OPEN,
    "undecided": OPEN,
    "unclear": OPEN,
    "NOT_ENOUGH_INFO": OPEN,
    "unknown": OPEN,
    "unrelated": OPEN,
    "contradiction": REFUTED,
    "conflicts": REFUTED,
    "refuted": REFUTED,
    "REFUTES": REFUTED,
    "false": REFUTED,
    "oppose": REFUTED,
    "does not follow": NOT_SUPPORTED,
}
SOURCES = frozenset(
    {
        "mnli_dev",
        "snli_dev",
        "conjnli_adv",
        "infotabs",
        "cad_nli",
        "negation_nli",
        "med_help",
        "megaveridicality",
        "fever_symmetric",
        "fool_me_twice",
        "folio",
        "tabfact_val",
        "perspectrum",
    }
)
# Sources whose "no" only means that the claim does not follow.
TWO_WAY = frozenset({"med_help", "megaveridicality", "negation_nli"})
EVIDENCE_KEYS = (
    "premise",
    "text",
    "context",
    "evidence",
    "document",
    "source",
    "passage",
    "article",
    "report",
    "record",
    "facts",
    "notes",
    "excerpt",
    "background",
    "data",
    "input",
    "page",
    "transcript",
)
RECORD_KEYS = ("record", "table", "data", "entry", "facts", "infobox", "evidence", "document", "profile", "fields")
# Wordings with the claim in the instructions: {} is a clause, {S} a sentence.
SUPPORT = (
    "Does the text support this? {S}",
    "Can we conclude that {}?",
    "It follows that {}.",
    "Is this confirmed: {S}",
    "The text says that {}.",
    "Is it clear from the text that {}?",
    "Does it follow that {}?",
    "We learn here that {}.",
    "There is evidence that {}.",
    "The text backs this: {S}",
    "Is it shown that {}?",
    "Must it be true that {}?",
    "According to this, is it certain that {}?",
    "This can be concluded: {S}",
    "What is given proves that {}.",
    "Would a fact checker mark this as supported? {S}",
)
DENY = (
    "The text contradicts this: {S}",
    "Does the text rule out that {}?",
    "Is this wrong according to the text? {S}",
    "The text says the opposite of: {S}",
    "It cannot be that {}.",
    "What is given refutes this: {S}",
    "Is it excluded that {}?",
    "Would a fact checker mark this as refuted? {S}",
    "Is this disproved: {S}",
    "The text speaks against this: {S}",
    "Does it follow that this is false: {S}",
)
UNSETTLED = (
    "The text leaves open whether {}.",
    "Is it unclear whether {}?",
    "Nothing is said about whether {}.",
    "One cannot tell from the text whether {}.",
    "Is there too little to decide this? {S}",
    "This is neither confirmed nor refuted: {S}",
    "The text does not settle whether {}.",
    "Is more information needed to judge this? {S}",
)
VERDICT = (
    "Is this true? {S}",
    "{S}",
    "Statement: {S}",
    "What does the text say about this: {S}",
    "Fact check: {S}",
    "Does the text support this? {S}",
    "Judge this by the text: {S}",
    "Claim: {S}",
    "True, false or open? {S}",
    "How does the text stand to this claim? {S}",
    "Verdict on: {S}",
    "Given what is written, {S}",
    "Rate this statement against the text: {S}",
    "Is it so that {}?",
)
# Wordings for evidence and claim that are both in the state.
RELATE = (
    "How does `{b}` relate to `{a}`?",
    "What does `{a}` say about `{b}`?",
    "Does `{a}` support `{b}`?",
    "Given `{a}`, is `{b}` true?",
    "Judge `{b}` by `{a}`.",
    "Is `{b}` backed by `{a}`?",
    "Compare `{b}` with `{a}`.",
    "Check `{b}` against `{a}`.",
    "Verify `{b}` with `{a}`.",
    "Which verdict on `{b}` follows from `{a}`?",
    "Classify the relation of `{a}` and `{b}`.",
    "Does `{b}` follow from `{a}`?",
    "Fact-check `{b}`.",
    "Read `{a}`, then judge `{b}`.",
    "What can be said of `{b}`, given `{a}`?",
)
RELATE_YES = (
    "`{a}` supports `{b}`.",
    "Does `{b}` follow from `{a}`?",
    "Is `{b}` true, given `{a}`?",
    "`{b}` is confirmed by `{a}`.",
    "If `{a}` is true, must `{b}` be true?",
    "`{a}` implies `{b}`.",
    "Can `{b}` be concluded from `{a}`?",
    "`{a}` entails `{b}`.",
    "Is `{b}` backed by `{a}`?",
    "`{b}` is right according to `{a}`.",
    "Does `{a}` prove `{b}`?",
    "Whoever believes `{a}` has to believe `{b}`.",
    "`{a}` gives enough evidence for `{b}`.",
    "The conclusion from `{a}` to `{b}` is sound.",
)
RELATE_NO = (
    "`{a}` contradicts `{b}`.",
    "Is `{b}` false, given `{a}`?",
    "Does `{a}` rule out `{b}`?",
    "`{a}` and `{b}` cannot both be true.",
    "`{b}` is refuted by `{a}`.",
    "If `{a}` is true, is `{b}` false?",
    "`{b}` conflicts with `{a}`.",
    "Does `{a}` disprove `{b}`?",
    "`{a}` speaks against `{b}`.",
    "Is `{b}` wrong according to `{a}`?",
)
RELATE_OPEN = (
    "`{a}` does not settle `{b}`.",
    "Is it unclear from `{a}` whether `{b}` is true?",
    "`{b}` may or may not be true, given `{a}`.",
    "Is `{b}` left open by `{a}`?",
    "`{a}` neither supports nor contradicts `{b}`.",
    "More than `{a}` is needed to judge `{b}`.",
)
NOT_ENOUGH = (
    "`{a}` does not prove `{b}`.",
    "Could `{b}` be false although `{a}` is true?",
    "`{b}` does not follow from `{a}`.",
    "`{a}` is not enough to conclude `{b}`.",
    "Is the step from `{a}` to `{b}` unsound?",
    "`{b}` goes beyond what `{a}` says.",
)
NAMES = (
    *words.VERDICTS,
    ("follows", "undecided", "conflicts"),
    ("TRUE", "UNVERIFIED", "FALSE"),
    ("supports", "neither", "refutes"),
    ("right", "not sure", "wrong"),
    ("backed", "not covered", "denied"),
    ("proven", "unproven", "disproven"),
    ("1", "0", "-1"),
)
TEXTS = (
    *words.VERDICT_TEXTS,
    ("", "", ""),
    ("", "", ""),
    ("must be true", "may or may not be true", "cannot be true"),
    ("what is given shows that it is true", "what is given does not decide it", "what is given shows that it is false"),
    ("yes, this is stated or implied", "nothing decides it", "no, the opposite is stated or implied"),
)
TWO_NAMES = (
    ("follows", "does not follow"),
    ("valid", "invalid"),
    ("entailed", "not entailed"),
    ("yes", "no"),
    ("supported", "not supported"),
    ("sound", "unsound"),
    ("proven", "not proven"),
)
TWO_TEXTS = (
    ("", ""),
    ("must be true", "may be false"),
    ("the conclusion is certain", "the conclusion is not certain"),
    ("it follows", "it does not follow"),
)
# Wordings for stance, which is an argument about a claim.
STANCE_PRO = (
    "`{a}` supports `{b}`.",
    "Does `{a}` speak for `{b}`?",
    "Who argues `{a}` would agree with `{b}`.",
    "`{a}` is a reason to accept `{b}`.",
    "Is `{a}` on the side of `{b}`?",
    "`{a}` strengthens `{b}`.",
)
STANCE_CON = (
    "`{a}` opposes `{b}`.",
    "Does `{a}` speak against `{b}`?",
    "Who argues `{a}` would disagree with `{b}`.",
    "`{a}` is a reason to reject `{b}`.",
    "Is `{a}` on the other side from `{b}`?",
    "`{a}` weakens `{b}`.",
)
STANCE_OFF = (
    "`{a}` has nothing to do with `{b}`.",
    "Is `{a}` beside the point of `{b}`?",
    "`{a}` takes no side on `{b}`.",
    "Does `{a}` leave `{b}` untouched?",
)
STANCE = (
    "How does `{a}` relate to `{b}`?",
    "What stance does `{a}` take on `{b}`?",
    "For or against `{b}`?",
    "Classify the stance of `{a}` towards `{b}`.",
    "Does `{a}` argue for `{b}`?",
    "On which side of `{b}` is `{a}`?",
    "Judge what `{a}` does for `{b}`.",
    "Is `{a}` pro or con?",
)
STANCES = (
    ("support", "unrelated", "oppose"),
    ("for", "neither", "against"),
    ("pro", "off-topic", "con"),
    ("agrees", "no stance", "disagrees"),
    ("favour", "none", "against"),
    ("yes", "neutral", "no"),
)
STANCE_TEXTS = (
    ("", "", ""),
    ("speaks for the claim", "is about something else", "speaks against the claim"),
    ("a reason to believe it", "no reason either way", "a reason not to believe it"),
)


def parts_of(row: Row) -> tuple[Any, str] | None:
    """Returns the evidence for a row's claim, and the claim; None if the row has no claim."""
    state, asked = row.state, row.question["instructions"]
    if row.source == "tabfact_val" or row.source == "infotabs" and row.question["type"] == "noul":
        return state, asked
    if not isinstance(state, dict):
        return None
    claim = state.get("hypothesis") or state.get("claim") or state.get("statement")
    rest = {key: value for key, value in state.items() if value is not claim}
    if claim is None:
        if (
            row.source not in ("fever_symmetric", "fool_me_twice", "folio")
            or "`" in asked
            or row.question["type"] != "noul"
        ):
            return None
        claim = asked
    if len(rest) != 1 or not claim:
        return None
    return next(iter(rest.values())), claim


def label_of(row: Row) -> int | None:
    """Returns the verdict of a row: supported, open, refuted, or only not supported; None if its yes/no is of another
    kind."""
    if row.question["type"] == "choice":
        return LABELS.get(row.label)
    asked = row.question["instructions"]
    if row.question["type"] != "noul":
        return None
    if row.source in ("tabfact_val", "infotabs"):
        return SUPPORTED if row.label else REFUTED
    if row.source == "perspectrum":
        against = any(word in asked for word in ("disagree", "against"))
        return (REFUTED if against else SUPPORTED) if row.label else None
    if (
        "rule out" in asked
        or "contradict" in asked
        or "cannot both" in asked
        or "false according" in asked
        or "refute" in asked
    ):
        return REFUTED if row.label else None
    if row.label:
        return SUPPORTED
    return REFUTED if row.source in ("fever_symmetric", "fool_me_twice") else NOT_SUPPORTED


def judged(rng: Random, rows: list[Row]) -> Group:
    """Asks one or two claims about the same evidence, in the instructions or one of them in the state."""
    first = rows[0]
    evidence, claim = parts_of(first) or ("", "")
    label = label_of(first)
    if first.source == "perspectrum":
        return stance(rng, first.source, evidence, claim, label or 0)
    if label == NOT_SUPPORTED or first.source in TWO_WAY or rng.random() < 0.45:
        return beside(rng, first.source, evidence, claim, label or 0)
    into = Scene({"": evidence}, None, "text")
    if not isinstance(evidence, str) or rng.random() < 0.5:
        key = rng.choice(EVIDENCE_KEYS if isinstance(evidence, str) else RECORD_KEYS)
        into = Scene(
            {key: evidence}
            if isinstance(evidence, str) or rng.random() < 0.4 or not isinstance(evidence, dict)
            else dict(evidence),
            key,
            "text",
        )
        if key not in into.parts:
            into.key = None
    for row in rows[:2]:
        parts, verdict = parts_of(row), label_of(row)
        if parts and parts[0] == evidence and verdict in (SUPPORTED, OPEN, REFUTED):
            instructed(rng, into, parts[1], verdict)
    return (
        into.group(rng, first.source)
        if into.key or len(into.parts) == 1
        else Group(first.source, words.render(rng, into.parts), into.asked, into.ties)
    )


def filled(rng: Random, templates: tuple[str, ...], claim: str) -> str:
    """Returns a wording with a claim in it."""
    template = pick(rng, templates)
    return (
        template.replace("{S}", whole(claim)).replace("{}", clause(claim))
        if "{S}" in template
        else template.replace("{}", clause(claim))
    )


def verdict(
    rng: Random,
    instructions: str,
    label: int,
    names: tuple[tuple[str, ...], ...] = NAMES,
    texts: tuple[tuple[str, ...], ...] = TEXTS,
) -> tuple[Asked, tuple[int, int, int]]:
    """Returns a choice of supported, open and refuted, and the position of each."""
    named, meant, order = pick(rng, names), pick(rng, texts), rng.sample(range(3), 3)
    if any(meant) and rng.random() < 0.12:
        named = tuple(words.opaque_names(rng, 3))
    question = {"type": "choice", "instructions": instructions, "criteria": {named[i]: meant[i] for i in order}}
    return Asked(question, [float(i == label) for i in order]), (order.index(0), order.index(1), order.index(2))


def instructed(rng: Random, into: Scene, claim: str, label: int) -> None:
    """Asks about a claim that stands in the instructions."""
    at = None
    if rng.random() < 0.5:
        asked, places = verdict(rng, filled(rng, VERDICT, claim), label)
        into.asked.append(asked)
        at = len(into.asked) - 1
    # The claim is asked as it stands only if the text settles it, because "open" is not a clear no.
    if label != OPEN and rng.random() < 0.62:
        question = words.question_of(claim) if rng.random() < 0.5 else None
        made = (
            questioned(rng, into, question, float(label == SUPPORTED))
            if question
            else said(rng, into, claim, float(label == SUPPORTED))
        )
        if at is not None:
            target = into.asked[made].target
            into.ties.append(equal((at, places[SUPPORTED]), (made, 1 if target[1] == float(label == SUPPORTED) else 0)))
    for templates, side, share in ((SUPPORT, SUPPORTED, 0.42), (DENY, REFUTED, 0.3), (UNSETTLED, OPEN, 0.22)):
        # The three verdicts are equally frequent, so asking half as often about another verdict makes yes and no
        # equally frequent.
        if rng.random() < (share if label == side else share / 2):
            into.asked.append(noul(rng, filled(rng, templates, claim), float(label == side)))
            if at is not None:
                into.ties.append(equal((at, places[side]), (len(into.asked) - 1, 1)))
    if not into.asked:
        into.asked.append(verdict(rng, filled(rng, VERDICT, claim), label)[0])


def beside(rng: Random, source: str, evidence: Any, claim: str, label: int) -> Group:
    """Puts evidence and claim into the state, and asks how they relate."""
    a = rng.choice(EVIDENCE_KEYS if isinstance(evidence, str) else RECORD_KEYS)
    b = rng.choice([key for key in CLAIM_KEYS if key != a])
    parts = [(a, evidence), (b, claim)]
    if rng.random() < 0.35:
        parts.reverse()
    into = Scene(dict(parts), a, "text")
    at = None
    if label == NOT_SUPPORTED or source in TWO_WAY and (label == SUPPORTED or rng.random() < 0.5):
        if rng.random() < 0.4:
            into.asked.append(followed(rng, pick(rng, RELATE).format(a=a, b=b), label == SUPPORTED))
        for templates, holds in ((RELATE_YES, label == SUPPORTED), (NOT_ENOUGH, label != SUPPORTED)):
            if rng.random() < 0.5 or not into.asked:
                into.asked.append(noul(rng, pick(rng, templates).format(a=a, b=b), float(holds)))
        return into.group(rng, source)
    if rng.random() < 0.7:
        asked, places = verdict(rng, pick(rng, RELATE).format(a=a, b=b), label)
        into.asked.append(asked)
        at = 0
    for templates, side, share in (
        (RELATE_YES, SUPPORTED, 0.6),
        (RELATE_NO, REFUTED, 0.45),
        (RELATE_OPEN, OPEN, 0.3),
        (NOT_ENOUGH, None, 0.12),
    ):
        holds = label != SUPPORTED if side is None else label == side
        # "Not enough" is right for two verdicts of three, the other questions for one.
        if rng.random() < (share if holds != (side is None) else share / 2):
            into.asked.append(noul(rng, pick(rng, templates).format(a=a, b=b), float(holds)))
            if at is not None:
                into.ties.append(
                    equal(
                        (at, places[SUPPORTED if side is None else side]),
                        (len(into.asked) - 1, 0 if side is None else 1),
                    )
                )
    if not into.asked:
        into.asked.append(verdict(rng, pick(rng, RELATE).format(a=a, b=b), label)[0])
    return into.group(rng, source)


def followed(rng: Random, instructions: str, follows: bool) -> Asked:
    """Returns the question whether a claim follows, as a choice of two."""
    names, texts, order = pick(rng, TWO_NAMES), rng.choice(TWO_TEXTS), rng.sample(range(2), 2)
    return Asked(
        {"type": "choice", "instructions": instructions, "criteria": {names[i]: texts[i] for i in order}},
        [float((i == 0) == follows) for i in order],
    )


def stance(rng: Random, source: str, argument: Any, claim: str, label: int) -> Group:
    """Asks about the stance of an argument towards a claim."""
    a, b = rng.choice(
        (
            ("argument", "claim"),
            ("argument", "claim"),
            ("comment", "proposal"),
            ("post", "topic"),
            ("reply", "thesis"),
            ("perspective", "motion"),
        )
    )
    into = Scene(dict(rng.sample([(a, argument), (b, claim)], 2)), a, a)
    at = None
    if rng.random() < 0.6:
        asked, places = verdict(rng, pick(rng, STANCE).format(a=a, b=b), label, STANCES, STANCE_TEXTS)
        into.asked.append(asked)
        at = 0
    for templates, side, share in ((STANCE_PRO, SUPPORTED, 0.7), (STANCE_CON, REFUTED, 0.7), (STANCE_OFF, OPEN, 0.4)):
        if rng.random() < (share if label == side else share / 2):
            into.asked.append(noul(rng, pick(rng, templates).format(a=a, b=b), float(label == side)))
            if at is not None:
                into.ties.append(equal((at, places[side]), (len(into.asked) - 1, 1)))
    if not into.asked:
        into.asked.append(verdict(rng, pick(rng, STANCE).format(a=a, b=b), label, STANCES, STANCE_TEXTS)[0])
    return into.group(rng, source)
