//! The inlining of a model's own functions into its graph.
//!
//! A call of a function is replaced by the nodes of its body, as ONNX Runtime does when it opens
//! the file: with the operator versions of the model, whatever versions the function names. So a
//! product is seen with the weights that the call gives it.

use std::collections::HashMap;

use prost::Message;
use prost::bytes::Bytes;

use super::proto::{
    Field, Node, OperatorSet, attribute_tag, fields, graph_tag, model_tag, node_tag, put,
};

/// The deepest nesting of calls in calls, and of graphs in them.
const MAX_DEPTH: usize = 32;
/// The most bytes of bodies that replace calls; a file cannot be larger either.
const MAX_BYTES: usize = 1 << 31;
/// The most calls.
const MAX_CALLS: usize = 1 << 20;

/// The outcome of inlining a model.
#[derive(Debug, PartialEq, Eq)]
pub enum Inlined {
    /// The model calls no functions.
    AsItIs,
    /// The model without calls.
    Other(Bytes),
    /// The model's calls are nested without end, or would become too large.
    TooLarge,
}

/// Returns a model without calls of its functions; `None` for a file that is no model.
pub fn inlined(model: &Bytes) -> Option<Inlined> {
    let all = fields(model)?;
    let functions = all.iter().filter(|field| field.tag == model_tag::FUNCTION);
    let functions = functions.map(|field| Function::decode(field.value.clone()).ok());
    let functions: HashMap<Id, Function> = functions
        .map(|function| function.map(|function| (function.id(), function)))
        .collect::<Option<_>>()?;
    if functions.is_empty() {
        return Some(Inlined::AsItIs);
    }
    let mut inliner = Inliner {
        functions: &functions,
        calls: 0,
        bytes: 0,
    };
    let mut changed = Vec::new();
    for field in &all {
        match field.tag {
            model_tag::FUNCTION => {}
            model_tag::GRAPH => match inliner.graph(&field.value, 0) {
                Ok(graph) => put(&mut changed, model_tag::GRAPH, &graph),
                Err(Stopped::NoGraph) => return None,
                Err(Stopped::TooLarge) => return Some(Inlined::TooLarge),
            },
            _ => changed.extend_from_slice(&field.whole),
        }
    }
    if inliner.calls == 0 {
        return Some(Inlined::AsItIs);
    }
    add_operator_sets(&mut changed, &all, &functions);
    Some(Inlined::Other(changed.into()))
}

/// Adds the operator domains that functions name and the model does not.
fn add_operator_sets(changed: &mut Vec<u8>, all: &[Field], functions: &HashMap<Id, Function>) {
    let own = all.iter().filter(|field| field.tag == model_tag::OPERATORS);
    let own = own.filter_map(|field| OperatorSet::decode(field.value.clone()).ok());
    let mut known: Vec<String> = own.map(|set| set.domain).collect();
    let of_functions = functions.values().flat_map(|function| &function.operators);
    let mut others: Vec<&OperatorSet> = of_functions.collect();
    others.sort_by(|a, b| (&a.domain, b.version).cmp(&(&b.domain, a.version)));
    for set in others {
        if !known.contains(&set.domain) {
            known.push(set.domain.clone());
            put(changed, model_tag::OPERATORS, &set.encode_to_vec());
        }
    }
}

/// The key by which a function is called: domain, name and overload.
type Id = (String, String, String);

/// `FunctionProto`.
#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "4")]
    input: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    output: Vec<String>,
    #[prost(bytes = "bytes", repeated, tag = "7")]
    nodes: Vec<Bytes>,
    #[prost(message, repeated, tag = "9")]
    operators: Vec<OperatorSet>,
    #[prost(string, tag = "10")]
    domain: String,
    #[prost(bytes = "bytes", repeated, tag = "11")]
    defaults: Vec<Bytes>,
    #[prost(string, tag = "13")]
    overload: String,
}

impl Function {
    fn id(&self) -> Id {
        (
            self.domain.clone(),
            self.name.clone(),
            self.overload.clone(),
        )
    }
}

/// `NodeProto`, as far as a call needs it.
#[derive(Clone, PartialEq, Message)]
struct Call {
    #[prost(string, repeated, tag = "1")]
    input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    output: Vec<String>,
    #[prost(string, tag = "4")]
    op_type: String,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    attributes: Vec<Bytes>,
    #[prost(string, tag = "7")]
    domain: String,
    #[prost(string, tag = "8")]
    overload: String,
}

