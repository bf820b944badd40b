"""Generates messages of customers from statements with known meaning, and the questions that people ask about them."""

from dataclasses import dataclass
from random import Random

from ..data.question import choice, noul, score
from ..data.rows import Item, State


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms of customers' messages and of their questions. Fields that end in `_below` divide
    one draw: each is the upper end of its part."""

    plain_text_below: float = 0.65
    mail_below: float = 0.8
    answer_is_yes: float = 0.5
    denied: float = 0.2
    none_offered: float = 0.4


CHANCES = Chances()

# The statements that a customer may make, each in several wordings.
SAID = {
    "charged_twice": (
        "I paid two times for one thing",
        "you billed my card two times for one order",
        "there are two identical payments on my statement",
        "the same invoice was debited twice",
        "my bank shows a double charge from you",
    ),
    "wrong_amount": (
        "the invoice shows more than we agreed on",
        "I was billed 90 instead of 60",
        "the discount is missing on my bill",
        "you charged me for a plan that I do not have",
    ),
    "refund": (
        "I want my money back",
        "please refund me",
        "I expect a full refund",
        "return the amount to my card",
        "when will I be reimbursed?",
    ),
    "broken": (
        "the vase came in shards",
        "the lamp has a crack",
        "it stopped working after a day",
        "the box was crushed and the glass is in pieces",
        "one leg of the chair is bent",
    ),
    "wrong_item": (
        "you sent the wrong colour",
        "I ordered boots and got sandals",
        "this is not the item that I ordered",
        "the package holds somebody else's order",
    ),
    "replacement": (
        "I need another one",
        "please exchange it",
        "I would like a replacement",
        "can you ship the right one instead?",
    ),
    "late": (
        "my order is two weeks late",
        "I am still waiting for my package",
        "the delivery was promised for Monday and has not come",
        "tracking has not moved for ten days",
    ),
    "crash": (
        "the program closes by itself when I save",
        "the page only shows an error",
        "the export has been failing since the update",
        "your website does not load",
        "the sync hangs for ever",
    ),
    "login": (
        "I cannot log in",
        "my password is rejected",
        "the reset mail never arrives",
        "I am locked out of my account",
        "the code for signing in is always wrong",
    ),
    "cancel": (
        "please cancel my subscription",
        "I want to end my plan",
        "close my account, please",
        "do not renew my contract",
    ),
    "how": (
        "how do I change my address?",
        "where can I find my invoices?",
        "is there a way to add a second user?",
        "what are your opening hours?",
        "which cable do I need?",
    ),
    "buy": (
        "I would like to buy fifty licences",
        "how much is the large plan?",
        "can you send us an offer?",
        "we want to upgrade to the team plan",
        "do you give a discount for schools?",
    ),
    "praise": (
        "great service, thank you",
        "I love the new version",
        "your colleague was really helpful",
        "everything works perfectly now",
        "best support I have ever had",
    ),
    "unanswered": (
        "no one gets back to me",
        "I have written twice already",
        "this is my fourth mail",
        "your hotline keeps me waiting for hours",
        "still no reply after a week",
    ),
    "furious": (
        "this is outrageous",
        "I am furious",
        "what a scam",
        "you people are useless",
        "I have had enough of your excuses",
        "shame on you",
    ),
    "deadline": (
        "I need it by tomorrow",
        "this is urgent",
        "we go live tonight",
        "please hurry, it cannot wait",
        "it has to be fixed today",
    ),
    "no_hurry": (
        "there is no hurry",
        "whenever you find the time",
        "it can wait until next month",
        "not important, just asking",
    ),
    "leave": (
        "otherwise I go to a competitor",
        "I am about to switch to another provider",
        "I will not order here again",
        "we are looking at alternatives already",
    ),
    "lawyer": (
        "my lawyer will contact you",
        "I will take legal action",
        "I am going to report you to the authorities",
        "see you in court",
    ),
    "personal": (
        "my number is 030 555 {n}",
        "write to anna.{n}@example.com",
        "I live in Hill Street {m}",
        "my card ends in {n}",
    ),
}


@dataclass(frozen=True)
class Aspect:
    """A possible question: the statements of which any makes the answer yes, those that leave it open, and the
    question's wordings."""

    yes: frozenset[str]
    open: frozenset[str]
    asked: tuple[str, ...]
    denied: tuple[str, ...] = ()


def aspect(yes: str, open_: str, asked: tuple[str, ...], denied: tuple[str, ...] = ()) -> Aspect:
    """Returns an aspect from its statements' names, which are separated by spaces."""
    return Aspect(frozenset(yes.split()), frozenset(open_.split()), asked, denied)


