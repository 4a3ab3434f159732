//! Executes a script's calls: connections, messages, requests, steps, ticks and counts.

use std::mem;

use drivers::Address;
use drivers::any::{Protocol, Send};
use drivers::tcp::Frames;
use engine::{BotContext, RequestId, SendLag};
use measure::distribution::{LONGEST_NS, THOUSANDTHS};
use script::{Command, Data, Key};

use super::destination::Place;
use super::names::{Causes, FAILED, STOPPED, THREW, UNEXPECTED};
use super::requests::Wanted;
use super::tell::{tell, tell_of};
use super::{AnyDriver, CLOSE_WITHIN_NS, NO_CLOSE_FRAME, NO_CODE, Scripts, Socket, Stage};
use crate::disconnects;

const _: () = assert!(
    script::RECORDED_MAX * THOUSANDTHS <= LONGEST_NS as f64,
    "a distribution holds all that a script records"
);
/// If a server's tick time is farther away, it is from another clock.
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
        script::Frames::Until(end) => Frames::Until(end),
        script::Frames::Raw => Frames::Raw,
    }
}

impl<D: AnyDriver> Scripts<D> {
    /// Executes the script's requests, which may lead to more.
    pub(super) fn carry_out(&mut self, ctx: &mut BotContext<'_, D>) {
        loop {
            let mut commands = mem::take(&mut self.commands);
            match &mut self.script {
                Ok(script) => script.take_commands(&mut commands),
                Err(_) => return,
            }
            let is_done = commands.is_empty();
            let mut all = commands.drain(..).peekable();
            while let Some((bot, command)) = all.next() {
                // If the bot has not joined, what its function threw is the reason, not a second error.
                if let Command::Threw(words) = &command
                    && !self.bots[bot as usize].is_in
                    && self.bots[bot as usize].is_awaited
                    && all.next_if_eq(&(bot, Command::Broke)).is_some()
                {
                    tell_of(bot, &command, ctx.now_ns());
                    self.is_outside_for_good(bot, words, ctx);
                    self.end(bot, true, ctx);
                    continue;
                }
                self.carry_out_one(bot, command, ctx);
            }
            drop(all);
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
        tell_of(bot, &command, ctx.now_ns());
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
                self.close(bot, socket, code, &reason, ctx);
            }
            Command::Request { request, method, url, headers, body, operation, planned_ns } => {
                let op = self.causes.of_request(&operation);
                let place = Place::of(&url);
                let speaks = Protocol::Http(self.http);
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
            Command::Stopped(words) => ctx.error_with(STOPPED, || words),
            Command::Count(counter, more) => ctx.count(Causes::counter(counter), more),
            Command::Ended => self.end(bot, false, ctx),
            Command::Broke => self.end(bot, true, ctx),
            Command::Join { room } => {
                let now_ns = ctx.now_ns();
                ctx.ledger().joins(bot, &room, now_ns);
            }
            Command::Leave { room } => {
                let now_ns = ctx.now_ns();
                ctx.ledger().leaves(bot, &room, now_ns);
            }
            Command::Sent { room, seq, planned_ns } => self.said(bot, &room, seq, planned_ns, ctx),
            Command::Received { room, from, seq } => self.heard(bot, &room, from, seq, ctx),
            Command::Record { name, value, planned_ns } => {
                ctx.record_value(name, planned_ns, (value * THOUSANDTHS).round() as u64);
            }
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
                disconnects::shown(name.as_bytes())
            )),
            None => self.home.address(&Place::of(url), Protocol::WebSocket, ctx),
        };
        match address {
            Ok(mut address) => {
                address.upgrade.headers.extend(headers);
                // Those of --subprotocol are offered first; duplicates are not allowed.
                for name in protocols {
                    if !address.upgrade.subprotocols.contains(&name) {
                        address.upgrade.subprotocols.push(name);
                    }
                }
                self.open_at(bot, socket, address, ctx);
            }
            Err(words) => self.cannot_open(bot, socket, words, ctx),
        }
    }

    fn open_at(&mut self, bot: u32, number: u32, address: Address, ctx: &mut BotContext<'_, D>) {
        let bytes_max = address.speaks.message_bytes_max();
        let connection = ctx.open_at(bot, address);
        self.bots[bot as usize].sockets.push(Socket {
            number,
            connection,
            stage: Stage::Connecting,
            bytes_max,
        });
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
            Ok(address) => self.open_at(bot, socket, address, ctx),
            Err(words) => self.cannot_open(bot, socket, words, ctx),
        }
    }

    /// Over a WebSocket the end follows when the server has answered, or has not for too long.
    fn close(&mut self, bot: u32, number: u32, code: Option<u16>, reason: &str, ctx: &mut BotContext<'_, D>) {
        let Some(socket) = self.socket(bot, number) else { return };
        if ctx.follow(socket.connection, Send::Close { code, reason }) {
            socket.stage = Stage::Closing;
            self.look_at_membership(bot, ctx);
            return ctx.at(ctx.now_ns() + CLOSE_WITHIN_NS + ctx.network_allowance_ns(), bot, number);
        }
        // A socket that never opened fails, as in browsers; TCP and UDP have no closing handshake to wait for.
        let (code, reason, is_clean) = match socket.stage {
            Stage::Connecting => (NO_CLOSE_FRAME, "", false),
            Stage::Open | Stage::Closing => (code.unwrap_or(NO_CODE), reason, true),
        };
        ctx.close(socket.connection);
        self.forget_socket(bot, number, ctx);
        if let Ok(script) = &mut self.script {
            script.closed(bot, number, code, reason, is_clean, ctx.now_ns());
        }
    }

    /// The server has not answered a close in time.
    pub(super) fn close_in_vain(&mut self, bot: u32, number: u32, ctx: &mut BotContext<'_, D>) {
        let Some(socket) = self.socket(bot, number) else { return };
        ctx.close(socket.connection);
        self.forget_socket(bot, number, ctx);
        tell(bot, ctx.now_ns(), || "the server did not answer the close".to_owned());
        if let Ok(script) = &mut self.script {
            script.closed(bot, number, NO_CLOSE_FRAME, "", false, ctx.now_ns());
        }
    }

    fn cannot_open(&mut self, bot: u32, socket: u32, words: String, ctx: &mut BotContext<'_, D>) {
        if let Ok(script) = &mut self.script {
            script.closed(bot, socket, NO_CLOSE_FRAME, &words, false, ctx.now_ns());
        }
        ctx.error_with(FAILED, || words);
    }

    fn send(&mut self, bot: u32, socket: u32, data: &Data, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let (message, bytes) = match data {
            Data::Text(text) => (Send::Text(text.as_bytes()), text.len()),
            Data::Binary(bytes) => (Send::Binary(bytes), bytes.len()),
        };
        let socket = self.socket(bot, socket).map(|socket| (socket.connection, socket.bytes_max));
        let connection = socket.map(|(connection, _)| connection);
        // The driver refuses it, so it counts as not sent; the reason is known only here.
        if let Some((_, bytes_max)) = socket.filter(|(_, bytes_max)| bytes > *bytes_max) {
            ctx.error_with(FAILED, || {
                format!(
                    "a message of {bytes} bytes was not sent: its frame or datagram holds at most {bytes_max}"
                )
            });
        }
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
        // It is unknown which of the two an answer would belong to; the earlier one gets none.
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
        // Ticks have no numbers here: those that should have come in between never did.
        let periods = (interval_ns + self.tick_period_ns / 2) / self.tick_period_ns.max(1);
        ctx.tick(now_ns, interval_ns, interval_ms, periods.saturating_sub(1), age_ns);
    }

    /// Its function has returned, or failed.
    fn end(&mut self, bot: u32, has_failed: bool, ctx: &mut BotContext<'_, D>) {
        // For a later session this is reported only if the script says when it is in, and it did not fail.
        if !self.bots[bot as usize].is_awaited && (has_failed || !self.says_ready) {
            self.is_in(bot);
        }
        self.is_outside_for_good(bot, "its function ended before the bot was in", ctx);
        let ended = &mut self.bots[bot as usize];
        ended.has_ended = true;
        for socket in mem::take(&mut ended.sockets) {
            ctx.close(socket.connection);
        }
        self.look_at_membership(bot, ctx);
        let ended = &mut self.bots[bot as usize];
        // Its requests outside of its own connections can no longer be answered.
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
        self.session_ends(bot, has_failed, ctx);
    }
}