/// `AttributeProto`, its name and the name of the function's attribute that gives its value.
#[derive(Clone, PartialEq, Message)]
struct Reference {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "21")]
    of: String,
}

enum Stopped {
    NoGraph,
    TooLarge,
}

type Made<T> = Result<T, Stopped>;

fn parts(message: &Bytes) -> Made<Vec<Field>> {
    fields(message).ok_or(Stopped::NoGraph)
}

struct Inliner<'a> {
    functions: &'a HashMap<Id, Function>,
    calls: usize,
    bytes: usize,
}

impl Inliner<'_> {
    fn graph(&mut self, graph: &Bytes, depth: usize) -> Made<Vec<u8>> {
        if depth > MAX_DEPTH {
            return Err(Stopped::TooLarge);
        }
        let mut changed = Vec::with_capacity(graph.len());
        for field in parts(graph)? {
            match field.tag {
                graph_tag::NODE => self.node(&field.value, depth, &mut changed)?,
                _ => changed.extend_from_slice(&field.whole),
            }
        }
        Ok(changed)
    }

    /// Adds a node to the graph, or the body of the function that it calls.
    fn node(&mut self, node: &Bytes, depth: usize, graph: &mut Vec<u8>) -> Made<()> {
        if depth > MAX_DEPTH {
            return Err(Stopped::TooLarge);
        }
        let call = Call::decode(node.clone()).map_err(|_| Stopped::NoGraph)?;
        let id = (
            call.domain.clone(),
            call.op_type.clone(),
            call.overload.clone(),
        );
        let functions = self.functions;
        if let Some(function) = functions.get(&id) {
            return self.body(function, &call, depth, graph);
        }
        let mut changed = Vec::with_capacity(node.len());
        for field in parts(node)? {
            if field.tag != node_tag::ATTRIBUTE {
                changed.extend_from_slice(&field.whole);
                continue;
            }
            let mut attribute = Vec::with_capacity(field.value.len());
            for part in parts(&field.value)? {
                match part.tag {
                    attribute_tag::GRAPH | attribute_tag::GRAPHS => {
                        let inner = self.graph(&part.value, depth + 1)?;
                        put(&mut attribute, part.tag, &inner);
                    }
                    _ => attribute.extend_from_slice(&part.whole),
                }
            }
            put(&mut changed, node_tag::ATTRIBUTE, &attribute);
        }
        put(graph, graph_tag::NODE, &changed);
        Ok(())
    }

    fn body(
        &mut self,
        function: &Function,
        call: &Call,
        depth: usize,
        graph: &mut Vec<u8>,
    ) -> Made<()> {
        self.calls += 1;
        let (names, aliases) = Names::of(function, call, self.calls);
        for node in &function.nodes {
            let node = names.node(node)?;
            self.bytes += node.len();
            if self.bytes > MAX_BYTES || self.calls > MAX_CALLS {
                return Err(Stopped::TooLarge);
            }
            self.node(&node.into(), depth + 1, graph)?;
        }
        for (from, to) in aliases {
            let node = Node {
                input: vec![from],
                output: vec![to],
                op_type: "Identity".into(),
                ..Node::default()
            };
            put(graph, graph_tag::NODE, &node.encode_to_vec());
        }
        Ok(())
    }
}

/// The names of a function's values, and its attributes, in one of its calls.
struct Names<'a> {
    given: HashMap<&'a str, &'a str>,
    /// The prefix of all names that the call does not give.
    prefix: String,
    attributes: HashMap<String, &'a Bytes>,
}

impl<'a> Names<'a> {
    /// Returns the names of a call, and the results that are also inputs or other results: the name
    /// of each value, and the name that the call gives the result.
    fn of(function: &'a Function, call: &'a Call, number: usize) -> (Self, Vec<(String, String)>) {
        let mut given = HashMap::new();
        for (place, name) in function.input.iter().enumerate() {
            given.insert(name.as_str(), call.input.get(place).map_or("", |it| it));
        }
        let mut aliases = Vec::new();
        for (name, outside) in function.output.iter().zip(&call.output) {
            if outside.is_empty() {
                continue;
            }
            match given.get(name.as_str()) {
                Some(inside) => aliases.push(((*inside).to_owned(), outside.clone())),
                None => drop(given.insert(name, outside)),
            }
        }
        let attributes = function.defaults.iter().chain(&call.attributes);
        let named = attributes.filter_map(|attribute| {
            let name = Reference::decode(attribute.clone()).ok()?.name;
            Some((name, attribute))
        });
        let names = Self {
            given,
            prefix: format!("{}/svc_inlined_{number}/", function.name),
            attributes: named.collect(),
        };
        (names, aliases)
    }

