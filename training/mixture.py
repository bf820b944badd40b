"""Which rows are shown how often: a stream of groups that follows from the seed and the place in it."""
from collections import Counter, defaultdict
from itertools import accumulate
from random import Random

from .layout import STATE_MAX, Encoded, Group, encode
from .recipes import INTENTS, JOINT, Pools, long_document, make_group, matching
from .rows import Row, option_count, state_key
from .tied import ruled
from .unsettled import by_word
from .wording import MATCH, humanized

# The share of steps' groups by source. Sources of few rows or of what a small encoder cannot know (csqa2, creak) have little.
WEIGHTS = {
    "generated": 46, "likeness": 72, "goemotions": 11, "hwu64_fold1": 11, "snips": 2, "sgd": 5, "mnli_dev": 12, "snli_dev": 5, "conjnli_adv": 3, "infotabs": 15,
    "boolq_train1886": 5, "qnli_dev": 3, "stsb_en": 2, "persona": 2.5, "davidson": 6, "defeasible": 1, "logicbench_aug": 1, "commonsenseqa": 1.5,
    "own": 60, "presidio": 1.5, "sigma": 1, "splunk": 1, "strategyqa": 0.5, "toxigen": 3, "tabfact_val": 1, "onestop": 0.5, "creak": 0.4, "csqa2": 0,
}
MATCHING = {"question": 3, "title": 3, "trait": 1.5, "claim": 2, "paraphrase": 1, "service": 1}
DEFAULT_WEIGHT = 1.0
# Long texts that are made as they are needed: few of them are much to read.
DOCUMENTS, DOCUMENT_WEIGHT = "documents", 2.5
# Records with questions that imply each other.
RULES, RULE_WEIGHT = "rules", 6
# Where cutting the state may cut the evidence: longer states are passed over instead.
EVIDENCE = frozenset({"infotabs", "boolq_train1886", "tabfact_val", "generated", RULES, "qnli_dev", "mnli_dev"})
STATE_LIMITS = (192, 192, 192, 192, 448)


class Mixture:
    """Groups drawn from prepared rows. `pool(i)` is the same for the same rows, seed and i."""

    def __init__(self, rows: list[Row], seed: int) -> None:
        self.seed = seed
        self.states: dict[str, list[list[Row]]] = {}
        self.shares: dict[str, list[float]] = {}
        by_source: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            by_source[row.source][shared_state(row)].append(row)
        for source, states in by_source.items():
            self.states[source] = list(states.values())
            self.shares[source] = balanced(self.states[source])
        self.pools = make_pools(rows)
        weights = {source: WEIGHTS.get(source, DEFAULT_WEIGHT) for source in self.states}
        weights |= {f"match:{kind}": weight for kind, weight in MATCHING.items() if len(self.pools.pairs.get(kind, ())) > 8}
        weights |= {DOCUMENTS: DOCUMENT_WEIGHT, RULES: RULE_WEIGHT}
        self.names, self.weights = list(weights), list(weights.values())

    def pool(self, index: int, size: int) -> list[Encoded]:
        """The groups number `index` x size and on, encoded."""
        rng = Random(f"{self.seed}:{index}")
        encoded: list[Encoded] = []
        while len(encoded) < size:
            group = self.draw(rng)
            if group.asked:
                limit = STATE_MAX if group.source == DOCUMENTS else rng.choice(STATE_LIMITS)
                row = encode(group, limit)
                if row.part.count(1) + row.part.count(2) < limit or group.source not in EVIDENCE:
                    encoded.append(row)
        return encoded

    def draw(self, rng: Random) -> Group:
        """One group."""
        name = rng.choices(self.names, self.weights)[0]
        if name == DOCUMENTS:
            return long_document(rng, self.pools)
        if name == RULES:
            return ruled(rng, RULES)
        if name.startswith("match:"):
            return matching(rng, self.pools, name.removeprefix("match:"))
        rows = rng.choices(self.states[name], cum_weights=self.shares[name])[0]
        return make_group(rng, rng.sample(rows, min(len(rows), 4)), self.pools)


def balanced(states: list[list[Row]]) -> list[float]:
    """Running sums of the states' weights: a label n times as frequent as another is drawn only the root of n times as often."""
    counts = Counter(str(rows[0].label) for rows in states)
    return list(accumulate(counts[str(rows[0].label)] ** -0.5 for rows in states))


def shared_state(row: Row) -> str:
    """What rows of one group have in common: the state, or the premise where several hypotheses share it."""
    if row.question["type"] == "choice" and isinstance(row.state, dict) and "hypothesis" in row.state:
        return "pair " + state_key({key: value for key, value in row.state.items() if key != "hypothesis"})
    # Rows of one state and several types are asked apart: a recipe handles one type.
    return row.question["type"] + state_key(row.state) if row.source not in JOINT else state_key(row.state)


def make_pools(rows: list[Row]) -> Pools:
    """Label sets, plain texts and pairs, from all rows."""
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    pairs: dict[str, list] = defaultdict(list)
    texts = []
    for row in rows:
        criteria = row.question.get("criteria")
        if row.source in INTENTS and row.question["type"] == "choice":
            labels[row.source] |= {name: text if text != humanized(name) else "" for name, text in criteria.items()}
        if isinstance(row.state, str) and 8 < len(row.state) < 200:
            texts.append(row.state)
        kind, pair = pair_of(row)
        if kind in MATCH:
            pairs[kind].append(pair)
    return Pools(list(labels.values()) or [{"greeting": "", "farewell": ""}], texts, pairs, by_word(rows))


def pair_of(row: Row) -> tuple[str, tuple]:
    """The kind and the pair of a state and a text that fits it, which a row holds; an empty kind where it holds none."""
    state, source = row.state, row.source
    if source == "qnli_dev" and row.label:
        return "question", (state["sentence"], state["question"])
    if source == "boolq_train1886":
        return "question", (state["passage"][:600], row.question["instructions"])
    if source in ("mnli_dev", "snli_dev") and row.label == "entailment":
        return "claim", (state["premise"], state["hypothesis"])
    if source == "stsb_en" and row.label >= 4:
        return "paraphrase", (state["a"], state["b"])
    if source == "persona" and row.label:
        return "trait", (state["statement"], row.question["instructions"].split(": ")[-1].rstrip("."))
    if source == "sgd" and option_count(row.question) > 1:
        return "service", ({"dialogue": state["dialogue"]}, state["service"])
    if source in ("sigma", "splunk"):
        return "title", (state["description"][:500], state.get("title") or state.get("name"))
    if source == "infotabs" and row.label == "entailment":
        record = state["record"]
        return "title", ({key: value for key, value in list(record.items())[:8] if key != "title"}, record["title"])
    return "", ()

