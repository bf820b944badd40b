//! The form in which a layout reads a question, where several forms ask the same.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::question::{Kind, Outcome, Question};

/// The names of a yes/no question's two sides, each "no" with its "yes".
const SIDES: [[&str; 2]; 2] = [["no", "yes"], ["false", "true"]];

/// A question as a layout reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading<'q> {
    /// The question that is read; often the caller's.
    pub question: Cow<'q, Question>,
    /// For each of the caller's outcomes its index in the question that is read; `None` where they
    /// are the same.
    places: Option<Vec<usize>>,
}

impl<'q> Reading<'q> {
    /// Returns the caller's question as it is.
    pub fn plain(question: &'q Question) -> Self {
        Self {
            question: Cow::Borrowed(question),
            places: None,
        }
    }

    /// Returns another question that is read instead of the caller's.
    fn instead(
        question: &Question,
        kind: Kind,
        outcomes: Vec<Outcome>,
        places: Option<Vec<usize>>,
    ) -> Self {
        Self {
            question: Cow::Owned(Question {
                id: question.id.clone(),
                kind,
                instructions: question.instructions.clone(),
                outcomes,
            }),
            places,
        }
    }

    /// Returns a question in the form that it shares with those that ask the same: yes or no as a
    /// `noul`, whatever its type, levels in words as the options of a choice, and options with the
    /// same description as one option.
    pub fn unified(question: &'q Question) -> Self {
        yes_or_no(question)
            .or_else(|| levels_as_options(question))
            .or_else(|| with_each_description_once(question))
            .unwrap_or_else(|| Self::plain(question))
    }

    /// Returns a value for each of the caller's outcomes, from those of the outcomes that are read.
    pub fn spread<T: Copy>(&self, values: &[T]) -> Vec<T> {
        match &self.places {
            None => values.to_vec(),
            Some(places) => places.iter().map(|place| values[*place]).collect(),
        }
    }

    /// Returns for each outcome that is read the logarithm of what each of the caller's outcomes
    /// gets of it: what several share is divided evenly.
    pub fn log_shares(&self) -> Vec<f64> {
        let read = self.question.outcomes.len();
        let Some(places) = &self.places else {
            return vec![0.0; read];
        };
        let mut counts = vec![0_u32; read];
        places.iter().for_each(|place| counts[*place] += 1);
        let counts = counts.into_iter().map(f64::from);
        counts.map(|count| -count.ln()).collect()
    }
}

/// Returns a choice or a score between yes and no as a yes/no question.
fn yes_or_no(question: &Question) -> Option<Reading<'_>> {
    let [first, second] = question.outcomes.as_slice() else {
        return None;
    };
    let sides = sides_of(match question.kind {
        Kind::Noul => return None,
        Kind::Choice => [&first.name, &second.name],
        Kind::Score => [first.text.as_deref()?, second.text.as_deref()?],
    })?;
    let mut outcomes = ["false", "true"].map(bare);
    if question.kind == Kind::Choice {
        for (outcome, side) in question.outcomes.iter().zip(sides) {
            // A description that is only another word for the side says nothing.
            let says_more = |text: &String| !SIDES.iter().any(|words| same(text, words[side]));
            outcomes[side].text = outcome.text.clone().filter(says_more);
        }
    }
    let places = Some(sides.to_vec());
    Some(Reading::instead(
        question,
        Kind::Noul,
        outcomes.to_vec(),
        places,
    ))
}

/// Returns an outcome that is a name alone.
fn bare(name: &str) -> Outcome {
    Outcome {
        name: name.to_owned(),
        text: None,
        legend: None,
    }
}

/// Returns which side of a yes/no question each of two names is, 0 for no and 1 for yes.
fn sides_of(names: [&str; 2]) -> Option<[usize; 2]> {
    let [one, other] = names;
    SIDES.iter().find_map(|[no, yes]| {
        if same(one, no) && same(other, yes) {
            Some([0, 1])
        } else if same(one, yes) && same(other, no) {
            Some([1, 0])
        } else {
            None
        }
    })
}

fn same(text: &str, word: &str) -> bool {
    text.eq_ignore_ascii_case(word)
}

/// Returns a score whose levels are in words, all different, as a choice between them: the words say
/// which level is higher, so the order adds nothing, and a scale that is turned round asks the same.
fn levels_as_options(question: &Question) -> Option<Reading<'_>> {
    if question.kind != Kind::Score {
        return None;
    }
    let levels = question.outcomes.iter().map(|it| it.text.as_deref());
    let words: Vec<&str> = levels.collect::<Option<_>>()?;
    let different: BTreeSet<&str> = words.iter().copied().collect();
    if different.len() < words.len() || !words.iter().copied().all(in_words) {
        return None;
    }
    let options = words.into_iter().map(bare).collect();
    Some(Reading::instead(question, Kind::Choice, options, None))
}

/// Whether a level says in words what it is: it has a letter, or a character outside of ASCII, as
/// numbers and signs alone do not.
fn in_words(level: &str) -> bool {
    level
        .chars()
        .any(|it| it.is_ascii_alphabetic() || !it.is_ascii())
}

