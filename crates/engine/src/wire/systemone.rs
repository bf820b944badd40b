//! `POST /v1/systemone`: the body of a request, and the body of its answer.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::value::RawValue;

use super::json::{Body, Members, Shape, count_over, mended, shape, state_at, write_string};
use super::{MODEL, Most, OptionBudget, Usage, hundredths};
use crate::Error;
use crate::decode::Answer;
use crate::question::{Kind, Outcome, Question, Request};

/// Parses the body of a decision request.
///
/// # Errors
/// The first problem, in this order: JSON, the top level, then the questions as they stand.
pub fn parse(bytes: &[u8], most: Most) -> Result<Request, Error> {
    let bytes = mended(bytes);
    let body = Body::scan(&bytes)?;
    let top = body.members(body.root)?.ok_or(Error::BodyNotObject)?;
    if let Some(field) = top.duplicate() {
        let field = field.to_owned();
        return Err(Error::DuplicateField { field });
    }
    let state = top.get("state").ok_or(Error::StateMissing)?;
    let state = state_at(body.whole(), body.range(state))?;
    let questions = top.get("questions").ok_or(Error::QuestionsMissing)?;
    Ok(Request {
        state,
        questions: parse_questions(&body, questions, most)?,
    })
}

/// Parses the map of questions.
///
/// # Errors
/// The first bad question in the order of the text.
pub fn parse_questions<'a>(
    body: &Body<'a>,
    value: &'a RawValue,
    most: Most,
) -> Result<Vec<Question>, Error> {
    let limit = most.questions;
    let members = match shape(value) {
        Shape::Null => return Err(Error::QuestionsMissing),
        Shape::Object => match count_over(value, limit) {
            Some(actual) => return Err(Error::TooManyQuestions { limit, actual }),
            None => body.all_members(value)?,
        },
        _ => None,
    };
    let members = members.ok_or(Error::QuestionsNotObject)?;
    if members.0.is_empty() {
        return Err(Error::QuestionsMissing);
    }
    let actual = members.0.len();
    if actual > limit {
        return Err(Error::TooManyQuestions { limit, actual });
    }
    if let Some(id) = members.duplicate() {
        return Err(Error::DuplicateQuestion { id: id.to_owned() });
    }
    let mut budget = OptionBudget::new(most);
    let questions = members.0.into_iter();
    questions
        .map(|(id, question)| parse_question(body, id, question, &mut budget))
        .collect()
}

fn parse_question<'a>(
    body: &Body<'a>,
    id: Cow<'a, str>,
    value: &'a RawValue,
    budget: &mut OptionBudget,
) -> Result<Question, Error> {
    let id = id.into_owned();
    let Some(fields) = body.members(value)? else {
        return Err(Error::QuestionNotObject { id });
    };
    for field in ["type", "instructions", "criteria"] {
        if fields.0.iter().filter(|(name, _)| name == field).count() > 1 {
            let field = field.to_owned();
            return Err(Error::DuplicateQuestionField { id, field });
        }
    }
    let kind = parse_kind(body, &id, fields.get("type"))?;
    let instructions = match fields.get("instructions").map(|value| body.text(value)) {
        None => String::new(),
        Some(text) => text?.ok_or_else(|| Error::InstructionsNotText { id: id.clone() })?,
    };
    let criteria = fields
        .get("criteria")
        .filter(|value| shape(value) != Shape::Null);
    criteria.map_or(Ok(()), |criteria| budget.check(criteria))?;
    let reader = CriteriaReader { body, id: &id };
    let outcomes = match kind {
        Kind::Noul => reader.noul(criteria)?,
        Kind::Choice => reader.choice(criteria)?,
        Kind::Score => reader.score(criteria)?,
    };
    if outcomes.len() < 2 {
        return Err(Error::TooFewOptions { id });
    }
    budget.take(&outcomes)?;
    Ok(Question {
        id,
        kind,
        instructions,
        outcomes,
    })
}

fn parse_kind<'a>(body: &Body<'a>, id: &str, value: Option<&'a RawValue>) -> Result<Kind, Error> {
    let name = match value.map(|value| (shape(value), value)) {
        None | Some((Shape::Null, _)) => String::new(),
        Some((Shape::String, value)) => body.string(value)?,
        Some((_, value)) => value.get().to_owned(),
    };
    Kind::from_name(&name).ok_or_else(|| Error::UnknownType {
        id: id.to_owned(),
        kind: name,
    })
}

