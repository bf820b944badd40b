//! Tests of model folders whose files are damaged, without digests that would reveal it: each
//! folder is refused with one line, or answers.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{decide, fixture, options};
use serde_json::Value;
use svc_engine::Error;
use svc_engine::engine::Engine;

const BODY: &[u8] = br#"{"state":"The order was late, charged twice.","questions":{
    "n":{"type":"noul","instructions":"Is it a complaint?"},
    "c":{"type":"choice","instructions":"Which?","criteria":["billing","tech"]},
    "s":{"type":"score","instructions":"How late?","criteria":["a bit","very"]}}}"#;

/// A generator of numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

/// Damages one to three places: bytes are changed, taken out, or put in twice.
fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.next(3) {
        let at = numbers.next(bytes.len());
        let end = (at + 1 + numbers.next(64)).min(bytes.len());
        match numbers.next(8) {
            0 => bytes[at] ^= 1 << numbers.next(8),
            1 => bytes[at] = numbers.next(256) as u8,
            2 => bytes[at..end].fill(0xff),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            5 => bytes[at] = b"-\"{[,"[numbers.next(5)],
            // Names and numbers of a JSON file change, and it remains JSON.
            _ => match bytes[at] {
                b'0'..=b'9' => bytes[at] = b'0' + numbers.next(10) as u8,
                b'a'..=b'z' => bytes[at] = b'a' + numbers.next(26) as u8,
                _ => {}
            },
        }
    }
}

/// A copy of a fixture without digests, so that damage which they would detect gets further.
struct Copy(PathBuf);

impl Copy {
    fn of(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("svc-damaged-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for file in ["tokenizer.json", "model.onnx"] {
            fs::copy(fixture(name).join(file), folder.join(file)).expect("a copy");
        }
        let config = fs::read(fixture(name).join("config.json")).expect("a config");
        let mut config: Value = serde_json::from_slice(&config).expect("JSON");
        let members = config.as_object_mut().expect("an object");
        members.retain(|key, _| key != "sha256" && key != "files");
        fs::write(folder.join("config.json"), config.to_string()).expect("written");
        Self(folder)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Loads a folder and asks it once; returns the error, if there is one.
fn outcome(folder: &Path) -> Result<(), Error> {
    let engine = Engine::load(options(folder, 1))?;
    decide(&engine, BODY).map(|_| ())
}

#[test]
fn a_damaged_file_is_refused_with_one_line_or_answers() {
    // The test makes 30 damaged copies of each file; SVC_DAMAGED sets another number.
    let count = std::env::var("SVC_DAMAGED").ok();
    let count: usize = count.map_or(30, |count| count.parse().expect("a number"));
    let mut numbers = Numbers(0x00DA_4A6E);
    for name in ["marker", "shared-state", "pair-deberta"] {
        let folder = Copy::of(name);
        assert_eq!(outcome(&folder.0), Ok(()));
        for file in ["tokenizer.json", "model.onnx"] {
            let (mut refused, mut answered) = (0, 0);
            let path = folder.0.join(file);
            let whole = fs::read(&path).expect("a file");
            for round in 0..count {
                let mut bytes = whole.clone();
                damage(&mut bytes, &mut numbers);
                fs::write(&path, &bytes).expect("written");
                match outcome(&folder.0) {
                    Ok(()) => answered += 1,
                    Err(error) => {
                        refused += 1;
                        let message = error.to_string();
                        assert_eq!(message.lines().count(), 1, "{message}");
                        assert!(message.chars().count() < 1_500, "{message}");
                        // A panic in one of the libraries is caught elsewhere, so here it would be
                        // a bug of the engine.
                        assert_ne!(error.code(), "panicked", "{name}/{file}, round {round}");
                    }
                }
            }
            fs::write(&path, &whole).expect("written");
            println!("{name}/{file}: {refused} refused, {answered} answered");
            assert!(refused > 0);
        }
    }
}
