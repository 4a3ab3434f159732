//! What a script asks for, carried out: connections, messages, questions, steps, ticks and counts.

use std::mem;

use drivers::any::{HttpVersion, Protocol, Send};
use drivers::tcp::Frames;
use engine::{BotContext, RequestId, SendLag};
use script::{Command, Data, Key};

use super::destination::Place;
use super::names::{Causes, FAILED, THREW, UNEXPECTED};
use super::requests::Wanted;
use super::tell::tell_of;
use super::{AnyDriver, NO_CLOSE_FRAME, Scripts};
use crate::ends;

const NO_CODE: u16 = 1005;
/// A server's time of a tick that lies farther away is of another clock.
const CLOCKS_APART_MS: f64 = 60_000.0;

/// Headers that the handshake writes itself, and what would end a line.
fn can_be_sent((name, value): &(String, String)) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name.bytes().all(is_token)
        && !matches!(lower.as_str(), "upgrade" | "connection")
        && !lower.starts_with("sec-websocket-")
        && !value.contains(|letter: char| letter.is_control() && letter != '\t')
}

fn frames_of(frames: script::Frames) -> Frames {
    match frames {
        script::Frames::Lines => Frames::Lines,
        script::Frames::U8 => Frames::U8,
        script::Frames::U16Be => Frames::U16Be,
        script::Frames::U16Le => Frames::U16Le,
        script::Frames::U32Be => Frames::U32Be,
        script::Frames::U32Le => Frames::U32Le,
        script::Frames::Raw => Frames::Raw,
    }
}

impl<D: AnyDriver> Scripts<D> {
    /// Does what the script asked for, which may ask for more.
    pub(super) fn carry_out(&mut self, ctx: &mut BotContext<'_, D>) {
        loop {
            let mut commands = mem::take(&mut self.commands);
            match &mut self.script {
                Ok(script) => script.take_commands(&mut commands),
                Err(_) => return,
            }
            let is_done = commands.is_empty();
            for (bot, command) in commands.drain(..) {
                self.carry_out_one(bot, command, ctx);
            }
            self.commands = commands;
            if is_done {
                return;
            }
        }
    }

    fn carry_out_one(&mut self, bot: u32, command: Command, ctx: &mut BotContext<'_, D>) {
        if self.bots[bot as usize].has_ended {
            return;
        }
        tell_of(&command, ctx.now_ns());
        match command {
            Command::Open { socket, url, protocols, headers } => {
                self.open_websocket(bot, socket, &url, protocols, headers, ctx);
            }
            Command::OpenTcp { socket, host, port, frames } => {
                let place = self.home.place(host.as_deref(), port);
                let speaks = Protocol::Tcp(frames_of(frames));
                self.open(bot, socket, &Place { scheme: "", authority: &place, path: "" }, speaks, ctx);
            }
            Command::OpenUdp { socket, host, port } => {
                let place = self.home.place(host.as_deref(), port);
                let place = Place { scheme: "", authority: &place, path: "" };
                self.open(bot, socket, &place, Protocol::Udp, ctx);
            }
            Command::Send { socket, data, planned_ns } => self.send(bot, socket, &data, planned_ns, ctx),
            Command::Close { socket, code, reason } => {
                let Some(connection) = self.connection_of(bot, socket) else { return };
                ctx.close(connection);
                self.bots[bot as usize].sockets.retain(|(known, _)| *known != socket);
                if let Ok(script) = &mut self.script {
                    script.closed(bot, socket, code.unwrap_or(NO_CODE), &reason, true, ctx.now_ns());
                }
            }
            Command::Request { request, method, url, headers, body, operation, planned_ns } => {
                let op = self.causes.of_request(&operation);
                let place = Place::of(&url);
                let speaks = Protocol::Http(HttpVersion::Any);
                match self.home.address(&place, speaks, ctx) {
                    Ok(address) => {
                        let path = address.path.clone();
                        let wanted = Wanted { number: request, op, planned_ns, method, path, headers, body };
                        self.request(bot, wanted, address, ctx);
                    }
                    Err(words) => self.request_failed(bot, request, &words, ctx),
                }
            }
            Command::Cancel { request } => self.cancel(bot, request, ctx),
            Command::Timer { id, at_ns } => ctx.at(at_ns, bot, id),
            Command::Ask { operation, key, planned_ns } => {
                self.bots[bot as usize].asking = Some((operation, key, planned_ns));
            }
            Command::Asked => self.ask_without_message(bot, ctx),
            Command::Answered { operation, key } => {
                let request = self.bots[bot as usize].asked.remove(&(operation, key));
                if !request.is_some_and(|request| ctx.answered(request, ctx.now_ns())) {
                    ctx.count(UNEXPECTED, 1);
                }
            }
            Command::MeasureBegin { operation, key, planned_ns } => {
                let request = ctx.begin(operation, planned_ns);
                self.bots[bot as usize].measured.push((key, request));
            }
            Command::MeasureEnd { key, ok } => {
                let measured = &mut self.bots[bot as usize].measured;
                let Some(at) = measured.iter().position(|(known, _)| *known == key) else { return };
                let (_, request) = measured.swap_remove(at);
                let _ = if ok { ctx.answered(request, ctx.now_ns()) } else { ctx.failed(request) };
            }
            Command::Ready => self.is_in(bot),
            Command::Tick { time_ms } => self.tick(bot, time_ms, ctx),
            Command::CheckFailed(check) => {
                ctx.error_with(Causes::check(check), || "it did not hold".to_owned());
            }
            Command::Failed(words) => ctx.error_with(FAILED, || words),
            Command::Threw(words) => ctx.error_with(THREW, || words),
            Command::Count(counter, more) => ctx.count(Causes::counter(counter), more),
            Command::Ended => self.end(bot, ctx),
            // Refused before the run, where the text says so.
            Command::Join { .. }
            | Command::Leave { .. }
            | Command::Sent { .. }
            | Command::Received { .. } => {
                ctx.error_with(THREW, || "bot.room is not built yet".to_owned());
            }
            Command::Record { .. } => ctx.error_with(THREW, || "bot.record is not built yet".to_owned()),
            Command::Log(..) => {}
        }
    }

