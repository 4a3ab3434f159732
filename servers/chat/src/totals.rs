//! The accounts of the whole server: sums that outlive the clients.

/// What one thread has counted since it began, and what it holds now. Totals of several threads add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Clients now, those included that are about to be closed.
    pub clients: u64,
    /// Lines that were owed: one per line and client that was in the room and not its sender.
    pub owed: u64,
    /// Lines that the system took whole.
    pub delivered: u64,
    /// Lines that did not fit into a backlog, or did not come from another node.
    pub dropped: u64,
    /// Of these, lines that did not come from another node.
    pub dropped_link: u64,
    /// Lines that waited for clients when these were closed.
    pub in_flight_at_close: u64,
    /// Lines that wait for clients now.
    pub waiting: u64,
    /// What these take in memory, lines that are on their way to clients included, in bytes.
    pub backlog_bytes: u64,
    /// Lines that clients said to their rooms.
    pub broadcasts: u64,
    /// Bytes that the system took, notices included.
    pub bytes: u64,
    /// Calls of the system that sent something, or could not.
    pub writes: u64,
    /// Rounds of writes.
    pub rounds: u64,
    /// From the last round's beginning to the next one's, ns; of several threads the longest.
    pub window_ns: u64,
    /// Connections that were taken and refused: too many in all, or from one address.
    pub refused_full: u64,
    /// See `refused_full`.
    pub refused_rate: u64,
    /// Clients that the server closed, by reason.
    pub cut: Cuts,
}

/// Clients that the server closed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// Said a line beyond the cap.
    pub line_too_long: u64,
    /// Began a line and did not end it in time.
    pub line_too_slow: u64,
    /// Said nothing for too long.
    pub idle: u64,
    /// Did not read, with the policy `disconnect`.
    pub backlog_full: u64,
    /// Asked and asked, and did not read the answers.
    pub answers_unread: u64,
    /// Shut the sending side and had its time.
    pub half_closed: u64,
}

impl Totals {
    /// What the books leave unexplained; 0 or they are wrong.
    pub fn residual(&self) -> i64 {
        self.owed as i64 - (self.delivered + self.dropped + self.in_flight_at_close + self.waiting) as i64
    }

    /// Adds another thread's.
    pub(super) fn add(&mut self, other: &Totals) {
        self.clients += other.clients;
        self.owed += other.owed;
        self.delivered += other.delivered;
        self.dropped += other.dropped;
        self.dropped_link += other.dropped_link;
        self.in_flight_at_close += other.in_flight_at_close;
        self.waiting += other.waiting;
        self.backlog_bytes += other.backlog_bytes;
        self.broadcasts += other.broadcasts;
        self.bytes += other.bytes;
        self.writes += other.writes;
        self.rounds += other.rounds;
        self.window_ns = self.window_ns.max(other.window_ns);
        self.refused_full += other.refused_full;
        self.refused_rate += other.refused_rate;
        self.cut.line_too_long += other.cut.line_too_long;
        self.cut.line_too_slow += other.cut.line_too_slow;
        self.cut.idle += other.cut.idle;
        self.cut.backlog_full += other.cut.backlog_full;
        self.cut.answers_unread += other.cut.answers_unread;
        self.cut.half_closed += other.cut.half_closed;
    }
}
