//! The devices that a model runs on: which ones are tried, and the trial decision that each has to
//! make.

use std::path::Path;

use super::Source;
use super::folder::Folder;
use crate::Error;
use crate::cache::{Precision, StateCache};
use crate::decode::{Answer, Calibration};
use crate::layout::{Layout, Plan, Runner};
use crate::question::{Kind, Outcome, Question, Request};
use crate::session::{Device, Graph, Second, Sessions};
use crate::stop::Stop;
use crate::tokenize::{Meter, Tokenizer};

/// Opens the sessions on the device that is asked for; `auto` takes the first accelerator that the
/// library offers and whose probabilities agree with the processor's, else the processor.
pub(super) fn open_sessions(
    source: &Source,
    folder: &Folder,
    (graph, second): (&Path, &Second<'_>),
    layout: &dyn Layout,
    tokenizer: &Tokenizer,
) -> Result<(Sessions, Device, Vec<String>), Error> {
    let wanted = Wanted::of(&source.device)?;
    let stop = Stop::never();
    let failed = |error| match error {
        Error::ModelFailed { cause } => Error::BadModel {
            file: graph.to_owned(),
            problem: format!("a trial decision failed: {cause}"),
        },
        other => other,
    };
    let plan = probe_plan(layout, tokenizer, &stop).map_err(failed)?;
    let chosen = wanted.choose(|device| {
        // Without this check the library would look for files that its own build does not have.
        if device != Device::Cpu && !device.is_built_in() {
            return Err(Error::ModelFailed {
                cause: "this ONNX Runtime was built without it; the setting runtime names a build that has it"
                    .into(),
            });
        }
        let sessions = Sessions::open(&Graph {
            runtime: &source.runtime,
            file: graph,
            second,
            interface: layout.interface(),
            device,
            threads: source.threads,
            parallel: source.parallel,
            may_round_otherwise: folder.may_round_otherwise(),
        })?;
        let probabilities = probe(layout, &sessions, &plan)?;
        Ok((sessions, probabilities))
    });
    chosen.map_err(failed)
}

/// The devices that the settings ask for.
struct Wanted<'a> {
    name: &'a str,
    /// The devices that are tried besides the processor, in this order.
    tried: Vec<Device>,
    /// Whether the processor is taken if no other device is.
    falls_back: bool,
}

impl<'a> Wanted<'a> {
    /// Returns the devices for the name in the settings.
    ///
    /// # Errors
    /// [`Error::BadDevice`] that lists the names.
    fn of(name: &'a str) -> Result<Self, Error> {
        let possible = || {
            Device::ACCELERATORS
                .into_iter()
                .filter(|it| it.is_possible())
        };
        let tried = match name {
            "cpu" => vec![],
            "auto" | "gpu" => possible().collect(),
            "cuda" => vec![Device::Cuda],
            "coreml" => vec![Device::CoreMl],
            "directml" => vec![Device::DirectMl],
            other => {
                return Err(Error::BadDevice {
                    device: other.to_owned(),
                    problem: "must be one of auto, cpu, gpu, cuda, coreml, directml".into(),
                });
            }
        };
        Ok(Self {
            name,
            tried,
            falls_back: matches!(name, "auto" | "cpu"),
        })
    }

    /// Returns the first device that opens and gives the processor's probabilities, together with
    /// the result of opening it and one line for each device before it that was not taken. `open`
    /// opens a device and returns the probe's probabilities on it.
    ///
    /// # Errors
    /// The errors of the processor, and [`Error::BadDevice`] with all the lines where the processor
    /// is not acceptable.
    fn choose<T>(
        &self,
        open: impl Fn(Device) -> Result<(T, Probabilities), Error>,
    ) -> Result<(T, Device, Vec<String>), Error> {
        let (processor, expected) = open(Device::Cpu)?;
        let mut notes = Vec::new();
        for device in &self.tried {
            let opened = open(*device).and_then(|(opened, got)| {
                agree(&got, &expected)?;
                Ok(opened)
            });
            match opened {
                Ok(opened) => return Ok((opened, *device, notes)),
                Err(error) => notes.push(format!("{}: {}", device.name(), reason(&error))),
            }
        }
        if self.falls_back {
            return Ok((processor, Device::Cpu, notes));
        }
        if notes.is_empty() {
            notes.push("this operating system has none".into());
        }
        let problem = notes.join("; ");
        let own = format!("{}: ", self.name);
        Err(Error::BadDevice {
            device: self.name.to_owned(),
            problem: problem.strip_prefix(&own).unwrap_or(&problem).to_owned(),
        })
    }
}

/// The probabilities of the options, for each question of the probe.
type Probabilities = Vec<Vec<f64>>;

/// Returns the cause of an error, without the name of the file.
fn reason(error: &Error) -> String {
    match error {
        Error::BadModel { problem: said, .. } | Error::ModelFailed { cause: said } => {
            missing_library(said).unwrap_or_else(|| said.clone())
        }
        other => other.to_string(),
    }
}

