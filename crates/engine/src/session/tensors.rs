//! A graph's inputs and outputs, and the check whether they are those of a layout.

use std::path::Path;

use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use ort::value::TensorElementType;
use ort::value::{Outlet, ValueType};

use super::Second;
use super::failure::cause;
use super::interface::{Interface, Results};
use super::lane::commit;
use super::runtime::environment;
use crate::Error;

/// One input or output of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name of the tensor in the graph.
    pub name: String,
    /// The type of its elements, such as `int64`.
    pub kind: String,
    /// The dimensions, each a number, the graph's name for it, or `?`.
    pub shape: Vec<String>,
}

/// The inputs and outputs of a graph, in the graph's order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tensors {
    /// The graph's inputs.
    pub inputs: Vec<TensorInfo>,
    /// The graph's outputs.
    pub outputs: Vec<TensorInfo>,
}

impl Tensors {
    /// Returns the inputs and outputs of a graph file, together with a head where there is one.
    ///
    /// # Errors
    /// [`Error::RuntimeNotFound`], [`Error::RuntimeFailed`], and [`Error::BadModel`] where a file is no graph.
    pub fn read(runtime: &Path, file: &Path, second: &Second<'_>) -> Result<Self, Error> {
        let environment = environment(runtime)?;
        let joined = second.joined(file)?;
        let open = || {
            let builder = Session::builder(&environment)?
                .with_optimization_level(GraphOptimizationLevel::Disable)?
                .with_intra_threads(1)?;
            commit(builder, file, joined.as_ref())
        };
        let session = open().map_err(|error: ort::Error| Error::BadModel {
            file: file.to_owned(),
            problem: cause(&error),
        })?;
        Ok(Self::of(&session))
    }

    pub(super) fn of(session: &Session) -> Self {
        Self {
            inputs: session.inputs().iter().map(info).collect(),
            outputs: session.outputs().iter().map(info).collect(),
        }
    }

    /// Whether there is an input of this name.
    pub fn has_input(&self, name: &str) -> bool {
        self.inputs.iter().any(|input| input.name == name)
    }

    /// Returns the names of the inputs whose elements are of this type.
    pub(super) fn named(&self, kind: &str) -> Vec<String> {
        let inputs = self.inputs.iter().filter(|input| input.kind == kind);
        inputs.map(|input| input.name.clone()).collect()
    }

    /// Whether there is an output of this name.
    pub fn has_output(&self, name: &str) -> bool {
        self.outputs.iter().any(|output| output.name == name)
    }

    /// Checks that the graph has the tensors of a layout, and needs no other inputs.
    ///
    /// # Errors
    /// The missing or superfluous tensor, in one line.
    pub fn check(&self, interface: &Interface) -> Result<(), String> {
        let pasts = interface.kv_pairs.iter().map(|pair| pair.past.as_str());
        let wanted: Vec<&str> = interface
            .inputs
            .iter()
            .map(AsRef::as_ref)
            .chain(pasts)
            .collect();
        if let Some(missing) = wanted.iter().find(|name| !self.has_input(name)) {
            return Err(format!("the graph has no input \"{missing}\""));
        }
        let is_given = |name| wanted.contains(&name) || interface.optional_inputs.contains(&name);
        let mut inputs = self.inputs.iter().map(|input| input.name.as_str());
        if let Some(unknown) = inputs.find(|name| !is_given(name)) {
            return Err(format!(
                "the graph wants an input \"{unknown}\" that its layout does not give"
            ));
        }
        let presents = interface.kv_pairs.iter().map(|pair| pair.present.as_str());
        let mut results: Vec<&str> = match &interface.results {
            Results::Logits if interface.action_is_optional => vec![interface.logits()],
            Results::Logits => vec![interface.logits(), "act_logits"],
            Results::States => Vec::new(),
            Results::Scores(names) => names.clone(),
        };
        let keys_and_values: Vec<&str> = presents.collect();
        results.extend(&keys_and_values);
        if let Some(missing) = results.iter().find(|name| !self.has_output(name)) {
            return Err(format!("the graph has no output \"{missing}\""));
        }
        let read = match interface.results {
            Results::States => self.outputs.first(),
            Results::Logits | Results::Scores(_) => None,
        };
        let named = self.outputs.iter();
        let named = named.filter(|it| it.name == "act_logits" || results.contains(&&*it.name));
        let is_wrong = |output: &&TensorInfo| match output.kind.as_str() {
            "float32" => false,
            "float16" => keys_and_values.contains(&&*output.name),
            _ => true,
        };
        match named.chain(read).find(is_wrong) {
            Some(TensorInfo { name, kind, .. }) => Err(format!(
                "the graph's output \"{name}\" is {kind}, and must be float32"
            )),
            None => Ok(()),
        }
    }
}

fn info(outlet: &Outlet) -> TensorInfo {
    let (kind, shape) = match outlet.dtype() {
        ValueType::Tensor {
            ty,
            shape,
            dimension_symbols,
        } => {
            let dimensions = shape.iter().zip(dimension_symbols.iter());
            let dimensions = dimensions.map(|(length, symbol)| match *length {
                0.. => length.to_string(),
                _ if symbol.is_empty() => "?".to_owned(),
                _ => symbol.clone(),
            });
            (kind(*ty), dimensions.collect())
        }
        other => (other.to_string(), Vec::new()),
    };
    TensorInfo {
        name: outlet.name().to_owned(),
        kind,
        shape,
    }
}

/// Returns the usual names of the types that occur, and the library's own names for the others.
fn kind(element: TensorElementType) -> String {
    match element {
        TensorElementType::Float32 => "float32".to_owned(),
        TensorElementType::Float16 => "float16".to_owned(),
        TensorElementType::Int64 => "int64".to_owned(),
        TensorElementType::Int32 => "int32".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_is_read_must_have_floats() {
        let output = |name: &str, kind: &str| TensorInfo {
            name: name.to_owned(),
            kind: kind.to_owned(),
            shape: Vec::new(),
        };
        let check = |results: Results, outputs: Vec<TensorInfo>| {
            let interface = Interface {
                results,
                action_is_optional: true,
                ..Interface::default()
            };
            let inputs = Vec::new();
            Tensors { inputs, outputs }.check(&interface)
        };
        let float = || output("logits", "float32");
        let whole = |name: &str| output(name, "int64");
        let refused = |name: &str| {
            Err(format!(
                "the graph's output \"{name}\" is int64, and must be float32"
            ))
        };
        assert_eq!(
            check(Results::Logits, vec![whole("other"), float()]),
            Ok(())
        );
        assert_eq!(
            check(Results::Logits, vec![whole("logits")]),
            refused("logits")
        );
        assert_eq!(
            check(Results::Logits, vec![float(), whole("act_logits")]),
            refused("act_logits")
        );
        assert_eq!(check(Results::States, vec![whole("h")]), refused("h"));
        let scores = || Results::Scores(vec!["scores"]);
        assert_eq!(check(scores(), vec![whole("scores")]), refused("scores"));
        assert_eq!(check(scores(), vec![output("scores", "float16")]), Ok(()));
        assert_eq!(
            check(Results::Logits, vec![output("logits", "float16")]),
            Ok(())
        );
    }
}
