//! A graph of one 8-bit product, to see what a processor makes of it.

use prost::Message;
use prost::bytes::Bytes;

use super::proto::{Kind, Named, Node, Tensor, TensorKind, data_type, graph_tag, model_tag, put};

/// The name of the graph's input.
pub const INPUT: &str = "inputs";
/// The name of the graph's output.
pub const OUTPUT: &str = "sums";

/// The weights of a product [rows, columns], in row-major order.
pub struct Weights {
    /// How many products are summed up.
    pub rows: usize,
    /// How many sums there are.
    pub columns: usize,
    /// Whether the bytes are signed.
    pub are_signed: bool,
    /// `rows` times `columns` of them.
    pub bytes: Vec<u8>,
}

/// `ModelProto.ir_version` and the version of the operators.
const IR_VERSION: i64 = 8;
const OPERATORS: i64 = 17;

#[derive(Clone, PartialEq, Message)]
struct OperatorSet {
    #[prost(int64, tag = "2")]
    version: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Head {
    #[prost(int64, tag = "1")]
    ir_version: i64,
    #[prost(message, repeated, tag = "8")]
    operators: Vec<OperatorSet>,
}

/// The graph of `MatMulInteger`: `inputs` uint8 [n, rows] to `sums` int32 [n, columns].
pub fn product(weights: Weights) -> Bytes {
    let weight = Tensor {
        dims: vec![weights.rows as i64, weights.columns as i64],
        data_type: if weights.are_signed {
            data_type::INT8
        } else {
            data_type::UINT8
        },
        name: "weights".into(),
        raw_data: Some(weights.bytes.into()),
        ..Tensor::default()
    };
    let node = Node {
        input: vec![INPUT.into(), weight.name.clone()],
        output: vec![OUTPUT.into()],
        op_type: "MatMulInteger".into(),
        ..Node::default()
    };
    let mut graph = Vec::new();
    put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
    // Every graph must have a name.
    put(&mut graph, graph_tag::NAME, b"product");
    put(&mut graph, graph_tag::INITIALIZER, &weight.encode_to_vec());
    put(
        &mut graph,
        graph_tag::INPUT,
        &named(INPUT, data_type::UINT8),
    );
    put(
        &mut graph,
        graph_tag::OUTPUT,
        &named(OUTPUT, data_type::INT32),
    );
    let head = Head {
        ir_version: IR_VERSION,
        operators: vec![OperatorSet { version: OPERATORS }],
    };
    let mut model = head.encode_to_vec();
    put(&mut model, model_tag::GRAPH, &graph);
    model.into()
}

fn named(name: &str, element: i32) -> Vec<u8> {
    let kind = Kind {
        tensor: Some(TensorKind { element }),
    };
    let named = Named {
        name: name.into(),
        kind: Some(kind),
    };
    named.encode_to_vec()
}
