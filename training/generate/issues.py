"""Generates issues of software projects in the style of users: a title and a body, with a form's headings, versions,
code and traces around the statement."""

from dataclasses import dataclass
from random import Random

from ..data.question import choice, noul
from ..data.rows import Item, State


@dataclass(frozen=True)
class Chances:
    """The probabilities of what issues look like and of their questions. Fields that end in `_below` divide one draw:
    each is the upper end of its part."""

    # Of an issue that is as clear as its kind is.
    title_sounds_like_its_kind: float = 0.88
    typical_title: float = 0.65
    form_of_its_kind: float = 0.8
    # Of a trace; few issues of the other kinds have one.
    trace_in_bug: float = 0.5
    trace_in_question: float = 0.2
    trace_in_other: float = 0.03
    with_repository_below: float = 0.5
    object_below: float = 0.7
    text_below: float = 0.9
    # Of the question about it.
    usual_kind: float = 0.88
    label_fits: float = 0.85
    documentation_offered: float = 0.2
    asked_as_noul: float = 0.35
    described: float = 0.6


CHANCES = Chances()

REPOSITORIES = (
    "acme/render",
    "northwind/sync",
    "tinydb/tinydb",
    "open-maps/tiles",
    "fastlane-io/queue",
    "plotkit/plotkit",
    "orbit-ml/orbit",
    "edge/editor",
    "coinlab/node",
    "visionary/cvkit",
)
PARTS = (
    "the scheduler",
    "`parse()`",
    "the table view",
    "server rendering",
    "the build script",
    "the wallet",
    "`Dataset.map`",
    "the terminal",
    "the file watcher",
    "hot reload",
    "`resize()`",
    "the type checker",
    "the login flow",
    "the GPU backend",
    "the settings page",
    "the tokenizer",
    "the debugger",
    "`useStore`",
    "the installer",
    "image decoding",
    "the RPC client",
    "the autocomplete",
    "checkpoint loading",
    "the cache",
)
SITUATIONS = (
    "on Windows 11",
    "with Python 3.12",
    "when the list is empty",
    "after upgrading to {v}",
    "inside Docker",
    "on Apple silicon",
    "with more than {n} rows",
    "in dark mode",
    "behind a proxy",
    "with CUDA 12",
    "when two windows are open",
    "in strict mode",
    "on a remote machine",
    "for nested objects",
    "with non-ASCII names",
)
FAILURES = (
    "crashes",
    "hangs",
    "throws an exception",
    "returns wrong results",
    "leaks memory",
    "shows a blank page",
    "fails to compile",
    "ignores the option",
    "stops responding",
    "segfaults",
    "is twice as slow as before",
    "loses data",
    "renders twice",
    "reports a false warning",
)
ERRORS = (
    "TypeError: Cannot read properties of undefined (reading 'length')",
    "RuntimeError: expected scalar type Float but found Half",
    "Segmentation fault (core dumped)",
    "error: no matching function for call",
    "ValueError: shapes ({n},) and (3,) not aligned",
    "panic: index out of range [{n}]",
    "AssertionError",
    "ImportError: DLL load failed",
    "fatal: connection reset by peer",
    "NullPointerException at line {n}",
)
WISHES = (
    "support for Arm",
    "an option to disable it",
    "a dark theme",
    "keyboard shortcuts",
    "an async API",
    "export to CSV",
    "type hints",
    "a `--dry-run` flag",
    "custom separators",
    "a way to cancel",
    "multiple cursors",
    "streaming",
    "progress bars",
    "plugin hooks",
    "mixed precision",
    "a public API for this",
    "per-project settings",
    "lazy loading",
    "bulk operations",
    "a setting for the font size",
)
PLATFORMS = ("Arm", "Windows", "Python 3.13", "HTTP/3", "Wayland")
# The kinds that most trackers tell apart.
USUAL = ("bug", "feature", "question")
# Titles and bodies by kind: {P} is a part, {p} the same inside a sentence, {f} a failure, {s} a situation, {w} a wish,
# {o} a platform, {v} a version.
TITLES = {
    "bug": (
        "{P} {f} {s}",
        "[Bug] {P} {f}",
        "{P} {f} since {v}",
        "Bug: {p} {f} {s}",
        "Regression: {p} {f}",
        "{P}: wrong output {s}",
        "{P} broken in {v}",
        "Unexpected behaviour of {p} {s}",
        "{P} does not work {s}",
        "Error in {p}",
        "{P} no longer works",
    ),
    "feature": (
        "Add {w} to {p}",
        "[Feature request] {w} for {p}",
        "{P}: {w}",
        "Support {o}",
        "Proposal: {w}",
        "Allow {w} in {p}",
        "Consider {w}",
        "It would be nice to have {w}",
        "Feature: {w}",
        "Improve {p}: {w}",
        "Make {p} configurable",
    ),
    "question": (
        "How to use {p} {s}?",
        "{P}: is this expected?",
        "Question about {p}",
        "How can I get {w}?",
        "What is the right way to call {p}?",
        "Is it possible to have {w}?",
        "[Question] {p} {s}",
        "Help with {p} {s}",
        "Can {p} be used {s}?",
        "Confused about {p}",
        "Where is {p} documented?",
        "Can't get {p} to work {s}",
    ),
    "documentation": (
        "Docs: {p} is not described",
        "Typo in the docs of {p}",
        "Broken link in the guide to {p}",
        "The example for {p} is outdated",
        "[Docs] explain {p} {s}",
        "README does not mention {p}",
    ),
}
BODIES = {
    "bug": (
        "{P} {f} {s}. It worked in the version before.",
        "I get this error when I use {p} {s}.",
        "Steps to reproduce:\n1. Open the project\n2. Use {p} {s}\n3. It {f}",
        "Expected: it works {s}.\nActual: {p} {f}.",
        "After the update {p} {f}. Going back to the old version helps.",
        "What happened: {p} {f} {s}. What I expected: no error.",
        "This is a regression, it {f} every time. A minimal example is below.",
        "{P} {f}. I can reproduce it on two machines.",
    ),
    "feature": (
        "It would be great if {p} had {w}.",
        "Is your feature request related to a problem? Yes, I cannot use {p} {s}.\n"
        "Describe the solution you'd like: {w}.",
        "I would like to see {w}. At the moment I have to work around it.",
        "Motivation: many people use {p} {s}. {W} would make this much easier.",
        "Could you add {w}? Other tools have it.",
        "Currently {p} has no {w}. I propose to add it and would send a pull request.",
        "Please consider {w}. Alternatives that I looked at: scripts, forks.",
        "We need {w} for our use case, and I think others do, too.",
    ),
    "question": (
        "I am new here and wonder how {p} is meant to be used {s}.",
        "I am trying to use {p} {s}, but I do not understand the docs. Can somebody help?",
        "Is there a way to get {w}? I looked but found nothing.",
        "What is the difference between {p} and the old way? Which should I choose?",
        "I followed the tutorial and {p} does not do what I want. What am I doing wrong?",
        "Is it normal that {p} behaves so {s}?",
        "Could anybody explain how {p} decides this?",
        "Does {p} support this {s}, or do I need something else?",
        "I built it from source {s} and it {f}. Did I miss a step? Any help is appreciated.",
    ),
    "documentation": (
        "The page about {p} says the opposite of what the code does.",
        "The link in the guide to {p} leads nowhere.",
        "There is no example {s}.",
        "The readme should mention {p}.",
        "The docs of {p} have a typo in the second paragraph.",
    ),
}
# Titles and bodies of issues of every kind, which leave the kind open.
PLAIN_TITLES = (
    "{P} {s}",
    "{P}",
    "{P} and {w}",
    "{P} in {v}",
    "{w} {s}",
    "Problem with {p}",
    "{P}: {w} {s}",
    "{o}: {p}",
    "Behaviour of {p} {s}",
    "{P} {s}, {v}",
)
PLAIN_BODIES = (
    "I am using {p} {s}.",
    "This is about {p} in {v}.",
    "We have {w} in another tool.",
    "I looked into {p} and found that it depends on the platform.",
    "Here is what I do:\n1. Open the project\n2. Use {p} {s}",
    "We run this {s} with {v}.",
    "I could not find anything about {p} in the existing issues.",
    "{P} behaves in another way {s}.",
    "The code in question is below.",
    "I noticed it with {p}.",
    "In our project {p} is called from several places. "
    "{P} gets its input from a file, which is read once at the start.",
    "The same happens on {o}.",
    "I tried {w}, but that is not what I need.",
    "There was a discussion of {w} some time ago.",
    "Not sure whether this is the right place.",
)
HEADINGS = {
    "bug": (
        "### Describe the bug",
        "**Current behaviour**",
        "## What happened?",
        "### Issue type\n\nBug\n\n### Current behaviour?",
    ),
    "feature": ("### Feature", "**Describe the feature**", "## Summary"),
    "question": ("### Question", "**What I want to do**", "## Details"),
    "documentation": ("### Documentation", "## Where"),
}
# The form of an issue is not always the right one: people ask questions with the form for bugs.
FORMS = {
    "bug": ("bug", "bug", "bug", ""),
    "feature": ("feature", "feature", "", ""),
    "question": ("question", "bug", "", ""),
    "documentation": ("documentation", "", ""),
}
TRACES = {"bug": CHANCES.trace_in_bug, "question": CHANCES.trace_in_question}
NOTES = (
    "<!-- Please search for existing issues first. -->",
    "<!-- Describe it as clearly as you can. -->",
    "- [x] I have searched the existing issues",
    "Does this occur when all extensions are disabled?: Yes",
    "Thanks in advance!",
    "Thank you for this great project.",
    "See also #{n}.",
    "Screenshots: none",
    "cc @maintainers",
    "Version: {v}\nOS: Linux",
    "Python 3.{m}, {v} from pip",
    "Browser: Firefox 1{m}",
    "Environment: Ubuntu 22.04, gcc 11",
    "```\nimport lib\nx = lib.load({n})\nprint(x)\n```",
    "```js\nconst a = await open({n});\n```",
    "Here is my code:\n\n    run(size={n})",
)
ASKED = (
    "What kind of issue is this?",
    "Label the issue.",
    "Bug, feature or question?",
    "Which label fits?",
    "Triage this issue.",
    "Classify the GitHub issue.",
    "Issue type?",
)
TEXTS = {
    "bug": (
        "something is broken or wrong",
        "a defect",
        "an error, crash or wrong result",
        "the software does not do what it should",
    ),
    "feature": (
        "somebody asks for something new",
        "an enhancement",
        "a wish",
        "a new capability or a better one is proposed",
    ),
    "question": (
        "somebody needs help or information",
        "a usage question",
        "asks how or why",
        "support: the reporter wants to know something",
    ),
    "documentation": ("about the docs", "docs are missing or wrong"),
}
NAMES = {
    "bug": ("bug", "defect", "bug_report", "BUG"),
    "feature": ("feature", "enhancement", "feature_request", "improvement"),
    "question": ("question", "support", "help", "usage_question"),
    "documentation": ("documentation", "docs"),
}
HOLDS = {
    "bug": (
        "Is this a bug report?",
        "Does somebody report a defect?",
        "Is something broken?",
        "The issue describes faulty behaviour.",
    ),
    "feature": (
        "Is this a feature request?",
        "Does the author want something new?",
        "The issue proposes an improvement.",
        "Is an enhancement asked for?",
    ),
    "question": (
        "Is this a question?",
        "Does the author need help with using it?",
        "This is a support request.",
        "Would an explanation settle it?",
    ),
    "documentation": ("Is it about the documentation?", "Do the docs need a change?"),
}


