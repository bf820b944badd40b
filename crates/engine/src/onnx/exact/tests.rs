//! The products that are made exact, and those that are left alone.

use prost::Message;

use super::*;
use crate::onnx::proto::{KeyValue, Kind, Named, TensorKind};

/// An x86 processor without VNNI.
const SATURATES: Processor = Processor {
    unsigned: Pairs::Large,
    dequantized: Pairs::Large,
    quantizes_rows: false,
};

/// Weights in which the two values of 100 are a pair that saturates.
const LARGE: [i8; 4] = [100, 1, 100, -1];
const SMALL: [i8; 4] = [64, 1, 64, -1];

fn tensor(name: &str, data_type: i32, values: &[i8]) -> Tensor {
    Tensor {
        dims: vec![values.len() as i64 / 2, 2],
        data_type,
        name: name.into(),
        raw_data: Some(values.iter().map(|value| value.cast_unsigned()).collect()),
        ..Tensor::default()
    }
}

fn scalar(name: &str, data_type: i32, value: i8) -> Tensor {
    Tensor {
        dims: vec![],
        ..tensor(name, data_type, &[value, 0])
    }
    .with_bytes(&[value.cast_unsigned()])
}

impl Tensor {
    fn with_bytes(mut self, bytes: &[u8]) -> Self {
        self.raw_data = Some(bytes.to_vec().into());
        self
    }
}

fn input(name: &str, element: i32) -> Named {
    let tensor = Some(TensorKind { element });
    Named {
        name: name.into(),
        kind: Some(Kind { tensor }),
    }
}

#[derive(Clone, Default)]
struct Parts {
    nodes: Vec<Node>,
    tensors: Vec<Tensor>,
    inputs: Vec<Named>,
}

impl Parts {
    fn bytes(&self) -> Bytes {
        self.bytes_with(&[])
    }

    fn bytes_with(&self, outputs: &[Named]) -> Bytes {
        let mut graph = Vec::new();
        for node in &self.nodes {
            put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
        }
        for tensor in &self.tensors {
            put(&mut graph, graph_tag::INITIALIZER, &tensor.encode_to_vec());
        }
        for input in &self.inputs {
            put(&mut graph, graph_tag::INPUT, &input.encode_to_vec());
        }
        for output in outputs {
            put(&mut graph, graph_tag::OUTPUT, &output.encode_to_vec());
        }
        graph.into()
    }

    fn model(&self) -> Bytes {
        let mut model = Vec::new();
        put(&mut model, model_tag::GRAPH, &self.bytes());
        model.into()
    }

    fn of(graph: &Bytes) -> Self {
        let mut parts = Self::default();
        for field in fields(graph).expect("a graph") {
            match field.tag {
                graph_tag::NODE => parts.nodes.push(Node::decode(field.value).expect("a node")),
                graph_tag::INITIALIZER => {
                    let tensor = Tensor::decode(field.value).expect("a tensor");
                    parts.tensors.push(tensor);
                }
                _ => {}
            }
        }
        parts
    }

    fn tensor(&self, name: &str) -> &Tensor {
        let mut tensors = self.tensors.iter();
        let found = tensors.find(|tensor| tensor.name == name);
        found.expect("a tensor of that name")
    }
}

fn look(parts: &Parts) -> (Products, Option<Parts>) {
    look_in(parts, Path::new("."))
}

fn look_in(parts: &Parts, folder: &Path) -> (Products, Option<Parts>) {
    look_on(parts, folder, SATURATES)
}

fn look_on(parts: &Parts, folder: &Path, processor: Processor) -> (Products, Option<Parts>) {
    let (products, graph) = exact_graph(&parts.model(), folder, processor).expect("a graph");
    let graph = graph.map(|model| {
        let graph = fields(&model).expect("a model").pop().expect("a graph");
        Parts::of(&graph.value)
    });
    (products, graph)
}

/// Returns a graph with one product of `a` with the weights `w`.
fn one(weights: &[i8]) -> Parts {
    Parts {
        nodes: vec![Node::of("MatMulInteger", &["a", "w"], &["y"])],
        tensors: vec![tensor("w", data_type::INT8, weights)],
        inputs: vec![input("a", data_type::UINT8)],
    }
}

