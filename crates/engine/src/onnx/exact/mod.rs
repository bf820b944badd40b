//! A graph whose 8-bit products cannot saturate on any processor.
//!
//! A weight of signed bytes is replaced by the same weight in unsigned bytes: 128 is added to each
//! byte and to the zero point, which changes no product. All processors multiply unsigned by
//! unsigned bytes in 32 bits. A weight that is stored in the graph is stored in its new form, a
//! weight that is quantized when the graph runs is quantized to unsigned bytes, and any other
//! weight is moved by three more operators.

use std::collections::HashMap;
use std::path::Path;

use prost::bytes::Bytes;

use self::changes::Changes;
use super::inlined::{Inlined, inlined};
use super::products::{Axis, Operand, Operator, Pairs, dequantized_axis};
use super::proto::{
    Attribute, Node, Tensor, attribute_kind, attribute_tag, count, data_type, fields, graph_tag,
    model_tag, node_tag, put, with_inputs,
};
use super::scope::{Dequantizer, Scope, taken_apart};
use super::stored::signed_bytes;

mod changes;

/// How a processor, with the library, computes 8-bit products.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Processor {
    /// The pairs of weights whose products with unsigned bytes saturate.
    pub unsigned: Pairs,
    /// The pairs of weights whose products saturate with signed bytes that are quantized and
    /// dequantized before a product of floats. The library may turn these bytes into unsigned ones.
    pub dequantized: Pairs,
    /// Whether inputs that are quantized when a product with signed weights runs have a scale for
    /// each row, and not one for all.
    pub quantizes_rows: bool,
}

/// The 8-bit products of a graph whose results may be inexact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Products {
    /// The number of products that were made exact.
    pub mended: usize,
    /// The dimensions of the largest weight among the products that were made exact.
    pub largest: Vec<i64>,
    /// The products that may still be inexact, one line each.
    pub left: Vec<String>,
}

/// Returns the findings about a graph and, if it has to change, the graph whose products are exact
/// on `processor`. `folder` holds the weights that are not in the file. `None` for a file that is
/// no graph.
pub fn exact_graph(
    model: &Bytes,
    folder: &Path,
    processor: Processor,
) -> Option<(Products, Option<Bytes>)> {
    let mut mender = Mender {
        folder,
        processor,
        products: Products::default(),
        dequantizers: HashMap::new(),
        names: 0,
    };
    let other = match inlined(model)? {
        Inlined::AsItIs => None,
        Inlined::Other(model) => Some(model),
        Inlined::TooLarge => {
            let line = "its functions call each other too often to be looked at";
            mender.products.left.push(line.into());
            return Some((mender.products, None));
        }
    };
    let mut changed = Vec::new();
    let mut is_changed = false;
    for field in fields(other.as_ref().unwrap_or(model))? {
        let mended = match field.tag {
            model_tag::GRAPH => mender.graph(&field.value, None)?,
            _ => None,
        };
        match mended {
            Some(graph) => {
                is_changed = true;
                put(&mut changed, field.tag, &graph);
            }
            None => changed.extend_from_slice(&field.whole),
        }
    }
    Some((mender.products, is_changed.then(|| changed.into())))
}

/// The deepest nesting of graphs in graphs.
const MAX_NESTING: usize = 16;
/// The most values of a zero point that is added.
const MAX_ZERO_POINTS: usize = 1 << 24;

impl Node {
    /// Returns the name of a node in a message: its operator and its first result.
    fn label(&self) -> String {
        let result = self.output.first().map_or("", String::as_str);
        format!("{} \"{result}\"", self.op_type)
    }
}

struct Mender<'a> {
    folder: &'a Path,
    processor: Processor,
    products: Products,
    /// The dequantized weights, by the names of their results, whose products the library would
    /// turn into products of 8-bit integers, each with the axis that is summed over and the pairs
    /// that saturate.
    dequantizers: HashMap<String, (Axis, Pairs)>,
    /// The number of names that were made up.
    names: usize,
}

