//! The words of a text, as the makers of GLiNER split it by a regular expression in Python:
//!
//! ```text
//! (?:https?://[^\s]+|www\.[^\s]+)
//! |[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}
//! |@[a-z0-9_]+
//! |[\w]+(?:[-_][\w]+)*
//! |\S
//! ```
//!
//! with `IGNORECASE`, each match in lower case. In a long run of dots a regular expression would
//! look for an e-mail address again at every dot, and that takes quadratic time. Here the time
//! grows with the length of the text.

use std::sync::LazyLock;

use regex::Regex;

/// The words of a text, in lower case, one after the other.
pub(super) struct Split<'t> {
    text: &'t str,
    /// Where the rest of the text begins.
    at: usize,
    /// The run of characters of a mailbox name that was last looked at.
    mailbox: Mailbox,
}

/// A run of characters that may be the name of a mailbox.
#[derive(Default)]
struct Mailbox {
    /// Where the run ends.
    end: usize,
    /// Where the address ends that the run begins, if it begins one.
    address: Option<usize>,
}

impl<'t> Split<'t> {
    /// Returns the words of a text.
    pub(super) fn of(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            mailbox: Mailbox::default(),
        }
    }

    /// Returns where the run of characters ends that begins at `start`.
    fn run(&self, start: usize, is_in: impl Fn(char) -> bool) -> usize {
        let length = self.text[start..].find(|character| !is_in(character));
        length.map_or(self.text.len(), |length| start + length)
    }

    /// Returns where the run ends, if there is at least one character in it.
    fn some(&self, start: usize, is_in: impl Fn(char) -> bool) -> Option<usize> {
        Some(self.run(start, is_in)).filter(|end| *end > start)
    }

    fn link(&self) -> Option<usize> {
        let prefixes = ["https://", "http://", "www."].into_iter();
        let mut begins = prefixes.filter_map(|prefix| self.after(prefix));
        begins.find_map(|begin| self.some(begin, |character| !is_space(character)))
    }

    /// Returns where the rest goes on after a prefix, in any case.
    fn after(&self, prefix: &str) -> Option<usize> {
        let mut rest = self.text[self.at..].char_indices();
        for wanted in prefix.chars() {
            let (_, character) = rest.next()?;
            // The long s has the capital S, and that is enough for Python.
            let is_long_s = wanted == 's' && character == 'ſ';
            if character.to_ascii_lowercase() != wanted && !is_long_s {
                return None;
            }
        }
        Some(self.at + rest.offset())
    }

    fn address(&mut self) -> Option<usize> {
        if self.at >= self.mailbox.end {
            let end = self.some(self.at, |character| {
                is_latin(character) || matches!(character, '0'..='9' | '.' | '_' | '%' | '+' | '-')
            })?;
            let is_followed = self.text[end..].starts_with('@');
            let address = is_followed.then(|| self.domain(end + 1)).flatten();
            self.mailbox = Mailbox { end, address };
        }
        self.mailbox.address
    }

    /// Returns where a domain ends that begins at `start`: after at least two letters behind the
    /// last dot that has so many.
    fn domain(&self, start: usize) -> Option<usize> {
        let end = self.run(start, |character| {
            is_latin(character) || matches!(character, '0'..='9' | '.' | '-')
        });
        let dots = self.text[start..end].rmatch_indices('.');
        let mut dots = dots.map(|(dot, _)| start + dot).filter(|dot| *dot > start);
        dots.find_map(|dot| {
            let end = self.run(dot + 1, is_latin);
            let is_long = self.text[dot + 1..end].chars().nth(1).is_some();
            is_long.then_some(end)
        })
    }

    fn handle(&self) -> Option<usize> {
        let name = self.text[self.at..].strip_prefix('@')?;
        self.some(self.text.len() - name.len(), |character| {
            is_latin(character) || matches!(character, '0'..='9' | '_')
        })
    }

    fn word(&self) -> Option<usize> {
        let mut end = self.some(self.at, is_word)?;
        while self.text[end..].starts_with('-') {
            match self.some(end + 1, is_word) {
                Some(longer) => end = longer,
                None => break,
            }
        }
        Some(end)
    }
}

impl Iterator for Split<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.at = self.run(self.at, is_space);
        let first = self.text[self.at..].chars().next()?;
        let end = self
            .link()
            .or_else(|| self.address())
            .or_else(|| self.handle())
            .or_else(|| self.word())
            .unwrap_or(self.at + first.len_utf8());
        let word = self.text[self.at..end].to_lowercase();
        self.at = end;
        Some(word)
    }
}

/// Whether Python's `\s` matches a character: the separators of ASCII are white space for Python.
fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// Whether Python's `[a-z]` matches a character in any case: four letters beyond ASCII have a case
/// there.
fn is_latin(character: char) -> bool {
    character.is_ascii_alphabetic() || matches!(character, 'İ' | 'ı' | 'ſ' | '\u{212a}')
}

/// Whether Python's `\w` matches a character: letters, numbers and the underscore, but not the
/// marks that [`char::is_alphanumeric`] counts as letters.
fn is_word(character: char) -> bool {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[\p{L}\p{N}]").ok());
    if character.is_ascii() {
        return character.is_ascii_alphanumeric() || character == '_';
    }
    let word = WORD.as_ref();
    word.is_some_and(|word| word.is_match(character.encode_utf8(&mut [0; 4])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_makers_regular_expression() {
        let lines = include_str!("../../../tests/fixtures/words.jsonl").lines();
        let mut count = 0;
        for line in lines {
            let (text, words): (String, Vec<String>) = serde_json::from_str(line).expect("a line");
            assert_eq!(Split::of(&text).collect::<Vec<_>>(), words, "{text:?}");
            count += words.len();
        }
        assert!(count > 3_000, "{count}");
    }

    #[test]
    fn a_text_that_nearly_is_an_address_takes_linear_time() {
        // Where each character began a search of its own, these texts would take hours.
        for (text, words) in [
            (".".repeat(4 << 20), 4 << 20),
            ("a.".repeat(1 << 20), 2 << 20),
            (format!("a@{}", "b.".repeat(1 << 20)), 2 + (2 << 20) - 1),
            ("a@".repeat(1 << 20), 1 + (1 << 20)),
        ] {
            assert_eq!(Split::of(&text).count(), words, "{}", &text[..8]);
        }
    }
}
