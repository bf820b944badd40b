"""Decides how often each row is shown: a stream of groups that follows only from the seed and the place in the
stream."""

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from random import Random

from ..data.groups import Group
from ..data.layout import Encoded, encode
from ..data.question import Question
from ..data.rows import Row, state_key
from ..generate.exams import LESSONS
from ..generate.written import RANKED, SERVICES, WRITTEN
from . import properties, verdicts
from .asking import Draw
from .consistency import ruled, swept
from .pools import Pools, make_pools
from .recipes import filed, kind_of, long_document, make_group, matching
from .targets import KNOWLEDGE, unsure_of_none

# The share of the steps' groups by source and recipe. Generated and written rows together have at most a third. Sources
# with few rows have a small share, and mustard, whose sarcasm of two shows does not carry over to other texts.
WEIGHTS = {
    "generated": 9.2,
    "likeness": 28,
    "own": 60,
    "written:written": 18,
    "exams:exam": 8,
    "lessons:exam": 3,
    "mnli_dev:verdict": 20,
    "snli_dev:verdict": 6,
    "cad_nli:verdict": 5,
    "conjnli_adv:verdict": 1.5,
    "negation_nli:verdict": 0.8,
    "med_help:verdict": 0.8,
    "megaveridicality:verdict": 0.5,
    "infotabs:verdict": 8,
    "tabfact_val:verdict": 1.5,
    "fever_symmetric:verdict": 2.5,
    "fool_me_twice:verdict": 3.5,
    "folio:verdict": 0.5,
    "perspectrum:verdict": 2,
    "boolq_train1886:passage": 4.5,
    "condaqa:passage": 4.5,
    "strategyqa:passage": 0.5,
    "logicbench_aug:passage": 0.7,
    "csqa2:passage": 0.8,
    "creak:passage": 0.8,
    "pros_cons:feeling": 2,
    "product_reviews:feeling": 1.2,
    "vader_rated:feeling": 4,
    "movie_reviews:feeling": 2,
    "cad_sentiment:feeling": 2.5,
    "tsa_md:feeling": 2,
    "newsmtsc:feeling": 4,
    "poem_sentiment:feeling": 0.3,
    "emobank:feeling": 1,
    "spamassassin:property": 3,
    "prompt_injection_mix:property": 7,
    "clickbait:property": 2,
    "mustard:property": 0.6,
    "query_wellformedness:property": 0.8,
    "davidson:property": 6,
    "toxigen:property": 4.5,
    "product_reviews:property": 0.6,
    "goemotions:choice": 2,
    "hwu64_fold1:choice": 3,
    "snips:choice": 0.7,
    "sgd:choice": 1.5,
    "multidogo:choice": 3,
    "nlupp:choice": 1.5,
    "slurp_devtest:choice": 1.5,
    "home_intents:choice": 1,
    "rasa_bots:choice": 0.6,
    "nlu_eval_corpora:choice": 0.5,
    "services:choice": 7,
    "sib200_en:choice": 1,
    "masc_genre:choice": 1,
    "csabstruct:choice": 1,
    "cfpb_other:choice": 0.8,
    "commonsenseqa:choice": 4,
    "splunk:choice": 0.3,
    "evidence_inference:choice": 0.7,
    "persona:claim": 1.2,
    "presidio:claim": 0.9,
    "defeasible:claim": 0.6,
    "qnli_dev:claim": 1.2,
    "nlupp:claim": 1.2,
    "sgd:claim": 0.8,
    "goemotions:claim": 0.8,
    "evidence_inference:claim": 0.3,
    "multidogo:claim": 0.6,
    "slurp_devtest:claim": 0.2,
    "home_intents:claim": 0.2,
    "masc_genre:claim": 0.3,
    "sib200_en:claim": 0.3,
    "csabstruct:claim": 0.4,
    "cfpb_other:claim": 0.3,
    "rasa_bots:claim": 0.2,
    "nlu_eval_corpora:claim": 0.1,
    "sigma:levels": 6,
    "splunk:levels": 4,
    "onestop:levels": 1,
    "stsb_en:levels": 1.5,
    "emobank:levels": 1,
    "query_wellformedness:levels": 0.8,
    "perspectrum:levels": 0.8,
    "goemotions:levels": 1.5,
    "series_events:levels": 7,
    "series_damage:levels": 1.1,
    "series_replies:levels": 3,
    "series_finds:levels": 1.2,
    "series_fit:levels": 0.8,
    "series_support:levels": 1,
    "series_agreement:levels": 0.7,
    "series_customers:levels": 0.8,
    "series_leaving:levels": 0.8,
    "series_outlook:levels": 0.9,
    "series_hostility:levels": 1.4,
    "series_courtesy:levels": 0.7,
    "series_formality:levels": 0.6,
    "series_certainty:levels": 0.8,
    "series_buyers:levels": 0.7,
    "series_progress:levels": 1.4,
    "series_detail:levels": 0.9,
    "series_difficulty:levels": 0.9,
    "series_secrecy:levels": 0.8,
    "series_risk:levels": 1.4,
}
MATCHING = {"question": 1.2, "title": 1, "trait": 0.5, "claim": 0.8, "paraphrase": 0.4, "service": 0.3}
DEFAULT_WEIGHT = 1.0
DOCUMENTS, RULES, AMOUNTS, COMMENTS, ISSUES = "documents", "rules", "amounts", "comments", "issues"


