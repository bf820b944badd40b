//! `POST /v1/decisions`: the same decisions in the shape of OpenAI's Decisions API.
//!
//! `predicate`, `choice` and `score` become `noul`, `choice` and `score` with the same texts, so
//! that the answers equal those of `POST /v1/systemone` to the last digit. An input that is one
//! text, or one user's message, is the state as it stands; any other input is a transcript, one
//! item per line.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::value::RawValue;

use super::json::{Body, Members, Shape, count_over, mended, shape, write_string};
use super::{MODEL, Most, OptionBudget, Usage};
use crate::Error;
use crate::decode::Answer;
use crate::question::{Kind, Outcome, Question, Request};

/// Parses the body of a request. A question's `id` is its name as JSON, `null` where it has none.
///
/// # Errors
/// The first problem, in this order: JSON, the top level, the input, then the questions as they
/// stand.
pub fn parse(bytes: &[u8], most: Most) -> Result<Request, Error> {
    let bytes = mended(bytes);
    let body = Body::scan(&bytes)?;
    let top = body.members(body.root)?.ok_or(Error::BodyNotObject)?;
    if let Some(field) = top.duplicate() {
        let field = field.to_owned();
        return Err(Error::DuplicateField { field });
    }
    let reader = Reader { body, most };
    Ok(Request {
        state: reader.input(top.get("input"))?.into(),
        questions: reader.questions(top.get("questions"))?,
    })
}

fn bad(path: &str, problem: &'static str) -> Error {
    Error::BadField {
        path: path.to_owned(),
        problem,
    }
}

const NOT_TEXT: &str = "must be text";
const NOT_OBJECT: &str = "must be an object";
const IMAGE: &str = "images cannot be read, only text";

/// The spelling of the JSON parts of a text.
#[derive(Clone, Copy)]
enum Spelling {
    /// As it was sent, for a state.
    Raw,
    /// Without white space, for an instruction.
    Compact,
}

struct Reader<'a> {
    body: Body<'a>,
    most: Most,
}

impl<'a> Reader<'a> {
    fn input(&self, value: Option<&'a RawValue>) -> Result<String, Error> {
        let value = value.ok_or_else(|| bad("input", "missing"))?;
        if shape(value) == Shape::String {
            return self.body.string(value);
        }
        let items = self.items(value)?;
        let items = items.ok_or_else(|| bad("input", "must be text or a list"))?;
        if items.is_empty() {
            return Err(bad("input", "need at least one item"));
        }
        self.transcript(&items)
    }

