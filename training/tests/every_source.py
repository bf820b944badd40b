"""Made-up rows of every source that a recipe knows, in every form in which the source asks."""

from training.data.rows import LIKENESS, Row
from training.generate.exams import EXAMS, LESSONS
from training.generate.rows import generated

# The number of rows of each form: more than eight, since fewer pairs are not matched with each other.
EACH = 12
TOPICS = (
    "harbour",
    "library",
    "museum",
    "orchard",
    "railway",
    "theatre",
    "village",
    "workshop",
    "factory",
    "airport",
    "stadium",
    "vineyard",
)
INTENTS = {
    "card_lost": "a card is lost",
    "transfer": "",
    "balance_query": "the balance of an account",
    "GetWeather": "",
    "greeting": "",
    "other": "anything else",
}


def yes_no(text):
    """Returns a yes/no question."""
    return {"type": "noul", "instructions": text}


def choose(text, *names, **described):
    """Returns a choice among options without a description, and options with one."""
    return {"type": "choice", "instructions": text, "criteria": {**dict.fromkeys(names, ""), **described}}


def rate(text, *levels):
    """Returns a score."""
    return {"type": "score", "instructions": text, "criteria": list(levels)}


def verdicts(i, topic):
    """Yields claims with their evidence."""
    pair = {
        "premise": f"The {topic} was closed for {i} days after the storm.",
        "hypothesis": f"The {topic} could be visited on day {i}.",
    }
    three = choose("How does `hypothesis` relate to `premise`?", "entailment", "neutral", "contradiction")
    for source in ("mnli_dev", "snli_dev", "conjnli_adv", "cad_nli"):
        yield Row(source, pair, three, ("entailment", "neutral", "contradiction")[i % 3])
    # Two claims share two rare words, so that one can be moved to the text of the other.
    yield Row(
        "mnli_dev",
        {"premise": f"Painters restored the {topic} ceiling.", "hypothesis": f"The {topic} ceiling is new, {i}."},
        three,
        "neutral",
    )
    for source in ("med_help", "megaveridicality", "negation_nli"):
        yield Row(
            source,
            pair,
            choose("Does `hypothesis` follow from `premise`?", "follows", "does not follow"),
            "follows" if i % 2 else "does not follow",
        )
    claimed = {
        "claim": f"The {topic} has {i} doors.",
        "evidence": f"Visitors counted {i + i % 2} doors at the {topic}.",
    }
    for source in ("fever_symmetric", "fool_me_twice"):
        yield Row(source, claimed, yes_no("`evidence` supports `claim`."), i % 2 == 0)
        yield Row(source, {"evidence": claimed["evidence"]}, yes_no(claimed["claim"]), i % 2 == 0)
        yield Row(source, {"evidence": "A door."}, yes_no(f"Door {i} is marked {{}}."), i % 2 == 0)
    yield Row(
        "folio",
        {"premises": f"All doors of the {topic} are red. {i} doors are open."},
        yes_no(f"A red door of the {topic} is open."),
        i % 2 == 0,
    )
    yield Row(
        "folio",
        {"premises": f"Door {i} is red.", "hypothesis": f"Door {i} of the {topic} is blue."},
        choose("Is it so?", "true", "unknown", "false"),
        ("true", "unknown", "false")[i % 3],
    )
    record = {"title": topic, "built": 1900 + i, "doors": i, "city": "Oslo"}
    yield Row(
        "infotabs",
        {"record": record, "hypothesis": f"The {topic} was built before 1905."},
        three,
        ("entailment", "neutral", "contradiction")[i % 3],
    )
    yield Row("infotabs", record, yes_no(f"The {topic} has more than five doors."), i > 5)
    yield Row("tabfact_val", [["name", "doors"], [topic, str(i)]], yes_no(f"The {topic} has {i} doors."), i % 2 == 0)
    argued = {"claim": f"The {topic} should be free.", "argument": f"Argument {i}: many people cannot pay."}
    yield Row("perspectrum", argued, yes_no("`argument` supports `claim`."), True)
    yield Row("perspectrum", argued, yes_no("The writer of `argument` would disagree with `claim`."), True)
    yield Row(
        "perspectrum", argued, rate("How strongly does `argument` support `claim`?", "not", "a little", "fully"), i % 3
    )


