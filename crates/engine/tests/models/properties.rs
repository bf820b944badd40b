//! The properties that hold for every request: sums, order, neighbours, threads, and bytes from
//! anywhere.

use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::common::{answer, answers, decide, engine, fixture, golden};
use proptest::prelude::*;
use serde_json::{Value, json};
use svc_engine::engine::Engine;

static SHARED: LazyLock<Engine> = LazyLock::new(|| engine(&fixture("shared-state"), 2));
static SHARED_ONE_THREAD: LazyLock<Engine> = LazyLock::new(|| engine(&fixture("shared-state"), 1));
static SHARED_INT8: LazyLock<Engine> = LazyLock::new(|| engine(&fixture("shared-state-int8"), 2));
static MARKER: LazyLock<Engine> = LazyLock::new(|| engine(&fixture("marker"), 2));
static PAIR: LazyLock<Engine> = LazyLock::new(|| engine(&fixture("pair-deberta"), 2));

fn engines() -> [&'static Engine; 4] {
    [&SHARED, &SHARED_INT8, &MARKER, &PAIR]
}

/// Generates texts of words that the tiny tokenizers know, words that they do not know, special
/// tokens and oddities.
fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => "[a-z]{1,9}",
        2 => prop::sample::select(vec!["charged", "twice", "refund", "order", "12", "3.5"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["[MASK]", "[SEP]", "[CLS]", "é", "日本", "😀", "\n", "\"", "\\", "   "]).prop_map(str::to_owned),
    ];
    prop::collection::vec(word, 0..30).prop_map(|words| words.join(" "))
}

#[derive(Debug, Clone)]
struct Asked {
    id: String,
    kind: &'static str,
    instructions: String,
    outcomes: Vec<(String, String)>,
}

impl Asked {
    fn json(&self) -> String {
        let criteria = match self.kind {
            "choice" => object(
                self.outcomes
                    .iter()
                    .map(|(name, text)| (name.as_str(), json!(text).to_string())),
            ),
            "score" => json!(
                self.outcomes
                    .iter()
                    .map(|(_, text)| text)
                    .collect::<Vec<_>>()
            )
            .to_string(),
            _ => "null".to_owned(),
        };
        let instructions = json!(self.instructions);
        format!(
            r#"{{"type":"{}","instructions":{instructions},"criteria":{criteria}}}"#,
            self.kind
        )
    }
}

