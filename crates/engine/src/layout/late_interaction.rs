//! The `late-interaction` layout: an encoder reads the state and every option apart, and a scorer lets
//! the tokens of each option look at those of the state. The levels of a score are read by an ordinal
//! head.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::scored::{Scorer, wrong_count};
use super::{
    EncodedQuestions, Encoder, Layout, MAX_LENGTH, Plan, QuestionRows, Row, StateJson, encode_each,
    too_long,
};
use crate::Error;
use crate::question::{Kind, Outcome, Question, State};
use crate::session::{Input, Interface, KvCache, Results};
use crate::tokenize::{Frame, Meter, Tokenizer, Tokens};

/// The settings of the layout in `config.json`. Lengths are in tokens, special tokens included.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    /// The length of a state.
    pub max_state_tokens: usize,
    /// The length of an option.
    pub max_choice_tokens: usize,
    /// Whether the question stands in front of the state, so that a state is read for each question.
    #[serde(default)]
    pub question_in_state: bool,
    /// Whether the question stands in front of each option.
    #[serde(default = "default_true")]
    pub question_in_choices: bool,
    /// Whether an option always stays whole, and only its question is shortened.
    #[serde(default)]
    pub choice_fit: bool,
    /// The text in front of a state.
    #[serde(default = "default_state_prefix")]
    pub state_prefix: String,
    /// The text in front of an option.
    #[serde(default = "default_choice_prefix")]
    pub choice_prefix: String,
    /// The spelling of a state that is JSON.
    #[serde(default)]
    pub state_json: StateJson,
    /// The head that reads the levels of a score.
    pub ordinal: Ordinal,
}

/// The weights of the ordinal head.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Ordinal {
    /// The weights of the latent value of the question.
    pub ord_g_w: Vec<f64>,
    /// The bias of the latent value.
    pub ord_g_b: f64,
    /// The weights of the gap of a level.
    pub ord_gap_w: Vec<f64>,
    /// The bias of the gaps.
    pub ord_gap_b: f64,
    /// The divisor of the scores that the head is given.
    #[serde(default = "default_temperature")]
    pub temperature: f64,
}

fn default_true() -> bool {
    true
}

fn default_temperature() -> f64 {
    1.0
}

fn default_state_prefix() -> String {
    "query: ".into()
}

fn default_choice_prefix() -> String {
    "passage: ".into()
}

/// The least room for the text of a row, besides its special tokens.
const LEAST: usize = 2;
/// The least gap between two levels of a score.
const LEAST_GAP: f64 = 1e-3;
/// The least probability of a level.
const LEAST_PROBABILITY: f64 = 1e-7;

impl Settings {
    /// Returns the first setting that cannot work and the requirement that it breaks, where a row
    /// has so many special tokens.
    pub fn problem(&self, specials: usize) -> Option<(&'static str, String)> {
        let lengths = [
            ("max_state_tokens", self.max_state_tokens),
            ("max_choice_tokens", self.max_choice_tokens),
        ];
        if let Some(problem) = too_long(&lengths, MAX_LENGTH) {
            return Some(problem);
        }
        let least = specials + LEAST;
        if let Some((key, _)) = lengths.into_iter().find(|(_, length)| *length < least) {
            return Some((key, format!("must be at least {least}")));
        }
        let head = &self.ordinal;
        let all = head.ord_g_w.iter().chain(&head.ord_gap_w);
        let mut all = all.chain([&head.ord_g_b, &head.ord_gap_b]);
        if head.ord_g_w.len() != head.ord_gap_w.len() || head.ord_g_w.is_empty() {
            return Some((
                "ordinal",
                "ord_g_w and ord_gap_w must be as long as each other".into(),
            ));
        }
        if !all.all(|weight| weight.is_finite()) || head.temperature <= 0.0 {
            return Some(("ordinal", "must have finite weights".into()));
        }
        None
    }
}

/// The layout with a model's settings.
pub struct LateInteraction {
    settings: Settings,
    interface: Interface,
    scorer: TokenScorer,
    frame: Frame,
}

