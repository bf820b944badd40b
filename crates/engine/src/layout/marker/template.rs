//! The texts of a row: how a question, its options and a state are written for a model.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

use crate::layout::PerKind;
use crate::layout::python_json::StateJson;
use crate::question::{Kind, Outcome, Question, State};

/// A text with places for others, such as `{name}: {description}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(String),
}

impl Form {
    /// Returns the form in a text. A place is a name of small letters and `_` in braces; other braces
    /// are text.
    fn read(text: &str) -> Self {
        let (mut parts, mut rest, mut from) = (Vec::new(), text, 0);
        while let Some(open) = rest[from..].find('{').map(|at| from + at) {
            let inside = &rest[open + 1..];
            let name = inside
                .find(|character: char| !(character.is_ascii_lowercase() || character == '_'))
                .unwrap_or(inside.len());
            if name > 0 && inside[name..].starts_with('}') {
                parts.push(Part::Text(rest[..open].to_owned()));
                parts.push(Part::Place(inside[..name].to_owned()));
                (rest, from) = (&inside[name + 1..], 0);
            } else {
                from = open + 1;
            }
        }
        parts.push(Part::Text(rest.to_owned()));
        Self(parts)
    }

    /// Returns the text with these values at its places; a place without a value is text.
    fn fill(&self, values: &[(&str, &str)]) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Place(name) => match values.iter().find(|(each, _)| each == name) {
                    Some((_, value)) => out.push_str(value),
                    None => out.extend(["{", name, "}"]),
                },
            }
        }
        out
    }
}

impl<'de> Deserialize<'de> for Form {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer).map(|text| Self::read(&text))
    }
}

/// The texts of an option with a description and of one without.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forms {
    /// The text of an option with a description; the model takes no such option where it is missing.
    pub described: Option<Form>,
    /// The text of an option without a description; the model takes no such option where it is
    /// missing.
    pub bare: Option<Form>,
}

/// The texts of the sides of a noul.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sides {
    /// The texts of `false`.
    #[serde(rename = "false")]
    pub no: Forms,
    /// The texts of `true`.
    #[serde(rename = "true")]
    pub yes: Forms,
}

/// The texts of options, by the type of their question.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionForms {
    /// The text in front of every option.
    #[serde(default = "space")]
    pub prefix: String,
    /// The texts of a choice's options.
    pub choice: Forms,
    /// The texts of a score's levels.
    pub score: Forms,
    /// The texts of a noul's sides.
    pub noul: Sides,
}

fn space() -> String {
    " ".to_owned()
}

/// The treatment of a mask token that is written in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WrittenMask {
    /// It becomes a space.
    #[default]
    Space,
    /// The request is refused.
    Refuse,
}

/// The texts of a row.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Template {
    /// The head, with `{type}` and `{instructions}`.
    pub head: Form,
    /// The state, with `{state}`.
    pub state: Form,
    /// The spelling of a state that is JSON.
    pub state_json: StateJson,
    /// The options.
    pub options: OptionForms,
    /// Whether an option whose description is its name counts as one without a description.
    pub bare_if_equal: bool,
    /// The order of a noul's sides.
    pub noul_order: [Side; 2],
    /// The instructions of a question that has none.
    pub instructions: PerKind<String>,
    /// Whether a question without instructions is refused.
    pub instructions_required: bool,
    /// The text of the mask token.
    pub mask: String,
    /// The treatment of a mask token that is written in a text.
    pub written_mask: WrittenMask,
}

/// A side of a noul.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// `false`, the caller's first outcome.
    False,
    /// `true`, the caller's second outcome.
    True,
}

/// The texts of Laya, as far as a folder gives no others.
impl Default for Template {
    fn default() -> Self {
        let forms = |described: &str, bare: &str| Forms {
            described: Some(Form::read(described)),
            bare: Some(Form::read(bare)),
        };
        Self {
            head: Form::read("{type} question: {instructions}"),
            state: Form::read("{state}"),
            state_json: StateJson::AsSent,
            options: OptionForms {
                prefix: space(),
                choice: forms("{name}: {description}", "{name}"),
                score: forms("level {name}: {description}", "level {name}: "),
                noul: Sides {
                    no: forms(
                        "false: {description}",
                        "false: no, the statement does not hold",
                    ),
                    yes: forms("true: {description}", "true: yes, the statement holds"),
                },
            },
            bare_if_equal: false,
            noul_order: [Side::False, Side::True],
            instructions: PerKind::default(),
            instructions_required: false,
            mask: "[MASK]".to_owned(),
            written_mask: WrittenMask::Space,
        }
    }
}

