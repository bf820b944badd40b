//! Whether the 8-bit products of a graph are exact on this processor, and what is done where they are not.

use std::path::Path;
use std::time::{Duration, Instant};

use ort::environment::Environment;
use ort::session::Session;
use ort::value::TensorRef;
use parking_lot::Mutex;
use prost::bytes::Bytes;

use crate::onnx::exact::{Products, exact_graph};
use crate::onnx::probe::{INPUT, OUTPUT, Weights, product};

/// Whether the 8-bit products of a graph are exact.
#[derive(Debug, Clone, PartialEq)]
pub enum Exactness {
    /// They are: the processor adds them in 32 bits, or the weights are small enough, or there are none.
    Exact,
    /// They would saturate, and were made exact by unsigned weights.
    MadeExact {
        /// How many were.
        products: usize,
        /// How many times as long the largest of them takes; `None` where that could not be measured.
        slowdown: Option<f64>,
    },
    /// Some can saturate and could not be made exact.
    CannotBe {
        /// Which, and why.
        reason: String,
    },
}

impl Exactness {
    /// The name in `/stats` and `/metrics`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::MadeExact { .. } => "made exact",
            Self::CannotBe { .. } => "cannot be",
        }
    }

    /// What there is to say of it, in one line; nothing where all is as the file has it.
    pub fn note(&self) -> Option<String> {
        const WHY: &str = "this processor adds 8-bit products in 16 bits, which saturate";
        match self {
            Self::Exact => None,
            Self::MadeExact { products, slowdown } => {
                let products = match products {
                    1 => "1 product was".to_owned(),
                    count => format!("{count} products were"),
                };
                let cost = slowdown.map_or_else(String::new, |slowdown| {
                    format!(", at {slowdown:.2} times the time of the largest of them")
                });
                Some(format!(
                    "{WHY}: {products} made exact by unsigned weights{cost}"
                ))
            }
            Self::CannotBe { reason } => Some(format!(
                "{WHY}, and not all of this model's can be made exact: {reason}; its answers can differ \
                 from those of other processors"
            )),
        }
    }
}

/// A graph as sessions are to open it.
pub(super) struct Prepared {
    pub(super) exactness: Exactness,
    /// The graph in the place of the file, where it is another one.
    pub(super) graph: Option<Bytes>,
}

/// What sessions are to open so that the products of the graph in `file` are exact. `read` gives its bytes.
pub(super) fn prepare(
    environment: &Environment,
    file: &Path,
    read: impl FnOnce() -> Bytes,
) -> Prepared {
    if !saturates(environment) {
        return Prepared {
            exactness: Exactness::Exact,
            graph: None,
        };
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    // What is no graph is told of by the library.
    let (products, graph) = exact_graph(&read(), folder).unwrap_or_default();
    Prepared {
        exactness: judged(environment, &products),
        graph,
    }
}

fn judged(environment: &Environment, products: &Products) -> Exactness {
    match (products.left.as_slice(), products.mended) {
        ([], 0) => Exactness::Exact,
        ([], mended) => Exactness::MadeExact {
            products: mended,
            slowdown: slowdown(environment, &products.largest),
        },
        ([only], _) => Exactness::CannotBe {
            reason: only.clone(),
        },
        ([first, others @ ..], _) => Exactness::CannotBe {
            reason: format!("{first}, and {} more", others.len()),
        },
    }
}

/// Whether products of unsigned by signed bytes saturate on this processor. The library itself is asked, since it is what
/// chooses the instructions; once a process, as there is one library in it.
pub fn saturates(environment: &Environment) -> bool {
    static ANSWER: Mutex<Option<bool>> = Mutex::new(None);
    // A library that cannot run a product will not run the model either, and says why then.
    *ANSWER
        .lock()
        .get_or_insert_with(|| sums_are_wrong(environment).unwrap_or(false))
}

/// Enough for every kernel: they take up to 4 values of a row, 48 columns and 12 inputs at a time.
const ROWS: usize = 64;
const COLUMNS: usize = 96;
const INPUTS: usize = 16;

/// Whether some sum of a product is not what it must be. The weights are the largest and the least, and so are the inputs.
fn sums_are_wrong(environment: &Environment) -> ort::Result<bool> {
    let weight = |column: usize| {
        if column.is_multiple_of(2) {
            127_i8
        } else {
            -128
        }
    };
    let input = |line: usize| if line.is_multiple_of(2) { 255_u8 } else { 0 };
    let bytes = (0..ROWS * COLUMNS).map(|place| weight(place % COLUMNS).cast_unsigned());
    let graph = product(Weights {
        rows: ROWS,
        columns: COLUMNS,
        are_signed: true,
        bytes: bytes.collect(),
    });
    let mut session = open(environment, &graph)?;
    // A lone line of inputs has kernels of its own.
    for lines in [1, INPUTS] {
        let values = (0..lines * ROWS).map(|place| input(place / ROWS));
        let sums = sums(&mut session, lines, &values.collect::<Vec<u8>>())?;
        let is_wrong = |(place, sum): (usize, &i32)| {
            let product = i32::from(input(place / COLUMNS)) * i32::from(weight(place % COLUMNS));
            *sum != product * ROWS as i32
        };
        if sums.iter().enumerate().any(is_wrong) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn open(environment: &Environment, graph: &Bytes) -> ort::Result<Session> {
    Session::builder(environment)?
        .with_intra_threads(1)?
        .commit_from_memory(graph)
}

/// The sums [lines, columns] of a product with inputs [lines, rows].
fn sums(session: &mut Session, lines: usize, inputs: &[u8]) -> ort::Result<Vec<i32>> {
    let rows = inputs.len() / lines;
    let inputs = TensorRef::from_array_view(([lines, rows], inputs))?;
    let outputs = session.run(ort::inputs![INPUT => inputs])?;
    let (_, sums) = outputs[OUTPUT].try_extract_tensor::<i32>()?;
    Ok(sums.to_vec())
}

/// The largest weight whose product is timed; a larger one is timed as one of so many values.
const MAX_TIMED: usize = 1 << 21;
const TIMED_RUNS: usize = 7;

/// How many times as long a product of these dimensions takes with unsigned weights; `None` where it could not be run.
fn slowdown(environment: &Environment, dims: &[i64]) -> Option<f64> {
    let size = |place: usize| usize::try_from(*dims.get(dims.len().checked_sub(place)?)?).ok();
    let columns = size(1)?.clamp(1, MAX_TIMED);
    let rows = size(2)?.clamp(1, MAX_TIMED / columns);
    let session = |are_signed| {
        let graph = product(Weights {
            rows,
            columns,
            are_signed,
            bytes: vec![1; rows * columns],
        });
        open(environment, &graph).ok()
    };
    let (mut signed, mut unsigned) = (session(true)?, session(false)?);
    let inputs = vec![1; rows * INPUTS];
    let mut shortest = [Duration::MAX; 2];
    for _ in 0..TIMED_RUNS {
        for (session, shortest) in [&mut signed, &mut unsigned].into_iter().zip(&mut shortest) {
            let start = Instant::now();
            sums(session, INPUTS, &inputs).ok()?;
            *shortest = start.elapsed().min(*shortest);
        }
    }
    Some(shortest[1].as_secs_f64() / shortest[0].as_secs_f64())
}
