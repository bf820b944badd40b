//! A graph whose 8-bit products cannot saturate on any processor.
//!
//! A weight of signed bytes is replaced by the same weight in unsigned bytes: 128 is added to each and to its zero point,
//! which changes no product. Unsigned by unsigned bytes are multiplied in 32 bits everywhere. A weight that is stored in
//! the graph is stored anew; one that is computed is moved by three more operators.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use prost::Message;
use prost::bytes::Bytes;

use super::products::{Axis, Left, Operand, Operator, can_saturate, dequantized_axis};
use super::proto::{
    Attribute, Field, Named, Node, Tensor, attribute_kind, attribute_tag, data_type, fields,
    function_tag, graph_tag, model_tag, node_tag, put, with_inputs,
};

/// What there is of 8-bit products in a graph that may saturate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Products {
    /// How many of them cannot any more.
    pub mended: usize,
    /// The dimensions of the largest weight among those.
    pub largest: Vec<i64>,
    /// Those that still can, a line each.
    pub left: Vec<String>,
}

/// What was found in a graph, and the graph that cannot saturate, where it is another one. `folder` is where weights that
/// are not in the file lie. `None` for a file that is no graph.
pub fn exact_graph(model: &Bytes, folder: &Path) -> Option<(Products, Option<Bytes>)> {
    let mut mender = Mender {
        folder,
        products: Products::default(),
        names: 0,
    };
    let mut changed = Vec::new();
    let mut is_changed = false;
    for field in fields(model)? {
        match field.tag {
            model_tag::GRAPH => match mender.graph(&field.value, None)? {
                Some(graph) => {
                    is_changed = true;
                    put(&mut changed, model_tag::GRAPH, &graph);
                }
                None => changed.extend_from_slice(&field.whole),
            },
            model_tag::FUNCTION => {
                mender.function(&field.value)?;
                changed.extend_from_slice(&field.whole);
            }
            _ => changed.extend_from_slice(&field.whole),
        }
    }
    Some((mender.products, is_changed.then(|| changed.into())))
}

/// How far the origin of a value is looked for; a graph that goes round would have no end.
const MAX_DEPTH: usize = 64;
/// How many graphs may stand in each other.
const MAX_NESTING: usize = 16;
/// The most values that a zero point is given.
const MAX_ZERO_POINTS: usize = 1 << 24;

/// Operators whose result has the elements of their first input.
const REORDERS: [&str; 11] = [
    "Concat",
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

/// The values that the nodes of a graph can name.
struct Scope<'a> {
    outer: Option<&'a Scope<'a>>,
    nesting: usize,
    tensors: HashMap<String, Tensor>,
    makers: HashMap<String, Node>,
    elements: HashMap<String, i32>,
}

