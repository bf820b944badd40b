//! Graphs with a single 8-bit product, which show how a processor computes it.

use prost::Message;
use prost::bytes::Bytes;

use super::proto::{
    Head, Kind, Named, Node, OperatorSet, Tensor, TensorKind, data_type, graph_tag, model_tag, put,
};

/// The name of a graph's input.
pub const INPUT: &str = "inputs";
/// The name of a graph's output.
pub const OUTPUT: &str = "sums";

/// The weights of a product [rows, columns], in row-major order.
pub struct Weights {
    /// The number of products that are summed up.
    pub rows: usize,
    /// The number of sums.
    pub columns: usize,
    /// Whether the bytes are signed.
    pub are_signed: bool,
    /// The weights, `rows` times `columns` bytes.
    pub bytes: Vec<u8>,
}

impl Weights {
    fn tensor(self) -> Tensor {
        let element = if self.are_signed {
            data_type::INT8
        } else {
            data_type::UINT8
        };
        let dims = vec![self.rows as i64, self.columns as i64];
        tensor("weights", element, dims, self.bytes)
    }
}

/// `ModelProto.ir_version` and the version of the operators.
const IR_VERSION: i64 = 8;
const OPERATORS: i64 = 17;
/// The domain of ONNX Runtime's own operators.
const FUSED: &str = "com.microsoft";

/// Returns the graph of `MatMulInteger`: `inputs` uint8 [n, rows] to `sums` int32 [n, columns].
pub fn product(weights: Weights) -> Bytes {
    Parts {
        nodes: vec![node("MatMulInteger", &[INPUT, "weights"], OUTPUT)],
        weights: vec![weights.tensor()],
        element: data_type::UINT8,
        sums: data_type::INT32,
    }
    .model()
}

/// Returns the graph of a product whose inputs are quantized to signed bytes, and dequantized as
/// the weights are: `inputs` float32 [n, rows] to `sums` float32 [n, columns]. All scales are 1.
pub fn dequantized_product(weights: Weights) -> Bytes {
    Parts {
        nodes: vec![
            node("QuantizeLinear", &[INPUT, "one", "zero"], "signed"),
            node("DequantizeLinear", &["signed", "one", "zero"], "left"),
            node("DequantizeLinear", &["weights", "one", "zero"], "right"),
            node("MatMul", &["left", "right"], OUTPUT),
        ],
        weights: vec![
            weights.tensor(),
            one("one"),
            tensor("zero", data_type::INT8, vec![], vec![0]),
        ],
        element: data_type::FLOAT,
        sums: data_type::FLOAT,
    }
    .model()
}

/// Returns the graph of `DynamicQuantizeMatMul`: `inputs` float32 [n, rows] to `sums` float32
/// [n, columns]. The weights' scale is 1.
pub fn dynamic_product(weights: Weights) -> Bytes {
    let product = Node {
        domain: FUSED.into(),
        ..node("DynamicQuantizeMatMul", &[INPUT, "weights", "one"], OUTPUT)
    };
    Parts {
        nodes: vec![product],
        weights: vec![weights.tensor(), one("one")],
        element: data_type::FLOAT,
        sums: data_type::FLOAT,
    }
    .model()
}

struct Parts {
    nodes: Vec<Node>,
    weights: Vec<Tensor>,
    /// The type of the inputs.
    element: i32,
    /// The type of the sums.
    sums: i32,
}

impl Parts {
    fn model(&self) -> Bytes {
        let mut graph = Vec::new();
        for node in &self.nodes {
            put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
        }
        // Every graph must have a name.
        put(&mut graph, graph_tag::NAME, b"product");
        for weight in &self.weights {
            put(&mut graph, graph_tag::INITIALIZER, &weight.encode_to_vec());
        }
        put(
            &mut graph,
            graph_tag::INPUT,
            &value_info(INPUT, self.element),
        );
        put(
            &mut graph,
            graph_tag::OUTPUT,
            &value_info(OUTPUT, self.sums),
        );
        let set = |domain: &str, version| OperatorSet {
            domain: domain.into(),
            version,
        };
        let head = Head {
            ir_version: IR_VERSION,
            operators: vec![set("", OPERATORS), set(FUSED, 1)],
        };
        let mut model = head.encode_to_vec();
        put(&mut model, model_tag::GRAPH, &graph);
        model.into()
    }
}

fn node(op_type: &str, input: &[&str], output: &str) -> Node {
    Node {
        input: input.iter().map(|name| (*name).into()).collect(),
        output: vec![output.into()],
        op_type: op_type.into(),
        ..Node::default()
    }
}

fn one(name: &str) -> Tensor {
    let bytes = 1_f32.to_le_bytes().to_vec();
    tensor(name, data_type::FLOAT, vec![], bytes)
}

fn tensor(name: &str, data_type: i32, dims: Vec<i64>, bytes: Vec<u8>) -> Tensor {
    Tensor {
        dims,
        data_type,
        name: name.into(),
        raw_data: Some(bytes.into()),
        ..Tensor::default()
    }
}

fn value_info(name: &str, element: i32) -> Vec<u8> {
    let kind = Kind {
        tensor: Some(TensorKind { element }),
    };
    let named = Named {
        name: name.into(),
        kind: Some(kind),
    };
    named.encode_to_vec()
}
