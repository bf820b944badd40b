//! What a model runs on: the devices that are tried, and the trial decision that each has to make.

use std::path::Path;

use super::Source;
use crate::Error;
use crate::cache::{Precision, StateCache};
use crate::decode::{Answer, Calibration};
use crate::layout::{Layout, Plan, Runner};
use crate::question::{Kind, Outcome, Question, Request};
use crate::queue::Stop;
use crate::session::{Device, Graph, Sessions};
use crate::tokenize::{Meter, Tokenizer};

/// Opens the sessions on the device that is asked for; `auto` takes the first accelerator that the library offers and
/// that agrees with the processor, else the processor.
pub(super) fn open_sessions(
    source: &Source,
    graph: &Path,
    layout: &dyn Layout,
    tokenizer: &Tokenizer,
) -> Result<(Sessions, Device, Vec<String>), Error> {
    let open = |device| {
        Sessions::open(&Graph {
            runtime: &source.runtime,
            file: graph,
            interface: layout.interface(),
            device,
            threads: source.threads,
        })
    };
    let stop = Stop::never();
    let plan = layout.encode(
        tokenizer,
        &probe_request(),
        &mut Meter::new(usize::MAX, &stop),
    )?;
    let probe = |sessions: &Sessions| probe(layout, sessions, &plan);
    let processor = open(Device::Cpu)?;
    let expected = probe(&processor).map_err(|error| match error {
        Error::ModelFailed { cause } => Error::BadModel {
            file: graph.to_owned(),
            problem: format!("a trial decision failed: {cause}"),
        },
        other => other,
    })?;
    let tried: &[Device] = match source.device.as_str() {
        "cpu" => &[],
        "auto" | "gpu" => &Device::ACCELERATORS,
        "cuda" => &[Device::Cuda],
        "coreml" => &[Device::CoreMl],
        "directml" => &[Device::DirectMl],
        other => {
            return Err(Error::BadDevice {
                device: other.to_owned(),
                problem: "must be one of auto, cpu, gpu, cuda, coreml, directml".into(),
            });
        }
    };
    let mut notes = Vec::new();
    let asked_for = tried.len() == 1;
    for device in tried
        .iter()
        .filter(|device| asked_for || device.is_possible())
    {
        let sessions = open(*device).and_then(|sessions| {
            agree(&probe(&sessions)?, &expected)?;
            Ok(sessions)
        });
        match sessions {
            Ok(sessions) => return Ok((sessions, *device, notes)),
            Err(error) => notes.push(format!("{}: {}", device.name(), reason(&error))),
        }
    }
    if matches!(source.device.as_str(), "auto" | "cpu") {
        return Ok((processor, Device::Cpu, notes));
    }
    Err(Error::BadDevice {
        device: source.device.clone(),
        problem: notes.join("; "),
    })
}

/// What went wrong, without the file that it went wrong with.
fn reason(error: &Error) -> String {
    match error {
        Error::BadModel { problem, .. } => problem.clone(),
        Error::ModelFailed { cause } => cause.clone(),
        other => other.to_string(),
    }
}

/// Probabilities of the probe may differ so much between two devices.
const AGREEMENT: f64 = 0.01;

fn agree(got: &[Vec<f64>], expected: &[Vec<f64>]) -> Result<(), Error> {
    let pairs = got.iter().flatten().zip(expected.iter().flatten());
    let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    if worst <= AGREEMENT {
        return Ok(());
    }
    Err(Error::ModelFailed {
        cause: format!("a probe's probabilities are off by {worst:.3} from the processor's"),
    })
}

fn probe(layout: &dyn Layout, sessions: &Sessions, plan: &Plan) -> Result<Vec<Vec<f64>>, Error> {
    let runner = Runner {
        layout,
        sessions,
        cache: &StateCache::new(0, Precision::default(), ""),
    };
    let logits = runner.run(plan, &Stop::never())?;
    let calibration = Calibration {
        temperature: 1.0,
        bias: &[],
    };
    logits
        .iter()
        .map(|logits| {
            let answer = Answer::decode(logits, calibration)?;
            Ok((0..logits.outcomes.len())
                .map(|index| answer.probability(index))
                .collect())
        })
        .collect()
}

/// One question of each type on a short state.
fn probe_request() -> Request {
    let outcome = |name: &str, text: Option<&str>| Outcome {
        name: name.to_owned(),
        text: text.map(str::to_owned),
        legend: None,
    };
    let question = |kind: Kind, instructions: &str, outcomes: Vec<Outcome>| Question {
        id: String::new(),
        kind,
        instructions: instructions.to_owned(),
        outcomes,
    };
    Request {
        state: "The parcel arrived crushed and I want my money back.".to_owned(),
        questions: vec![
            question(
                Kind::Noul,
                "Is the customer angry?",
                vec![outcome("false", None), outcome("true", None)],
            ),
            question(
                Kind::Choice,
                "Which team?",
                vec![
                    outcome("refunds", Some("money back")),
                    outcome("login", Some("passwords")),
                    outcome("parcels", None),
                ],
            ),
            question(
                Kind::Score,
                "How urgent is it?",
                vec![outcome("0", Some("low")), outcome("1", Some("high"))],
            ),
        ],
    }
}