#[test]
fn weights_that_saturate_become_unsigned_and_the_old_ones_go() {
    let (products, mended) = look(&one(&LARGE));
    assert_eq!((products.mended, products.left.len()), (1, 0));
    assert_eq!(products.largest, [2, 2]);
    let mended = mended.expect("another graph");
    let [weights, zero_point] = [1, 3].map(|at| mended.nodes[0].input[at].as_str());
    let weights = mended.tensor(weights);
    assert_eq!(
        (weights.data_type, &weights.dims),
        (data_type::UINT8, &vec![2, 2])
    );
    assert_eq!(weights.raw_data.as_deref(), Some(&[228, 129, 228, 127][..]));
    let zero_point = mended.tensor(zero_point);
    assert_eq!(zero_point.raw_data.as_deref(), Some(&[128][..]));
    assert!(zero_point.dims.is_empty());
    assert_eq!(mended.tensors.len(), 2);
    assert_eq!(mended.nodes[0].input[2], "");
}

#[test]
fn what_cannot_saturate_stays_as_it_is() {
    let mut unsigned = one(&LARGE);
    unsigned.tensors[0].data_type = data_type::UINT8;
    let mut signed_inputs = one(&LARGE);
    signed_inputs.inputs[0] = input("a", data_type::INT8);
    let mut signed_zero_point = one(&LARGE);
    signed_zero_point.inputs.clear();
    signed_zero_point.nodes[0].input.push("z".into());
    signed_zero_point
        .tensors
        .push(scalar("z", data_type::INT8, 3));
    let mut other = one(&LARGE);
    other.nodes[0].op_type = "MatMul".into();
    for parts in [
        one(&SMALL),
        unsigned,
        signed_inputs,
        signed_zero_point,
        other,
    ] {
        let (products, mended) = look(&parts);
        assert_eq!(products, Products::default());
        assert!(mended.is_none());
    }
}

#[test]
fn a_zero_point_moves_with_its_weights() {
    let mut parts = one(&LARGE);
    parts.nodes[0].input.extend([String::new(), "z".into()]);
    parts.tensors.push(scalar("z", data_type::INT8, -3));
    let mended = look(&parts).1.expect("another graph");
    let zero_point = mended.tensor(&mended.nodes[0].input[3]);
    assert_eq!(zero_point.raw_data.as_deref(), Some(&[125][..]));
}

#[test]
fn weights_of_two_products_are_stored_once_and_stay_where_another_reads_them() {
    let mut parts = one(&LARGE);
    parts
        .nodes
        .push(Node::of("MatMulInteger", &["a", "w"], &["y2"]));
    let mended = look(&parts).1.expect("another graph");
    assert_eq!(mended.nodes[0].input[1], mended.nodes[1].input[1]);
    parts.nodes.push(Node::of("Gather", &["w", "a"], &["rows"]));
    let (products, mended) = look(&parts);
    let mended = mended.expect("another graph");
    assert_eq!(products.mended, 2);
    assert_eq!(mended.nodes[2].input[0], "w");
    assert_eq!(mended.tensor("w").data_type, data_type::INT8);
}

#[test]
fn weights_that_are_computed_are_moved_by_three_operators() {
    let mut parts = one(&LARGE);
    parts.nodes[0].input[1] = "turned".into();
    let turn = Node::of("Transpose", &["w"], &["turned"]);
    parts.nodes.insert(0, turn);
    let (products, mended) = look(&parts);
    assert_eq!((products.mended, products.left.len()), (1, 0));
    let nodes = mended.expect("another graph").nodes;
    let operators: Vec<&str> = nodes.iter().map(|node| node.op_type.as_str()).collect();
    assert_eq!(
        operators,
        ["Transpose", "Cast", "Add", "Cast", "MatMulInteger"]
    );
    assert_eq!(nodes[4].input[1], nodes[3].output[0]);
    assert_eq!(nodes[1].input[0], "turned");
}

