"""Generates comments that attack somebody and comments that do not, from statements with known meaning, and a
moderator's questions about them."""

import re
from dataclasses import dataclass
from random import Random

from ..data.question import choice, noul
from ..data.rows import Item, State


@dataclass(frozen=True)
class Chances:
    """The probabilities of what comments say and of their questions. Fields that end in `_below` divide one draw: each
    is the upper end of its part."""

    attack: float = 0.5
    # Of harmless parts that are about somebody's identity, and of contempt for an identity.
    about_identity: float = 0.45
    against_identity: float = 0.5
    # Of an identity.
    loaded: float = 0.3
    lower_case_below: float = 0.15
    upper_case_below: float = 0.2
    plain_text: float = 0.8
    # Of a question.
    choice_below: float = 0.25
    kind_below: float = 0.4


CHANCES = Chances()

# The kind of a comment without an attack.
NONE = "harmless"
# The subjects of comments: a person, several people, and things.
PERSON = (
    "the mayor",
    "this senator",
    "our president",
    "that actor",
    "the referee",
    "the new coach",
    "this host",
    "the author",
    "our boss",
    "the guy in the video",
    "the minister",
    "that singer",
    "the woman who wrote this",
    "this streamer",
    "the driver",
    "the person above me",
    "that billionaire",
    "the goalkeeper",
    "my neighbour",
    "the cashier",
)
PEOPLE = (
    "these people",
    "their fans",
    "people like you",
    "the voters of that party",
    "journalists",
    "both of them",
    "the mods here",
    "those drivers",
    "the other team",
    "everybody who defends this",
    "bankers",
    "the whole bunch",
    "politicians",
    "those protesters",
    "landlords",
)
THING = (
    "the new season",
    "this update",
    "the soup",
    "the second half",
    "that law",
    "the ending",
    "the traffic",
    "this phone",
    "the budget plan",
    "the referee's decision",
    "the weather today",
    "the article",
    "the interview",
    "the price",
    "that song",
    "the bridge",
    "my old laptop",
    "the museum",
)

# Attacks by kind: each is about {p} (one person), {g} (several) or the reader.
ATTACKS = {
    "insult": (
        "{p} is a complete idiot",
        "what a clown {p} is",
        "{p} is dumber than a rock",
        "you are pathetic",
        "{p} is a lying piece of garbage",
        "only a moron would write that",
        "{g} are brainless sheep",
        "{p} is a disgusting pig",
        "shut up, you fool",
        "{p} is a worthless coward",
        "nobody likes you, loser",
        "{p} is an ugly old fool",
        "you have the brain of a goldfish",
        "{p} is a senile crook",
        "imagine being as stupid as {p}",
        "{p} is a spoiled brat with no talent",
        "you absolute muppet",
        "{p} is trash and so is anybody who listens",
        "{g} are the scum of the earth",
    ),
    "threat": (
        "I hope somebody beats {p} up",
        "{p} should be locked up and never let out",
        "I will find out where you live",
        "{g} should all disappear",
        "you had better watch your back",
        "go jump off a bridge",
        "somebody should shut {p} up for good",
        "I hope you get hurt",
        "{g} deserve to suffer",
        "wait until I get my hands on {p}",
        "do us all a favour and die",
    ),
    "contempt": (
        "{g} are animals",
        "{g} ruin everything they touch, send them away",
        "{g} are too stupid to vote",
        "{g} make me sick",
        "we would be better off without {g}",
        "you cannot trust {g}, they are all liars",
        "{g} are a disease",
        "{p} is a filthy rat",
        "{p} belongs in the gutter",
        "{g} should not be allowed to have children",
        "no wonder, {g} never had any brains",
    ),
    "obscene": (
        "{p} can kiss my ass",
        "screw {p} and screw you too",
        "{p} is full of shit",
        "what an asshole {p} is",
        "go to hell, {p}",
        "piss off, all of you",
        "{p} is a bitch",
        "fuck {p}",
        "{g} are a bunch of bastards",
        "eat shit, {p}",
    ),
}
# Statements without an attack: opinions, including hard ones, coarse words that are aimed at no person, facts, jokes,
# thanks.
HARMLESS = (
    "I do not agree with {p} on this",
    "{p} made a mistake, I think",
    "{t} was a disappointment",
    "I am tired of {t}",
    "{t} is a bad idea and will cost us",
    "{p} should explain this in public",
    "damn, {t} was good",
    "holy shit, what a goal",
    "hell of a ride, I loved {t}",
    "this is crap weather",
    "{t} sucks, I want a refund",
    "I hate {t}",
    "I am so mad about {t}",
    "could somebody explain {t} to me?",
    "where can I read more about {t}?",
    "thanks for sharing, I learned a lot about {t}",
    "{p} did a great job",
    "I met {p} once, very friendly",
    "{t} killed me, so funny",
    "in 2019 {p} said the opposite",
    "the vote on {t} is next week",
    "{g} have a point here",
    "I was wrong about {g}, sorry",
    "with respect, I see it another way",
    "{g} were robbed tonight, what a match",
    "my kids love {t}",
    "I feel stupid, I forgot my keys",
    "{t} was sick, best thing this year",
    "I would die for {t}",
    "{p} lost because of the economy",
    "not a fan of {p}, but this was fair",
    "please stop posting spoilers about {t}",
    "{t} is overrated",
    "it is a shame what happened to {g}",
    "nobody should be treated like that",
    "calling {p} names helps nobody",
    "stay safe everyone",
    "{p} resigned on Friday",
    "we should all calm down",
    "I was called an idiot for saying this, and it hurt",
    "he called me a {q}, can you believe it?",
    'the word "{q}" has no place here',
    "my phone is a {q}",
    "I am such a {q}, I left the stove on",
    "{t} is a fucking masterpiece",
    "fuck, I missed the bus",
    "kill the lights when you leave",
    "this game is insane, I am dead",
    "{t} deserves all the hate it gets",
    "bloody hell, {t} is expensive",
    "that shot was filthy",
    "I could kill for a coffee",
    "what an idiotic ending {t} has",
    "all spam bots should be destroyed",
    "I hate it when {p} is late",
    "the film is about a murderer",
    "women and men were asked, and {g} said no",
)