/// A reader of the criteria of one question.
struct CriteriaReader<'b, 'a> {
    body: &'b Body<'a>,
    id: &'b str,
}

impl<'a> CriteriaReader<'_, 'a> {
    fn noul(&self, criteria: Option<&'a RawValue>) -> Result<Vec<Outcome>, Error> {
        let sides = match criteria {
            None => Members(Vec::new()),
            Some(value) => self.members(value)?,
        };
        ["false", "true"]
            .into_iter()
            .map(|side| {
                let text = match sides.get(side) {
                    None => None,
                    Some(value) => self.description(side, value)?,
                };
                Ok(outcome(side.to_owned(), text))
            })
            .collect()
    }

    fn choice(&self, criteria: Option<&'a RawValue>) -> Result<Vec<Outcome>, Error> {
        let value = self.required(criteria)?;
        if let Some(names) = self.body.items(value)? {
            let mut outcomes = Vec::with_capacity(names.len());
            for (index, name) in names.into_iter().enumerate() {
                if shape(name) != Shape::String {
                    return Err(self.not_text(&index.to_string()));
                }
                outcomes.push(outcome(self.body.string(name)?, None));
            }
            self.check_names(&outcomes)?;
            return Ok(outcomes);
        }
        let members = self.members(value)?;
        let mut outcomes = Vec::with_capacity(members.0.len());
        for (name, value) in members.0 {
            let text = self.description(&name, value)?;
            outcomes.push(outcome(name.into_owned(), text));
        }
        Ok(outcomes)
    }

    fn score(&self, criteria: Option<&'a RawValue>) -> Result<Vec<Outcome>, Error> {
        let value = self.required(criteria)?;
        let levels = self.body.items(value)?;
        let levels = levels.ok_or_else(|| Error::CriteriaNotList {
            id: self.id.to_owned(),
        })?;
        let mut outcomes = Vec::with_capacity(levels.len());
        for (index, level) in levels.into_iter().enumerate() {
            let name = index.to_string();
            let (text, legend) = if shape(level) == Shape::Null {
                (name.clone(), format!("\"{name}\""))
            } else {
                let text = self.body.text(level)?;
                let text = text.ok_or_else(|| self.not_text(&name))?;
                (text, level.get().to_owned())
            };
            outcomes.push(Outcome {
                name,
                text: Some(text),
                legend: Some(legend),
            });
        }
        Ok(outcomes)
    }

    fn required(&self, criteria: Option<&'a RawValue>) -> Result<&'a RawValue, Error> {
        criteria.ok_or_else(|| Error::MissingCriteria {
            id: self.id.to_owned(),
        })
    }

    /// Returns the members of an object of criteria, in which each name occurs once.
    fn members(&self, value: &'a RawValue) -> Result<Members<'a>, Error> {
        let members = self.body.all_members(value)?;
        let members = members.ok_or_else(|| Error::CriteriaNotObject {
            id: self.id.to_owned(),
        })?;
        match members.duplicate() {
            Some(option) => Err(self.duplicate(option)),
            None => Ok(members),
        }
    }

    fn check_names(&self, outcomes: &[Outcome]) -> Result<(), Error> {
        let mut names: Vec<&str> = outcomes.iter().map(|each| each.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(self.duplicate(pair[0])),
            None => Ok(()),
        }
    }

    /// Returns the text of a description; `None` where it is `null` or empty.
    fn description(&self, name: &str, value: &'a RawValue) -> Result<Option<String>, Error> {
        let text = self.body.text(value)?;
        let text = text.ok_or_else(|| self.not_text(name))?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    fn duplicate(&self, option: &str) -> Error {
        Error::DuplicateOption {
            id: self.id.to_owned(),
            option: option.to_owned(),
        }
    }

    fn not_text(&self, option: &str) -> Error {
        Error::CriterionNotText {
            id: self.id.to_owned(),
            option: option.to_owned(),
        }
    }
}

fn outcome(name: String, text: Option<String>) -> Outcome {
    Outcome {
        name,
        text,
        legend: None,
    }
}

/// Writes the body of a decision response; `answers` are in the order of `questions`.
pub fn write(questions: &[Question], answers: &[Answer], usage: &Usage) -> Vec<u8> {
    let mut out = String::with_capacity(192 + 192 * questions.len());
    out.push_str("{\"model\":\"");
    out.push_str(MODEL);
    out.push_str("\",");
    write_answers(&mut out, questions, answers, usage);
    out.into_bytes()
}

/// Writes the result of one state of a batch: a response without the model.
pub fn write_result(questions: &[Question], answers: &[Answer], usage: &Usage) -> Vec<u8> {
    let mut out = String::with_capacity(192 + 192 * questions.len());
    out.push('{');
    write_answers(&mut out, questions, answers, usage);
    out.into_bytes()
}

/// Writes `answers` and `usage`, and closes the object.
fn write_answers(out: &mut String, questions: &[Question], answers: &[Answer], usage: &Usage) {
    out.push_str("\"answers\":{");
    for (index, (question, answer)) in questions.iter().zip(answers).enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, &question.id);
        out.push(':');
        write_answer(out, question, answer);
    }
    out.push_str("},\"usage\":");
    write_usage(out, usage);
    out.push('}');
}

