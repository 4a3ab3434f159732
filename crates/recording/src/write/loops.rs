//! What repeats: loops of planned instants, and the handlers that hear their replies and the server's ticks.

use super::expressions::Instead;
use super::helpers::Helper;
use super::{Writer, duration};
use crate::actions::{Deed, operation};
use crate::answers::{Key, Replies};
use crate::content::{Form, Place, Step};
use crate::literal::{Piece, joined, string, word};
use crate::outline::{Field, LoopStep};

/// Names of operations are no longer.
const NAME_CHARS_MAX: usize = 40;

impl Writer<'_> {
    /// Writes a loop, at the place where it begins. `is_last`: nothing else is said after it.
    pub(super) fn one_loop(&mut self, index: usize, is_last: bool) {
        let outline = self.outline;
        let (one, steps) = &outline.loops[index];
        let begin = self.lines.len();
        self.indent += if is_last { 1 } else { 2 };
        let mut counts = false;
        for (at, step) in steps.iter().enumerate() {
            self.pause(step.after_ns);
            counts |= self.loop_step(index, at, step);
        }
        self.indent -= if is_last { 1 } else { 2 };
        let body = self.lines.split_off(begin);
        let period = string(&duration(one.period_ns));
        let n = if counts || body.iter().any(|line| uses_n(line)) { "n" } else { "_" };
        if is_last && !self.background {
            self.line(format!("for await (const {n} of bot.every({period})) {{"));
            self.lines.extend(body);
            self.line("}");
            return;
        }
        if !std::mem::replace(&mut self.background, true) {
            self.line("const loops: Promise<void>[] = [];");
        }
        self.line("loops.push((async () => {");
        self.line(format!("  for await (const {n} of bot.every({period})) {{"));
        // One level deeper, where it was not written so.
        let pad = if is_last { "  " } else { "" };
        self.lines.extend(body.into_iter().map(|line| format!("{pad}{line}")));
        self.line("  }");
        self.line("})());");
    }

    /// Returns whether `n` is used for certain.
    fn loop_step(&mut self, index: usize, at: usize, step: &LoopStep) -> bool {
        let item = &self.scene.items[step.item];
        let name = self.operation_of(step.item);
        let instead = self.instead(step, &name);
        let replies = self.outline.replies[index].iter().find(|one| one.step == at).cloned();
        match &item.deed {
            Deed::Ask(_) => {
                let call = format!("await {}", self.request(step.item, &instead));
                match self.outline.answers.get(&item.connection).copied() {
                    Some(answer) => self.answer(answer, &call),
                    None => self.line(format!("{call};")),
                }
                false
            }
            Deed::Sent(content) => {
                let message = match step.rows.as_slice() {
                    [] => self.message(step.item, content, &instead),
                    rows => {
                        let mut all = Vec::new();
                        for row in rows {
                            if let Deed::Sent(content) = &self.scene.items[*row].deed {
                                all.push(self.message(*row, content, &Instead::new()));
                            }
                        }
                        // With secrets in them they can only stand where `bot` is.
                        let list = format!("[{}]", all.join(", "));
                        if list.contains("bot.env.") {
                            format!("{list}[n % {}]", all.len())
                        } else {
                            let list_name = self.list(&name, "Messages", &list);
                            format!("{list_name}[n % {list_name}.length]")
                        }
                    }
                };
                let send = format!("{}.send({message})", self.socket(item.connection));
                match replies.map(|replies| replies.key) {
                    Some(key) => {
                        let key = match key {
                            Key::Order => "n".to_owned(),
                            Key::Same { sent, .. } => match instead.get(&sent) {
                                Some(pieces) => as_number(pieces, &sent),
                                None => "n".to_owned(),
                            },
                        };
                        self.line(format!("bot.ask({}, {key}, () => {send});", string(&name)));
                        key.contains('n')
                    }
                    None => {
                        self.line(format!("{send};"));
                        false
                    }
                }
            }
            _ => false,
        }
    }

    fn list(&mut self, name: &str, what: &str, values: &str) -> String {
        let wanted = format!("{}{what}", word(name));
        let list_name = self.free(&word(&wanted));
        self.lists
            .push(format!("/** As recorded, said one after the other. */\nconst {list_name} = {values};"));
        list_name
    }

    /// What stands in a message of a loop instead of the recorded values.
    fn instead(&mut self, step: &LoopStep, operation: &str) -> Instead {
        let mut out = Instead::new();
        for (place, field) in &step.fields {
            let pieces = match field {
                Field::Traced(sources) => sources.iter().map(|source| self.piece(source)).collect(),
                Field::Count { base, step } => vec![Piece::code(counter(*base, *step), false)],
                Field::Pick { item, list, rest, is_text } => {
                    self.help(Helper::Pick);
                    let name = self.names.get(item).cloned().unwrap_or_default();
                    let list = self.way(&name, list);
                    vec![Piece::code(self.way(&format!("pick<any>({list})"), rest), *is_text)]
                }
                Field::Latest(latest, leaf) => {
                    let of =
                        |one: &&(usize, Place, String, String)| one.0 == latest.item && one.1 == latest.place;
                    let name = self.followed.iter().find(of).map_or_else(String::new, |one| one.2.clone());
                    vec![Piece::code(name, leaf.is_text)]
                }
                Field::Rows(leaves) => {
                    let is_text = leaves[0].is_text;
                    let is_secret = leaves.iter().any(|leaf| crate::secrets::secret_in(leaf).is_some());
                    let values: Vec<String> = leaves
                        .iter()
                        .map(|leaf| match is_text {
                            true if is_secret => {
                                let value = crate::secrets::secret_in(leaf).unwrap_or_default();
                                self.outline
                                    .secrets
                                    .name_of(value)
                                    .map_or("\"\"".to_owned(), |name| format!("bot.env.{name}"))
                            }
                            true => joined(&self.outline.secrets.cut(&leaf.value)),
                            false => leaf.value.clone(),
                        })
                        .collect();
                    let list = format!("[{}]", values.join(", "));
                    let js = if list.contains("bot.env.") {
                        format!("{list}[n % {}]", values.len())
                    } else {
                        let last = last_name(place);
                        let name = self.list(&format!("{operation} {last}"), "", &list);
                        format!("{name}[n % {name}.length]")
                    };
                    vec![Piece::code(js, is_text)]
                }
            };
            out.insert(place.clone(), pieces);
        }
        out
    }

    /// What a message of a loop is measured as.
    fn operation_of(&self, at: usize) -> String {
        let item = &self.scene.items[at];
        if let Deed::Ask(request) = &item.deed {
            return operation(request);
        }
        let kind = self.kind_of(at).filter(|kind| self.outline.secrets.cut(kind).len() == 1);
        let name: String = kind
            .unwrap_or_default()
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || " _-.:/".contains(*c))
            .take(NAME_CHARS_MAX)
            .collect();
        if name.trim().is_empty() { "message".to_owned() } else { name.trim().to_owned() }
    }

    /// Names the values that follow what the server says.
    pub(super) fn find_followed(&mut self) {
        let outline = self.outline;
        let fields = outline.loops.iter().flat_map(|(_, steps)| steps).flat_map(|step| step.fields.values());
        for field in fields {
            let Field::Latest(latest, leaf) = field else { continue };
            if self.followed.iter().any(|one| one.0 == latest.item && one.1 == latest.place) {
                continue;
            }
            let kind = self.kind_of(latest.item).unwrap_or_default();
            let name = self.free(&word(&format!("last {kind} {}", last_name(&latest.place))));
            let value =
                if leaf.is_text { joined(&outline.secrets.cut(&leaf.value)) } else { leaf.value.clone() };
            self.followed.push((latest.item, latest.place.clone(), name, value));
        }
    }

    /// What each connection hears from here on.
    pub(super) fn handlers(&mut self) {
        let open: Vec<(usize, String)> =
            self.sockets.iter().map(|(connection, name)| (*connection, name.clone())).collect();
        for (connection, name) in open {
            if !self.handled.insert(connection) {
                continue;
            }
            let rules = self.rules(connection);
            if rules.is_empty() {
                continue;
            }
            for declared in rules.iter().flat_map(|rule| &rule.declares) {
                self.line(format!("let {declared};"));
            }
            self.line(format!("{name}.onmessage = ({{ data }}) => {{"));
            for (at, rule) in rules.iter().enumerate() {
                let does = match rule.does.as_slice() {
                    [only] => only.clone(),
                    all => format!("{{ {} }}", all.join(" ")),
                };
                let begin = if at == 0 { "" } else { "else " };
                match &rule.condition {
                    Some(condition) => self.line(format!("  {begin}if ({condition}) {does}")),
                    None => self.line(format!("  {begin}{does}")),
                }
            }
            self.line("};");
        }
    }

    fn rules(&mut self, connection: usize) -> Vec<Rule> {
        let outline = self.outline;
        let mut rules = Rules::default();
        if outline.is_engine_io(connection) {
            let name = self.sockets.get(&connection).cloned().unwrap_or_default();
            // Its server hangs up on a client that does not answer its heartbeats.
            rules.add(
                Some("data === \"2\"".to_owned()),
                format!("{name}.send(\"3\"); // a heartbeat of Socket.IO"),
            );
        }
        for pong in outline.pongs.iter().filter(|pong| self.scene.items[pong.heard].connection == connection)
        {
            let condition = self.condition(pong.heard, "data", false);
            if condition.as_deref() == Some("data === \"2\"") && outline.is_engine_io(connection) {
                continue;
            }
            let instead = pong
                .copied
                .iter()
                .map(|(said, heard)| (said.clone(), vec![self.heard_now(pong.heard, heard)]))
                .collect();
            let Deed::Sent(content) = &self.scene.items[pong.said[0]].deed else { continue };
            let message = self.message(pong.said[0], content, &instead);
            let name = self.sockets.get(&connection).cloned().unwrap_or_default();
            rules.add(condition, format!("{name}.send({message});"));
        }
        let replies = outline
            .replies
            .iter()
            .enumerate()
            .flat_map(|(index, all)| all.iter().map(move |one| (index, one)));
        for (index, replies) in replies.filter(|(_, one)| one.connection == connection) {
            let step = &outline.loops[index].1[replies.step];
            let name = self.operation_of(step.item);
            let condition = self.condition(replies.item, "data", false);
            let (key, counter) = self.reply_key(replies, &name);
            rules.add(condition, format!("bot.answered({}, {key});", string(&name)));
            rules.declare(counter.map(|counter| format!("{counter} = 0")));
        }
        // Only one kind of message can be the tick.
        if let Some(tick) = outline.ticks.first().filter(|tick| tick.connection == connection) {
            let condition = self.condition(tick.item, "data", false);
            rules.add(condition, "bot.tick();".to_owned());
        }
        let followed = self.followed.clone();
        for (item, place, name, value) in
            followed.iter().filter(|one| self.scene.items[one.0].connection == connection)
        {
            let condition = self.condition(*item, "data", false);
            if let Piece::Code { js, .. } = self.heard_now(*item, place) {
                rules.add(condition, format!("{name} = {js};"));
                rules.declare(Some(format!("{name}: any = {value}")));
            }
        }
        rules.0.sort_by_key(|rule| rule.condition.is_none());
        rules.0
    }

    /// The key of a reply, and the counter that it takes.
    fn reply_key(&mut self, replies: &Replies, name: &str) -> (String, Option<String>) {
        let Key::Same { heard, .. } = &replies.key else {
            let counter = self.free(&word(&format!("{name} replies")));
            let remark = format!(
                "replies to {} are told by their order; where messages to others look alike, tell which are this client's",
                string(name)
            );
            self.remarks.push(remark);
            return (format!("{counter}++"), Some(counter));
        };
        let Piece::Code { js, is_text } = self.heard_now(replies.item, heard) else {
            return ("undefined".to_owned(), None);
        };
        let item = &self.scene.items[replies.item];
        let is_number = item.value(heard).is_some_and(|value| value.parse::<f64>().is_ok());
        (if is_text && is_number { format!("Number({js})") } else { js }, None)
    }

    /// A value of the message that a handler hears.
    fn heard_now(&mut self, at: usize, place: &Place) -> Piece {
        let item = &self.scene.items[at];
        match (place.first(), &item.form) {
            (Some(Step::Id), Form::Json { before, .. }) => {
                Piece::code(format!("Number.parseInt(data.slice({}))", before.chars().count()), false)
            }
            (Some(Step::Word(at)), _) => {
                self.help(Helper::Words);
                Piece::code(format!("words(data)[{at}]"), true)
            }
            _ => {
                self.help(Helper::Json);
                Piece::code(self.way("json(data)", place), item.leaf(place).is_some_and(|leaf| leaf.is_text))
            }
        }
    }
}

