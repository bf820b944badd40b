//! The settings of the layout in `config.json`: lengths, the parts of a row, and the tensors.

use serde::Deserialize;

use super::template::Template;
use crate::layout::{MAX_LENGTH, PerKind, SpecialIds, too_long};

/// The settings of the layout. Lengths are in tokens.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    /// The length of a row, special tokens included.
    #[serde(default = "default_max_len")]
    pub max_len: usize,
    /// The length of head and options together; `null` for no other limit than that of a row.
    #[serde(default = "default_head_max", alias = "head_max_len")]
    pub head_max: Option<usize>,
    /// The most tokens of an option, its marker not counted; `null` for any number.
    #[serde(default = "default_option_max")]
    pub option_max: Option<usize>,
    /// The tokens that a head should have at least; options that leave it fewer are shortened.
    #[serde(default = "default_head_reserve")]
    pub head_reserve: usize,
    /// The tokens that a shortened option keeps at least, its marker included.
    #[serde(default = "default_option_min")]
    pub option_min: usize,
    /// The tokens that a head keeps at least.
    #[serde(default = "default_head_min")]
    pub head_min: usize,
    /// The tokens that a state keeps at least, in place of the end of the row.
    #[serde(default)]
    pub state_min: usize,
    /// The treatment of texts that are too long for one row.
    #[serde(default)]
    pub overflow: Overflow,
    /// The most outcomes of a question; `null` for any number.
    #[serde(default)]
    pub max_options: Option<usize>,
    /// The most levels of a score; `null` for any number.
    #[serde(default)]
    pub max_levels: Option<usize>,
    /// The special tokens.
    pub special_ids: SpecialIds,
    /// The parts of a row, in their order.
    #[serde(default = "default_row")]
    pub row: Vec<Part>,
    /// The texts.
    #[serde(default)]
    pub template: Template,
    /// The values of the graph's input for the type of a question.
    #[serde(default = "default_type_ids")]
    pub type_ids: PerKind<i64>,
    /// The inputs of the graph.
    #[serde(default = "default_inputs")]
    pub inputs: Vec<InputName>,
    /// The output that has the logits.
    #[serde(default = "default_output")]
    pub output: String,
    /// The places that have logits.
    #[serde(default)]
    pub logits_at: LogitsAt,
    /// Whether the graph may leave `act_logits` out.
    #[serde(default)]
    pub action_is_optional: bool,
}

/// The treatment of texts that are too long for one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// Texts are cut, and options that one row cannot hold get further rows.
    #[default]
    Split,
    /// Texts are cut, and a question whose options one row cannot hold is refused.
    Cut,
    /// A request is refused if a text would have to be cut.
    Refuse,
}

/// A part of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "PartName")]
pub enum Part {
    /// One of the special tokens.
    Special(Special),
    /// The token with this id.
    Token(i64),
    /// The head.
    Head,
    /// The options, each after its marker.
    Options,
    /// The state.
    State,
}

/// A special token in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// The token that begins a row.
    Cls,
    /// The token that ends a part of a row.
    Sep,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PartName {
    Id(i64),
    Name(Name),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Name {
    Cls,
    Sep,
    Head,
    Options,
    State,
}

impl From<PartName> for Part {
    fn from(name: PartName) -> Self {
        match name {
            PartName::Id(id) => Self::Token(id),
            PartName::Name(Name::Cls) => Self::Special(Special::Cls),
            PartName::Name(Name::Sep) => Self::Special(Special::Sep),
            PartName::Name(Name::Head) => Self::Head,
            PartName::Name(Name::Options) => Self::Options,
            PartName::Name(Name::State) => Self::State,
        }
    }
}

/// An input of a graph of this layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputName {
    /// The ids of the tokens, `[1, length]`.
    InputIds,
    /// A one for each token, `[1, length]`.
    AttentionMask,
    /// The places of the markers, `[1, markers]`.
    MarkerPos,
    /// The same under the name that NoulXP gives it.
    MarkerPositions,
    /// A true for each marker, `[1, markers]`.
    MarkerMask,
    /// The type of the question, `[1]`.
    Qtype,
    /// The same under the name that NoulXP gives it.
    QuestionType,
}