impl LateInteraction {
    /// Returns the layout of a model with these settings, whose tokenizer puts a text into such a
    /// row.
    pub fn new(settings: Settings, frame: Frame) -> Self {
        let interface = Interface {
            inputs: ["input_ids", "attention_mask"].map(Cow::Borrowed).to_vec(),
            results: Results::States,
            ..Interface::default()
        };
        let inputs = ["state_h", "state_mask", "choice_h", "choice_mask"];
        let scorer = TokenScorer {
            interface: Interface {
                inputs: inputs.map(Cow::Borrowed).to_vec(),
                results: Results::Scores(vec!["scores", "z"]),
                ..Interface::default()
            },
            ordinal: settings.ordinal.clone(),
        };
        Self {
            settings,
            interface,
            scorer,
            frame,
        }
    }

    fn room(&self, length: usize) -> usize {
        length - self.frame.specials()
    }

    /// Returns the tokens of the options of a question, each as many as it has room for.
    fn options(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &str,
        options: &[String],
    ) -> Result<Vec<Vec<i64>>, Error> {
        let question = match self.settings.question_in_choices {
            true => question,
            false => "",
        };
        let prefix = &self.settings.choice_prefix;
        let room = self.room(self.settings.max_choice_tokens);
        let whole = options.iter().map(|option| {
            let text = format!("{question} {option}");
            let text = format!("{prefix}{}", normalized(strip(&text)));
            encoder.tokens(&text, room)
        });
        let whole = whole.collect::<Result<Vec<Tokens>, _>>()?;
        let different: HashSet<&[i64]> = whole.iter().map(|it| it.ids.as_slice()).collect();
        let fits = self.settings.choice_fit || different.len() < whole.len();
        let question = normalized(question);
        let words: Vec<&str> = words(&question).collect();
        let fitted = whole.into_iter().zip(options).map(|(tokens, option)| {
            if tokens.left_out == 0 || !fits {
                encoder.truncated_tokens += tokens.left_out;
                return Ok(tokens.ids);
            }
            let fitted = self.fitted(encoder, &words, &normalized(option))?;
            let all = tokens.ids.len() + tokens.left_out;
            encoder.truncated_tokens += all.saturating_sub(fitted.len());
            Ok(fitted)
        });
        fitted.collect()
    }

    /// Returns the tokens of an option behind as many words of its question as there is room for.
    fn fitted(
        &self,
        encoder: &mut Encoder<'_, '_>,
        words: &[&str],
        option: &str,
    ) -> Result<Vec<i64>, Error> {
        let prefix = &self.settings.choice_prefix;
        let room = self.room(self.settings.max_choice_tokens);
        let text = |count: usize| match count {
            0 => format!("{prefix}{option}"),
            _ => format!("{prefix}{} … {option}", words[..count].join(" ")),
        };
        let (mut least, mut most) = (0, words.len());
        while least < most {
            let middle = (least + most).div_ceil(2);
            if encoder.fits(&text(middle), room)? {
                least = middle;
            } else {
                most = middle - 1;
            }
        }
        // The tokens of the option, and of its question, were counted before.
        Ok(encoder.uncounted(&text(least), room)?.ids)
    }

    fn state_row(&self, ids: &[i64]) -> Row {
        Row {
            ids: self.frame.row(ids),
            ..Row::default()
        }
    }

    /// Returns the text that the model reads of a state, and of the question in front of it.
    fn state_text(&self, question: Option<&str>, state: &str) -> String {
        let prefix = &self.settings.state_prefix;
        match question {
            Some(question) => format!("{prefix}{}", normalized(&format!("{question}\n{state}"))),
            None => format!("{prefix}{}", normalized(state)),
        }
    }
}