impl Mender<'_> {
    /// Returns the graph with its products mended; the inner `None` where nothing has to change.
    fn graph(&mut self, graph: &Bytes, outer: Option<&Scope<'_>>) -> Option<Option<Vec<u8>>> {
        let (all, nodes) = taken_apart(graph)?;
        let encoded = all.iter().filter(|field| field.tag == graph_tag::NODE);
        let encoded: Vec<&Bytes> = encoded.map(|field| &field.value).collect();
        let scope = Scope::of(&all, &nodes, outer)?;
        if scope.nesting > MAX_NESTING {
            let line = format!("graphs stand in each other more than {MAX_NESTING} deep");
            self.products.left.push(line);
            return Some(None);
        }
        if outer.is_none() {
            self.find_dequantizers(&nodes, &scope)?;
        }
        let mut changes = Changes::default();
        for (place, node) in nodes.iter().enumerate() {
            if node.has_graph()
                && let Some(changed) = self.branches(encoded[place], &scope)?
            {
                changes.nodes.insert(place, changed);
            }
        }
        for (place, node) in nodes.iter().enumerate() {
            let operands = self.operands(node, &scope);
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
        changes.assembled(&all, outer.is_none()).map(Some)
    }

    /// Returns a node with its graphs mended, where they have to change.
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

    /// Notes the dequantized weights of a graph and of the graphs in it. The product may be in an
    /// inner graph while the weight is in this one: the library replaces a node by one of its
    /// branches where it knows which one is taken.
    fn find_dequantizers(&mut self, nodes: &[Node], scope: &Scope<'_>) -> Option<()> {
        for node in nodes {
            self.note_dequantizer(node, scope);
            if scope.nesting == MAX_NESTING {
                continue;
            }
            for graph in node.graphs() {
                let (all, nodes) = taken_apart(graph)?;
                let scope = Scope::of(&all, &nodes, Some(scope))?;
                self.find_dequantizers(&nodes, &scope)?;
            }
        }
        Some(())
    }

    fn note_dequantizer(&mut self, node: &Node, scope: &Scope<'_>) {
        let Some(axis) = dequantized_axis(node) else {
            return;
        };
        let side = |place| {
            node.input(place)
                .map_or_else(Vec::new, |it| scope.dequantizers(it))
        };
        let lefts = side(0);
        let of_left = |left: &Dequantizer| match left.is_signed {
            Some(true) => self.processor.dequantized,
            _ => self.processor.unsigned,
        };
        let Some(pairs) = lefts.iter().map(of_left).max() else {
            return;
        };
        if pairs == Pairs::None {
            return;
        }
        for right in side(1) {
            if right.is_signed == Some(false) {
                continue;
            }
            let axis = right.order.axis(axis, right.dims.as_deref());
            let noted = self.dequantizers.entry(right.result);
            let (noted_axis, noted_pairs) = noted.or_insert((axis, pairs));
            *noted_pairs = pairs.max(*noted_pairs);
            if *noted_axis != axis {
                *noted_axis = Axis::Unknown;
            }
        }
    }

    /// Returns the weights of a node whose products may be inexact.
    fn operands(&self, node: &Node, scope: &Scope<'_>) -> Vec<Operand> {
        let Some(operator) = Operator::of(node) else {
            return self.dequantized(node, scope).into_iter().collect();
        };
        let pairs = match scope.has_signed_left(operator.left, node) {
            true => Pairs::None,
            false => self.processor.unsigned,
        };
        let is_by_row = self.processor.quantizes_rows
            && operator.is_fused_when_dynamic
            && scope.has_dynamic_left(operator.left, node);
        let is_meant = |operand: &Operand| {
            let weight = node.input(operand.weight);
            weight.is_some_and(|weight| {
                let is_signed = scope.is_signed(weight) != Some(false);
                is_signed && (is_by_row || self.has_pairs(pairs, weight, operand.axis, scope))
            })
        };
        operator.operands(node).filter(is_meant).collect()
    }

    /// Returns the weight of a dequantizer whose result is multiplied and whose products may be
    /// inexact.
    fn dequantized(&self, node: &Node, scope: &Scope<'_>) -> Option<Operand> {
        let result = node.output.first();
        let result = result.filter(|_| node.op_type == "DequantizeLinear")?;
        let (axis, pairs) = *self.dequantizers.get(result)?;
        let operand = Operand {
            weight: 0,
            zero_point: 2,
            axis,
        };
        let weight = node.input(operand.weight)?;
        self.has_pairs(pairs, weight, axis, scope)
            .then_some(operand)
    }

    fn has_pairs(&self, pairs: Pairs, weight: &str, axis: Axis, scope: &Scope<'_>) -> bool {
        if pairs == Pairs::None || scope.is_signed(weight) == Some(false) {
            return false;
        }
        let tensor = scope.tensor(weight);
        let values = tensor.and_then(|it| signed_bytes(it, self.folder).map(|values| (it, values)));
        // A weight that is not known before the graph runs can have any values.
        values.is_none_or(|(tensor, values)| pairs.are_in(&values, &tensor.dims, axis))
    }

    /// Returns the inputs of a node with unsigned weights; `None` where that is impossible.
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
                None => Some(self.zero_point((place, node), scope, changes)),
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

    /// Returns the name of the unsigned value of a signed one, at a node's place.
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
            .and_then(|tensor| Some((&tensor.dims, signed_bytes(tensor, self.folder)?)));
        let unsigned = self.name(name);
        match stored {
            Some((dims, values)) => {
                let bytes = values.iter().map(|value| value.cast_unsigned() ^ 0x80);
                changes
                    .tensors
                    .push(bytes_of(unsigned.clone(), dims, bytes.collect()));
            }
            None if scope.is_signed(name) == Some(true) => {
                let maker = scope
                    .maker(name)
                    .filter(|it| it.op_type == "QuantizeLinear");
                let nodes = match maker {
                    Some(maker) => vec![self.quantized(place, maker, &unsigned, scope, changes)?],
                    None => self.moved(name, &unsigned, changes).to_vec(),
                };
                changes.before.entry(place).or_default().extend(nodes);
            }
            None => return None,
        }
        changes.unsigned.insert(name.to_owned(), unsigned.clone());
        Some(unsigned)
    }

    /// Returns a node that quantizes to unsigned bytes the values that `maker` quantizes to signed
    /// ones. A quantizer and a dequantizer that stand together stay together, so that the library
    /// recognizes them.
    fn quantized(
        &mut self,
        place: usize,
        maker: &Node,
        to: &str,
        scope: &Scope<'_>,
        changes: &mut Changes,
    ) -> Option<Node> {
        let zero_point = match maker.input(2) {
            Some(name) => self.unsigned(place, name, scope, changes)?,
            None => self.zero_point((place, maker), scope, changes),
        };
        let mut node = maker.clone();
        node.input.resize(3, String::new());
        node.input[2] = zero_point;
        node.output = vec![to.to_owned()];
        // The zero point determines the type.
        node.attribute
            .retain(|attribute| attribute.name != "output_dtype");
        Some(node)
    }

    /// Returns the operators that make the unsigned value of a computed one.
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

    /// Returns the name of a zero point of 128, for a signed weight without one; for a quantizer or
    /// dequantizer it has the shape of the scale.
    fn zero_point(
        &mut self,
        (place, node): (usize, &Node),
        scope: &Scope<'_>,
        changes: &mut Changes,
    ) -> String {
        let name = self.name("zero_point");
        let has_scale = matches!(node.op_type.as_str(), "DequantizeLinear" | "QuantizeLinear");
        let Some(scale) = node.input(1).filter(|_| has_scale) else {
            changes.tensors.push(bytes_of(name.clone(), &[], vec![128]));
            return name;
        };
        let dims = scope.tensor(scale).map(|scale| &scale.dims);
        let sized = dims.and_then(|dims| Some((dims, count(dims)?)));
        match sized.filter(|(_, count)| *count <= MAX_ZERO_POINTS) {
            Some((dims, count)) => {
                changes
                    .tensors
                    .push(bytes_of(name.clone(), dims, vec![128; count]));
            }
            None => {
                let shape = self.name(scale);
                let nodes = shaped_like(scale, &shape, &name);
                changes.before.entry(place).or_default().extend(nodes);
            }
        }
        name
    }

    /// Returns a name that no graph has by accident.
    fn name(&mut self, origin: &str) -> String {
        self.names += 1;
        format!("{origin}/svc_unsigned_{}", self.names)
    }
}

/// Returns the operators that make a tensor of 128 in the shape of another one.
fn shaped_like(other: &str, shape: &str, to: &str) -> [Node; 2] {
    let of = Node {
        input: vec![other.to_owned()],
        output: vec![shape.to_owned()],
        op_type: "Shape".into(),
        ..Node::default()
    };
    let filled = Node {
        input: vec![shape.to_owned()],
        output: vec![to.to_owned()],
        op_type: "ConstantOfShape".into(),
        attribute: vec![Attribute {
            name: "value".into(),
            tensor: Some(bytes_of(String::new(), &[1], vec![128])),
            kind: attribute_kind::TENSOR,
            ..Attribute::default()
        }],
        ..Node::default()
    };
    [of, filled]
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

#[cfg(test)]
mod tests;