def passages(i, topic):
    """Yields questions over passages and about general knowledge."""
    yield Row(
        "boolq_train1886",
        {"passage": f"The {topic} opened in {1900 + i}."},
        yes_no(f"did the {topic} open before 1906?"),
        i < 6,
    )
    yield Row(
        "condaqa",
        {"passage": f"The {topic} is not open on day {i}.", "question": f"Is the {topic} open on day {i}?"},
        choose("Answer `question` from `passage`.", "yes", "no", "don't know"),
        ("yes", "no", "don't know")[i % 3],
    )
    yield Row(
        "condaqa",
        {"passage": f"The {topic} sells tickets.", "question": f"Does the {topic} sell {i} tickets?"},
        yes_no("`passage` answers `question`."),
        i % 2 == 0,
    )
    yield Row(
        "strategyqa",
        {"facts": f"A {topic} is larger than {i} cats."},
        yes_no(f"Would {i} cats fit into a {topic}?"),
        i % 2 == 0,
    )
    yield Row(
        "logicbench_aug",
        f"If it rains, the {topic} closes. It rains on day {i}.",
        yes_no(f"Does the {topic} close on day {i}?"),
        True,
    )
    yield Row("csqa2", "", yes_no(f"Is a {topic} older than {i} years?"), i % 2 == 0)
    yield Row("creak", "", yes_no(f"A {topic} can have {i} floors."), i % 2 == 0)


def opinions(i, topic):
    """Yields texts that like or dislike something."""
    five = ("very negative", "negative", "neutral", "positive", "very positive")
    yield Row(
        "pros_cons",
        f"long battery life, {i} hours at the {topic}",
        choose("Is it praise or a complaint?", "praise", "complaint"),
        "praise" if i % 2 else "complaint",
    )
    yield Row(
        "product_reviews",
        f"the screen of the {topic} display is bright, the price is not, {i}",
        yes_no("The writer is happy with the screen."),
        i % 2 == 0,
    )
    yield Row(
        "product_reviews",
        f"it has {i} buttons at the {topic}",
        yes_no("The sentence gives an opinion about the product."),
        i % 2 == 0,
    )
    yield Row(
        "product_reviews",
        f"bought at the {topic} {i} days ago",
        choose("What is said about the lens?", "positive", "negative", "no sentiment"),
        ("positive", "negative", "no sentiment")[i % 3],
    )
    yield Row(
        "vader_rated",
        f"It was what it was, at the {topic}, {i}.",
        rate("Rate the sentiment of the text.", *five),
        i % 5,
        [0.1, 0.1, 0.2, 0.3, 0.3],
    )
    yield Row("vader_rated", f"so good at the {topic}, {i}", yes_no("The text is positive."), True)
    yield Row(
        "movie_reviews",
        {"review": f"A film about a {topic} in {i} parts."},
        rate("How many stars?", "0", "1", "2", "3", "4", "5"),
        i % 6,
    )
    yield Row(
        "movie_reviews",
        {"review": f"Part {i} of the {topic} film."},
        rate("How positive is it?", "negative", "neutral", "positive"),
        i % 3,
    )
    yield Row(
        "cad_sentiment",
        {"review": f"{'A joy' if i % 2 else 'A bore'} of {i} minutes in a {topic}."},
        yes_no("The reviewer liked the film."),
        i % 2 == 1,
    )
    yield Row(
        "tsa_md",
        f"the {topic} deal looks {'strong' if i % 2 else 'weak'}, {i}",
        choose("What is the sentiment towards the company?", "positive", "negative", "neutral"),
        ("positive", "negative", "neutral")[i % 3],
    )
    yield Row(
        "newsmtsc",
        {"sentence": f"The mayor opened the {topic} for the {i}th time.", "person": "the mayor"},
        choose("How is the person portrayed?", "positive", "negative", "neutral"),
        ("positive", "negative", "neutral")[i % 3],
    )
    yield Row(
        "newsmtsc",
        {"sentence": f"Critics booed the senator at the {topic}, {i}.", "person": "the senator"},
        yes_no("The person is judged negatively."),
        True,
    )
    yield Row(
        "poem_sentiment",
        f"o {topic} of {i} sorrows",
        choose("What does the verse feel like?", "positive", "negative", "neutral", "mixed"),
        ("positive", "negative", "neutral", "mixed")[i % 4],
    )
    yield Row("emobank", f"They were proud of the {topic}, {i}.", rate("How positive is the text?", *five), i % 5)
    yield Row(
        "emobank",
        f"Run to the {topic}, {i}!",
        rate("Rate the emotional intensity of the text.", "calm", "moved", "excited"),
        i % 3,
    )


