//! The step from text to token ids, by the model folder's own `tokenizer.json`.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokenizers::models::unigram::Unigram;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::{Encoding, ModelWrapper, NormalizerWrapper, PreTokenizerWrapper, Token};

use crate::Error;
use crate::caught::caught;
use crate::stop::Stop;
use crate::words::{Words, pieces, words};

/// A Hugging Face tokenizer that adds no tokens, cuts nothing, and treats special tokens written in
/// a text as text.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    vocabulary: usize,
    /// The tokens of common words; `None` where words cannot be told apart without the tokenizer.
    words: Option<Words>,
    /// The tokens of common words that are tokenized one by one.
    single_words: Words,
}

impl Tokenizer {
    /// Returns the tokenizer of a `tokenizer.json` file, given its bytes.
    ///
    /// # Errors
    /// [`Error::BadModel`] that names `file`.
    pub fn from_bytes(file: &Path, bytes: &[u8]) -> Result<Self, Error> {
        // The library panics on some files that are no tokenizers.
        caught(|| Self::read(file, bytes)).unwrap_or_else(|panic| {
            Err(Error::BadModel {
                file: file.to_owned(),
                problem: format!("not a tokenizer: {panic}"),
            })
        })
    }

    /// Returns the tokenizer of a file in which no text can spell one of `marks`, even where the
    /// file does not call these added tokens special.
    ///
    /// # Errors
    /// [`Error::BadModel`] that names `file`.
    pub fn with_marks(file: &Path, bytes: &[u8], marks: &[&str]) -> Result<Self, Error> {
        match with_special(bytes, marks) {
            Some(bytes) => Self::from_bytes(file, &bytes),
            None => Self::from_bytes(file, bytes),
        }
    }

