//! Messages, requests and conditions as expressions.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Writer;
use super::helpers::Helper;
use crate::actions::{Deed, operation};
use crate::content::{Form, Place, Step, path_parts};
use crate::literal::{Piece, is_name, joined, key, string};
use crate::secrets::secret_in;
use crate::session::Content;
use crate::trace::{Found, Source};

/// Longer bytes are written as base64.
const PLAIN_BYTES_MAX: usize = 16;

/// What stands at a place of a message instead of what was recorded.
pub(super) type Instead = BTreeMap<Place, Vec<Piece>>;

impl Writer<'_> {
    pub(super) fn piece(&mut self, source: &Source) -> Piece {
        let (item, found) = match source {
            Source::Text(text) => return Piece::Text(text.clone()),
            Source::Heard(item, found) => (*item, found),
        };
        let name = self.names.get(&item).cloned().unwrap_or_default();
        match found {
            Found::Between(before, after) => {
                self.help(Helper::Between);
                let (before, after) = (self.literal(before), self.literal(after));
                Piece::code(format!("between({name}Text, {before}, {after})"), true)
            }
            Found::At(place, is_text) => match place.first() {
                Some(Step::Header(header)) => {
                    Piece::code(format!("{name}Answer.headers.get({})!", self.literal(header)), true)
                }
                Some(Step::Cookie(cookie)) => {
                    self.help(Helper::Cookie);
                    Piece::code(format!("cookie({name}Answer, {})", self.literal(cookie)), true)
                }
                Some(Step::Word(at)) => {
                    self.help(Helper::Words);
                    Piece::code(format!("words({name}Text)[{at}]"), true)
                }
                _ => Piece::code(self.way(&name, place), *is_text),
            },
        }
    }

    /// `name.a[0].b`
    pub(super) fn way(&self, name: &str, place: &[Step]) -> String {
        let mut out = name.to_owned();
        for step in place {
            match step {
                Step::Key(key) if is_name(key) => out += &format!(".{key}"),
                Step::Key(key) => out += &format!("[{}]", self.literal(key)),
                Step::At(at) => out += &format!("[{at}]"),
                _ => {}
            }
        }
        out
    }

    /// A recorded text without the secrets in it.
    fn literal(&self, text: &str) -> String {
        joined(&self.outline.secrets.cut(text))
    }

    /// What stands at a place: traced, given by the loop, a secret, or as recorded.
    fn pieces(&mut self, at: usize, place: &Place, instead: &Instead) -> Option<Vec<Piece>> {
        if let Some(pieces) = instead.get(place) {
            return Some(pieces.clone());
        }
        if let Some(sources) = self.outline.traced.get(&at).and_then(|found| found.get(place)) {
            return Some(sources.clone().iter().map(|source| self.piece(source)).collect());
        }
        let leaf = self.scene.items[at].leaf(place)?;
        let secret = secret_in(leaf)?;
        let name = self.outline.secrets.name_of(secret)?;
        let code = Piece::code(format!("bot.env.{name}"), true);
        let before = leaf.value.strip_suffix(secret).filter(|before| !before.is_empty());
        Some(before.map(|before| Piece::Text(before.to_owned())).into_iter().chain([code]).collect())
    }

    fn text_at(&mut self, at: usize, place: &Place, value: &str, instead: &Instead) -> String {
        match self.pieces(at, place, instead) {
            Some(pieces) => {
                let cut = pieces.into_iter().flat_map(|piece| match piece {
                    Piece::Text(text) => self.outline.secrets.cut(&text),
                    code => vec![code],
                });
                joined(&cut.collect::<Vec<_>>())
            }
            None => self.literal(value),
        }
    }

    /// What `send` takes.
    pub(super) fn message(&mut self, at: usize, content: &Content, instead: &Instead) -> String {
        let form = self.scene.items[at].form.clone();
        let said = self.text(at, &form, &content.bytes, instead);
        let is_tcp = self.tcp.contains(&self.scene.items[at].connection);
        match said {
            Some(text) if content.is_text || is_tcp => text,
            Some(text) => format!("new TextEncoder().encode({text})"),
            None => self.bytes(&content.bytes),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> String {
        if self.outline.secrets.are_in(bytes) {
            let remark = "bytes in which a secret was recorded are left out, and sent empty".to_owned();
            if !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
            return "new Uint8Array()".to_owned();
        }
        if bytes.len() <= PLAIN_BYTES_MAX {
            let all: Vec<String> = bytes.iter().map(u8::to_string).collect();
            return format!("Uint8Array.of({})", all.join(", "));
        }
        self.help(Helper::Bytes);
        format!("bytes(\"{}\")", STANDARD.encode(bytes))
    }

    /// An expression whose value is the text; `None`: it is none.
    fn text(&mut self, at: usize, form: &Form, bytes: &[u8], instead: &Instead) -> Option<String> {
        match form {
            Form::Bytes => None,
            Form::Json { before, id, value } => {
                if !is_faithful(value) && instead.is_empty() && !self.outline.traced.contains_key(&at) {
                    return Some(self.literal(std::str::from_utf8(bytes).ok()?));
                }
                let json = format!("JSON.stringify({})", self.value(at, value, &mut Vec::new(), instead));
                if before.is_empty() && id.is_none() {
                    return Some(json);
                }
                let mut pieces = self.outline.secrets.cut(before);
                if let Some(id) = id {
                    let place = vec![Step::Id];
                    pieces.extend(
                        self.pieces(at, &place, instead).unwrap_or_else(|| vec![Piece::Text(id.clone())]),
                    );
                }
                pieces.push(Piece::code(json, false));
                Some(joined(&pieces))
            }
            Form::Fields(pairs) => {
                let mut all = Vec::new();
                for (index, (name, value)) in pairs.iter().enumerate() {
                    let value = self.text_at(at, &vec![Step::Field(index)], value, instead);
                    all.push(format!("[{}, {value}]", self.literal(name)));
                }
                Some(format!("new URLSearchParams([{}])", all.join(", ")))
            }
            Form::Words(words, tail) => {
                let mut pieces = Vec::new();
                let mut is_given = false;
                for (index, (before, word)) in words.iter().enumerate() {
                    pieces.push(Piece::Text(before.clone()));
                    let given = self.pieces(at, &vec![Step::Word(index)], instead);
                    is_given |= given.is_some();
                    pieces.extend(given.unwrap_or_else(|| vec![Piece::Text(word.clone())]));
                }
                if !is_given {
                    return Some(self.literal(std::str::from_utf8(bytes).ok()?));
                }
                pieces.push(Piece::Text(tail.clone()));
                Some(joined(&self.cut(together(pieces))))
            }
        }
    }

    fn cut(&self, pieces: Vec<Piece>) -> Vec<Piece> {
        let cut = pieces.into_iter().flat_map(|piece| match piece {
            Piece::Text(text) => self.outline.secrets.cut(&text),
            code => vec![code],
        });
        cut.filter(|piece| *piece != Piece::Text(String::new())).collect()
    }

    fn value(&mut self, at: usize, value: &Value, place: &mut Place, instead: &Instead) -> String {
        match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) | Value::Number(_) => match self.pieces(at, place, instead).as_deref() {
                Some([Piece::Code { js, is_text: false }]) => js.clone(),
                Some(pieces) => format!("Number({})", joined(pieces)),
                None => value.to_string(),
            },
            Value::String(text) => self.text_at(at, &place.clone(), text, instead),
            Value::Array(all) => {
                let mut out = Vec::new();
                for (index, one) in all.iter().enumerate() {
                    place.push(Step::At(index));
                    out.push(self.value(at, one, place, instead));
                    place.pop();
                }
                format!("[{}]", out.join(", "))
            }
            Value::Object(all) => {
                let mut out = Vec::new();
                for (name, one) in all {
                    place.push(Step::Key(name.clone()));
                    let value = self.value(at, one, place, instead);
                    place.pop();
                    let pieces = self.outline.secrets.cut(name);
                    out.push(match pieces.as_slice() {
                        [Piece::Text(_)] | [] if value == *name && is_name(name) => value,
                        [Piece::Text(_)] | [] => format!("{}: {value}", key(name)),
                        pieces => format!("[{}]: {value}", joined(pieces)),
                    });
                }
                if out.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", out.join(", ")) }
            }
        }
    }

    /// `fetch(…)`
    pub(super) fn request(&mut self, at: usize, instead: &Instead) -> String {
        let Deed::Ask(request) = &self.scene.items[at].deed else { return "undefined".to_owned() };
        let url = self.url(at, request.elsewhere.as_deref(), &request.path, "http", instead);
        let mut init = Vec::new();
        if request.method != "GET" {
            init.push(format!("method: {}", string(&request.method)));
        }
        let form = self.scene.items[at].form.clone();
        let is_form = matches!(form, Form::Fields(_));
        let kept: Vec<(String, String)> = request
            .headers
            .iter()
            .filter(|(name, _)| !is_form || !name.eq_ignore_ascii_case("content-type"))
            .cloned()
            .collect();
        let headers = self.headers(at, &kept, instead);
        if !headers.is_empty() {
            init.push(format!("headers: {headers}"));
        }
        if !request.body.is_empty() {
            let body =
                self.text(at, &form, &request.body, instead).unwrap_or_else(|| self.bytes(&request.body));
            init.push(format!("body: {body}"));
        }
        // What is computed has a name of its own, as the path that was recorded has it.
        if url.starts_with('`') || request.elsewhere.is_some() {
            let name = operation(request);
            let is_open = self.outline.secrets.cut(&name).iter().all(|piece| matches!(piece, Piece::Text(_)));
            init.push(format!("operation: {}", if is_open { string(&name) } else { string("request") }));
        }
        if init.is_empty() {
            format!("fetch({url})")
        } else {
            format!("fetch({url}, {{ {} }})", init.join(", "))
        }
    }

    /// An object of headers; empty without any.
    pub(super) fn headers(&mut self, at: usize, headers: &[(String, String)], instead: &Instead) -> String {
        let mut out = Vec::new();
        for (name, value) in
            headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("sec-websocket-protocol"))
        {
            let value = self.text_at(at, &vec![Step::Header(name.clone())], value, instead);
            out.push(format!("{}: {value}", key(name)));
        }
        if out.is_empty() { String::new() } else { format!("{{ {} }}", out.join(", ")) }
    }

    pub(super) fn url(
        &mut self,
        at: usize,
        elsewhere: Option<&str>,
        path: &str,
        scheme: &str,
        instead: &Instead,
    ) -> String {
        let mut pieces = Vec::new();
        if let Some((other, authority)) = elsewhere.and_then(|elsewhere| elsewhere.split_once("://")) {
            let secure = if other.ends_with('s') && other != "ws" || other == "wss" { "s" } else { "" };
            pieces.push(Piece::Text(format!("{scheme}{secure}://")));
            pieces.push(Piece::code("new URL(bot.target).hostname", true));
            let port =
                authority.rsplit_once(':').map(|(_, port)| port).filter(|port| port.parse::<u16>().is_ok());
            pieces.extend(port.map(|port| Piece::Text(format!(":{port}"))));
        }
        let (parts, pairs) = path_parts(path);
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                pieces.push(Piece::Text("/".to_owned()));
            }
            pieces.extend(self.encoded(at, vec![Step::Part(index)], part, instead));
        }
        for (index, (name, value)) in pairs.iter().enumerate() {
            pieces.push(Piece::Text(format!("{}{name}", if index == 0 { "?" } else { "&" })));
            if let Some(value) = value {
                pieces.push(Piece::Text("=".to_owned()));
                pieces.extend(self.encoded(at, vec![Step::Query(index)], value, instead));
            }
        }
        joined(&self.cut(together(pieces)))
    }

    /// A part of a URL: as written, or computed and encoded.
    fn encoded(&mut self, at: usize, place: Place, written: &str, instead: &Instead) -> Vec<Piece> {
        let Some(pieces) = self.pieces(at, &place, instead) else {
            return vec![Piece::Text(written.to_owned())];
        };
        let encode = |piece: Piece| match piece {
            Piece::Code { js, is_text: true } => Piece::code(format!("encodeURIComponent({js})"), true),
            Piece::Text(text) => Piece::Text(
                url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20"),
            ),
            number => number,
        };
        pieces.into_iter().map(encode).collect()
    }

    /// Whether a message is of the kind of this one, as an expression over `data`; `None`: any is. `exactly`: it repeats the number
    /// of an acknowledgement.
    pub(super) fn condition(&mut self, at: usize, data: &str, exactly: bool) -> Option<String> {
        let item = &self.scene.items[at];
        let is_string = matches!(&item.deed, Deed::Heard(content) if content.is_text);
        let said = if is_string { data.to_owned() } else { format!("text({data})") };
        let mut all = Vec::new();
        match item.form.clone() {
            Form::Json { before, id, value } => {
                let id = id.filter(|_| exactly);
                if !before.is_empty() {
                    let bracket = if id.is_some() || matches!(value, Value::Object(_)) {
                        if value.is_array() { "[" } else { "{" }
                    } else {
                        ""
                    };
                    let start = format!("{before}{}{bracket}", id.unwrap_or_default());
                    all.push(format!("{said}.startsWith({})", self.literal(&start)));
                }
                let kinds: Vec<(Place, String, bool)> = item
                    .leaves
                    .iter()
                    .filter(|leaf| leaf.is_kind && leaf.place.len() <= 2)
                    .take(2)
                    .map(|leaf| (leaf.place.clone(), leaf.value.clone(), leaf.is_text))
                    .collect();
                for (place, value, is_text) in kinds {
                    self.help(Helper::Json);
                    let value = if is_text { self.literal(&value) } else { value };
                    all.push(format!("{} === {value}", self.maybe(&format!("json({data})"), &place)));
                }
                if all.is_empty()
                    && let Some(first) = value.as_object().and_then(|all| all.keys().next())
                {
                    self.help(Helper::Json);
                    all.push(format!(
                        "{} !== undefined",
                        self.maybe(&format!("json({data})"), &[Step::Key(first.clone())])
                    ));
                }
            }
            Form::Words(words, _) => match words.as_slice() {
                [(before, first), rest @ ..]
                    if before.is_empty()
                        && !first.contains(|c: char| c.is_ascii_digit())
                        && !first.is_empty() =>
                {
                    let space =
                        rest.first().map_or(String::new(), |(space, _)| space.chars().take(1).collect());
                    all.push(format!("{said}.startsWith({})", self.literal(&format!("{first}{space}"))));
                }
                [(before, only)] if before.is_empty() && only.len() == 1 => {
                    all.push(format!("{said} === {}", self.literal(only)))
                }
                _ => {}
            },
            Form::Fields(_) | Form::Bytes => {}
        }
        // Bytes have no `startsWith`, and may look like anything.
        let hears_both = self.scene.items.iter().any(|other| {
            other.connection == item.connection
                && matches!(&other.deed, Deed::Heard(content) if content.is_text != is_string)
        });
        if hears_both && is_string {
            all.insert(0, format!("typeof {data} === \"string\""));
        } else if hears_both {
            all = vec![format!("typeof {data} !== \"string\"")];
        }
        if !is_string && all.iter().any(|one| one.contains("text(")) {
            self.help(Helper::Text);
        }
        (!all.is_empty()).then(|| all.join(" && "))
    }

    /// `name?.a?.[0]`
    fn maybe(&self, name: &str, place: &[Step]) -> String {
        let mut out = name.to_owned();
        for step in place {
            match step {
                Step::Key(key) if is_name(key) => out += &format!("?.{key}"),
                Step::Key(key) => out += &format!("?.[{}]", self.literal(key)),
                Step::At(at) => out += &format!("?.[{at}]"),
                _ => {}
            }
        }
        out
    }
}

/// Texts that stand beside each other as one.
fn together(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (out.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
            (_, piece) => out.push(piece),
        }
    }
    out
}

/// Whether `JSON.stringify` says the same numbers again: none beyond 2^53, and none such as 1.0.
fn is_faithful(value: &Value) -> bool {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.unsigned_abs() <= 1 << 53,
            (None, Some(real)) => real.fract() != 0.0 && real.abs() > 1e-6,
            _ => false,
        },
        Value::Array(all) => all.iter().all(is_faithful),
        Value::Object(all) => all.values().all(is_faithful),
        _ => true,
    }
}
