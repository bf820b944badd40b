//! The inputs of `benches/inputs` as the stages other than the model get them, and those stages.
//! Their results are checked when a case is made, so that no wrong result is measured.

use std::error::Error;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use svc_engine::decode::{Answer, Calibration, Logits};
use svc_engine::layout::shared_state::{Settings, SharedState};
use svc_engine::layout::{Layout, Plan};
use svc_engine::question::{Question, Request};
use svc_engine::stop::Stop;
use svc_engine::tokenize::{Meter, Tokenizer};
use svc_engine::wire::{Most, Usage, systemone};

const STATE_TOKENS: [usize; 3] = [20, 164, 912];
const QUESTIONS: [usize; 2] = [1, 8];

/// A request, and its forms from stage to stage.
pub struct Case {
    /// The name of the case's file, without the ending.
    pub name: String,
    body: String,
    request: Request,
    logits: Vec<Logits>,
    layout: SharedState,
}

impl Case {
    /// Returns every case, the shortest state first.
    ///
    /// # Errors
    /// A file that cannot be read, and a stage with a wrong result.
    pub fn all() -> Result<Vec<Self>, Box<dyn Error>> {
        let tokenizer = tokenizer()?;
        let pairs = STATE_TOKENS.map(|tokens| QUESTIONS.map(|questions| (tokens, questions)));
        let cases = pairs.into_iter().flatten();
        cases
            .map(|(tokens, questions)| Self::read(tokens, questions, &tokenizer))
            .collect()
    }

    fn read(
        tokens: usize,
        questions: usize,
        tokenizer: &Tokenizer,
    ) -> Result<Self, Box<dyn Error>> {
        let name = format!("state-{tokens}-questions-{questions}");
        let input = json(&repository().join(format!("benches/inputs/{name}.json")))?;
        let body = input["body"].as_str().ok_or("no body")?.to_owned();
        let request = systemone::parse(body.as_bytes(), Most::ANY)?;
        let settings = Settings::deserialize(&json(&model().join("config.json"))?)?;
        let case = Self {
            logits: request.questions.iter().map(logits).collect(),
            layout: SharedState::new(settings),
            name,
            body,
            request,
        };
        case.check(&input, tokenizer)?;
        Ok(case)
    }

    fn check(&self, input: &Value, tokenizer: &Tokenizer) -> Result<(), Box<dyn Error>> {
        if plan_ids(&self.encode(tokenizer)?) != input_ids(input) {
            return Err(format!("{}: not the rows of the input", self.name).into());
        }
        let answer: Value = serde_json::from_slice(&self.decode_and_write())?;
        let answers = answer["answers"]
            .as_object()
            .map_or(0, |answers| answers.len());
        if answers != self.request.questions.len() {
            return Err(format!("{}: {answers} answers", self.name).into());
        }
        Ok(())
    }

    /// Parses the bytes into questions.
    ///
    /// # Errors
    /// No error for these inputs.
    pub fn parse(&self) -> Result<Request, svc_engine::Error> {
        systemone::parse(self.body.as_bytes(), Most::ANY)
    }

    /// Encodes the questions as rows of tokens.
    ///
    /// # Errors
    /// No error for these inputs.
    pub fn encode(&self, tokenizer: &Tokenizer) -> Result<Plan, svc_engine::Error> {
        let stop = Stop::never();
        let mut meter = Meter::new(usize::MAX, &stop);
        self.layout.encode(tokenizer, &self.request, &mut meter)
    }

    /// Decodes the logits and returns the bytes of the answer.
    pub fn decode_and_write(&self) -> Vec<u8> {
        let calibration = Calibration {
            temperature: 1.6,
            bias: &[],
        };
        let answers = self.logits.iter();
        let answers = answers.map(|logits| Answer::decode(logits, calibration));
        // An error leaves an answer out, and the check then finds too few.
        let answers: Vec<Answer> = answers.filter_map(Result::ok).collect();
        systemone::write(&self.request.questions, &answers, &Usage::default())
    }
}

/// Returns the embedded model's tokenizer, which has not seen any word yet.
///
/// # Errors
/// A file that cannot be read.
pub fn tokenizer() -> Result<Tokenizer, Box<dyn Error>> {
    let file = model().join("tokenizer.json");
    Ok(Tokenizer::from_bytes(&file, &std::fs::read(&file)?)?)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn model() -> PathBuf {
    repository().join("models/svc-small")
}

fn json(file: &Path) -> Result<Value, Box<dyn Error>> {
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

/// Returns logits that differ from outcome to outcome.
fn logits(question: &Question) -> Logits {
    let outcomes = 0..question.outcomes.len();
    Logits {
        outcomes: outcomes.map(|index| (index as f32).sin()).collect(),
        action: None,
    }
}

/// Returns the token ids of every row, the state's rows first.
fn plan_ids(plan: &Plan) -> Vec<Vec<i64>> {
    let questions = plan.questions.iter().flat_map(|question| &question.rows);
    let rows = plan.state.iter().chain(questions);
    rows.map(|row| row.ids.clone()).collect()
}

fn input_ids(input: &Value) -> Vec<Vec<i64>> {
    let rows = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let questions = rows(&input["rows"]["questions"]);
    let questions = questions
        .iter()
        .flat_map(|question| rows(&question["rows"]));
    let all = rows(&input["rows"]["state"]).into_iter().chain(questions);
    all.map(|row| rows(&row["ids"]).iter().filter_map(Value::as_i64).collect())
        .collect()
}