/// Writes `usage`: tokens, and milliseconds with two decimals.
pub(super) fn write_usage(out: &mut String, usage: &Usage) {
    let _ = write!(
        out,
        "{{\"input_tokens\":{},\"output_tokens\":0,\"server_ms\":{}",
        usage.input_tokens,
        hundredths(usage.server_ms)
    );
    if usage.truncated_tokens > 0 {
        let _ = write!(out, ",\"truncated_tokens\":{}", usage.truncated_tokens);
    }
    out.push('}');
}

/// Writes one answer: its type, its value, and its probabilities in the order of the question's
/// outcomes.
fn write_answer(out: &mut String, question: &Question, answer: &Answer) {
    let _ = write!(out, "{{\"type\":\"{}\",", question.kind);
    match question.kind {
        Kind::Choice => {
            out.push_str("\"choice\":");
            write_string(out, &question.outcomes[answer.top].name);
        }
        Kind::Score => {
            let _ = write!(out, "\"score\":{}", answer.expected_level());
        }
        Kind::Noul => {
            let _ = write!(out, "\"noul\":{}", answer.probability(1));
        }
    }
    out.push_str(",\"probabilities\":{");
    write_members(out, question, |out, index, _| {
        let _ = write!(out, "{}", answer.probability(index));
    });
    let _ = write!(
        out,
        "}},\"confidence\":{},\"answer_confidence\":{}",
        answer.confidence(question.kind),
        answer.probability(answer.top)
    );
    if question.kind == Kind::Score {
        out.push_str(",\"legend\":{");
        write_members(out, question, |out, _, outcome| {
            out.push_str(outcome.legend.as_deref().unwrap_or("null"));
        });
        out.push('}');
    }
    if let Some(act) = answer.act_probability {
        let _ = write!(out, ",\"action\":{{\"act_probability\":{act}}}");
    }
    out.push('}');
}