@dataclass(frozen=True)
class Made:
    """A source whose groups are made while a step needs them: its weight, and the function that makes one."""

    weight: float
    make: Callable[[Random, str, Pools], Group]


MADE = {
    # Long texts; there are few of them, because they take long to read.
    DOCUMENTS: Made(0.6, lambda rng, _, pools: long_document(rng, pools)),
    # Records with questions that imply each other.
    RULES: Made(7.4, lambda rng, source, _: ruled(rng, source)),
    # Texts with a number, asked about several limits.
    AMOUNTS: Made(6, lambda rng, source, _: swept(rng, source)),
    # Comments with and without attacks.
    COMMENTS: Made(6, lambda rng, source, _: properties.moderated(rng, source)),
    # Issues of software projects, beside those among the generated rows.
    ISSUES: Made(3, lambda rng, source, _: filed(rng, source)),
}
# Sources and kinds in which cutting the state may cut the evidence; longer states are skipped instead.
EVIDENCE = frozenset({"generated", DOCUMENTS, RULES, AMOUNTS})
EVIDENCE_KINDS = frozenset({"verdict", "passage", "claim", WRITTEN, "exam"})
STATE_LIMITS = (64, 96, 128, 128, 224)
# The sources whose states may be longer, up to these tokens. A step over a text of more than 5,000 tokens takes 24 GB;
# one document in two hundred would be as long.
LONGEST = {DOCUMENTS: 3072, WRITTEN: 224}
# Sources whose questions an earlier model answers worse than it should; it calls too few comments toxic.
UNKNOWN = KNOWLEDGE | properties.ABUSIVE | {COMMENTS, properties.ATTACKS, AMOUNTS, WRITTEN, SERVICES, LESSONS, *RANKED}
# Fewer pairs than this are too alike to be matched with each other.
FEWEST_PAIRS = 9
# The most other rows about a state that are asked in the same group, by kind, and for all other kinds.
MATES = {WRITTEN: 7}
MOST_MATES = 3
# Sides that wordings must not distinguish come equally often. A level or label that has n times as many rows as another
# comes only about the root of n times as often.
EVEN = frozenset({"verdict", "passage", "property", "claim"})
POWER = {"feeling": 0.35, "choice": 0.5, "levels": 0.5}