    fn open_websocket(
        &mut self,
        bot: u32,
        socket: u32,
        url: &str,
        protocols: Vec<String>,
        headers: Vec<(String, String)>,
        ctx: &mut BotContext<'_, D>,
    ) {
        let address = match headers.iter().find(|one| !can_be_sent(one)) {
            Some((name, _)) => Err(format!(
                "the header {} cannot be sent with a WebSocket handshake",
                ends::shown(name.as_bytes())
            )),
            None => self.home.address(&Place::of(url), Protocol::WebSocket, ctx),
        };
        match address {
            Ok(mut address) => {
                address.upgrade.headers.extend(headers);
                address.upgrade.subprotocols.extend(protocols);
                let connection = ctx.open_at(bot, address);
                self.bots[bot as usize].sockets.push((socket, connection));
            }
            Err(words) => self.cannot_open(bot, socket, words, ctx),
        }
    }

    fn open(
        &mut self,
        bot: u32,
        socket: u32,
        place: &Place<'_>,
        speaks: Protocol,
        ctx: &mut BotContext<'_, D>,
    ) {
        match self.home.address(place, speaks, ctx) {
            Ok(address) => {
                let connection = ctx.open_at(bot, address);
                self.bots[bot as usize].sockets.push((socket, connection));
            }
            Err(words) => self.cannot_open(bot, socket, words, ctx),
        }
    }

    fn cannot_open(&mut self, bot: u32, socket: u32, words: String, ctx: &mut BotContext<'_, D>) {
        if let Ok(script) = &mut self.script {
            script.closed(bot, socket, NO_CLOSE_FRAME, &words, false, ctx.now_ns());
        }
        ctx.error_with(FAILED, || words);
    }

    fn send(&mut self, bot: u32, socket: u32, data: &Data, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let message = match data {
            Data::Text(text) => Send::Text(text.as_bytes()),
            Data::Binary(bytes) => Send::Binary(bytes),
        };
        let connection = self.connection_of(bot, socket);
        let asking = self.bots[bot as usize].asking.take();
        match (connection, asking) {
            (None, Some((operation, _, planned_ns))) => ctx.not_sent(operation, planned_ns),
            (None, None) => ctx.not_sent(self.causes.message, planned_ns),
            (Some(connection), None) => ctx.send(connection, self.causes.message, planned_ns, message),
            (Some(connection), Some((operation, key, planned_ns))) => {
                let lag = SendLag::Unrecorded;
                if let Some(request) = ctx.request(connection, operation, planned_ns, lag, message) {
                    self.note(bot, operation, key, request, ctx);
                }
            }
        }
    }

    /// A question whose message did not leave in its turn: the script sends it later, or another way.
    fn ask_without_message(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        let Some((operation, key, planned_ns)) = self.bots[bot as usize].asking.take() else { return };
        let request = ctx.begin(operation, planned_ns);
        self.note(bot, operation, key, request, ctx);
    }

    fn note(
        &mut self,
        bot: u32,
        operation: usize,
        key: Key,
        request: RequestId,
        ctx: &mut BotContext<'_, D>,
    ) {
        let earlier = self.bots[bot as usize].asked.insert((operation, key), request);
        // Which of two an answer would mean is not known; the earlier one has none.
        if let Some(earlier) = earlier {
            ctx.failed(earlier);
            ctx.error_with(THREW, || {
                "bot.ask: the same name and key were asked again before the answer".to_owned()
            });
        }
    }

    fn tick(&mut self, bot: u32, time_ms: Option<f64>, ctx: &mut BotContext<'_, D>) {
        if !self.tells_ticks {
            return;
        }
        let now_ns = ctx.now_ns();
        let now_ms = ctx.realtime_ns(now_ns) as f64 / 1e6;
        let age_ms = time_ms.map(|time_ms| now_ms - time_ms);
        let age_ns = age_ms.filter(|age| (0.0..CLOCKS_APART_MS).contains(age)).map(|age| (age * 1e6) as u64);
        let Some(last_ns) = self.bots[bot as usize].last_tick_ns.replace(now_ns) else { return };
        let interval_ns = now_ns.saturating_sub(last_ns);
        let interval_ms = now_ns / 1_000_000 - last_ns / 1_000_000;
        // A tick has no number here: what should have come in the time between never did.
        let periods = (interval_ns + self.tick_period_ns / 2) / self.tick_period_ns.max(1);
        ctx.tick(now_ns, interval_ns, interval_ms, periods.saturating_sub(1), age_ns);
    }

    /// Its function has returned.
    fn end(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        self.is_outside_for_good(bot, "its function ended before the bot was in", ctx);
        let ended = &mut self.bots[bot as usize];
        ended.has_ended = true;
        for (_, connection) in mem::take(&mut ended.sockets) {
            ctx.close(connection);
        }
        // What it asked by no connection of its own has no answer any more.
        let asked = mem::take(&mut ended.asked).into_values();
        for request in asked.chain(mem::take(&mut ended.measured).into_iter().map(|(_, request)| request)) {
            ctx.lose(request);
        }
        for connection in ended.requests.take().into_iter().flat_map(|requests| requests.connections()) {
            ctx.close(connection);
        }
        if let Ok(script) = &mut self.script {
            script.forget(bot, ctx.now_ns());
        }
    }
}
