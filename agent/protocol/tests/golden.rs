//! The frozen schema and the frozen frames of generation 1, `protocol/` at the top of the tree.
//!
//! The same files are read by the host half: what both agree with is the protocol. With
//! `FOURWALLS_WRITE_GOLDEN=1` the frames are written instead; a frame that is there never changes.

#![allow(clippy::unwrap_used)]

mod samples;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use fourwalls_protocol::frame::{Decoder, Direction, Frame};
use fourwalls_protocol::{kind, reply, request, wire};
use serde::de::{DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{json, Map, Value};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../protocol")
        .join(name)
}

fn read(name: &str) -> Value {
    let text = std::fs::read_to_string(file(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn from_hex(text: &str) -> Vec<u8> {
    assert_eq!(text.len() % 2, 0);
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
        .collect()
}

/// Any MessagePack value as JSON; bins as `{"$bin": "hex"}`.
struct Readable(Value);

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Readable;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value")
            }
            fn visit_bool<E>(self, v: bool) -> Result<Readable, E> {
                Ok(Readable(json!(v)))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Readable, E> {
                Ok(Readable(json!(v)))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Readable, E> {
                Ok(Readable(json!(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Readable, E> {
                Ok(Readable(json!(v)))
            }
            fn visit_bytes<E>(self, v: &[u8]) -> Result<Readable, E> {
                Ok(Readable(json!({ "$bin": to_hex(v) })))
            }
            fn visit_unit<E>(self) -> Result<Readable, E> {
                Ok(Readable(Value::Null))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Readable, A::Error> {
                let mut items = Vec::new();
                while let Some(Readable(item)) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Readable(Value::Array(items)))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Readable, A::Error> {
                let mut map = Map::new();
                while let Some((key, Readable(value))) = access.next_entry::<String, Readable>()? {
                    map.insert(key, value);
                }
                Ok(Readable(Value::Object(map)))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

fn readable(frame: &Frame) -> Value {
    if frame.header.kind == kind::DATA {
        let (offset, payload) = wire::decode_data(&frame.body).unwrap();
        return json!({ "offset": offset, "payload": { "$bin": to_hex(payload) } });
    }
    if frame.body.is_empty() {
        return Value::Null;
    }
    wire::decode::<Readable>(&frame.body).unwrap().0
}

fn again<T: Serialize + DeserializeOwned>(body: &[u8]) -> Vec<u8> {
    wire::encode(&wire::decode::<T>(body).unwrap()).unwrap()
}

/// Decode a body into its type and encode it again.
fn through_types(name: &str, frame: &Frame) -> Vec<u8> {
    let body = &frame.body;
    match frame.header.kind {
        kind::HELLO => again::<request::Hello>(body),
        kind::CREDIT => again::<request::Credit>(body),
        kind::EXEC_START => again::<request::ExecStart>(body),
        kind::EXEC_ATTACH => again::<request::ExecAttach>(body),
        kind::EXEC_INPUT => again::<request::ExecInput>(body),
        kind::EXEC_CLOSE_STDIN => again::<request::ExecCloseStdin>(body),
        kind::EXEC_RESIZE => again::<request::ExecResize>(body),
        kind::EXEC_SIGNAL => again::<request::ExecSignal>(body),
        kind::EXEC_LIST | kind::METRICS => again::<request::Nothing>(body),
        kind::FILE_STAT | kind::FILE_REMOVE => again::<request::FilePath>(body),
        kind::FILE_LIST => again::<request::FileList>(body),
        kind::FILE_READ => again::<request::FileRead>(body),
        kind::FILE_WRITE => again::<request::FileWrite>(body),
        kind::FILE_MKDIR => again::<request::FileMkdir>(body),
        kind::FILE_MOVE => again::<request::FileMove>(body),
        kind::FILE_CHANGE => again::<request::FileChange>(body),
        kind::FILE_WATCH => again::<request::FileWatch>(body),
        kind::TUNNEL_DIAL => again::<request::TunnelDial>(body),
        kind::SHUTDOWN => again::<request::Shutdown>(body),
        kind::HELLO_OK => again::<reply::HelloOk>(body),
        kind::ERROR => again::<reply::Error>(body),
        kind::STARTED => again::<reply::Started>(body),
        kind::EXIT => again::<reply::Exit>(body),
        kind::ENTRIES => again::<reply::Entries>(body),
        kind::EVENTS => again::<reply::Events>(body),
        kind::STARTED_READ => again::<reply::StartedRead>(body),
        kind::RESULT => match name.split_once('_').unwrap().1 {
            "process_list" => again::<reply::ProcessList>(body),
            "entry" | "entry_symlink" => again::<reply::Entry>(body),
            "mkdir" => again::<reply::MkdirResult>(body),
            "remove" => again::<reply::RemoveResult>(body),
            "metrics" => again::<reply::Metrics>(body),
            other => panic!("result {other} has no type"),
        },
        kind::DATA => {
            let (offset, payload) = wire::decode_data(body).unwrap();
            wire::encode_data(offset, payload)
        }
        _ => {
            wire::expect_empty(body).unwrap();
            Vec::new()
        }
    }
}

fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::ToAgent => "to_agent",
        Direction::ToHost => "to_host",
    }
}

fn describe(name: &str, direction: Direction, frame: &Frame) -> Value {
    json!({
        "name": name,
        "direction": word(direction),
        "kind": frame.header.kind,
        "channel": frame.header.channel,
        "stream": frame.header.stream,
        "hex": to_hex(&frame.encode()),
        "body": readable(frame),
    })
}

#[test]
fn samples_are_the_golden_frames() {
    let now: Vec<Value> = samples::all()
        .iter()
        .map(|(name, way, frame)| describe(name, *way, frame))
        .collect();
    if std::env::var_os("FOURWALLS_WRITE_GOLDEN").is_some() {
        let lines: Vec<String> = now.iter().map(Value::to_string).collect();
        std::fs::write(
            file("golden-1.json"),
            format!("[\n{}\n]\n", lines.join(",\n")),
        )
        .unwrap();
    }
    let golden = read("golden-1.json");
    for (old, new) in golden.as_array().unwrap().iter().zip(&now) {
        assert_eq!(old, new);
    }
    assert_eq!(golden.as_array().unwrap().len(), now.len());
}

#[test]
fn golden_frames_survive_decoding_and_encoding() {
    for golden in read("golden-1.json").as_array().unwrap() {
        let name = golden["name"].as_str().unwrap();
        let bytes = from_hex(golden["hex"].as_str().unwrap());
        let direction = if golden["direction"] == "to_agent" {
            Direction::ToAgent
        } else {
            Direction::ToHost
        };
        let mut input = bytes.as_slice();
        let frame = Decoder::new(direction)
            .next_frame(&mut input)
            .unwrap()
            .unwrap();
        assert!(input.is_empty(), "{name}");
        assert_eq!(
            u64::from(frame.header.kind),
            golden["kind"].as_u64().unwrap(),
            "{name}"
        );
        assert_eq!(
            u64::from(frame.header.channel),
            golden["channel"].as_u64().unwrap(),
            "{name}"
        );
        assert_eq!(
            u64::from(frame.header.stream),
            golden["stream"].as_u64().unwrap(),
            "{name}"
        );
        assert_eq!(readable(&frame), golden["body"], "{name}");
        assert_eq!(through_types(name, &frame), frame.body, "{name}");
    }
}

/// Every kind of the schema has a golden frame, and its body has the schema's fields.
#[test]
fn schema_and_golden_frames_agree() {
    let schema = read("gen-1.json");
    let golden = read("golden-1.json");
    let golden = golden.as_array().unwrap();
    assert_eq!(schema["generation"], fourwalls_protocol::GENERATION);
    let mut described = BTreeSet::new();
    for entry in schema["kinds"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        for direction in entry["directions"].as_array().unwrap() {
            described.insert((direction.as_str().unwrap(), entry["kind"].as_u64().unwrap()));
            let frames: Vec<&Value> = golden
                .iter()
                .filter(|g| g["kind"] == entry["kind"] && &g["direction"] == direction)
                .collect();
            assert!(!frames.is_empty(), "no golden frame for {name} {direction}");
            for frame in frames {
                match entry["body"].as_str().unwrap() {
                    "empty" => assert_eq!(frame["body"], Value::Null, "{name}"),
                    "raw" => assert!(frame["body"]["payload"]["$bin"].is_string(), "{name}"),
                    "map" => assert_fields(&schema, &entry["fields"], &frame["body"], name),
                    "result" => assert_result(&schema, frame),
                    other => panic!("body {other}"),
                }
            }
        }
    }
    for frame in golden {
        let key = (
            frame["direction"].as_str().unwrap(),
            frame["kind"].as_u64().unwrap(),
        );
        assert!(described.contains(&key), "{key:?} is not in the schema");
    }
}

fn assert_result(schema: &Value, frame: &Value) {
    let keys: BTreeSet<&String> = frame["body"].as_object().unwrap().keys().collect();
    let fits = schema["types"]
        .as_object()
        .unwrap()
        .values()
        .any(|fields| fields.as_object().unwrap().keys().collect::<BTreeSet<_>>() == keys);
    assert!(fits, "no type of the schema has the keys {keys:?}");
}

fn assert_fields(schema: &Value, fields: &Value, body: &Value, name: &str) {
    let fields = fields.as_object().unwrap();
    let body = body
        .as_object()
        .unwrap_or_else(|| panic!("{name} is no map: {body}"));
    let expected: BTreeSet<&String> = fields.keys().collect();
    assert_eq!(body.keys().collect::<BTreeSet<_>>(), expected, "{name}");
    for (field, kind) in fields {
        assert_type(
            schema,
            kind.as_str().unwrap(),
            &body[field],
            &format!("{name}.{field}"),
        );
    }
}

fn assert_type(schema: &Value, kind: &str, value: &Value, at: &str) {
    if let Some(kind) = kind.strip_suffix(" or nil") {
        if !value.is_null() {
            assert_type(schema, kind, value, at);
        }
        return;
    }
    if let Some(value_kind) = kind.strip_prefix("map str→") {
        let map = value.as_object().unwrap_or_else(|| panic!("{at}: {value}"));
        return map
            .values()
            .for_each(|v| assert_type(schema, value_kind, v, at));
    }
    if let Some(inner) = kind.strip_prefix('[').and_then(|k| k.strip_suffix(']')) {
        let items = value.as_array().unwrap_or_else(|| panic!("{at}: {value}"));
        let kinds: Vec<&str> = inner.split(", ").collect();
        if kinds.len() > 1 {
            assert_eq!(items.len(), kinds.len(), "{at}");
        }
        for (index, item) in items.iter().enumerate() {
            assert_type(schema, kinds[index % kinds.len()], item, at);
        }
        return;
    }
    let fits = match kind {
        "bool" => value.is_boolean(),
        "str" => value.is_string(),
        "bin" => value["$bin"].is_string(),
        "u8" => value.as_u64().is_some_and(|v| v <= u64::from(u8::MAX)),
        "u16" => value.as_u64().is_some_and(|v| v <= u64::from(u16::MAX)),
        "u32" => value.as_u64().is_some_and(|v| v <= u64::from(u32::MAX)),
        "u64" => value.as_u64().is_some(),
        "i32" => value.as_i64().is_some_and(|v| i32::try_from(v).is_ok()),
        "i64" => value.as_i64().is_some(),
        named => {
            let fields = &schema["types"][named];
            assert!(
                fields.is_object(),
                "{at}: type {named} is not in the schema"
            );
            return assert_fields(schema, fields, value, at);
        }
    };
    assert!(fits, "{at}: {value} is no {kind}");
}
