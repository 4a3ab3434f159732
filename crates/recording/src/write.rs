//! The bot as TypeScript: its head, its steps in order, its loops, and the few helpers that it needs.

mod expressions;
mod helpers;
mod loops;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use crate::actions::{Deed, Scene, operation};
use crate::content::Place;
use crate::frames::Frames;
use crate::literal::{remark, string, word};
use crate::outline::{Ending, Field, Outline};
use crate::session::{Opening, Session};
use crate::trace::{Found, Source};
use helpers::Helper;

/// A distance below this is the client's own time to answer.
const PAUSE_NS_MIN: u64 = 20_000_000;
/// A bot has to be in by then.
const READY_NS_MAX: u64 = 10_000_000_000;
/// More steps than a reader follows.
const STEPS_MAX: usize = 2_000;
/// Names that the bot uses itself, and words of the language.
const TAKEN: &str = "bot n data message options client session json text words bytes cookie between pick decoder loops fetch atob decodeURIComponent encodeURIComponent \
    arguments async await break case catch class const continue debugger default delete do else enum eval export extends false finally for function if implements import in instanceof interface let new null package private protected public return static super switch this throw true try typeof undefined var void while with yield";
/// Names of fields that tell who a client is.
const IDENTITIES: [&str; 8] = ["name", "user", "username", "nick", "nickname", "email", "login", "player"];

/// A written bot, and what to tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// TypeScript
    pub text: String,
    /// values that came from the server
    pub variables: usize,
    /// environment variables that the bot reads, for `--env`
    pub env: Vec<String>,
    /// messages and requests that repeat
    pub loops: usize,
    /// what a person should look at; sentences without a full stop
    pub remarks: Vec<String>,
}

/// Nothing in the session is a client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client said nothing that a bot could say: no message, and {}", match .0 { 0 => "no request".to_owned(), count => format!("only requests that the server refused ({count})") })]
pub struct NothingSaid(
    /// requests that the server refused or never answered
    pub usize,
);

/// Writes the bot. `file`: its name, for the commands in its head; `frames`: of TCP connections.
pub fn write_bot(session: &Session, file: &str, frames: Frames) -> Result<Written, NothingSaid> {
    let scene = Scene::of(session);
    if !scene.items.iter().any(|item| item.is_said()) {
        return Err(NothingSaid(scene.refused));
    }
    let outline = scene.outline();
    let mut writer = Writer::new(&outline, frames);
    writer.body();
    Ok(writer.finish(file))
}

/// In which forms a message or an answer is used.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    json: bool,
    text: bool,
    answer: bool,
}

struct Writer<'a> {
    outline: &'a Outline<'a>,
    scene: &'a Scene,
    frames: Frames,
    lines: Vec<String>,
    indent: usize,
    helpers: BTreeSet<Helper>,
    taken: BTreeSet<String>,
    /// of each message or answer that is used
    names: BTreeMap<usize, String>,
    uses: BTreeMap<usize, Uses>,
    /// of each connection
    sockets: BTreeMap<usize, String>,
    handled: BTreeSet<usize>,
    /// connections over TCP
    tcp: BTreeSet<usize>,
    /// variables that follow what the server says: first message, place, name, and the recorded value
    followed: Vec<(usize, Place, String, String)>,
    /// lists of recorded values, before the function
    lists: Vec<String>,
    remarks: Vec<String>,
    is_ready: bool,
    background: bool,
}