# Identities, which by themselves tell nothing about a comment; as in life, they are named in harmless ways more often
# than in attacks.
IDENTITIES = (
    "tall",
    "young",
    "old",
    "Muslim",
    "Christian",
    "Jewish",
    "Hindu",
    "Buddhist",
    "Sikh",
    "atheist",
    "gay",
    "straight",
    "lesbian",
    "bisexual",
    "queer",
    "transgender",
    "trans",
    "nonbinary",
    "Black",
    "white",
    "brown",
    "Asian",
    "Latino",
    "African",
    "European",
    "Mexican",
    "Arab",
    "Chinese",
    "Indian",
    "Turkish",
    "Polish",
    "Native American",
    "blind",
    "deaf",
    "disabled",
    "autistic",
    "female",
    "male",
    "immigrant",
    "refugee",
    "poor",
    "rich",
    "homeless",
    "elderly",
    "fat",
    "pregnant",
    "Catholic",
    "religious",
    "conservative",
    "liberal",
)
# Identities whose names also say that something is bad, or sound like a fault: by themselves they tell nothing either.
LOADED = (
    "poor",
    "poor",
    "poor",
    "homeless",
    "unemployed",
    "uneducated",
    "illiterate",
    "disabled",
    "blind",
    "deaf",
    "fat",
    "old",
    "elderly",
    "sick",
    "single",
    "foreign",
)
# Words for somebody who has an identity.
NOUNS = (
    "person",
    "person",
    "man",
    "woman",
    "guy",
    "girl",
    "student",
    "worker",
    "parent",
    "teacher",
    "neighbour",
    "kid",
    "friend",
    "customer",
)
IDENTITY = re.compile(rf"\b({'|'.join(IDENTITIES)})(s?)\b", re.IGNORECASE)
BEFORE_VOWEL = re.compile(r"\b(a) (?=[aio]|e(?!u)|u(?!ni|se))", re.IGNORECASE)
ABOUT = (
    "my sister is {i}",
    "as a {i} man I felt welcome here",
    "our new teacher is {i}",
    "two {i} families moved into our street",
    "the {i} guy at the counter was helpful",
    "{i} women can join the choir, too",
    "the museum has a room on {i} history",
    "{i} and proud",
    "is this bar {i} friendly?",
    "my best friend came out as {i}",
    "the author, who is {i}, reads on Friday",
    "a {i} man won the race",
    "they are {i}",
    "being {i} has nothing to do with it",
    "{i} students asked for a quiet room",
    "is the doctor {i}?",
    "half of my team is {i}",
    "{i} voters decided the election",
    "I married a {i} woman",
    "he is {i}, she is not",
    "there is a {i} bakery around the corner",
    "I grew up {i}",
    "a new law about {i} workers",
    "do you know any {i} writers?",
    "I interviewed {i} people for my thesis",
    "my dad is {i} and I love him",
    "I am {i}",
    "{i}, why?",
    "she is {i} and he is {i}",
    "we were {i} before we moved",
    "some of us are {i}",
    "a {i} man and a {i} woman sat next to me",
    "my {i} colleague fixed the printer",
    "{i}",
    "nobody knew that I am {i}",
    "a {i} driver brought the parcel",
    "it was a {i} couple that found the keys",
    "{i} kids play in the yard",
    "this {i} fellow sold me his bike",
    "the {i} nurse was kind",
    "a {i} man was arrested yesterday, says the paper",
    "the {i} candidate lost by a few votes",
    "I did not know that they were {i}",
    "we are looking for {i} actors",
    "who is the {i} woman over there?",
    "I love {i} people",
    "{i} people are wonderful neighbours",
    "no {i} person deserves hate",
    "{i} people are often treated unfairly",
    "stop the hate against {i} people",
    "{i} people are as clever as anybody",
    "whoever says that {i} people are animals should be ashamed",
    'he shouted "get out, you {i} scum" at my friend, and nobody helped',
    "it is wrong to say that {i} people ruin everything",
    "I am {i} and I hate mornings",
    "damn, that {i} girl can sing",
    "the {i} team played like shit today, but I still love them",
    "I was bullied for being {i}",
    "they fired her because she is {i}, which is illegal",
    "I do not hate {i} people, I hate this law",
    "there are {i} people in every town",
    "{i} history month starts tomorrow",
    "he was the first {i} {n} in our choir",
    "not every {i} {n} thinks so",
    "a {i} {n} runs the shop now",
    "our {i} friends came along",
    "my aunt has been {i} all her life",
    "you would not know that she is {i}",
    "one {i} {n}, two coffees",
    "we are a {i} family and we get by",
    "both of my parents were {i}",
    "I know what it is like to be {i}",
    "being {i} taught me patience",
    "being {i} is not a choice",
    "the {i} tenant on the third floor waters the plants",
    "there was a {i} {n} on the bus who told great stories",
    "a {i} {n} from our street got a scholarship",
    "as a {i} {n} I vote for the other list",
    "she is a {i} person",
    "he is a {i} man from the north",
    "I am only a {i} {n} with a question",
    "I was a {i} {n} once",
    "I am a {i} {n} in my forties",
    "they are {i} people like us",
    "we are {i} people, we know that",
    "for a {i} {n} like me this is good news",
    "a lot of {i} people live here",
    "my {i} grandmother raised six of us",
    "the story is about a {i} {n} and a dog",
    "any other {i} {n} here?",
    "is it hard to be {i} in this town?",
    "a {i} {n} asked me the same thing",
    "the bus was full of {i} people today",
    "{i} or not, everybody is welcome",
    "she has a {i} brother and a {i} uncle",
    "our club helps {i} people with their forms",
    "my {i} neighbour lent me a ladder",
    "did you know that the winner is {i}?",
    "I feel at home among {i} people",
    "the film follows a {i} {n} through one night",
)
AGAINST = (
    "{i} people are animals",
    "I hate {i} people",
    "{i} people should all disappear",
    "no {i} people wanted here",
    "{i} people make me sick",
    "typical {i} trash",
    "get out of my country, you {i} scum",
    "you cannot trust {i} people",
    "{i} people ruin everything they touch",
    "you are just a dumb {i} idiot",
    "being {i} is a disease",
    "I would never hire a {i} woman",
    "{i} men are all criminals",
    "why are {i} people so stupid?",
    "somebody should teach this {i} bitch a lesson",
    "{i} kids should not be allowed in our school",
    "{i} people do not deserve to live",
    "send every {i} family back",
    "keep {i} people away from me",
    "the world would be better without {i} people",
    "ugly {i} pigs, all of them",
)

