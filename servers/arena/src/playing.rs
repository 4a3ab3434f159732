//! A thread's games: their ticks in their slots, their ends, and the messages to their players.

use std::sync::PoisonError;

use super::games::Game;
use super::inbox::{Address, SocketKey, ThreadEvent, ThreadMessage};
use super::message::{OPPONENT_DISCONNECTED, SHUTTING_DOWN, START_FRAME, Snapshot, Stop};
use super::options::Pairing;
use super::rules::Player;
use super::sockets::{Sending, Stage};
use super::thread::Thread;
use servers_shared::clock;
use servers_shared::websocket::close_code;

/// Why a game is over.
#[derive(Clone, Copy)]
enum Ending {
    WonBy(Player),
    SomeoneLeft,
    ShuttingDown,
}

impl Thread {
    pub(super) fn play_due_slots(&mut self) {
        if self.core.faults.now.stops_ticks {
            return;
        }
        // The clock is read once per tick: one game's end is the next one's start. It costs 25 ns, and no game's
        // tick is stamped with a time at which it was not yet running.
        let mut now_ns = clock::now_ns();
        let turn_ns = now_ns;
        let runs_ticks_late = self.core.faults.now.late_ticks.is_some();
        while let Some(slot) = self.games.next_due_slot(turn_ns) {
            if !runs_ticks_late {
                self.play_slot(slot, &mut now_ns);
            }
        }
        if runs_ticks_late {
            // A delayed tick becomes due between two visits of its slot, so every turn visits all of them.
            (0..self.games.grid.slots()).for_each(|slot| self.play_slot(slot, &mut now_ns));
        }
        self.played_ns = now_ns - turn_ns;
    }

    fn play_slot(&mut self, slot: usize, now_ns: &mut u64) {
        let mut i = 0;
        while let Some(over) = self.play(slot, i, now_ns) {
            if !over {
                i += 1;
            }
        }
    }

    /// Runs one game's due ticks. None when the slot has no such game; true when the game is over and removed.
    fn play(&mut self, slot: usize, i: usize, now_ns: &mut u64) -> Option<bool> {
        let grid = self.games.grid;
        let late_ticks = self.core.faults.now.late_ticks;
        self.games.foresee(slot, i);
        loop {
            let game = self.games.in_slot(slot, i)?;
            if late_ticks.is_some_and(|share| game.ticks.is_held_back(share, *now_ns)) {
                return Some(false);
            }
            let Some(tick) = game.ticks.take(&grid, *now_ns) else { return Some(false) };
            let ending = match game.play(tick.started_ns) {
                Some(winner) => Some(Ending::WonBy(winner)),
                None => game.shots.someone_left().then_some(Ending::SomeoneLeft),
            };
            if ending.is_none() && game.is_watched {
                let watchers =
                    game.seats.each_ref().map(|seat| seat.arrival.snapshots.then_some(seat.arrival.address));
                let snapshot = Snapshot::new(tick.n, self.shared.wall.epoch_us(tick.started_ns));
                for address in watchers.into_iter().flatten() {
                    self.deliver(address, ThreadEvent::Snapshot(snapshot));
                }
            }
            if let Some(ending) = ending
                && let Some(game) = self.games.remove(slot, i)
            {
                self.end(game, ending);
            }
            let started_ns = *now_ns;
            *now_ns = clock::now_ns();
            self.record(&tick, *now_ns - started_ns);
            if ending.is_some() {
                return Some(true);
            }
        }
    }