    fn read(file: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let bad = |problem: String| Error::BadModel {
            file: file.to_owned(),
            problem,
        };
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes)
            .map_err(|error| bad(format!("not a tokenizer: {error}")))?;
        inner
            .with_truncation(None)
            .map_err(|error| bad(error.to_string()))?;
        inner.with_padding(None);
        inner.set_encode_special_tokens(true);
        let vocabulary = inner.get_vocab_size(true);
        if let Some(model) = without_specials(&inner, bytes).map_err(bad)? {
            inner.with_model(model);
        }
        let words = has_plain_words(&inner).then(Words::default);
        if let (Some(_), ModelWrapper::BPE(model)) = (&words, inner.get_model()) {
            // The words' tokens are cached here. The library's own cache would stay with each
            // thread for good, even after the model is gone.
            let mut model = model.clone();
            model.resize_cache(0);
            inner.with_model(ModelWrapper::BPE(model));
        }
        Ok(Self {
            inner,
            vocabulary,
            words,
            single_words: Words::default(),
        })
    }

    /// Returns the number of ids, added tokens included: every id is below it.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Returns the ids of a text's tokens, without special tokens around them: the first `keep`
    /// ids, and the number of the others.
    ///
    /// A long text is read in pieces, even a word without end. So the memory that this takes does
    /// not grow with the text, and the meter's stop is checked every few milliseconds: the
    /// library's own call cannot be interrupted.
    ///
    /// # Errors
    /// The errors of [`Meter::add`], and [`Error::ModelFailed`] where the tokenizer cannot
    /// represent the text.
    pub fn encode(&self, text: &str, keep: usize, meter: &mut Meter<'_>) -> Result<Tokens, Error> {
        let mut tokens = Tokens::default();
        let mut take = |ids: &[i64]| {
            meter.add(ids.len())?;
            tokens.take(ids, keep);
            Ok(())
        };
        match &self.words {
            Some(cache) => cache.tokens(words(text), |word| self.tokenize(word), take)?,
            None => {
                for piece in pieces(text) {
                    take(&self.tokenize(piece)?)?;
                }
            }
        }
        Ok(tokens)
    }

    /// Returns how the tokenizer's own template puts a text into a row; without a template, just as
    /// it is. `None` where the template cannot be used.
    pub fn frame(&self) -> Option<Frame> {
        if self.inner.get_post_processor().is_none() {
            return Some(Frame::default());
        }
        let parts = self.parts(None)?;
        let text = parts.iter().position(|part| part.what == What::First)?;
        let ids = |parts: &[Part]| {
            let specials = parts.iter().filter_map(|part| match part.what {
                What::Special(id) => Some(id),
                What::First | What::Second => None,
            });
            specials.collect()
        };
        Some(Frame {
            before: ids(&parts[..text]),
            after: ids(&parts[text + 1..]),
        })
    }

    /// Returns the ids of the tokens of words, each tokenized as a text by itself: the first `keep`
    /// ids, and the number of the others.
    ///
    /// # Errors
    /// Those of [`Tokenizer::encode`].
    pub fn encode_words(
        &self,
        words: impl Iterator<Item = String>,
        keep: usize,
        meter: &mut Meter<'_>,
    ) -> Result<Tokens, Error> {
        let mut tokens = Tokens::default();
        let stop = meter.stop;
        let tokenize = |word: &str| {
            let mut ids = Vec::new();
            for piece in pieces(word) {
                stop.check()?;
                ids.extend(self.tokenize(piece)?);
            }
            Ok(ids.into())
        };
        self.single_words.tokens(words, tokenize, |ids| {
            meter.add(ids.len())?;
            tokens.take(ids, keep);
            Ok(())
        })?;
        Ok(tokens)
    }

    /// Returns the id of a token; `None` where the vocabulary does not have it.
    pub fn id(&self, token: &str) -> Option<i64> {
        self.inner.token_to_id(token).map(i64::from)
    }

    /// Returns a special token that was added to the vocabulary; `None` where there is none with
    /// this text.
    pub fn special(&self, text: &str) -> Option<Special> {
        let id = self.inner.token_to_id(text)?;
        let added = self.inner.get_added_tokens_decoder();
        let token = added.get(&id).filter(|token| token.special)?;
        Some(Special {
            id: i64::from(id),
            takes_space_before: token.lstrip,
            takes_space_behind: token.rstrip,
        })
    }

    /// Whether the text behind a special token is tokenized like a text by itself.
    pub fn begins_anew(&self) -> bool {
        fn is_anew(splitter: &PreTokenizerWrapper) -> bool {
            match splitter {
                PreTokenizerWrapper::Metaspace(splitter) => {
                    splitter.get_prepend_scheme() != PrependScheme::First
                }
                PreTokenizerWrapper::Sequence(all) => all.as_ref().iter().all(is_anew),
                _ => true,
            }
        }
        self.inner.get_pre_tokenizer().is_none_or(is_anew)
    }

    /// Returns how the tokenizer's own template puts two texts into one row; `None` where no
    /// template does.
    pub fn pair_frame(&self) -> Option<PairFrame> {
        self.inner.get_post_processor()?;
        let parts = self.parts(Some(SECOND))?;
        let place = |what| parts.iter().position(|part| part.what == what);
        let (first, second) = (place(What::First)?, place(What::Second)?);
        // Without a token between the two texts the model cannot tell where the one ends and the
        // other begins.
        (first + 1 < second).then_some(PairFrame { parts })
    }

    /// Returns the parts of a row of one or two texts, by the tokenizer's template.
    fn parts(&self, second: Option<u32>) -> Option<Vec<Part>> {
        let stand_in = |id, type_id| {
            Encoding::from_tokens(vec![Token::new(id, String::new(), (0, 0))], type_id)
        };
        let (first, second) = (stand_in(FIRST, 0), second.map(|id| stand_in(id, 1)));
        // The library panics on a template that names a token which it does not define.
        let row = caught(|| self.inner.post_process(first, second, true));
        let row = row.ok()?.ok()?;
        let tokens = row.get_ids().iter().zip(row.get_type_ids());
        let parts = tokens.map(|(id, type_id)| Part {
            what: match *id {
                FIRST => What::First,
                SECOND => What::Second,
                id => What::Special(i64::from(id)),
            },
            type_id: i64::from(*type_id),
        });
        Some(parts.collect())
    }

    fn tokenize(&self, text: &str) -> Result<Box<[i64]>, Error> {
        let failed = |problem: String| Error::ModelFailed {
            cause: format!("tokenizer: {problem}"),
        };
        // The library panics on a vocabulary that does not fit its settings.
        let encoding = caught(|| self.inner.encode_fast(text, false)).map_err(failed)?;
        let encoding = encoding.map_err(|error| failed(error.to_string()))?;
        Ok(encoding.get_ids().iter().map(|id| i64::from(*id)).collect())
    }
}

