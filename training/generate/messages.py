"""Generates short texts from templates: log lines, requests of some urgency, reviews, counts and quantifiers."""

from dataclasses import dataclass
from random import Random

from ..data.question import choice, noul, score
from ..data.rows import Item, State


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms of messages and of their questions."""

    log_line_as_text: float = 0.6
    severity_as_score: float = 0.5
    urgency_as_score: float = 0.5
    stars_as_score: float = 0.6
    spam: float = 0.5
    spam_as_choice: float = 0.4
    list_as_object: float = 0.6
    count_as_choice: float = 0.5


CHANCES = Chances()

SERVICES = (
    "auth",
    "billing-api",
    "cart",
    "search",
    "gateway",
    "postgres",
    "redis",
    "worker-3",
    "nginx",
    "scheduler",
    "mailer",
    "cdn",
)
SEVERITIES = ("debug", "info", "warning", "error", "critical")
LOGS = {
    "debug": (
        "entering handler for request {n}",
        "cache lookup took {n} us",
        "loaded {n} feature flags",
        "retry counter reset",
    ),
    "info": (
        "started, listening on port {n}",
        "user {n} logged in",
        "job {n} finished in {m} s",
        "configuration reloaded",
        "health check passed",
        "deployed build {n}",
    ),
    "warning": (
        "disk usage at {p}%",
        "slow query: {n} ms",
        "retrying connection, attempt {m}",
        "certificate expires in {m} days",
        "queue length {n} above soft limit",
        "deprecated call from client {n}",
    ),
    "error": (
        "request {n} failed with status 500",
        "could not connect to database: timeout",
        "unhandled exception in worker {m}",
        "payment {n} declined: upstream error",
        "failed to write file: permission denied",
    ),
    "critical": (
        "out of memory, process killed",
        "database is down, all writes fail",
        "data corruption detected in shard {m}",
        "no healthy upstream, all requests fail",
        "kernel panic",
        "primary region unreachable",
    ),
}
URGENCY = (
    ("whenever you have time", "no rush at all", "just an idea for some day", "nice to have", "for your information"),
    (
        "this week would be good",
        "please look at it in the coming days",
        "not blocking us, but annoying",
        "when you get to it this week",
    ),
    (
        "we need this today",
        "it blocks our release tomorrow",
        "several customers are waiting",
        "please answer this afternoon",
    ),
    (
        "everything is down",
        "we are losing money every minute",
        "production is on fire",
        "all customers are affected right now",
        "data is being deleted as we speak",
    ),
)
SUBJECTS = (
    "the export page",
    "our invoices",
    "the login form",
    "the mobile app",
    "the search results",
    "the report",
    "the API",
    "password reset",
    "the dashboard",
    "the upload",
    "dark mode",
    "the calendar sync",
    "the installer",
    "notifications",
    "the CLI",
    "the docs page",
    "the plugin",
    "the parser",
    "the cache",
)
REPORTS = (
    "{S} crashes when I click save",
    "{S} fails with an exception: NullPointerException at line {n}",
    "since version {m}.2 {s} no longer works",
    "expected a list, got an empty page in {s}",
    "{S} shows wrong totals",
    "steps to reproduce: open {s}, wait, it freezes",
    "regression: {s} returns error {n}",
    "how do I change the language of {s}?",
    "is there a way to export {s} to PDF?",
    "what does the second column in {s} mean?",
    "where is {s} configured?",
    "does {s} work with Python 3?",
    "can someone explain how {s} decides the order?",
    "which version of {s} should I use?",
)
REVIEWS = (
    (
        "Terrible. Broke after a day and nobody answered.",
        "Worst purchase ever, I want my money back.",
        "Useless, avoid.",
    ),
    ("Not good: slow, and the battery is weak.", "Disappointing for the price.", "Some parts work, most do not."),
    ("It is okay. Does what it says, nothing more.", "Average, some good, some bad.", "Fine for the price."),
    ("Good, with a small flaw in the lid.", "Happy with it, delivery was a bit slow.", "Works well."),
    ("Absolutely perfect, I love it!", "Best thing I bought this year.", "Excellent in every way, five stars."),
)
UNWANTED = (
    "WINNER!! You have been selected for a {n} prize, call 0906{n} now",
    "Your account is locked. Verify your password at http://secure-{n}.example within 24 hours",
    "Earn {n} a week from home, no experience needed, reply YES",
    "Cheap meds without prescription, {p}% off, click here",
    "URGENT: your parcel is held, pay the fee of {m}.99 at http://post-{n}.example",
    "Dear friend, I have an inheritance of {n} million and need your help",
    "Hot singles near you, text DATE to {n}",
    "Congratulations, your number has won a free phone! Claim code {n}",
    "Make money fast with crypto, {p} percent in {m} days guaranteed",
    "Limited offer: buy now and get {p}% off all watches, unsubscribe by text STOP to {n}",
    "Free ringtones! Text TONE to {n}, 1.50 per message",
    "We detected a virus on your computer, call support at 0800{n}",
    "You have been chosen to receive a {n} dollar voucher. Click the link to claim it before midnight",
    "Lose {m} kilos in two weeks with this one trick, doctors hate it",
    "Your payment failed. Update your card details here: http://billing-{n}.example",
    "Hello dear, I saw your profile and want to know you better, write me at lisa{n}@example.net",
    "Rank first on search engines! We offer {n} backlinks for only {m}.99",
    "Last chance: casino bonus of {p} percent, play now and win big",
    "Your mailbox is full, sign in here to keep your messages",
    "Hi, this is your bank. Please confirm your PIN on this page",
    "Get your diploma without studying, call {n}",
    "I made {n} dollars last week with this app and you can too",
)
WANTED = (
    "are we still on for lunch at {m}?",
    "I'll be home by eight, can you start the rice",
    "Happy birthday! See you on Saturday",
    "the meeting moved to room {m}",
    "Thanks for the notes, I'll read them tonight",
    "Can you send me the file again?",
    "Running {m} minutes late, sorry",
    "your order {n} has shipped",
    "mum says hi, call her when you can",
    "Did you watch the game last night?",
    "please review my pull request when you have a minute",
    "ok, see you there",
    "The dentist confirmed your appointment at {m}:30",
    "I left the keys under the mat",
    "Please find attached the minutes of yesterday's call",
    "Your invoice {n} for March is attached, as agreed",
    "Could you confirm the delivery date for order {n}?",
    "I booked the train for {m} past nine",
    "We have reviewed your application and would like to invite you to an interview",
    "Reminder: the library book is due in {m} days",
    "The build is green again, merging now",
    "Did the parcel arrive?",
    "Congratulations on the new job, you earned it!",
    "The offer we spoke about is attached, call me if anything is unclear",
)
THINGS = ("apple", "box", "server", "invoice", "ticket", "chair", "error", "user", "car", "key")


# Wordings of the questions, and their options.
SPAM_NAMES = (("spam", "ham"), ("spam", "not_spam"), ("junk", "legitimate"), ("unsolicited", "personal"))
SPAM_TEXTS = (("unwanted advertising or fraud", "an ordinary message"), ("", ""))
# Yes/no questions about spam, and whether yes means that it is spam.
SPAM_ASKED = (
    ("Is this spam?", True),
    ("The message is spam.", True),
    ("Is it junk mail?", True),
    ("Should the filter stop this message?", True),
    ("Is somebody trying to trick the reader?", True),
    ("Is it a genuine message?", False),
    ("Is this mail harmless?", False),
    ("Is it an unsolicited advertisement or a fraud?", True),
    ("Could this be a scam or phishing?", True),
    ("Was it written by somebody who knows the reader or has business with them?", False),
    ("The message is legitimate.", False),
)
SEVERITY_ASKED = ("How severe is this log line?", "Rate the severity.")
FAILURE_ASKED = (
    "Does this line report a failure?",
    "Is something broken?",
    "This line needs attention: an error or worse.",
)
URGENCY_LEVELS = (
    ["low", "medium", "high", "critical"],
    ["can wait", "this week", "today", "drop everything"],
    ["P4", "P3", "P2", "P1"],
)
URGENCY_ASKED = ("How urgent is this?", "How urgent is this ticket?", "Rate the urgency.")
EMERGENCY_ASKED = (
    "Does this need someone right now?",
    "Is it an emergency?",
    "This must be handled today at the latest.",
)
STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
LIKED_ASKED = ("Is the customer happy?", "The review is positive.", "Would they buy it again?")


def filled(rng: Random, template: str) -> str:
    """Returns a template with random numbers."""
    subject = rng.choice(SUBJECTS)
    n, m, p = rng.randrange(100, 9999), rng.randrange(2, 30), rng.randrange(80, 99)
    return template.format(n=n, m=m, p=p, s=subject, S=subject[0].upper() + subject[1:])


def log_line(rng: Random) -> Item:
    """Returns a log line and the question how severe it is; the level is not always written in it."""
    level = rng.choice(SEVERITIES)
    severity = SEVERITIES.index(level)
    text, service = filled(rng, rng.choice(LOGS[level])), rng.choice(SERVICES)
    day = f"2025-{rng.randrange(1, 13):02}-{rng.randrange(1, 28):02}"
    stamp = f"{day}T{rng.randrange(24):02}:{rng.randrange(60):02}:07Z"
    written = (f"{stamp} {service}: {text}", f"{stamp} {level.upper()} [{service}] {text}", f"[{service}] {text}")
    line = rng.choice(written)
    state: State = line if rng.random() < CHANCES.log_line_as_text else {"service": service, "message": text}
    if rng.random() < CHANCES.severity_as_score:
        return state, score(rng.choice(SEVERITY_ASKED), SEVERITIES), severity
    return state, noul(rng.choice(FAILURE_ASKED)), severity >= SEVERITIES.index("error")


def request(rng: Random) -> Item:
    """Returns a message and the question how urgent it is."""
    index = rng.randrange(4)
    text = f"{filled(rng, rng.choice(REPORTS))}. {rng.choice(URGENCY[index]).capitalize()}."
    if rng.random() < CHANCES.urgency_as_score:
        levels = rng.choice(URGENCY_LEVELS)
        return text, score(rng.choice(URGENCY_ASKED), levels), index
    return text, noul(rng.choice(EMERGENCY_ASKED)), index >= 2


def noise(rng: Random, log_line_share: float) -> str:
    """Returns a log line (with this probability) or a message, as one text."""
    state = log_line(rng)[0] if rng.random() < log_line_share else request(rng)[0]
    return state if isinstance(state, str) else " ".join(str(value) for value in state.values())


def review(rng: Random) -> Item:
    """Returns a review and the question about its stars."""
    index = rng.randrange(5)
    text = " ".join(rng.sample(REVIEWS[index], rng.randint(1, 2)))
    if rng.random() < CHANCES.stars_as_score:
        return text, score(rng.choice(("How many stars?", "How satisfied is the customer?")), STARS), index
    return text, noul(rng.choice(LIKED_ASKED)), index >= 3


def unwanted(rng: Random) -> Item:
    """Returns a message and the question whether it is spam."""
    spam = rng.random() < CHANCES.spam
    text = filled(rng, rng.choice(UNWANTED if spam else WANTED))
    text = rng.choice((text, text, text.lower(), text.upper() if spam else text))
    if rng.random() < CHANCES.spam_as_choice:
        names = rng.choice(SPAM_NAMES)
        criteria = dict(zip(names, rng.choice(SPAM_TEXTS)))
        asked = rng.choice(("Is this message spam?", "Classify the message.", "Which folder does it belong in?"))
        return text, choice(asked, criteria), names[0] if spam else names[1]
    instructions, means_spam = rng.choice(SPAM_ASKED)
    return text, noul(instructions), spam == means_spam


def counting(rng: Random) -> Item:
    """Returns a list and a question how many things of one kind it has."""
    thing, count = rng.choice(THINGS), rng.randint(0, 6)
    others = [other for other in THINGS if other != thing]
    items = [thing] * count + [rng.choice(others) for _ in range(rng.randint(0, 4))]
    rng.shuffle(items)
    state: State = {"items": items} if rng.random() < CHANCES.list_as_object else ", ".join(items)
    limit = max(0, count + rng.choice((0, 1, -1, 2)))
    if rng.random() < CHANCES.count_as_choice:
        return state, choice(f"How many times does {thing} occur?", {str(i): "" for i in range(7)}), str(count)
    asked = (f"There are at least {limit} of {thing}.", f"Does {thing} occur {limit} times or more?")
    return state, noul(rng.choice(asked)), count >= limit


def quantifier(rng: Random) -> Item:
    """Returns a few records and a question about all, some, none or most of them."""
    size, key = rng.randint(2, 5), rng.choice(("passed", "paid", "signed", "shipped"))
    share = rng.choice((0.0, 0.5, 0.5, 1.0))
    holds = [rng.random() < share for _ in range(size)]
    true = sum(holds)
    claims = (
        (f"All of them are {key}.", true == size),
        (f"At least one is {key}.", true > 0),
        (f"None is {key}.", true == 0),
        (f"Not all are {key}.", true < size),
        (f"Most are {key}.", 2 * true > size),
        (f"Exactly one is {key}.", true == 1),
    )
    text, answer = rng.choice(claims)
    return [{"id": number, key: one} for number, one in enumerate(holds, 1)], noul(text), answer


MAKERS = (log_line, request, review, unwanted, unwanted, counting, quantifier)


def message(rng: Random) -> Item:
    """Returns a state, a question and its answer."""
    return rng.choice(MAKERS)(rng)