#[test]
fn the_type_of_weights_is_told_through_the_operators_that_make_them() {
    let graph_of = |nodes: Vec<Node>| Attribute {
        graph: Some(
            Parts {
                nodes,
                ..Parts::default()
            }
            .bytes_with(&[Named {
                name: "then".into(),
                kind: None,
            }]),
        ),
        ..Attribute::default()
    };
    let branches = Node {
        attribute: vec![graph_of(vec![Node::of("Neg", &["w"], &["then"])])],
        ..Node::of("If", &["c"], &["made"])
    };
    let operators = [
        "Pad", "Tile", "Max", "Min", "Concat", "Slice", "Gather", "Reshape",
    ];
    let others = ["Squeeze", "Unsqueeze", "Expand", "Identity", "Mul"];
    let first = operators.iter().chain(&others);
    let first = first.map(|operator| Node::of(operator, &["w", "x"], &["made"]));
    let last = Node::of("Where", &["x", "w", "w"], &["made"]);
    for maker in first.chain([last, branches]) {
        let mut parts = one(&LARGE);
        parts.nodes[0].input[1] = "made".into();
        parts.nodes.insert(0, maker.clone());
        let (products, mended) = look(&parts);
        assert_eq!((products.mended, products.left.len()), (1, 0), "{maker:?}");
        assert_eq!(mended.expect("another graph").nodes.len(), 5);
    }
}

#[test]
fn the_type_of_what_an_operator_on_8_bit_integers_makes_is_told() {
    for (operator, place) in [
        ("QLinearAdd", 0),
        ("QLinearSoftmax", 0),
        ("QLinearConcat", 1),
        ("QLinearWhere", 1),
        ("QLinearMatMul", 7),
        ("QLinearConv", 7),
        ("QGemm", 8),
    ] {
        let mut inputs = ["a"; 9];
        inputs[place] = "w";
        let mut parts = one(&LARGE);
        parts.nodes[0].input[1] = "made".into();
        parts
            .nodes
            .insert(0, Node::of(operator, &inputs, &["made"]));
        let (products, _) = look(&parts);
        assert_eq!((products.mended, products.left.len()), (1, 0), "{operator}");
    }
}

#[test]
fn weights_of_a_type_that_is_not_known_are_left_and_told() {
    let mut parts = one(&LARGE);
    parts.nodes[0].input[1] = "made".into();
    parts
        .nodes
        .insert(0, Node::of("Unheard", &["w"], &["made"]));
    let (products, mended) = look(&parts);
    let line = "MatMulInteger \"y\": the type of its weights is not known";
    assert_eq!(products.left, [line]);
    assert!(mended.is_none());
}

#[test]
fn both_weights_of_an_lstm_move() {
    let inputs = ["x", "w", "r", "", "", "", "", "", "ws", "wz", "rs", "rz"];
    let lstm = Node {
        domain: "com.microsoft".into(),
        ..Node::of("DynamicQuantizeLSTM", &inputs, &["y"])
    };
    let zero = |name| scalar(name, data_type::INT8, 0);
    let parts = Parts {
        nodes: vec![lstm],
        tensors: vec![
            tensor("w", data_type::INT8, &LARGE),
            tensor("r", data_type::INT8, &LARGE),
            zero("wz"),
            zero("rz"),
        ],
        inputs: vec![],
    };
    let (products, mended) = look(&parts);
    assert_eq!(products.mended, 2);
    let mended = mended.expect("another graph");
    for place in [1, 2, 9, 11] {
        let name = &mended.nodes[0].input[place];
        assert_eq!(mended.tensor(name).data_type, data_type::UINT8);
    }
}

/// Returns a graph with a product of dequantized floats: of `a`, and of the weights `w` after
/// the nodes `between`.
fn dequantized(weights: Tensor, left: i32, between: &[Node]) -> Parts {
    let right = if between.is_empty() {
        "right"
    } else {
        "turned"
    };
    let scale = Tensor {
        data_type: data_type::FLOAT,
        name: "s".into(),
        ..Tensor::default()
    };
    let mut nodes = vec![
        Node::of("DequantizeLinear", &["a", "s"], &["left"]),
        Node::of("DequantizeLinear", &["w", "s"], &["right"]),
    ];
    nodes.extend_from_slice(between);
    nodes.push(Node::of("MatMul", &["left", right], &["y"]));
    Parts {
        nodes,
        tensors: vec![weights, scale],
        inputs: vec![input("a", left)],
    }
}

#[test]
fn signed_inputs_that_are_dequantized_count_where_the_processor_says_so() {
    let parts = dequantized(tensor("w", data_type::INT8, &LARGE), data_type::INT8, &[]);
    assert_eq!(look(&parts).0.mended, 1);
    let keeps_them = Processor {
        dequantized: Pairs::None,
        ..SATURATES
    };
    let (products, mended) = look_on(&parts, Path::new("."), keeps_them);
    assert_eq!((products, mended.is_none()), (Products::default(), true));
    let unsigned = dequantized(tensor("w", data_type::INT8, &LARGE), data_type::UINT8, &[]);
    assert_eq!(look_on(&unsigned, Path::new("."), keeps_them).0.mended, 1);
}

