"""Asks about a claim and its evidence: a text, a record, a table, rules or a study. The questions are three-way
verdicts, nearly half of which are open, and a yes/no for each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ..data import wording as words
from ..data.groups import YES, Asked, Group, equal, one_hot
from ..data.question import choice
from ..data.rows import Row, State
from .asking import CLAIM_KEYS, Scene, asked_noul, filled, pick, questioned, said
from .wordings import verdicts as wordings


@dataclass(frozen=True)
class Chances:
    """The probabilities of the questions about a claim. A verdict is claimed with the probability given here if it is
    right, and half as often otherwise: the three verdicts are equally frequent, so yes and no are equally frequent."""

    opaque_names: float = 0.12
    # Of the question for the verdict: most texts that a search finds leave a claim open, so nearly half of the verdicts
    # are that it is open.
    open_judged: float = 1.0
    settled_judged: float = 0.42
    # Of evidence and claim that are both in the state.
    claim_in_state: float = 0.45
    claim_first: float = 0.35
    supported_claimed: float = 0.6
    refuted_claimed: float = 0.45
    open_claimed: float = 0.3
    not_enough_claimed: float = 0.12
    # Of a claim in the instructions.
    evidence_has_key: float = 0.5
    record_has_key: float = 0.4
    asked_as_it_stands: float = 0.62
    turned_into_question: float = 0.5
    support_claimed: float = 0.42
    denial_claimed: float = 0.3
    unsettled_claimed: float = 0.22
    # Of sources that only tell whether a claim follows.
    two_way: float = 0.5
    followed: float = 0.4
    either_claimed: float = 0.5
    # Of an argument about a claim.
    stance_judged: float = 0.6
    pro_claimed: float = 0.7
    con_claimed: float = 0.7
    off_claimed: float = 0.4


CHANCES = Chances()
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
# Sources that check facts: each of their texts settles the claims beside it.
FACTS = frozenset({"fever_symmetric", "fool_me_twice"})
# Sources whose yes/no rows ask the claim itself, and words in instructions by which yes means that it is refuted.
CLAIM_ASKED = FACTS | {"folio"}
REFUTING = ("rule out", "contradict", "cannot both", "false according", "refute")


@dataclass(frozen=True)
class Claim:
    """Wordings that claim one verdict, or that deny it, and the probability with which they are used if it is right."""

    wordings: tuple[str, ...]
    verdict: int
    chance: float
    denies: bool = False


IN_INSTRUCTIONS = (
    Claim(wordings.SUPPORT, SUPPORTED, CHANCES.support_claimed),
    Claim(wordings.DENY, REFUTED, CHANCES.denial_claimed),
    Claim(wordings.UNSETTLED, OPEN, CHANCES.unsettled_claimed),
)
IN_STATE = (
    Claim(wordings.RELATE_YES, SUPPORTED, CHANCES.supported_claimed),
    Claim(wordings.RELATE_NO, REFUTED, CHANCES.refuted_claimed),
    Claim(wordings.RELATE_OPEN, OPEN, CHANCES.open_claimed),
    Claim(wordings.NOT_ENOUGH, SUPPORTED, CHANCES.not_enough_claimed, denies=True),
)
OF_STANCE = (
    Claim(wordings.STANCE_PRO, SUPPORTED, CHANCES.pro_claimed),
    Claim(wordings.STANCE_CON, REFUTED, CHANCES.con_claimed),
    Claim(wordings.STANCE_OFF, OPEN, CHANCES.off_claimed),
)


@dataclass(frozen=True)
class Verdict:
    """A question for the verdict: its index, and the position of supported, open and refuted among its options."""

    at: int
    places: tuple[int, ...]


@dataclass
class Judging:
    """Questions about one claim while they are added to a scene; `worded` puts the claim into a wording."""

    into: Scene
    label: int
    worded: Callable[[str], str]
    names: tuple[tuple[str, ...], ...] = wordings.NAMES
    texts: tuple[tuple[str, ...], ...] = wordings.TEXTS
    verdict: Verdict | None = None

    def ask_verdict(self, rng: Random, templates: tuple[str, ...]) -> Verdict:
        """Asks for the verdict as a choice of supported, open and refuted."""
        instructions = self.worded(pick(rng, templates))
        named, meant, order = pick(rng, self.names), pick(rng, self.texts), rng.sample(range(3), 3)
        if any(meant) and rng.random() < CHANCES.opaque_names:
            named = tuple(words.opaque_names(rng, 3))
        target = one_hot(3, self.label)
        asked = choice(instructions, {named[i]: meant[i] for i in order})
        at = self.into.ask(Asked(asked, [target[i] for i in order]))
        return Verdict(at, tuple(order.index(verdict) for verdict in range(3)))

    def ask_claims(self, rng: Random, claims: tuple[Claim, ...]) -> None:
        """Asks for some of the verdicts whether they are right, and ties the answers to the choice if it was asked."""
        for claim in claims:
            is_right = self.label == claim.verdict
            if rng.random() < (claim.chance if is_right else claim.chance / 2):
                wording = self.worded(pick(rng, claim.wordings))
                made = self.into.ask(asked_noul(rng, wording, float(is_right != claim.denies)))
                self.tie(claim.verdict, (made, 1 - YES if claim.denies else YES))

    def tie(self, verdict: int, option: tuple[int, int]) -> None:
        """Ties an option, as (question, option), to a verdict of the choice if it was asked."""
        if self.verdict is not None:
            self.into.ties.append(equal((self.verdict.at, self.verdict.places[verdict]), option))


def parts_of(row: Row) -> tuple[State, str] | None:
    """Returns the evidence for a row's claim, and the claim; None if the row has no claim."""
    state, asked, kind = row.state, row.question["instructions"], row.question["type"]
    if row.source == "tabfact_val" or (row.source == "infotabs" and kind == "noul"):
        return state, asked
    if not isinstance(state, dict):
        return None
    claim = state.get("hypothesis") or state.get("claim") or state.get("statement")
    rest = {key: value for key, value in state.items() if value is not claim}
    if claim is None:
        if row.source not in CLAIM_ASKED or "`" in asked or kind != "noul":
            return None
        claim = asked
    if len(rest) != 1 or not claim:
        return None
    return next(iter(rest.values())), claim


