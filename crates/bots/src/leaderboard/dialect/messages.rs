//! Messages of the service's own schema, over WebSocket or gRPC.
//!
//! Over WebSocket an operation is wrapped in a `Request` and its result in a `Response`; with gRPC the path names the
//! operation and neither is wrapped.

use std::borrow::Cow;
use std::sync::Arc;

use drivers::messages::wire::{put_key, put_sized, put_varint};
use drivers::messages::{Envelope, Found, Path};
use prost_reflect::MessageDescriptor;
use serde_json::json;

use super::super::signing::{Claim, Signature};
use super::{Ask, NEIGHBOURS, Page, ROWS_MOST, Row, Standing, Written};
use crate::protobuf::{self, Schema, SchemaError, Template};

/// The servers' own file, compiled like anyone's.
const SCHEMA: &str = include_str!("../../../proto/leaderboard.proto");
const SERVICE: &str = "stepladder.leaderboard.v1.Leaderboard";
/// Stands for the method in what is signed.
const SIGNED_AS: &str = "PROTOBUF";

/// What the messages travel over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    WebSocket,
    Grpc,
}

/// Of one board.
pub struct Messages {
    over: Over,
    envelope: Option<Arc<Envelope>>,
    update: Operation,
    top: Operation,
    get: Operation,
    around: Operation,
    range: Operation,
    /// without its members, which are appended
    ranks: Operation,
    /// field of `Ranks`
    ranks_member: u32,
    bulk: Operation,
    /// fields on the way from `Bulk` to its items
    bulk_part: u32,
    bulk_item: u32,
    /// the part's board
    bulk_board: Template,
    item: Template,
    reply: Reply,
    /// what errors are shown as; `None`: they are texts
    response: Option<MessageDescriptor>,
    /// within `Request`: the signature, and its key, nonce, expiry and HMAC
    signature: u32,
    signature_parts: [u32; 4],
}

/// How an operation is called.
struct Operation {
    /// field of `Request`
    number: u32,
    /// as in `Request`, which is signed
    name: &'static str,
    /// of gRPC
    path: String,
    /// without its wrapper
    message: Template,
}

/// Where replies have what is looked for.
struct Reply {
    standing: StandingPaths,
    /// on the way to each standing, and within it
    bulk: Path,
    /// the code and the text of an error in a bulk's own response: gRPC only
    bulk_error: Option<(Path, Path)>,
    standings: Path,
    each: StandingPaths,
    rows: Path,
    row: StandingPaths,
    row_member: Path,
}

struct StandingPaths {
    number: Path,
    decimal: Path,
    rank: Path,
}

/// Variables of the templates.
const NAME_AND_NUMBER: [&str; 2] = ["name", "number"];

impl Messages {
    pub fn new(over: Over, board: &str) -> Self {
        Messages::compile(over, board).expect("the schema fits, which a test checks")
    }