#[test]
fn operators_that_the_library_takes_out_may_stand_between_a_dequantizer_and_a_product() {
    for (operator, mended) in [
        ("MaxPool", 1),
        ("Pad", 1),
        ("Mul", 1),
        ("Cast", 1),
        ("Relu", 0),
    ] {
        let mut parts = dequantized(tensor("w", data_type::INT8, &LARGE), data_type::UINT8, &[]);
        parts.nodes[2].input[0] = "between".into();
        let between = Node::of(operator, &["left"], &["between"]);
        parts.nodes.insert(2, between);
        assert_eq!(look(&parts).0.mended, mended, "{operator}");
    }
}

#[test]
fn a_constant_may_stand_on_either_side_of_what_the_library_takes_out() {
    let scaled = || dequantized(tensor("w", data_type::INT8, &LARGE), data_type::UINT8, &[]);
    for (operator, mended) in [("Mul", 1), ("Add", 1), ("Sub", 0), ("Div", 0)] {
        for (place, result) in [(0, "left"), (1, "right")] {
            for constant in ["s", "made"] {
                let mut parts = scaled();
                parts.nodes[2].input[place] = "between".into();
                let between = Node::of(operator, &[constant, result], &["between"]);
                let made = Node::of("Identity", &["s"], &["made"]);
                parts.nodes.splice(2..2, [made, between]);
                assert_eq!(look(&parts).0.mended, mended, "{operator} {result}");
            }
        }
    }
    // The sum with a computed value stays: no operator quantizes the sum of two values.
    let mut parts = scaled();
    parts.nodes[2].input[0] = "between".into();
    let between = Node::of("Add", &["computed", "left"], &["between"]);
    parts.nodes.insert(2, between);
    assert_eq!(look(&parts).0.mended, 0);
}

#[test]
fn a_branch_that_gives_what_it_dequantizes_is_seen_through() {
    for place in [0, 1] {
        let mut parts = dequantized(tensor("w", data_type::INT8, &LARGE), data_type::UINT8, &[]);
        let inner = Parts {
            nodes: vec![parts.nodes[place].clone()],
            ..Parts::default()
        };
        let output = Named {
            name: inner.nodes[0].output[0].clone(),
            kind: None,
        };
        parts.nodes[2].input[place] = "given".into();
        parts.nodes[place] = Node {
            attribute: vec![Attribute {
                graph: Some(inner.bytes_with(&[output])),
                ..Attribute::default()
            }],
            ..Node::of("If", &["c"], &["given"])
        };
        assert_eq!(look(&parts).0.mended, 1, "{place}");
    }
}

#[test]
fn the_inputs_of_a_convolution_of_integers_become_unsigned_where_its_weights_are() {
    let convolution = |inputs: i32, weights: i32| Parts {
        nodes: vec![Node::of("ConvInteger", &["a", "w"], &["y"])],
        tensors: vec![tensor("w", weights, &LARGE)],
        inputs: vec![input("a", inputs)],
    };
    let (int8, uint8) = (data_type::INT8, data_type::UINT8);
    let mended = look(&convolution(int8, uint8)).1.expect("another graph");
    assert_eq!(mended.nodes.len(), 4);
    assert_eq!(mended.nodes[3].input[0], mended.nodes[2].output[0]);
    assert_eq!(mended.nodes[3].input[1], "w");
    let zero_point = mended.tensor(&mended.nodes[3].input[2]);
    assert_eq!(zero_point.raw_data.as_deref(), Some(&[128][..]));
    for (inputs, weights) in [(uint8, int8), (uint8, uint8), (int8, int8)] {
        let (products, _) = look(&convolution(inputs, weights));
        assert_eq!(products, Products::default(), "{inputs} {weights}");
    }
}

