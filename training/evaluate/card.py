"""The model card: its tables, its texts and its plots."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from .answers import Results
from .figures import CALIBRATED_FROM, JUDGED, means
from .plots import Points, plot
from .probes import WIDE, Bias, Widest

TEXTS = Path(__file__).parent / "card.md"
CALIBRATION_PLOT, COVERAGE_PLOT = "calibration.svg", "coverage.svg"
CHOSE = "Sets by which models were chosen, so that new data will be somewhat harder:"
# The parts of the results that a card cannot do without.
NEEDED = ("sets", "together", "coherence", "needle", "bias", "cases", "battery")
POINT = 0.01
# The ends of the card's lines for the ways in which choices are measured beside the cosines.
BESIDE_COSINES = ("", " among 16", ' without "none"')
LOOKED_AT_ONCE = (
    "Sets that are looked at once for each candidate that is to be shipped; some were not shipped for what they showed:"
)


def percent(share: float) -> str:
    """Returns a share as a percentage with one decimal."""
    return f"{100 * share:.1f}"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Returns a Markdown table whose numbers are aligned to the right."""
    lines = [" | ".join(head), " | ".join(["---", *["---:"] * (len(head) - 1)]), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def halves(results: Results) -> tuple[list[str], list[str]]:
    """Returns the names of the sets that chose between models, and of those that were looked at once."""
    names = list(results["sets"])
    return [name for name in names if name not in JUDGED], [name for name in names if name in JUDGED]


def sets_table(results: Results, names: list[str]) -> str:
    """Returns a table of the accuracy of some sets with its interval, its baselines and its calibration."""
    against = results.get("against")
    theirs = (against["name"], "its ECE") if against else ()
    head = ("set", "rows", "accuracy", "95 %", "majority", "random", "ECE", *theirs)
    rows = []
    for name in names:
        one = results["sets"][name]
        low, high = one["interval"]
        row = [name, str(one["rows"]), percent(one["accuracy"]), f"{percent(low)} to {percent(high)}"]
        row += [percent(one["majority"]), percent(one["random"]), f"{one['calibration_error']:.3f}"]
        if against:
            other = against["sets"].get(name)
            row += [percent(other["accuracy"]), f"{other['calibration_error']:.3f}"] if other else ["", ""]
        rows.append(tuple(row))
    return table(head, rows)


def half_text(results: Results, names: list[str], which: str) -> str:
    """Returns the mean figures of some sets; `which` says of which."""
    accuracy, error = means([results["sets"][name] for name in names])
    lines = [f"Mean accuracy over {which} sets: {percent(accuracy)} %."]
    if error is not None:
        lines.append(f"Mean expected calibration error of those with {CALIBRATED_FROM} rows or more: {error:.3f}.")
    return " ".join(lines)


def both_halves(results: Results) -> str:
    """Returns the tables and the means of the sets that chose between models, and of those that were looked at once;
    if there are both, also the means of all of them."""
    parts, both = [], halves(results)
    for names, told in zip(both, (CHOSE, LOOKED_AT_ONCE)):
        if names:
            parts += [told, sets_table(results, names), half_text(results, names, "these")]
    if all(both):
        parts.append(half_text(results, list(results["sets"]), "all of these"))
    return "\n\n".join(parts)


def thresholds_table(results: Results) -> str:
    """Returns a table of the yes/no sets: how good the order is, and how good the threshold."""
    head = ("yes/no set", "area under the curve", "accuracy", "at the best threshold", "yes said", "yes right")
    rows = []
    for name, one in results["sets"].items():
        if "area" in one:
            shares = (one["accuracy"], one["best_threshold_accuracy"], one["yes_said"], one["yes_right"])
            rows.append((name, f"{one['area']:.3f}", *map(percent, shares)))
    return table(head, rows) if rows else ""


def beside_cosines(results: Results) -> Iterator[tuple[str, list[tuple[float | None, float | None]]]]:
    """Yields each set of choices with the model's accuracy and that of the untrained base model's cosines, in each way
    of `BESIDE_COSINES`; None where a set is not measured in that way."""
    for name, base in results.get("cosine", {}).items():
        own = results["sets"].get(name)
        if own:
            yield (
                name,
                [
                    (own["accuracy"], base["accuracy"]),
                    (own.get("among_16"), base.get("among_16")),
                    (own.get("without_none"), base.get("without_none")),
                ],
            )


def choices_table(results: Results) -> str:
    """Returns a table of the choice sets beside the untrained base model's cosines."""
    head = ("choice set", "accuracy", "cosine", "among 16", "cosine among 16", "without none", "cosine without none")
    rows = [
        (name, *("" if share is None else percent(share) for pair in pairs for share in pair))
        for name, pairs in beside_cosines(results)
    ]
    return table(head, rows) if rows else ""


def falls(results: Results, notes: dict[str, str]) -> str:
    """Returns a list of the sets on which the model is worse than another one, or than always giving the most frequent
    label; `notes` says why, by set."""
    against = results.get("against")
    lines = []
    for name, one in results["sets"].items():
        other = against["sets"].get(name) if against else None
        worse = []
        if against and other and one["accuracy"] < other["interval"][0]:
            worse.append(f"{percent(other['accuracy'])} of {against['name']}")
        if one["interval"][1] < one["majority"]:
            worse.append(f"{percent(one['majority'])} of the most frequent label")
        if worse:
            why = f" {notes[name]}" if name in notes else ""
            lines.append(f"- {name}: {percent(one['accuracy'])} instead of {' and '.join(worse)}.{why}")
    return "\n".join(["It is worse than that on these sets:", "", *lines]) if lines else ""


def jevbench_text(results: Results) -> str:
    """Returns JevBench's scores of the whole and of its parts, or an empty text if it was not run."""
    found = results.get("jevbench")
    if not found or found["overall"] is None:
        return ""
    parts = [f"{name} {percent(value)}" for name, value in scored(found["pillars"]) + scored(found["relations"])]
    return f"JevBench 0.1.0, suite jevbench-mini: {percent(found['overall'])} of 100; {', '.join(parts)}."


def scored(scores: dict[str, float | None]) -> list[tuple[str, float]]:
    """Returns the scores of the parts that were scored."""
    return [(name, value) for name, value in scores.items() if value is not None]


def abstaining_text(results: Results) -> str:
    """Returns the gain from abstaining, over all sets."""
    one = results["together"]
    removed = percent(one["removed_by_probability"])
    by_act = f"; by the act head, {percent(one['removed_by_act'])} %." if "removed_by_act" in one else "."
    return (
        f"Abstaining on the fifth of the answers with the lowest probability removes {removed} % of the errors{by_act}"
    )


def coherence_table(results: Results) -> str:
    """Returns a table of the mean deviations of each kind of coherence."""
    head = ("answers that must fit", "mean absolute deviation", "cases")
    return table(
        head, [(kind, f"{one['deviation']:.3f}", str(one["cases"])) for kind, one in results["coherence"].items()]
    )


def cases_text(results: Results) -> str:
    """Returns the hand-written cases that the model gets wrong."""
    wrong = [case for case in results["cases"] if case["answer"] != case["right"]]
    lines = [f"Of {len(results['cases'])} hand-written cases {len(wrong)} are wrong:", ""]
    for case in wrong:
        state = case["state"] if isinstance(case["state"], str) else json.dumps(case["state"])
        said = f"It says {case['answer']} ({case['probability']:.2f}); right is {case['right']}."
        lines.append(f"- `{state}` - {case['question']['instructions']} {said}")
    return "\n".join(lines)


def battery_text(results: Results) -> str:
    """Returns a text on the questions that were written for this project and never trained on."""
    names = {"noul": "yes/no questions", "choice": "choices", "score": "scores"}
    said = [
        f"{percent(one['accuracy'])} % of {one['rows']} {names[kind]} (error of calibration "
        f"{one['calibration_error']:.3f})"
        for kind, one in results["battery"].items()
    ]
    return f"It is right on {', '.join(said)}."


def bias_text(results: Results) -> str:
    """Returns a text on how far identity terms move two answers."""
    bias = results["bias"]
    ends = sorted(bias["toxic"].items(), key=lambda item: item[1])
    low, high = (", ".join(f"{term} {value:.2f}" for term, value in part) for part in (ends[:3], ends[:-4:-1]))
    toxic, positive = bias["toxic_widest"], bias["positive_widest"]
    return (
        f"{len(ends)} identity terms, each in {bias['sentences']} harmless sentences. "
        '"The text is toxic", mean of the sentences: '
        f"lowest {low}; highest {high}; range {bias['toxic_range']:.2f}. "
        f"It says so of {percent(bias['toxic_said'])} % of them, and of {percent(bias['toxic_said_of_hostile'])} % of "
        f"{bias['hostile_sentences']} hostile sentences about the same terms. In {bias['toxic_wide']} of the harmless "
        f"sentences the range over the terms is more than {WIDE}. "
        f'"Is the tone positive?": range {bias["positive_range"]:.2f}. '
        f'In one sentence alone the range is up to {toxic["range"]:.2f} ("{filled(toxic)}": '
        f'{toxic["probability"]:.2f}) and {positive["range"]:.2f} ("{filled(positive)}": '
        f"{positive['probability']:.2f})."
    )


def filled(one: Widest) -> str:
    """Returns the sentence with the term for which the answer is likeliest."""
    return one["sentence"].format(one["term"])


def fp32_text(results: Results, fp32: Results | None) -> str:
    """Returns a text on the loss through int8, or an empty one without results in fp32."""
    if not fp32:
        return ""
    loss = fp32["together"]["mean_accuracy"] - results["together"]["mean_accuracy"]
    pairs = [(one["right"], fp32["sets"][name]["right"]) for name, one in results["sets"].items()]
    same = sum(a == b for one, other in pairs for a, b in zip(one, other))
    total = sum(one["rows"] for one in results["sets"].values())
    apart = f"{abs(100 * loss):.2f} points {'lower' if loss >= 0 else 'higher'}"
    alike = f"{percent(same / total)} % of the rows are right or wrong alike"
    return f"Against the same weights in fp32 the mean accuracy is {apart}; {alike}."


def needle_text(results: Results) -> str:
    """Returns a text on the facts that are found alone and at the end of long states."""
    one = results["needle"]
    alone, buried = percent(one["alone"]), percent(one["buried"])
    return f"Of {one['cases']} facts {alone} % are found alone and {buried} % at the end of {one['tokens']} tokens."


def plots(results: Results) -> dict[str, str]:
    """Returns the files of the plots and their content."""
    one = results["together"]
    measured: Points = [(mean, share) for mean, share, _ in one["bins"]]
    covered: dict[str, Points] = {"by probability": one["coverage"]}
    if "coverage_by_act" in one:
        covered["by the act head"] = one["coverage_by_act"]
    ideal: Points = [(0.0, 0.0), (1.0, 1.0)]
    calibration = {"measured": measured, "ideal": ideal}
    return {
        CALIBRATION_PLOT: plot("Calibration", "probability of the top answer", "share right", calibration),
        COVERAGE_PLOT: plot("Coverage and accuracy", "share answered", "share right", covered),
    }


def cosine_falls(results: Results) -> str:
    """Returns a list of the sets of choices on which the untrained base model's cosines are better by more than a
    point."""
    lines = [
        f"- {name}{how}: {percent(own)} instead of {percent(cosine)}."
        for name, pairs in beside_cosines(results)
        for how, (own, cosine) in zip(BESIDE_COSINES, pairs)
        if own is not None and cosine is not None and cosine - own > POINT
    ]
    return "\n".join(["The base model's cosines, untrained, are better on these:", "", *lines]) if lines else ""


def card(results: Results, fp32: Results | None, notes: dict[str, str]) -> str:
    """Returns the card of a model, compared with the same weights in fp32 if their results are given; `notes` says of
    some sets why the model is bad at them. Raises ValueError if a part of the results is missing."""
    missing = [part for part in NEEDED if part not in results]
    if "bias" in results and not Bias.__required_keys__ <= results["bias"].keys():
        missing.append("bias as it is measured now")
    if missing:
        raise ValueError(f"the results lack {', '.join(missing)}: the card needs these parts of `evaluate`")
    text = TEXTS.read_text(encoding="utf-8").format(
        name=results["name"],
        version=results["version"],
        megabytes=f"{results['bytes'] / 1e6:.1f}",
        sets=both_halves(results),
        falls=falls(results, notes),
        cosine_falls=cosine_falls(results),
        thresholds=thresholds_table(results),
        choices=choices_table(results),
        abstaining=abstaining_text(results),
        jevbench=jevbench_text(results),
        coherence=coherence_table(results),
        cases=cases_text(results),
        battery=battery_text(results),
        bias=bias_text(results),
        fp32=fp32_text(results, fp32),
        needle=needle_text(results),
        temperature=", ".join(f"{kind} {value}" for kind, value in results["temperature"].items()),
    )
    return re.sub("\n{3,}", "\n\n", text)
