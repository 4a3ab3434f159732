//! `/openapi.json`: the OpenAPI 3.1 document, generated from the table of routes.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::bodies::{END_S_MAX, EVERY_S_MAX};
use super::routes::{ROUTES, Route};
use super::signing::IDEMPOTENCY_FIELD;
use leaderboard::{MAX_MEMBER_BYTES, MAX_METADATA_BYTES};

/// Statuses with which any request may be answered.
const EVERYWHERE: [u16; 4] = [400, 401, 429, 503];
/// And what any change: idempotency keys that are none or are used, a full disk.
const CHANGES: [u16; 3] = [409, 422, 507];

/// The whole document: the same for every request, and made for the first.
pub(super) fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(made);
    &DOCUMENT
}

fn made() -> String {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path()).or_insert_with(|| json!({}));
        path[route.method.to_lowercase()] = operation(route);
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Stepladder leaderboard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Exact scores and ranks. Scores are decimal strings without a bound; ranks count from 1.",
        },
        "paths": paths,
        "components": { "schemas": schemas(), "securitySchemes": {
            "signature": { "type": "apiKey", "in": "header", "name": "Stepladder-Signature",
                "description": "Changes only, with --keys: HMAC-SHA-256 in hexadecimal digits over method, target, \
                    Stepladder-Key, Stepladder-Nonce, Stepladder-Expires (s since the epoch) and Idempotency-Key, each \
                    with a line feed behind it, and the body" } } },
    });
    document.to_string()
}

fn operation(route: &Route) -> Value {
    let in_path = route
        .segments
        .iter()
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .map(|given| json!({ "name": given, "in": "path", "required": true, "schema": name() }));
    let in_query = route.query.iter().map(|parameter| {
        let schema: Value = serde_json::from_str(parameter.schema).unwrap_or(Value::Bool(true));
        json!({ "name": parameter.name, "in": "query", "required": parameter.is_required, "schema": schema,
            "description": parameter.says })
    });
    let mut responses = Map::new();
    let (status, schema) = route.answer;
    let mut done = json!({ "description": "Done" });
    match schema {
        Some(schema) => done["content"] = content("application/json", schema),
        None if status == 200 => {
            done["content"] = json!({ "application/openmetrics-text": { "schema": { "type": "string" } } });
        }
        None => {}
    }
    responses.insert(status.to_string(), done);
    let of_change: &[u16] = if route.changes() { &CHANGES } else { &[] };
    for status in EVERYWHERE.iter().chain(route.refusals).chain(of_change) {
        let refused = json!({
            "description": super::tally::reason(*status),
            "content": content("application/problem+json", "Problem"),
        });
        responses.insert(status.to_string(), refused);
    }
    let mut operation = json!({
        "operationId": format!("{:?}", route.operation),
        "summary": route.says,
        "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
        "responses": responses,
    });
    if let Some(body) = route.body {
        operation["requestBody"] = json!({ "required": true, "content": content("application/json", body) });
    }
    if route.changes() {
        operation["parameters"].as_array_mut().expect("a list").push(json!({
            "name": IDEMPOTENCY_FIELD, "in": "header", "required": false,
            "schema": { "type": "string", "minLength": 1, "maxLength": 128 },
            "description": "A repetition with the same key gets the first answer and changes nothing, for 10 minutes. Of \
                answers that have more than 64 MiB together the longest are dropped first: a repetition is then answered \
                409, and still changes nothing" }));
        operation["security"] = json!([{}, { "signature": [] }]);
    }
    operation
}

fn content(media_type: &str, schema: &str) -> Value {
    json!({ media_type: { "schema": { "$ref": format!("#/components/schemas/{schema}") } } })
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

/// As `object`, of a request: other members are refused.
fn closed(required: &[&str], properties: Value) -> Value {
    let mut object = object(required, properties);
    object["additionalProperties"] = Value::Bool(false);
    object
}

fn list_of(schema: Value) -> Value {
    json!({ "type": "array", "items": schema })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// The name of a board, a member or a season.
fn name() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_MEMBER_BYTES,
        "description": format!("At most {MAX_MEMBER_BYTES} bytes of UTF-8") })
}