    fn name(&self, name: &str) -> String {
        match self.given.get(name) {
            _ if name.is_empty() => String::new(),
            Some(given) => (*given).to_owned(),
            None => format!("{}{name}", self.prefix),
        }
    }

    /// Returns a node of the body as it is in the call.
    fn node(&self, node: &Bytes) -> Made<Vec<u8>> {
        let mut changed = Vec::with_capacity(node.len());
        for field in parts(node)? {
            match field.tag {
                // Nodes need no names, and those of the body would occur once for each call.
                node_tag::NAME => {}
                node_tag::INPUT | node_tag::OUTPUT => {
                    put(&mut changed, field.tag, self.renamed(&field)?.as_bytes());
                }
                node_tag::ATTRIBUTE => {
                    if let Some(attribute) = self.attribute(&field.value)? {
                        put(&mut changed, field.tag, &attribute);
                    }
                }
                _ => changed.extend_from_slice(&field.whole),
            }
        }
        Ok(changed)
    }

    fn renamed(&self, field: &Field) -> Made<String> {
        let name = std::str::from_utf8(&field.value).map_err(|_| Stopped::NoGraph)?;
        Ok(self.name(name))
    }

    /// Returns an attribute of a node of the body; `None` for an attribute whose value the call
    /// leaves out.
    fn attribute(&self, attribute: &Bytes) -> Made<Option<Vec<u8>>> {
        let Reference { name, of } =
            Reference::decode(attribute.clone()).map_err(|_| Stopped::NoGraph)?;
        if of.is_empty() {
            return self.graphs(attribute).map(Some);
        }
        let Some(value) = self.attributes.get(&of) else {
            return Ok(None);
        };
        let mut changed = Vec::with_capacity(value.len());
        put(&mut changed, attribute_tag::NAME, name.as_bytes());
        for part in parts(value)? {
            if part.tag != attribute_tag::NAME {
                changed.extend_from_slice(&part.whole);
            }
        }
        Ok(Some(changed))
    }

    fn graphs(&self, attribute: &Bytes) -> Made<Vec<u8>> {
        let mut changed = Vec::with_capacity(attribute.len());
        for part in parts(attribute)? {
            match part.tag {
                attribute_tag::GRAPH | attribute_tag::GRAPHS => {
                    put(&mut changed, part.tag, &self.graph(&part.value)?);
                }
                _ => changed.extend_from_slice(&part.whole),
            }
        }
        Ok(changed)
    }

    /// Returns a graph within the body; its names also belong to the function and are changed.
    fn graph(&self, graph: &Bytes) -> Made<Vec<u8>> {
        let mut changed = Vec::with_capacity(graph.len());
        for field in parts(graph)? {
            let of_name = match field.tag {
                graph_tag::NODE => {
                    put(&mut changed, field.tag, &self.node(&field.value)?);
                    continue;
                }
                graph_tag::INITIALIZER => TENSOR_NAME,
                graph_tag::INPUT | graph_tag::OUTPUT | graph_tag::VALUE_INFO => VALUE_NAME,
                _ => {
                    changed.extend_from_slice(&field.whole);
                    continue;
                }
            };
            let mut named = Vec::with_capacity(field.value.len());
            for part in parts(&field.value)? {
                if part.tag == of_name {
                    put(&mut named, part.tag, self.renamed(&part)?.as_bytes());
                } else {
                    named.extend_from_slice(&part.whole);
                }
            }
            put(&mut changed, field.tag, &named);
        }
        Ok(changed)
    }
}

/// `TensorProto.name`.
const TENSOR_NAME: u32 = 8;
/// `ValueInfoProto.name`.
const VALUE_NAME: u32 = 1;

#[cfg(test)]
mod tests {
    use super::super::proto::{Attribute, Tensor, data_type, nodes};
    use super::*;

    fn function(name: &str, input: &[&str], output: &[&str], nodes: &[Node]) -> Function {
        let encoded = nodes.iter().map(|node| node.encode_to_vec().into());
        Function {
            name: name.into(),
            input: input.iter().map(|name| (*name).into()).collect(),
            output: output.iter().map(|name| (*name).into()).collect(),
            nodes: encoded.collect(),
            domain: "own".into(),
            ..Function::default()
        }
    }