/// Returns the text of a question that the model reads; what speaks for the sides of a noul is part
/// of it.
fn question_text(question: &Question) -> Cow<'_, str> {
    let side = |name: &str| {
        let outcome = question.outcomes.iter().find(|it| it.name == name);
        let text = outcome.and_then(|outcome| outcome.text.as_deref());
        strip(text.unwrap_or(""))
    };
    let or_none = |text: &str| if text.is_empty() { "—" } else { text }.to_owned();
    match (question.kind, side("true"), side("false")) {
        (Kind::Noul, "", "") | (Kind::Choice | Kind::Score, _, _) => {
            Cow::Borrowed(&question.instructions)
        }
        (Kind::Noul, yes, no) => Cow::Owned(format!(
            "{}\nTrue if: {}\nFalse if: {}",
            question.instructions,
            or_none(yes),
            or_none(no)
        )),
    }
}

/// Returns the texts of the options that the model reads, in the order of their rows, each with the
/// index of its outcome.
fn option_texts(question: &Question) -> Vec<(usize, String)> {
    let text = |outcome: &Outcome| match (question.kind, outcome.text.as_deref()) {
        (Kind::Choice, Some(text)) if !strip(text).is_empty() => {
            format!("{}: {text}", outcome.name)
        }
        (Kind::Score, Some(text)) => text.to_owned(),
        _ => outcome.name.clone(),
    };
    match question.kind {
        Kind::Noul => vec![(1, "yes".into()), (0, "no".into())],
        Kind::Choice | Kind::Score => question.outcomes.iter().map(text).enumerate().collect(),
    }
}

/// Whether Python takes a character for white space.
fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// Returns a text without white space around it.
fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// Returns a text in Unicode's form NFC, without white space around it.
fn normalized(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(strip(text));
    }
    let text: String = text.nfc().collect();
    Cow::Owned(strip(&text).to_owned())
}

impl Layout for LateInteraction {
    fn name(&self) -> &'static str {
        "late-interaction"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns the rows of the questions, and where a question stands in front of the state, its
    /// text.
    fn encode_questions(
        &self,
        tokenizer: &Tokenizer,
        questions: &[Question],
        meter: &mut Meter<'_>,
    ) -> Result<EncodedQuestions, Error> {
        let texts = questions.iter().filter(|_| self.settings.question_in_state);
        Ok(EncodedQuestions {
            texts: texts
                .map(|question| question_text(question).into())
                .collect(),
            ..encode_each(self, tokenizer, questions, meter)?
        })
    }

    /// Returns a row for each option. A noul has `yes` first.
    fn question(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<QuestionRows, Error> {
        let (outcomes, texts): (Vec<usize>, Vec<String>) =
            option_texts(question).into_iter().unzip();
        let options = self.options(encoder, &question_text(question), &texts)?;
        let rows = options.into_iter().zip(outcomes);
        let rows = rows.map(|(ids, outcome)| Row {
            ids: self.frame.row(&ids),
            outcomes: vec![outcome],
            ..Row::default()
        });
        Ok(QuestionRows {
            kind: question.kind,
            outcomes: question.outcomes.len(),
            rows: rows.collect(),
        })
    }

    /// Returns the rows with the state: one row for all questions, or one for each.
    fn encode_state(
        &self,
        tokenizer: &Tokenizer,
        state: &State,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        let state = &self.settings.state_json.text(state);
        let room = self.room(self.settings.max_state_tokens);
        let mut truncated_tokens = questions.truncated_tokens;
        if !self.settings.question_in_state {
            let text = self.state_text(None, state);
            let tokens = tokenizer.encode(&text, room, meter)?;
            return Ok(Plan {
                state: vec![self.state_row(&tokens.ids)],
                questions: Arc::clone(&questions.rows),
                truncated_tokens: truncated_tokens + tokens.left_out,
            });
        }
        let mut encoder = Encoder::new(tokenizer, meter);
        let mut with_state = Vec::with_capacity(questions.rows.len());
        let pairs = questions.rows.iter().zip(questions.texts.iter());
        for (index, (question, text)) in pairs.enumerate() {
            let text = self.state_text(Some(text), state);
            // The state's tokens count once.
            let tokens = match index {
                0 => encoder.tokens(&text, room)?,
                _ => encoder.uncounted(&text, room)?,
            };
            truncated_tokens += tokens.left_out;
            let mut rows = vec![self.state_row(&tokens.ids)];
            rows.extend_from_slice(&question.rows);
            with_state.push(QuestionRows {
                kind: question.kind,
                outcomes: question.outcomes,
                rows,
            });
        }
        Ok(Plan {
            state: Vec::new(),
            questions: with_state.into(),
            truncated_tokens,
        })
    }

    fn inputs<'r>(&self, row: &'r Row) -> Vec<(&'static str, Input<'r>)> {
        vec![
            ("input_ids", Input::row(&row.ids)),
            ("attention_mask", Input::row(vec![1; row.ids.len()])),
        ]
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        Some(&self.scorer)
    }
}

