//! Whether any node reads the keys and values that a question's run puts out.
//!
//! They are outputs of the graph, because those of a state go into its KV cache. So ONNX Runtime
//! holds the outputs of all layers until the run is over, whether they are asked for or not: a copy
//! of the past in each run. Where each attention makes them only for itself, all layers may use the
//! same memory, one after the other.

use prost::bytes::Bytes;

use super::KvPair;
use super::proto::{Node, fields, model_tag, nodes};

/// Whether no node of a graph reads the keys and values that its attentions put out. `kv_pairs` has
/// the keys at even places and the values at odd ones.
pub fn are_unread(graph: &Bytes, kv_pairs: &[KvPair]) -> bool {
    let Some(nodes) = nodes_of(graph) else {
        return false;
    };
    let is_own = |(place, pair): (usize, &KvPair)| {
        let output = 1 + place % 2;
        let mut attentions = nodes.iter().filter(|node| node.is_attention());
        attentions.any(|node| node.output.get(output) == Some(&pair.present))
    };
    let is_present = |name: &String| kv_pairs.iter().any(|pair| pair.present == *name);
    let reads = |node: &Node| node.has_graph() || node.input.iter().any(is_present);
    let are_own = kv_pairs.iter().enumerate().all(is_own);
    !kv_pairs.is_empty() && are_own && !nodes.iter().any(reads)
}

fn nodes_of(model: &Bytes) -> Option<Vec<Node>> {
    let mut parts = fields(model)?.into_iter();
    let graph = parts.find(|field| field.tag == model_tag::GRAPH)?;
    let graph = fields(&graph.value)?;
    Some(nodes(&graph)?.into_iter().map(|(node, _)| node).collect())
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::super::proto::{Attribute, graph_tag, put};
    use super::*;

    fn attention(output: &[&str]) -> Node {
        Node {
            domain: "com.microsoft".into(),
            ..Node::of("MultiHeadAttention", &["q", "k", "v"], output)
        }
    }

    fn is_unread(nodes: &[Node]) -> bool {
        let mut graph = Vec::new();
        for node in nodes {
            put(&mut graph, graph_tag::NODE, &node.encode_to_vec());
        }
        let mut model = Vec::new();
        put(&mut model, model_tag::GRAPH, &graph);
        let keys = KvPair::new("past_k0", "present_k0");
        let values = KvPair::new("past_v0", "present_v0");
        are_unread(&model.into(), &[keys, values])
    }

    #[test]
    fn what_an_attention_makes_for_itself_is_read_by_nobody() {
        let own = attention(&["mixed", "present_k0", "present_v0"]);
        assert!(is_unread(&[
            own.clone(),
            Node::of("Gelu", &["mixed"], &["logits"])
        ]));
        assert!(!is_unread(&[
            own.clone(),
            Node::of("Gelu", &["present_v0"], &["logits"])
        ]));
        let branches = Attribute {
            graph: Some(Bytes::new()),
            ..Attribute::default()
        };
        let branch = Node {
            attribute: vec![branches],
            ..Node::of("If", &["mixed"], &["logits"])
        };
        assert!(!is_unread(&[own, branch]));
    }

    #[test]
    fn what_is_made_in_another_way_may_be_read() {
        let others = [
            attention(&["mixed", "present_v0", "present_k0"]),
            attention(&["mixed", "present_k0"]),
            Node::of(
                "Concat",
                &["past_k0", "k"],
                &["mixed", "present_k0", "present_v0"],
            ),
        ];
        for other in others {
            assert!(!is_unread(std::slice::from_ref(&other)), "{other:?}");
        }
        assert!(!is_unread(&[]));
        assert!(!are_unread(&Bytes::from_static(b"no graph"), &[]));
    }
}