    fn compile(over: Over, board: &str) -> Result<Self, SchemaError> {
        let schema = Schema::of_text("leaderboard.proto", SCHEMA)?;
        let (request, response) = (schema.message("Request")?, schema.message("Response")?);
        let number_in = |message: &MessageDescriptor, field: &str| {
            let path = protobuf::path(message, field)?;
            Ok::<u32, SchemaError>(path.numbers.last().copied().unwrap_or(0))
        };
        let operation = |name: &'static str, method: &str, value: serde_json::Value| {
            let message = Template::compile(&schema.message(method)?, &value, &NAME_AND_NUMBER)?;
            let path = format!("/{SERVICE}/{method}");
            let number = number_in(&request, name)?;
            Ok::<Operation, SchemaError>(Operation { number, name, path, message })
        };
        let change = json!({"member": "{name}", "mode": "MODE_INCREMENT", "number": "{number}"});
        let mut update = change.clone();
        update["board"] = json!(board);
        let bulk = schema.message("Bulk")?;
        let part = schema.message("stepladder.leaderboard.v1.Bulk.Part")?;
        let around = json!({"board": board, "member": "{name}", "each_side": NEIGHBOURS});
        Ok(Messages {
            over,
            envelope: match over {
                Over::WebSocket => {
                    let envelope =
                        protobuf::envelope(&request, &response, Some(("id", "id")), Some("error.code"))?;
                    Some(Arc::new(envelope))
                }
                Over::Grpc => None,
            },
            update: operation("update", "Update", update)?,
            top: operation("top", "Top", json!({"board": board, "limit": "{number}"}))?,
            get: operation("get", "Get", json!({"board": board, "member": "{name}"}))?,
            around: operation("around", "Around", around)?,
            range: operation("range", "Range", json!({"board": board, "first": "{number}", "limit": 1}))?,
            ranks: operation("ranks", "Ranks", json!({"board": board}))?,
            ranks_member: number_in(&schema.message("Ranks")?, "members")?,
            bulk: operation("bulk", "Bulk", json!({}))?,
            bulk_part: number_in(&bulk, "parts")?,
            bulk_item: number_in(&part, "items")?,
            bulk_board: Template::compile(&part, &json!({"board": board}), &NAME_AND_NUMBER)?,
            item: Template::compile(
                &schema.message("stepladder.leaderboard.v1.Bulk.Item")?,
                &change,
                &NAME_AND_NUMBER,
            )?,
            reply: Reply::compile(&schema, over)?,
            signature: number_in(&request, "signature")?,
            signature_parts: {
                let signature = schema.message("Signature")?;
                let number = |field| number_in(&signature, field);
                [number("key")?, number("nonce")?, number("expires")?, number("signature")?]
            },
            response: (over == Over::WebSocket).then_some(response),
        })
    }

    /// Where requests and replies over WebSocket have their numbers.
    pub fn envelope(&self) -> Option<Arc<Envelope>> {
        self.envelope.clone()
    }

    pub(super) fn write(&self, ask: &Ask) -> Written {
        match ask {
            Ask::Update(member, points) => self.call(&self.update, member, *points),
            Ask::Top(rows) => self.call(&self.top, "", *rows as i64),
            Ask::Rank(member) => self.call(&self.get, member, 0),
            Ask::Around(member) => self.call(&self.around, member, 0),
            Ask::At(rank) => self.call(&self.range, "", *rank as i64),
            Ask::Standings(members) => self.wrapped(&self.ranks, |out| {
                self.ranks.message.render(out, &|_| "");
                for member in members {
                    put_key(out, self.ranks_member, 2);
                    put_sized(out, |out| out.extend_from_slice(member.as_bytes()));
                }
            }),
            Ask::Bulk(updates) => self.wrapped(&self.bulk, |out| {
                put_key(out, self.bulk_part, 2);
                put_sized(out, |out| {
                    self.bulk_board.render(out, &|_| "");
                    for (member, points) in updates {
                        put_key(out, self.bulk_item, 2);
                        put_sized(out, |out| render(&self.item, out, member, *points));
                    }
                });
            }),
        }
    }

    fn call(&self, operation: &Operation, name: &str, number: i64) -> Written {
        self.wrapped(operation, |out| render(&operation.message, out, name, number))
    }

    fn wrapped(&self, operation: &Operation, put: impl FnOnce(&mut Vec<u8>)) -> Written {
        let mut body = Vec::with_capacity(64);
        let mut bytes = 0;
        match self.over {
            Over::Grpc => {
                put(&mut body);
                bytes = body.len();
            }
            Over::WebSocket => {
                put_key(&mut body, operation.number, 2);
                put_sized(&mut body, |out| {
                    let from = out.len();
                    put(out);
                    bytes = out.len() - from;
                });
            }
        }
        let claim = Claim { method: SIGNED_AS, target: operation.name.to_owned(), from: body.len() - bytes };
        Written { method: "POST", path: operation.path.clone(), body, claim }
    }

    /// Whether a signature is inside the message of a change, and not beside it.
    pub(super) fn carries_signatures(&self) -> bool {
        self.over == Over::WebSocket
    }

    /// Appends it to a `Request`.
    pub(super) fn put_signature(&self, body: &mut Vec<u8>, signature: &Signature) {
        let Signature { key, nonce, expires_s, hmac } = signature;
        let [key_at, nonce_at, expires_at, hmac_at] = self.signature_parts;
        put_key(body, self.signature, 2);
        put_sized(body, |out| {
            for (number, bytes) in [(key_at, key.as_bytes()), (nonce_at, nonce.as_bytes()), (hmac_at, hmac)] {
                put_key(out, number, 2);
                put_sized(out, |out| out.extend_from_slice(bytes));
            }
            put_key(out, expires_at, 0);
            put_varint(out, *expires_s);
        });
    }

    pub(super) fn standing<'a>(&self, body: &'a [u8]) -> Result<Standing<'a>, String> {
        self.reply.standing.read(body)?.ok_or_else(|| "no score".to_owned())
    }

    pub(super) fn bulk<'a>(&self, body: &'a [u8]) -> Result<Vec<Standing<'a>>, String> {
        let standings = self.each(&self.reply.bulk, body)?;
        standings.into_iter().map(|standing| standing.ok_or_else(|| "no score".to_owned())).collect()
    }

    pub(super) fn refusal_of_bulk(&self, body: &[u8]) -> Option<(u16, String)> {
        let (code, text) = self.reply.bulk_error.as_ref()?;
        let Ok(Some(Found::Whole(code))) = code.find(body) else { return None };
        let text = match text.find(body) {
            Ok(Some(Found::Bytes(text))) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        };
        Some((u16::try_from(code).ok()?, text))
    }

    pub(super) fn standings<'a>(&self, body: &'a [u8]) -> Result<Vec<Option<Standing<'a>>>, String> {
        self.each(&self.reply.standings, body)
    }

    fn each<'a>(&self, path: &Path, body: &'a [u8]) -> Result<Vec<Option<Standing<'a>>>, String> {
        let mut standings = Vec::new();
        each(path, body, |bytes| {
            standings.push(self.reply.each.read(bytes)?);
            Ok(())
        })?;
        Ok(standings)
    }

    pub(super) fn page<'a>(&self, body: &'a [u8]) -> Result<Page<'a>, String> {
        let mut rows = Vec::new();
        each(&self.reply.rows, body, |bytes| {
            let standing = self.reply.row.read(bytes)?.ok_or("a row without a score")?;
            let Some(Found::Bytes(member)) = self.reply.row_member.find(bytes).map_err(malformed)? else {
                return Err("a row without a member".to_owned());
            };
            let member = String::from_utf8_lossy(member);
            rows.push(Row { member, score: standing.score, rank: standing.rank });
            Ok(())
        })?;
        Ok(Page::of(rows))
    }

    pub(super) fn shown(&self, body: &[u8]) -> String {
        let json = self.response.as_ref().and_then(|response| protobuf::as_json(response, body));
        json.unwrap_or_else(|| crate::disconnects::shown(body))
    }
}

