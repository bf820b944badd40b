//! The operators that multiply 8-bit integers, and whether the sums of their products can exceed 16
//! bits.
//!
//! Processors with AVX2 or AVX-512 and without VNNI multiply unsigned inputs by signed weights in
//! pairs and add each pair in 16 bits, which saturate (`VPMADDUBSW`). The pairs are neighbours
//! along the axis that is summed over: rows 0 and 1, 2 and 3, and so on. An input is at most 255,
//! so a pair of weights of one sign is safe up to a sum of 128.

use super::proto::Node;

/// The domain of ONNX Runtime's own operators.
const FUSED: &str = "com.microsoft";

/// The greatest sum of two weights of one sign whose products with inputs of 255 fit into 16 bits: 128 x 255 = 32,640.
const MAX_PAIR: i32 = 128;

/// The axis of a weight that a product sums over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// The last axis but one, or the only one.
    Rows,
    /// The last axis.
    Columns,
    /// Either of the last two axes.
    Either,
    /// An axis that takes the weights in another order.
    Unknown,
}

/// One weight of an operator, by the places of its inputs.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    /// The place of the weight.
    pub weight: usize,
    /// The place of the weight's zero point, which may be left out.
    pub zero_point: usize,
    /// The axis that the product sums over.
    pub axis: Axis,
}

/// The way to tell whether the inputs of a product are signed.
#[derive(Debug, Clone, Copy)]
pub enum Left {
    /// The operator quantizes the inputs itself, to unsigned bytes.
    Unsigned,
    /// The type of the input at this place, or of its zero point, tells it.
    Input {
        /// The place of the input.
        value: usize,
        /// The place of the input's zero point.
        zero_point: usize,
    },
}

/// An operator that multiplies 8-bit integers.
#[derive(Debug, Clone, Copy)]
pub struct Operator {
    name: &'static str,
    domain: &'static str,
    /// The inputs that the operator multiplies by the weights.
    pub left: Left,
    /// Whether the operator is, or may become, `DynamicQuantizeMatMul` where its inputs are
    /// quantized when it runs.
    pub is_fused_when_dynamic: bool,
    operands: &'static [Operand],
}

const fn operand(weight: usize, zero_point: usize, axis: Axis) -> Operand {
    Operand {
        weight,
        zero_point,
        axis,
    }
}

const fn left(value: usize, zero_point: usize) -> Left {
    Left::Input { value, zero_point }
}

/// The operators, with their inputs as the operator lists of ONNX and ONNX Runtime have them.
const OPERATORS: [Operator; 10] = [
    Operator {
        name: "MatMulInteger",
        domain: "",
        left: left(0, 2),
        is_fused_when_dynamic: true,
        operands: &[operand(1, 3, Axis::Rows)],
    },
    Operator {
        name: "MatMulIntegerToFloat",
        domain: FUSED,
        left: left(0, 4),
        is_fused_when_dynamic: true,
        operands: &[operand(1, 5, Axis::Rows)],
    },
    Operator {
        name: "DynamicQuantizeMatMul",
        domain: FUSED,
        left: Left::Unsigned,
        is_fused_when_dynamic: true,
        operands: &[operand(1, 3, Axis::Rows)],
    },
    Operator {
        name: "QLinearMatMul",
        domain: "",
        left: left(0, 2),
        is_fused_when_dynamic: false,
        operands: &[operand(3, 5, Axis::Rows)],
    },
    Operator {
        name: "QGemm",
        domain: FUSED,
        left: left(0, 2),
        is_fused_when_dynamic: false,
        operands: &[operand(3, 5, Axis::Rows)],
    },
    Operator {
        name: "QAttention",
        domain: FUSED,
        left: left(0, 6),
        is_fused_when_dynamic: false,
        operands: &[operand(1, 7, Axis::Rows)],
    },
    Operator {
        name: "DynamicQuantizeLSTM",
        domain: FUSED,
        left: Left::Unsigned,
        is_fused_when_dynamic: false,
        operands: &[operand(1, 9, Axis::Rows), operand(2, 11, Axis::Rows)],
    },
    Operator {
        name: "QLinearConv",
        domain: "",
        left: left(0, 2),
        is_fused_when_dynamic: false,
        operands: &[operand(3, 5, Axis::Unknown)],
    },
    Operator {
        name: "QLinearConv",
        domain: FUSED,
        left: left(0, 2),
        is_fused_when_dynamic: false,
        operands: &[operand(3, 5, Axis::Unknown)],
    },
    Operator {
        // For this operator the library multiplies the weights by the inputs, so they change roles.
        name: "ConvInteger",
        domain: "",
        left: left(1, 3),
        is_fused_when_dynamic: false,
        operands: &[operand(0, 2, Axis::Unknown)],
    },
];