/// The reason why a model takes no such text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused(pub &'static str);

const HAS_MASK: Refused = Refused("must not contain the model's mask token");
const NO_INSTRUCTIONS: Refused = Refused("the model needs instructions");
const NO_DESCRIPTION: Refused = Refused("the model needs a description of each option");
const DESCRIPTION: Refused = Refused("the model takes no description of an option");

impl Template {
    /// Returns the text of a question's head.
    pub fn head(&self, question: &Question) -> Result<String, Refused> {
        let own = Some(question.instructions.as_str()).filter(|text| !text.is_empty());
        let instructions = own.unwrap_or_else(|| self.instructions.get(question.kind));
        if instructions.is_empty() && self.instructions_required {
            return Err(NO_INSTRUCTIONS);
        }
        let values = [
            ("type", question.kind.name()),
            ("instructions", instructions),
        ];
        self.scrubbed(self.head.fill(&values))
    }

    /// Returns the outcomes of a question in the order in which the model reads them, each with its
    /// place in the caller's order.
    pub fn outcomes<'q>(&self, question: &'q Question) -> Vec<(usize, &'q Outcome)> {
        let mut outcomes: Vec<_> = question.outcomes.iter().enumerate().collect();
        if question.kind == Kind::Noul && self.noul_order == [Side::True, Side::False] {
            outcomes.reverse();
        }
        outcomes
    }

    /// Returns the text of an outcome with the place `index` in the caller's order, prefix included.
    pub fn option(&self, kind: Kind, index: usize, outcome: &Outcome) -> Result<String, Refused> {
        let forms = match kind {
            Kind::Choice => &self.options.choice,
            Kind::Score => &self.options.score,
            Kind::Noul if index == 0 => &self.options.noul.no,
            Kind::Noul => &self.options.noul.yes,
        };
        let description = outcome.text.as_deref().filter(|text| !text.is_empty());
        let description = description.filter(|text| !(self.bare_if_equal && *text == outcome.name));
        let form = match description {
            Some(_) => forms.described.as_ref().ok_or(DESCRIPTION)?,
            None => forms.bare.as_ref().ok_or(NO_DESCRIPTION)?,
        };
        let values = [
            ("name", outcome.name.as_str()),
            ("description", description.unwrap_or_default()),
            ("index", &index.to_string()),
        ];
        let text = self.scrubbed(form.fill(&values))?;
        Ok(format!("{}{text}", self.options.prefix))
    }

    /// Returns the text of a state.
    pub fn state(&self, state: &State) -> Result<String, Refused> {
        let text = self.state_json.text(state);
        self.scrubbed(self.state.fill(&[("state", &text)]))
    }

    /// Returns a text without mask tokens, which the model would take for real ones: such models
    /// were trained on texts scrubbed in the same way.
    fn scrubbed(&self, text: String) -> Result<String, Refused> {
        if self.mask.is_empty() || !text.contains(&self.mask) {
            return Ok(text);
        }
        match self.written_mask {
            WrittenMask::Space => Ok(text.replace(&self.mask, " ")),
            WrittenMask::Refuse => Err(HAS_MASK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_filled_in_one_pass_and_other_braces_are_text() {
        for (form, filled) in [
            ("{name}: {description}", "a{description}: b"),
            ("", ""),
            ("{", "{"),
            ("{} {Name} {name", "{} {Name} {name"),
            ("{{name}}", "{a{description}}"),
            ("{other}{name}", "{other}a{description}"),
            ("é{name}é", "éa{description}é"),
        ] {
            let values = [("name", "a{description}"), ("description", "b")];
            assert_eq!(Form::read(form).fill(&values), filled, "{form}");
        }
    }

    #[test]
    fn a_mask_becomes_a_space_or_ends_the_request() {
        let mut template = Template::default();
        let state = State::from("a[MASK]b".to_owned());
        assert_eq!(template.state(&state), Ok("a b".to_owned()));
        template.written_mask = WrittenMask::Refuse;
        assert_eq!(template.state(&state), Err(HAS_MASK));
        template.mask = "<mask>".to_owned();
        assert_eq!(template.state(&state), Ok("a[MASK]b".to_owned()));
    }
}