/// The ids that stand for the texts of a row, of which no vocabulary is so long.
const FIRST: u32 = u32::MAX;
const SECOND: u32 = u32::MAX - 1;

/// Returns a tokenizer's file in which the added tokens with these texts are special; `None` where
/// nothing has to be changed, or the file is no tokenizer. All other bytes stay as they are.
fn with_special(bytes: &[u8], marks: &[&str]) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct File<'a> {
        #[serde(borrow)]
        added_tokens: &'a RawValue,
    }
    let file: File<'_> = serde_json::from_slice(bytes).ok()?;
    let raw = file.added_tokens.get();
    let mut tokens: Vec<Value> = serde_json::from_str(raw).ok()?;
    let mut is_changed = false;
    for token in &mut tokens {
        let is_mark = token["content"]
            .as_str()
            .is_some_and(|it| marks.contains(&it));
        if is_mark && token["special"] != true {
            token["special"] = true.into();
            token["normalized"] = false.into();
            is_changed = true;
        }
    }
    let start = raw.as_ptr() as usize - bytes.as_ptr() as usize;
    let changed = || {
        let tokens = Value::from(tokens).to_string();
        [
            &bytes[..start],
            tokens.as_bytes(),
            &bytes[start + raw.len()..],
        ]
        .concat()
    };
    is_changed.then(changed)
}

/// Returns a Unigram model in which no text can spell a special token; `None` for other models. The
/// vocabulary of a Unigram model holds the special tokens as ordinary pieces, so it is not enough
/// that the tokenizer does not look for them.
fn without_specials(
    tokenizer: &tokenizers::Tokenizer,
    bytes: &[u8],
) -> Result<Option<Unigram>, String> {
    let ModelWrapper::Unigram(model) = tokenizer.get_model() else {
        return Ok(None);
    };
    #[derive(Deserialize)]
    struct File {
        model: Settings,
    }
    #[derive(Deserialize)]
    struct Settings {
        unk_id: Option<usize>,
    }
    let file: File = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let secret = getrandom::u64().map_err(|error| error.to_string())?;
    let added = tokenizer.get_added_tokens_decoder();
    let pieces = model.iter().zip(0..).map(|((piece, score), id)| {
        let is_special = added.get(&id).is_some_and(|token| token.special);
        // The piece contains a secret, so no caller can write it.
        let unwritable = || format!("\u{10ffff}{secret:x}-{id}");
        (
            if is_special {
                unwritable()
            } else {
                piece.clone()
            },
            *score,
        )
    });
    let model = Unigram::from(pieces.collect(), file.model.unk_id, model.byte_fallback());
    model.map(Some).map_err(|error| error.to_string())
}

/// Whether the words of [`crate::words::words`] have the same tokens alone as within a text: the
/// pre-tokenizer is BERT's or the byte-level one, no normalizer looks beyond a word, and no added
/// token extends across a space.
fn has_plain_words(tokenizer: &tokenizers::Tokenizer) -> bool {
    let words = match tokenizer.get_pre_tokenizer() {
        Some(PreTokenizerWrapper::BertPreTokenizer(_)) => true,
        Some(PreTokenizerWrapper::ByteLevel(level)) => level.use_regex && !level.add_prefix_space,
        _ => false,
    };
    let added = tokenizer.get_added_tokens_decoder();
    // The tokenizer does not look for special tokens in a text, so their contents do not matter.
    let mut added = added.values().filter(|token| !token.special);
    words
        && tokenizer.get_normalizer().is_none_or(is_local)
        && added.all(|token| {
            let text = token.content.as_str();
            !token.lstrip
                && !token.rstrip
                && (text.trim().is_empty() || !text.contains(' '))
                && !has_cut(text)
        })
}