    fn end(&mut self, game: Game, ending: Ending) {
        let counts = &mut self.tally.counts;
        let (mut winner, error) = match ending {
            Ending::WonBy(winner) => (Some(winner), None),
            Ending::SomeoneLeft => (None, Some(OPPONENT_DISCONNECTED)),
            Ending::ShuttingDown => (None, Some(SHUTTING_DOWN)),
        };
        match winner {
            Some(Player::One) => counts.won_by_1 += 1,
            Some(Player::Two) => counts.won_by_2 += 1,
            None => counts.abandoned += 1,
        }
        // The counts above stay true: a fault that its server knew of would be easy to find.
        if let Some(truth) = winner
            && self.core.faults.wrong.selects_next()
        {
            winner = Some(truth.opponent());
        }
        for seat in &game.seats {
            let stop = Stop {
                error,
                last_fire_epoch_ms: seat.last_fire_ns.map_or(0, |at_ns| self.shared.wall.epoch_ms(at_ns)),
                bullet_count: seat.bullet_count,
                won: winner == Some(seat.player),
                player: seat.player,
                id: seat.arrival.id,
            };
            let mut frame = Vec::new();
            stop.put(&mut frame);
            // Players who left do not get it: their socket is closed or closing.
            self.deliver(seat.arrival.address, ThreadEvent::Stop(frame.into_boxed_slice()));
        }
    }

    pub(super) fn receive(&mut self, message: ThreadMessage) {
        if self.core.faults.now.late_ns > 0 {
            return self.hold_back(message);
        }
        self.read_letter(message);
    }

    pub(super) fn read_letter(&mut self, message: ThreadMessage) {
        match message.event {
            ThreadEvent::Start(shots, player) => self.start(message.to, shots, player),
            ThreadEvent::StartMessage => self.tell(message.to, START_FRAME),
            ThreadEvent::Snapshot(snapshot) => self.tell(message.to, snapshot.frame()),
            ThreadEvent::Stop(frame) => self.stop(message.to, &frame),
        }
    }

    /// Sends a frame to a player who is still in the game.
    fn tell(&mut self, key: SocketKey, frame: &[u8]) {
        let playing = matches!(self.stage(key), Some(Stage::Playing(..)));
        if playing && self.core.send(key, frame).is_err() {
            self.part(key);
        }
    }

    fn stop(&mut self, key: SocketKey, frame: &[u8]) {
        self.tell(key, frame);
        let Some(socket) = self.core.clients.get_mut(key) else { return };
        if matches!(socket.stage, Stage::Playing(..)) {
            self.leave_stage(key);
            if self.core.is_going_down() {
                self.close(key, close_code::GOING_AWAY);
            } else if !self.core.faults.now.stops_answers {
                self.expect_the_end(key);
            }
        }
    }

    /// The server goes down: every game settles its ticks and ends.
    pub(super) fn end_all_games(&mut self) {
        let grid = self.games.grid;
        for slot in 0..grid.slots() {
            while self.games.in_slot(slot, 0).is_some() {
                let now_ns = clock::now_ns();
                // Ticks stopped by a fault were never due.
                while !self.core.faults.now.stops_ticks
                    && let Some(game) = self.games.in_slot(slot, 0)
                    && let Some(tick) = game.ticks.take(&grid, now_ns)
                {
                    self.record(&tick, 0);
                }
                if let Some(game) = self.games.remove(slot, 0) {
                    self.end(game, Ending::ShuttingDown);
                }
            }
        }
    }

    /// The server goes down: every socket that is not in a game is closed. The others follow their stop.
    pub(super) fn say_goodbye(&mut self) {
        for key in self.core.clients.keys() {
            match self.stage(key) {
                Some(Stage::Opening(_)) => self.turn_away(key),
                Some(Stage::Waiting | Stage::Ended) => self.close(key, close_code::GOING_AWAY),
                Some(Stage::Playing(..) | Stage::Closing) | None => {}
            }
        }
    }

    /// A waiting player has left.
    pub(super) fn forget(&mut self, key: SocketKey) {
        if self.shared.options.pairing == Pairing::Forgetful {
            return;
        }
        let address = Address { thread: self.me, key };
        self.shared.lobby.lock().unwrap_or_else(PoisonError::into_inner).forget(address);
    }
}
