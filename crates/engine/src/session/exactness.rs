//! Whether the 8-bit products of a graph are exact on this processor, and the measures where they
//! are not.

use std::fmt::Debug;
use std::path::Path;
use std::time::{Duration, Instant};

use ort::environment::Environment;
use ort::session::Session;
use ort::value::{PrimitiveTensorElementType, TensorRef};
use parking_lot::Mutex;
use prost::bytes::Bytes;

use crate::onnx::exact::{Processor, Products, exact_graph};
use crate::onnx::probe::{INPUT, OUTPUT, Weights, dequantized_product, dynamic_product, product};
use crate::onnx::products::Pairs;

/// Whether the 8-bit products of a graph are exact.
#[derive(Debug, Clone, PartialEq)]
pub enum Exactness {
    /// The products are exact: the processor adds them in 32 bits, or the weights are small enough,
    /// or there are no products.
    Exact,
    /// The products would not be exact, and were made exact by unsigned weights.
    MadeExact {
        /// The reason why they would not be exact.
        why: &'static str,
        /// The number of products that were made exact.
        products: usize,
        /// The time of the largest of these products as a multiple of its time before; `None` where
        /// it could not be measured.
        slowdown: Option<f64>,
    },
    /// Some products may not be exact, and could not be made so.
    CannotBe {
        /// The reason why they are not exact.
        why: &'static str,
        /// The products that could not be made exact, and why.
        reason: String,
    },
}

impl Exactness {
    /// Returns the exactness of two graphs together.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::MadeExact {
                    why,
                    products,
                    slowdown,
                },
                Self::MadeExact {
                    products: others, ..
                },
            ) => Self::MadeExact {
                why,
                products: products + others,
                slowdown,
            },
            (both, Self::Exact) | (Self::Exact, both) => both,
            (worse @ Self::CannotBe { .. }, _) | (_, worse) => worse,
        }
    }

    /// Returns a note in one line; `None` where everything is as the file has it.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Exact => None,
            Self::MadeExact {
                why,
                products,
                slowdown,
            } => {
                let products = match products {
                    1 => "1 product was".to_owned(),
                    count => format!("{count} products were"),
                };
                let cost = slowdown.map_or_else(String::new, |slowdown| {
                    format!(", at {slowdown:.2} times the time of the largest of them")
                });
                Some(format!(
                    "{why}: {products} made exact by unsigned weights{cost}"
                ))
            }
            Self::CannotBe { why, reason } => Some(format!(
                "{why}, and not all of this model's can be made exact: {reason}; its answers can differ \
                 from those of other processors"
            )),
        }
    }
}

/// A graph as sessions have to open it.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) exactness: Exactness,
    pub(super) graph: GraphSource,
}

/// The source of the sessions' graph.
#[derive(Clone)]
pub(super) enum GraphSource {
    /// The graph's file, with its bytes if they were read already.
    File(Option<Bytes>),
    /// These bytes, in place of the file.
    Other(Bytes),
}

/// Returns the graph that sessions have to open so that the products of the graph in `file` are
/// exact. `read` returns the bytes of the file.
pub(super) fn prepare(
    environment: &Environment,
    file: &Path,
    read: impl FnOnce() -> Bytes,
) -> Prepared {
    let processor = processor(environment);
    if processor == Processor::default() {
        return Prepared {
            exactness: Exactness::Exact,
            graph: GraphSource::File(None),
        };
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    let (products, graph) = looked_at(read(), folder, processor);
    Prepared {
        exactness: judged(environment, &products),
        graph,
    }
}

fn looked_at(file: Bytes, folder: &Path, processor: Processor) -> (Products, GraphSource) {
    // The library reports a file that is no graph.
    let (products, graph) = exact_graph(&file, folder, processor).unwrap_or_default();
    (
        products,
        graph.map_or(GraphSource::File(Some(file)), GraphSource::Other),
    )
}

/// Returns the reason why products are not exact on this processor, if some are not.
fn why(environment: &Environment) -> &'static str {
    if processor(environment).unsigned != Pairs::None {
        "this processor adds 8-bit products in 16 bits, which saturate"
    } else {
        "ONNX Runtime quantizes inputs row by row on this processor"
    }
}

