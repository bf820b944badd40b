//! Two graphs as one: an encoder, and the head that reads its hidden states.
//!
//! The nodes of both stand in the joined graph as they are in the files, so it computes what the
//! two compute one after the other. Only names change: every name of the head gets a prefix, since
//! two graphs of one exporter give the same names to different values.

use std::collections::{HashMap, HashSet};

use prost::Message;
use prost::bytes::Bytes;

use super::inlined::{Inlined, inlined};
use super::proto::{
    Field, Head, Initializer, Node, OperatorSet, attribute_tag, data_type, fields, graph_tag,
    model_tag, node_tag, nodes, put,
};

/// The names that a head may give to the encoder's hidden states.
const HIDDEN: [&str; 3] = ["hidden_states", "hidden", "last_hidden_state"];
/// The names of the head's outputs, by their place.
const OUTPUTS: [&str; 2] = ["logits", "act_logits"];
/// The input with the type of the question, which is a list or a table, as the head wants it.
const TYPE: &str = "qtype";
/// The prefix of the head's names.
const PREFIX: &str = "head/";
/// The first version of the format in which weights need not be inputs.
const LEAST_IR_VERSION: i64 = 4;

/// Returns the graph that runs `encoder`, and then `head` on its first output. The head's other
/// inputs stay inputs; those of the same name as an input of the encoder are that input.
///
/// # Errors
/// The reason why the graphs cannot be joined, in one line.
pub fn joined(encoder: &Bytes, head: &Bytes) -> Result<Bytes, String> {
    let first = Part::read(encoder, "the encoder")?;
    let second = Part::read(head, "the head")?;
    let hidden = first.outputs().next().ok_or("the encoder has no output")?;
    let names = Names::of(&first, &second, hidden?)?;
    let mut graph = Vec::with_capacity(encoder.len() + head.len() + head.len() / 8);
    for field in &first.graph {
        if field.tag != graph_tag::OUTPUT {
            graph.extend_from_slice(&field.whole);
        }
    }
    second.put_into(&mut graph, &names)?;
    let mut model = Vec::with_capacity(graph.len() + 64);
    let ir_version = first.head.ir_version.max(second.head.ir_version);
    let head = Head {
        ir_version: ir_version.max(LEAST_IR_VERSION),
        operators: operators(&first.head, &second.head)?,
    };
    model.extend_from_slice(&head.encode_to_vec());
    put(&mut model, model_tag::GRAPH, &graph);
    Ok(model.into())
}

