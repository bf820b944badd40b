"""Says the same thing in many ways: instructions, option names and states."""

import json
import re
from dataclasses import dataclass
from random import Random

from .rows import State


@dataclass(frozen=True)
class Chances:
    """The probabilities of the forms of instructions and states. Fields that end in `_below` divide one draw: each is
    the upper end of its part."""

    instructions_unchanged_below: float = 0.6
    instructions_lower_case_below: float = 0.7
    instructions_unpunctuated_below: float = 0.78
    instructions_framed_below: float = 0.93
    # Of a state that is a text.
    plain_text_below: float = 0.7
    numbered_field_below: float = 0.8
    # Of a state that has fields.
    lone_field_as_text: float = 0.4
    compact_json_below: float = 0.55
    spaced_json_below: float = 0.75
    indented_json_below: float = 0.8


CHANCES = Chances()

FIELDS = ("text", "message", "content", "input", "body", "comment", "ticket", "note", "email", "post")
NONE_NAMES = (
    "none",
    "other",
    "none_of_these",
    "something_else",
    "NONE",
    "no_match",
    "OTHER",
    "unknown",
    "N/A",
    "out_of_scope",
    "fallback",
)
# Options that may stand for everything that no other option covers.
NONE_LIKE = re.compile(
    r"\bnone\b|no option|something else|\bother\b|not listed|anything else|out.?of.?(scope|domain)|off topic", re.I
)
# "Other" alone is such an option, but may belong to the name of something else.
NO_OTHER = re.compile(
    r"(other|something else|anything else|no option fits|out ?of ?(domain|scope))"
    r"|(none|other): .*\b(none of (these|them|the)|anything else|any other|fits?)\b.*"
    r"|(.*: )?(none of (these|them|the (above|others|options|other options|teams|topics|listed))|not listed)\b.*"
    r"|.*: (the message fits none of the other options|is off topic)",
    re.I,
)
NONE_TEXTS = (
    "none of the other options fits",
    "anything else",
    "",
    "",
    "none of these",
    "none of the others",
    "something not listed here",
    "the message is about something else",
    "no option applies",
)
NOUL_SIDES = (
    {"true": "the statement holds", "false": "it does not"},
    {"true": "yes", "false": "no"},
    {"true": "it is so"},
    {"false": "it is not so"},
    {"true": "the text supports this", "false": "the text does not support this"},
)

INTENT = (
    "What does the user want?",
    "What does the customer want?",
    "Which intent does this message express?",
    "Classify the request.",
    "Route this message to the right intent.",
    "What is the person asking for?",
    "Pick the intent.",
    "Which topic is it?",
    "intent?",
    "What is this message about?",
    "Which of these best describes the request?",
    "The message should be handled as:",
    "Choose the matching category.",
    "Which category fits?",
    "Label the message.",
)
# Words around instructions.
FRAMES = (
    "Question: {}",
    "Decide: {}",
    "{} Answer from the text.",
    "Please answer: {}",
    "{} Choose one.",
    "Task: {}",
    "Policy: {}",
)
# Topics of texts, and questions for the topic.
TOPICS = tuple(
    """
sports; football; tennis; the Olympic games; politics; elections; international affairs; war and conflict; diplomacy;
law and justice; crime; police; courts and lawsuits; business; companies and mergers; stock markets; banking;
insurance; taxes; economy; jobs and hiring; salary and pay; real estate; housing and rent; energy and oil;
environment; climate change; natural disasters; weather; agriculture and farming; food and recipes; restaurants;
drinks; health and medicine; diseases; mental health; fitness and exercise; pregnancy and parenting; family; children;
marriage and weddings; dating and relationships; friendship; education and schools; universities; exams; science;
space and astronomy; physics; chemistry; biology; mathematics; statistics; history; ancient history; archaeology;
geography; languages; literature and books; poetry; philosophy; religion; art and painting; photography; music;
songs and singers; concerts; films and cinema; television series; theatre; celebrities; video games; board games;
toys; hobbies; gardening; pets; animals; birds; fish and the sea; plants and flowers; travel and tourism; hotels;
flights and airports; trains; cars and driving; bicycles; public transport; traffic; ships; maps and directions;
holidays and celebrations; birthdays; fashion and clothes; shoes; beauty and make-up; jewellery; shopping;
discounts and offers; prices; orders; delivery and shipping; lost packages; returns and exchanges; refunds; payments;
credit cards; card not working; bank transfers; cash withdrawal; exchange rates; loans and mortgages; debt; savings;
invoices and billing; subscriptions; cancelling something; account access; passwords and sign-in;
verifying an identity; personal data and privacy; fraud and scams; spam and advertising; complaints; customer service;
thanks; greetings; goodbyes; apologies; small talk; jokes and humour; compliments; insults; threats;
hate and discrimination; racism; women and men; sexuality; immigration; religion and tolerance; disability; violence;
weapons; self-harm; drugs and alcohol; gambling; technology; computers; software; programming; bugs and crashes;
feature requests; documentation; databases; networks and the internet; servers and hosting; cloud services;
computer security; malware; artificial intelligence; robots; mobile phones; cameras; televisions;
household appliances; furniture; mattresses and beds; tools and repairs; building and construction;
smart home and lights; alarms and reminders; calendar and meetings; e-mail; messages and chat; social media; news;
podcasts and radio; telecommunications; electricity bills; charity and donations; military; government; human rights;
trade; manufacturing; supply chains; marketing; start-ups; accounting; contracts; warranty; opening hours;
store locations; booking and reservations; tickets; dreams; feelings; anger; sadness; joy; fear; love; surprise;
opinions; advice; questions about a product; sizes and measures; colours; time and dates
""".replace("\n", " ")
    .strip()
    .split("; ")
)
TOPIC = (
    "What is this about?",
    "Which topic fits?",
    "What is the topic?",
    "Classify the text.",
    "Which category does it belong to?",
    "Which section would print this?",
    "Pick the subject.",
    "Topic?",
    "What does the text deal with?",
    "Assign a category.",
)
CONCEPT = (
    "Which word fits the text best?",
    "What has most to do with this?",
    "Which of these is it about?",
    "Pick the closest keyword.",
    "Which tag fits?",
    "What comes to mind first?",
)
LIKE = (
    "Which of these is closest in meaning?",
    "Which sentence is about the same thing?",
    "What is most like this text?",
    "Pick the most similar one.",
    "Which of these belongs together with the text?",
)
FEELING = (
    "Which emotion does the text express?",
    "What does the writer feel?",
    "Pick the emotion.",
    "How does the author feel?",
    "Classify the emotion.",
    "The writer's mood is:",
)
# Wordings of "Is it option X?"; the option's name must be enough to understand the question.
ABOUT = (
    'Is this about "{}"?',
    "The right category is {}.",
    "This is about {}.",
    "Is it {}?",
    'Does the label "{}" fit?',
    "{}?",
    "It belongs under {}.",
    "Should this be filed under {}?",
)
# The same question about the person who wrote, and about a feeling.
ABOUT_INTENT = (
    "Is the user asking about {}?",
    "Does the message concern {}?",
    "Is the person talking about {}?",
    "Is this a request about {}?",
    "Does somebody want something with {}?",
    "Would {} be the right topic?",
    "Does the customer write because of {}?",
)
ABOUT_FEELING = (
    "Is the writer feeling {}?",
    "Does the author show {}?",
    "Is there {} in this text?",
    "Does it sound like {}?",
)
NOT_ABOUT = (
    "This is not about {}.",
    'Is the label "{}" wrong here?',
    "It is something other than {}.",
    "The category is anything but {}.",
)