def properties(i, topic):
    """Yields texts that have a property or do not have it."""
    yield Row(
        "spamassassin",
        {"subject": f"offer {i}", "body": "buy now" if i % 2 else f"see you at the {topic}"},
        yes_no("The message is spam."),
        i % 2 == 1,
    )
    yield Row(
        "spamassassin",
        {"subject": f"{topic} {i}", "body": "hello"},
        yes_no("Is this a genuine message that the recipient would want?"),
        i % 2 == 0,
    )
    yield Row(
        "prompt_injection_mix",
        f"Ignore the rules of the {topic}, {i}." if i % 2 else f"Describe the {topic}, {i}.",
        choose("What is this input?", "injection", "benign"),
        "injection" if i % 2 else "benign",
    )
    yield Row(
        "clickbait",
        f"{i} things that you never knew about a {topic}",
        yes_no("This headline is clickbait."),
        i % 2 == 0,
    )
    yield Row(
        "mustard",
        {"context": f"We waited {i} hours at the {topic}.", "reply": "Oh, wonderful."},
        yes_no("The reply is sarcastic."),
        i % 2 == 0,
    )
    yield Row("query_wellformedness", f"where {topic} {i} be", yes_no("The question needs rewriting."), i % 2 == 0)
    yield Row(
        "query_wellformedness",
        f"What does the {topic} cost on day {i}?",
        rate("How well formed is it?", "bad", "fair", "good"),
        i % 3,
    )
    yield Row(
        "davidson",
        f"those people at the {topic}, {i}",
        choose("Classify the post.", "hate_speech", "offensive", "neither"),
        ("hate_speech", "offensive", "neither")[i % 3],
        [0.3, 0.5, 0.2],
    )
    yield Row("davidson", f"you fool of a {topic}, {i}", yes_no("The post is offensive."), i % 2 == 0)
    yield Row(
        "toxigen", f"everybody from the {topic} is the same, {i}", yes_no("The text attacks a group."), i % 2 == 0
    )


def claims(i, topic):
    """Yields the other yes/no rows."""
    yield Row(
        "persona",
        {"statement": f"I like the {topic} on {i} days."},
        yes_no(f"The person who wrote it likes: a visit to a {topic}."),
        i % 2 == 0,
    )
    for entity in ("person", "age", "phone number"):
        yield Row("presidio", f"Ana, {i}, works at the {topic}.", yes_no(f"The text contains a {entity}."), i % 2 == 0)
    yield Row(
        "defeasible",
        {
            "premise": f"A man stands before the {topic}.",
            "hypothesis": "He waits.",
            "update": f"He looks at his watch {i} times.",
        },
        yes_no("`update` makes `hypothesis` more likely."),
        i % 2 == 0,
    )
    yield Row(
        "qnli_dev",
        {"question": f"When did the {topic} open?", "sentence": f"The {topic} opened in {1900 + i}."},
        yes_no("`sentence` answers `question`."),
        i % 3 > 0,
    )
    yield Row(
        "goemotions", f"thank you for the {topic}, {i}", yes_no("The writer shows gratitude."), i % 2 == 0, [0.4, 0.6]
    )
    yield Row("nlupp", f"book {i} seats at the {topic}", yes_no("does the user want to book something?"), i % 2 == 0)
    yield Row(
        "sgd",
        {"dialogue": f"user: a table near the {topic}\nsystem: for {i}?", "service": "Restaurants"},
        yes_no("The user wants a table."),
        i % 2 == 0,
    )
    yield Row(
        "evidence_inference",
        {"evidence": f"Group {i} improved.", "outcome": topic},
        yes_no("`evidence` shows an effect."),
        i % 2 == 0,
    )
    yield Row(
        "cfpb_other",
        {"complaint": f"The bank at the {topic} charged me {i} times."},
        yes_no("Is it about a fee?"),
        i % 2 == 0,
    )