PROBLEMS = "charged_twice wrong_amount broken wrong_item late crash login unanswered"
ASPECTS = (
    aspect(
        "refund charged_twice",
        "broken wrong_item wrong_amount late cancel lawyer furious",
        (
            "Do they ask for their money?",
            "Is a refund due or asked for?",
            "Money back?",
            "Should money be returned?",
            "The customer is owed or wants a refund.",
        ),
        ("There is nothing to refund.",),
    ),
    aspect(
        "charged_twice wrong_amount",
        "refund",
        (
            "Is it about a wrong charge?",
            "Was the customer billed wrongly?",
            "Is there a billing error?",
            "Is this a payment problem?",
            "The customer paid too much.",
        ),
        ("The billing is correct as far as the message says.",),
    ),
    aspect(
        "charged_twice wrong_amount refund",
        "cancel buy how",
        ("Does this go to billing?", "Is it about money?", "Is this for the accounting team?"),
    ),
    aspect(
        "broken wrong_item",
        "replacement refund",
        (
            "Is something wrong with the product that came?",
            "Did the customer get a damaged or wrong item?",
            "Is the delivered item faulty?",
        ),
    ),
    aspect(
        "replacement broken wrong_item",
        "refund late",
        ("Does the customer need another item sent?", "Should we ship it again?", "Is a replacement needed?"),
    ),
    aspect(
        "late",
        "wrong_item replacement",
        (
            "Is a delivery late?",
            "Is the customer waiting for a parcel?",
            "Where is my order: is that the question here?",
        ),
        ("The delivery is not the problem.",),
    ),
    aspect(
        "crash login",
        "how",
        (
            "Is this a technical problem?",
            "Is it a bug or an outage?",
            "Does the software fail?",
            "Should an engineer look at it?",
        ),
        ("Nothing technical is wrong here.",),
    ),
    aspect(
        "login",
        "crash",
        ("Is the customer unable to sign in?", "Is it about access to the account?", "Are they locked out?"),
    ),
    aspect(
        "cancel",
        "leave refund",
        ("Does the customer want to cancel?", "Is this a cancellation?", "Do they want to end the contract?"),
    ),
    aspect(
        "cancel leave",
        "lawyer furious refund",
        ("Is the customer likely to leave?", "Is there a risk of churn?", "Might we lose this customer?"),
    ),
    aspect(
        "buy",
        "how",
        (
            "Is this a sales lead?",
            "Does somebody want to buy something?",
            "Should sales call back?",
            "Are they interested in a purchase?",
        ),
    ),
    aspect(
        PROBLEMS + " furious lawyer",
        "leave refund replacement cancel deadline",
        (
            "Is somebody complaining?",
            "Is the customer unhappy?",
            "Does the writer complain?",
            "Has something gone wrong?",
        ),
        ("The customer has no complaint.", "All is well."),
    ),
    aspect(
        "praise",
        "",
        (
            "Is the feedback positive?",
            "Is the customer happy?",
            "Does the message praise us?",
            "The tone is friendly and content.",
        ),
    ),
    aspect(
        "furious lawyer",
        "unanswered leave charged_twice wrong_amount broken wrong_item late",
        (
            "Is the customer angry?",
            "Is the tone hostile?",
            "Does the writer lose their temper?",
            "The customer is furious.",
        ),
        ("The writer stays calm.",),
    ),
    aspect(
        "unanswered",
        "late",
        ("Has the customer tried to reach us before?", "Are they waiting for an answer?", "Did support fail to reply?"),
    ),
    aspect(
        "deadline",
        "furious lawyer crash login unanswered late",
        ("Is it urgent?", "Does it need an answer today?", "Is there time pressure?", "Must this be handled at once?"),
        ("This can wait.",),
    ),
    aspect(
        "lawyer",
        "furious",
        (
            "Does the customer threaten legal action?",
            "Is a lawyer mentioned or a court?",
            "Should the legal team see this?",
        ),
    ),
    aspect(
        "personal",
        "",
        (
            "Does the message contain personal data?",
            "Is there an address, a number or a mail address in it?",
            "Is any contact detail given?",
        ),
        ("The text names no contact details.",),
    ),
)


@dataclass(frozen=True)
class Team:
    """A team: its task in two ways, and the statements that it handles."""

    task: str
    subject: str
    handles: frozenset[str]


TEAMS = {
    "billing": Team(
        "payments, invoices, refunds", "charges and money back", frozenset({"charged_twice", "wrong_amount", "refund"})
    ),
    "shipping": Team(
        "parcels and delivery",
        "late, damaged or wrong items",
        frozenset({"broken", "wrong_item", "replacement", "late"}),
    ),
    "tech": Team("bugs, outages, sign-in", "errors in the app or the website", frozenset({"crash", "login"})),
    "sales": Team("offers and purchases", "new orders, upgrades, prices", frozenset({"buy"})),
    "retention": Team("cancellations", "customers who want to leave", frozenset({"cancel"})),
}
ROUTE_ASKED = ("Who takes care of this?", "Where does it go?", "Route the message.", "Whose business is it?")
ANGER_ASKED = ("How angry does the writer sound?", "Rate the customer's anger.", "How upset is the writer?")
GREETINGS, ENDINGS = ("Hello", "Hi there", "Dear team", "Good morning"), ("Regards", "Thanks", "Best")
WRITERS, SUBJECTS = ("Kim", "A. Weber", "Lee", "Maria"), ("Order 4711", "Question", "My account", "Hello", "Invoice")
ANGER = (["calm", "annoyed", "furious"], ["not at all", "somewhat", "very"], ["relaxed", "irritated", "enraged"])
# Statements that exclude each other.
APART = (
    frozenset({"deadline", "no_hurry"}),
    frozenset({"praise", "furious"}),
    frozenset({"praise", "lawyer"}),
    frozenset({"praise", "unanswered"}),
    frozenset({"buy", "cancel"}),
    frozenset({"praise", "leave"}),
    frozenset({"buy", "leave"}),
    frozenset({"no_hurry", "furious"}),
    frozenset({"no_hurry", "lawyer"}),
)


