//! The stages of a request that are not the model, on the inputs of `benches/inputs` and the embedded model's folder:
//! parse, encode, and decode with write. `cargo bench -p svc-engine` prints them, once their results are what they
//! must be.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;

use criterion::Criterion;
use serde::Deserialize;
use serde_json::Value;
use svc_engine::decode::{Answer, Calibration, Logits};
use svc_engine::layout::shared_state::{Settings, SharedState};
use svc_engine::layout::{Layout, Plan};
use svc_engine::question::{Question, Request};
use svc_engine::queue::Stop;
use svc_engine::tokenize::{Meter, Tokenizer};
use svc_engine::wire::systemone::{self, Usage};

const STATE_TOKENS: [usize; 3] = [20, 164, 912];
const QUESTIONS: [usize; 2] = [1, 8];

fn main() -> Result<(), Box<dyn Error>> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let model = repository.join("models/svc-small");
    let file = model.join("tokenizer.json");
    let tokenizer = Tokenizer::from_bytes(&file, &std::fs::read(&file)?)?;
    let stop = Stop::never();
    let layout = SharedState::new(Settings::deserialize(&json(&model.join("config.json"))?)?);
    let mut criterion = Criterion::default().configure_from_args();
    for tokens in STATE_TOKENS {
        for questions in QUESTIONS {
            let name = format!("state-{tokens}-questions-{questions}");
            let input = json(&repository.join(format!("benches/inputs/{name}.json")))?;
            let body = input["body"].as_str().ok_or("no body")?;
            let request = systemone::parse(body.as_bytes(), questions)?;
            let encode = |request: &Request| {
                let mut meter = Meter::new(usize::MAX, &stop);
                layout.encode(&tokenizer, request, &mut meter)
            };
            let plan = encode(&request)?;
            assert_eq!(
                plan_ids(&plan),
                input_ids(&input),
                "{name}: not the rows of the input"
            );
            measure(&mut criterion, &name, body.as_bytes(), &request, &encode);
        }
    }
    criterion.final_summary();
    Ok(())
}

fn json(file: &Path) -> Result<Value, Box<dyn Error>> {
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

/// The token ids of every row, the state's first.
fn plan_ids(plan: &Plan) -> Vec<Vec<i64>> {
    let questions = plan.questions.iter().flat_map(|question| &question.rows);
    plan.state
        .iter()
        .chain(questions)
        .map(|row| row.ids.clone())
        .collect()
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

fn measure(
    criterion: &mut Criterion,
    name: &str,
    body: &[u8],
    request: &Request,
    encode: &dyn Fn(&Request) -> Result<Plan, svc_engine::Error>,
) {
    let logits: Vec<Logits> = request.questions.iter().map(logits).collect();
    let written = decode_and_write(&request.questions, &logits);
    assert!(serde_json::from_slice::<Value>(&written).is_ok_and(|answer| answer["model"] == "svc"));
    let mut group = criterion.benchmark_group(name);
    group.bench_function("parse", |bencher| {
        bencher.iter(|| systemone::parse(black_box(body), request.questions.len()));
    });
    group.bench_function("encode", |bencher| {
        bencher.iter(|| encode(black_box(request)))
    });
    group.bench_function("decode and write", |bencher| {
        bencher.iter(|| decode_and_write(black_box(&request.questions), black_box(&logits)));
    });
    group.finish();
}

/// Logits that differ from outcome to outcome.
fn logits(question: &Question) -> Logits {
    Logits {
        outcomes: (0..question.outcomes.len())
            .map(|index| (index as f32).sin())
            .collect(),
        action: None,
    }
}

fn decode_and_write(questions: &[Question], logits: &[Logits]) -> Vec<u8> {
    let calibration = Calibration {
        temperature: 1.6,
        bias: &[],
    };
    let answers = logits
        .iter()
        .map(|logits| Answer::decode(logits, calibration));
    // An error leaves an answer out, and then the body is not what it must be.
    let answers: Vec<Answer> = answers.filter_map(Result::ok).collect();
    systemone::write(questions, &answers, &Usage::default())
}