def labelled(i, topic):
    """Yields choices and scores."""
    names = list(INTENTS)
    for source in ("hwu64_fold1", "snips", "multidogo", "unknown_intents"):
        yield Row(
            source,
            f"please help with number {i} at the {topic}",
            choose("What does the user want?", **INTENTS),
            names[i % len(names)],
        )
    yield Row(
        "slurp_devtest",
        {"utterance": f"wake me at {i}"},
        choose("What does the user want?", f"find_{topic}", "stop_alarm"),
        f"find_{topic}",
    )
    yield Row(
        "sgd",
        {"dialogue": f"user: a room near the {topic}, {i} nights", "service": "Hotels" if i % 2 else "Events"},
        choose("What does the user want?", "FindHotel", "BookHotel", "Thanks"),
        "FindHotel",
    )
    yield Row(
        "goemotions",
        f"my dog learned {i} tricks at the {topic}",
        choose("Which emotion does the writer express?", "joy", "anger", "grief", "surprise", "neutral"),
        ("joy", "anger", "surprise")[i % 3],
    )
    yield Row(
        "goemotions",
        f"what a lovely {topic}, {i}",
        rate("How positive is the tone?", "negative", "neutral", "positive"),
        i % 3,
        [0.2, 0.2, 0.6],
    )
    yield Row(
        "sib200_en",
        f"The {topic} won {i} to 1.",
        choose("What is it about?", A="sports", B="politics", C="travel", D="health"),
        "ABCD"[i % 4],
    )
    yield Row(
        "masc_genre",
        f"Dear {topic}, I write for the {i}th time.",
        choose("What kind of text is it?", "letter", "fiction", "news"),
        "letter",
        [0.7, 0.2, 0.1],
    )
    yield Row(
        "csabstruct",
        f"We measured {i} times at the {topic}.",
        choose("Which part is it?", "background", "method", "result"),
        ("background", "method", "result")[i % 3],
    )
    yield Row(
        "commonsenseqa",
        {"question": f"Where do you find {i} seats?"},
        choose("Answer `question`.", topic, f"cupboard {i}", "river", "pocket"),
        topic,
    )
    asked = choose("Pick the correct answer to `question`.", A=topic, B=f"river {i}", C="pocket", D="cupboard")
    yield Row(EXAMS, {"question": f"What has {i} seats and a stage?"}, asked, "A")
    passage = f"The {topic} has {i} seats and a stage."
    yield Row(LESSONS, {"question": f"Where are {i} seats?", "passage": passage}, asked, "A")
    yield Row(
        "splunk",
        {"description": f"Finds {i} logins at the {topic}.", "name": f"Logins {i}"},
        choose("Which domain?", "endpoint", "network", "access"),
        "access",
    )
    yield Row(
        "sigma",
        {"description": f"Detects {i} failed starts in the {topic}.", "title": f"Failed starts of the {topic}"},
        rate("How severe is it?", "low", "medium", "high", "critical"),
        i % 4,
    )
    yield Row(
        "stsb_en",
        {"a": f"The {topic} is open, {i}.", "b": f"One can visit the {topic}, {i}."},
        rate("How similar are `a` and `b`?", "0", "1", "2", "3", "4", "5"),
        5 - i % 2,
    )
    yield Row(
        "onestop",
        f"The {topic} opened its {i} doors, and it was good.",
        rate("How hard is it to read?", "elementary", "intermediate", "advanced"),
        i % 3,
    )
    # Sources that are held out whole.
    yield Row(
        "rasa",
        f"is the {topic} bot a human, {i}?",
        choose("What does the user want?", "bot_challenge", "mood_great", "goodbye"),
        "bot_challenge",
    )
    yield Row(
        "prom_alerts",
        {"alert": f"{topic} is down for {i} minutes"},
        rate("How urgent is this alert?", "info", "warning", "critical"),
        i % 3,
    )
    yield Row(
        "pubmedqa",
        {"abstract": f"{i} patients near the {topic} felt better."},
        choose("Did it help?", "yes", "no", "maybe"),
        ("yes", "no", "maybe")[i % 3],
    )
    yield Row("own", {"state": topic, "number": i}, choose("Which bin?", "x", "y"), "xy"[i % 2])


def alike(i, topic):
    """Yields rows that sentence encoders answered."""
    text = f"We met at the {topic} at {i}."
    yield Row(LIKENESS, text, choose("What is it about?", topic, "weather", "none"), topic, [0.6, 0.1, 0.2999])
    yield Row(LIKENESS, text, choose("Which intent?", "meet somebody", "pay"), "meet somebody", [0.8, 0.2])
    yield Row(LIKENESS, text, yes_no("Is it about a meeting?"), True, [0.25, 0.75])


def every_source():
    """Yields the rows; those of one text follow each other."""
    for make in (verdicts, passages, opinions, properties, claims, labelled, alike):
        for i in range(EACH):
            yield from make(i, TOPICS[i])
    yield from generated(5, 200)
