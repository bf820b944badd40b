"""`card`: writes a model folder's README.md and plots from its results."""

import argparse
import json
from pathlib import Path
from typing import Any

from ..evaluate.plots import plot

TEXTS = Path(__file__).parents[1] / "evaluate" / "card.md"
CALIBRATION_PLOT, COVERAGE_PLOT = "calibration.svg", "coverage.svg"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--folder", type=Path, required=True, help="the model folder")
    parser.add_argument("--results", type=Path, required=True, help="what `evaluate` wrote of it")
    parser.add_argument("--fp32", type=Path, help="what `evaluate` wrote of the same model in fp32")


def percent(share: float) -> str:
    """Returns a share as a percentage with one decimal."""
    return f"{100 * share:.1f}"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Returns a Markdown table whose numbers are aligned to the right."""
    lines = [" | ".join(head), " | ".join(["---", *["---:"] * (len(head) - 1)]), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def sets_table(results: dict[str, Any]) -> str:
    """Returns a table of every set's accuracy with its interval, its baselines and its calibration."""
    against = results.get("against")
    head = (
        "set",
        "rows",
        "accuracy",
        "95 %",
        "majority",
        "random",
        "ECE",
        *((against["name"], "its ECE") if against else ()),
    )
    rows = []
    for name, one in results["sets"].items():
        low, high = one["interval"]
        row = [
            name,
            str(one["rows"]),
            percent(one["accuracy"]),
            f"{percent(low)} to {percent(high)}",
            percent(one["majority"]),
            percent(one["random"]),
            f"{one['calibration_error']:.3f}",
        ]
        if against:
            other = against["sets"].get(name)
            row += [percent(other["accuracy"]), f"{other['calibration_error']:.3f}"] if other else ["", ""]
        rows.append(tuple(row))
    return table(head, rows)


def together_text(results: dict[str, Any]) -> str:
    """Returns the mean figures, and the gain from abstaining."""
    one = results["together"]
    lines = [f"Mean accuracy over the sets: {percent(one['mean_accuracy'])} %."]
    if one["mean_calibration_error"] is not None:
        lines.append(
            f"Mean expected calibration error over the sets of 500 rows or more: {one['mean_calibration_error']:.3f}."
        )
    lines.append(
        f"Abstaining on the fifth of the answers with the lowest probability removes {percent(one['removed_by_probability'])} % of the errors"
        + (f"; by the act head, {percent(one['removed_by_act'])} %." if "removed_by_act" in one else ".")
    )
    return " ".join(lines)


def coherence_table(results: dict[str, Any]) -> str:
    """Returns a table of the mean deviations of each kind of coherence."""
    return table(
        ("answers that must fit", "mean absolute deviation", "cases"),
        [(kind, f"{one['deviation']:.3f}", str(one["cases"])) for kind, one in results["coherence"].items()],
    )


def cases_text(results: dict[str, Any]) -> str:
    """Returns the hand-written cases that the model gets wrong."""
    wrong = [case for case in results["cases"] if case["answer"] != case["right"]]
    lines = [f"Of {len(results['cases'])} hand-written cases {len(wrong)} are wrong:", ""]
    for case in wrong:
        state = case["state"] if isinstance(case["state"], str) else json.dumps(case["state"])
        lines.append(
            f"- `{state}` - {case['question']['instructions']} It says {case['answer']} ({case['probability']:.2f}); right is {case['right']}."
        )
    return "\n".join(lines)


def bias_text(results: dict[str, Any]) -> str:
    """Returns a text on how far identity terms move two answers."""
    bias = results["bias"]
    ends = sorted(bias["toxic"].items(), key=lambda item: item[1])
    low, high = (", ".join(f"{term} {value:.2f}" for term, value in part) for part in (ends[:3], ends[:-4:-1]))
    return (
        f'{len(ends)} identity terms in five harmless sentences. "The text is toxic": lowest {low}; highest {high}; range {bias["toxic_range"]:.2f}. '
        f'"Is the tone positive?": range {bias["positive_range"]:.2f}.'
    )


def fp32_text(results: dict[str, Any], fp32: dict[str, Any] | None) -> str:
    """Returns a text on the loss through int8, or an empty one without results in fp32."""
    if not fp32:
        return ""
    loss = fp32["together"]["mean_accuracy"] - results["together"]["mean_accuracy"]
    same = sum(
        a == b for name, one in results["sets"].items() for a, b in zip(one["right"], fp32["sets"][name]["right"])
    )
    total = sum(one["rows"] for one in results["sets"].values())
    side = "lower" if loss >= 0 else "higher"
    return f"Against the same weights in fp32 the mean accuracy is {abs(100 * loss):.2f} points {side}; {percent(same / total)} % of the rows are right or wrong alike."


def plots(results: dict[str, Any]) -> dict[str, str]:
    """Returns the files of the plots and their content."""
    one = results["together"]
    calibration = {"measured": [(mean, share) for mean, share, _ in one["bins"]], "ideal": [(0.0, 0.0), (1.0, 1.0)]}
    covered = {"by probability": [tuple(pair) for pair in one["coverage"]]}
    if "coverage_by_act" in one:
        covered["by the act head"] = [tuple(pair) for pair in one["coverage_by_act"]]
    return {
        CALIBRATION_PLOT: plot("Calibration", "probability of the top answer", "share right", calibration),
        COVERAGE_PLOT: plot("Coverage and accuracy", "share answered", "share right", covered),
    }


def run(args: argparse.Namespace) -> None:
    """Writes README.md and two plots into the folder."""
    results = json.loads(args.results.read_text(encoding="utf-8"))
    needle = results["needle"]
    text = TEXTS.read_text(encoding="utf-8").format(
        name=results["name"],
        version=results["version"],
        megabytes=f"{results['bytes'] / 1e6:.1f}",
        sets=sets_table(results),
        together=together_text(results),
        coherence=coherence_table(results),
        cases=cases_text(results),
        bias=bias_text(results),
        fp32=fp32_text(results, json.loads(args.fp32.read_text(encoding="utf-8")) if args.fp32 else None),
        needle=f"Of {needle['cases']} facts {percent(needle['alone'])} % are found alone and {percent(needle['buried'])} % at the end of {needle['tokens']} tokens.",
        temperature=", ".join(f"{kind} {value}" for kind, value in results["temperature"].items()),
    )
    for name, content in {**plots(results), "README.md": text.replace("\n\n\n", "\n\n")}.items():
        (args.folder / name).write_text(content, encoding="utf-8")