    fn call(name: &str, input: &[&str], output: &[&str]) -> Node {
        Node {
            domain: "own".into(),
            ..Node::of(name, input, output)
        }
    }

    fn graph(nodes: &[Node]) -> Vec<u8> {
        let mut graph = Vec::new();
        for node in nodes {
            put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
        }
        graph
    }

    fn model(nodes: &[Node], functions: &[Function]) -> Bytes {
        let mut model = Vec::new();
        put(&mut model, model_tag::GRAPH, &graph(nodes));
        for function in functions {
            put(&mut model, model_tag::FUNCTION, &function.encode_to_vec());
        }
        model.into()
    }

    /// Returns the nodes of a model's graph after inlining, which has no calls any more.
    fn inlined_nodes(model: &Bytes) -> Vec<Node> {
        let Some(Inlined::Other(model)) = inlined(model) else {
            panic!("no other model");
        };
        let parts = fields(&model).expect("a model");
        assert!(parts.iter().all(|part| part.tag != model_tag::FUNCTION));
        let graph = parts.iter().find(|part| part.tag == model_tag::GRAPH);
        let graph = fields(&graph.expect("a graph").value).expect("a graph");
        let nodes = nodes(&graph).expect("nodes").into_iter();
        nodes.map(|(node, _)| node).collect()
    }

    fn named(nodes: &[Node]) -> Vec<(&str, Vec<&str>, Vec<&str>)> {
        fn names(all: &[String]) -> Vec<&str> {
            all.iter().map(String::as_str).collect()
        }
        let nodes = nodes.iter();
        nodes
            .map(|node| {
                (
                    node.op_type.as_str(),
                    names(&node.input),
                    names(&node.output),
                )
            })
            .collect()
    }

    #[test]
    fn each_call_has_names_of_its_own_and_those_that_it_is_given() {
        let twice = function(
            "Twice",
            &["a", "b"],
            &["y"],
            &[
                Node::of("Add", &["a", "a"], &["sum"]),
                Node::of("Clip", &["sum", "b"], &["y"]),
            ],
        );
        let both = function(
            "Both",
            &["a"],
            &["y"],
            &[
                call("Twice", &["a"], &["once"]),
                call("Twice", &["once", "a"], &["y"]),
            ],
        );
        let nodes = inlined_nodes(&model(&[call("Both", &["x"], &["z"])], &[twice, both]));
        let expected = [
            ("Add", vec!["x", "x"], vec!["Twice/svc_inlined_2/sum"]),
            (
                "Clip",
                vec!["Twice/svc_inlined_2/sum", ""],
                vec!["Both/svc_inlined_1/once"],
            ),
            (
                "Add",
                vec!["Both/svc_inlined_1/once", "Both/svc_inlined_1/once"],
                vec!["Twice/svc_inlined_3/sum"],
            ),
            ("Clip", vec!["Twice/svc_inlined_3/sum", "x"], vec!["z"]),
        ];
        assert_eq!(named(&nodes), expected);
    }

    #[test]
    fn a_result_that_is_an_input_as_well_is_handed_on() {
        let hands_on = function(
            "HandsOn",
            &["a"],
            &["a", "y", "y"],
            &[Node::of("Neg", &["a"], &["y"])],
        );
        let nodes = inlined_nodes(&model(
            &[call("HandsOn", &["x"], &["p", "q", "r"])],
            &[hands_on],
        ));
        let expected = [
            ("Neg", vec!["x"], vec!["q"]),
            ("Identity", vec!["x"], vec!["p"]),
            ("Identity", vec!["q"], vec!["r"]),
        ];
        assert_eq!(named(&nodes), expected);
    }

    fn attribute(name: &str, int: i64) -> Attribute {
        Attribute {
            name: name.into(),
            int,
            ..Attribute::default()
        }
    }