/// Whether a normalizer changes each word in the same way alone as within a text.
fn is_local(normalizer: &NormalizerWrapper) -> bool {
    match normalizer {
        NormalizerWrapper::BertNormalizer(_)
        | NormalizerWrapper::StripAccents(_)
        | NormalizerWrapper::NFC(_)
        | NormalizerWrapper::NFD(_)
        | NormalizerWrapper::Lowercase(_) => true,
        NormalizerWrapper::Sequence(sequence) => sequence.as_ref().iter().all(is_local),
        _ => false,
    }
}

/// Whether [`words`] would split a text.
fn has_cut(text: &str) -> bool {
    words(text).count() > 1
}

/// The template of a row of one text: `[CLS] A [SEP]` and the like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    before: Vec<i64>,
    after: Vec<i64>,
}

impl Frame {
    /// Returns the number of special tokens.
    pub fn specials(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Returns the ids of a row.
    pub fn row(&self, text: &[i64]) -> Vec<i64> {
        [&self.before, text, &self.after].concat()
    }
}

/// A special token that was added to a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Special {
    /// The id of the token.
    pub id: i64,
    /// Whether white space in front of the token belongs to it.
    pub takes_space_before: bool,
    /// Whether white space behind the token belongs to it.
    pub takes_space_behind: bool,
}

/// The template of a row of two texts and special tokens: `[CLS] A [SEP] B [SEP]` and the like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairFrame {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    what: What,
    type_id: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    First,
    Second,
    Special(i64),
}

impl PairFrame {
    /// Returns the number of special tokens.
    pub fn specials(&self) -> usize {
        self.parts.len() - 2
    }

    /// Returns the ids of a row, and the token type of each.
    pub fn row(&self, first: &[i64], second: &[i64]) -> (Vec<i64>, Vec<i64>) {
        let length = first.len() + second.len() + self.specials();
        let (mut ids, mut types) = (Vec::with_capacity(length), Vec::with_capacity(length));
        for part in &self.parts {
            match &part.what {
                What::First => ids.extend_from_slice(first),
                What::Second => ids.extend_from_slice(second),
                What::Special(id) => ids.push(*id),
            }
            types.resize(ids.len(), part.type_id);
        }
        (ids, types)
    }
}

/// The tokens of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tokens {
    /// The ids of the kept tokens.
    pub ids: Vec<i64>,
    /// The number of tokens after the kept ones.
    pub left_out: usize,
}

impl Tokens {
    /// Adds ids at the end, of which no more are kept once there are `keep`.
    fn take(&mut self, ids: &[i64], keep: usize) {
        let kept = ids.len().min(keep - self.ids.len());
        self.ids.extend_from_slice(&ids[..kept]);
        self.left_out += ids.len() - kept;
    }
}

/// A counter of the tokens of a request's texts while they are made, so that a text that is far too
/// long is refused before all of it has been read.
pub struct Meter<'a> {
    limit: usize,
    counted: usize,
    stop: &'a Stop,
}

impl<'a> Meter<'a> {
    /// Returns a meter that allows `limit` tokens and asks `stop` whether the caller still waits
    /// for them.
    pub fn new(limit: usize, stop: &'a Stop) -> Self {
        Self {
            limit,
            counted: 0,
            stop,
        }
    }

    /// Returns a meter that continues from another meter's count.
    pub fn from(limit: usize, counted: usize, stop: &'a Stop) -> Self {
        Self {
            limit,
            counted,
            stop,
        }
    }

