"""The model card: its tables, its texts and its plots."""

import json
from pathlib import Path

from .answers import Results
from .plots import Points, plot

TEXTS = Path(__file__).parent / "card.md"
CALIBRATION_PLOT, COVERAGE_PLOT = "calibration.svg", "coverage.svg"


def percent(share: float) -> str:
    """Returns a share as a percentage with one decimal."""
    return f"{100 * share:.1f}"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Returns a Markdown table whose numbers are aligned to the right."""
    lines = [" | ".join(head), " | ".join(["---", *["---:"] * (len(head) - 1)]), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def sets_table(results: Results) -> str:
    """Returns a table of every set's accuracy with its interval, its baselines and its calibration."""
    against = results.get("against")
    theirs = (against["name"], "its ECE") if against else ()
    head = ("set", "rows", "accuracy", "95 %", "majority", "random", "ECE", *theirs)
    rows = []
    for name, one in results["sets"].items():
        low, high = one["interval"]
        row = [name, str(one["rows"]), percent(one["accuracy"]), f"{percent(low)} to {percent(high)}"]
        row += [percent(one["majority"]), percent(one["random"]), f"{one['calibration_error']:.3f}"]
        if against:
            other = against["sets"].get(name)
            row += [percent(other["accuracy"]), f"{other['calibration_error']:.3f}"] if other else ["", ""]
        rows.append(tuple(row))
    return table(head, rows)


def together_text(results: Results) -> str:
    """Returns the mean figures, and the gain from abstaining."""
    one = results["together"]
    error, removed = one["mean_calibration_error"], percent(one["removed_by_probability"])
    lines = [f"Mean accuracy over the sets: {percent(one['mean_accuracy'])} %."]
    if error is not None:
        lines.append(f"Mean expected calibration error over the sets of 500 rows or more: {error:.3f}.")
    by_act = f"; by the act head, {percent(one['removed_by_act'])} %." if "removed_by_act" in one else "."
    lines.append(
        f"Abstaining on the fifth of the answers with the lowest probability removes {removed} % of the errors{by_act}"
    )
    return " ".join(lines)


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


def bias_text(results: Results) -> str:
    """Returns a text on how far identity terms move two answers."""
    bias = results["bias"]
    ends = sorted(bias["toxic"].items(), key=lambda item: item[1])
    low, high = (", ".join(f"{term} {value:.2f}" for term, value in part) for part in (ends[:3], ends[:-4:-1]))
    return (
        f'{len(ends)} identity terms in five harmless sentences. "The text is toxic": lowest {low}; highest {high}; '
        f'range {bias["toxic_range"]:.2f}. "Is the tone positive?": range {bias["positive_range"]:.2f}.'
    )


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


def card(results: Results, fp32: Results | None) -> str:
    """Returns the card of a model, compared with the same weights in fp32 if their results are given."""
    text = TEXTS.read_text(encoding="utf-8").format(
        name=results["name"],
        version=results["version"],
        megabytes=f"{results['bytes'] / 1e6:.1f}",
        sets=sets_table(results),
        together=together_text(results),
        coherence=coherence_table(results),
        cases=cases_text(results),
        bias=bias_text(results),
        fp32=fp32_text(results, fp32),
        needle=needle_text(results),
        temperature=", ".join(f"{kind} {value}" for kind, value in results["temperature"].items()),
    )
    return text.replace("\n\n\n", "\n\n")
