//! The facts about the values of a graph that are known before it runs: constants, the origins of
//! other values, and types.

use std::collections::HashMap;

use prost::Message;
use prost::bytes::Bytes;

use super::products::{Axis, Left};
use super::proto::{Field, Named, Node, Tensor, data_type, fields, graph_tag, nodes};

/// The most steps in the search for the origin of a value; in a cyclic graph the search would have
/// no end.
const MAX_DEPTH: usize = 64;
/// The steps that a graph in a graph counts for, since each may have two graphs to search.
const DEPTH_OF_GRAPH: usize = 8;

/// Operators whose result has the elements of their first input.
const REORDERS: [&str; 12] = [
    "Concat",
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Gather",
    "Identity",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
];

/// Other operators whose result has the type of their first input.
const KEEPS_TYPE: [&str; 39] = [
    "Abs",
    "Add",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "CenterCropPad",
    "Clip",
    "Compress",
    "CumSum",
    "Div",
    "Dropout",
    "GatherElements",
    "GatherND",
    "Max",
    "MaxPool",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Neg",
    "Pad",
    "Pow",
    "ReduceMax",
    "ReduceMin",
    "Relu",
    "Resize",
    "ReverseSequence",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "Sign",
    "SpaceToDepth",
    "Sub",
    "Sum",
    "Tile",
    "TopK",
    "Trilu",
];

/// Operators between a dequantizer and a product that the library removes, where they change
/// nothing, or moves to the place before the dequantizer.
const PASSED: [&str; 8] = [
    "Add", "Cast", "Div", "Dropout", "MaxPool", "Mul", "Pad", "Sub",
];

/// Operators of [`PASSED`] that change nothing with a constant on either side.
const EITHER: [&str; 2] = ["Add", "Mul"];

/// Returns the place of the input whose type the result of an operator has; for operators on 8-bit
/// integers it is often a zero point.
fn typed_by(op_type: &str) -> Option<usize> {
    match op_type {
        "Where" | "CastLike" | "QLinearConcat" | "QLinearWhere" => Some(1),
        "OneHot" => Some(2),
        "QLinearMatMul" | "QLinearConv" => Some(7),
        "QGemm" => Some(8),
        "Unique" | "NhwcMaxPool" => Some(0),
        // These are QLinearAdd, QLinearSoftmax and so on.
        _ if op_type.starts_with("QLinear") => Some(0),
        _ if REORDERS.contains(&op_type) || KEEPS_TYPE.contains(&op_type) => Some(0),
        _ => None,
    }
}

/// The values that the nodes of a graph can name.
pub struct Scope<'a> {
    outer: Option<&'a Scope<'a>>,
    /// The number of graphs around this one.
    pub nesting: usize,
    tensors: HashMap<String, Tensor>,
    makers: HashMap<String, Node>,
    elements: HashMap<String, i32>,
}

impl<'a> Scope<'a> {
    /// Returns the scope of a graph of these fields and nodes, within another one.
    pub fn of(all: &[Field], nodes: &[Node], outer: Option<&'a Scope<'a>>) -> Option<Self> {
        let (mut tensors, mut elements) = (HashMap::new(), HashMap::new());
        for field in all {
            match field.tag {
                graph_tag::INITIALIZER => {
                    let tensor = Tensor::decode(field.value.clone()).ok()?;
                    tensors.insert(tensor.name.clone(), tensor);
                }
                graph_tag::INPUT | graph_tag::OUTPUT | graph_tag::VALUE_INFO => {
                    let named = Named::decode(field.value.clone()).ok()?;
                    let kind = named.kind.and_then(|kind| kind.tensor);
                    let known = kind.filter(|kind| kind.element != 0);
                    elements.extend(known.map(|kind| (named.name, kind.element)));
                }
                _ => {}
            }
        }
        let mut makers = HashMap::new();
        for node in nodes {
            if let Some(tensor) = node.constant() {
                tensors.insert(node.output.first()?.clone(), tensor.clone());
            }
            let outputs = node.output.iter().filter(|name| !name.is_empty());
            makers.extend(outputs.map(|name| (name.clone(), node.clone())));
        }
        Some(Self {
            outer,
            nesting: outer.map_or(0, |outer| outer.nesting + 1),
            tensors,
            makers,
            elements,
        })
    }