    #[test]
    fn attributes_are_those_of_the_call_or_of_the_function() {
        let refers = |name: &str, of: &str| {
            let reference = Reference {
                name: name.into(),
                of: of.into(),
            };
            reference.encode_to_vec()
        };
        let mut gemm = Node::of("Gemm", &["a", "a"], &["y"]).encode_to_vec();
        for (name, of) in [("transA", "first"), ("transB", "second"), ("beta", "third")] {
            put(&mut gemm, node_tag::ATTRIBUTE, &refers(name, of));
        }
        let mut turned = function("Turned", &["a"], &["y"], &[]);
        turned.nodes = vec![gemm.into()];
        turned.defaults = vec![
            attribute("first", 1).encode_to_vec().into(),
            attribute("second", 2).encode_to_vec().into(),
        ];
        let mut call = call("Turned", &["x"], &["z"]);
        call.attribute = vec![attribute("second", 3)];
        let nodes = inlined_nodes(&model(&[call], &[turned]));
        assert_eq!(
            nodes[0].attribute,
            [attribute("transA", 1), attribute("transB", 3)]
        );
    }

    #[test]
    fn graphs_in_a_body_take_its_names_and_graphs_outside_keep_theirs() {
        let mut inner = graph(&[Node::of("MatMul", &["a", "w"], &["then"])]);
        let weight = Tensor {
            name: "w".into(),
            data_type: data_type::INT8,
            ..Tensor::default()
        };
        put(&mut inner, graph_tag::INITIALIZER, &weight.encode_to_vec());
        let branch = |graph: Vec<u8>| Attribute {
            graph: Some(graph.into()),
            ..Attribute::default()
        };
        let of_branch = |name: &str, graph: Vec<u8>| Node {
            attribute: vec![branch(graph)],
            ..Node::of("If", &["c"], &[name])
        };
        let product = function("Product", &["a", "c"], &["y"], &[of_branch("y", inner)]);
        let called = graph(&[call("Product", &["x", "c"], &["own"])]);
        let nodes = inlined_nodes(&model(&[of_branch("z", called)], &[product]));
        let inside = |node: &Node| {
            let graph = node.graphs().next().expect("a graph").clone();
            let all = fields(&graph).expect("a graph");
            let inside: Vec<Node> = nodes_of(&all);
            (all, inside)
        };
        let (_, outer) = inside(&nodes[0]);
        assert_eq!(named(&outer), [("If", vec!["c"], vec!["own"])]);
        let (all, inner) = inside(&outer[0]);
        let prefixed = |name: &str| format!("Product/svc_inlined_1/{name}");
        assert_eq!(inner[0].input, ["x".to_owned(), prefixed("w")]);
        assert_eq!(inner[0].output, [prefixed("then")]);
        let weight = all.iter().find(|field| field.tag == graph_tag::INITIALIZER);
        let weight = Tensor::decode(weight.expect("a weight").value.clone()).expect("a tensor");
        assert_eq!(weight.name, prefixed("w"));
        assert_eq!(weight.data_type, data_type::INT8);
    }

    fn nodes_of(all: &[Field]) -> Vec<Node> {
        let nodes = nodes(all).expect("nodes").into_iter();
        nodes.map(|(node, _)| node).collect()
    }

    #[test]
    fn operators_that_only_a_function_names_are_named_by_the_model() {
        let set = |domain: &str, version| OperatorSet {
            domain: domain.into(),
            version,
        };
        let mut with_own = function("F", &["a"], &["y"], &[Node::of("Neg", &["a"], &["y"])]);
        with_own.operators = vec![set("", 11), set("com.microsoft", 1)];
        let mut whole = model(&[call("F", &["x"], &["z"])], &[with_own]).to_vec();
        put(
            &mut whole,
            model_tag::OPERATORS,
            &set("", 17).encode_to_vec(),
        );
        let Some(Inlined::Other(other)) = inlined(&whole.into()) else {
            panic!("no other model");
        };
        let parts = fields(&other).expect("a model").into_iter();
        let sets = parts.filter(|part| part.tag == model_tag::OPERATORS);
        let sets = sets.map(|part| OperatorSet::decode(part.value).expect("a set"));
        assert_eq!(
            sets.collect::<Vec<_>>(),
            [set("", 17), set("com.microsoft", 1)]
        );
    }

    #[test]
    fn functions_without_calls_and_without_end() {
        let body = [call("F", &["a"], &["b"]), call("F", &["b"], &["y"])];
        let round = function("F", &["a"], &["y"], &body);
        let other = model(
            &[Node::of("Neg", &["x"], &["z"])],
            std::slice::from_ref(&round),
        );
        assert_eq!(inlined(&other), Some(Inlined::AsItIs));
        let called = model(&[call("F", &["x"], &["z"])], &[round]);
        assert_eq!(inlined(&called), Some(Inlined::TooLarge));
        assert_eq!(inlined(&Bytes::from_static(b"no model")), None);
    }
}