/// Returns a choice without the options whose description another has, too: the one whose name comes
/// first in byte order stands for them.
fn with_each_description_once<'q>(question: &'q Question) -> Option<Reading<'q>> {
    if question.kind != Kind::Choice {
        return None;
    }
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for outcome in &question.outcomes {
        if let Some(text) = &outcome.text {
            let name = names.entry(text).or_insert(&outcome.name);
            *name = (*name).min(&outcome.name);
        }
    }
    let described = question.outcomes.iter().filter(|it| it.text.is_some());
    if described.count() == names.len() {
        return None;
    }
    let first_name = |it: &'q Outcome| match &it.text {
        Some(text) => names[text.as_str()],
        None => &it.name,
    };
    let outcomes = question.outcomes.iter();
    let kept: Vec<&Outcome> = outcomes
        .clone()
        .filter(|it| first_name(it) == it.name)
        .collect();
    let numbers: BTreeMap<&str, usize> = kept.iter().map(|it| it.name.as_str()).zip(0..).collect();
    let places = outcomes.map(|it| numbers[first_name(it)]).collect();
    let kept = kept.into_iter().cloned().collect();
    Some(Reading::instead(
        question,
        question.kind,
        kept,
        Some(places),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a question of two or more outcomes, each a name and its description, "" for none.
    fn question(kind: Kind, outcomes: &[[&str; 2]]) -> Question {
        let outcomes = outcomes.iter().map(|[name, text]| Outcome {
            name: (*name).to_owned(),
            text: (!text.is_empty()).then(|| (*text).to_owned()),
            legend: None,
        });
        Question {
            id: "q".into(),
            kind,
            instructions: "Is it late?".into(),
            outcomes: outcomes.collect(),
        }
    }

    fn places(reading: &Reading<'_>) -> Vec<usize> {
        let all: Vec<usize> = (0..reading.question.outcomes.len()).collect();
        reading.spread(&all)
    }

    #[test]
    fn yes_or_no_is_read_as_the_same_noul_in_every_form() {
        let noul = question(Kind::Noul, &[["false", ""], ["true", ""]]);
        for (asked, expected) in [
            (
                question(Kind::Choice, &[["yes", "Yes"], ["no", "No"]]),
                [1, 0],
            ),
            (
                question(Kind::Choice, &[["No", ""], ["Yes", "true"]]),
                [0, 1],
            ),
            (
                question(Kind::Choice, &[["TRUE", ""], ["False", "no"]]),
                [1, 0],
            ),
            (question(Kind::Score, &[["0", "No"], ["1", "Yes"]]), [0, 1]),
            (
                question(Kind::Score, &[["0", "true"], ["1", "false"]]),
                [1, 0],
            ),
        ] {
            let reading = Reading::unified(&asked);
            assert_eq!(*reading.question, noul, "{asked:?}");
            assert_eq!(places(&reading), expected, "{asked:?}");
            assert_eq!(reading.log_shares(), [0.0, 0.0]);
        }
    }

    #[test]
    fn what_the_sides_mean_is_read_too() {
        let asked = question(
            Kind::Choice,
            &[["yes", "after noon"], ["no", "before noon"]],
        );
        let expected = question(
            Kind::Noul,
            &[["false", "before noon"], ["true", "after noon"]],
        );
        assert_eq!(*Reading::unified(&asked).question, expected);
    }

    #[test]
    fn options_of_one_description_are_read_once_and_share_evenly() {
        let options = [
            ["tech", "bugs"],
            ["b", "money"],
            ["sales", ""],
            ["a", "money"],
            ["c", "money"],
        ];
        let asked = question(Kind::Choice, &options);
        let reading = Reading::unified(&asked);
        let expected = question(
            Kind::Choice,
            &[["tech", "bugs"], ["sales", ""], ["a", "money"]],
        );
        assert_eq!(*reading.question, expected);
        assert_eq!(places(&reading), [0, 2, 1, 2, 2]);
        assert_eq!(reading.log_shares(), [0.0, 0.0, -(3_f64.ln())]);
    }

    #[test]
    fn levels_in_words_are_read_as_options() {
        let levels = [["0", "low"], ["1", "2 or 3"], ["2", "高い"]];
        let asked = question(Kind::Score, &levels);
        let reading = Reading::unified(&asked);
        let expected = question(Kind::Choice, &[["low", ""], ["2 or 3", ""], ["高い", ""]]);
        assert_eq!(*reading.question, expected);
        assert_eq!(places(&reading), [0, 1, 2]);
        assert_eq!(reading.log_shares(), [0.0; 3]);
    }

    #[test]
    fn other_questions_are_read_as_they_are() {
        for asked in [
            question(Kind::Noul, &[["false", "yes"], ["true", "no"]]),
            question(Kind::Choice, &[["yes", ""], ["false", ""]]),
            question(Kind::Choice, &[["yes", ""], ["no", ""], ["maybe", ""]]),
            question(Kind::Choice, &[["yes, sir", ""], ["no", ""]]),
            question(Kind::Score, &[["0", "same"], ["1", "same"]]),
            question(Kind::Score, &[["0", "1"], ["1", "2"], ["2", "3+"]]),
            question(Kind::Score, &[["0", "-"], ["1", "+"]]),
            question(Kind::Score, &[["0", ""], ["1", "high"]]),
        ] {
            let reading = Reading::unified(&asked);
            assert_eq!(reading, Reading::plain(&asked));
            assert_eq!(
                places(&reading),
                (0..asked.outcomes.len()).collect::<Vec<_>>()
            );
            assert!(reading.log_shares().iter().all(|share| *share == 0.0));
        }
    }
}
