//! The `spans` layout of open-jev: a row holds the state and then questions with their options, and
//! the logit of an option is made from the tokens of its text and of its question's instructions.

use std::borrow::Cow;

use serde::Deserialize;

use super::scored::wrong_count;
use super::{
    EncodedQuestions, Encoder, Layout, MAX_LENGTH, Plan, QuestionRows, Row, StateJson, encode_each,
    fits, too_long,
};
use crate::Error;
use crate::decode::Logits;
use crate::question::{Kind, Outcome, Question, State};
use crate::session::{Input, Interface, Outputs};
use crate::tokenize::{Meter, Tokenizer, Tokens};

/// The tokens of a row that belong to no question: `CLS STATE` and `SEP`.
const FIXED: usize = 3;
/// The span of tokens that belong to no text of a question.
const NO_SPAN: i64 = -1;
/// The span of a question's instructions until the number of all options in its row is known.
const HEAD: i64 = -2;

/// The settings of the layout in `config.json`. Lengths are in tokens.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    /// The length of a row, special tokens included.
    #[serde(default = "default_max_len")]
    pub max_len: usize,
    /// The length of a state, before it is cut to what a row has room for.
    #[serde(default = "default_state_max")]
    pub state_max: usize,
    /// Whether all questions of a request share one row.
    #[serde(default)]
    pub packed: bool,
    /// The spelling of a state that is JSON.
    #[serde(default)]
    pub state_json: StateJson,
}

fn default_max_len() -> usize {
    512
}

fn default_state_max() -> usize {
    256
}

impl Settings {
    /// Returns the first setting that cannot work and the requirement that it breaks.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let lengths = [("max_len", self.max_len), ("state_max", self.state_max)];
        too_long(&lengths, MAX_LENGTH)
    }
}

/// The tokens between the texts of a row.
struct Marks {
    cls: i64,
    sep: i64,
    state: i64,
    question: i64,
    option: i64,
}

/// The layout with a model's settings.
pub struct Spans {
    settings: Settings,
    marks: Marks,
    interface: Interface,
}

impl Spans {
    /// The tokens that no text may spell.
    pub const MARKS: [&str; 5] = ["[CLS]", "[SEP]", "[STATE]", "[Q]", "[OPT]"];

    /// Returns the layout of a model with these settings and this tokenizer.
    ///
    /// # Errors
    /// The first thing that the tokenizer lacks, in one line.
    pub fn new(settings: Settings, tokenizer: &Tokenizer) -> Result<Self, String> {
        let mut ids = [0; Self::MARKS.len()];
        for (id, mark) in ids.iter_mut().zip(Self::MARKS) {
            let found = tokenizer.special(mark);
            *id = found
                .ok_or_else(|| format!("added_tokens: no token \"{mark}\""))?
                .id;
        }
        let [cls, sep, state, question, option] = ids;
        let inputs = ["input_ids", "attention_mask", "seg", "pair_q", "pair_opt"];
        Ok(Self {
            settings,
            marks: Marks {
                cls,
                sep,
                state,
                question,
                option,
            },
            interface: Interface {
                inputs: inputs.map(Cow::Borrowed).to_vec(),
                action_is_optional: true,
                ..Interface::default()
            },
        })
    }

    /// Returns a row of some questions and the state, of which it leaves out the beginning where
    /// it has no room for all; and the number of tokens that are left out of the state.
    fn row(&self, questions: &[QuestionRows], state: &Tokens) -> Result<(Row, usize), Error> {
        let marks = &self.marks;
        let parts = questions.iter().flat_map(|question| &question.rows);
        let tokens = FIXED + parts.clone().map(|part| part.ids.len()).sum::<usize>();
        fits(tokens, self.settings.max_len)?;
        let kept = state.ids.len().min(self.settings.max_len - tokens);
        let beyond = state.ids.len() - kept;
        let options: usize = parts.clone().map(|part| part.outcomes.len()).sum();
        let mut row = Row {
            ids: vec![marks.cls, marks.state],
            ..Row::default()
        };
        row.ids.reserve_exact(tokens + kept - row.ids.len());
        row.ids.extend_from_slice(&state.ids[beyond..]);
        row.option_ids.resize(row.ids.len(), NO_SPAN);
        for (part, head) in parts.zip(options as i64..) {
            let first = row.head_ids.len() as i64;
            row.ids.extend_from_slice(&part.ids);
            row.option_ids
                .extend(part.option_ids.iter().map(|span| match *span {
                    NO_SPAN => NO_SPAN,
                    HEAD => head,
                    option => first + option,
                }));
            row.head_ids.extend(vec![head; part.outcomes.len()]);
            row.outcomes.extend_from_slice(&part.outcomes);
        }
        row.ids.push(marks.sep);
        row.option_ids.push(NO_SPAN);
        Ok((row, beyond + state.left_out))
    }
}