impl<'a> Scope<'a> {
    fn of(all: &[Field], nodes: &[Node], outer: Option<&'a Scope<'a>>) -> Option<Self> {
        let (mut tensors, mut elements) = (HashMap::new(), HashMap::new());
        for field in all {
            match field.tag {
                graph_tag::INITIALIZER => {
                    let tensor = Tensor::decode(field.value.clone()).ok()?;
                    tensors.insert(tensor.name.clone(), tensor);
                }
                graph_tag::INPUT | graph_tag::VALUE_INFO => {
                    let named = Named::decode(field.value.clone()).ok()?;
                    let kind = named.kind.and_then(|kind| kind.tensor);
                    elements.extend(kind.map(|kind| (named.name, kind.element)));
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

    /// The values of a constant.
    fn tensor(&self, name: &str) -> Option<&Tensor> {
        match self.tensors.get(name) {
            None if self.makers.contains_key(name) => None,
            None => self.outer?.tensor(name),
            found => found,
        }
    }

    /// The node that makes a value.
    fn maker(&self, name: &str) -> Option<&Node> {
        match self.makers.get(name) {
            None if self.tensors.contains_key(name) => None,
            None => self.outer?.maker(name),
            found => found,
        }
    }

    /// The type of a value's elements, where it can be told.
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
        if depth == MAX_DEPTH {
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
            reorders if REORDERS.contains(&reorders) => of(0),
            _ => None,
        }
    }

    fn is_signed(&self, name: &str) -> Option<bool> {
        let element = self.element(name, 0)?;
        Some(element == data_type::INT8)
    }

    /// Whether the inputs of a product are signed: those never saturate.
    fn has_signed_left(&self, left: Left, node: &Node) -> bool {
        match left {
            Left::Unsigned => false,
            Left::Input { value, zero_point } => {
                let names = [node.input(zero_point), node.input(value)];
                let mut names = names.into_iter().flatten();
                names.find_map(|name| self.is_signed(name)) == Some(true)
            }
        }
    }

    /// The node that dequantizes a value, and whether its result is what it gives or the same in another order.
    fn dequantizer(&self, name: &str) -> Option<(&Node, bool)> {
        let (mut name, mut is_as_it_is) = (name, true);
        for _ in 0..MAX_DEPTH {
            let node = self.maker(name)?;
            match node.op_type.as_str() {
                "DequantizeLinear" => return Some((node, is_as_it_is)),
                reorders if REORDERS.contains(&reorders) => name = node.input(0)?,
                _ => return None,
            }
            is_as_it_is = false;
        }
        None
    }
}

impl Node {
    /// The value of a node that is a constant.
    fn constant(&self) -> Option<&Tensor> {
        let value = self.attribute("value")?.tensor.as_ref();
        value.filter(|_| self.op_type == "Constant")
    }

    /// How a line names a node: by its operator and its first result.
    fn label(&self) -> String {
        let result = self.output.first().map_or("", String::as_str);
        format!("{} \"{result}\"", self.op_type)
    }
}

struct Mender<'a> {
    folder: &'a Path,
    products: Products,
    /// How many names were made up.
    names: usize,
}

/// What is changed in one graph.
#[derive(Default)]
struct Changes {
    /// Nodes as they are to be, by their place.
    nodes: HashMap<usize, Bytes>,
    /// Nodes to stand in front of one, by its place.
    before: HashMap<usize, Vec<Node>>,
    tensors: Vec<Tensor>,
    /// The unsigned value of a signed one.
    unsigned: HashMap<String, String>,
}

impl Mender<'_> {
    /// The graph with its products mended; the inner `None` where nothing is to change.
    fn graph(&mut self, graph: &Bytes, outer: Option<&Scope<'_>>) -> Option<Option<Vec<u8>>> {
        let all = fields(graph)?;
        let encoded: Vec<&Bytes> = all
            .iter()
            .filter(|field| field.tag == graph_tag::NODE)
            .map(|field| &field.value)
            .collect();
        let nodes = encoded.iter().map(|node| Node::decode((*node).clone()));
        let nodes = nodes.collect::<Result<Vec<Node>, _>>().ok()?;
        let scope = Scope::of(&all, &nodes, outer)?;
        if scope.nesting > MAX_NESTING {
            return None;
        }
        let mut changes = Changes::default();
        for (place, node) in nodes.iter().enumerate() {
            if node.has_graph()
                && let Some(changed) = self.branches(encoded[place], &scope)?
            {
                changes.nodes.insert(place, changed);
            }
        }
        let dequantizers = self.dequantizers(&nodes, &scope);
        for (place, node) in nodes.iter().enumerate() {
            let operands = self.operands(node, &scope, &dequantizers);
            if operands.is_empty() {
                continue;
            }
            let as_it_is = changes.nodes.get(&place).unwrap_or(encoded[place]).clone();
            let inputs = self.unsigned_inputs((place, node), &operands, &scope, &mut changes);
            if let Some(inputs) = inputs {
                changes
                    .nodes
                    .insert(place, with_inputs(&as_it_is, &inputs)?);
            }
        }
        if changes.nodes.is_empty() {
            return Some(None);
        }
        assembled(&all, &changes, outer.is_none()).map(Some)
    }

    /// A node whose graphs are mended, where they are to change.
    fn branches(&mut self, node: &Bytes, scope: &Scope<'_>) -> Option<Option<Bytes>> {
        let (mut changed, mut is_changed) = (Vec::new(), false);
        for field in fields(node)? {
            if field.tag != node_tag::ATTRIBUTE {
                changed.extend_from_slice(&field.whole);
                continue;
            }
            let mut attribute = Vec::new();
            for part in fields(&field.value)? {
                let is_graph = matches!(part.tag, attribute_tag::GRAPH | attribute_tag::GRAPHS);
                let mended = is_graph.then(|| self.graph(&part.value, Some(scope)));
                match mended {
                    None | Some(Some(None)) => attribute.extend_from_slice(&part.whole),
                    Some(None) => return None,
                    Some(Some(Some(graph))) => {
                        is_changed = true;
                        put(&mut attribute, part.tag, &graph);
                    }
                }
            }
            put(&mut changed, node_tag::ATTRIBUTE, &attribute);
        }
        Some(is_changed.then(|| changed.into()))
    }

    /// A function is used with weights that are not seen here.
    fn function(&mut self, function: &Bytes) -> Option<()> {
        let nodes = fields(function)?;
        let nodes = nodes
            .into_iter()
            .filter(|field| field.tag == function_tag::NODE);
        for field in nodes {
            let node = Node::decode(field.value).ok()?;
            if Operator::of(&node).is_some() {
                let line = format!("{} in a function of the graph", node.label());
                self.products.left.push(line);
            }
        }
        Some(())
    }

    /// The dequantized weights, by their results, that ONNX Runtime would make a product of 8-bit integers of.
    fn dequantizers(&self, nodes: &[Node], scope: &Scope<'_>) -> HashMap<String, Axis> {
        let mut found = HashMap::new();
        for node in nodes {
            let Some(axis) = dequantized_axis(node) else {
                continue;
            };
            let side = |place| scope.dequantizer(node.input(place)?);
            let (Some((left, _)), Some((right, is_as_it_is))) = (side(0), side(1)) else {
                continue;
            };
            let is_signed = |node: &Node| node.input(0).and_then(|name| scope.is_signed(name));
            if is_signed(left) == Some(true) || is_signed(right) == Some(false) {
                continue;
            }
            let axis = if is_as_it_is { axis } else { Axis::Either };
            let name = right.output.first().cloned().unwrap_or_default();
            let other = found.insert(name.clone(), axis);
            if other.is_some_and(|other| other != axis) {
                found.insert(name, Axis::Unknown);
            }
        }
        found
    }

    /// The operands of a node that can saturate.
    fn operands(
        &self,
        node: &Node,
        scope: &Scope<'_>,
        dequantizers: &HashMap<String, Axis>,
    ) -> Vec<Operand> {
        let result = node.output.first();
        let dequantized = result.and_then(|name| dequantizers.get(name));
        let all = match (Operator::of(node), dequantized) {
            (Some(operator), _) if scope.has_signed_left(operator.left, node) => Vec::new(),
            (Some(operator), _) => operator.operands(node).collect(),
            (None, Some(axis)) => vec![Operand {
                weight: 0,
                zero_point: 2,
                axis: *axis,
            }],
            (None, None) => Vec::new(),
        };
        let can = |operand: &Operand| {
            let weight = node.input(operand.weight);
            weight.is_some_and(|weight| self.can_saturate(weight, operand.axis, scope))
        };
        all.into_iter().filter(can).collect()
    }

    fn can_saturate(&self, weight: &str, axis: Axis, scope: &Scope<'_>) -> bool {
        if scope.is_signed(weight) == Some(false) {
            return false;
        }
        let tensor = scope.tensor(weight);
        let values = tensor.and_then(|tensor| self.values(tensor).map(|values| (tensor, values)));
        // What is not known until it runs can be anything.
        values.is_none_or(|(tensor, values)| can_saturate(&values, &tensor.dims, axis))
    }

    /// The signed bytes of a tensor.
    fn values(&self, tensor: &Tensor) -> Option<Vec<i8>> {
        let signed = |bytes: &[u8]| bytes.iter().map(|byte| *byte as i8).collect();
        let values: Vec<i8> = match (&tensor.raw_data, tensor.data_location) {
            _ if tensor.data_type != data_type::INT8 => return None,
            (Some(raw), 0) => signed(raw),
            (None, 0) => tensor.int32_data.iter().map(|value| *value as i8).collect(),
            _ => signed(&read_beside(tensor, self.folder)?),
        };
        (count(&tensor.dims) == Some(values.len())).then_some(values)
    }

    /// The inputs of a node with unsigned weights; `None` where that cannot be.
    fn unsigned_inputs(
        &mut self,
        (place, node): (usize, &Node),
        operands: &[Operand],
        scope: &Scope<'_>,
        changes: &mut Changes,
    ) -> Option<Vec<String>> {
        let mut inputs = node.input.clone();
        for operand in operands {
            let weight = self.unsigned(place, &node.input[operand.weight], scope, changes);
            let zero_point = match node.input(operand.zero_point) {
                Some(name) => self.unsigned(place, name, scope, changes),
                None => Some(self.zero_point(node, scope, changes)),
            };
            let (Some(weight), Some(zero_point)) = (weight, zero_point) else {
                let line = format!("{}: the type of its weights is not known", node.label());
                self.products.left.push(line);
                return None;
            };
            let count = inputs.len().max(operand.zero_point + 1);
            inputs.resize(count, String::new());
            inputs[operand.weight] = weight;
            inputs[operand.zero_point] = zero_point;
            self.note_mended(&node.input[operand.weight], scope);
        }
        Some(inputs)
    }

    fn note_mended(&mut self, weight: &str, scope: &Scope<'_>) {
        self.products.mended += 1;
        let dims = scope.tensor(weight).map_or(&[][..], |tensor| &tensor.dims);
        let largest = count(&self.products.largest).unwrap_or(0);
        if dims.len() >= 2 && count(dims).is_some_and(|count| count > largest) {
            self.products.largest = dims.to_vec();
        }
    }

    /// The unsigned value of a signed one, at a node's place.
    fn unsigned(
        &mut self,
        place: usize,
        name: &str,
        scope: &Scope<'_>,
        changes: &mut Changes,
    ) -> Option<String> {
        if let Some(made) = changes.unsigned.get(name) {
            return Some(made.clone());
        }
        let stored = scope
            .tensor(name)
            .and_then(|tensor| Some((&tensor.dims, self.values(tensor)?)));
        let unsigned = self.name(name);
        match stored {
            Some((dims, values)) => {
                let bytes = values.iter().map(|value| value.cast_unsigned() ^ 0x80);
                changes
                    .tensors
                    .push(bytes_of(unsigned.clone(), dims, bytes.collect()));
            }
            None if scope.is_signed(name) == Some(true) => {
                let moved = self.moved(name, &unsigned, changes);
                changes.before.entry(place).or_default().extend(moved);
            }
            None => return None,
        }
        changes.unsigned.insert(name.to_owned(), unsigned.clone());
        Some(unsigned)
    }

    /// The operators that make the unsigned value of one that is computed.
    fn moved(&mut self, from: &str, to: &str, changes: &mut Changes) -> [Node; 3] {
        let [wide, sum, step] = [self.name(from), self.name(from), self.name(from)];
        changes.tensors.push(Tensor {
            data_type: data_type::INT32,
            int32_data: vec![128],
            name: step.clone(),
            ..Tensor::default()
        });
        let cast = |from: &str, to: &str, kind: i32| Node {
            input: vec![from.to_owned()],
            output: vec![to.to_owned()],
            op_type: "Cast".into(),
            attribute: vec![Attribute {
                name: "to".into(),
                int: i64::from(kind),
                kind: attribute_kind::INT,
                ..Attribute::default()
            }],
            ..Node::default()
        };
        let add = Node {
            input: vec![wide.clone(), step],
            output: vec![sum.clone()],
            op_type: "Add".into(),
            ..Node::default()
        };
        [
            cast(from, &wide, data_type::INT32),
            add,
            cast(&sum, to, data_type::UINT8),
        ]
    }

    /// A zero point of 128 where the signed weight has none; a dequantizer's has the shape of its scale.
    fn zero_point(&mut self, node: &Node, scope: &Scope<'_>, changes: &mut Changes) -> String {
        let scale = (node.op_type == "DequantizeLinear").then(|| node.input(1));
        let scale = scale.flatten().and_then(|name| scope.tensor(name));
        let dims = scale.map_or(&[][..], |scale| &scale.dims);
        let (dims, count) = match count(dims) {
            Some(count) if count <= MAX_ZERO_POINTS => (dims, count),
            _ => (&[][..], 1),
        };
        let name = self.name("zero_point");
        let zero_points = bytes_of(name.clone(), dims, vec![128; count]);
        changes.tensors.push(zero_points);
        name
    }

    /// A name that no graph has by accident.
    fn name(&mut self, origin: &str) -> String {
        self.names += 1;
        format!("{origin}/svc_unsigned_{}", self.names)
    }
}

/// How many values a tensor of these dimensions has.
fn count(dims: &[i64]) -> Option<usize> {
    let sizes = dims.iter().map(|size| usize::try_from(*size).ok());
    sizes
        .into_iter()
        .try_fold(1, |product: usize, size| product.checked_mul(size?))
}

fn bytes_of(name: String, dims: &[i64], bytes: Vec<u8>) -> Tensor {
    Tensor {
        dims: dims.to_vec(),
        data_type: data_type::UINT8,
        name,
        raw_data: Some(bytes.into()),
        ..Tensor::default()
    }
}

/// A graph with its changes. What the outermost graph no longer needs of its weights is left out.
fn assembled(all: &[Field], changes: &Changes, is_outermost: bool) -> Option<Vec<u8>> {
    let mut graph = Vec::new();
    let mut read = HashSet::new();
    let nodes = all.iter().filter(|field| field.tag == graph_tag::NODE);
    for (place, field) in nodes.enumerate() {
        for node in changes.before.get(&place).into_iter().flatten() {
            read.extend(node.input.iter().cloned());
            put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
        }
        let node = changes.nodes.get(&place).unwrap_or(&field.value);
        names_read(node, &mut read)?;
        put(&mut graph, graph_tag::NODE, node);
    }
    for field in all {
        let is_given = matches!(field.tag, graph_tag::INPUT | graph_tag::OUTPUT);
        if is_given {
            read.insert(Named::decode(field.value.clone()).ok()?.name);
        }
    }
    for field in all {
        let stays = match field.tag {
            graph_tag::NODE => false,
            graph_tag::INITIALIZER if is_outermost => {
                let name = Tensor::decode(field.value.clone()).ok()?.name;
                !changes.unsigned.contains_key(&name) || read.contains(&name)
            }
            _ => true,
        };
        if stays {
            graph.extend_from_slice(&field.whole);
        }
    }
    for tensor in &changes.tensors {
        put(&mut graph, graph_tag::INITIALIZER, &tensor.encode_to_vec());
    }
    Some(graph)
}

/// Adds the names that a node and the graphs in it read.
fn names_read(node: &Bytes, read: &mut HashSet<String>) -> Option<()> {
    let node = Node::decode(node.clone()).ok()?;
    read.extend(node.input);
    for attribute in node.attribute {
        for graph in attribute.graph.into_iter().chain(attribute.graphs) {
            for field in fields(&graph)? {
                match field.tag {
                    graph_tag::NODE => names_read(&field.value, read)?,
                    graph_tag::OUTPUT => {
                        read.insert(Named::decode(field.value).ok()?.name);
                    }
                    _ => {}
                }
            }
        }
    }
    Some(())
}

/// The bytes of a tensor that lie in another file of the folder.
fn read_beside(tensor: &Tensor, folder: &Path) -> Option<Vec<u8>> {
    let entries = tensor.external_data.iter();
    let entry = |key: &str| entries.clone().find(|entry| entry.key == key);
    let number = |key: &str| match entry(key) {
        Some(entry) => entry.value.parse::<u64>().ok(),
        None => Some(0),
    };
    let location = &entry("location")?.value;
    // A file of the folder and no other: where else a path may lead is ONNX Runtime's to judge.
    if location.contains(['/', '\\']) || location.starts_with('.') {
        return None;
    }
    let path = dunce::canonicalize(folder.join(location)).ok()?;
    let mut file = File::open(&path).ok().filter(|_| path.is_file())?;
    let (offset, length) = (number("offset")?, number("length")?);
    if offset.checked_add(length)? > file.metadata().ok()?.len() {
        return None;
    }
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::proto::{Entry, Kind, TensorKind};
    use super::*;

    /// 100 and 100 are a pair that saturates.
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

    #[derive(Default)]
    struct Parts {
        nodes: Vec<Node>,
        tensors: Vec<Tensor>,
        inputs: Vec<Named>,
    }

    impl Parts {
        fn bytes(&self) -> Bytes {
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
        let (products, graph) = exact_graph(&parts.model(), folder).expect("a graph");
        let graph = graph.map(|model| {
            let graph = fields(&model).expect("a model").pop().expect("a graph");
            Parts::of(&graph.value)
        });
        (products, graph)
    }

    /// One product of `a` with the weights `w`.
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
        // In floats nothing is multiplied in integers.
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
                .map(|(key, value)| Entry {
                    key: key.into(),
                    value: value.into(),
                })
                .to_vec();
            look_in(&parts, &folder).1.expect("another graph")
        };
        let mended = beside("model.onnx_data", "4");
        let weights = mended.tensor(&mended.nodes[0].input[1]);
        assert_eq!(weights.raw_data.as_deref(), Some(&[228, 129, 228, 127][..]));
        // What is not read is moved when it runs.
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
        assert_eq!(exact_graph(&deep.model(), Path::new(".")), None);
        let no_graph = Bytes::from_static(b"no graph");
        assert_eq!(exact_graph(&no_graph, Path::new(".")), None);
    }

    #[test]
    fn sizes_that_no_tensor_has_are_not_believed() {
        let mut parts = one(&LARGE);
        for dims in [vec![i64::MAX, i64::MAX], vec![-1, 2], vec![3, 2]] {
            parts.tensors[0].dims = dims;
            // The library will refuse it; here it only must end.
            assert_eq!(look(&parts).0.mended, 1);
        }
    }
}