class Mixture:
    """Groups drawn from prepared rows. `pool(i)` is the same for the same rows, seed and i."""

    def __init__(self, rows: list[Row], seed: int, held_out: bool = False) -> None:
        self.seed, self.held_out = seed, held_out
        # The rows of each side, and the rows that share a state, both by source and recipe.
        self.sides: dict[str, dict[Hashable, list[Row]]] = defaultdict(lambda: defaultdict(list))
        self.mates: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            found = kind_of(row)
            if found:
                kind, side = found
                name = named(row.source, kind)
                self.sides[name][side].append(row)
                self.mates[name][shared_state(row, kind)].append(row)
        self.shares = {name: balanced(name.rpartition(":")[2], sides) for name, sides in self.sides.items()}
        self.pools = make_pools(rows)
        weights = {name: WEIGHTS.get(name, DEFAULT_WEIGHT) for name in self.sides}
        matched = {
            kind: weight for kind, weight in MATCHING.items() if len(self.pools.pairs.get(kind, ())) >= FEWEST_PAIRS
        }
        weights |= {f"match:{kind}": weight for kind, weight in matched.items()}
        weights |= {name: made.weight for name, made in MADE.items()}
        self.names, self.weights = list(weights), list(weights.values())

    def multiply(self, pattern: str, factor: float) -> frozenset[str]:
        """Multiplies the weights of the sources whose names match a pattern with "*", and returns these names."""
        sources = [name.removeprefix("match:").partition(":")[0] for name in self.names]
        found = frozenset(source for source in sources if fnmatchcase(source, pattern))
        self.weights = [weight * factor if source in found else weight for source, weight in zip(sources, self.weights)]
        return found

    def pool(self, index: int, size: int) -> list[Encoded]:
        """Returns the next `size` groups from number `index` x `size` on, encoded."""
        rng = Draw(f"{self.seed}:{index}")
        rng.held_out = self.held_out
        encoded: list[Encoded] = []
        while len(encoded) < size:
            group, kind = self.draw(rng)
            if group.asked:
                limit = LONGEST.get(group.source) or rng.choice(STATE_LIMITS)
                row = encode(group, limit)
                is_whole = sum(part > 0 for part in row.part) < limit
                if is_whole or (group.source not in EVIDENCE and kind not in EVIDENCE_KINDS):
                    encoded.append(row)
        return encoded

    def draw(self, rng: Random) -> tuple[Group, str]:
        """Returns one group, which says what an earlier model may answer, and the recipe that made it."""
        group, kind = self.drawn(rng)
        for asked in group.asked:
            asked.kept = asked.kept and group.source not in UNKNOWN and is_known(asked.question)
        unsure_of_none(group)
        return group, kind

    def drawn(self, rng: Random) -> tuple[Group, str]:
        """Returns one group, and the recipe that made it."""
        name = rng.choices(self.names, self.weights)[0]
        if name in MADE:
            return MADE[name].make(rng, name, self.pools), name
        if name.startswith("match:"):
            return matching(rng, self.pools, name.removeprefix("match:")), "match"
        kind = name.rpartition(":")[2] if ":" in name else "plain"
        sides, shares = self.shares[name]
        row = rng.choice(self.sides[name][rng.choices(sides, shares)[0]])
        mates = self.mates[name][shared_state(row, kind)]
        if kind != "plain":
            others = [other for other in mates if other is not row]
            mates = [row, *rng.sample(others, min(MATES.get(kind, MOST_MATES), len(others)))]
        return make_group(rng, kind, mates, self.pools), kind


def is_known(question: Question) -> bool:
    """Whether an earlier model's answer to a question may be kept: not to a score, which it read by its places."""
    return question["type"] != "score"


def named(source: str, kind: str) -> str:
    """Returns a name from a source and its recipe; rows that are asked as they stand have only the name of their
    source."""
    return source if kind == "plain" else f"{source}:{kind}"


def balanced(kind: str, sides: dict[Hashable, list[Row]]) -> tuple[list[Hashable], list[float]]:
    """Returns the sides, and the weight with which each is drawn."""
    names = list(sides)
    return names, [1.0 if kind in EVEN else len(sides[name]) ** POWER.get(kind, 1.0) for name in names]


def shared_state(row: Row, kind: str) -> str:
    """Returns the text that rows of one group share: the state, or the evidence of several claims."""
    parts = verdicts.parts_of(row) if kind == "verdict" else None
    return state_key(parts[0]) if parts else state_key(row.state)