impl Operator {
    /// Returns the operator of a node, where it multiplies 8-bit integers.
    pub fn of(node: &Node) -> Option<&'static Self> {
        let domain = own_domain(node);
        let mut all = OPERATORS.iter();
        all.find(|operator| (operator.name, operator.domain) == (node.op_type.as_str(), domain))
    }

    /// Returns the weights of a node of this operator.
    pub fn operands(&self, node: &Node) -> impl Iterator<Item = Operand> {
        let is_turned = node.is_set("transB");
        self.operands.iter().map(move |operand| Operand {
            axis: operand.axis.turned(is_turned),
            ..*operand
        })
    }
}

impl Axis {
    /// Returns the axis when the weight is transposed first.
    fn turned(self, is_turned: bool) -> Self {
        match self {
            Self::Rows if is_turned => Self::Columns,
            other => other,
        }
    }
}

/// Returns the domain of a node's operator, by its short name.
fn own_domain(node: &Node) -> &str {
    match node.domain.as_str() {
        "ai.onnx" => "",
        other => other,
    }
}

/// Returns the axis of the weight of a node that ONNX Runtime replaces by a product of 8-bit
/// integers when both of its inputs are dequantized; the weight is its second input.
pub fn dequantized_axis(node: &Node) -> Option<Axis> {
    if !own_domain(node).is_empty() {
        return None;
    }
    match node.op_type.as_str() {
        "MatMul" => Some(Axis::Rows),
        "Gemm" => Some(Axis::Rows.turned(node.is_set("transB"))),
        "Conv" => Some(Axis::Unknown),
        _ => None,
    }
}

/// The pairs of weights whose products a processor adds wrongly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pairs {
    /// No pairs.
    #[default]
    None,
    /// Two weights of -128. Processors for arm64 without 8-bit dot products turn unsigned inputs
    /// into signed ones, and -128 by -128 is the only product whose double does not fit into 16
    /// bits; which two products they add is not known here.
    OfLeast,
    /// Two neighbouring weights of one sign whose sum is beyond [`MAX_PAIR`].
    Large,
}

impl Pairs {
    /// Whether there are such pairs among weights of the dimensions `dims`, in a product that sums
    /// over `axis`.
    pub fn are_in(self, weights: &[i8], dims: &[i64], axis: Axis) -> bool {
        match self {
            Self::None => false,
            Self::OfLeast => weights.iter().filter(|weight| **weight == i8::MIN).count() > 1,
            Self::Large => can_saturate(weights, dims, axis),
        }
    }
}

/// Whether a pair of weights, of the dimensions `dims`, can exceed 16 bits in a product that sums over `axis`.
fn can_saturate(weights: &[i8], dims: &[i64], axis: Axis) -> bool {
    let size = |place: Option<&i64>| place.map_or(1, |size| usize::try_from(*size).unwrap_or(0));
    let (rows, columns) = match dims {
        [only] => (size(Some(only)), 1),
        _ => (size(dims.iter().nth_back(1)), size(dims.last())),
    };
    let size = rows.saturating_mul(columns);
    if size == 0 || !weights.len().is_multiple_of(size) {
        return any_pair(weights);
    }
    let mut matrices = weights.chunks_exact(size);
    let along_columns = |matrix: &[i8]| matrix.chunks_exact(columns).any(neighbours);
    let along_rows = |matrix: &[i8]| {
        let mut pairs = matrix.chunks_exact(2 * columns);
        pairs.any(|pair| {
            let (first, second) = pair.split_at(columns);
            first.iter().zip(second).any(|(a, b)| is_too_much(*a, *b))
        })
    };
    match axis {
        Axis::Rows => matrices.any(along_rows),
        Axis::Columns => matrices.any(along_columns),
        Axis::Either => matrices.any(|matrix| along_rows(matrix) || along_columns(matrix)),
        Axis::Unknown => any_pair(weights),
    }
}

fn neighbours(line: &[i8]) -> bool {
    line.chunks_exact(2)
        .any(|pair| is_too_much(pair[0], pair[1]))
}

fn is_too_much(a: i8, b: i8) -> bool {
    let (a, b) = (i32::from(a), i32::from(b));
    a.max(0) + b.max(0) > MAX_PAIR || a.min(0) + b.min(0) < -MAX_PAIR
}

