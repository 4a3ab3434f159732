//! The null server standalone: `cargo run --release -p stepladder-servers --example null -- [ADDRESS [THREADS]]`

use servers::null::{self, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    if let Some(address) = arguments.next() {
        options.listen = address.parse()?;
    }
    if let Some(threads) = arguments.next() {
        options.threads = Some(threads.parse()?);
    }
    null::run(options, |address| println!("null listening on ws://{address}"))?;
    Ok(())
}