fn object<'a>(members: impl Iterator<Item = (&'a str, String)>) -> String {
    let members: Vec<String> = members
        .map(|(key, value)| format!("{}:{value}", json!(key)))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn body(state: &str, questions: &[Asked]) -> String {
    let questions = object(
        questions
            .iter()
            .map(|asked| (asked.id.as_str(), asked.json())),
    );
    format!(r#"{{"state":{},"questions":{questions}}}"#, json!(state))
}

fn question() -> impl Strategy<Value = Asked> {
    let kind = prop::sample::select(vec!["choice", "score", "noul"]);
    let outcomes = prop::collection::btree_map("[a-z0-9 ]{1,8}", "[a-z ]{0,12}", 2..9);
    (kind, text(), outcomes, any::<u32>()).prop_map(|(kind, instructions, outcomes, salt)| {
        let mut outcomes: Vec<(String, String)> = outcomes.into_iter().collect();
        let turn = salt as usize % outcomes.len();
        outcomes.rotate_left(turn);
        Asked {
            id: format!("q{salt}"),
            kind,
            instructions,
            outcomes,
        }
    })
}

/// Generates two to six questions with different ids.
fn questions() -> impl Strategy<Value = Vec<Asked>> {
    prop::collection::vec(question(), 2..7).prop_map(|mut questions| {
        for (index, asked) in questions.iter_mut().enumerate() {
            let _ = write!(asked.id, "-{index}");
        }
        questions
    })
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        cases: count,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn a_question_is_answered_the_same_alone_and_among_others_in_any_order(
        state in text(), questions in questions(),
    ) {
        for engine in engines() {
            let together = answer(engine, &body(&state, &questions));
            let mut turned = questions.clone();
            turned.reverse();
            let reversed = answer(engine, &body(&state, &turned));
            for asked in &questions {
                let alone = answer(engine, &body(&state, std::slice::from_ref(asked)));
                let alone = &alone["answers"][&asked.id];
                prop_assert_eq!(&together["answers"][&asked.id], alone);
                prop_assert_eq!(&reversed["answers"][&asked.id], alone);
            }
        }
    }

    #[test]
    fn an_id_never_reaches_the_model(state in text(), asked in question(), id in ".{0,20}") {
        for engine in engines() {
            let renamed = Asked { id: id.clone(), ..asked.clone() };
            let first = answer(engine, &body(&state, std::slice::from_ref(&asked)));
            let second = answer(engine, &body(&state, &[renamed]));
            prop_assert_eq!(&first["answers"][&asked.id], &second["answers"][&id]);
        }
    }

    #[test]
    fn the_order_of_options_changes_no_bit(state in text(), asked in question()) {
        let asked = Asked { kind: "choice", ..asked };
        let mut turned = asked.clone();
        turned.outcomes.reverse();
        for engine in [&*SHARED, &*SHARED_INT8] {
            let first = answer(engine, &body(&state, std::slice::from_ref(&asked)));
            let second = answer(engine, &body(&state, &[turned.clone()]));
            let (first, second) = (&first["answers"][&asked.id], &second["answers"][&asked.id]);
            for (name, _) in &asked.outcomes {
                let [a, b] = [first, second].map(|answer| answer["probabilities"][name].as_f64());
                // The logits have the same bits; rounding to millionths may give the last millionth
                // to another option.
                prop_assert!((a.expect("a number") - b.expect("a number")).abs() < 1.5e-6);
            }
            prop_assert_eq!(&first["action"], &second["action"]);
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit(state in text(), questions in questions()) {
        let body = body(&state, &questions);
        prop_assert_eq!(answers(&SHARED, &body), answers(&SHARED_ONE_THREAD, &body));
    }

    #[test]
    fn probabilities_sum_to_one_and_the_rest_follows_from_them(state in text(), questions in questions()) {
        for engine in engines() {
            let got = answer(engine, &body(&state, &questions));
            for asked in &questions {
                check_answer(asked, &got["answers"][&asked.id]);
            }
        }
    }

    #[test]
    fn leaving_an_option_out_rescales_the_others(state in text(), asked in question()) {
        prop_assume!(asked.outcomes.len() > 2);
        let asked = Asked { kind: "choice", ..asked };
        let mut fewer = asked.clone();
        fewer.outcomes.pop();
        let all = answer(&SHARED, &body(&state, std::slice::from_ref(&asked)));
        let some = answer(&SHARED, &body(&state, std::slice::from_ref(&fewer)));
        let p = |answer: &Value, name: &str| answer["answers"][&asked.id]["probabilities"][name].as_f64().expect("p");
        let kept: f64 = fewer.outcomes.iter().map(|(name, _)| p(&all, name)).sum();
        prop_assume!(kept > 0.1);
        for (name, _) in &fewer.outcomes {
            prop_assert!((p(&all, name) / kept - p(&some, name)).abs() < 3e-5);
        }
    }
}

fn check_answer(asked: &Asked, answer: &Value) {
    let names: Vec<String> = match asked.kind {
        "choice" => asked
            .outcomes
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
        "score" => (0..asked.outcomes.len())
            .map(|level| level.to_string())
            .collect(),
        _ => vec!["false".into(), "true".into()],
    };
    let p: Vec<f64> = names
        .iter()
        .map(|name| answer["probabilities"][name].as_f64().expect("p"))
        .collect();
    assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{answer}");
    let count = p.len() as f64;
    let top = p.iter().copied().fold(0.0, f64::max);
    assert_eq!(answer["answer_confidence"].as_f64(), Some(top));
    let mut confidence = (top - 1.0 / count) / (1.0 - 1.0 / count);
    match asked.kind {
        "choice" => {
            let chosen = answer["choice"].as_str().expect("a name");
            assert!((answer["probabilities"][chosen].as_f64().expect("p") - top).abs() < 1e-9);
        }
        "score" => {
            let score: f64 = p
                .iter()
                .zip(0..)
                .map(|(p, level)| p * f64::from(level))
                .sum();
            assert!((answer["score"].as_f64().expect("a score") - score).abs() < 1e-6);
            let k = p.iter().position(|p| *p == top).expect("the top") as f64;
            let spread: f64 = p
                .iter()
                .zip(0..)
                .map(|(p, level)| p * (f64::from(level) - k).abs())
                .sum();
            let middle = (count - 1.0) / 2.0;
            let blind = (0..p.len())
                .map(|level| (level as f64 - middle).abs())
                .sum::<f64>()
                / count;
            confidence = (1.0 - spread / blind).max(0.0);
            assert_eq!(
                answer["legend"]["0"].as_str(),
                Some(asked.outcomes[0].1.as_str())
            );
        }
        _ => assert_eq!(answer["noul"], answer["probabilities"]["true"]),
    }
    assert!(
        (answer["confidence"].as_f64().expect("a number") - confidence).abs() < 2e-6,
        "{answer}"
    );
}

/// A generator of numbers (xorshift64*), so that a run can be repeated from its seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % below
    }
}

/// Returns a damaged copy of a valid body: bytes are changed, cut out, doubled, or replaced by
/// pieces of JSON.
fn damage(body: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    const PIECES: [&[u8]; 16] = [
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b"\\",
        b",",
        b":",
        b"null",
        b"true",
        b"-1e9",
        b"\"state\":1,",
        b"\xff",
        b"\\ud800",
        b"\"criteria\":{\"a\":1}",
        b"{\"type\":\"noul\"}",
    ];
    let mut out = body.to_vec();
    for _ in 0..=numbers.next(4) {
        let (at, length) = (numbers.next(out.len() + 1), numbers.next(12));
        let end = (at + length).min(out.len());
        let piece: Vec<u8> = match numbers.next(4) {
            0 => PIECES[numbers.next(PIECES.len())].to_vec(),
            1 => vec![numbers.next(256) as u8; 1 + numbers.next(3)],
            2 => Vec::new(),
            _ => out[at..end].repeat(2),
        };
        out.splice(at..end, piece);
    }
    out
}

#[test]
fn bytes_from_anywhere_are_answered_or_refused_as_the_callers_fault() {
    // The test sends 10,000 bodies; SVC_FUZZ_BODIES sets another number.
    let count = std::env::var("SVC_FUZZ_BODIES")
        .ok()
        .and_then(|count| count.parse().ok());
    let bodies: Vec<String> = golden(&fixture("shared-state"))
        .iter()
        .map(|line| line["body"].as_str().expect("a body").to_owned())
        .filter(|body| body.len() < 2_000)
        .collect();
    let mut numbers = Numbers(0x5EED);
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..count.unwrap_or(10_000) {
        let valid = &bodies[numbers.next(bodies.len())];
        let body = damage(valid.as_bytes(), &mut numbers);
        match decide(&SHARED, &body) {
            Ok(_) => answered += 1,
            Err(error) => {
                let theirs = !matches!(
                    error.code(),
                    "model_failed" | "panicked" | "closing" | "cancelled"
                );
                assert!(theirs, "{error}: {:?}", String::from_utf8_lossy(&body));
                assert!(!error.to_string().contains('\n'));
                refused += 1;
            }
        }
    }
    assert!(
        answered > 0 && refused > 0,
        "{answered} answered, {refused} refused"
    );
}