def label_of(row: Row) -> int | None:
    """Returns the verdict of a row: supported, open, refuted, or only not supported; None if its yes/no is of another
    kind."""
    if row.question["type"] == "choice":
        return LABELS.get(str(row.label))
    asked = row.question["instructions"]
    if row.question["type"] != "noul":
        return None
    if row.source in ("tabfact_val", "infotabs"):
        return SUPPORTED if row.label else REFUTED
    if row.source == "perspectrum":
        against = any(word in asked for word in ("disagree", "against"))
        return (REFUTED if against else SUPPORTED) if row.label else None
    if any(word in asked for word in REFUTING):
        return REFUTED if row.label else None
    if row.label:
        return SUPPORTED
    return REFUTED if row.source in FACTS else NOT_SUPPORTED


def judged(rng: Random, rows: list[Row]) -> Group:
    """Asks one or two claims about the same evidence, in the instructions or one of them in the state."""
    first = rows[0]
    evidence, claim = parts_of(first) or ("", "")
    label = label_of(first)
    if first.source == "perspectrum":
        return stance(rng, evidence, claim, label or 0).group(rng, first.source)
    only_follows = label == NOT_SUPPORTED or first.source in TWO_WAY
    if only_follows or rng.random() < CHANCES.claim_in_state:
        return beside(rng, first, label or 0).group(rng, first.source)
    into = evidence_scene(rng, evidence)
    for row in rows[:2]:
        parts, verdict = parts_of(row), label_of(row)
        if parts and parts[0] == evidence and verdict in (SUPPORTED, OPEN, REFUTED):
            instructed(rng, into, parts[1], verdict)
    if into.key or len(into.parts) == 1:
        return into.group(rng, first.source)
    return Group(first.source, words.render(rng, into.parts), into.asked, into.ties)


def evidence_scene(rng: Random, evidence: State) -> Scene:
    """Returns evidence as a scene: a text by itself or under a key, a record under a key or as its fields."""
    if isinstance(evidence, str) and rng.random() >= CHANCES.evidence_has_key:
        return Scene({"": evidence}, None, "text")
    key = rng.choice(evidence_keys(evidence))
    as_fields = not isinstance(evidence, str) and rng.random() >= CHANCES.record_has_key and isinstance(evidence, dict)
    parts = dict(evidence) if as_fields else {key: evidence}
    return Scene(parts, key if key in parts else None, "text")


