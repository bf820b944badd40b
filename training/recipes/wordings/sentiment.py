"""Wordings for how a writer feels about something, and for the levels of a feeling."""

from dataclasses import dataclass


@dataclass(frozen=True)
class About:
    """Wordings about a whole text ({} is its name), and wordings about a target ({t}) in it."""

    text: tuple[str, ...]
    target: tuple[str, ...]


LIKES = About(
    text=(
        "{} is positive",
        "the tone of {} is favourable",
        "the writer is pleased",
        "the author of {} speaks well of it",
        "the writer would recommend it",
        "{} is praise",
        "the verdict of {} is good",
        "{} leaves a good impression of its subject",
        "the reviewer liked it",
        "on balance, {} is in favour",
        "the writer came away satisfied",
        "{} expresses a good opinion",
        "somebody who reads {} would think that it is worth having",
        "the author thinks highly of it",
        "{} approves of what it describes",
    ),
    target=(
        "the writer thinks well of {t}",
        "{t} comes off well",
        "what is said about {t} is good",
        "{t} is shown in a good light",
        "the attitude towards {t} is favourable",
        "{t} is praised",
        "the text is kind to {t}",
        "{t} should be pleased with what is written",
        "the sentiment towards {t} is positive",
    ),
)
DISLIKES = About(
    text=(
        "{} is negative",
        "the tone of {} is unfavourable",
        "the writer is displeased",
        "the author of {} speaks ill of it",
        "the writer would advise against it",
        "{} is criticism",
        "the verdict of {} is bad",
        "{} leaves a bad impression of its subject",
        "the reviewer did not like it",
        "on balance, {} is against it",
        "the writer was let down",
        "{} expresses a bad opinion",
        "somebody who reads {} would stay away from it",
        "the author thinks little of it",
        "{} finds fault with what it describes",
    ),
    target=(
        "the writer thinks ill of {t}",
        "{t} comes off badly",
        "what is said about {t} is bad",
        "{t} is shown in a bad light",
        "the attitude towards {t} is unfavourable",
        "{t} is criticised",
        "the text is hard on {t}",
        "{t} should be annoyed by what is written",
        "the sentiment towards {t} is negative",
    ),
)
LIKED = About(
    text=(
        "Is {} positive?",
        "Did the writer like it?",
        "Is the verdict good?",
        "Would the author recommend it?",
        "Is the writer satisfied?",
        "Does {} praise more than it criticises?",
        "Is this a thumbs up?",
        "Is the tone favourable?",
        "Does the reviewer speak well of it?",
        "Is the opinion positive?",
        "Did they enjoy it?",
        "Would {} count as praise?",
    ),
    target=(
        "Is the writer happy with {t}?",
        "Is {t} praised?",
        "Does {t} come off well?",
        "Is the tone towards {t} favourable?",
        "Would {t} like to read this?",
    ),
)
DISLIKED = About(
    text=(
        "Is {} negative?",
        "Did the writer dislike it?",
        "Is the verdict bad?",
        "Would the author advise against it?",
        "Is the writer disappointed?",
        "Does {} criticise more than it praises?",
        "Is this a thumbs down?",
        "Is the tone unfavourable?",
        "Does the reviewer complain?",
        "Is the opinion negative?",
        "Were they let down?",
        "Would {} count as a complaint?",
    ),
    target=(
        "Is the writer unhappy with {t}?",
        "Is {t} criticised?",
        "Does {t} come off badly?",
        "Is the tone towards {t} unfavourable?",
        "Would {t} hate to read this?",
    ),
)
CHOOSE = About(
    text=(
        "What is the sentiment?",
        "What is the sentiment of {}?",
        "Classify the tone of {}.",
        "Positive or negative?",
        "How does the writer feel?",
        "Which way does {} lean?",
        "What is the verdict?",
        "Classify the opinion.",
        "Sentiment?",
        "What does the author think of it?",
        "Judge the attitude of {}.",
        "Is it praise or criticism?",
        "Label {} by its sentiment.",
        "The overall opinion is:",
    ),
    target=(
        "What is the sentiment towards {t}?",
        "How is {t} portrayed?",
        "What does the writer think of {t}?",
        "Attitude towards {t}?",
        "Classify the tone towards {t}.",
        "{t} is described:",
        "Judge what is said of {t}.",
        "In which light does {t} appear?",
        "Opinion about {t}?",
    ),
)
# Names for unfavourable, neither and favourable.
THREE = (
    ("negative", "neutral", "positive"),
    ("Negative", "Neutral", "Positive"),
    ("bad", "neither", "good"),
    ("NEGATIVE", "NEUTRAL", "POSITIVE"),
    ("criticism", "neither", "praise"),
    ("dislikes", "indifferent", "likes"),
    ("unfavourable", "balanced", "favourable"),
    ("against", "undecided", "for"),
    ("thumbs_down", "so_so", "thumbs_up"),
    ("complaint", "remark", "compliment"),
    ("-1", "0", "1"),
)
THREE_TEXTS = (
    ("", "", ""),
    ("", "", ""),
    ("bad feeling or unfavourable opinion", "neither good nor bad, or mixed", "good feeling or favourable opinion"),
    ("speaks against it", "takes no side", "speaks for it"),
    ("bad for it", "no clear effect", "good for it"),
    ("the writer is unhappy", "no opinion", "the writer is happy"),
)
RATE = About(
    text=(
        "How positive is {}?",
        "Rate the sentiment of {}.",
        "How does the writer feel?",
        "How many stars did the writer give?",
        "How satisfied is the author?",
        "Guess the rating.",
        "What rating goes with {}?",
        "Place {} on the scale.",
        "How good was it, according to {}?",
        "Overall tone?",
        "How much did they like it?",
        "Score the opinion.",
        "How favourable is {}?",
        "Which star rating fits {}?",
        "How happy is the customer?",
        "Rating:",
    ),
    target=(
        "How favourable is the writer towards {t}?",
        "Rate the tone towards {t}.",
        "How positive is what is said of {t}?",
        "How well does {t} come off?",
        "Score the sentiment for {t}.",
        "How does the text portray {t}?",
    ),
)
FIVE = (
    ("very negative", "negative", "neutral", "positive", "very positive"),
    ("1 star", "2 stars", "3 stars", "4 stars", "5 stars"),
    ("terrible", "bad", "okay", "good", "excellent"),
    ("hated it", "disliked it", "mixed feelings", "liked it", "loved it"),
    ("very dissatisfied", "dissatisfied", "neither", "satisfied", "very satisfied"),
    ("1", "2", "3", "4", "5"),
    ("awful", "poor", "average", "good", "great"),
    ("one star", "two stars", "three stars", "four stars", "five stars"),
    ("strongly unfavourable", "unfavourable", "mixed or neutral", "favourable", "strongly favourable"),
    ("worst", "weak", "fair", "strong", "best"),
    ("very unhappy", "unhappy", "indifferent", "happy", "very happy"),
    ("1/5", "2/5", "3/5", "4/5", "5/5"),
    ("a disaster", "a let-down", "so-so", "a success", "a triumph"),
    ("do not buy", "rather not", "maybe", "worth it", "a must"),
)
FIVE_TEXTS = (
    ("hated it", "did not like it", "it was all right", "liked it", "loved it"),
    ("a scathing review", "more bad than good", "as much good as bad", "more good than bad", "a rave review"),
)
AT_LEAST = (
    "The rating is at least {}.",
    "Would it get {} or more?",
    "Is it rated {} or better?",
    "The writer gives {} or higher.",
    "At least {}?",
    "It deserves {} or more, says the writer.",
    "No less than {}?",
    "{} or above.",
)
