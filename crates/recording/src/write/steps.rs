//! What is said once, in order: connections, messages, requests, what is waited for, and the pauses between.

use std::collections::{BTreeMap, BTreeSet};

use super::helpers::Helper;
use super::{IDENTITIES, READY_NS_MAX, STEPS_MAX, Writer, counted};
use crate::actions::Deed;
use crate::content::{Form, normal};
use crate::literal::{joined, string};
use crate::outline::Ending;
use crate::session::Opening;

impl Writer<'_> {
    /// All steps in order.
    pub(super) fn body(&mut self) {
        let items = &self.scene.items;
        let begin_ns = items.iter().find(|item| item.is_said()).map_or(0, |item| item.at_ns);
        let (mut now_ns, mut steps) = (begin_ns, 0);
        let mut left_out = 0;
        let last_loop = self.outline.begins.keys().next_back().copied();
        let mut closed: BTreeSet<usize> = BTreeSet::new();
        let mut pending: Option<usize> = None;
        for at in 0..items.len() {
            let item = &items[at];
            if steps >= STEPS_MAX && item.is_said() {
                left_out += 1;
                continue;
            }
            if let Some(one) = self.outline.begins.get(&at).copied() {
                self.pause(item.at_ns.saturating_sub(now_ns));
                now_ns = item.at_ns;
                self.ready();
                self.handlers();
                let rest = self.outline.scene.items.iter().enumerate().skip(at + 1);
                let is_last = Some(at) == last_loop
                    && !rest.into_iter().any(|(at, item)| item.is_said() && self.outline.is_step(at));
                self.one_loop(one, is_last);
                steps += 1;
                continue;
            }
            let is_awaited = self.outline.awaited.contains(&at);
            let is_close = matches!(item.deed, Deed::Close) && at < self.outline.end;
            let is_answer = matches!(item.deed, Deed::Answer(_)) && self.is_asked(item.connection);
            if !(item.is_said() && self.outline.is_step(at) || is_awaited || is_close || is_answer) {
                if item.is_said() && at >= self.outline.end {
                    left_out += 1;
                }
                continue;
            }
            if !is_awaited && !is_answer {
                self.pause(item.at_ns.saturating_sub(now_ns));
                if item.at_ns.saturating_sub(begin_ns) > READY_NS_MAX {
                    self.ready();
                }
            }
            now_ns = now_ns.max(item.at_ns);
            steps += 1;
            match &item.deed {
                Deed::Open(opening) => self.open(at, opening),
                Deed::Sent(content) => {
                    let message = self.message(at, content, &BTreeMap::new());
                    self.line(format!("{}.send({message});", self.socket(item.connection)));
                }
                Deed::Heard(_) => self.hear(at),
                Deed::Ask(_) => {
                    let next = self.next_step(at);
                    let is_next = next.is_some_and(|next| {
                        matches!(items[next].deed, Deed::Answer(_))
                            && items[next].connection == item.connection
                    });
                    if is_next {
                        pending = Some(at);
                    } else {
                        let call = self.request(at, &BTreeMap::new());
                        let name = self.free("answer");
                        self.line(format!("const {name} = {call};"));
                        self.sockets.insert(item.connection, name);
                    }
                }
                Deed::Answer(_) => {
                    let call = match pending.take() {
                        Some(asked) => format!("await {}", self.request(asked, &BTreeMap::new())),
                        None => format!("await {}", self.socket(item.connection)),
                    };
                    self.answer(at, &call);
                }
                Deed::Close => {
                    closed.insert(item.connection);
                    self.line(format!("{}.close();", self.socket(item.connection)));
                }
                Deed::Ended => {}
            }
            if self.outline.ending == Ending::Repeats && matches!(item.deed, Deed::Open(_) | Deed::Answer(_))
            {
                self.ready();
            }
        }
        self.end(&closed, left_out);
    }

    /// The end of the steps: what a bot does until the climb ends.
    fn end(&mut self, closed: &BTreeSet<usize>, left_out: usize) {
        let is_open = |(connection, _): &(&usize, &String)| !closed.contains(connection);
        if self.outline.ending == Ending::Repeats {
            let open: Vec<String> = self
                .sockets
                .iter()
                .filter(is_open)
                .filter(|(connection, _)| self.is_connection(**connection))
                .map(|(_, name)| name.clone())
                .collect();
            for name in open {
                self.line(format!("{name}.close();"));
            }
        } else if self.background {
            self.handlers();
            self.line("await Promise.all(loops);");
        } else if self.outline.loops.is_empty() {
            self.ready();
            self.handlers();
            self.line("await bot.sleep(\"60min\"); // The client listened from here on.");
        }
        if left_out > 0 {
            self.remarks.push(format!("left out: {} at the end of the session, when the client left; a bot stays until the climb ends", counted(left_out, "message or request", "messages and requests")));
        }
        if self.scene.refused > 0 {
            self.remarks.push(format!(
                "left out: {} that the server refused or never answered",
                counted(self.scene.refused, "request", "requests")
            ));
        }
        if self.scene.streams > 0 {
            self.remarks.push(format!(
                "left out: {}; open it with new EventSource(path)",
                counted(self.scene.streams, "stream of events", "streams of events")
            ));
        }
        let has_bytes = self.scene.items.iter().any(|item| matches!(&item.deed, Deed::Sent(content) if item.form == Form::Bytes && !content.bytes.is_empty()));
        if has_bytes {
            self.remarks.push("binary messages are said as recorded: values in them are not traced, and a secret in them would not be seen".to_owned());
        }
        let identity = self
            .scene
            .items
            .iter()
            .filter(|item| item.is_said())
            .flat_map(|item| &item.leaves)
            .find(|leaf| leaf.is_text && IDENTITIES.contains(&normal(&leaf.name).as_str()));
        if let Some(leaf) = identity {
            self.remarks.push(format!(
                "all bots have the same {}; where each needs its own, put bot.id in it, or take bot.row",
                string(&leaf.name)
            ));
        }
    }

    fn is_connection(&self, connection: usize) -> bool {
        self.scene
            .items
            .iter()
            .any(|item| item.connection == connection && matches!(item.deed, Deed::Open(_)))
    }

    /// Whether the request of an exchange is a step.
    fn is_asked(&self, connection: usize) -> bool {
        let asked = self
            .scene
            .items
            .iter()
            .position(|item| item.connection == connection && matches!(item.deed, Deed::Ask(_)));
        asked.is_some_and(|at| self.outline.is_step(at))
    }

    /// What the bot does after a step.
    fn next_step(&self, at: usize) -> Option<usize> {
        let items = self.scene.items.iter().enumerate().skip(at + 1);
        items.into_iter().find_map(|(next, item)| {
            let is_answer = matches!(item.deed, Deed::Answer(_)) && self.is_asked(item.connection);
            let is_step =
                item.is_said() && self.outline.is_step(next) || self.outline.begins.contains_key(&next);
            let is_close = matches!(item.deed, Deed::Close) && next < self.outline.end;
            (is_answer || is_step || is_close || self.outline.awaited.contains(&next)).then_some(next)
        })
    }

    pub(super) fn socket(&self, connection: usize) -> String {
        self.sockets.get(&connection).cloned().unwrap_or_else(|| "undefined".to_owned())
    }

    fn open(&mut self, at: usize, opening: &Opening) {
        let connection = self.scene.items[at].connection;
        let (wanted, call) = match opening {
            Opening::Tcp => ("tcp", format!("bot.tcp({{ frames: {} }})", string(&self.frames.name()))),
            Opening::WebSocket { elsewhere, path, headers } => {
                let url = self.url(at, elsewhere.as_deref(), path, "ws", &BTreeMap::new());
                let protocols =
                    headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"));
                let protocols: Vec<String> = protocols
                    .flat_map(|(_, value)| value.split(','))
                    .map(|one| joined(&self.outline.secrets.cut(one.trim())))
                    .collect();
                let mut options = Vec::new();
                let headers = self.headers(at, headers, &BTreeMap::new());
                if !headers.is_empty() {
                    options.push(format!("headers: {headers}"));
                }
                if !protocols.is_empty() {
                    options.push(format!("protocols: [{}]", protocols.join(", ")));
                }
                let options = if options.is_empty() {
                    String::new()
                } else {
                    format!(", {{ {} }}", options.join(", "))
                };
                ("ws", format!("bot.websocket({url}{options})"))
            }
        };
        let name = self.free(wanted);
        self.line(format!("const {name} = await {call};"));
        self.sockets.insert(connection, name);
    }

    /// Waits for a message, and keeps what is used of it.
    fn hear(&mut self, at: usize) {
        let connection = self.scene.items[at].connection;
        let matching = self.condition(at, "data", true).map_or(String::new(), |is| format!("(data) => {is}"));
        let heard = format!("await {}.next({matching})", self.socket(connection));
        let uses = self.uses.get(&at).copied().unwrap_or_default();
        let name = self.names.get(&at).cloned().unwrap_or_default();
        match (uses.json, uses.text) {
            (false, false) => self.line(format!("{heard};")),
            (true, false) => {
                self.help(Helper::Json);
                self.line(format!("const {name} = json({heard});"));
            }
            (is_json, _) => {
                self.help(Helper::Text);
                self.line(format!("const {name}Text = text({heard});"));
                if is_json {
                    self.help(Helper::Json);
                    self.line(format!("const {name} = json({name}Text);"));
                }
            }
        }
    }

    /// Reads an answer whole, and keeps what is used of it. `call`: an expression of its response.
    pub(super) fn answer(&mut self, at: usize, call: &str) {
        let uses = self.uses.get(&at).copied().unwrap_or_default();
        let name = self.names.get(&at).cloned().unwrap_or_default();
        let response = if uses.answer {
            self.line(format!("const {name}Answer = {call};"));
            format!("{name}Answer")
        } else {
            format!("({call})")
        };
        match (uses.json, uses.text) {
            (false, false) => self.line(format!("await {response}.text();")),
            (true, false) => self.line(format!("const {name} = await {response}.json();")),
            (is_json, _) => {
                self.line(format!("const {name}Text = await {response}.text();"));
                if is_json {
                    self.line(format!("const {name} = JSON.parse({name}Text);"));
                }
            }
        }
    }
}
