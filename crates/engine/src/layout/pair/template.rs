//! The templates that make a hypothesis of instructions and an option.

use std::borrow::Cow;

/// The content of a part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The template's own words.
    Words,
    /// The question's instructions.
    Instructions,
    /// The option.
    Option,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    /// The white space in front of the part. It belongs to the word after it, as in the tokenizers.
    space: String,
    place: Place,
    /// The template's own words; empty for other places.
    words: String,
}

/// A text with places in it: `{instructions}` and `{option}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

/// The template of every type, unless `config.json` has another one.
pub(super) const DEFAULT: &str = "{instructions} {option}";

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// The requirement that the template breaks.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.trim_start().is_empty() {
            let words = rest.trim_start();
            let (place, length) = match place(words)? {
                Some(found) => found,
                None => (Place::Words, words.find('{').unwrap_or(words.len())),
            };
            let inner = words[..length].trim_end();
            parts.push(Part {
                space: rest[..rest.len() - words.len()].to_owned(),
                place,
                words: if place == Place::Words { inner } else { "" }.to_owned(),
            });
            rest = &rest[rest.len() - words.len() + inner.len()..];
        }
        for place in [Place::Instructions, Place::Option] {
            if parts.iter().filter(|part| part.place == place).count() > 1 {
                return Err("has a place twice".into());
            }
        }
        Ok(Self { parts })
    }

    /// Whether the option has a place.
    pub(super) fn has_option(&self) -> bool {
        self.parts.iter().any(|part| part.place == Place::Option)
    }

    /// Whether the template has any place to fill in.
    pub(super) fn has_place(&self) -> bool {
        self.parts.iter().any(|part| part.place != Place::Words)
    }

    /// Returns the hypothesis, without white space around it.
    pub(super) fn text(&self, instructions: &str, option: &str) -> String {
        let parts = self.parts(instructions, option);
        let text: String = parts.map(|(_, text)| text).collect();
        text.trim().to_owned()
    }

    /// Returns the parts of the hypothesis in order, each with the white space in front of it.
    pub(super) fn parts<'t>(
        &'t self,
        instructions: &'t str,
        option: &'t str,
    ) -> impl Iterator<Item = (Place, Cow<'t, str>)> {
        self.parts.iter().map(move |part| {
            let text = match part.place {
                Place::Words => &part.words,
                Place::Instructions => instructions,
                Place::Option => option,
            };
            let text = if part.space.is_empty() {
                text.into()
            } else {
                format!("{}{text}", part.space).into()
            };
            (part.place, text)
        })
    }
}

/// Returns the place that a text begins with and the length of its name; `None` for a text that
/// begins with no brace.
fn place(text: &str) -> Result<Option<(Place, usize)>, String> {
    if !text.starts_with('{') {
        return Ok(None);
    }
    for (name, place) in [
        ("{instructions}", Place::Instructions),
        ("{option}", Place::Option),
    ] {
        if text.starts_with(name) {
            return Ok(Some((place, name.len())));
        }
    }
    let end = text.find('}').map_or(text.len(), |end| end + 1);
    let name = &text[..end];
    Err(format!("{name} is not one of {{instructions}}, {{option}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template::parse(text).expect("a template")
    }

    #[test]
    fn places_are_filled_in_and_the_rest_stands_as_it_is() {
        let text = |of: &str| template(of).text("Which team?", "sales");
        assert_eq!(text(DEFAULT), "Which team? sales");
        assert_eq!(
            text(" To  \"{instructions}\"\tsay: {option}. "),
            "To  \"Which team?\"\tsay: sales."
        );
        assert_eq!(text("{option}{instructions}"), "salesWhich team?");
        assert_eq!(template(DEFAULT).text("", "sales"), "sales");
        assert_eq!(
            template(DEFAULT).text("{option}", "{instructions}"),
            "{option} {instructions}"
        );
    }

    #[test]
    fn parts_are_the_text_in_pieces_with_white_space_in_front() {
        let template = template("This is  about {option}: {instructions}");
        let parts: Vec<_> = template.parts("why?", "sales").collect();
        assert_eq!(
            parts,
            [
                (Place::Words, "This is  about".into()),
                (Place::Option, " sales".into()),
                (Place::Words, ":".into()),
                (Place::Instructions, " why?".into()),
            ]
        );
    }

    #[test]
    fn what_is_no_place_and_a_place_twice_are_told() {
        for (text, problem) in [
            (
                "about {label}",
                "{label} is not one of {instructions}, {option}",
            ),
            ("about {}", "{} is not one of {instructions}, {option}"),
            ("{option", "{option is not one of {instructions}, {option}"),
            ("{option} {option}", "has a place twice"),
        ] {
            assert_eq!(Template::parse(text), Err(problem.to_owned()));
        }
        assert!(!template("nothing").has_place());
        assert!(!template("{instructions}").has_option());
    }
}