    /// Returns the items of a list of texts or of options, each of which is at least one token.
    fn items(&self, value: &'a RawValue) -> Result<Option<Vec<&'a RawValue>>, Error> {
        OptionBudget::new(self.most).check(value)?;
        self.body.items(value)
    }

    /// Returns the text of a list of items: a user's only message as it stands, else each item
    /// after the name of its speaker.
    fn transcript(&self, items: &[&'a RawValue]) -> Result<String, Error> {
        let mut tools = HashMap::new();
        let mut lines = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let (speaker, text) = self.item(&format!("input[{index}]"), item, &mut tools)?;
            if items.len() == 1 && speaker == "user" {
                return Ok(text);
            }
            lines.push(format!("{speaker}: {text}"));
        }
        Ok(lines.join("\n"))
    }

    /// Returns the speaker of an item, and its text.
    fn item(
        &self,
        path: &str,
        value: &'a RawValue,
        tools: &mut HashMap<String, String>,
    ) -> Result<(String, String), Error> {
        let fields = self.object(path, value)?;
        let kind = match fields.get("type") {
            None => "message".to_owned(),
            Some(_) => self.required(&fields, path, "type")?,
        };
        let said = match kind.as_str() {
            "message" => return self.message(path, &fields),
            "function_call" => "arguments",
            "custom_tool_call" => "input",
            "function_call_output" | "custom_tool_call_output" => {
                let call = self.required(&fields, path, "call_id")?;
                let output = required(&fields, path, "output")?;
                let text = self.content(&format!("{path}.output"), output, Spelling::Raw)?;
                let tool = tools.get(&call).map(|tool| format!("result of {tool}"));
                return Ok((tool.unwrap_or_else(|| "result".to_owned()), text));
            }
            _ => return Err(bad(&format!("{path}.type"), "unknown type")),
        };
        let tool = self.required(&fields, path, "name")?;
        let text = self.required(&fields, path, said)?;
        tools.insert(self.required(&fields, path, "call_id")?, tool.clone());
        Ok((format!("call of {tool}"), text))
    }

    fn message(&self, path: &str, fields: &Members<'a>) -> Result<(String, String), Error> {
        let role = self.required(fields, path, "role")?;
        if !["user", "developer", "system", "assistant"].contains(&role.as_str()) {
            return Err(bad(&format!("{path}.role"), "unknown role"));
        }
        let content = required(fields, path, "content")?;
        let text = self.content(&format!("{path}.content"), content, Spelling::Raw)?;
        Ok((role, text))
    }

    /// Returns the text of a string, or of a list of parts, each on a line of its own.
    fn content(
        &self,
        path: &str,
        value: &'a RawValue,
        spelling: Spelling,
    ) -> Result<String, Error> {
        if shape(value) == Shape::String {
            return self.body.string(value);
        }
        let parts = self.items(value)?;
        let parts = parts.ok_or_else(|| bad(path, "must be text or a list of parts"))?;
        let parts = parts.into_iter().enumerate();
        let parts =
            parts.map(|(index, part)| self.part(&format!("{path}[{index}]"), part, spelling));
        Ok(parts.collect::<Result<Vec<_>, _>>()?.join("\n"))
    }

    fn part(&self, path: &str, value: &'a RawValue, spelling: Spelling) -> Result<String, Error> {
        let fields = self.object(path, value)?;
        match self.required(&fields, path, "type")?.as_str() {
            "input_text" | "output_text" => self.required(&fields, path, "text"),
            "refusal" => self.required(&fields, path, "refusal"),
            "input_json" => {
                let data = required(&fields, path, "data")?;
                if !matches!(shape(data), Shape::Object | Shape::List) {
                    return Err(bad(&format!("{path}.data"), "must be an object or a list"));
                }
                match spelling {
                    Spelling::Raw => Ok(data.get().to_owned()),
                    Spelling::Compact => Ok(self.body.text(data)?.unwrap_or_default()),
                }
            }
            "input_image" => Err(bad(path, IMAGE)),
            _ => Err(bad(&format!("{path}.type"), "unknown type")),
        }
    }

    fn questions(&self, value: Option<&'a RawValue>) -> Result<Vec<Question>, Error> {
        let limit = self.most.questions;
        let value = value.filter(|value| shape(value) != Shape::Null);
        let value = value.ok_or(Error::QuestionsMissing)?;
        if let Some(actual) = count_over(value, limit).filter(|_| shape(value) == Shape::List) {
            return Err(Error::TooManyQuestions { limit, actual });
        }
        let items = self.body.items(value)?;
        let items = items.ok_or_else(|| bad("questions", "must be a list"))?;
        if items.is_empty() {
            return Err(Error::QuestionsMissing);
        }
        let actual = items.len();
        if actual > limit {
            return Err(Error::TooManyQuestions { limit, actual });
        }
        let mut budget = OptionBudget::new(self.most);
        let items = items.into_iter().enumerate();
        items
            .map(|(index, item)| {
                let question = self.question(&format!("questions[{index}]"), item)?;
                budget.take(&question.outcomes)?;
                Ok(question)
            })
            .collect()
    }

    fn question(&self, path: &str, value: &'a RawValue) -> Result<Question, Error> {
        let fields = self.object(path, value)?;
        let (kind, outcomes) = match self.optional(&fields, path, "type")?.as_deref() {
            Some("predicate") => (Kind::Noul, ["false", "true"].map(plain).to_vec()),
            Some("choice") => (Kind::Choice, self.choices(path, &fields)?),
            Some("score") => (Kind::Score, self.levels(path, &fields)?),
            kind => {
                return Err(Error::UnknownType {
                    id: path.to_owned(),
                    kind: kind.unwrap_or_default().to_owned(),
                });
            }
        };
        if outcomes.len() < 2 {
            return Err(Error::TooFewOptions {
                id: path.to_owned(),
            });
        }
        let instructions = required(&fields, path, "instructions")?;
        let at = format!("{path}.instructions");
        let name = self.optional(&fields, path, "name")?;
        Ok(Question {
            id: name.map_or_else(|| "null".to_owned(), |name| json(&name)),
            kind,
            instructions: self.content(&at, instructions, Spelling::Compact)?,
            outcomes,
        })
    }

    /// Returns the options of a choice; a string and a boolean with the same text are two options.
    fn choices(&self, path: &str, fields: &Members<'a>) -> Result<Vec<Outcome>, Error> {
        let (path, items) = self.list(path, fields, "choices")?;
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let path = format!("{path}[{index}]");
            let fields = self.object(&path, item)?;
            let value = required(&fields, &path, "value")?;
            let name = match (shape(value), value.get()) {
                (Shape::String, _) => self.body.string(value)?,
                (_, text @ ("true" | "false")) => text.to_owned(),
                _ => return Err(bad(&format!("{path}.value"), "must be text or a boolean")),
            };
            let text = self.optional(&fields, &path, "description")?;
            let legend = match shape(value) {
                Shape::String => json(&name),
                _ => name.clone(),
            };
            outcomes.push(Outcome {
                name,
                text: text.filter(|text| !text.is_empty()),
                legend: Some(legend),
            });
        }
        let mut values: Vec<&Outcome> = outcomes.iter().collect();
        values.sort_unstable_by_key(|outcome| &outcome.legend);
        match values
            .windows(2)
            .find(|pair| pair[0].legend == pair[1].legend)
        {
            Some(pair) => Err(Error::DuplicateOption {
                id: path,
                option: pair[0].name.clone(),
            }),
            None => Ok(outcomes),
        }
    }