/// Returns the exactness of a graph that cannot be made exact on this processor.
pub(super) fn cannot_be(environment: &Environment, reason: String) -> Exactness {
    Exactness::CannotBe {
        why: why(environment),
        reason,
    }
}

fn judged(environment: &Environment, products: &Products) -> Exactness {
    match (products.left.as_slice(), products.mended) {
        ([], 0) => Exactness::Exact,
        ([], mended) => Exactness::MadeExact {
            why: why(environment),
            products: mended,
            slowdown: slowdown(environment, &products.largest),
        },
        ([only], _) => cannot_be(environment, only.clone()),
        ([first, others @ ..], _) => {
            cannot_be(environment, format!("{first}, and {} more", others.len()))
        }
    }
}

/// Returns how this processor computes 8-bit products. The library itself is asked, since it
/// chooses the instructions. It is asked once per process, since a process has only one library.
fn processor(environment: &Environment) -> Processor {
    static ANSWER: Mutex<Option<Processor>> = Mutex::new(None);
    // A library that cannot run a product will not run the model either, and reports the cause
    // then.
    *ANSWER.lock().get_or_insert_with(|| Processor {
        unsigned: pairs(|least| saturates(least, trial(environment, &product(turns(least)))?)),
        dequantized: pairs(|least| {
            let graph = dequantized_product(turns(least));
            saturates_dequantized(least, trial(environment, &graph)?)
        }),
        quantizes_rows: trial(environment, &dynamic_product(weights(|_| 1)))
            .and_then(quantizes_rows)
            .unwrap_or(false),
    })
}

/// The sizes of the trial products, which are enough for every kernel: kernels take up to 4 values
/// of a row, 48 columns and 12 inputs at a time.
const ROWS: usize = 64;
const COLUMNS: usize = 96;
const INPUTS: usize = 16;

/// Returns the pairs of weights whose products saturate. `saturates` tells whether products do in
/// which the largest weight and the given one alternate.
fn pairs(saturates: impl Fn(i8) -> ort::Result<bool>) -> Pairs {
    let saturates = |least| saturates(least).unwrap_or(false);
    match (saturates(i8::MIN), saturates(-i8::MAX)) {
        (_, true) => Pairs::Large,
        (true, false) => Pairs::OfLeast,
        (false, false) => Pairs::None,
    }
}

/// Returns the weight of a column: the largest, or `least`.
fn weight(column: usize, least: i8) -> i8 {
    if column.is_multiple_of(2) {
        i8::MAX
    } else {
        least
    }
}

fn weights(weight: impl Fn(usize) -> i8) -> Weights {
    let bytes = (0..ROWS * COLUMNS).map(|place| weight(place % COLUMNS).cast_unsigned());
    Weights {
        rows: ROWS,
        columns: COLUMNS,
        are_signed: true,
        bytes: bytes.collect(),
    }
}

/// Returns weights of which the columns have the largest one and `least` by turns.
fn turns(least: i8) -> Weights {
    weights(|column| weight(column, least))
}

/// Whether some sum of unsigned by signed bytes is wrong, in a product with the weights of
/// [`turns`]. The inputs are the largest and the least unsigned byte.
fn saturates(
    least: i8,
    sums: impl FnMut(usize, &[u8]) -> ort::Result<Vec<i32>>,
) -> ort::Result<bool> {
    let is_wrong = |sum: i32, input: u8, column| {
        sum != i32::from(input) * i32::from(weight(column, least)) * ROWS as i32
    };
    some_sum(sums, [255, 0], is_wrong)
}

/// Whether some sum is wrong for signed bytes that are quantized and dequantized, in a product with
/// the weights of [`turns`]. The sums are whole numbers that floats can hold.
fn saturates_dequantized(
    least: i8,
    sums: impl FnMut(usize, &[f32]) -> ort::Result<Vec<f32>>,
) -> ort::Result<bool> {
    let is_wrong = |sum: f32, input: f32, column| {
        (sum - input * f32::from(weight(column, least)) * ROWS as f32).abs() > 0.5
    };
    some_sum(sums, [127.0, -128.0], is_wrong)
}