/// Writes the members of an object that is keyed by the question's outcomes.
fn write_members(
    out: &mut String,
    question: &Question,
    value: impl Fn(&mut String, usize, &Outcome),
) {
    for (index, outcome) in question.outcomes.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, &outcome.name);
        out.push(':');
        value(out, index, outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Calibration, Logits};

    const MOST: Most = Most {
        questions: 3,
        tokens: 100_000,
    };

    fn refused(body: &str) -> (&'static str, String) {
        let error = parse(body.as_bytes(), MOST).expect_err("a bad request");
        (error.code(), error.to_string())
    }

    fn asks(questions: &str) -> String {
        format!(r#"{{"state":"s","questions":{questions}}}"#)
    }

    /// Returns the only question of a request.
    fn question(question: &str) -> Question {
        let body = asks(&format!(r#"{{"q":{question}}}"#));
        let request = parse(body.as_bytes(), MOST).expect(question);
        request.questions.into_iter().next().expect("a question")
    }

    /// Returns the name, text and legend of each outcome of a question.
    fn outcomes(kind: &str, criteria: &str) -> Vec<(String, Option<String>, Option<String>)> {
        let question = question(&format!(r#"{{"type":"{kind}","criteria":{criteria}}}"#));
        let outcomes = question.outcomes.into_iter();
        outcomes
            .map(|outcome| (outcome.name, outcome.text, outcome.legend))
            .collect()
    }

    #[test]
    fn what_is_wrong_with_all_of_a_request_is_told_before_what_is_wrong_with_a_part() {
        for (body, code, message) in [
            (
                r#"{"questions":7,"questions":8"#,
                "invalid_json",
                "invalid JSON at byte 28",
            ),
            ("[]", "body_not_object", "body must be an object"),
            ("null", "body_not_object", "body must be an object"),
            (r#"{"state":1,"state":2}"#, "duplicate_field", "state twice"),
            (
                r#"{"state":1,"questions":{},"questions":{}}"#,
                "duplicate_field",
                "questions twice",
            ),
            (
                r#"{"x_y":1,"state":1,"x\u005fy":2}"#,
                "duplicate_field",
                "x_y twice",
            ),
            ("{}", "state_missing", "state missing"),
            (r#"{"questions":7}"#, "state_missing", "state missing"),
            (r#"{"state":"s"}"#, "questions_missing", "questions missing"),
        ] {
            assert_eq!(refused(body), (code, message.to_owned()), "{body}");
        }
        for (questions, code, message) in [
            ("null", "questions_missing", "questions missing"),
            ("{}", "questions_missing", "questions missing"),
            ("[]", "questions_not_object", "questions must be an object"),
            (
                "\"q\"",
                "questions_not_object",
                "questions must be an object",
            ),
            ("7", "questions_not_object", "questions must be an object"),
            (
                r#"{"a":7,"b":8,"a":9}"#,
                "duplicate_question",
                "a: question id used twice",
            ),
            (
                r#"{"é":{"type":"noul"},"\u00e9":{"type":"noul"}}"#,
                "duplicate_question",
                "é: question id used twice",
            ),
            (
                r#"{"a":7,"b":8,"c":9,"d":10}"#,
                "too_many_questions",
                "4 questions, the limit is 3 (max_questions)",
            ),
        ] {
            assert_eq!(refused(&asks(questions)), (code, message.to_owned()));
        }
    }

    #[test]
    fn what_is_wrong_with_a_question_names_it() {
        for (code, problem, questions) in [
            (
                "question_not_object",
                "must be an object",
                &["null", "\"noul\"", "1", "[]"][..],
            ),
            (
                "duplicate_field",
                "type twice",
                &[r#"{"type":"noul","type":"noul"}"#],
            ),
            (
                "duplicate_field",
                "instructions twice",
                &[r#"{"type":"noul","instructions":"","instructions":""}"#],
            ),
            (
                "duplicate_field",
                "criteria twice",
                &[r#"{"type":"noul","criteria":null,"criteria":null}"#],
            ),
            (
                "unknown_type",
                "unknown type \"\"",
                &["{}", r#"{"type":null}"#, r#"{"type":""}"#],
            ),
            (
                "unknown_type",
                "unknown type \"Noul\"",
                &[r#"{"type":"Noul"}"#],
            ),
            ("unknown_type", "unknown type \"7\"", &[r#"{"type":7}"#]),
            (
                "instructions_not_text",
                "instructions must be text",
                &[
                    r#"{"type":"noul","instructions":1}"#,
                    r#"{"type":"noul","instructions":false}"#,
                ],
            ),
            (
                "missing_criteria",
                "missing criteria",
                &[
                    r#"{"type":"choice"}"#,
                    r#"{"type":"score"}"#,
                    r#"{"type":"choice","criteria":null}"#,
                    r#"{"type":"score","criteria":null}"#,
                ],
            ),
        ] {
            for question in questions {
                let body = asks(&format!(r#"{{"q":{question}}}"#));
                let expected = (code, format!("q: {problem}"));
                assert_eq!(refused(&body), expected, "{question}");
            }
        }
    }

    #[test]
    fn what_is_wrong_with_criteria_names_the_question_and_the_option() {
        const NO_OBJECT: &str = "criteria must be an object";
        const FEW: &str = "need at least two options";
        for (code, problem, kind, criteria) in [
            (
                "criteria_not_object",
                NO_OBJECT,
                "noul",
                &["[]", "\"yes\"", "1", "true"][..],
            ),
            (
                "criteria_not_object",
                NO_OBJECT,
                "choice",
                &["\"a\"", "1", "true"],
            ),
            (
                "criteria_not_list",
                "criteria must be a list",
                "score",
                &["{}", r#"{"a":1,"b":2}"#, "\"a\"", "1"],
            ),
            (
                "too_few_options",
                FEW,
                "choice",
                &["{}", r#"{"a":"x"}"#, "[]", r#"["a"]"#],
            ),
            (
                "too_few_options",
                FEW,
                "score",
                &["[]", r#"["a"]"#, "[null]"],
            ),
            (
                "duplicate_option",
                "option \"a\" twice",
                "choice",
                &[
                    r#"{"a":"1","b":"2","a":"3"}"#,
                    r#"{"a":"1","\u0061":"2"}"#,
                    r#"["a","b","a"]"#,
                ],
            ),
            (
                "duplicate_option",
                "option \"true\" twice",
                "noul",
                &[r#"{"true":"a","true":"a"}"#],
            ),
            (
                "criterion_not_text",
                "criteria \"a\" must be text",
                "choice",
                &[r#"{"a":7,"b":"x"}"#, r#"{"b":"x","a":true}"#],
            ),
            (
                "criterion_not_text",
                "criteria \"1\" must be text",
                "choice",
                &[r#"["a",true]"#, r#"["a",null]"#, r#"["a",{}]"#],
            ),
            (
                "criterion_not_text",
                "criteria \"1\" must be text",
                "score",
                &[r#"["a",2]"#],
            ),
            (
                "criterion_not_text",
                "criteria \"true\" must be text",
                "noul",
                &[r#"{"true":1}"#],
            ),
        ] {
            for criteria in criteria {
                let question = format!(r#"{{"type":"{kind}","criteria":{criteria}}}"#);
                let expected = (code, format!("q: {problem}"));
                assert_eq!(
                    refused(&asks(&format!(r#"{{"q":{question}}}"#))),
                    expected,
                    "{question}"
                );
            }
        }
    }

    #[test]
    fn the_first_bad_question_in_the_order_of_the_text_is_the_one_that_is_told() {
        for (questions, message) in [
            (
                r#"{"z":{"type":"x"},"10":{"type":"y"},"2":{"type":"z"}}"#,
                "z: unknown type \"x\"",
            ),
            (
                r#"{"ok":{"type":"noul"},"10":{"type":"y"},"2":{"type":"z"}}"#,
                "10: unknown type \"y\"",
            ),
            (
                r#"{"ok":{"type":"noul"},"b":{"type":"score"},"a":7}"#,
                "b: missing criteria",
            ),
        ] {
            assert_eq!(refused(&asks(questions)).1, message);
        }
    }

    #[test]
    fn as_many_questions_as_the_limit_are_taken_in_the_order_of_the_text() {
        let body = asks(r#"{"z":{"type":"noul"},"10":{"type":"noul"},"2":{"type":"noul"}}"#);
        let request = parse(body.as_bytes(), MOST).expect("three questions");
        let ids: Vec<&str> = request
            .questions
            .iter()
            .map(|each| each.id.as_str())
            .collect();
        assert_eq!(ids, ["z", "10", "2"]);
    }

    #[test]
    fn a_state_that_is_a_string_is_its_text_and_any_other_its_json_as_sent() {
        for (sent, text) in [
            (r#""caf\u00e9\n""#, "café\n"),
            (r#""a\ud83d""#, "a\u{fffd}"),
            ("null", "null"),
            ("1.50", "1.50"),
            (r#"{ "b":1, "b" :[ ]}"#, r#"{ "b":1, "b" :[ ]}"#),
            (r#"{"a":"\u00e9"}"#, r#"{"a":"\u00e9"}"#),
        ] {
            let body = format!(r#"{{"questions":{{"q":{{"type":"noul"}}}},"state": {sent} }}"#);
            let request = parse(body.as_bytes(), MOST).expect("a request");
            assert_eq!(request.state.text, text);
        }
    }

    #[test]
    fn instructions_are_a_text_or_compact_json_and_may_be_absent() {
        for (sent, text) in [
            (r#"{"type":"noul"}"#, ""),
            (r#"{"type":"noul","instructions":null}"#, ""),
            (
                r#"{"type":"noul","instructions":" Is it?","weight":1}"#,
                " Is it?",
            ),
            (
                r#"{"instructions":{ "10" : 1.50, "2":[ true ] },"type":"noul"}"#,
                r#"{"10":1.50,"2":[true]}"#,
            ),
        ] {
            assert_eq!(question(sent).instructions, text);
        }
    }

    #[test]
    fn an_answer_is_keyed_by_its_id_and_has_the_outcomes_in_the_order_of_the_request() {
        let body = asks(
            r#"{"a\"b":{"type":"noul"},"c":{"type":"choice","criteria":["10","2"]},
                "s":{"type":"score","criteria":[null,{ "x" : 1 }]}}"#,
        );
        let questions = parse(body.as_bytes(), MOST).expect("a request").questions;
        let answer = |outcomes: [f32; 2], action| {
            let outcomes = outcomes.to_vec();
            let calibration = Calibration {
                temperature: 1.0,
                bias: &[],
            };
            Answer::decode(&Logits { outcomes, action }, calibration).expect("an answer")
        };
        let answers = [
            answer([0.0, 90.0], None),
            answer([0.0, 90.0], Some([0.0, 0.0])),
            answer([0.0, 0.0], None),
        ];
        let usage = Usage {
            input_tokens: 7,
            truncated_tokens: 0,
            server_ms: 1.006,
        };
        let expected = concat!(
            r#""answers":{"a\"b":{"type":"noul","noul":1,"probabilities":{"false":0,"true":1},"#,
            r#""confidence":1,"answer_confidence":1},"#,
            r#""c":{"type":"choice","choice":"2","probabilities":{"10":0,"2":1},"#,
            r#""confidence":1,"answer_confidence":1,"action":{"act_probability":0.5}},"#,
            r#""s":{"type":"score","score":0.5,"probabilities":{"0":0.5,"1":0.5},"#,
            r#""confidence":0,"answer_confidence":0.5,"legend":{"0":"0","1":{ "x" : 1 }}}},"#,
            r#""usage":{"input_tokens":7,"output_tokens":0,"server_ms":1.01"#,
        );
        let text = |bytes| String::from_utf8(bytes).expect("text");
        assert_eq!(
            text(write(&questions, &answers, &usage)),
            format!("{{\"model\":\"svc\",{expected}}}}}")
        );
        let cut = Usage {
            truncated_tokens: 2,
            ..usage
        };
        assert_eq!(
            text(write_result(&questions, &answers, &cut)),
            format!("{{{expected},\"truncated_tokens\":2}}}}")
        );
    }

    #[test]
    fn what_criteria_say_of_each_outcome() {
        let owned = |text: &str| Some(text.to_owned());
        let of = |name: &str, text: Option<&str>, legend: Option<&str>| {
            (
                name.to_owned(),
                text.and_then(owned),
                legend.and_then(owned),
            )
        };
        let nothing = [of("false", None, None), of("true", None, None)];
        for criteria in [
            "null",
            "{}",
            r#"{"true":null}"#,
            r#"{"false":"","other":7}"#,
        ] {
            assert_eq!(outcomes("noul", criteria), nothing, "{criteria}");
        }
        assert_eq!(
            outcomes("noul", r#"{"true":"a","false":{ "b" : 1 }}"#),
            [
                of("false", Some(r#"{"b":1}"#), None),
                of("true", Some("a"), None)
            ]
        );
        for criteria in [r#"{"10":null,"2":""}"#, r#"["10","2"]"#] {
            let plain = [of("10", None, None), of("2", None, None)];
            assert_eq!(outcomes("choice", criteria), plain, "{criteria}");
        }
        assert_eq!(
            outcomes("choice", r#"{"b":"text","a":[ 1 ]}"#),
            [of("b", Some("text"), None), of("a", Some("[1]"), None)]
        );
        // The answer to a score has its levels as they were sent.
        assert_eq!(
            outcomes("score", r#"[null,"","calm\u0021",{ "a" : 1 }]"#),
            [
                of("0", Some("0"), Some(r#""0""#)),
                of("1", Some(""), Some(r#""""#)),
                of("2", Some("calm!"), Some(r#""calm\u0021""#)),
                of("3", Some(r#"{"a":1}"#), Some(r#"{ "a" : 1 }"#)),
            ]
        );
    }
}