/// A branch of a handler.
struct Rule {
    /// `None`: every message
    condition: Option<String>,
    does: Vec<String>,
    /// before the handler
    declares: Vec<String>,
}

/// The branches of a handler, each condition once.
#[derive(Default)]
struct Rules(Vec<Rule>);

impl Rules {
    fn add(&mut self, condition: Option<String>, does: String) {
        let at = self.0.iter().position(|rule| rule.condition == condition);
        let mut rule =
            at.map_or(Rule { condition, does: Vec::new(), declares: Vec::new() }, |at| self.0.remove(at));
        rule.does.push(does);
        // The last is the one that was added last, for `declare`.
        self.0.push(rule);
    }

    fn declare(&mut self, text: Option<String>) {
        if let Some(rule) = self.0.last_mut() {
            rule.declares.extend(text);
        }
    }
}

fn counter(base: i64, step: i64) -> String {
    let times = match step {
        1 => "n".to_owned(),
        -1 => "-n".to_owned(),
        _ => format!("n * {step}"),
    };
    match base {
        0 => times,
        _ if base < 0 => format!("{times} - {}", base.unsigned_abs()),
        _ if step == -1 => format!("{base} - n"),
        _ => format!("{times} + {base}"),
    }
}

/// A key as a number where it is one, so that text and number of both sides are the same key.
fn as_number(pieces: &[Piece], place: &Place) -> String {
    match pieces {
        [Piece::Code { js, is_text: false }] => js.clone(),
        pieces if matches!(place.last(), Some(Step::Id)) => format!("Number({})", joined(pieces)),
        pieces => joined(pieces),
    }
}

fn last_name(place: &Place) -> String {
    let name = place.iter().rev().find_map(|step| match step {
        Step::Key(key) => Some(key.clone()),
        Step::Header(name) | Step::Cookie(name) => Some(name.clone()),
        Step::Id => Some("id".to_owned()),
        _ => None,
    });
    name.unwrap_or_else(|| "values".to_owned())
}

fn uses_n(line: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$';
    line.match_indices('n').any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + 1..].chars().next();
        !before.is_some_and(|letter| is_name(letter) || letter == '.') && !after.is_some_and(is_name)
    })
}