    /// Returns a meter with the same stop that counts from 0 and allows `limit` tokens.
    pub fn limited(&self, limit: usize) -> Meter<'a> {
        Self::new(limit, self.stop)
    }

    /// Returns a meter with the same stop that allows all tokens.
    pub fn unlimited(&self) -> Meter<'a> {
        self.limited(usize::MAX)
    }

    /// Returns the number of tokens counted so far.
    pub fn counted(&self) -> usize {
        self.counted
    }

    /// Counts tokens.
    ///
    /// # Errors
    /// [`Error::TooManyTokens`], and the errors of `stop`.
    pub fn add(&mut self, tokens: usize) -> Result<(), Error> {
        self.stop.check()?;
        self.counted += tokens;
        if self.counted > self.limit {
            return Err(Error::TooManyTokens { limit: self.limit });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;
    use std::time::Duration;

    fn tokenizer(folder: &str) -> Tokenizer {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let file = folder.join("tokenizer.json");
        let bytes = std::fs::read(&file).expect("a committed tokenizer");
        Tokenizer::from_bytes(&file, &bytes).expect("a tokenizer")
    }

    const FOLDERS: [&str; 3] = [
        "tests/fixtures/marker",
        "tests/fixtures/shared-state",
        "../../models/svc-small",
    ];

    fn whole(tokenizer: &Tokenizer, text: &str) -> Vec<i64> {
        let encoding = tokenizer.inner.encode(text, false).expect("tokens");
        encoding.get_ids().iter().map(|id| i64::from(*id)).collect()
    }

    fn in_pieces(tokenizer: &Tokenizer, text: &str) -> Vec<i64> {
        let parts = pieces(text).map(|piece| tokenizer.tokenize(piece).expect("tokens"));
        parts.flatten().collect()
    }

    fn by_words(tokenizer: &Tokenizer, text: &str) -> Vec<i64> {
        assert!(tokenizer.words.is_some());
        let stop = Stop::never();
        let mut meter = Meter::new(usize::MAX, &stop);
        tokenizer
            .encode(text, usize::MAX, &mut meter)
            .expect("tokens")
            .ids
    }

    #[test]
    fn a_long_text_has_the_same_tokens_in_pieces() {
        let prose = "The customer's order (no. 17) was charged twice,  and nobody answers — 日本 ok!\n\n\tplease ";
        let json = "{\"id\":17,\"total\":249.50,\"items\":[\"lamp\",\"desk\"],\"note\":null},";
        for folder in FOLDERS {
            let tokenizer = tokenizer(folder);
            for text in [
                prose.repeat(900),
                json.repeat(1200),
                format!("{}{}", json.repeat(700), prose.repeat(700)),
            ] {
                assert!(pieces(&text).count() > 1);
                let whole = whole(&tokenizer, &text);
                assert_eq!(in_pieces(&tokenizer, &text), whole, "{folder}");
                assert_eq!(by_words(&tokenizer, &text), whole, "{folder}");
            }
        }
    }

    const CROSS_ENCODERS: [&str; 4] = [
        "tests/fixtures/pair-bert",
        "tests/fixtures/pair-roberta",
        "tests/fixtures/pair-deberta",
        "tests/fixtures/pair-reranker",
    ];

    #[test]
    fn a_long_text_has_the_same_tokens_in_pieces_in_every_family() {
        let text =
            "The customer's order (no. 17) was charged  twice — 日本 ok!\n\n\tplease ".repeat(900);
        assert!(pieces(&text).count() > 1);
        for folder in CROSS_ENCODERS {
            let tokenizer = tokenizer(folder);
            assert_eq!(
                in_pieces(&tokenizer, &text),
                whole(&tokenizer, &text),
                "{folder}"
            );
        }
    }

    #[test]
    fn a_byte_level_tokenizer_that_adds_a_space_gives_the_tokens_of_the_whole_text() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/pair-roberta/tokenizer.json");
        let text = std::fs::read_to_string(&file).expect("a committed tokenizer");
        let mut settings: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        settings["pre_tokenizer"]["add_prefix_space"] = true.into();
        let tokenizer = Tokenizer::from_bytes(&file, settings.to_string().as_bytes());
        let tokenizer = tokenizer.expect("a tokenizer");
        let text = "order \"no.17\" was charged twice(late)";
        let stop = Stop::never();
        let tokens = tokenizer.encode(text, usize::MAX, &mut Meter::new(usize::MAX, &stop));
        assert_eq!(tokens.expect("tokens").ids, whole(&tokenizer, text));
        // With the added space the first word must have other tokens, else the setting was not
        // read.
        let plain = self::tokenizer("tests/fixtures/pair-roberta");
        assert_ne!(whole(&plain, text), whole(&tokenizer, text));
    }

    #[test]
    fn no_text_spells_a_special_token() {
        for folder in CROSS_ENCODERS {
            let tokenizer = tokenizer(folder);
            let added = tokenizer.inner.get_added_tokens_decoder();
            let unknown = ["[UNK]", "<unk>"];
            let special = |token: &&tokenizers::AddedToken| !unknown.contains(&&*token.content);
            for (id, token) in added.iter().filter(|(_, token)| special(token)) {
                let text = format!("late {0} late{0}late {0}{0}", token.content);
                let tokens = whole(&tokenizer, &text);
                assert!(!tokens.contains(&i64::from(*id)), "{folder}: {text}");
            }
        }
    }

    #[test]
    fn two_texts_make_a_row_as_the_family_has_it() {
        let rows = CROSS_ENCODERS.map(|folder| {
            let pair = tokenizer(folder).pair_frame().expect("a template");
            pair.row(&[100, 101], &[200])
        });
        assert_eq!(rows[0].1, [0, 0, 0, 0, 1, 1]);
        assert_eq!(rows[1].1, [0; 7]);
        assert_eq!(
            rows[2],
            (vec![1, 100, 101, 2, 200, 2], vec![0, 0, 0, 0, 1, 1])
        );
        assert_eq!(rows[3], (vec![0, 100, 101, 2, 2, 200, 2], vec![0; 7]));
    }

    #[test]
    fn text_without_a_place_to_cut_is_read_all_the_same() {
        let tokenizer = tokenizer(FOLDERS[0]);
        for text in ["a".repeat(100_000), "é".repeat(50_000), " ".repeat(100_000)] {
            assert_eq!(pieces(&text).collect::<String>(), text);
            assert!(!in_pieces(&tokenizer, &text).is_empty());
        }
    }

    #[test]
    fn what_is_beyond_the_limit_is_counted_and_too_much_is_refused() {
        let tokenizer = tokenizer(FOLDERS[1]);
        let stop = Stop::never();
        let text = "order ".repeat(20_000);
        let tokens = tokenizer
            .encode(&text, 7, &mut Meter::new(20_000, &stop))
            .expect("tokens");
        assert_eq!((tokens.ids.len(), tokens.left_out), (7, 19_993));
        let refused = tokenizer.encode(&text, 7, &mut Meter::new(19_999, &stop));
        assert_eq!(refused, Err(Error::TooManyTokens { limit: 19_999 }));
        stop.cancel();
        let cancelled = tokenizer.encode("order", 7, &mut Meter::new(1, &stop));
        assert_eq!(cancelled, Err(Error::Cancelled));
    }

    #[test]
    fn a_mark_cannot_be_spelt_even_where_its_file_does_not_call_it_special() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/published/open-jev/tokenizer.json");
        let text = std::fs::read_to_string(&file).expect("a committed tokenizer");
        let mark = r#""content":"[OPT]","single_word":false,"lstrip":false,"rstrip":false,"#;
        let special = format!(r#"{mark}"normalized":false,"special":true"#);
        assert!(text.contains(&special));
        let plain = format!(r#"{mark}"normalized":true,"special":false"#);
        let text = text.replace(&special, &plain);
        let read = |marks: &[&str]| Tokenizer::with_marks(&file, text.as_bytes(), marks);
        let ids = |marks| {
            let tokenizer = read(marks).expect("a tokenizer");
            (tokenizer.id("[OPT]"), whole(&tokenizer, "late [OPT] a"))
        };
        let (id, spelt) = ids(&[]);
        assert!(spelt.contains(&id.expect("an id")));
        let (same, unspelt) = ids(&["[OPT]"]);
        assert_eq!(same, id);
        assert!(!unspelt.contains(&id.expect("an id")));
        assert!(read(&[]).is_ok_and(|it| it.special("[OPT]").is_none()));
        assert!(read(&["[OPT]"]).is_ok_and(|it| it.special("[OPT]").is_some()));
    }

    #[test]
    fn a_file_at_which_the_library_panics_is_refused() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pair-bert/tokenizer.json");
        let text = std::fs::read_to_string(&file).expect("a committed tokenizer");
        let spoilt = |what: &str, by: &str| {
            assert!(text.contains(what), "{what}");
            Tokenizer::from_bytes(&file, text.replacen(what, by, 1).as_bytes())
        };
        let Err(refused) = spoilt("\"decoder\":", "\"decoder\":{7:8},\"old\":") else {
            panic!("accepted");
        };
        assert_eq!(refused.code(), "bad_model");
        assert!(
            refused.to_string().contains("not a tokenizer: "),
            "{refused}"
        );
        let nameless = spoilt("\"special_tokens\":", "\"special_tokens\":{},\"old\":");
        // Where the library accepts such a template, it panics when the template is used.
        assert!(nameless.is_ok_and(|tokenizer| tokenizer.pair_frame().is_none()));
    }

    #[test]
    fn an_endless_word_ends_with_its_time() {
        let tokenizer = tokenizer(FOLDERS[0]);
        // The word takes seconds of work, in pieces of a few milliseconds.
        let word = "a".repeat(8 << 20);
        let stop = Stop::never().within(Duration::from_millis(20), Duration::ZERO);
        let mut meter = Meter::new(usize::MAX, &stop);
        let late = tokenizer.encode(&word, 7, &mut meter);
        assert_eq!(late.expect_err("late").code(), "run_timeout");
        assert!(meter.counted() < word.len(), "{}", meter.counted());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pieces_are_cut_where_no_token_stands_across(parts in prop::collection::vec("[ a-z0-9.,'é日\n]{1,40}", 20..60)) {
            let text = parts.concat().repeat(1 + 40_000 / parts.concat().len());
            for folder in FOLDERS {
                let tokenizer = tokenizer(folder);
                prop_assert_eq!(in_pieces(&tokenizer, &text), whole(&tokenizer, &text));
            }
        }
    }

    static TOKENIZERS: LazyLock<[Tokenizer; 3]> = LazyLock::new(|| FOLDERS.map(tokenizer));

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn words_have_the_same_tokens_alone_as_together(
            text in "([a-zA-Z]{1,5}|[0-9]{1,3}|[ \\t\n]{1,3}|[!-/:-@\\[-`{-~]{1,3}|'(s|t|re|ll)|é|e\u{301}|\u{338}|日本|😀|\u{a0}|\\[(MASK|SEP)\\]){0,40}",
        ) {
            for tokenizer in &*TOKENIZERS {
                prop_assert_eq!(by_words(tokenizer, &text), whole(tokenizer, &text));
            }
        }
    }

    #[test]
    fn a_text_stands_between_the_special_tokens_of_the_template() {
        let tokenizer = tokenizer("tests/fixtures/marker");
        let frame = tokenizer.frame().expect("a frame");
        let id = |name: &str| i64::from(tokenizer.inner.token_to_id(name).expect("a token"));
        assert_eq!(frame.row(&[7, 8]), [id("[CLS]"), 7, 8, id("[SEP]")]);
        assert_eq!(frame.specials(), 2);
        let encoding = tokenizer.inner.encode("late", true).expect("tokens");
        let ids: Vec<i64> = encoding.get_ids().iter().map(|id| i64::from(*id)).collect();
        assert_eq!(frame.row(&whole(&tokenizer, "late")), ids);
    }

    #[test]
    fn without_a_template_a_text_stands_alone() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/marker/tokenizer.json");
        let text = std::fs::read_to_string(&file).expect("a committed tokenizer");
        let mut settings: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        settings["post_processor"] = serde_json::Value::Null;
        let tokenizer = Tokenizer::from_bytes(&file, settings.to_string().as_bytes());
        let frame = tokenizer.expect("a tokenizer").frame().expect("a frame");
        assert_eq!((frame.row(&[7]), frame.specials()), (vec![7], 0));
    }
}