/// Returns a plain message for the loader's error about a missing library; `None` for other errors.
fn missing_library(said: &str) -> Option<String> {
    let (_, said) = said.split_once("Failed to load library ")?;
    let (provider, said) = said.split_once(" with error: ")?;
    let (missing, _) = said.split_once(": cannot open shared object file")?;
    Some(if missing == provider {
        format!(
            "this ONNX Runtime has no {provider} beside it; the setting runtime names a build that has"
        )
    } else {
        format!("{missing} is not installed, or not found; {provider} needs it")
    })
}

/// The greatest difference between the probe's probabilities on two devices that agree.
const AGREEMENT: f64 = 0.01;

fn agree(got: &Probabilities, expected: &Probabilities) -> Result<(), Error> {
    let pairs = got.iter().flatten().zip(expected.iter().flatten());
    let differences = pairs.map(|(a, b)| (a - b).abs());
    let worst = differences.max_by(f64::total_cmp).unwrap_or(f64::INFINITY);
    if worst <= AGREEMENT {
        return Ok(());
    }
    Err(Error::ModelFailed {
        cause: format!("a probe's probabilities are off by {worst:.3} from the processor's"),
    })
}

fn probe(layout: &dyn Layout, sessions: &Sessions, plan: &Plan) -> Result<Probabilities, Error> {
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

/// Returns the rows of the probe, as far as the model takes its questions: it may need descriptions,
/// or read less.
///
/// # Errors
/// [`Error::ModelFailed`] where the model takes none of them.
fn probe_plan(layout: &dyn Layout, tokenizer: &Tokenizer, stop: &Stop) -> Result<Plan, Error> {
    let encode =
        |request: &Request| layout.encode(tokenizer, request, &mut Meter::new(usize::MAX, stop));
    let mut request = probe_request();
    let mut refusal = match encode(&request) {
        Err(error @ (Error::BadField { .. } | Error::BeyondModel { .. })) => error,
        other => return other,
    };
    let mut described = request.questions.clone();
    for outcome in described.iter_mut().flat_map(|it| &mut it.outcomes) {
        outcome.text.get_or_insert_with(|| "said so".to_owned());
    }
    for question in request.questions.split_off(0).into_iter().chain(described) {
        request.questions = vec![question];
        match encode(&request) {
            Err(error @ (Error::BadField { .. } | Error::BeyondModel { .. })) => refusal = error,
            other => return other,
        }
    }
    Err(Error::ModelFailed {
        cause: format!("the model takes none of its questions: {refusal}"),
    })
}

/// Returns a request with one question of each type on a short state.
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
        state: "The parcel arrived crushed and I want my money back."
            .to_owned()
            .into(),
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// The behaviour of an execution provider that a test makes up.
    #[derive(Clone, Copy)]
    enum Provider {
        /// It gives the probe's answer "yes" this probability.
        Yes(f64),
        /// It cannot be registered, or opens no session.
        Refuses(&'static str),
        /// It opens, and its run fails.
        RunFails(&'static str),
    }
    use Provider::{Refuses, RunFails, Yes};

    const CPU: (Device, Provider) = (Device::Cpu, Yes(0.7));

    type Chosen = Result<(Device, Device, Vec<String>), Error>;

    /// Returns what is chosen when `name` is asked for and the library has these providers, and the
    /// devices that were tried.
    fn choose(name: &str, tried: &[Device], has: &[(Device, Provider)]) -> (Chosen, Vec<Device>) {
        let wanted = Wanted {
            tried: tried.to_vec(),
            ..Wanted::of(name).expect("a name")
        };
        let opened = RefCell::new(Vec::new());
        let chosen = wanted.choose(|device| {
            opened.borrow_mut().push(device);
            let found = has.iter().find(|(each, _)| *each == device);
            match found.map(|(_, provider)| *provider) {
                Some(Yes(probability)) => Ok((device, vec![vec![1.0 - probability, probability]])),
                Some(RunFails(cause)) => Err(Error::ModelFailed {
                    cause: cause.into(),
                }),
                Some(Refuses(problem)) => Err(Error::BadModel {
                    file: "/models/model.onnx".into(),
                    problem: problem.into(),
                }),
                None => panic!("{device:?} was not to be tried"),
            }
        });
        (chosen, opened.into_inner())
    }

    fn refusal(chosen: Chosen) -> String {
        let error = chosen.expect_err("a refusal");
        assert_eq!(error.code(), "bad_device");
        error.to_string()
    }

    #[test]
    fn auto_takes_the_first_that_agrees_and_tries_no_other() {
        let all = Device::ACCELERATORS;
        for yes in [0.7, 0.709, 0.691] {
            let (chosen, tried) = choose("auto", &all, &[CPU, (Device::Cuda, Yes(yes))]);
            assert_eq!(chosen, Ok((Device::Cuda, Device::Cuda, vec![])));
            assert_eq!(tried, [Device::Cpu, Device::Cuda]);
        }
    }

    #[test]
    fn auto_notes_each_that_disagrees_or_fails_and_goes_on() {
        let has = [
            CPU,
            (Device::Cuda, Yes(0.72)),
            (Device::CoreMl, RunFails("no such kernel")),
            (Device::DirectMl, Yes(0.7)),
        ];
        let (chosen, _) = choose("auto", &Device::ACCELERATORS, &has);
        let notes = [
            "cuda: a probe's probabilities are off by 0.020 from the processor's",
            "coreml: no such kernel",
        ];
        let notes = notes.map(String::from).to_vec();
        assert_eq!(chosen, Ok((Device::DirectMl, Device::DirectMl, notes)));
    }

    #[test]
    fn auto_takes_the_processor_when_no_other_will_do() {
        let has = [CPU, (Device::Cuda, Refuses("no driver"))];
        let (chosen, _) = choose("auto", &[Device::Cuda], &has);
        let notes = vec!["cuda: no driver".to_owned()];
        assert_eq!(chosen, Ok((Device::Cpu, Device::Cpu, notes)));
        let (chosen, _) = choose("auto", &[], &[CPU]);
        assert_eq!(chosen, Ok((Device::Cpu, Device::Cpu, vec![])));
    }

    #[test]
    fn probabilities_that_are_no_numbers_or_not_there_do_not_agree() {
        let (chosen, _) = choose(
            "auto",
            &[Device::Cuda],
            &[CPU, (Device::Cuda, Yes(f64::NAN))],
        );
        assert_eq!(chosen.expect("the processor").0, Device::Cpu);
        assert!(agree(&vec![], &vec![vec![1.0]]).is_err());
    }

    #[test]
    fn gpu_and_a_named_one_never_fall_back() {
        let has = [
            CPU,
            (Device::Cuda, Refuses("libcudart.so.12 is missing")),
            (Device::DirectMl, Yes(0.9)),
        ];
        let tried = [Device::Cuda, Device::DirectMl];
        let (chosen, _) = choose("gpu", &tried, &has);
        assert_eq!(
            refusal(chosen),
            "device gpu: cuda: libcudart.so.12 is missing; \
             directml: a probe's probabilities are off by 0.200 from the processor's"
        );
        let (chosen, _) = choose("cuda", &[Device::Cuda], &has);
        assert_eq!(refusal(chosen), "device cuda: libcudart.so.12 is missing");
        let (chosen, _) = choose("gpu", &[], &[CPU]);
        assert_eq!(
            refusal(chosen),
            "device gpu: this operating system has none"
        );
    }

    #[test]
    fn a_library_that_is_missing_is_named_with_what_needs_it() {
        let said = |missing: &str| {
            format!(
                "Failed to load library libonnxruntime_providers_cuda.so with error: {missing}: \
                 cannot open shared object file: No such file or directory"
            )
        };
        assert_eq!(
            missing_library(&said("libcublasLt.so.13")).as_deref(),
            Some(
                "libcublasLt.so.13 is not installed, or not found; \
                 libonnxruntime_providers_cuda.so needs it"
            )
        );
        assert_eq!(
            missing_library(&said("libonnxruntime_providers_cuda.so")).as_deref(),
            Some(
                "this ONNX Runtime has no libonnxruntime_providers_cuda.so beside it; \
                 the setting runtime names a build that has"
            )
        );
        assert_eq!(missing_library("CUDA failure 100"), None);
    }

    #[test]
    fn gpu_takes_the_first_that_agrees() {
        let has = [
            CPU,
            (Device::CoreMl, Yes(0.5)),
            (Device::DirectMl, Yes(0.7)),
        ];
        let (chosen, _) = choose("gpu", &[Device::CoreMl, Device::DirectMl], &has);
        assert_eq!(chosen.expect("a device").0, Device::DirectMl);
    }

    #[test]
    fn a_named_one_is_tried_alone_wherever_it_is() {
        for device in Device::ACCELERATORS {
            let wanted = Wanted::of(device.name()).expect("a name");
            assert_eq!((wanted.tried, wanted.falls_back), (vec![device], false));
        }
        let wanted = Wanted::of("cpu").expect("a name");
        assert!(wanted.tried.is_empty());
        let possible = Device::ACCELERATORS
            .into_iter()
            .filter(|device| device.is_possible());
        let possible: Vec<Device> = possible.collect();
        assert_eq!(Wanted::of("auto").expect("a name").tried, possible);
    }

    #[test]
    fn a_processor_that_fails_is_the_models_fault_and_no_accelerator_is_tried() {
        let has = [(Device::Cpu, RunFails("a bad graph"))];
        let (chosen, tried) = choose("gpu", &[Device::Cuda], &has);
        assert_eq!(chosen.expect_err("a bad graph").code(), "model_failed");
        assert_eq!(tried, [Device::Cpu]);
    }
}
