#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use prost::bytes::Bytes;
use svc_engine::onnx::KvPair;
use svc_engine::onnx::exact::{Processor, exact_graph};
use svc_engine::onnx::prefill::{Prefill, prefill_graph};
use svc_engine::onnx::presents::are_unread;
use svc_engine::onnx::products::Pairs;
use svc_engine::onnx::weights::take_apart;

fuzz_target!(|graph: &[u8]| {
    let graph = Bytes::copy_from_slice(graph);
    let kv_pairs = [
        KvPair::new("past_k0", "present_k0"),
        KvPair::new("past_v0", "present_v0"),
    ];
    if let Some(apart) = take_apart(&graph, Path::new("/not there")) {
        // A graph without its weights has none that could be taken out.
        assert!(take_apart(&apart.graph, Path::new("/not there")).is_none());
    }
    let processor = Processor {
        unsigned: Pairs::Large,
        dequantized: Pairs::Large,
        quantizes_rows: true,
    };
    if let Some((_, Some(exact))) = exact_graph(&graph, Path::new("/not there"), processor) {
        // A mended graph can be read as a graph again.
        assert!(exact_graph(&exact, Path::new("/not there"), processor).is_some());
    }
    are_unread(&graph, &kv_pairs);
    let prefill = Prefill {
        kv_pairs: &kv_pairs,
        even_input: "option_ids",
    };
    if let Some(part) = prefill_graph(&graph, prefill) {
        // The part of a graph can be read as a graph again.
        prefill_graph(&part, prefill);
        assert!(
            part.len() <= graph.len() + 4_096,
            "{} of {}",
            part.len(),
            graph.len()
        );
    }
});