    /// Returns the constant of this name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        match self.tensors.get(name) {
            None if self.makers.contains_key(name) => None,
            None => self.outer?.tensor(name),
            found => found,
        }
    }

    /// Returns the node that makes a value.
    pub fn maker(&self, name: &str) -> Option<&Node> {
        match self.makers.get(name) {
            None if self.tensors.contains_key(name) => None,
            None => self.outer?.maker(name),
            found => found,
        }
    }

    /// Returns the type of a value's elements, where it is known.
    fn element(&self, name: &str, depth: usize) -> Option<i32> {
        if let Some(tensor) = self.tensor(name) {
            return Some(tensor.data_type);
        }
        if let Some(element) = self.elements.get(name) {
            return Some(*element);
        }
        let Some(node) = self.makers.get(name) else {
            return self.outer?.element(name, depth);
        };
        if depth >= MAX_DEPTH {
            return None;
        }
        let of = |input: usize| self.element(node.input(input)?, depth + 1);
        let attribute = |name| node.attribute(name).map(|attribute| attribute.int as i32);
        match node.op_type.as_str() {
            "Cast" => attribute("to"),
            "QuantizeLinear" => of(2)
                .or_else(|| attribute("output_dtype").filter(|kind| *kind != 0))
                .or_else(|| node.input(2).is_none().then_some(data_type::UINT8)),
            "DynamicQuantizeLinear" => Some(data_type::UINT8),
            "ConstantOfShape" => {
                let value = node.attribute("value")?.tensor.as_ref();
                value.map(|value| value.data_type)
            }
            "If" | "Loop" | "Scan" => self.element_of_graph(node, name, depth),
            operator => of(typed_by(operator)?),
        }
    }

    /// Returns the type of a result of a node that runs graphs; all its graphs give the same type.
    fn element_of_graph(&self, node: &Node, name: &str, depth: usize) -> Option<i32> {
        let place = node.output.iter().position(|output| output == name)?;
        // The first result of a loop's graph tells whether the loop goes on.
        let place = place + usize::from(node.op_type == "Loop");
        node.graphs().find_map(|graph| {
            self.in_graph(graph, place, |scope, output| {
                scope.element(output, depth + DEPTH_OF_GRAPH)
            })
        })
    }

    /// Whether a value consists of signed bytes; `None` where that is not known.
    pub fn is_signed(&self, name: &str) -> Option<bool> {
        let element = self.element(name, 0)?;
        Some(element == data_type::INT8)
    }

    /// Whether the inputs of a product are signed.
    pub fn has_signed_left(&self, left: Left, node: &Node) -> bool {
        match left {
            Left::Unsigned => false,
            Left::Input { value, zero_point } => {
                let names = [node.input(zero_point), node.input(value)];
                let mut names = names.into_iter().flatten();
                names.find_map(|name| self.is_signed(name)) == Some(true)
            }
        }
    }

    /// Whether the inputs of a product are quantized when it runs, by their own least and greatest
    /// values.
    pub fn has_dynamic_left(&self, left: Left, node: &Node) -> bool {
        match left {
            Left::Unsigned => true,
            Left::Input { value, .. } => {
                let maker = node.input(value).and_then(|name| self.maker(name));
                maker.is_some_and(|maker| maker.op_type == "DynamicQuantizeLinear")
            }
        }
    }

    /// Returns the nodes that dequantize a value, or may do so once the library has removed the
    /// nodes that it can.
    pub fn dequantizers(&self, name: &str) -> Vec<Dequantizer> {
        let mut found = Vec::new();
        self.find_dequantizers(name, (Order::AsItIs, 0), &mut found);
        found
    }

    fn find_dequantizers(
        &self,
        name: &str,
        (mut order, start): (Order, usize),
        found: &mut Vec<Dequantizer>,
    ) {
        let mut name = name;
        for depth in start..MAX_DEPTH {
            let Some(node) = self.maker(name) else { return };
            order = match (node.op_type.as_str(), order) {
                ("DequantizeLinear", order) => {
                    found.extend(self.dequantizer(node, order));
                    return;
                }
                ("If", order) => {
                    self.find_dequantizers_in_branches(node, name, (order, depth), found);
                    return;
                }
                ("Identity", order) => order,
                ("Transpose", Order::AsItIs | Order::Turned) => Order::Turned,
                (passed, _) if PASSED.contains(&passed) => Order::Other,
                (reorders, _) if REORDERS.contains(&reorders) => Order::Other,
                _ => return,
            };
            let Some(first) = node.input(0) else { return };
            name = first;
            let second = node.input(1).filter(|_| EITHER.contains(&&*node.op_type));
            if let Some(second) = second.filter(|_| self.is_constant(first)) {
                // Besides `second`, the value is made of at most a constant's dequantizer.
                let one = self.maker(first);
                let one = one.filter(|node| node.op_type == "DequantizeLinear");
                found.extend(one.and_then(|node| self.dequantizer(node, order)));
                name = second;
            }
        }
    }

    /// Searches the branches of a node, since the library replaces the node by a branch that is
    /// always taken.
    fn find_dequantizers_in_branches(
        &self,
        node: &Node,
        name: &str,
        (order, depth): (Order, usize),
        found: &mut Vec<Dequantizer>,
    ) {
        let Some(place) = node.output.iter().position(|output| output == name) else {
            return;
        };
        for graph in node.graphs() {
            self.in_graph(graph, place, |scope, output| {
                let from = (order, depth + DEPTH_OF_GRAPH);
                scope.find_dequantizers(output, from, found);
                Some(())
            });
        }
    }

    /// Returns the result of `look` for the output at `place` of a graph in this one.
    fn in_graph<Found>(
        &self,
        graph: &Bytes,
        place: usize,
        look: impl FnOnce(&Scope<'_>, &str) -> Option<Found>,
    ) -> Option<Found> {
        let (all, nodes) = taken_apart(graph)?;
        let mut outputs = all.iter().filter(|field| field.tag == graph_tag::OUTPUT);
        let output = Named::decode(outputs.nth(place)?.value.clone()).ok()?;
        look(&Scope::of(&all, &nodes, Some(self))?, &output.name)
    }

    fn dequantizer(&self, node: &Node, order: Order) -> Option<Dequantizer> {
        let quantized = node.input(0)?;
        Some(Dequantizer {
            result: node.output.first()?.clone(),
            is_signed: self.is_signed(quantized),
            dims: self.tensor(quantized).map(|tensor| tensor.dims.clone()),
            order,
        })
    }

    /// Whether a value is stored, or made only of stored values.
    fn is_constant(&self, name: &str) -> bool {
        let is_stored = |name: &str| self.tensor(name).is_some();
        let is_made = |node: &Node| {
            node.input
                .iter()
                .all(|name| name.is_empty() || is_stored(name))
        };
        is_stored(name) || self.maker(name).is_some_and(is_made)
    }
}