def fits(chosen: list[str], name: str) -> bool:
    """Whether a customer who makes the statements `chosen` may also make `name`."""
    return name not in chosen and not any(name in pair and pair & set(chosen) for pair in APART)


def drawn(rng: Random, first: str | None, allowed: list[str]) -> list[str]:
    """Returns one to four statements, `first` among them."""
    chosen = [first] if first else []
    more = rng.choice((0, 1, 1, 2, 3))
    for _ in range(more if first else more + 1):
        name = rng.choice(allowed)
        if fits(chosen, name):
            chosen.append(name)
    return chosen


def joined(rng: Random, parts: list[str]) -> str:
    """Returns statements as one text."""
    text = parts[0][0].upper() + parts[0][1:]
    for part in parts[1:]:
        link = rng.choice((". ", ". ", ", and ", "! ", "; ")) if text[-1] not in "?!" else " "
        text += link + (part[0].upper() + part[1:] if link[0] in ".! " else part)
    return text if text[-1] in "?!" else text + rng.choice((".", "", "!"))


def written(rng: Random, chosen: list[str]) -> State:
    """Returns the message as text, as a mail, or as JSON."""
    parts = []
    for name in rng.sample(chosen, len(chosen)):
        part, n, m = rng.choice(SAID[name]), rng.randrange(1000, 9999), rng.randrange(2, 90)
        parts.append(part.format(n=n, m=m))
    text = joined(rng, parts)
    draw = rng.random()
    if draw < CHANCES.plain_text_below:
        return text
    if draw < CHANCES.mail_below:
        return f"{rng.choice(GREETINGS)},\n{text}\n{rng.choice(ENDINGS)}, {rng.choice(WRITERS)}"
    title, subject = rng.choice(("subject", "title")), rng.choice(SUBJECTS)
    return {title: subject, rng.choice(("body", "text", "message")): text}


def yes_no(rng: Random) -> Item:
    """Returns a message, and a question that the message answers."""
    one, holds = rng.choice(ASPECTS), rng.random() < CHANCES.answer_is_yes
    settled = [name for name in SAID if name not in one.open]
    if holds:
        chosen = drawn(rng, rng.choice(sorted(one.yes)), [*settled, *sorted(one.open)])
    else:
        chosen = drawn(rng, None, [name for name in settled if name not in one.yes])
    denied = bool(one.denied) and rng.random() < CHANCES.denied
    state = written(rng, chosen)
    return state, noul(rng.choice(one.denied if denied else one.asked)), holds != denied


def team(rng: Random) -> Item:
    """Returns a message, and the choice of the team that is responsible for it; if none of them is, "none" is right."""
    names = rng.sample(sorted(TEAMS), rng.randint(2, len(TEAMS)))
    handled = {name: TEAMS[name].handles for name in TEAMS}
    everything = frozenset(statement for statements in handled.values() for statement in statements)
    others = [name for name in SAID if name not in everything]
    right = rng.choice([*names, None])
    absent = sorted(everything.difference(*(handled[name] for name in names)))
    first = rng.choice(sorted(handled[right])) if right else rng.choice([*absent, "praise", "how"])
    style = rng.randrange(3)
    criteria = {name: (TEAMS[name].task, TEAMS[name].subject, "")[style] for name in names}
    if right is None or rng.random() < CHANCES.none_offered:
        criteria["none"] = rng.choice(("none of these", "anything else", ""))
    question = choice(rng.choice(ROUTE_ASKED), criteria)
    return written(rng, drawn(rng, first, others)), question, right or "none"


def anger(rng: Random) -> Item:
    """Returns a message, and the question how angry its writer is."""
    level = rng.randrange(3)
    problems = PROBLEMS.split()
    calmest = rng.choice(("how", "buy", "praise", "no_hurry", "personal", "cancel"))
    first = (calmest, rng.choice(problems), rng.choice(("furious", "lawyer")))[level]
    calm = ["how", "personal", "cancel", "refund", "replacement"]
    annoyed, furious = [*calm, "late", "charged_twice", "unanswered"], [*calm, *problems, "deadline"]
    allowed = (calm[:3], annoyed, furious)[level]
    asked = rng.choice(ANGER_ASKED)
    question = score(asked, rng.choice(ANGER))
    return written(rng, drawn(rng, first, allowed)), question, level


def customer(rng: Random) -> Item:
    """Returns a state, a question and its answer."""
    return rng.choice((yes_no, yes_no, yes_no, yes_no, team, anger))(rng)
