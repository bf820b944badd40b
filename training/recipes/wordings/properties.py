"""Wordings for properties of a text, from both sides."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Property:
    """A property: statements and questions for it and against it ({} is the name of the text), the names and texts of
    options, and the nouns for the text."""

    holds: tuple[str, ...]
    fails: tuple[str, ...]
    asked: tuple[str, ...]
    opposed: tuple[str, ...]
    names: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, str], ...]
    choose: tuple[str, ...]
    nouns: tuple[str, ...]


SPAM = Property(
    (
        "{} is spam",
        "{} is junk",
        "{} is unwanted advertising or a scam",
        "{} was sent in bulk to people who did not ask for it",
        "a filter should stop {}",
        "{} belongs in the junk folder",
        "{} is unsolicited",
        "{} tries to sell or swindle",
    ),
    (
        "{} is legitimate",
        "{} is genuine",
        "{} belongs in the inbox",
        "{} is not spam",
        "{} was written to somebody who knows the sender or asked for it",
        "a filter should let {} pass",
        "the recipient wants {}",
        "{} is ordinary mail",
    ),
    (
        "Is {} spam?",
        "Is {} junk?",
        "Should {} go to the junk folder?",
        "Would a filter block {}?",
        "Is {} unsolicited advertising?",
        "Is somebody trying to sell or swindle here?",
        "Is {} a mass mailing nobody asked for?",
    ),
    (
        "Is {} legitimate?",
        "Should {} reach the inbox?",
        "Is {} a genuine message?",
        "Does the recipient want {}?",
        "Is {} ham rather than spam?",
        "Is it safe to deliver {}?",
    ),
    (("spam", "legitimate"), ("junk", "inbox"), ("spam", "ham"), ("unwanted", "wanted"), ("block", "deliver")),
    (
        ("unsolicited advertising, scam or junk", "a message that was asked for"),
        ("", ""),
        ("bulk mail nobody asked for", "personal or business mail"),
        ("", "not spam"),
    ),
    (
        "Spam or not?",
        "Classify {}.",
        "Where should {} go?",
        "What should the filter do with {}?",
        "Sort {}.",
        "Label {} for the spam filter.",
        "Which folder?",
        "Is it junk or genuine?",
    ),
    ("message", "email", "mail"),
)
ATTACK = Property(
    (
        "{} tries to make an assistant ignore its rules",
        "{} is a prompt injection",
        "{} attempts to manipulate the model",
        "{} contains instructions meant to hijack an AI",
        "{} is a jailbreak attempt",
        "{} wants to take control of the assistant",
        "{} should be blocked before the model reads it",
        "{} is an attack on a language model",
        "{} tries to get at the hidden prompt or around the rules",
    ),
    (
        "{} is an ordinary request",
        "{} is harmless to the assistant's instructions",
        "{} leaves the assistant's rules alone",
        "{} contains no attack on the model",
        "{} is safe to pass on to the assistant",
        "{} is benign",
        "{} does not try to manipulate an AI",
        "nothing in {} is aimed at the model's rules",
    ),
    (
        "Is {} a prompt injection?",
        "Is somebody trying to get around the assistant's rules?",
        "Does {} try to override the system's instructions?",
        "Should {} be blocked?",
        "Is {} an attempt at a jailbreak?",
        "Does {} attack the AI that reads it?",
        "Is {} malicious towards the model?",
    ),
    (
        "Is {} safe to hand to the assistant?",
        "Is {} a normal request?",
        "Is {} harmless to the model?",
        "Can {} pass the guard?",
        "Is {} free of attempts to manipulate?",
    ),
    (("attack", "normal"), ("injection", "benign"), ("unsafe", "safe"), ("block", "allow"), ("jailbreak", "ordinary")),
    (
        ("tries to override, leak or bypass the assistant's instructions", "an ordinary request or document"),
        ("", ""),
        ("aimed at the rules of the model", "leaves the rules of the model alone"),
    ),
    (
        "Classify {}.",
        "Attack or normal?",
        "What should the guard do with {}?",
        "What kind of input is {}?",
        "Label {} for safety.",
        "Judge {} before the model reads it.",
        "Is it an attack?",
    ),
    ("prompt", "input", "message", "content"),
)
CLICKBAIT = Property(
    (
        "{} is clickbait",
        "{} teases instead of telling the news",
        "{} wants to make people click",
        "{} is a teaser or a list",
        "{} withholds what it is about to make readers curious",
        "{} is not serious news",
    ),
    (
        "{} is a straight news headline",
        "{} reports plainly what happened",
        "{} tells the news",
        "a newspaper of record could print {}",
        "{} says what happened",
        "{} is not clickbait",
    ),
    (
        "Is {} clickbait?",
        "Does {} only want clicks?",
        "Is {} a teaser?",
        "Does {} tease the reader?",
        "Is {} made to be clicked rather than to inform?",
    ),
    (
        "Is {} plain news?",
        "Does {} report an event?",
        "Would a news agency write {}?",
        "Does {} tell the reader what happened?",
    ),
    (("clickbait", "news"), ("teaser", "report"), ("bait", "plain"), ("listicle_or_teaser", "news_report")),
    (("teases the reader into clicking", "reports an event"), ("", "")),
    (
        "Clickbait or news?",
        "Classify {}.",
        "What kind of headline is {}?",
        "Which desk wrote {}?",
        "Sort {}.",
        "What is the headline for?",
    ),
    ("headline", "title"),
)
SARCASM = Property(
    (
        "{} is sarcastic",
        "the speaker means the opposite of what is said",
        "{} is meant ironically",
        "{} is mocking",
        "{} is not to be taken at its word",
        "there is sarcasm in {}",
        "the last line is meant as a joke at somebody's expense",
    ),
    (
        "{} is sincere",
        "the speaker means what is said",
        "{} is meant seriously",
        "{} can be taken at its word",
        "there is no irony in {}",
        "the last line is meant as it stands",
    ),
    (
        "Is {} sarcastic?",
        "Is {} meant ironically?",
        "Is somebody being sarcastic here?",
        "Does the speaker mean the opposite?",
        "Is {} mockery?",
        "Is that irony?",
    ),
    ("Is {} sincere?", "Is {} meant seriously?", "Can {} be taken literally?", "Does the speaker mean what is said?"),
    (("sarcastic", "sincere"), ("ironic", "literal"), ("mocking", "serious")),
    (("meant ironically or mockingly", "meant as it is said"), ("", "")),
    (
        "Sarcastic or sincere?",
        "How is {} meant?",
        "Classify the tone of {}.",
        "What does the speaker mean?",
        "Ironic or literal?",
    ),
    ("reply", "line", "remark", "text"),
)
WELL_FORMED = Property(
    (
        "{} is a well-formed question",
        "{} is a complete, grammatical question",
        "{} is spelled and asked correctly",
        "{} can be understood without rewriting",
        "nothing in {} needs correction",
        "{} could stand in a book of questions as it is",
    ),
    (
        "{} needs rewriting",
        "{} has a mistake in spelling or grammar, or is incomplete",
        "{} is not a proper question",
        "{} is only a fragment of a question",
        "an editor would have to change {}",
        "{} is badly put",
    ),
    (
        "Is {} well formed?",
        "Is {} a complete, correct question?",
        "Is {} grammatical?",
        "Can {} stay as it is?",
        "Is {} a proper question?",
    ),
    (
        "Does {} need rewriting?",
        "Is something wrong with the wording of {}?",
        "Is {} incomplete or ungrammatical?",
        "Would an editor change {}?",
    ),
    (("well_formed", "needs_work"), ("correct", "faulty"), ("complete", "fragment"), ("ok", "rewrite")),
    (("a grammatical, complete question", "misspelled, ungrammatical or incomplete"), ("", "")),
    (
        "Judge the wording of {}.",
        "Classify {}.",
        "Is the question well asked?",
        "What should an editor do with {}?",
        "Rate the grammar of {}.",
    ),
    ("query", "question", "text"),
)
TOXIC = Property(
    (
        "{} is offensive",
        "{} breaks a rule against insults and hate",
        "{} is abusive or vulgar",
        "a moderator should remove {}",
        "{} is rude, hateful or insulting",
        "{} is toxic",
        "somebody could be hurt by {}",
        "{} is not fit for a family site",
        "{} crosses the line",
        "{} insults or demeans",
    ),
    (
        "{} is harmless",
        "{} is fine to publish",
        "{} keeps to the rules of polite talk",
        "there is nothing offensive in {}",
        "a moderator can leave {} up",
        "{} is civil",
        "{} is clean",
        "{} attacks nobody and is not vulgar",
        "{} is acceptable",
        "nobody is insulted in {}",
    ),
    (
        "Is {} offensive?",
        "Should {} be removed by a moderator?",
        "Is {} abusive?",
        "Does {} break the rules against insults and hate?",
        "Is {} rude or hateful?",
        "Is {} toxic?",
        "Is this over the line?",
        "Would {} be flagged?",
    ),
    (
        "Is {} harmless?",
        "Is {} fine to publish on a family site?",
        "Can {} stay up?",
        "Is {} civil?",
        "Is {} free of insults?",
        "Would {} pass moderation?",
    ),
    (("toxic", "clean"), ("remove", "keep"), ("offensive", "fine"), ("abusive", "civil"), ("flag", "pass")),
    (("insulting, hateful or vulgar", "nothing offensive"), ("", ""), ("breaks the rules", "keeps to the rules")),
    (
        "Moderate {}.",
        "Classify {} for moderation.",
        "Keep or remove?",
        "What should a moderator do with {}?",
        "Judge {}.",
        "Is it within the rules?",
    ),
    ("post", "comment", "message", "text"),
)
HATE = Property(
    (
        "{} is hate speech",
        "{} attacks people for the group they belong to",
        "{} demeans a group of people",
        "{} is hateful toward a group",
        "{} spreads hate",
        "{} treats people as lesser because of what they are",
        "a rule against hate speech forbids {}",
    ),
    (
        "{} is not hate speech",
        "{} attacks no group of people",
        "{} demeans no group",
        "{} may be rude but does not target a group",
        "no group is the target of {}",
        "{} is not hateful toward any group",
    ),
    (
        "Is {} hate speech?",
        "Does {} attack a group of people?",
        "Is {} hateful toward a group?",
        "Does {} demean people for what they are?",
        "Does {} break a rule against hate?",
    ),
    (
        "Is {} free of hate against groups?",
        "Does {} leave groups of people alone?",
        "Is {} something other than hate speech?",
    ),
    (("hate", "no_hate"), ("hateful", "not_hateful"), ("hate_speech", "other")),
    (("attacks or demeans a group", "does not"), ("", "")),
    ("Is it hate speech?", "Classify {}.", "Moderate {}.", "What is {}?", "Hate speech or not?"),
    ("post", "comment", "message", "text"),
)
OPINION = Property(
    (
        "{} gives an opinion about the product",
        "{} judges a feature of the product",
        "the writer praises or criticises something in {}",
        "{} contains an evaluation",
        "one learns from {} what the writer thinks of the product",
        "{} is an assessment",
    ),
    (
        "{} only states facts",
        "{} does not judge the product",
        "there is neither praise nor criticism in {}",
        "{} contains no opinion about the product",
        "the writer evaluates nothing in {}",
        "{} is neutral information",
    ),
    (
        "Does {} give an opinion?",
        "Is something judged in {}?",
        "Is there praise or criticism in {}?",
        "Does the writer evaluate the product here?",
        "Is {} an opinion?",
    ),
    ("Is {} free of any opinion?", "Does {} only give facts?", "Is {} without praise and criticism?"),
    (("opinion", "fact"), ("evaluative", "neutral"), ("judgement", "no_judgement")),
    (("praises or criticises", "neither praises nor criticises"), ("", "")),
    ("Opinion or fact?", "Classify {}.", "What kind of sentence is {}?", "Does it judge?"),
    ("sentence", "review", "text"),
)