fn schemas() -> Value {
    let (text, count) = (json!({ "type": "string" }), json!({ "type": "integer", "minimum": 0 }));
    let score = json!({ "type": "string", "pattern": "^-?[0-9]+$" });
    let given = json!({ "type": ["string", "integer"], "pattern": "^[+-]?[0-9]{1,1000}$",
        "minimum": i64::MIN, "maximum": i64::MAX });
    let name = name();
    let direction = json!({ "type": "string", "enum": ["descending", "ascending"] });
    let ties = json!({ "type": "string", "enum": ["random", "first", "last"] });
    let mode = json!({ "type": "string", "enum": ["replace", "increment", "decrement", "best"] });
    let ranked = object(
        &["member", "score", "rank"],
        json!({ "member": text, "score": score, "rank": count, "metadata": text }),
    );
    json!({
        "Update": object(&["member", "score", "rank", "members"],
            json!({ "member": text, "score": score, "rank": count, "members": count, "metadata": text })),
        "Deleted": object(&["member", "score", "members"],
            json!({ "member": text, "score": score, "members": count })),
        "Ranked": ranked,
        "Bulk": closed(&["leaderboards"], json!({ "leaderboards": list_of(closed(&["leaderboard", "scores"],
            json!({ "leaderboard": text, "scores": list_of(closed(&["member", "score", "mode"],
                json!({ "member": name, "score": given, "mode": mode }))) }))) })),
        "BulkDone": object(&["leaderboards"], json!({ "leaderboards": list_of(object(&["leaderboard", "scores"],
            json!({ "leaderboard": text, "scores": list_of(reference("Ranked")) }))) })),
        "Members": closed(&["members"], json!({ "members": list_of(name.clone()) })),
        "Standings": object(&["standings"], json!({ "standings":
            list_of(json!({ "oneOf": [reference("Ranked"), { "type": "null" }] })) })),
        "Metadata": closed(&["metadata"], json!({ "metadata": { "type": "string", "maxLength": MAX_METADATA_BYTES } })),
        "MemberMetadata": object(&["member", "metadata"],
            json!({ "member": text, "metadata": { "type": ["string", "null"] } })),
        "NewSeason": closed(&["name"], json!({ "name": name })),
        "Season": object(&["name", "ended_at_s", "members"],
            json!({ "name": text, "ended_at_s": count, "members": count })),
        "Seasons": object(&["seasons"], json!({ "seasons": list_of(reference("Season")) })),
        "Schedule": closed(&["next_end_s", "every_s"], json!({
            "next_end_s": { "type": "integer", "minimum": 0, "maximum": END_S_MAX,
                "description": "The next end, s since the epoch; not past" },
            "every_s": { "type": "integer", "minimum": 1, "maximum": EVERY_S_MAX } })),
        "Page": object(&["members", "rows", "next"], json!({ "members": count,
            "rows": list_of(reference("Ranked")), "next": { "type": ["integer", "null"] } })),
        "NewLeaderboard": closed(&[], json!({ "name": name, "direction": direction, "ties": ties })),
        "Leaderboard": object(&["name", "direction", "ties", "members"],
            json!({ "name": text, "direction": direction, "ties": ties, "members": count })),
        "Leaderboards": object(&["leaderboards", "next"], json!({
            "leaderboards": list_of(reference("Leaderboard")), "next": { "type": ["string", "null"] } })),
        "Health": object(&["status"], json!({ "status": { "type": "string", "const": "ok" } })),
        "Document": { "type": "object" },
        "Problem": object(&["status", "detail"], json!({ "status": count, "detail": text,
            "leaderboard": count, "item": count })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_is_in_the_document_and_every_reference_leads_somewhere() {
        let text = document();
        let document: Value = serde_json::from_str(text).unwrap();
        let mut operations = 0;
        for route in ROUTES {
            let operation = &document["paths"][route.path()][route.method.to_lowercase()];
            assert!(operation["responses"][route.answer.0.to_string()].is_object(), "{}", route.path());
            let named = operation["parameters"].as_array().unwrap();
            let names_in_path = route.segments.iter().filter(|segment| segment.starts_with('{')).count();
            assert_eq!(named.len(), names_in_path + route.query.len() + usize::from(route.changes()));
            assert!(named.iter().all(|parameter| parameter["schema"].is_object()));
        }
        for path in document["paths"].as_object().unwrap().values() {
            operations += path.as_object().unwrap().len();
        }
        assert_eq!(operations, ROUTES.len());
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