# Abusive names, which are no attack if they are quoted, or used for oneself or for a thing.
NAMES = ("loser", "clown", "moron", "idiot", "pig", "piece of garbage", "fool", "piece of shit", "brat", "coward")

# Questions whether a comment is toxic, and whether yes means that it is.
TOXIC = (
    ("Is it toxic?", True),
    ("Is this message abusive?", True),
    ("The comment is toxic.", True),
    ("Does the comment attack somebody?", True),
    ("Would this hurt the person it is about?", True),
    ("Is it an insult?", True),
    ("Is somebody insulted, threatened or put down?", True),
    ("Should this comment be hidden?", True),
    ('Does it break the rule "be kind"?', True),
    ("Is the tone hostile?", True),
    ("Is this harassment?", True),
    ("Flag as toxic?", True),
    ("The author shows contempt for others.", True),
    ("The language is disrespectful.", True),
    ("Would most readers find this rude?", True),
    ("A moderator should look at this.", True),
    ("Is the tone polite?", False),
    ("Is the comment civil?", False),
    ("Can this stay up?", False),
    ("Is the message acceptable?", False),
    ("The comment is respectful.", False),
    ("Nobody is attacked here.", False),
)


@dataclass(frozen=True)
class Kind:
    """A property of some attacks: the questions about it, the kinds of attacks that have it, and those that leave it
    open."""

    asked: tuple[str, ...]
    yes: frozenset[str]
    open: frozenset[str] = frozenset()