# Yes/no questions of moderation, and whether yes means that the text is toxic.
TOXIC = (
    ("The text is toxic.", True),
    ("Is this offensive?", True),
    ("Does the post break a rule against insults and hate?", True),
    ("The message is abusive or vulgar.", True),
    ("Should this be removed by a moderator?", True),
    ("Is the text rude, hateful or insulting?", True),
    ("The text is harmless.", False),
    ("Is this fine to publish on a family site?", False),
)

# Names for (entailment, neutral, contradiction), and descriptions of them.
VERDICTS = (
    ("entailment", "neutral", "contradiction"),
    ("true", "unclear", "false"),
    ("yes", "unknown", "no"),
    ("supported", "not stated", "contradicted"),
    ("SUPPORTS", "NOT_ENOUGH_INFO", "REFUTES"),
    ("yes", "cannot tell", "no"),
    ("confirmed", "open", "refuted"),
    ("agrees", "unrelated", "disagrees"),
)
VERDICT_TEXTS = (
    (
        "the hypothesis is definitely true given the premise",
        "the premise does not settle whether the hypothesis is true",
        "the hypothesis is definitely false given the premise",
    ),
    ("it supports the claim", "it does not settle the claim", "it contradicts the claim"),
    ("it follows", "it may or may not be so", "it cannot be so"),
    ("the text says so", "the text does not say", "the text says otherwise"),
    ("", "", ""),
    ("", "", ""),
)

MATCH = {
    "question": (
        "Which question does the text answer?",
        "Pick the question that this text answers.",
        "This text answers:",
        "Which question is answered here?",
    ),
    "title": (
        "Which title fits?",
        "What should this be called?",
        "Pick the best title.",
        "Which heading describes it?",
        "What is this about?",
    ),
    "trait": (
        "Which trait or view does the statement show?",
        "What does the speaker's statement reveal?",
        "The person shows:",
        "Which view is expressed?",
    ),
    "claim": (
        "Which statement follows from the text?",
        "Which of these is true, given the text?",
        "What can be concluded?",
        "Pick what the text says.",
    ),
    "paraphrase": ("Which sentence means the same?", "Pick the paraphrase.", "Which of these says the same thing?"),
    "service": (
        "Which service is the user talking to?",
        "Which service fits the conversation?",
        "Which service should take this conversation?",
    ),
}


# First words that are no names.
COMMON = frozenset("the a an it there this that he she they we you some people two no all is in".split())