#[test]
fn the_axis_of_weights_in_another_order_is_known_of_two_axes_that_are_turned_alone() {
    // The two values of 100 are no neighbours on either of the last two axes.
    let apart = [100, 1, 1, 1, 1, 100, 1, 1];
    let shaped = |dims: &[i64]| Tensor {
        dims: dims.to_vec(),
        ..tensor("w", data_type::INT8, &apart)
    };
    let turn = Node::of("Transpose", &["right"], &["turned"]);
    let reshape = Node::of("Reshape", &["right", "shape"], &["turned"]);
    let same = Node::of("Identity", &["right"], &["turned"]);
    let cases: [(&[i64], &Node, usize); 4] = [
        (&[4, 2], &turn, 0),
        (&[4, 1, 2], &turn, 1),
        (&[4, 2], &reshape, 1),
        (&[4, 2], &same, 0),
    ];
    for (dims, between, mended) in cases {
        let between = std::slice::from_ref(between);
        let parts = dequantized(shaped(dims), data_type::UINT8, between);
        assert_eq!(look(&parts).0.mended, mended, "{dims:?} {between:?}");
    }
}

#[test]
fn weights_that_are_dequantized_outside_of_the_graph_of_their_product_are_found() {
    let mut parts = dequantized(tensor("w", data_type::INT8, &LARGE), data_type::UINT8, &[]);
    let product = parts.nodes.pop().expect("a product");
    let branch = Parts {
        nodes: vec![product],
        ..Parts::default()
    };
    parts.nodes.push(Node {
        attribute: vec![Attribute {
            graph: Some(branch.bytes()),
            ..Attribute::default()
        }],
        ..Node::of("If", &["c"], &["z"])
    });
    assert_eq!(look(&parts).0.mended, 1);
}

#[test]
fn what_is_quantized_when_the_graph_runs_is_quantized_to_unsigned_bytes() {
    let mut parts = dequantized(tensor("w", data_type::INT8, &LARGE), data_type::UINT8, &[]);
    parts.tensors.push(scalar("z", data_type::INT8, -3));
    parts.nodes[1].input[0] = "q".into();
    let quantizer = Node {
        attribute: vec![Attribute {
            name: "output_dtype".into(),
            int: i64::from(data_type::INT8),
            ..Attribute::default()
        }],
        ..Node::of("QuantizeLinear", &["floats", "s", "z"], &["q"])
    };
    parts.nodes.insert(0, quantizer);
    let (products, mended) = look(&parts);
    assert_eq!((products.mended, products.left.len()), (1, 0));
    let mended = mended.expect("another graph");
    let made = mended
        .nodes
        .iter()
        .filter(|it| it.op_type == "QuantizeLinear");
    let [_, again] = made.collect::<Vec<&Node>>()[..] else {
        panic!("two quantizers");
    };
    assert_eq!(again.input[..2], ["floats", "s"]);
    assert!(again.attribute.is_empty());
    let zero_point = mended.tensor(&again.input[2]);
    assert_eq!(zero_point.raw_data.as_deref(), Some(&[125][..]));
    let dequantizer = mended.nodes.iter().find(|it| it.output == ["right"]);
    assert_eq!(dequantizer.map(|it| &it.input[0]), Some(&again.output[0]));
}

#[test]
fn a_scale_that_is_computed_tells_its_shape_when_the_graph_runs() {
    let mut parts = dequantized(tensor("w", data_type::INT8, &LARGE), data_type::UINT8, &[]);
    parts.nodes[1].input[1] = "computed".into();
    let mended = look(&parts).1.expect("another graph");
    let operators: Vec<&str> = mended.nodes.iter().map(|it| it.op_type.as_str()).collect();
    assert_eq!(
        operators[1..4],
        ["Shape", "ConstantOfShape", "DequantizeLinear"]
    );
    assert_eq!(mended.nodes[1].input, ["computed"]);
    let filled = mended.nodes[2].attribute[0].tensor.as_ref();
    let filled = filled.and_then(|it| it.raw_data.as_deref());
    assert_eq!(filled, Some(&[128][..]));
    assert_eq!(mended.nodes[3].input[2], mended.nodes[2].output[0]);
}

#[test]
fn all_signed_weights_of_inputs_that_are_quantized_when_it_runs_go_where_their_rows_are_quantized()
{
    let by_row = Processor {
        quantizes_rows: true,
        ..Processor::default()
    };
    let mended = |parts: &Parts| look_on(parts, Path::new("."), by_row).0.mended;
    assert_eq!(mended(&one(&LARGE)), 0);
    let mut dynamic = one(&SMALL);
    let maker = Node::of("DynamicQuantizeLinear", &["x"], &["a", "s", "z"]);
    dynamic.nodes.insert(0, maker);
    assert_eq!(mended(&dynamic), 1);
    let mut fused = one(&SMALL);
    fused.nodes[0].op_type = "DynamicQuantizeMatMul".into();
    fused.nodes[0].domain = "com.microsoft".into();
    assert_eq!(mended(&fused), 1);
    fused.tensors[0].data_type = data_type::UINT8;
    assert_eq!(mended(&fused), 0);
}

