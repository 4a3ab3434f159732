//! The JSON Schema of a scenario, from the declared settings.

use serde_json::{Map, Value, json};

use super::{ROOT, below};
use crate::settings::{Setting, Shape};

type Definitions = Map<String, Value>;

/// The JSON Schema of a scenario file, as published in `scenarios/scenario.schema.json`.
pub fn scenario_schema() -> Value {
    let mut definitions = Definitions::new();
    let mut root = mapping(ROOT.key, &mut definitions);
    root["title"] = "Stepladder scenario".into();
    root["description"] = ROOT.about.into();
    root["examples"] = json!([example(&ROOT)]);
    root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    root["$defs"] = definitions.into();
    root
}

/// A mapping with the keys that are declared below `key`.
fn mapping(key: &str, definitions: &mut Definitions) -> Value {
    let mut properties = Map::new();
    for setting in below(key) {
        let mut property = of_shape(setting.shape, setting.key, definitions);
        if !setting.is_required {
            property = or_null(property);
        }
        property["description"] = setting.about_text().into();
        property["examples"] = json!([example(setting)]);
        properties.insert(setting.name().to_owned(), property);
    }
    let required: Vec<&str> = below(key).filter(|setting| setting.is_required).map(Setting::name).collect();
    let mut mapping = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if !required.is_empty() {
        mapping["required"] = required.into();
    }
    mapping
}

fn of_shape(shape: Shape, key: &str, definitions: &mut Definitions) -> Value {
    match shape {
        Shape::Text => json!({ "type": "string" }),
        Shape::Switch => json!({ "type": "boolean" }),
        Shape::Number => json!({ "type": "number", "format": "double" }),
        Shape::Whole(format) if format.starts_with('u') => {
            json!({ "type": "integer", "format": format, "minimum": 0 })
        }
        Shape::Whole(format) => json!({ "type": "integer", "format": format }),
        Shape::NumberOrText => defined(
            "NumberOrText",
            "`5%` or `0.05`.",
            definitions,
            |_| json!({ "anyOf": [{ "type": "number", "format": "double" }, { "type": "string" }] }),
        ),
        Shape::OneOrMore => {
            let one = json!({ "type": ["string", "number"] });
            json!({ "anyOf": [one, { "type": "array", "items": one }] })
        }
        Shape::List(inner) => json!({ "type": "array", "items": of_shape(*inner, key, definitions) }),
        Shape::Map(inner) => {
            json!({ "type": "object", "additionalProperties": of_shape(*inner, key, definitions) })
        }
        Shape::Anything => true.into(),
        Shape::Keys(name, about) => {
            defined(name, about, definitions, |definitions| mapping(key, definitions))
        }
        Shape::WordOr(name, about) => {
            let keys = of_shape(Shape::Keys(name, about), key, definitions);
            json!({ "anyOf": [{ "type": "string" }, keys] })
        }
        Shape::Choices(name, about) => {
            let one_key = defined(name, about, definitions, |definitions| {
                let mut mapping = mapping(key, definitions);
                mapping["maxProperties"] = 1.into();
                mapping
            });
            let text = json!({ "type": "string" });
            let each = json!({ "anyOf": [text, one_key] });
            json!({ "anyOf": [text, one_key, { "type": "array", "items": each }] })
        }
    }
}

/// A reference to a definition, which is added when it is new.
fn defined(
    name: &str,
    about: &str,
    definitions: &mut Definitions,
    define: impl FnOnce(&mut Definitions) -> Value,
) -> Value {
    if !definitions.contains_key(name) {
        // Reserves its position, before those of what it refers to.
        definitions.insert(name.to_owned(), Value::Null);
        let mut definition = define(definitions);
        definition["description"] = about.into();
        definitions.insert(name.to_owned(), definition);
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// `hold:` without a value is an unset setting.
fn or_null(schema: Value) -> Value {
    match schema {
        Value::Bool(_) => json!({}),
        Value::Object(mut keys) if keys.contains_key("type") => {
            keys["type"] = json!([keys["type"], "null"]);
            keys.into()
        }
        other => json!({ "anyOf": [other, { "type": "null" }] }),
    }
}

/// The example in the scenario as JSON. Examples are constants, and the test of the published schema reads
/// them all.
fn example(setting: &Setting) -> Value {
    let text = setting.example_in_file;
    match setting.shape {
        Shape::Text => text.into(),
        _ => serde_saphyr::from_str(text).unwrap_or_else(|_| text.into()),
    }
}