impl InputName {
    /// Returns the name of the input in the graph.
    pub fn name(self) -> &'static str {
        match self {
            Self::InputIds => "input_ids",
            Self::AttentionMask => "attention_mask",
            Self::MarkerPos => "marker_pos",
            Self::MarkerPositions => "marker_positions",
            Self::MarkerMask => "marker_mask",
            Self::Qtype => "qtype",
            Self::QuestionType => "question_type",
        }
    }
}

/// The places of a row that have logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogitsAt {
    /// The markers, in their order.
    #[default]
    Markers,
    /// All tokens, of which the markers count.
    Tokens,
}

fn default_max_len() -> usize {
    1024
}

#[allow(clippy::unnecessary_wraps)] // the default of a setting that may be null
fn default_head_max() -> Option<usize> {
    Some(256)
}

#[allow(clippy::unnecessary_wraps)] // the default of a setting that may be null
fn default_option_max() -> Option<usize> {
    Some(48)
}

fn default_head_reserve() -> usize {
    16
}

fn default_option_min() -> usize {
    4
}

fn default_head_min() -> usize {
    8
}

fn default_row() -> Vec<Part> {
    let (cls, sep) = (Part::Special(Special::Cls), Part::Special(Special::Sep));
    vec![cls, Part::Head, sep, Part::Options, sep, Part::State, sep]
}

fn default_type_ids() -> PerKind<i64> {
    PerKind {
        choice: 0,
        score: 1,
        noul: 2,
    }
}

fn default_inputs() -> Vec<InputName> {
    vec![
        InputName::InputIds,
        InputName::AttentionMask,
        InputName::MarkerPos,
        InputName::MarkerMask,
        InputName::Qtype,
    ]
}

fn default_output() -> String {
    "logits".to_owned()
}

impl Settings {
    /// Returns the number of tokens of a row that are neither head, options nor state.
    pub fn fixed(&self) -> usize {
        let is_token = |part: &&Part| matches!(part, Part::Special(_) | Part::Token(_));
        self.row.iter().filter(is_token).count()
    }

    /// Returns the first setting that cannot work and the requirement that it breaks.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let lengths = [
            ("max_len", self.max_len),
            ("head_max", self.head_max.unwrap_or(0)),
            ("option_max", self.option_max.unwrap_or(0)),
            ("head_reserve", self.head_reserve),
            ("option_min", self.option_min),
            ("head_min", self.head_min),
            ("state_min", self.state_min),
        ];
        if let Some(problem) = too_long(&lengths, MAX_LENGTH) {
            return Some(problem);
        }
        for (part, name) in [
            (Part::Head, "head"),
            (Part::Options, "options"),
            (Part::State, "state"),
        ] {
            if self.row.iter().filter(|each| **each == part).count() != 1 {
                return Some(("row", format!("must have {name} once")));
            }
        }
        if self.option_min == 0 {
            return Some(("option_min", "must be at least 1".to_owned()));
        }
        if self.max_len == 0 {
            return Some(("max_len", "must be at least 1".to_owned()));
        }
        match self.overflow {
            Overflow::Split => self.problem_of_split(),
            Overflow::Cut | Overflow::Refuse => None,
        }
    }

    /// Returns the first setting with which a question would need more rows than it has options.
    fn problem_of_split(&self) -> Option<(&'static str, String)> {
        let Some(head_max) = self.head_max else {
            return Some(("overflow", "needs head_max where it is split".to_owned()));
        };
        let least = self.head_reserve + self.option_min;
        if head_max < least {
            return Some(("head_max", format!("must be at least {least}")));
        }
        let fixed = self.fixed();
        // The head and one option always fit into head_max; a row also holds the special tokens
        // around them.
        let least = head_max + fixed;
        if self.max_len < least {
            let problem = format!("must be at least {least}, head_max and {fixed}");
            return Some(("max_len", problem));
        }
        None
    }
}