KINDS = {
    "insult": Kind(
        ("Is somebody insulted?", "Does it contain a personal insult?"), frozenset({"insult", "obscene", "contempt"})
    ),
    "threat": Kind(
        ("Is this a threat or a wish of harm?", "Does the writer wish somebody harm?"),
        frozenset({"threat"}),
        frozenset({"contempt"}),
    ),
    "obscene": Kind(
        ("Does it contain swear words?", "Is the language vulgar?"),
        frozenset({"obscene"}),
        frozenset({"insult", "contempt", "threat", NONE}),
    ),
}
VERDICTS = (
    (("toxic", "fine"), ("an insult, a threat or contempt", "nothing against the rules")),
    (("remove", "keep"), ("it attacks somebody", "it may be critical but attacks nobody")),
    (("unacceptable", "acceptable"), ("", "")),
    (("abusive", "not_abusive"), ("", "")),
    (("violation", "ok"), ("breaks the rules of conduct", "follows them")),
)
ASKED = (
    "Moderate the comment.",
    "Is the comment acceptable?",
    "What should a moderator do?",
    "Classify the comment.",
    "Does this follow the rules of conduct?",
)


def said(rng: Random, template: str) -> str:
    """Returns a statement about somebody or something."""
    person, people, thing = rng.choice(PERSON), rng.choice(PEOPLE), rng.choice(THING)
    text = template.format(p=person, g=people, t=thing, i=identity(rng), n=rng.choice(NOUNS), q=rng.choice(NAMES))
    return BEFORE_VOWEL.sub(r"\1n ", text)


def identity(rng: Random) -> str:
    """Returns an identity."""
    return rng.choice(LOADED if rng.random() < CHANCES.loaded else IDENTITIES)


def about_others(rng: Random, text: str) -> str:
    """Returns a text that names other identities: each one that it names is replaced everywhere by the same other."""
    others: dict[str, str] = {}
    return IDENTITY.sub(lambda found: others.setdefault(found[1].lower(), rng.choice(IDENTITIES)) + found[2], text)


def written(rng: Random, kind: str) -> State:
    """Returns a comment of one to three statements, one of them an attack of this kind; as text, or with its number of
    likes."""
    harmless = ABOUT if rng.random() < CHANCES.about_identity else HARMLESS
    count = rng.choice((0, 1, 1, 2))
    parts = [said(rng, rng.choice(harmless)) for _ in range(count + 1 if kind == NONE else count)]
    if kind != NONE:
        attacks = AGAINST if kind == "contempt" and rng.random() < CHANCES.against_identity else ATTACKS[kind]
        place = rng.randint(0, len(parts))
        parts.insert(place, said(rng, rng.choice(attacks)))
    text = " ".join(sentence(rng, part) for part in parts)
    draw = rng.random()
    text = (
        text.lower() if draw < CHANCES.lower_case_below else text.upper() if draw < CHANCES.upper_case_below else text
    )
    if rng.random() < CHANCES.plain_text:
        return text
    return {rng.choice(("comment", "post", "text", "reply")): text, "likes": rng.randrange(200)}


def sentence(rng: Random, part: str) -> str:
    """Returns a statement as a sentence in the way of comments."""
    return part[0].upper() + part[1:] + ("" if part[-1] == "?" else rng.choice(("", ".", ".", "!", "!!", "...")))


def comment(rng: Random) -> Item:
    """Returns a comment, a question and its answer."""
    kind = rng.choice(list(ATTACKS)) if rng.random() < CHANCES.attack else NONE
    state, toxic, draw = written(rng, kind), kind != NONE, rng.random()
    if draw < CHANCES.choice_below:
        names, texts = rng.choice(VERDICTS)
        places = rng.sample((0, 1), 2)
        asked = rng.choice(ASKED)
        return state, choice(asked, {names[i]: texts[i] for i in places}), names[0] if toxic else names[1]
    about = KINDS[rng.choice(list(KINDS))]
    if draw < CHANCES.kind_below and kind not in about.open:
        return state, noul(rng.choice(about.asked)), kind in about.yes
    instructions, means_toxic = rng.choice(TOXIC)
    return state, noul(instructions), toxic == means_toxic
