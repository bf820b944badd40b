"""Makes wishes of people to a service, as short phrases and as messages: options and texts in any number, which the
base model then compares."""

from random import Random

# Things that services are asked about, by field; a phrase joins one with a wish.
THINGS = {
    "bank": (
        "card; debit card; credit card; virtual card; account; savings account; joint account; balance; transfer; "
        "direct debit; standing order; cheque; cash withdrawal; exchange rate; top-up; PIN; loan; mortgage; "
        "interest rate; overdraft; statement; card payment; bank details; transaction; investment; credit score; "
        "salary; currency"
    ),
    "shop": (
        "order; parcel; delivery; delivery date; return; refund; exchange; invoice; voucher; coupon; discount; "
        "gift card; size; colour; item; product; stock; price; wish list; basket; checkout; warranty; repair; "
        "spare part; shipping address; shipping cost; pickup point; loyalty points; sample; franchise; "
        "distributor; bulk order; product quality; ingredients; dosage; side effects; expiry date; trial period; "
        "instalments"
    ),
    "account": (
        "password; user name; e-mail address; phone number; profile; verification code; verification of identity; "
        "sign-in; two-factor authentication; session; notification; newsletter; privacy settings; personal data; "
        "subscription; free trial; plan; licence; team member; language; permission; API key; log-out; "
        "profile picture"
    ),
    "software": (
        "app; update; website; page; button; search; export; import; sync; backup; file; video; sound; screen; "
        "keyboard; printer; Wi-Fi; network; server; database; installation; download; integration; report; crash; "
        "error message; dark mode; documentation; feature; plugin; virus; browser"
    ),
    "travel": (
        "flight; train; hotel; room; booking; reservation; ticket; seat; luggage; lost luggage; passport; visa; "
        "check-in; boarding pass; rental car; taxi; route; travel alert; vaccination; tour; cancellation fee; "
        "upgrade; parking; bus; itinerary; airport transfer"
    ),
    "home": (
        "alarm; timer; reminder; calendar event; meeting; to-do list; shopping list; light; heating; thermostat; "
        "music; song; playlist; radio; podcast; volume; news; weather; recipe; restaurant; coffee; "
        "vacuum cleaner; lock; camera; television; contact; call; message; joke; dictionary; translation; "
        "traffic; time zone; date; smart home"
    ),
    "play": (
        "game; match; team; player; contest; tournament; points; score; winnings; bonus; cash bonus; referral; "
        "leader board; level; skin; deposit; entry fee; live stream; rules; fantasy team; prize; chat"
    ),
    "work": (
        "holiday; sick leave; pay slip; pension; tax return; expenses; contract; job; application; interview; "
        "training; shift; overtime; benefits; insurance; claim; policy; doctor's appointment; prescription; "
        "test result; course; exam; grade; tuition fee; library book; certificate; council tax; driving licence; "
        "permit; electricity bill; meter reading; internet connection; mobile plan; roaming; SIM card; coverage; "
        "data volume"
    ),
}
WANTED = (
    "cancel {}",
    "change {}",
    "check {}",
    "find {}",
    "order {}",
    "report {}",
    "update {}",
    "verify {}",
    "delete {}",
    "add {}",
    "compare {}",
    "track {}",
    "book {}",
    "reset {}",
    "activate {}",
    "block {}",
    "renew {}",
    "{} not working",
    "{} missing",
    "lost {}",
    "{} delayed",
    "{} declined",
    "{} status",
    "{} fee",
    "{} limit",
    "about {}",
    "{} information",
    "wrong {}",
    "{} problem",
    "{} pending",
    "{} not received",
    "cost of {}",
    "get {}",
    "how to use {}",
    "{} complaint",
    "{} recommendation",
    "{} history",
    "remove {}",
    "share {}",
    "what is {}",
    "{} offers",
    "{} eligibility",
    "{} supported",
    "where is {}",
    "extra charge for {}",
    "{} stolen",
)
MESSAGES = (
    "how do i cancel {}",
    "I want to change the {}",
    "can you check my {} please",
    "where is my {}",
    "my {} is not working",
    "I still have not received my {}",
    "why was my {} declined",
    "what is the status of {}",
    "is there a fee for {}",
    "what is the limit on {}",
    "tell me about {}",
    "I lost my {}",
    "the {} is wrong",
    "please update my {}",
    "do you offer {}",
    "how much is {}",
    "which {} should I take",
    "how long does {} take",
    "need help with {}",
    "{} still pending, since yesterday",
    "I was charged for {} and I did not ask for it",
    "can I get {} here",
    "{}?",
    "pls remove {}",
    "how to verify {}",
    "unable to see {}",
    "when will I get {}",
    "can I use {} abroad",
    "somebody stole my {}",
    "i need a new {}",
    "what do I need for {}",
    "is {} available in my area",
    "your {} is the best",
    "not happy with {} at all",
    "set up {} for tomorrow",
    "show me {}",
    "turn off {}",
    "add {} to it",
    "any offers on {}",
    "who do I talk to about {}",
    "I forgot my {}",
    "why did {} change",
    "my friend told me about {}",
    "does {} work on weekends",
    "is it safe to use {}",
    "link to {}",
)
# The probability that a message has two wishes.
TWO_WISHES = 0.2


def things() -> list[str]:
    """Returns every thing, once."""
    return list(dict.fromkeys(thing for line in THINGS.values() for thing in line.split("; ")))


def phrases() -> list[str]:
    """Returns every thing with every wish about it."""
    return [wanted.format(thing) for thing in things() for wanted in WANTED]


def messages(rng: Random, count: int) -> list[str]:
    """Returns messages of people who want something; each is about one or two of the things."""
    named = things()
    made: dict[str, None] = {}
    for _ in range(count):
        wishes = 2 if rng.random() < TWO_WISHES else 1
        parts = [rng.choice(MESSAGES).format(rng.choice(named)) for _ in range(wishes)]
        made[rng.choice((". ", ", ", " and ", "\n")).join(parts)] = None
    return list(made)