/// Returns the text of an outcome that the model reads; it reads no descriptions.
fn option_text(kind: Kind, outcome: &Outcome) -> &str {
    match kind {
        Kind::Choice => &outcome.name,
        Kind::Score => outcome.text.as_deref().unwrap_or(&outcome.name),
        Kind::Noul if outcome.name == "true" => "yes",
        Kind::Noul => "no",
    }
}

impl Layout for Spans {
    fn name(&self) -> &'static str {
        "spans"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns the questions' part of the rows, which must leave a row room for nothing but the
    /// state: all of an option is read, or the question is refused.
    fn encode_questions(
        &self,
        tokenizer: &Tokenizer,
        questions: &[Question],
        meter: &mut Meter<'_>,
    ) -> Result<EncodedQuestions, Error> {
        let questions = encode_each(self, tokenizer, questions, meter)?;
        let state = Tokens::default();
        if self.settings.packed {
            self.row(&questions.rows, &state)?;
        } else {
            let each = questions.rows.chunks(1);
            each.map(|question| self.row(question, &state))
                .try_for_each(|row| row.map(|_| ()))?;
        }
        Ok(questions)
    }

    /// Returns a question's part of a row.
    fn question(
        &self,
        encoder: &mut Encoder<'_, '_>,
        question: &Question,
    ) -> Result<QuestionRows, Error> {
        let head = encoder.encode(&question.instructions, usize::MAX)?;
        let mut row = Row {
            ids: vec![self.marks.question],
            option_ids: vec![NO_SPAN],
            ..Row::default()
        };
        row.ids.extend_from_slice(&head);
        row.option_ids.resize(row.ids.len(), HEAD);
        for (index, outcome) in question.outcomes.iter().enumerate() {
            row.ids.push(self.marks.option);
            row.option_ids.push(NO_SPAN);
            row.ids
                .extend(encoder.encode(option_text(question.kind, outcome), usize::MAX)?);
            row.option_ids.resize(row.ids.len(), index as i64);
            row.outcomes.push(index);
        }
        Ok(QuestionRows {
            kind: question.kind,
            outcomes: question.outcomes.len(),
            rows: vec![row],
        })
    }

    /// Returns a row with the state for each question, or one for all of them.
    fn encode_state(
        &self,
        tokenizer: &Tokenizer,
        state: &State,
        questions: &EncodedQuestions,
        meter: &mut Meter<'_>,
    ) -> Result<Plan, Error> {
        let state = self.settings.state_json.text(state);
        let state = tokenizer.encode(&state, self.settings.state_max, meter)?;
        let mut truncated_tokens = questions.truncated_tokens;
        let all = &questions.rows;
        let each = if self.settings.packed { all.len() } else { 1 };
        let mut questions = Vec::with_capacity(all.len());
        for together in all.chunks(each.max(1)) {
            let (row, left_out) = self.row(together, &state)?;
            truncated_tokens += left_out;
            let mut row = Some(row);
            questions.extend(together.iter().map(|question| QuestionRows {
                kind: question.kind,
                outcomes: question.outcomes,
                rows: row.take().into_iter().collect(),
            }));
        }
        Ok(Plan {
            state: Vec::new(),
            questions: questions.into(),
            truncated_tokens,
        })
    }

