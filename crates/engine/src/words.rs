//! Where a text can be cut without changing its tokens, and the tokens of words that occur again
//! and again.
//!
//! A tokenizer first splits a text into words, then each word into tokens on its own. Where the
//! rule for words is known, a text can be taken apart in advance: long texts are read in pieces,
//! and the tokens of common words are looked up.

use std::collections::HashMap;

use parking_lot::RwLock;

/// The longest piece of text that is tokenized at once, in bytes.
const PIECE_BYTES: usize = 32 * 1024;
/// The longest word that is remembered, in bytes; longer words seldom occur again.
const WORD_BYTES: usize = 24;
/// The most digits of a word that is kept. A word with more is a number, an identifier or a secret,
/// which seldom occurs again.
const WORD_DIGITS: usize = 4;
/// The most words in one generation of the cache; there are two generations.
const GENERATION: usize = 16 * 1024;

/// Returns a text in pieces of at most [`PIECE_BYTES`], cut where no token can stand across: before
/// a single space between two characters that are not white space, which ends a word for every
/// pre-tokenizer in use (BERT, byte-level, Metaspace). A piece without such a space is cut at
/// punctuation, and one without either where it is full.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    split(text, |rest| {
        if rest.len() <= PIECE_BYTES {
            return rest.len();
        }
        let full = rest.floor_char_boundary(PIECE_BYTES);
        let last = |is_cut: fn(&str, usize) -> bool| (1..full).rev().find(|at| is_cut(rest, *at));
        last(is_before_space)
            .or_else(|| last(is_at_punctuation))
            .unwrap_or(full)
    })
}

/// Returns a text in words, cut before single spaces and at punctuation. With the pre-tokenizers of
/// BERT and of byte-level models (GPT-2's expression) each word has the same tokens alone as within
/// the text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    split(text, |rest| {
        let limit = rest.floor_char_boundary(rest.len().min(PIECE_BYTES));
        let is_cut = |at: &usize| is_before_space(rest, *at) || is_at_punctuation(rest, *at);
        (1..limit).find(is_cut).unwrap_or(limit)
    })
}

/// Returns a text in parts; `end` returns the length of the next part in bytes, at least one.
fn split(text: &str, end: impl Fn(&str) -> usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (part, behind) = rest.split_at(end(rest));
        rest = behind;
        Some(part)
    })
}

/// Whether the byte at `at` is a space between two characters that are not white space.
fn is_before_space(text: &str, at: usize) -> bool {
    text.as_bytes()[at] == b' '
        && text[..at]
            .chars()
            .next_back()
            .is_some_and(|before| !before.is_whitespace())
        && text[at + 1..]
            .chars()
            .next()
            .is_some_and(|behind| !behind.is_whitespace())
}

/// Whether punctuation begins at `at` behind a letter or digit, or ends there before one. An
/// apostrophe belongs to the letters that follow it, as in GPT-2's `'s`.
fn is_at_punctuation(text: &str, at: usize) -> bool {
    let (before, behind) = (text.as_bytes()[at - 1], text.as_bytes()[at]);
    (before.is_ascii_alphanumeric() && behind.is_ascii_punctuation())
        || (before.is_ascii_punctuation() && before != b'\'' && behind.is_ascii_alphanumeric())
}

type Generation = HashMap<Box<str>, Box<[i64]>>;

/// The tokens of recently seen words. The cache holds single common words, never a text, and is
/// bounded.
#[derive(Default)]
pub struct Words {
    generations: RwLock<[Generation; 2]>,
}

impl Words {
    /// Calls `each` with the tokens of every word, in order; `tokenize` makes the tokens of words
    /// that are not known.
    ///
    /// # Errors
    /// The errors of `tokenize` and `each`.
    pub fn tokens<W: AsRef<str>, E>(
        &self,
        words: impl Iterator<Item = W>,
        tokenize: impl Fn(&str) -> Result<Box<[i64]>, E>,
        mut each: impl FnMut(&[i64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut fresh: Generation = HashMap::new();
        let known = self.generations.read();
        for word in words {
            let word = word.as_ref();
            let found = known.iter().find_map(|generation| generation.get(word));
            if let Some(tokens) = found.or_else(|| fresh.get(word)) {
                each(tokens)?;
                continue;
            }
            let tokens = tokenize(word)?;
            each(&tokens)?;
            if is_common(word) && fresh.len() < GENERATION {
                fresh.insert(word.into(), tokens);
            }
        }
        drop(known);
        if !fresh.is_empty() {
            self.remember(fresh);
        }
        Ok(())
    }

    fn remember(&self, fresh: Generation) {
        let mut generations = self.generations.write();
        if generations[0].len() + fresh.len() > GENERATION {
            generations[1] = std::mem::take(&mut generations[0]);
        }
        generations[0].extend(fresh);
    }
}

fn is_common(word: &str) -> bool {
    word.len() <= WORD_BYTES && word.bytes().filter(u8::is_ascii_digit).count() <= WORD_DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_before_spaces_and_at_punctuation() {
        let of = |text| words(text).collect::<Vec<_>>();
        assert_eq!(
            of("It's  a \"test\", ok?"),
            ["It", "'s  a", " \"", "test", "\",", " ok", "?"]
        );
        assert_eq!(of("{\"id\":17}"), ["{\"", "id", "\":", "17", "}"]);
        assert_eq!(of("日本 é"), ["日本", " é"]);
        assert!(of("").is_empty());
    }

    #[test]
    fn a_word_with_more_than_four_digits_or_24_bytes_is_not_kept() {
        let cache = Words::default();
        let (longest, longer) = ("x".repeat(24), "x".repeat(25));
        let tokenize = |word: &str| Ok::<_, ()>(Box::from([word.len() as i64]));
        for word in [
            "1234",
            "12345",
            "r2d2c3po4",
            "r2d2c3po45",
            &longest,
            &longer,
        ] {
            cache
                .tokens(words(word), tokenize, |_| Ok(()))
                .expect("no error");
        }
        let mut kept: Vec<String> = cache.generations.read()[0]
            .keys()
            .map(|word| word.to_string())
            .collect();
        kept.sort_unstable();
        assert_eq!(kept, ["1234", "r2d2c3po4", longest.as_str()]);
    }

    #[test]
    fn numbers_and_long_words_are_not_kept_and_the_memory_is_bounded() {
        let cache = Words::default();
        let ask = |text: &str| {
            let tokenize = |word: &str| Ok::<_, ()>(Box::from([word.len() as i64]));
            cache
                .tokens(words(text), tokenize, |_| Ok(()))
                .expect("no error");
        };
        ask(
            "card 4929123412341234 a-very-long-word-indeed-of-thirty-letters xxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        );
        let kept: Vec<String> = cache.generations.read()[0]
            .keys()
            .map(|word| word.to_string())
            .collect();
        assert!(kept.contains(&"card".to_owned()));
        assert!(
            kept.iter()
                .all(|word| !word.contains("4929") && word.len() <= WORD_BYTES),
            "{kept:?}"
        );
        for index in 0..10 * GENERATION {
            let letters: String = format!("{index:x}")
                .chars()
                .map(|c| (b'g' + c as u8 % 16) as char)
                .collect();
            ask(&letters);
        }
        let sizes: Vec<usize> = cache.generations.read().iter().map(HashMap::len).collect();
        assert!(sizes.iter().all(|size| *size <= GENERATION), "{sizes:?}");
    }
}