/// Whether any two of the weights are beyond [`MAX_PAIR`] together, wherever they stand.
fn any_pair(weights: &[i8]) -> bool {
    let mut sorted = weights.to_vec();
    sorted.sort_unstable();
    let ends = [sorted.first_chunk::<2>(), sorted.last_chunk::<2>()];
    ends.into_iter()
        .flatten()
        .any(|pair| is_too_much(pair[0], pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_one_sign_may_add_up_to_128() {
        for (pair, is_over) in [
            ([64, 64], false),
            ([64, 65], true),
            ([127, 1], false),
            ([127, 2], true),
            ([127, -128], false),
            ([-64, -64], false),
            ([-64, -65], true),
            ([-128, 0], false),
            ([-128, -1], true),
        ] {
            assert_eq!(can_saturate(&pair, &[2], Axis::Rows), is_over, "{pair:?}");
            assert_eq!(any_pair(&pair), is_over, "{pair:?}");
            let product = pair.iter().map(|weight| i32::from(*weight));
            let (over, under) = product.fold((0, 0), |(over, under), weight| {
                (over + 255 * weight.max(0), under + 255 * weight.min(0))
            });
            assert_eq!(over > 32_767 || under < -32_768, is_over, "{pair:?}");
        }
    }

    #[test]
    fn pairs_are_neighbours_along_the_axis_that_is_summed_over() {
        // There are three rows of two columns: the values of 100 stand in rows 1 and 2, which are
        // no pair.
        let rows = [0, 0, 100, 0, 100, 0];
        assert!(!can_saturate(&rows, &[3, 2], Axis::Rows));
        assert!(!can_saturate(&rows, &[3, 2], Axis::Columns));
        assert!(can_saturate(&rows, &[3, 2], Axis::Unknown));
        let first = [100, 0, 100, 0, 0, 0];
        assert!(can_saturate(&first, &[3, 2], Axis::Rows));
        assert!(!can_saturate(&first, &[3, 2], Axis::Columns));
        assert!(can_saturate(&first, &[3, 2], Axis::Either));
        let beside = [100, 100, 0, 0, 0, 0];
        assert!(!can_saturate(&beside, &[3, 2], Axis::Rows));
        assert!(can_saturate(&beside, &[3, 2], Axis::Columns));
        assert!(can_saturate(&beside, &[3, 2], Axis::Either));
        // The pair stands in the second of two matrices.
        let two = [0, 0, 0, 0, 0, 0, 100, 0, 100, 0, 0, 0];
        assert!(can_saturate(&two, &[2, 3, 2], Axis::Rows));
    }

    #[test]
    fn two_of_the_least_are_a_pair_wherever_they_stand() {
        let are_in = |pairs: Pairs, weights: &[i8]| pairs.are_in(weights, &[3, 1], Axis::Rows);
        assert!(are_in(Pairs::OfLeast, &[-128, 0, -128]));
        assert!(!are_in(Pairs::OfLeast, &[-128, -127, -127]));
        assert!(are_in(Pairs::Large, &[-128, -127, -127]));
        assert!(!are_in(Pairs::None, &[-128, -128, -128]));
    }

    #[test]
    fn weights_that_are_not_of_their_dimensions_are_looked_at_in_every_order() {
        assert!(can_saturate(&[100, 0, 100], &[2, 2], Axis::Rows));
        assert!(!can_saturate(&[60, 0, 60], &[2, 2], Axis::Rows));
        assert!(!can_saturate(&[], &[0, 2], Axis::Rows));
    }

    #[test]
    fn the_two_greatest_and_the_two_least_are_found_wherever_they_stand() {
        assert!(any_pair(&[70, 1, 2, 3, 59]));
        assert!(!any_pair(&[70, 1, 2, 3, 58]));
        assert!(any_pair(&[-70, 1, -59, 3]));
        assert!(!any_pair(&[-70, 100, -58, 28]));
    }

    #[test]
    fn a_transposed_weight_is_summed_over_its_last_axis() {
        let turned = super::super::proto::Attribute {
            name: "transB".into(),
            int: 1,
            ..Default::default()
        };
        let mut gemm = Node::of("Gemm", &["a", "b"], &["y"]);
        assert_eq!(dequantized_axis(&gemm), Some(Axis::Rows));
        gemm.attribute.push(turned.clone());
        assert_eq!(dequantized_axis(&gemm), Some(Axis::Columns));
        let mut fused = Node::of("QGemm", &["a", "", "", "b"], &["y"]);
        fused.domain = FUSED.into();
        fused.attribute.push(turned);
        let operator = Operator::of(&fused).expect("an operator");
        let axes: Vec<Axis> = operator.operands(&fused).map(|each| each.axis).collect();
        assert_eq!(axes, [Axis::Columns]);
    }
}