#[test]
fn a_dequantizer_gets_a_zero_point_of_the_shape_of_its_scale() {
    let scales = Tensor {
        dims: vec![2],
        data_type: 1,
        name: "s".into(),
        ..Tensor::default()
    };
    let parts = Parts {
        nodes: vec![
            Node::of("DequantizeLinear", &["a", "s"], &["left"]),
            Node::of("DequantizeLinear", &["w", "s"], &["right"]),
            Node::of("MatMul", &["left", "right"], &["y"]),
        ],
        tensors: vec![tensor("w", data_type::INT8, &LARGE), scales],
        inputs: vec![input("a", data_type::UINT8)],
    };
    let mended = look(&parts).1.expect("another graph");
    let zero_point = mended.tensor(&mended.nodes[1].input[2]);
    assert_eq!(zero_point.dims, [2]);
    assert_eq!(zero_point.raw_data.as_deref(), Some(&[128, 128][..]));
    // Without the dequantizer of its inputs the product is one of floats, not of integers.
    let mut float = parts;
    float.nodes.remove(0);
    assert!(look(&float).1.is_none());
}

#[test]
fn weights_beside_the_file_are_read_from_its_folder_and_from_nowhere_else() {
    let folder = std::env::temp_dir().join(format!("svc-exact-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let bytes = [&[9, 9][..], &LARGE.map(i8::cast_unsigned)].concat();
    std::fs::write(folder.join("model.onnx_data"), bytes).expect("a file");
    let beside = |location: &str, length: &str| {
        let mut parts = one(&LARGE);
        let weights = &mut parts.tensors[0];
        weights.raw_data = None;
        weights.data_location = 1;
        let entries = [("location", location), ("offset", "2"), ("length", length)];
        weights.external_data = entries
            .map(|(key, value)| KeyValue {
                key: key.into(),
                value: value.into(),
            })
            .to_vec();
        look_in(&parts, &folder).1.expect("another graph")
    };
    let mended = beside("model.onnx_data", "4");
    let weights = mended.tensor(&mended.nodes[0].input[1]);
    assert_eq!(weights.raw_data.as_deref(), Some(&[228, 129, 228, 127][..]));
    // A weight that is not read is moved when the graph runs.
    for (location, length) in [
        ("../model.onnx_data", "4"),
        ("/etc/passwd", "4"),
        ("model.onnx_data", "5"),
        ("not there", "4"),
    ] {
        let nodes = beside(location, length).nodes;
        assert_eq!(nodes.len(), 4, "{location}");
    }
    std::fs::remove_dir_all(folder).expect("a folder");
}

#[test]
fn a_graph_that_goes_round_or_has_no_end_is_not_followed() {
    let mut round = one(&LARGE);
    round.nodes[0].input[1] = "b".into();
    round.nodes.push(Node::of("Identity", &["c"], &["b"]));
    round.nodes.push(Node::of("Identity", &["b"], &["c"]));
    assert_eq!(look(&round).0.left.len(), 1);
    let mut deep = one(&LARGE);
    for _ in 0..100 {
        let branch = Attribute {
            graph: Some(deep.bytes()),
            ..Attribute::default()
        };
        let nodes = vec![Node {
            attribute: vec![branch],
            ..Node::of("If", &["a"], &["y"])
        }];
        deep = Parts {
            nodes,
            ..Parts::default()
        };
    }
    let line = "graphs stand in each other more than 16 deep";
    assert_eq!(look(&deep).0.left, [line]);
    let no_graph = Bytes::from_static(b"no graph");
    assert_eq!(exact_graph(&no_graph, Path::new("."), SATURATES), None);
}

#[test]
fn sizes_that_no_tensor_has_are_not_believed() {
    let mut parts = one(&LARGE);
    for dims in [vec![i64::MAX, i64::MAX], vec![-1, 2], vec![3, 2]] {
        parts.tensors[0].dims = dims;
        // The library will refuse this graph; here the work only has to end.
        assert_eq!(look(&parts).0.mended, 1);
    }
}