def evidence_keys(evidence: State) -> tuple[str, ...]:
    """Returns the keys under which evidence may stand."""
    return wordings.EVIDENCE_KEYS if isinstance(evidence, str) else wordings.RECORD_KEYS


def is_judged(rng: Random, label: int) -> bool:
    """Draws whether the verdict on a claim is asked for."""
    return rng.random() < (CHANCES.open_judged if label == OPEN else CHANCES.settled_judged)


def instructed(rng: Random, into: Scene, claim: str, label: int) -> None:
    """Asks about a claim that stands in the instructions."""
    judging = Judging(into, label, lambda wording: filled(wording, claim))
    if is_judged(rng, label):
        judging.verdict = judging.ask_verdict(rng, wordings.VERDICT)
    # The claim is asked as it stands only if the text settles it, because "open" is not a clear no.
    if label != OPEN and rng.random() < CHANCES.asked_as_it_stands:
        holds = float(label == SUPPORTED)
        question = words.question_of(claim) if rng.random() < CHANCES.turned_into_question else None
        made = questioned(rng, into, question, holds) if question else said(rng, into, claim, holds)
        is_straight = into.asked[made].target[YES] == holds
        judging.tie(SUPPORTED, (made, YES if is_straight else 1 - YES))
    judging.ask_claims(rng, IN_INSTRUCTIONS)
    if not into.asked:
        judging.ask_verdict(rng, wordings.VERDICT)


def beside(rng: Random, row: Row, label: int) -> Scene:
    """Returns a row's evidence and its claim as a state, with the question how they relate."""
    evidence, claim = parts_of(row) or ("", "")
    a = rng.choice(evidence_keys(evidence))
    b = rng.choice([key for key in CLAIM_KEYS if key != a])
    parts = [(a, evidence), (b, claim)]
    if rng.random() < CHANCES.claim_first:
        parts.reverse()
    into = Scene(dict(parts), a, "text")
    judging = Judging(into, label, lambda wording: wording.format(a=a, b=b))
    if label == NOT_SUPPORTED or (row.source in TWO_WAY and (label == SUPPORTED or rng.random() < CHANCES.two_way)):
        ask_whether_it_follows(rng, judging)
        return into
    if is_judged(rng, label):
        judging.verdict = judging.ask_verdict(rng, wordings.RELATE)
    judging.ask_claims(rng, IN_STATE)
    if not into.asked:
        judging.ask_verdict(rng, wordings.RELATE)
    return into


def ask_whether_it_follows(rng: Random, judging: Judging) -> None:
    """Asks whether a claim follows, as a choice of two and as yes/no questions."""
    into, follows = judging.into, judging.label == SUPPORTED
    if rng.random() < CHANCES.followed:
        into.ask(followed(rng, judging.worded(pick(rng, wordings.RELATE)), follows))
    for templates, holds in ((wordings.RELATE_YES, follows), (wordings.NOT_ENOUGH, not follows)):
        if rng.random() < CHANCES.either_claimed or not into.asked:
            into.ask(asked_noul(rng, judging.worded(pick(rng, templates)), float(holds)))


def followed(rng: Random, instructions: str, follows: bool) -> Asked:
    """Returns the question whether a claim follows, as a choice of two."""
    names, texts, order = pick(rng, wordings.TWO_NAMES), rng.choice(wordings.TWO_TEXTS), rng.sample(range(2), 2)
    target = one_hot(2, 0 if follows else 1)
    return Asked(choice(instructions, {names[i]: texts[i] for i in order}), [target[i] for i in order])


def stance(rng: Random, argument: State, claim: str, label: int) -> Scene:
    """Returns an argument and a claim as a state, with the question for the argument's stance."""
    a, b = rng.choice(wordings.STANCE_KEYS)
    into = Scene(dict(rng.sample([(a, argument), (b, claim)], 2)), a, a)
    names, texts = wordings.STANCES, wordings.STANCE_TEXTS
    judging = Judging(into, label, lambda wording: wording.format(a=a, b=b), names, texts)
    if rng.random() < CHANCES.stance_judged:
        judging.verdict = judging.ask_verdict(rng, wordings.STANCE)
    judging.ask_claims(rng, OF_STANCE)
    if not into.asked:
        judging.ask_verdict(rng, wordings.STANCE)
    return into
