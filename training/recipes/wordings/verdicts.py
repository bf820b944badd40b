"""Wordings for a claim and its evidence, and for an argument about a claim."""

from ...data.wording import VERDICT_TEXTS, VERDICTS

EVIDENCE_KEYS = (
    "premise",
    "text",
    "context",
    "evidence",
    "document",
    "source",
    "passage",
    "article",
    "report",
    "record",
    "facts",
    "notes",
    "excerpt",
    "background",
    "data",
    "input",
    "page",
    "transcript",
)
RECORD_KEYS = ("record", "table", "data", "entry", "facts", "infobox", "evidence", "document", "profile", "fields")
# Wordings with the claim in the instructions: {} is a clause, {S} a sentence.
SUPPORT = (
    "Does the text support this? {S}",
    "Can we conclude that {}?",
    "It follows that {}.",
    "Is this confirmed: {S}",
    "The text says that {}.",
    "Is it clear from the text that {}?",
    "Does it follow that {}?",
    "We learn here that {}.",
    "There is evidence that {}.",
    "The text backs this: {S}",
    "Is it shown that {}?",
    "Must it be true that {}?",
    "According to this, is it certain that {}?",
    "This can be concluded: {S}",
    "What is given proves that {}.",
    "Would a fact checker mark this as supported? {S}",
)
DENY = (
    "The text contradicts this: {S}",
    "Does the text rule out that {}?",
    "Is this wrong according to the text? {S}",
    "The text says the opposite of: {S}",
    "It cannot be that {}.",
    "What is given refutes this: {S}",
    "Is it excluded that {}?",
    "Would a fact checker mark this as refuted? {S}",
    "Is this disproved: {S}",
    "The text speaks against this: {S}",
    "Does it follow that this is false: {S}",
)
UNSETTLED = (
    "The text leaves open whether {}.",
    "Is it unclear whether {}?",
    "Nothing is said about whether {}.",
    "One cannot tell from the text whether {}.",
    "Is there too little to decide this? {S}",
    "This is neither confirmed nor refuted: {S}",
    "The text does not settle whether {}.",
    "Is more information needed to judge this? {S}",
)
VERDICT = (
    "Is this true? {S}",
    "{S}",
    "Statement: {S}",
    "What does the text say about this: {S}",
    "Fact check: {S}",
    "Does the text support this? {S}",
    "Judge this by the text: {S}",
    "Claim: {S}",
    "True, false or open? {S}",
    "How does the text stand to this claim? {S}",
    "Verdict on: {S}",
    "Given what is written, {S}",
    "Rate this statement against the text: {S}",
    "Is it so that {}?",
)
# Wordings for evidence and claim that are both in the state.
RELATE = (
    "How does `{b}` relate to `{a}`?",
    "What does `{a}` say about `{b}`?",
    "Does `{a}` support `{b}`?",
    "Given `{a}`, is `{b}` true?",
    "Judge `{b}` by `{a}`.",
    "Is `{b}` backed by `{a}`?",
    "Compare `{b}` with `{a}`.",
    "Check `{b}` against `{a}`.",
    "Verify `{b}` with `{a}`.",
    "Which verdict on `{b}` follows from `{a}`?",
    "Classify the relation of `{a}` and `{b}`.",
    "Does `{b}` follow from `{a}`?",
    "Fact-check `{b}`.",
    "Read `{a}`, then judge `{b}`.",
    "What can be said of `{b}`, given `{a}`?",
)
RELATE_YES = (
    "`{a}` supports `{b}`.",
    "Does `{b}` follow from `{a}`?",
    "Is `{b}` true, given `{a}`?",
    "`{b}` is confirmed by `{a}`.",
    "If `{a}` is true, must `{b}` be true?",
    "`{a}` implies `{b}`.",
    "Can `{b}` be concluded from `{a}`?",
    "`{a}` entails `{b}`.",
    "Is `{b}` backed by `{a}`?",
    "`{b}` is right according to `{a}`.",
    "Does `{a}` prove `{b}`?",
    "Whoever believes `{a}` has to believe `{b}`.",
    "`{a}` gives enough evidence for `{b}`.",
    "The conclusion from `{a}` to `{b}` is sound.",
)
RELATE_NO = (
    "`{a}` contradicts `{b}`.",
    "Is `{b}` false, given `{a}`?",
    "Does `{a}` rule out `{b}`?",
    "`{a}` and `{b}` cannot both be true.",
    "`{b}` is refuted by `{a}`.",
    "If `{a}` is true, is `{b}` false?",
    "`{b}` conflicts with `{a}`.",
    "Does `{a}` disprove `{b}`?",
    "`{a}` speaks against `{b}`.",
    "Is `{b}` wrong according to `{a}`?",
)
RELATE_OPEN = (
    "`{a}` does not settle `{b}`.",
    "Is it unclear from `{a}` whether `{b}` is true?",
    "`{b}` may or may not be true, given `{a}`.",
    "Is `{b}` left open by `{a}`?",
    "`{a}` neither supports nor contradicts `{b}`.",
    "More than `{a}` is needed to judge `{b}`.",
)
NOT_ENOUGH = (
    "`{a}` does not prove `{b}`.",
    "Could `{b}` be false although `{a}` is true?",
    "`{b}` does not follow from `{a}`.",
    "`{a}` is not enough to conclude `{b}`.",
    "Is the step from `{a}` to `{b}` unsound?",
    "`{b}` goes beyond what `{a}` says.",
)
NAMES = (
    *VERDICTS,
    ("follows", "undecided", "conflicts"),
    ("TRUE", "UNVERIFIED", "FALSE"),
    ("supports", "neither", "refutes"),
    ("right", "not sure", "wrong"),
    ("backed", "not covered", "denied"),
    ("proven", "unproven", "disproven"),
    ("1", "0", "-1"),
)
TEXTS = (
    *VERDICT_TEXTS,
    ("", "", ""),
    ("", "", ""),
    ("must be true", "may or may not be true", "cannot be true"),
    ("what is given shows that it is true", "what is given does not decide it", "what is given shows that it is false"),
    ("yes, this is stated or implied", "nothing decides it", "no, the opposite is stated or implied"),
)
TWO_NAMES = (
    ("follows", "does not follow"),
    ("valid", "invalid"),
    ("entailed", "not entailed"),
    ("yes", "no"),
    ("supported", "not supported"),
    ("sound", "unsound"),
    ("proven", "not proven"),
)
TWO_TEXTS = (
    ("", ""),
    ("must be true", "may be false"),
    ("the conclusion is certain", "the conclusion is not certain"),
    ("it follows", "it does not follow"),
)
# Wordings for stance, which is an argument about a claim.
STANCE_PRO = (
    "`{a}` supports `{b}`.",
    "Does `{a}` speak for `{b}`?",
    "Who argues `{a}` would agree with `{b}`.",
    "`{a}` is a reason to accept `{b}`.",
    "Is `{a}` on the side of `{b}`?",
    "`{a}` strengthens `{b}`.",
)
STANCE_CON = (
    "`{a}` opposes `{b}`.",
    "Does `{a}` speak against `{b}`?",
    "Who argues `{a}` would disagree with `{b}`.",
    "`{a}` is a reason to reject `{b}`.",
    "Is `{a}` on the other side from `{b}`?",
    "`{a}` weakens `{b}`.",
)
STANCE_OFF = (
    "`{a}` has nothing to do with `{b}`.",
    "Is `{a}` beside the point of `{b}`?",
    "`{a}` takes no side on `{b}`.",
    "Does `{a}` leave `{b}` untouched?",
)
STANCE = (
    "How does `{a}` relate to `{b}`?",
    "What stance does `{a}` take on `{b}`?",
    "For or against `{b}`?",
    "Classify the stance of `{a}` towards `{b}`.",
    "Does `{a}` argue for `{b}`?",
    "On which side of `{b}` is `{a}`?",
    "Judge what `{a}` does for `{b}`.",
    "Is `{a}` pro or con?",
)
STANCES = (
    ("support", "unrelated", "oppose"),
    ("for", "neither", "against"),
    ("pro", "off-topic", "con"),
    ("agrees", "no stance", "disagrees"),
    ("favour", "none", "against"),
    ("yes", "neutral", "no"),
)
STANCE_TEXTS = (
    ("", "", ""),
    ("speaks for the claim", "is about something else", "speaks against the claim"),
    ("a reason to believe it", "no reason either way", "a reason not to believe it"),
)
STANCE_KEYS = (
    ("argument", "claim"),
    ("argument", "claim"),
    ("comment", "proposal"),
    ("post", "topic"),
    ("reply", "thesis"),
    ("perspective", "motion"),
)