    fn inputs<'r>(&self, row: &'r Row) -> Vec<(&'static str, Input<'r>)> {
        let options: Vec<i64> = (0..row.head_ids.len() as i64).collect();
        vec![
            ("input_ids", Input::row(&row.ids)),
            ("attention_mask", Input::row(vec![1; row.ids.len()])),
            ("seg", Input::row(&row.option_ids)),
            ("pair_q", Input::row(&row.head_ids)),
            ("pair_opt", Input::row(options)),
        ]
    }

    /// Returns the logits of each question; a row holds those of its questions one after the other.
    fn all_logits(&self, plan: &Plan, outputs: Vec<Outputs>) -> Result<Vec<Logits>, Error> {
        let rows = plan.questions.iter().flat_map(|question| &question.rows);
        let wanted = rows.map(|row| row.outcomes.len());
        for (output, wanted) in outputs.iter().zip(wanted) {
            let got = output.logits.len();
            if got != wanted {
                return Err(wrong_count("logits", got, wanted));
            }
        }
        let mut logits = outputs.into_iter().flat_map(|output| output.logits);
        let questions = plan.questions.iter();
        Ok(questions
            .map(|question| Logits {
                outcomes: logits.by_ref().take(question.outcomes).collect(),
                action: None,
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::testing::{ids_of, published_tokenizer};
    use crate::stop::Stop;

    fn tokenizer() -> Tokenizer {
        published_tokenizer("open-jev/tokenizer.json")
    }

    fn question(kind: Kind, instructions: &str, names: &[&str]) -> Question {
        let outcomes = names.iter().enumerate().map(|(index, name)| Outcome {
            name: match kind {
                Kind::Score => index.to_string(),
                _ => (*name).to_owned(),
            },
            text: Some((*name).to_owned()).filter(|_| kind == Kind::Score),
            legend: None,
        });
        Question {
            id: "q".into(),
            kind,
            instructions: instructions.to_owned(),
            outcomes: outcomes.collect(),
        }
    }

    fn noul() -> Question {
        question(Kind::Noul, "Late?", &["false", "true"])
    }

    fn plan(settings: Settings, state: &str, questions: &[Question]) -> Result<Plan, Error> {
        let (tokenizer, stop) = (tokenizer(), Stop::never());
        let layout = Spans::new(settings, &tokenizer).expect("a layout");
        let mut meter = Meter::new(usize::MAX, &stop);
        let questions = layout.encode_questions(&tokenizer, questions, &mut meter)?;
        layout.encode_state(&tokenizer, &state.to_owned().into(), &questions, &mut meter)
    }

    fn settings(max_len: usize, state_max: usize, packed: bool) -> Settings {
        Settings {
            max_len,
            state_max,
            packed,
            state_json: StateJson::PythonSorted,
        }
    }

    fn ids(parts: &[&str]) -> Vec<i64> {
        ids_of(&tokenizer(), parts)
    }

    /// Returns the spans of parts, each of which has as many tokens as its text.
    fn spans(parts: &[(&str, i64)]) -> Vec<i64> {
        let spans = parts.iter();
        let spans = spans.map(|(part, span)| vec![*span; ids(&[part]).len()]);
        spans.collect::<Vec<_>>().concat()
    }

    #[test]
    fn each_question_has_a_row_of_its_own() {
        let anger = question(Kind::Score, "How angry?", &["calm", "very angry"]);
        let plan = plan(settings(512, 256, false), "late", &[noul(), anger]).expect("a plan");
        let [noul, anger] = [0, 1].map(|at| plan.questions[at].rows[0].clone());
        let start = ["[CLS]", "[STATE]", "late"];
        let rest = ["[Q]", "Late?", "[OPT]", "no", "[OPT]", "yes", "[SEP]"];
        assert_eq!(noul.ids, ids(&[&start[..], &rest].concat()));
        let parts = [
            ("[CLS]", -1),
            ("[STATE]", -1),
            ("late", -1),
            ("[Q]", -1),
            ("Late?", 2),
        ];
        let options = [
            ("[OPT]", -1),
            ("no", 0),
            ("[OPT]", -1),
            ("yes", 1),
            ("[SEP]", -1),
        ];
        assert_eq!(noul.option_ids, spans(&[parts, options].concat()));
        assert_eq!((noul.head_ids, noul.outcomes), (vec![2, 2], vec![0, 1]));
        let rest = [
            "[Q]",
            "How angry?",
            "[OPT]",
            "calm",
            "[OPT]",
            "very angry",
            "[SEP]",
        ];
        assert_eq!(anger.ids, ids(&[&start[..], &rest].concat()));
    }

    #[test]
    fn packed_questions_share_a_row_and_its_numbers() {
        let team = question(Kind::Choice, "Which?", &["tech", "sales", "bank"]);
        let plan = plan(settings(512, 256, true), "late", &[noul(), team]).expect("a plan");
        let [first, second] = [0, 1].map(|at| &plan.questions[at].rows);
        assert_eq!((first.len(), second.len()), (1, 0));
        let row = &first[0];
        let start = [
            "[CLS]", "[STATE]", "late", "[Q]", "Late?", "[OPT]", "no", "[OPT]", "yes",
        ];
        let rest = [
            "[Q]", "Which?", "[OPT]", "tech", "[OPT]", "sales", "[OPT]", "bank", "[SEP]",
        ];
        assert_eq!(row.ids, ids(&[start, rest].concat()));
        let marks = [-1; 9];
        let numbers = [-1, -1, -1, -1, 5, -1, 0, -1, 1];
        let others = [-1, 6, -1, 2, -1, 3, -1, 4, -1];
        assert_eq!(marks.len(), numbers.len());
        let parts = start.iter().zip(numbers).chain(rest.iter().zip(others));
        let parts: Vec<(&str, i64)> = parts.map(|(part, span)| (*part, span)).collect();
        assert_eq!(row.option_ids, spans(&parts));
        assert_eq!(row.head_ids, [5, 5, 6, 6, 6]);
        let outputs = vec![Outputs {
            logits: vec![1.0, 2.0, 3.0, 4.0, 5.0],
            action: None,
        }];
        let layout = Spans::new(settings(512, 256, true), &tokenizer()).expect("a layout");
        let logits = layout.all_logits(&plan, outputs).expect("logits");
        let outcomes = logits.iter().map(|logits| logits.outcomes.clone());
        let outcomes: Vec<Vec<f32>> = outcomes.collect();
        assert_eq!(outcomes, [vec![1.0, 2.0], vec![3.0, 4.0, 5.0]]);
    }

    #[test]
    fn a_row_with_another_number_of_logits_than_options_is_an_error() {
        let plan = plan(settings(512, 256, false), "late", &[noul()]).expect("a plan");
        let layout = Spans::new(settings(512, 256, false), &tokenizer()).expect("a layout");
        let outputs = vec![Outputs {
            logits: vec![1.0],
            action: None,
        }];
        let failed = layout
            .all_logits(&plan, outputs)
            .expect_err("a logit too few");
        assert_eq!(failed.code(), "model_failed");
    }

    #[test]
    fn a_state_loses_its_end_beyond_its_own_limit_and_its_beginning_beyond_the_rows() {
        let state = "one two three four five six";
        let tokens = ids(&[state]);
        let own = plan(settings(512, 256, false), "", &[noul()]).expect("a plan");
        let own = own.questions[0].rows[0].ids.len();
        let kept = |max_len: usize, state_max: usize, questions: &[Question], packed| {
            let plan = plan(settings(max_len, state_max, packed), state, questions);
            let plan = plan.expect("a plan");
            let row = &plan.questions[0].rows[0].ids;
            let end = row.iter().position(|id| *id == ids(&["[Q]"])[0]);
            (
                row[2..end.expect("a question")].to_vec(),
                plan.truncated_tokens,
            )
        };
        let most = tokens.len();
        assert_eq!(kept(512, 256, &[noul()], false), (tokens.clone(), 0));
        assert_eq!(
            kept(512, most - 2, &[noul()], false),
            (tokens[..most - 2].to_vec(), 2)
        );
        let cut = tokens[1..most - 2].to_vec();
        assert_eq!(
            kept(own + most - 3, most - 2, &[noul()], false),
            (cut.clone(), 3)
        );
        assert_eq!(
            kept(own + most - 3, most - 2, &[noul(), noul()], false),
            (cut, 6)
        );
        let two = 2 * own - FIXED;
        assert_eq!(
            kept(two + 1, 256, &[noul(), noul()], true),
            (tokens[most - 1..].to_vec(), most - 1)
        );
    }

    #[test]
    fn options_that_do_not_fit_are_refused_and_never_left_out() {
        let own = plan(settings(512, 256, false), "", &[noul()]).expect("a plan");
        let own = own.questions[0].rows[0].ids.len();
        let refused = |max_len, packed| {
            plan(settings(max_len, 256, packed), "late", &[noul(), noul()]).map(|_| ())
        };
        assert_eq!(refused(own, false), Ok(()));
        let too_long = |limit| Err(Error::BeyondModel { limit });
        assert_eq!(refused(own - 1, false), too_long(own - 1));
        let two = 2 * own - FIXED;
        assert_eq!(refused(two, true), Ok(()));
        assert_eq!(refused(two - 1, true), too_long(two - 1));
    }

    #[test]
    fn special_tokens_in_a_text_are_text() {
        let marks = "[OPT] [Q][STATE] [SEP]";
        let asked = question(Kind::Choice, marks, &[marks, "[OPT]"]);
        let plan = plan(settings(512, 256, false), marks, &[asked]).expect("a plan");
        let row = &plan.questions[0].rows[0];
        let count = |mark| {
            let id = ids(&[mark])[0];
            row.ids.iter().filter(|other| **other == id).count()
        };
        assert_eq!(Spans::MARKS.map(count), [1, 1, 1, 1, 2]);
    }
}
