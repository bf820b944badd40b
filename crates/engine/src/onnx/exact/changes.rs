//! The changes in a graph, and the graph with its changes.

use std::collections::{HashMap, HashSet};

use prost::Message;
use prost::bytes::Bytes;

use crate::onnx::proto::{Field, Named, Node, Tensor, fields, graph_tag, put};

/// The changes in one graph.
#[derive(Default)]
pub(super) struct Changes {
    /// The changed nodes, by their places.
    pub(super) nodes: HashMap<usize, Bytes>,
    /// The nodes to add in front of a node, by its place.
    pub(super) before: HashMap<usize, Vec<Node>>,
    pub(super) tensors: Vec<Tensor>,
    /// The name of the unsigned value, by the name of the signed one.
    pub(super) unsigned: HashMap<String, String>,
}

impl Changes {
    /// Returns a graph with these changes. In the outermost graph, weights that are no longer
    /// needed are left out.
    pub(super) fn assembled(&self, all: &[Field], is_outermost: bool) -> Option<Vec<u8>> {
        let mut graph = Vec::new();
        let mut read = HashSet::new();
        let nodes = all.iter().filter(|field| field.tag == graph_tag::NODE);
        for (place, field) in nodes.enumerate() {
            for node in self.before.get(&place).into_iter().flatten() {
                read.extend(node.input.iter().cloned());
                put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
            }
            let node = self.nodes.get(&place).unwrap_or(&field.value);
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
                    !self.unsigned.contains_key(&name) || read.contains(&name)
                }
                _ => true,
            };
            if stays {
                graph.extend_from_slice(&field.whole);
            }
        }
        for tensor in &self.tensors {
            put(&mut graph, graph_tag::INITIALIZER, &tensor.encode_to_vec());
        }
        Some(graph)
    }
}

/// Adds the names that a node and the graphs in it read.
fn names_read(node: &Bytes, read: &mut HashSet<String>) -> Option<()> {
    let node = Node::decode(node.clone()).ok()?;
    read.extend(node.input.iter().cloned());
    for graph in node.graphs() {
        for field in fields(graph)? {
            match field.tag {
                graph_tag::NODE => names_read(&field.value, read)?,
                graph_tag::OUTPUT => {
                    read.insert(Named::decode(field.value).ok()?.name);
                }
                _ => {}
            }
        }
    }
    Some(())
}