/// The scorer of the tokens of options, and the head that reads its scores of levels.
struct TokenScorer {
    interface: Interface,
    ordinal: Ordinal,
}

impl TokenScorer {
    /// Returns the logarithm of each level's probability: the levels lie between thresholds, and the
    /// question has a place among them.
    fn levels(&self, scores: &[f32], z: &[f32]) -> Result<Vec<f32>, Error> {
        let head = &self.ordinal;
        let (count, width) = (scores.len(), head.ord_g_w.len());
        if z.len() != count * width {
            return Err(wrong_count("vectors of levels", z.len() / width, count));
        }
        let dot = |vector: &mut dyn Iterator<Item = f64>, weights: &[f64]| -> f64 {
            vector
                .zip(weights)
                .map(|(value, weight)| value * weight)
                .sum()
        };
        let scaled = scores
            .iter()
            .map(|score| f64::from(*score) / head.temperature);
        let shares = softmax(&scaled.collect::<Vec<_>>());
        let levels = shares
            .iter()
            .zip(0..)
            .map(|(share, level)| share * f64::from(level));
        let expected = levels.sum::<f64>() - (count as f64 - 1.0) / 2.0;
        let mean = |column: usize| {
            let values = z.iter().skip(column).step_by(width);
            values.map(|value| f64::from(*value)).sum::<f64>() / count as f64
        };
        let place = dot(&mut (0..width).map(mean), &head.ord_g_w) + head.ord_g_b + expected;
        let gaps = z.chunks_exact(width).map(|level| {
            let values = &mut level.iter().map(|value| f64::from(*value));
            softplus(dot(values, &head.ord_gap_w) + head.ord_gap_b) + LEAST_GAP
        });
        let gaps: Vec<f64> = gaps.collect();
        let middle = gaps.iter().sum::<f64>() / 2.0;
        let mut threshold = -middle;
        let mut above = 1.0;
        let mut probabilities = Vec::with_capacity(count);
        for gap in &gaps[..count - 1] {
            threshold += gap;
            let next = 1.0 / (1.0 + (threshold - place).exp());
            probabilities.push(above - next);
            above = next;
        }
        probabilities.push(above);
        let logarithms = probabilities
            .iter()
            .map(|p| p.max(LEAST_PROBABILITY).ln() as f32);
        Ok(logarithms.collect())
    }
}

/// Returns `ln(1 + exp(value))`.
fn softplus(value: f64) -> f64 {
    value.max(0.0) + (-value.abs()).exp().ln_1p()
}

fn softmax(values: &[f64]) -> Vec<f64> {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shares: Vec<f64> = values.iter().map(|value| (value - most).exp()).collect();
    let sum: f64 = shares.iter().sum();
    shares.into_iter().map(|share| share / sum).collect()
}