def filed(rng: Random, kind: str) -> State:
    """Returns an issue of this kind: an object with title and body, or a text."""
    n, m, version = rng.randrange(2, 900), rng.randrange(8, 14), version_number(rng)
    words = words_of(rng, n, version)
    # Real issues are often not clear: the typical words are missing from the title, from the body or sometimes from
    # both, or the title sounds like another kind.
    sounds = kind if rng.random() < CHANCES.title_sounds_like_its_kind else rng.choice(list(TITLES))
    title = rng.choice(TITLES[sounds] if rng.random() < CHANCES.typical_title else PLAIN_TITLES).format(**words)
    typical = rng.sample(BODIES[kind], rng.choice((0, 1, 1, 2)))
    open_ = rng.sample(PLAIN_BODIES, rng.choice((0, 1, 2)) if typical else rng.choice((1, 2)))
    said = [text.format(**words) for text in rng.sample(typical + open_, len(typical + open_))]
    form = rng.choice(FORMS[kind] if rng.random() < CHANCES.form_of_its_kind else (*USUAL, ""))
    parts = [rng.choice(HEADINGS[form])] if form else []
    parts += said + [rng.choice(NOTES).format(n=n, m=m, v=version) for _ in range(rng.choice((0, 1, 2, 4)))]
    if rng.random() < TRACES.get(kind, CHANCES.trace_in_other):
        parts.append("```\n" + rng.choice(ERRORS).format(n=n) + "\n```")
    body, draw = "\n\n".join(parts), rng.random()
    if draw < CHANCES.with_repository_below:
        return {"repo": rng.choice(REPOSITORIES), "title": title, "body": body}
    if draw < CHANCES.object_below:
        return {"title": title, "body": body}
    return f"{title}\n\n{body}" if draw < CHANCES.text_below else title