    /// Returns the levels of a score, whose texts are `label` or `label: description`.
    fn levels(&self, path: &str, fields: &Members<'a>) -> Result<Vec<Outcome>, Error> {
        let (path, items) = self.list(path, fields, "levels")?;
        let levels = items.into_iter().enumerate().map(|(index, item)| {
            let path = format!("{path}[{index}]");
            let fields = self.object(&path, item)?;
            let label = self.required(&fields, &path, "label")?;
            let description = self.optional(&fields, &path, "description")?;
            let text = match description.filter(|text| !text.is_empty()) {
                Some(description) => format!("{label}: {description}"),
                None => label.clone(),
            };
            Ok(Outcome {
                name: index.to_string(),
                text: Some(text),
                legend: Some(json(&label)),
            })
        });
        levels.collect()
    }

    fn list(
        &self,
        path: &str,
        fields: &Members<'a>,
        field: &str,
    ) -> Result<(String, Vec<&'a RawValue>), Error> {
        let items = self.items(required(fields, path, field)?)?;
        let path = format!("{path}.{field}");
        match items {
            Some(items) => Ok((path, items)),
            None => Err(bad(&path, "must be a list")),
        }
    }

    /// Returns the members of an object, in which each name occurs once.
    fn object(&self, path: &str, value: &'a RawValue) -> Result<Members<'a>, Error> {
        let members = self.body.members(value)?;
        let members = members.ok_or_else(|| bad(path, NOT_OBJECT))?;
        match members.duplicate() {
            Some(field) => Err(Error::DuplicateQuestionField {
                id: path.to_owned(),
                field: field.to_owned(),
            }),
            None => Ok(members),
        }
    }

    fn required(&self, fields: &Members<'a>, path: &str, field: &str) -> Result<String, Error> {
        let text = self.optional(fields, path, field)?;
        text.ok_or_else(|| bad(&format!("{path}.{field}"), "missing"))
    }

    /// Returns the text of a field; `None` where it is absent or `null`.
    fn optional(
        &self,
        fields: &Members<'a>,
        path: &str,
        field: &str,
    ) -> Result<Option<String>, Error> {
        match fields.get(field).map(|value| (shape(value), value)) {
            None | Some((Shape::Null, _)) => Ok(None),
            Some((Shape::String, value)) => self.body.string(value).map(Some),
            Some(_) => Err(bad(&format!("{path}.{field}"), NOT_TEXT)),
        }
    }
}

fn required<'a>(fields: &Members<'a>, path: &str, field: &str) -> Result<&'a RawValue, Error> {
    let value = fields.get(field);
    let value = value.filter(|value| shape(value) != Shape::Null);
    value.ok_or_else(|| bad(&format!("{path}.{field}"), "missing"))
}