/// `ValueInfoProto`, with the number of its dimensions.
#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Message)]
struct Kind {
    #[prost(message, optional, tag = "1")]
    tensor: Option<TensorKind>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorKind {
    #[prost(int32, tag = "1")]
    element: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
struct Shape {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    dims: Vec<Bytes>,
}

impl Value {
    fn rank(&self) -> Option<usize> {
        let shape = self.kind.as_ref()?.tensor.as_ref()?.shape.as_ref()?;
        Some(shape.dims.len())
    }
}

/// One of the two graphs.
struct Part {
    /// The name of the graph in errors.
    what: &'static str,
    head: Head,
    graph: Vec<Field>,
}

impl Part {
    fn read(model: &Bytes, what: &'static str) -> Result<Self, String> {
        let no_graph = || format!("{what} is no ONNX graph");
        let model = match inlined(model).ok_or_else(no_graph)? {
            Inlined::AsItIs => model.clone(),
            Inlined::Other(other) => other,
            Inlined::TooLarge => return Err(format!("{what} calls its functions without end")),
        };
        let graph = fields(&model).ok_or_else(no_graph)?.into_iter();
        let mut graph = graph.filter(|field| field.tag == model_tag::GRAPH);
        let graph = graph.next().ok_or_else(no_graph)?;
        let part = Self {
            what,
            head: Head::decode(model).map_err(|_| no_graph())?,
            graph: fields(&graph.value).ok_or_else(no_graph)?,
        };
        let is_sparse = |field: &Field| field.tag == graph_tag::SPARSE_INITIALIZER;
        match part.graph.iter().any(is_sparse) {
            true => Err(format!("{what} has sparse weights")),
            false => Ok(part),
        }
    }

    fn of_tag(&self, tag: u32) -> impl Iterator<Item = &Field> {
        self.graph.iter().filter(move |field| field.tag == tag)
    }

    fn bad(&self) -> String {
        format!("{} is no ONNX graph", self.what)
    }

    fn values(&self, tag: u32) -> impl Iterator<Item = Result<Value, String>> {
        let values = self.of_tag(tag);
        values.map(|field| Value::decode(field.value.clone()).map_err(|_| self.bad()))
    }

    fn outputs(&self) -> impl Iterator<Item = Result<String, String>> {
        let outputs = self.values(graph_tag::OUTPUT);
        outputs.map(|value| value.map(|value| value.name))
    }

    fn weights(&self) -> Result<HashSet<String>, String> {
        let weights = self.of_tag(graph_tag::INITIALIZER);
        let names = weights.map(|field| {
            let weight = Initializer::decode(field.value.clone());
            weight.map(|weight| weight.name).map_err(|_| self.bad())
        });
        names.collect()
    }

    /// Returns the inputs that a run gives: older graphs also list their weights as inputs.
    fn inputs(&self) -> Result<Vec<Value>, String> {
        let weights = self.weights()?;
        let inputs = self.values(graph_tag::INPUT);
        let given = inputs.filter(|value| match value {
            Ok(value) => !weights.contains(&value.name),
            Err(_) => true,
        });
        given.collect()
    }

    /// Returns the names of all values of the graph, those of graphs within it excepted.
    fn names(&self) -> Result<HashSet<String>, String> {
        let mut names = self.weights()?;
        names.extend(self.inputs()?.into_iter().map(|value| value.name));
        for (node, _) in nodes(&self.graph).ok_or_else(|| self.bad())? {
            names.extend(node.output);
        }
        Ok(names)
    }

    /// Adds the graph to another one, under these names.
    fn put_into(&self, graph: &mut Vec<u8>, names: &Names) -> Result<(), String> {
        for input in self.inputs()? {
            if names.added_inputs.contains(&input.name) {
                names.put_input(graph, &input);
            }
        }
        for (field, name) in self.of_tag(graph_tag::OUTPUT).zip(OUTPUTS) {
            let value = renamed(&field.value, 1, |_| name.to_owned());
            put(graph, graph_tag::OUTPUT, &value.ok_or_else(|| self.bad())?);
        }
        for field in &self.graph {
            let changed = match field.tag {
                graph_tag::NODE => names.node(&field.value),
                graph_tag::INITIALIZER => names.weight(&field.value),
                graph_tag::VALUE_INFO => names.value(&field.value),
                _ => continue,
            };
            put(graph, field.tag, &changed.ok_or_else(|| self.bad())?);
        }
        Ok(())
    }
}

/// The names of the head's values in the joined graph.
struct Names {
    /// The names that do not just get the prefix.
    known: HashMap<String, String>,
    /// The inputs that the encoder does not have.
    added_inputs: HashSet<String>,
    /// Whether the head wants the type of the question as a table.
    has_type_table: bool,
}

impl Names {
    fn of(encoder: &Part, head: &Part, hidden: String) -> Result<Self, String> {
        let inputs = head.inputs()?;
        let is_hidden = |name: &&str| inputs.iter().any(|input| input.name == **name);
        let wanted = HIDDEN.iter().find(|name| is_hidden(name));
        let wanted = wanted.ok_or("the head has no input for hidden states")?;
        let mut known = HashMap::from([((*wanted).to_owned(), hidden)]);
        let shared: HashSet<String> = encoder.inputs()?.into_iter().map(|it| it.name).collect();
        let is_table = |input: &Value| input.name == TYPE && input.rank() == Some(2);
        let has_type_table = inputs.iter().any(is_table);
        let mut added_inputs = HashSet::new();
        for input in inputs {
            let name = input.name;
            if name == *wanted {
                continue;
            }
            if !shared.contains(&name) {
                added_inputs.insert(name.clone());
            }
            if !(has_type_table && name == TYPE) {
                known.insert(name.clone(), name);
            }
        }
        for (output, name) in head.outputs().zip(OUTPUTS) {
            known.insert(output?, name.to_owned());
        }
        let mut taken = encoder.names()?.into_iter();
        let is_ours = |name: &String| {
            let is_output = OUTPUTS.contains(&name.as_str());
            is_output || added_inputs.contains(name) || name.starts_with(PREFIX)
        };
        match taken.find(is_ours) {
            Some(name) => Err(format!("the encoder has a value \"{name}\" of its own")),
            None => Ok(Self {
                known,
                added_inputs,
                has_type_table,
            }),
        }
    }

    fn name(&self, name: &str) -> String {
        match self.known.get(name) {
            Some(known) => known.clone(),
            // An empty name stands for an input or an output that is left out.
            None if name.is_empty() => String::new(),
            None => format!("{PREFIX}{name}"),
        }
    }

    /// Adds an input of the head to the joined graph. A type that the head wants as a table is given
    /// as a list, as to all other graphs, and becomes a table in the graph.
    fn put_input(&self, graph: &mut Vec<u8>, input: &Value) {
        if !(self.has_type_table && input.name == TYPE) {
            put(graph, graph_tag::INPUT, &input.encode_to_vec());
            return;
        }
        let element = data_type::INT64;
        let shape = Some(Shape {
            dims: vec![Bytes::new()],
        });
        let tensor = Some(TensorKind { element, shape });
        let list = Value {
            name: TYPE.into(),
            kind: Some(Kind { tensor }),
        };
        put(graph, graph_tag::INPUT, &list.encode_to_vec());
        let shape = Initializer {
            dims: vec![2],
            data_type: element,
            int64_data: vec![-1, 1],
            name: format!("{PREFIX}{TYPE}/shape"),
            ..Initializer::default()
        };
        put(graph, graph_tag::INITIALIZER, &shape.encode_to_vec());
        let reshape = Node {
            input: vec![TYPE.into(), shape.name],
            output: vec![self.name(TYPE)],
            op_type: "Reshape".into(),
            ..Node::default()
        };
        put(graph, graph_tag::NODE, &reshape.encode_to_vec());
    }

    fn value(&self, value: &Bytes) -> Option<Vec<u8>> {
        renamed(value, 1, |name| self.name(name))
    }

    fn weight(&self, weight: &Bytes) -> Option<Vec<u8>> {
        renamed(weight, 8, |name| self.name(name))
    }

    fn node(&self, node: &Bytes) -> Option<Vec<u8>> {
        let mut changed = Vec::with_capacity(node.len() + 64);
        for field in fields(node)? {
            match field.tag {
                node_tag::INPUT | node_tag::OUTPUT => {
                    let name = self.name(std::str::from_utf8(&field.value).ok()?);
                    put(&mut changed, field.tag, name.as_bytes());
                }
                node_tag::NAME => {
                    put(
                        &mut changed,
                        field.tag,
                        &[PREFIX.as_bytes(), &field.value].concat(),
                    );
                }
                node_tag::ATTRIBUTE => {
                    put(&mut changed, field.tag, &self.attribute(&field.value)?);
                }
                _ => changed.extend_from_slice(&field.whole),
            }
        }
        Some(changed)
    }

    fn attribute(&self, attribute: &Bytes) -> Option<Vec<u8>> {
        let mut changed = Vec::with_capacity(attribute.len());
        for field in fields(attribute)? {
            match field.tag {
                attribute_tag::GRAPH | attribute_tag::GRAPHS => {
                    put(&mut changed, field.tag, &self.inner_graph(&field.value)?);
                }
                _ => changed.extend_from_slice(&field.whole),
            }
        }
        Some(changed)
    }

    /// Returns a graph within a node under the new names: its nodes see the values around it.
    fn inner_graph(&self, graph: &Bytes) -> Option<Vec<u8>> {
        let mut changed = Vec::with_capacity(graph.len());
        for field in fields(graph)? {
            let part = match field.tag {
                graph_tag::NODE => self.node(&field.value)?,
                graph_tag::INITIALIZER => self.weight(&field.value)?,
                graph_tag::INPUT | graph_tag::OUTPUT | graph_tag::VALUE_INFO => {
                    self.value(&field.value)?
                }
                graph_tag::SPARSE_INITIALIZER => return None,
                graph_tag::QUANTIZATION => continue,
                _ => {
                    changed.extend_from_slice(&field.whole);
                    continue;
                }
            };
            put(&mut changed, field.tag, &part);
        }
        Some(changed)
    }
}

/// Returns a message in which the name, a field of this tag, is another one.
fn renamed(message: &Bytes, tag: u32, name: impl Fn(&str) -> String) -> Option<Vec<u8>> {
    let mut changed = Vec::with_capacity(message.len() + PREFIX.len() + 8);
    for field in fields(message)? {
        if field.tag == tag {
            let name = name(std::str::from_utf8(&field.value).ok()?);
            put(&mut changed, tag, name.as_bytes());
        } else {
            changed.extend_from_slice(&field.whole);
        }
    }
    Some(changed)
}

/// Returns the operator versions of both graphs.
fn operators(encoder: &Head, head: &Head) -> Result<Vec<OperatorSet>, String> {
    // The usual operators have two names.
    let domain = |set: &OperatorSet| match set.domain.as_str() {
        "ai.onnx" => String::new(),
        domain => domain.to_owned(),
    };
    let mut sets = encoder.operators.clone();
    for set in &head.operators {
        match sets.iter().find(|other| domain(other) == domain(set)) {
            None => sets.push(set.clone()),
            Some(other) if other.version == set.version => {}
            Some(other) => {
                return Err(format!(
                    "the encoder has version {} of the operators and the head version {}: export both with the same \
                     version",
                    other.version, set.version
                ));
            }
        }
    }
    Ok(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, rank: usize) -> Vec<u8> {
        let shape = Some(Shape {
            dims: vec![Bytes::new(); rank],
        });
        let tensor = Some(TensorKind { element: 1, shape });
        let value = Value {
            name: name.into(),
            kind: Some(Kind { tensor }),
        };
        value.encode_to_vec()
    }

    struct Model<'a> {
        opset: i64,
        inputs: &'a [(&'a str, usize)],
        nodes: Vec<Node>,
        weights: &'a [&'a str],
        outputs: &'a [&'a str],
    }

    impl Model<'_> {
        fn bytes(&self) -> Bytes {
            let mut graph = Vec::new();
            for node in &self.nodes {
                put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
            }
            for name in self.weights {
                let weight = Initializer {
                    name: (*name).into(),
                    ..Initializer::default()
                };
                put(&mut graph, graph_tag::INITIALIZER, &weight.encode_to_vec());
            }
            for (name, rank) in self.inputs {
                put(&mut graph, graph_tag::INPUT, &value(name, *rank));
            }
            for name in self.outputs {
                put(&mut graph, graph_tag::OUTPUT, &value(name, 2));
            }
            let operators = vec![OperatorSet {
                domain: String::new(),
                version: self.opset,
            }];
            let head = Head {
                ir_version: 8,
                operators,
            };
            let mut model = head.encode_to_vec();
            put(&mut model, model_tag::GRAPH, &graph);
            model.into()
        }
    }

    fn encoder() -> Model<'static> {
        Model {
            opset: 17,
            inputs: &[("input_ids", 2), ("attention_mask", 2)],
            nodes: vec![Node::of("Gather", &["w0", "input_ids"], &["states"])],
            weights: &["w0"],
            outputs: &["states"],
        }
    }

    fn head() -> Model<'static> {
        let branch = Node {
            attribute: vec![super::super::proto::Attribute {
                name: "then_branch".into(),
                graph: Some(branch()),
                ..Default::default()
            }],
            ..Node::of("If", &["qtype"], &["scores"])
        };
        Model {
            opset: 17,
            inputs: &[("hidden", 3), ("attention_mask", 2), ("qtype", 1)],
            nodes: vec![
                Node::of("Add", &["hidden", "w0"], &["states"]),
                branch,
                Node::of("Pad", &["states", "", "attention_mask"], &["acts"]),
            ],
            weights: &["w0"],
            outputs: &["scores", "acts"],
        }
    }

    /// The graph within the head's node, which sees the values around it.
    fn branch() -> Bytes {
        let mut graph = Vec::new();
        let node = Node::of("Mul", &["states", "hidden"], &["scores"]);
        put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
        put(&mut graph, graph_tag::OUTPUT, &value("scores", 2));
        graph.into()
    }

    /// Returns the nodes of a joined graph, and the names of its inputs and outputs.
    fn parts(model: &Bytes) -> (Vec<Node>, [Vec<String>; 2]) {
        let part = Part::read(model, "the graph").expect("a graph");
        let nodes = nodes(&part.graph).expect("nodes").into_iter();
        let names = |tag| {
            let values = part.values(tag);
            values.map(|value| value.expect("a value").name).collect()
        };
        let sides = [names(graph_tag::INPUT), names(graph_tag::OUTPUT)];
        (nodes.map(|(node, _)| node).collect(), sides)
    }

    #[test]
    fn the_head_reads_the_encoders_first_output_under_names_of_its_own() {
        let joined = joined(&encoder().bytes(), &head().bytes()).expect("joined");
        let (nodes, [inputs, outputs]) = parts(&joined);
        assert_eq!(inputs, ["input_ids", "attention_mask", "qtype"]);
        assert_eq!(outputs, ["logits", "act_logits"]);
        assert_eq!(nodes[0], encoder().nodes[0]);
        assert_eq!(
            nodes[1],
            Node::of("Add", &["states", "head/w0"], &["head/states"])
        );
        assert_eq!(
            (&*nodes[2].input, &*nodes[2].output),
            (&["qtype".to_owned()][..], &["logits".to_owned()][..])
        );
        let inner = nodes[2].graphs().next().expect("a branch");
        let inner = super::nodes(&fields(inner).expect("fields")).expect("nodes")[0]
            .0
            .clone();
        assert_eq!(
            inner,
            Node::of("Mul", &["head/states", "states"], &["logits"])
        );
        assert_eq!(
            nodes[3],
            Node::of(
                "Pad",
                &["head/states", "", "attention_mask"],
                &["act_logits"]
            )
        );
    }

    #[test]
    fn a_type_that_is_wanted_as_a_table_is_given_as_a_list() {
        let head = Model {
            inputs: &[("hidden_states", 3), ("qtype", 2)],
            nodes: vec![Node::of("Add", &["hidden_states", "qtype"], &["scores"])],
            ..head()
        };
        let joined = joined(&encoder().bytes(), &head.bytes()).expect("joined");
        let (nodes, _) = parts(&joined);
        let reshape = Node::of("Reshape", &["qtype", "head/qtype/shape"], &["head/qtype"]);
        assert_eq!(nodes[1], reshape);
        assert_eq!(nodes[2].input, ["states", "head/qtype"]);
    }

    #[test]
    fn graphs_that_cannot_be_joined_are_told_why() {
        let no_graph = joined(&encoder().bytes(), &Bytes::from_static(b"\x07"));
        assert_eq!(no_graph, Err("the head is no ONNX graph".into()));
        let problem = |encoder: Model<'_>, head: Model<'_>| {
            let joined = joined(&encoder.bytes(), &head.bytes());
            joined.expect_err("a problem")
        };
        let newer = Model {
            opset: 18,
            ..head()
        };
        assert_eq!(
            problem(encoder(), newer),
            "the encoder has version 17 of the operators and the head version 18: export both with the same version"
        );
        let blind = Model {
            inputs: &[("qtype", 1)],
            ..head()
        };
        let no_input = "the head has no input for hidden states";
        assert_eq!(problem(encoder(), blind), no_input);
        let taken = Model {
            weights: &["logits"],
            ..encoder()
        };
        let own = "the encoder has a value \"logits\" of its own";
        assert_eq!(problem(taken, head()), own);
        let silent = Model {
            outputs: &[],
            ..encoder()
        };
        assert_eq!(problem(silent, head()), "the encoder has no output");
    }
}