def version_number(rng: Random) -> str:
    """Returns the number of a version."""
    return f"{rng.randrange(1, 5)}.{rng.randrange(20)}.{rng.randrange(9)}"


def words_of(rng: Random, number: int, version: str) -> dict[str, str]:
    """Returns the words that stand in the titles and bodies of one issue."""
    part, wish = rng.choice(PARTS), rng.choice(WISHES)
    failure, platform, situation = rng.choice(FAILURES), rng.choice(PLATFORMS), rng.choice(SITUATIONS)
    return {
        "p": part,
        "P": part[0].upper() + part[1:],
        "f": failure,
        "w": wish,
        "W": wish[0].upper() + wish[1:],
        "o": platform,
        "v": version,
        "s": situation.format(v=version, n=number),
    }


def issue(rng: Random) -> Item:
    """Returns an issue, a question and its answer."""
    kind = rng.choice(USUAL) if rng.random() < CHANCES.usual_kind else "documentation"
    # The person who labels an issue knows more than its text, or makes mistakes.
    state = filed(rng, kind if rng.random() < CHANCES.label_fits else rng.choice(USUAL))
    with_documentation = kind == "documentation" or rng.random() < CHANCES.documentation_offered
    kinds = list(BODIES) if with_documentation else list(USUAL)
    if rng.random() < CHANCES.asked_as_noul:
        asked = rng.choice([kind, *kinds])
        return state, noul(rng.choice(HOLDS[asked])), asked == kind
    rng.shuffle(kinds)
    style, described = rng.randrange(4), rng.random() < CHANCES.described
    names = {one: NAMES[one][style % len(NAMES[one])] for one in kinds}
    criteria = {names[one]: rng.choice(TEXTS[one]) if described else "" for one in kinds}
    return state, choice(rng.choice(ASKED), criteria), names[kind]