impl Reply {
    fn compile(schema: &Schema, over: Over) -> Result<Self, SchemaError> {
        let path = |field: &str, message: &str, names: &str| match over {
            Over::WebSocket => protobuf::path(&schema.message("Response")?, &format!("{field}.{names}")),
            Over::Grpc => protobuf::path(&schema.message(message)?, names),
        };
        let standing = |at: &dyn Fn(&str) -> Result<Path, SchemaError>| {
            Ok::<_, SchemaError>(StandingPaths {
                number: at("number")?,
                decimal: at("decimal")?,
                rank: at("rank")?,
            })
        };
        let bulk_error = match over {
            Over::WebSocket => None,
            Over::Grpc => {
                let done = schema.message("BulkDone")?;
                Some((protobuf::path(&done, "error.code")?, protobuf::path(&done, "error.message")?))
            }
        };
        let row = schema.message("stepladder.leaderboard.v1.Page.Row")?;
        let each = schema.message("Standing")?;
        Ok(Reply {
            standing: standing(&|name| path("standing", "Standing", name))?,
            bulk: path("bulk", "BulkDone", "parts.standings")?,
            bulk_error,
            standings: path("standings", "Standings", "standings")?,
            each: standing(&|name| protobuf::path(&each, name))?,
            rows: path("page", "Page", "rows")?,
            row: standing(&|name| protobuf::path(&row, name))?,
            row_member: protobuf::path(&row, "member")?,
        })
    }
}

impl StandingPaths {
    /// `None`: there is no score.
    fn read<'a>(&self, message: &'a [u8]) -> Result<Option<Standing<'a>>, String> {
        let score = match self.number.find(message).map_err(malformed)? {
            Some(Found::Whole(number)) => number,
            _ => match self.decimal.find(message).map_err(malformed)? {
                Some(Found::Bytes(text)) => {
                    let text = String::from_utf8_lossy(text);
                    text.parse().map_err(|_| format!("a score of {text}"))?
                }
                _ => return Ok(None),
            },
        };
        let rank = match self.rank.find(message).map_err(malformed)? {
            Some(Found::Whole(rank)) => rank as u64,
            _ => 0,
        };
        Ok(Some(Standing { member: None::<Cow<'a, str>>, score, rank }))
    }
}

fn render(template: &Template, out: &mut Vec<u8>, name: &str, number: i64) {
    let number = number.to_string();
    template.render(out, &|variable| if variable == 0 { name } else { &number });
}

/// Calls `read` with each message at a path.
fn each<'a>(
    path: &Path,
    body: &'a [u8],
    mut read: impl FnMut(&'a [u8]) -> Result<(), String>,
) -> Result<(), String> {
    let mut outcome = Ok(());
    let mut count = 0;
    path.each(body, |found| {
        if let (Found::Bytes(bytes), Ok(())) = (found, &outcome) {
            count += 1;
            // Two bytes on the wire can expand to many times as much in a list.
            outcome = match count {
                ..=ROWS_MOST => read(bytes),
                _ => Err(format!("a list of more than {ROWS_MOST} entries")),
            };
        }
    })
    .map_err(malformed)?;
    outcome
}

fn malformed(error: drivers::messages::wire::Malformed) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