/// Whether inputs are quantized row by row, in a product with weights of 1. The inputs of one row
/// are much less than those of the other, so that one scale for both quantizes them to 0 and 255;
/// any other result shows a scale for each row.
fn quantizes_rows(sums: impl FnMut(usize, &[f32]) -> ort::Result<Vec<f32>>) -> ort::Result<bool> {
    let is_wrong = |sum: f32, input: f32, _| input < 1.0 && sum.abs() > 0.5;
    some_sum(sums, [255.0, 0.25], is_wrong)
}

/// Whether `is_wrong` holds for some sum of a product, given its input and its column. `sums`
/// returns the sums of so many lines of inputs; the lines have the first of two inputs, or both by
/// turns.
fn some_sum<I: Copy, S>(
    mut sums: impl FnMut(usize, &[I]) -> ort::Result<Vec<S>>,
    inputs: [I; 2],
    is_wrong: impl Fn(S, I, usize) -> bool,
) -> ort::Result<bool> {
    // A single line of inputs is computed by kernels of its own.
    for lines in [1, INPUTS] {
        let values: Vec<I> = (0..lines * ROWS)
            .map(|place| inputs[place / ROWS % 2])
            .collect();
        let mut sums = sums(lines, &values)?.into_iter().enumerate();
        if sums.any(|(place, sum)| is_wrong(sum, inputs[place / COLUMNS % 2], place % COLUMNS)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns a function that runs a product on this processor, as [`sums`] does.
fn trial<I, S>(
    environment: &Environment,
    graph: &Bytes,
) -> ort::Result<impl FnMut(usize, &[I]) -> ort::Result<Vec<S>>>
where
    I: PrimitiveTensorElementType + Debug + Clone + 'static,
    S: PrimitiveTensorElementType + Clone,
{
    let mut session = open(environment, graph)?;
    Ok(move |lines, inputs: &[I]| sums(&mut session, lines, inputs))
}

fn open(environment: &Environment, graph: &Bytes) -> ort::Result<Session> {
    Session::builder(environment)?
        .with_intra_threads(1)?
        .commit_from_memory(graph)
}

/// Returns the sums [lines, columns] of a product with inputs [lines, rows].
fn sums<I, S>(session: &mut Session, lines: usize, inputs: &[I]) -> ort::Result<Vec<S>>
where
    I: PrimitiveTensorElementType + Debug + Clone + 'static,
    S: PrimitiveTensorElementType + Clone,
{
    let rows = inputs.len() / lines;
    let inputs = TensorRef::from_array_view(([lines, rows], inputs))?;
    let outputs = session.run(ort::inputs![INPUT => inputs])?;
    let (_, sums) = outputs[OUTPUT].try_extract_tensor::<S>()?;
    Ok(sums.to_vec())
}

/// The most values of a weight whose product is timed; a larger weight is timed as one of this
/// size.
const MAX_TIMED: usize = 1 << 21;
const TIMED_RUNS: usize = 7;

/// Returns how many times as long a product of these dimensions takes with unsigned weights; `None`
/// where it could not be run.
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
            sums::<u8, i32>(session, INPUTS, &inputs).ok()?;
            *shortest = start.elapsed().min(*shortest);
        }
    }
    Some(shortest[1].as_secs_f64() / shortest[0].as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_graphs_are_as_exact_as_the_worse_one() {
        let made = |products| Exactness::MadeExact {
            why: "why",
            products,
            slowdown: Some(1.5),
        };
        let cannot = Exactness::CannotBe {
            why: "why",
            reason: "a product".into(),
        };
        assert_eq!(Exactness::Exact.and(Exactness::Exact), Exactness::Exact);
        assert_eq!(made(2).and(made(1)), made(3));
        for exactness in [made(2), cannot.clone()] {
            assert_eq!(exactness.clone().and(Exactness::Exact), exactness);
            assert_eq!(Exactness::Exact.and(exactness.clone()), exactness);
        }
        assert_eq!(made(2).and(cannot.clone()), cannot);
        assert_eq!(cannot.clone().and(made(2)), cannot);
    }

    /// Returns the sums of products as a processor makes them that adds two products by `add`.
    fn sums_of_pairs<I: Copy>(
        weights: Weights,
        add: impl Fn([(I, i8); 2]) -> i32,
    ) -> impl FnMut(usize, &[I]) -> ort::Result<Vec<i32>> {
        move |lines, inputs| {
            let width = inputs.len() / lines;
            let sum = |line: usize, column: usize| {
                let term = |row: usize| {
                    let weight = weights.bytes[row * weights.columns + column];
                    (inputs[line * width + row], weight.cast_signed())
                };
                let pairs = (0..width / 2).map(|pair| add([term(2 * pair), term(2 * pair + 1)]));
                pairs.sum()
            };
            let places = (0..lines).flat_map(|line| (0..weights.columns).map(move |at| (line, at)));
            Ok(places.map(|(line, column)| sum(line, column)).collect())
        }
    }

    fn exact(terms: [(i32, i8); 2]) -> i32 {
        terms
            .iter()
            .map(|(input, weight)| input * i32::from(*weight))
            .sum()
    }

    fn saturated(terms: [(i32, i8); 2]) -> i32 {
        exact(terms).clamp(i16::MIN.into(), i16::MAX.into())
    }

    #[test]
    fn a_processor_shows_by_its_sums_which_pairs_of_weights_saturate() {
        type Pair = [(i32, i8); 2];
        // A processor without a product of unsigned by signed bytes moves the inputs by 128.
        let moved = |terms: Pair| {
            let moved = terms.map(|(input, weight)| (input - 128, weight));
            saturated(moved) + exact([(128, terms[0].1), (128, terms[1].1)])
        };
        let unsigned = |add: &dyn Fn(Pair) -> i32| {
            pairs(|least| {
                let add = |terms: [(u8, i8); 2]| add(terms.map(|(input, w)| (input.into(), w)));
                saturates(least, sums_of_pairs(turns(least), add))
            })
        };
        assert_eq!(unsigned(&exact), Pairs::None);
        assert_eq!(unsigned(&moved), Pairs::OfLeast);
        assert_eq!(unsigned(&saturated), Pairs::Large);

        let dequantized = |add: &dyn Fn(Pair) -> i32| {
            pairs(|least| {
                let add = |terms: [(f32, i8); 2]| add(terms.map(|(input, w)| (input as i32, w)));
                let mut sums = sums_of_pairs(turns(least), add);
                let sums = move |lines, inputs: &[f32]| {
                    let sums = sums(lines, inputs)?;
                    Ok(sums.into_iter().map(|sum| sum as f32).collect())
                };
                saturates_dequantized(least, sums)
            })
        };
        // The library stores such inputs as unsigned bytes.
        let stored = |terms: Pair| {
            let stored = terms.map(|(input, weight)| (input + 128, weight));
            saturated(stored) - exact([(128, terms[0].1), (128, terms[1].1)])
        };
        assert_eq!(dequantized(&exact), Pairs::None);
        assert_eq!(dequantized(&saturated), Pairs::OfLeast);
        assert_eq!(dequantized(&stored), Pairs::Large);
    }

    #[test]
    fn a_processor_shows_by_its_sums_whether_it_quantizes_row_by_row() {
        let quantized = |is_by_row: bool| {
            move |lines: usize, inputs: &[f32]| {
                let rows = inputs.chunks(inputs.len() / lines);
                let largest = inputs.iter().copied().fold(0.0, f32::max);
                let sums = rows.map(|row| {
                    let scale = if is_by_row { row[0] } else { largest } / 255.0;
                    row.iter()
                        .map(|input| (input / scale).round() * scale)
                        .sum()
                });
                Ok(sums.flat_map(|sum: f32| [sum; COLUMNS]).collect())
            }
        };
        assert!(!quantizes_rows(quantized(false)).expect("sums"));
        assert!(quantizes_rows(quantized(true)).expect("sums"));
    }

    #[test]
    fn a_file_that_stays_as_it_is_need_not_be_read_again() {
        let processor = Processor {
            unsigned: Pairs::Large,
            ..Processor::default()
        };
        let small = product(weights(|_| 1));
        match looked_at(small.clone(), Path::new("."), processor) {
            (products, GraphSource::File(Some(bytes))) => {
                assert_eq!(products, Products::default());
                assert_eq!(bytes.as_ptr(), small.as_ptr());
            }
            _ => panic!("another graph"),
        }
        let (products, graph) = looked_at(product(weights(|_| 127)), Path::new("."), processor);
        assert_eq!(products.mended, 1);
        assert!(matches!(graph, GraphSource::Other(_)));
    }
}