impl Scorer for TokenScorer {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn inputs<'r>(
        &self,
        state: &'r KvCache,
        options: &'r [Arc<KvCache>],
    ) -> Result<Vec<(&'static str, Input<'r>)>, Error> {
        let (state, width) = state.states()?;
        let options = options.iter().map(|option| option.states());
        let options = options.collect::<Result<Vec<_>, _>>()?;
        let tokens = |floats: &[f32]| floats.len() / width.max(1);
        let longest = options.iter().map(|(option, _)| tokens(option)).max();
        let longest = longest.unwrap_or(0);
        let mut all = vec![0.0; options.len() * longest * width];
        let mut mask = vec![0; options.len() * longest];
        for (index, (option, _)) in options.iter().enumerate() {
            let start = index * longest;
            all[start * width..][..option.len()].copy_from_slice(option);
            mask[start..][..tokens(option)].fill(1);
        }
        Ok(vec![
            (
                "state_h",
                Input::Floats {
                    values: state.into(),
                    shape: vec![1, tokens(state), width],
                },
            ),
            ("state_mask", Input::row(vec![1; tokens(state)])),
            (
                "choice_h",
                Input::Floats {
                    values: all.into(),
                    shape: vec![options.len(), longest, width],
                },
            ),
            (
                "choice_mask",
                Input::Table {
                    values: mask,
                    rows: options.len(),
                },
            ),
        ])
    }

    fn logits(&self, kind: Kind, count: usize, outputs: Vec<Vec<f32>>) -> Result<Vec<f32>, Error> {
        let mut outputs = outputs.into_iter();
        let scores = outputs.next().unwrap_or_default();
        if scores.len() != count {
            return Err(wrong_count("scores", scores.len(), count));
        }
        match kind {
            Kind::Score => self.levels(&scores, &outputs.next().unwrap_or_default()),
            Kind::Choice | Kind::Noul => Ok(scores),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::testing::published_tokenizer;
    use crate::stop::Stop;

    fn tokenizer() -> Tokenizer {
        published_tokenizer("decima-bare/onnx/fp32/tokenizer/tokenizer.json")
    }

    fn settings() -> Settings {
        let settings = r#"{"max_state_tokens": 32, "max_choice_tokens": 12, "choice_prefix": "", "ordinal": {
            "ord_g_w": [1, 0], "ord_g_b": 0.5, "ord_gap_w": [0, 1], "ord_gap_b": 0}}"#;
        serde_json::from_str(settings).expect("settings")
    }

    fn noul(yes: Option<&str>, no: Option<&str>) -> Question {
        let side = |name: &str, text: Option<&str>| Outcome {
            name: name.into(),
            text: text.map(str::to_owned),
            legend: None,
        };
        Question {
            id: String::new(),
            kind: Kind::Noul,
            instructions: "Is it late?".into(),
            outcomes: vec![side("false", no), side("true", yes)],
        }
    }

    #[test]
    fn the_sides_of_a_noul_stand_in_its_question() {
        let text = |yes, no| question_text(&noul(yes, no)).into_owned();
        assert_eq!(text(None, None), "Is it late?");
        assert_eq!(text(Some(" "), Some("\u{1c}")), "Is it late?");
        assert_eq!(
            text(Some(" it is\u{1f}"), None),
            "Is it late?\nTrue if: it is\nFalse if: —"
        );
    }

    #[test]
    fn texts_are_composed_and_stripped_as_python_does() {
        assert_eq!(
            normalized("\u{1d}\u{2003}e\u{301} \u{200b}\n"),
            "é \u{200b}"
        );
        assert!(matches!(normalized("é "), Cow::Borrowed("é")));
        let found: Vec<_> = words("a\u{1c}b\u{a0}\u{200b}c  d").collect();
        assert_eq!(found, ["a", "b", "\u{200b}c", "d"]);
    }

    /// Returns the tokens of two options of a question, and the number of tokens that are cut.
    fn options(settings: Settings, question: &str, options: [&str; 2]) -> ([Vec<i64>; 2], usize) {
        let tokenizer = tokenizer();
        let stop = Stop::never();
        let mut meter = Meter::new(usize::MAX, &stop);
        let mut encoder = Encoder::new(&tokenizer, &mut meter);
        let layout = LateInteraction::new(settings, tokenizer.frame().expect("a frame"));
        let found = layout.options(&mut encoder, question, &options.map(str::to_owned));
        let found = found.expect("tokens").try_into().expect("two options");
        (found, encoder.truncated_tokens)
    }

    fn tokens(text: &str) -> Vec<i64> {
        let stop = Stop::never();
        let tokens = tokenizer().encode(text, 1000, &mut Meter::new(usize::MAX, &stop));
        tokens.expect("tokens").ids
    }

    #[test]
    fn an_option_is_cut_at_its_end_unless_two_options_would_then_be_the_same() {
        let long = "the customer was charged twice and nobody answers the phone";
        let (whole, cut) = options(settings(), "why", ["late", "paid"]);
        assert_eq!((whole, cut), ([tokens("why late"), tokens("why paid")], 0));
        let ([first, second], cut) = options(settings(), "why", [&format!("a {long}"), "b"]);
        let all = tokens(&format!("why a {long}"));
        assert_eq!((&first[..], second), (&all[..10], tokens("why b")));
        assert_eq!(cut, all.len() - 10);
        let ([first, second], _) = options(settings(), long, ["late", "paid"]);
        for (option, name) in [(&first, "late"), (&second, "paid")] {
            let fits = (0..).map(|count| long.split(' ').take(count).collect::<Vec<_>>().join(" "));
            let fits = fits.map(|head| tokens(&format!("{head} … {name}")));
            let longest = fits.take_while(|tokens| tokens.len() <= 10).last();
            assert_eq!(option, &longest.expect("it fits"));
        }
    }

    #[test]
    fn an_option_that_fits_by_the_settings_stays_whole_and_counts_what_its_question_loses() {
        let fit = Settings {
            choice_fit: true,
            ..settings()
        };
        let long = "the customer was charged twice and nobody answers the phone";
        let ([first, second], cut) = options(fit.clone(), long, ["late", "x"]);
        assert!(first.ends_with(&tokens("… late")[1..]) && second.len() <= 10);
        let whole = |name: &str| tokens(&format!("{long} {name}")).len();
        assert_eq!(cut, whole("late") + whole("x") - first.len() - second.len());
        let ([first, _], _) = options(fit, "charged", [long, "x"]);
        assert_eq!(first, tokens(long)[..10]);
    }

    #[test]
    fn the_levels_lie_between_thresholds() {
        let layout = LateInteraction::new(settings(), Frame::default());
        let softplus = |value: f64| value.exp().ln_1p();
        let (scores, z) = ([1.0, 0.0, -1.0], [0.5, 0.1, -0.5, 0.2, 0.3, -0.4]);
        let got = layout.scorer.levels(&scores, &z).expect("levels");
        let sum = 1.0 + 1_f64.exp() + (-1_f64).exp();
        let expected = (1.0 + 2.0 * (-1_f64).exp()) / sum - 1.0;
        let place = (0.5 - 0.5 + 0.3) / 3.0 + 0.5 + expected;
        let gaps = [0.1, 0.2, -0.4].map(|gap| softplus(gap) + 1e-3);
        let half = gaps.iter().sum::<f64>() / 2.0;
        let above =
            [gaps[0], gaps[0] + gaps[1]].map(|sum| 1.0 / (1.0 + (sum - half - place).exp()));
        let levels = [1.0 - above[0], above[0] - above[1], above[1]];
        for (got, level) in got.iter().zip(levels) {
            assert!((f64::from(got.exp()) - level).abs() < 1e-6, "{got} {level}");
        }
        let error = layout.scorer.levels(&scores, &z[..4]).expect_err("too few");
        assert_eq!(error.code(), "model_failed");
    }

    #[test]
    fn settings_that_cannot_work_are_named() {
        let key = |settings: &Settings| settings.problem(2).map(|(key, _)| key);
        assert_eq!(key(&settings()), None);
        let mut bad = settings();
        bad.max_choice_tokens = 3;
        assert_eq!(key(&bad), Some("max_choice_tokens"));
        for spoil in [
            |head: &mut Ordinal| head.ord_g_w.push(1.0),
            |head: &mut Ordinal| head.ord_gap_b = f64::NAN,
            |head: &mut Ordinal| head.temperature = 0.0,
        ] {
            let mut bad = settings();
            spoil(&mut bad.ordinal);
            assert_eq!(key(&bad), Some("ordinal"));
        }
    }
}