impl<'a> Writer<'a> {
    fn new(outline: &'a Outline<'a>, frames: Frames) -> Writer<'a> {
        let mut writer = Writer {
            outline,
            scene: outline.scene,
            frames,
            lines: Vec::new(),
            indent: 1,
            helpers: BTreeSet::new(),
            taken: TAKEN.split_whitespace().map(str::to_owned).collect(),
            names: BTreeMap::new(),
            uses: BTreeMap::new(),
            sockets: BTreeMap::new(),
            handled: BTreeSet::new(),
            tcp: outline
                .scene
                .items
                .iter()
                .filter(|item| matches!(item.deed, Deed::Open(Opening::Tcp)))
                .map(|item| item.connection)
                .collect(),
            followed: Vec::new(),
            lists: Vec::new(),
            remarks: Vec::new(),
            is_ready: false,
            background: false,
        };
        writer.find_uses();
        writer.find_followed();
        writer
    }

    fn find_uses(&mut self) {
        let outline = self.outline;
        let mut note = |source: &Source| {
            let Source::Heard(item, found) = source else { return };
            let uses = self.uses.entry(*item).or_default();
            match found {
                Found::Between(..) => uses.text = true,
                Found::At(place, _) => match place.first() {
                    Some(crate::content::Step::Header(_) | crate::content::Step::Cookie(_)) => {
                        uses.answer = true
                    }
                    Some(crate::content::Step::Key(_) | crate::content::Step::At(_)) => uses.json = true,
                    _ => uses.text = true,
                },
            }
        };
        outline.traced.values().flat_map(BTreeMap::values).flatten().for_each(&mut note);
        let fields = outline.loops.iter().flat_map(|(_, steps)| steps).flat_map(|step| step.fields.values());
        for field in fields {
            match field {
                Field::Traced(sources) => sources.iter().for_each(&mut note),
                Field::Pick { item, list, .. } => note(&Source::Heard(*item, Found::At(list.clone(), true))),
                Field::Count { .. } | Field::Rows(_) | Field::Latest(..) => {}
            }
        }
        let named: Vec<usize> = self.uses.keys().copied().collect();
        for item in named {
            let name = self.name_of(item);
            self.names.insert(item, name);
        }
    }

    /// A name for what the server said, from what it is called there.
    fn name_of(&mut self, at: usize) -> String {
        let item = &self.scene.items[at];
        let wanted = match &item.deed {
            Deed::Answer(_) => {
                let asked = self.scene.items.iter().find_map(|one| match &one.deed {
                    Deed::Ask(request) if one.connection == item.connection => Some(operation(request)),
                    _ => None,
                });
                let path = asked.unwrap_or_default();
                let (_, path) = path.split_once('/').unwrap_or_default();
                let last = path.rsplit('/').find(|part| !part.is_empty() && *part != ":id").map(word);
                last.filter(|name| !name.is_empty()).unwrap_or_else(|| "page".to_owned())
            }
            _ => self.kind_of(at).map(|kind| word(&kind)).unwrap_or_default(),
        };
        let wanted = if wanted.is_empty() { "reply".to_owned() } else { wanted };
        self.free(&wanted)
    }

    /// What kind of message it says that it is.
    fn kind_of(&self, at: usize) -> Option<String> {
        let leaves = &self.scene.items[at].leaves;
        let kind = leaves.iter().find(|leaf| leaf.is_kind && leaf.is_text).map(|leaf| leaf.value.clone());
        kind.filter(|kind| !word(kind).is_empty())
    }

    fn free(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut count = 1;
        while !self.taken.insert(name.clone()) {
            count += 1;
            name = format!("{wanted}{count}");
        }
        name
    }

    fn line(&mut self, text: impl AsRef<str>) {
        self.lines.push(format!("{}{}", "  ".repeat(self.indent), text.as_ref()));
    }

    fn pause(&mut self, ns: u64) {
        if ns >= PAUSE_NS_MIN {
            self.line(format!("await bot.sleep({});", string(&duration(ns))));
        }
    }

    fn ready(&mut self) {
        if !std::mem::replace(&mut self.is_ready, true) {
            self.line("bot.ready();");
        }
    }

    fn help(&mut self, helper: Helper) {
        if let Some(other) = helper.needs() {
            self.help(other);
        }
        self.helpers.insert(helper);
    }

    fn finish(mut self, file: &str) -> Written {
        let env = self.outline.secrets.names();
        let mut out = String::new();
        let given: String = env.iter().map(|name| format!(" --env {name}")).collect();
        let set: String = env.iter().map(|name| format!("{name}=… ")).collect();
        let (file, target) = (remark(file), remark(&self.scene.target));
        out += "// Written from the recorded session of one client.\n";
        out += &format!("//   {set}stepladder try {file} --target {target}{given}\n");
        out += &format!("//   {set}stepladder climb {file} --target {target}{given} --rungs 10,50,100\n");
        if !env.is_empty() {
            self.remarks.insert(0, format!("secrets are read from the environment: {}", env.join(", ")));
        }
        for one in &self.remarks {
            out += &format!("// Note: {}.\n", remark(one).replace("\\\"", "\""));
        }
        out += "import type { Bot, Options } from \"stepladder\";\n\n";
        out += &self.options();
        for list in &self.lists {
            out += list;
            out.push('\n');
        }
        if !self.lists.is_empty() {
            out.push('\n');
        }
        if self.outline.ending == Ending::Repeats {
            let items = &self.scene.items;
            let lasts_ns =
                items.last().map_or(0, |item| item.at_ns) - items.first().map_or(0, |item| item.at_ns);
            let period_ns = (lasts_ns + 500_000_000).div_ceil(500_000_000) * 500_000_000;
            let phase = if period_ns > READY_NS_MAX { ", { phase: 0 }" } else { "" };
            out += "export default async function client(bot: Bot) {\n";
            out += "  // Nothing in the session repeats, so each bot plays all of it again and again.\n";
            out += &format!(
                "  for await (const _ of bot.every({}{phase})) await session(bot);\n}}\n\n",
                string(&duration(period_ns))
            );
            out += "async function session(bot: Bot) {\n";
        } else {
            out += "export default async function client(bot: Bot) {\n";
        }
        for line in &self.lines {
            out += line;
            out.push('\n');
        }
        out += "}\n";
        for helper in &self.helpers {
            out += "\n";
            out += helper.text();
        }
        Written {
            text: out,
            variables: self.uses.len() + self.followed.len(),
            env,
            loops: self.outline.loops.len(),
            remarks: self.remarks,
        }
    }

    fn options(&self) -> String {
        let asks = self.scene.items.iter().any(|item| matches!(item.deed, Deed::Ask(_)));
        let measures = asks || self.outline.replies.iter().any(|all| !all.is_empty());
        let mut objectives = vec!["\"errors == 0\""];
        if measures {
            objectives.insert(0, "\"response.p99 < 500ms\"");
        }
        let ticks = self
            .outline
            .ticks
            .first()
            .map(|tick| format!(" ticks: {},", string(&duration(tick.period_ns))))
            .unwrap_or_default();
        format!(
            "export const options: Options = {{ hold: \"30s\",{ticks} objectives: [{}] }};\n\n",
            objectives.join(", ")
        )
    }
}

/// As `bot.sleep` takes it.
fn duration(ns: u64) -> String {
    let ms = (ns as f64 / 1e5).round() / 10.0;
    if ms >= 1000.0 { format!("{}s", (ms / 10.0).round() / 100.0) } else { format!("{ms}ms") }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