def is_none(name: str, text: str) -> bool:
    """Whether an option may stand for everything that no other option covers."""
    return bool(NONE_LIKE.search(f"{name} {text}"))


def covers_the_rest(name: str, text: str) -> bool:
    """Whether an option says that it stands for everything that no other option covers."""
    if (text or name) in NONE_TEXTS or (not text and name in NONE_NAMES and name != "unknown"):
        return True
    named = name.lower().replace("_", " ")
    return bool(NO_OTHER.fullmatch(named if text.lower() in ("", named) else f"{named}: {text}"))


def lower_first(text: str) -> str:
    """Returns a text in the form that stands inside a sentence: with a small first letter unless the first word is a
    name or an abbreviation, and without a full stop."""
    text = text.strip().rstrip(".")
    first = text.split(" ")[0]
    return text[:1].lower() + text[1:] if first.lower() in COMMON else text


# The verbs that move to the front of a question, and the words that begin a clause.
ASKED_FIRST = frozenset({"is", "are", "was", "were", "can", "will", "has", "could", "should", "would", "must"})
RELATIVE = frozenset({"that", "which", "who"})


def question_of(text: str) -> str | None:
    """Returns a statement as the question that people would ask: "A man is asleep." becomes "Is a man asleep?". Returns
    None if its verb is not plain."""
    parts = text.strip().rstrip(".").split()
    at = next((i for i, word in enumerate(parts[1:6], 1) if word.lower() in ASKED_FIRST), None)
    if at is None or at == len(parts) - 1 or parts[at + 1] == "not":
        return None
    subject = parts[:at]
    if any("," in part or part.lower() in RELATIVE for part in subject):
        return None
    return f"{parts[at].capitalize()} {lower_first(' '.join(subject))} {' '.join(parts[at + 1 :])}?"


def reworded(rng: Random, instructions: str) -> str:
    """Returns instructions with small changes that keep their meaning."""
    draw = rng.random()
    if draw < CHANCES.instructions_unchanged_below or not instructions:
        return instructions
    if draw < CHANCES.instructions_lower_case_below:
        return instructions.lower()
    if draw < CHANCES.instructions_unpunctuated_below:
        return instructions.rstrip("?.")
    if draw < CHANCES.instructions_framed_below:
        return rng.choice(FRAMES).format(instructions)
    return instructions if "`" in instructions else typo(rng, instructions)


def typo(rng: Random, text: str) -> str:
    """Returns a text with two neighbouring letters exchanged, one left out or one doubled."""
    if len(text) < 8:
        return text
    at = rng.randrange(1, len(text) - 2)
    exchanged = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    left_out, doubled = text[:at] + text[at + 1 :], text[:at] + text[at] + text[at:]
    return rng.choice((exchanged, left_out, doubled))


def humanized(name: str) -> str:
    """Returns a label's name as words: `calendar_set` and `GetWeather` become `calendar set` and `get weather`."""
    begins_word = (i > 0 and c.isupper() and name[i - 1].islower() for i, c in enumerate(name))
    spaced = "".join(" " + c if begins else c for c, begins in zip(name, begins_word, strict=True))
    return " ".join(spaced.replace("_", " ").replace("-", " ").split()).lower()


def styled(rng: Random, words: str) -> str:
    """Returns words as an identifier in some style."""
    parts = words.split()
    snake, camel = "_".join(parts), "".join(part.capitalize() for part in parts)
    return rng.choice((words, snake, snake.upper(), "-".join(parts), camel, words.capitalize()))


def opaque_names(rng: Random, count: int) -> list[str]:
    """Returns names that mean nothing: letters, numbers or codes."""
    style = rng.randrange(4)
    if style == 0 and count <= 26:
        return [chr(ord("A") + i) for i in range(count)]
    if style == 1:
        return [str(i + 1) for i in range(count)]
    if style == 2:
        return [f"option_{i + 1}" for i in range(count)]
    return [f"{rng.choice('KQXZ')}{number}" for number in rng.sample(range(10, 1000), count)]


def as_lines(fields: dict[str, State]) -> str:
    """Returns fields as lines of `key: value`, each value as text or as JSON."""
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for key, value in fields.items()
    }
    return "\n".join(f"{key}: {text}" for key, text in texts.items())


def render(rng: Random, state: State) -> str:
    """Returns a state as text: plain, wrapped in JSON, flat lines, indented."""
    if isinstance(state, str):
        draw = rng.random()
        if not state or draw < CHANCES.plain_text_below:
            return state
        state = {rng.choice(FIELDS): state}
        if draw < CHANCES.numbered_field_below:
            state = {"id": rng.randrange(10**6), **state}
    elif isinstance(state, dict) and len(state) == 1 and rng.random() < CHANCES.lone_field_as_text:
        return render(rng, next(iter(state.values())))
    draw = rng.random()
    if draw < CHANCES.compact_json_below:
        return json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    if draw < CHANCES.spaced_json_below:
        return json.dumps(state, ensure_ascii=False)
    if draw < CHANCES.indented_json_below or not isinstance(state, dict):
        return json.dumps(state, ensure_ascii=False, indent=1)
    return as_lines(state)
