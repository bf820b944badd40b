//! Prints the rows of tokens for requests, for programs that run a graph themselves.
//!
//! `cargo run --release --example rows -- MODEL_FOLDER` reads one request body per line and writes
//! one line of JSON for each:
//! `{"state":[row],"questions":[{"kind","outcomes","rows":[row]}],"truncated_tokens"}`, with the
//! fields of `Row`.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use svc_engine::layout::{Layout, Row, marker, pair, shared_state};
use svc_engine::question::Request;
use svc_engine::stop::Stop;
use svc_engine::tokenize::{Meter, Tokenizer};
use svc_engine::wire::{Most, systemone};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: rows MODEL_FOLDER")?;
    let folder = Path::new(&folder);
    let file = folder.join("tokenizer.json");
    let tokenizer = Tokenizer::from_bytes(&file, &std::fs::read(&file)?)?;
    let layout = layout(folder, &tokenizer)?;
    let mut out = stdout().lock();
    for body in stdin().lock().lines() {
        let request = systemone::parse(body?.as_bytes(), Most::ANY)?;
        let plan = rows(layout.as_ref(), &tokenizer, &request)?;
        writeln!(out, "{plan}")?;
    }
    Ok(())
}

/// Returns the layout that a model folder asks for.
///
/// # Errors
/// A configuration that cannot be read, or names no known layout.
pub fn layout(folder: &Path, tokenizer: &Tokenizer) -> Result<Box<dyn Layout>, Box<dyn Error>> {
    let config: Value = serde_json::from_slice(&std::fs::read(folder.join("config.json"))?)?;
    Ok(match config["layout"].as_str() {
        None | Some("marker") => {
            Box::new(marker::Marker::new(marker::Settings::deserialize(&config)?))
        }
        Some("shared-state") => {
            let settings = shared_state::Settings::deserialize(&config)?;
            Box::new(shared_state::SharedState::new(settings))
        }
        Some("pair") => {
            let settings = pair::Settings::deserialize(&config)?;
            let frame = tokenizer.pair_frame().ok_or("no post_processor")?;
            let layout = pair::Pair::new(&settings, tokenizer, frame);
            Box::new(layout.map_err(|(key, problem)| format!("{key}: {problem}"))?)
        }
        Some(other) => return Err(format!("unknown layout {other}").into()),
    })
}

/// Returns the rows of a request as the program prints them.
///
/// # Errors
/// A request that does not fit the layout.
pub fn rows(
    layout: &dyn Layout,
    tokenizer: &Tokenizer,
    request: &Request,
) -> Result<Value, svc_engine::Error> {
    let stop = Stop::never();
    let plan = layout.encode(tokenizer, request, &mut Meter::new(usize::MAX, &stop))?;
    let questions = request.questions.iter().zip(plan.questions.iter());
    let questions = questions.map(|(question, rows)| {
        json!({
            "id": question.id,
            "kind": question.kind.name(),
            "outcomes": question.outcomes.iter().map(|outcome| &outcome.name).collect::<Vec<_>>(),
            "rows": rows.rows.iter().map(row).collect::<Vec<_>>(),
        })
    });
    Ok(json!({
        "state": plan.state.iter().map(row).collect::<Vec<_>>(),
        "questions": questions.collect::<Vec<_>>(),
        "truncated_tokens": plan.truncated_tokens,
    }))
}

fn row(row: &Row) -> Value {
    json!({
        "ids": row.ids,
        "token_types": row.token_types,
        "positions": row.positions,
        "option_ids": row.option_ids,
        "markers": row.markers,
        "type_id": row.type_id,
        "option_count": row.option_count,
        "outcomes": row.outcomes,
    })
}
