//! The roles of a cross-encoder's classes, by the labels that its `id2label` gives them.

use std::collections::BTreeMap;

use super::{Problem, Settings};
use crate::Error;

/// The labels of the classes, in the graph's order; at least one.
pub(super) struct Labels(Vec<String>);

/// The role of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The class speaks for the hypothesis.
    Entailment,
    /// The class speaks against the hypothesis.
    Contradiction,
    /// The only class: its logit tells how well the texts go together.
    Relevance,
}

impl Role {
    /// Returns the name of the role.
    pub fn name(self) -> &'static str {
        match self {
            Self::Entailment => "entailment",
            Self::Contradiction => "contradiction",
            Self::Relevance => "relevance",
        }
    }
}

/// The indexes of the logits that speak for a hypothesis and against it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Classes {
    count: usize,
    entailment: usize,
    /// `None` where there is only one class: its logit is weighed against 0, as a sigmoid does.
    contradiction: Option<usize>,
}

impl Labels {
    /// Returns the labels of `id2label`, whose keys are the numbers from 0.
    ///
    /// # Errors
    /// The key, and the requirement that it breaks.
    pub(super) fn new(id2label: &BTreeMap<String, String>) -> Result<Self, Problem> {
        let label = |index: usize| id2label.get(&index.to_string()).cloned();
        let labels: Option<Vec<String>> = (0..id2label.len()).map(label).collect();
        let problem = match labels {
            Some(labels) if !labels.is_empty() => return Ok(Self(labels)),
            Some(_) => "must name the graph's classes, such as {\"0\": \"entailment\", …}",
            None => "must have the keys \"0\", \"1\", … without a gap",
        };
        Err(("id2label".into(), problem.into()))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the classes that count: those that the settings name, else those with matching
    /// labels.
    ///
    /// # Errors
    /// The key that would have to name a class.
    pub(super) fn classes(&self, settings: &Settings) -> Result<Classes, Problem> {
        let count = self.0.len();
        let entailment = match &settings.entailment {
            None if count == 1 => 0,
            named => self.find("entailment", named.as_deref(), "entail", None)?,
        };
        // Of two classes, the one that is not entailment is its contrary, whatever its label is.
        let other = (count == 2).then(|| 1 - entailment);
        let contradiction = match (&settings.contradiction, count) {
            (None, 1) => None,
            (named, _) => {
                Some(self.find("contradiction", named.as_deref(), "contradict", other)?)
            }
        };
        if contradiction == Some(entailment) {
            let problem = "must be another class than entailment".into();
            return Err(("contradiction".into(), problem));
        }
        Ok(Classes {
            count,
            entailment,
            contradiction,
        })
    }

    /// Returns the class for `key`: the one that the setting names, else the first whose label
    /// begins with `beginning`, else `or`.
    fn find(
        &self,
        key: &str,
        named: Option<&str>,
        beginning: &str,
        or: Option<usize>,
    ) -> Result<usize, Problem> {
        let known = || self.0.join(", ");
        if let Some(named) = named {
            let place = self.names().position(|label| label == named);
            let problem = || format!("\"{named}\" is none of the labels in id2label: {}", known());
            return place.ok_or_else(|| (key.into(), problem()));
        }
        let begins = |label: &str| label.to_lowercase().starts_with(beginning);
        self.names().position(begins).or(or).ok_or_else(|| {
            let problem = format!(
                "none of the labels is {key}: {}; name one with the key {key}",
                known()
            );
            ("id2label".into(), problem)
        })
    }
}

impl Classes {
    /// Returns the logit for the hypothesis of a row and the logit against it, in this order.
    ///
    /// # Errors
    /// [`Error::ModelFailed`] where the graph has another number of classes.
    pub(super) fn read(&self, logits: &[f32]) -> Result<[f32; 2], Error> {
        if logits.len() != self.count {
            let (got, wanted) = (logits.len(), self.count);
            return Err(Error::ModelFailed {
                cause: format!(
                    "the graph gives {got} logits a row, id2label has labels for {wanted}"
                ),
            });
        }
        let contra = self.contradiction.map_or(0.0, |index| logits[index]);
        Ok([logits[self.entailment], contra])
    }

    pub(super) fn role(&self, index: usize) -> Option<Role> {
        match self.contradiction {
            None => Some(Role::Relevance),
            Some(contradiction) if contradiction == index => Some(Role::Contradiction),
            Some(_) => (self.entailment == index).then_some(Role::Entailment),
        }
    }
}