/// A node that dequantizes a value.
pub struct Dequantizer {
    /// The name of the node's result.
    pub result: String,
    /// Whether the node dequantizes signed bytes; `None` where that is not known.
    pub is_signed: Option<bool>,
    /// The dimensions of the quantized value, where it is stored.
    pub dims: Option<Vec<i64>>,
    /// The change from the node's result to the value.
    pub order: Order,
}

/// The change to a weight before it is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    AsItIs,
    /// The weight's axes change places.
    Turned,
    /// The weight changes in another way that keeps its elements.
    Other,
}

impl Order {
    /// Returns the axis of a weight of these dimensions that a product sums over, if `axis` is the
    /// one of the changed weight.
    pub fn axis(self, axis: Axis, dims: Option<&[i64]>) -> Axis {
        match (self, dims) {
            (Self::AsItIs, _) => axis,
            (Self::Turned, Some([_, _])) if axis != Axis::Unknown => Axis::Either,
            _ => Axis::Unknown,
        }
    }
}

impl Node {
    /// Returns the value of a node that is a constant.
    fn constant(&self) -> Option<&Tensor> {
        let value = self.attribute("value")?.tensor.as_ref();
        value.filter(|_| self.op_type == "Constant")
    }
}

/// Returns the fields and nodes of a graph.
pub fn taken_apart(graph: &Bytes) -> Option<(Vec<Field>, Vec<Node>)> {
    let all = fields(graph)?;
    let nodes = nodes(&all)?.into_iter().map(|(node, _)| node).collect();
    Some((all, nodes))
}
