//! The three question types and their parts, as the rest of the engine sees them.

use std::fmt;

/// The type of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One of several named options.
    Choice,
    /// A position on an ordered list of levels.
    Score,
    /// Yes or no.
    Noul,
}

impl Kind {
    /// The three types, in the order of the published models' `qtype` input.
    pub const ALL: [Self; 3] = [Self::Choice, Self::Score, Self::Noul];

    /// Returns the name of the type in requests, answers and model configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Choice => "choice",
            Self::Score => "score",
            Self::Noul => "noul",
        }
    }

    /// Returns the type with this name, or `None` where there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One thing that an answer gives a probability to: a choice's option, a score's level, or a side of a noul.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The label in the answer: an option's name, a level's index, `false` or `true`.
    pub name: String,
    /// The description; `None` where the caller gave none, or an empty one.
    pub text: Option<String>,
    /// The outcome as JSON, for the answer: a level as it was sent, or the part of an option that
    /// `decisions` returns; else `None`.
    pub legend: Option<String>,
}

/// A question that has passed every check of the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The caller's name for the question; in `decisions` it is kept as JSON. It never reaches the
    /// model.
    pub id: String,
    /// The type of the question.
    pub kind: Kind,
    /// The question's text; may be empty.
    pub instructions: String,
    /// The outcomes, at least two, in the caller's order; for a noul `false`, then `true`.
    pub outcomes: Vec<Outcome>,
}

/// The text that questions are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The text: that of a string, else the JSON text as it was sent.
    pub text: String,
    /// Whether the text is JSON that was sent as such, and not as a string.
    pub is_json: bool,
}

impl From<String> for State {
    fn from(text: String) -> Self {
        Self {
            text,
            is_json: false,
        }
    }
}

/// A decision request that has passed every check of the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The state that the questions are about.
    pub state: State,
    /// The questions, at least one, in the caller's order.
    pub questions: Vec<Question>,
}

impl Question {
    /// Returns the question as JSON in one spelling, for digests:
    /// `["choice","instructions",[["name","description"],…]]`, options in the caller's order,
    /// `null` where there is no description. The id is not part of it.
    pub fn canonical_json(&self) -> String {
        let outcomes: Vec<(&str, Option<&str>)> = self
            .outcomes
            .iter()
            .map(|outcome| (outcome.name.as_str(), outcome.text.as_deref()))
            .collect();
        serde_json::to_string(&(self.kind.name(), &self.instructions, outcomes)).unwrap_or_default()
    }
}