fn plain(name: &str) -> Outcome {
    Outcome {
        name: name.to_owned(),
        text: None,
        legend: None,
    }
}

fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

/// Writes the body of a response; `answers` are in the order of `questions`.
pub fn write(questions: &[Question], answers: &[Answer], usage: &Usage) -> Vec<u8> {
    let mut out = String::with_capacity(256 + 192 * questions.len());
    let _ = write!(out, "{{\"model\":\"{MODEL}\",\"answers\":[");
    for (index, (question, answer)) in questions.iter().zip(answers).enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_answer(&mut out, question, answer);
    }
    let tokens = usage.input_tokens;
    let _ = write!(
        out,
        "],\"usage\":{{\"input_tokens\":{tokens},\
         \"input_tokens_details\":{{\"cache_write_tokens\":0,\"cached_tokens\":0}},\
         \"output_tokens\":0,\"output_tokens_details\":{{\"reasoning_tokens\":0}},\"total_tokens\":{tokens}"
    );
    if usage.truncated_tokens > 0 {
        let _ = write!(out, ",\"truncated_tokens\":{}", usage.truncated_tokens);
    }
    out.push_str("}}");
    out.into_bytes()
}

fn write_answer(out: &mut String, question: &Question, answer: &Answer) {
    let name = &question.id;
    let legend = |index: usize| question.outcomes[index].legend.as_deref().unwrap_or("null");
    match question.kind {
        Kind::Noul => {
            let probability = answer.probability(1);
            let _ = write!(
                out,
                "{{\"type\":\"predicate\",\"name\":{name},\"probability\":{probability}}}"
            );
            return;
        }
        Kind::Choice => {
            let choice = legend(answer.top);
            let _ = write!(
                out,
                "{{\"type\":\"choice\",\"name\":{name},\"choice\":{choice}"
            );
        }
        Kind::Score => {
            let score = answer.expected_level();
            let _ = write!(
                out,
                "{{\"type\":\"score\",\"name\":{name},\"score\":{score}"
            );
        }
    }
    let confidence = answer.confidence(question.kind);
    let _ = write!(out, ",\"confidence\":{confidence},\"probabilities\":[");
    for index in 0..question.outcomes.len() {
        let (comma, said) = (if index > 0 { "," } else { "" }, legend(index));
        let probability = answer.probability(index);
        let _ = match question.kind {
            Kind::Score => write!(
                out,
                "{comma}{{\"value\":{index},\"label\":{said},\"probability\":{probability}}}"
            ),
            _ => write!(
                out,
                "{comma}{{\"value\":{said},\"probability\":{probability}}}"
            ),
        };
    }
    out.push_str("]}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Calibration, Logits};
    use crate::wire::systemone;

    const QUESTIONS: &str = r#""questions":[
        {"type":"predicate","name":"refund","instructions":"Money back?"},
        {"type":"choice","instructions":"Team?","choices":[
            {"value":"billing","description":"invoices"},{"value":true},{"value":"true","description":""}]},
        {"type":"score","name":"a\"b","instructions":[{"type":"input_text","text":"Angry?"},
            {"type":"input_json","data":{ "a" : 1 }}],
            "levels":[{"label":"calm"},{"label":"furious","description":"shouts"}]}]"#;

    fn parsed(input: &str) -> Request {
        let body = format!("{{\"model\":\"any\",\"input\":{input},{QUESTIONS}}}");
        parse(body.as_bytes(), Most::ANY).expect("a request")
    }

    fn state(input: &str) -> String {
        parsed(input).state.text
    }

    fn refused(body: &str) -> (String, Option<String>) {
        let most = Most {
            questions: 3,
            tokens: 100_000,
        };
        let error = parse(body.as_bytes(), most).expect_err("a bad request");
        (error.to_string(), error.param().map(str::to_owned))
    }

    #[test]
    fn questions_are_those_of_systemone_with_the_same_texts() {
        let same = r#"{"state":"s","questions":{
            "null":{"type":"noul","instructions":"Money back?"},
            "b":{"type":"choice","instructions":"Team?","criteria":{"billing":"invoices","true":null}},
            "c":{"type":"score","instructions":"Angry?\n{\"a\":1}","criteria":["calm","furious: shouts"]}}}"#;
        let same = systemone::parse(same.as_bytes(), Most::ANY).expect("a request");
        let texts = |question: &Question| {
            let outcomes = question.outcomes.iter();
            let outcomes = outcomes.map(|outcome| (outcome.name.clone(), outcome.text.clone()));
            (
                question.kind,
                question.instructions.clone(),
                outcomes.collect::<Vec<_>>(),
            )
        };
        let own = parsed("\"s\"");
        assert_eq!(own.state, same.state);
        for index in [0, 2] {
            assert_eq!(texts(&own.questions[index]), texts(&same.questions[index]));
        }
        // A string and a boolean with the same text are two options here.
        assert_eq!(
            texts(&own.questions[1]).2[..2],
            texts(&same.questions[1]).2[..]
        );
        let names: Vec<&str> = own.questions.iter().map(|each| each.id.as_str()).collect();
        assert_eq!(names, ["\"refund\"", "null", "\"a\\\"b\""]);
    }

    #[test]
    fn an_answer_has_its_name_its_values_as_they_were_sent_and_the_usage() {
        let questions = parsed("\"s\"").questions;
        let answer = |outcomes: &[f32]| {
            let logits = Logits {
                outcomes: outcomes.to_vec(),
                action: None,
            };
            let calibration = Calibration {
                temperature: 1.0,
                bias: &[],
            };
            Answer::decode(&logits, calibration).expect("an answer")
        };
        let answers = [
            answer(&[0.0, 90.0]),
            answer(&[-90.0, 90.0, -90.0]),
            answer(&[0.0, 0.0]),
        ];
        let written = |truncated_tokens| {
            let usage = Usage {
                input_tokens: 7,
                truncated_tokens,
                server_ms: 1.0,
            };
            String::from_utf8(write(&questions, &answers, &usage)).expect("text")
        };
        let expected = concat!(
            r#"{"model":"svc","answers":[{"type":"predicate","name":"refund","probability":1},"#,
            r#"{"type":"choice","name":null,"choice":true,"confidence":1,"probabilities":["#,
            r#"{"value":"billing","probability":0},{"value":true,"probability":1},"#,
            r#"{"value":"true","probability":0}]},"#,
            r#"{"type":"score","name":"a\"b","score":0.5,"confidence":0,"probabilities":["#,
            r#"{"value":0,"label":"calm","probability":0.5},"#,
            r#"{"value":1,"label":"furious","probability":0.5}]}],"usage":{"input_tokens":7,"#,
            r#""input_tokens_details":{"cache_write_tokens":0,"cached_tokens":0},"output_tokens":0,"#,
            r#""output_tokens_details":{"reasoning_tokens":0},"total_tokens":7"#,
        );
        assert_eq!(written(0), format!("{expected}}}}}"));
        assert_eq!(written(2), format!("{expected},\"truncated_tokens\":2}}}}"));
    }

    #[test]
    fn a_text_and_a_users_lone_message_are_the_state_as_they_stand() {
        for input in [
            r#""I was\ncharged""#,
            r#"[{"role":"user","content":"I was\ncharged"}]"#,
            r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"I was"},
                {"type":"input_text","text":"charged","prompt_cache_breakpoint":{"mode":"explicit"}}]}]"#,
        ] {
            assert_eq!(state(input), "I was\ncharged");
        }
        let json =
            r#"[{"role":"user","content":[{"type":"input_json","data":{"b": 1.50, "a":[]}}]}]"#;
        assert_eq!(state(json), r#"{"b": 1.50, "a":[]}"#);
    }

    #[test]
    fn a_lone_item_that_is_no_users_message_stands_behind_who_it_is_from() {
        for role in ["system", "developer", "assistant"] {
            let input = format!(r#"[{{"role":"{role}","content":"Late."}}]"#);
            assert_eq!(state(&input), format!("{role}: Late."));
        }
        for (item, text) in [
            (
                r#"{"type":"function_call","call_id":"1","name":"find","arguments":"{}"}"#,
                "call of find: {}",
            ),
            (
                r#"{"type":"custom_tool_call","call_id":"1","name":"sql","input":"select 1"}"#,
                "call of sql: select 1",
            ),
            (
                r#"{"type":"function_call_output","call_id":"1","output":"paid"}"#,
                "result: paid",
            ),
            (
                r#"{"type":"custom_tool_call_output","call_id":"1","output":"paid"}"#,
                "result: paid",
            ),
        ] {
            assert_eq!(state(&format!("[{item}]")), text);
        }
    }

    #[test]
    fn several_messages_of_a_user_are_a_transcript() {
        let input = r#"[{"role":"user","content":"Late."},{"role":"user","content":"Again."}]"#;
        assert_eq!(state(input), "user: Late.\nuser: Again.");
    }

    #[test]
    fn half_a_surrogate_pair_is_a_replacement_character() {
        assert_eq!(state(r#""a\ud83d""#), "a\u{fffd}");
        let json = r#"[{"role":"user","content":[{"type":"input_json","data":{"\ude00": 1.0}}]}]"#;
        assert_eq!(state(json), r#"{"\ufffd": 1.0}"#);
    }

    #[test]
    fn other_items_are_a_transcript() {
        let input = r#"[
            {"role":"system","content":"Be kind."},
            {"role":"assistant","content":[{"type":"output_text","text":"Hello"},{"type":"refusal","refusal":"No."}]},
            {"type":"function_call","call_id":"1","name":"find","arguments":"{\"id\":7}"},
            {"type":"function_call_output","call_id":"1","output":"paid"},
            {"type":"custom_tool_call","call_id":"2","name":"sql","input":"select 1"},
            {"type":"custom_tool_call_output","call_id":"3","output":[{"type":"input_text","text":"1"}]}]"#;
        assert_eq!(
            state(input),
            "system: Be kind.\nassistant: Hello\nNo.\ncall of find: {\"id\":7}\nresult of find: paid\n\
             call of sql: select 1\nresult: 1"
        );
    }

    #[test]
    fn what_may_be_absent_may_be_null_and_an_empty_description_is_none() {
        let body = r#"{"input":"s","questions":[
            {"type":"choice","name":null,"instructions":"?","choices":[
                {"value":"a","description":null},{"value":"b","description":""}]},
            {"type":"score","instructions":"?","levels":[
                {"label":"a","description":null},{"label":"b","description":""}]}]}"#;
        let questions = parse(body.as_bytes(), Most::ANY)
            .expect("a request")
            .questions;
        assert_eq!(questions[0].id, "null");
        let texts = questions.iter().flat_map(|question| &question.outcomes);
        let texts: Vec<Option<&str>> = texts.map(|outcome| outcome.text.as_deref()).collect();
        assert_eq!(texts, [None, None, Some("a"), Some("b")]);
    }

    #[test]
    fn as_many_questions_and_options_as_the_limits_are_taken() {
        let body = format!("{{\"input\":\"s\",{QUESTIONS}}}");
        let parsed = |questions, tokens| {
            let parsed = parse(body.as_bytes(), Most { questions, tokens });
            parsed.map(|request| request.questions.len())
        };
        assert_eq!(parsed(3, 7), Ok(3));
        assert_eq!(parsed(3, 6), Err(Error::TooManyTokens { limit: 6 }));
        let (limit, actual) = (2, 3);
        assert_eq!(parsed(2, 7), Err(Error::TooManyQuestions { limit, actual }));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        let question = |question: &str| format!("{{\"input\":\"s\",\"questions\":[{question}]}}");
        let input = |input: &str| format!("{{\"input\":{input},{QUESTIONS}}}");
        for (body, message) in [
            (question(""), "questions missing"),
            (r#"{"input":"s"}"#.into(), "questions missing"),
            (
                r#"{"input":"s","questions":{}}"#.into(),
                "questions: must be a list",
            ),
            (r#"{"questions":[]}"#.into(), "input: missing"),
            ("[]".into(), "body must be an object"),
            (r#"{"input":"s","input":"s"}"#.into(), "input twice"),
            (input("7"), "input: must be text or a list"),
            (input("[]"), "input: need at least one item"),
            (input("[7]"), "input[0]: must be an object"),
            (
                input(r#"[{"role":"boss","content":""}]"#),
                "input[0].role: unknown role",
            ),
            (input(r#"[{"role":"user"}]"#), "input[0].content: missing"),
            (
                input(r#"[{"role":"user","content":null}]"#),
                "input[0].content: missing",
            ),
            (
                input(r#"[{"role":"user","content":"","role":"user"}]"#),
                "input[0]: role twice",
            ),
            (
                input(r#"[{"role":"user","content":[{"type":"input_json","data":1}]}]"#),
                "input[0].content[0].data: must be an object or a list",
            ),
            (
                input(r#"[{"type":"reasoning"}]"#),
                "input[0].type: unknown type",
            ),
            (
                input(
                    r#"[{"role":"user","content":[{"type":"input_image","image_url":"https://a"}]}]"#,
                ),
                "input[0].content[0]: images cannot be read, only text",
            ),
            (question("7"), "questions[0]: must be an object"),
            (
                question(r#"{"type":"noul"}"#),
                "questions[0]: unknown type \"noul\"",
            ),
            (question("{}"), "questions[0]: unknown type \"\""),
            (
                question(r#"{"type":"predicate","type":"predicate"}"#),
                "questions[0]: type twice",
            ),
            (
                question(r#"{"type":"predicate"}"#),
                "questions[0].instructions: missing",
            ),
            (
                question(r#"{"type":"predicate","instructions":7}"#),
                "questions[0].instructions: must be text or a list of parts",
            ),
            (
                question(r#"{"type":"predicate","instructions":"","name":7}"#),
                "questions[0].name: must be text",
            ),
            (
                question(r#"{"type":"choice"}"#),
                "questions[0].choices: missing",
            ),
            (
                question(r#"{"type":"choice","choices":{}}"#),
                "questions[0].choices: must be a list",
            ),
            (
                question(r#"{"type":"choice","choices":[]}"#),
                "questions[0]: need at least two options",
            ),
            (
                question(r#"{"type":"choice","choices":[{"value":"a"}]}"#),
                "questions[0]: need at least two options",
            ),
            (
                question(r#"{"type":"score","levels":[{"label":"a"}]}"#),
                "questions[0]: need at least two options",
            ),
            (
                question(r#"{"type":"choice","choices":[{"value":1}]}"#),
                "questions[0].choices[0].value: must be text or a boolean",
            ),
            (
                question(r#"{"type":"choice","choices":[{"value":"a"},{"value":"\u0061"}]}"#),
                "questions[0].choices: option \"a\" twice",
            ),
            (
                question(r#"{"type":"score","levels":[{}]}"#),
                "questions[0].levels[0].label: missing",
            ),
            (
                question("{},{},{},{}"),
                "4 questions, the limit is 3 (max_questions)",
            ),
        ] {
            let (text, param) = refused(&body);
            assert_eq!(text, message, "{body}");
            let path = message.split_once(": ").map(|(path, _)| path.to_owned());
            assert_eq!(param, path, "{body}");
        }
    }
}
