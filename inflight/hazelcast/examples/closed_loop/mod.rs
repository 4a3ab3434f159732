//! The arguments of the closed-loop examples: `ADDR get|set VALUE_BYTES TOTAL IN_FLIGHT`.

/// The arguments of a closed loop.
pub struct Arguments {
    pub address: String,
    /// `get` or `set`
    pub op: String,
    pub value_bytes: usize,
    /// operations, the warm-up included
    pub total: u64,
    pub in_flight: u64,
}

impl Arguments {
    /// Those of this process. Errors: one is missing or is not what it must be, with `usage`.
    pub fn read(usage: &str) -> Result<Arguments, String> {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let [address, op, value_bytes, total, in_flight] = args.as_slice() else {
            return Err(usage.to_owned());
        };
        let number = |text: &str, name: &str| {
            text.parse::<u64>().map_err(|_| format!("{name} {text:?} is no number; {usage}"))
        };
        if !["get", "set"].contains(&op.as_str()) {
            return Err(format!("op {op:?} is neither get nor set; {usage}"));
        }
        Ok(Arguments {
            address: address.clone(),
            op: op.clone(),
            value_bytes: number(value_bytes, "VALUE_BYTES")? as usize,
            total: number(total, "TOTAL")?.max(10),
            in_flight: number(in_flight, "IN_FLIGHT")?.max(1),
        })
    }

    /// The value of all operations.
    pub fn value(&self) -> String {
        (0..self.value_bytes).map(|at| char::from(b'A' + (at % 26) as u8)).collect()
    }
}
