//! The networks that are emulated between the bots and the server.

use crate::layers::reader::Reader;
use crate::mistakes::ConfigError;
use crate::network::Networks;
use crate::plan::HoldLength;
use crate::settings::{Setting, Shape};
use crate::units::network::networks;

settings! { pub(super) SETTINGS;
    NETWORK = Setting::of("How", &[]).key("network", Shape::Text, "70% wifi, 30% latency=80ms jitter=20ms loss=1%")
        .about("The network that is emulated on each connection: wifi, 4g, transatlantic, or latency= (the round trip), jitter=, loss= and bandwidth=; several with their shares of the bots.")
        .flag("--network", "NETWORK")
        .help("Emulate a network on each connection: wifi, 4g or transatlantic, or any of latency=80ms (the round trip), \
            jitter=20ms, loss=1% and bandwidth=20Mbit; several with their shares of the bots: '70% wifi, 30% 4g'");
}

/// A hold in which hardly anything can come back is refused.
pub(super) fn read(reader: &mut Reader, hold: HoldLength) -> Networks {
    let networks = reader.value(&NETWORK, networks).unwrap_or_default();
    let round_trip_ns = networks.slow_round_trip_ns();
    if let (HoldLength::Time(hold_ns), Some(said)) = (hold, reader.said(&NETWORK))
        && hold_ns < 2 * round_trip_ns
    {
        reader.refuse(&said, ConfigError::HoldOfFewRoundTrips { hold_ns, round_trip_ns });
    }
    networks
}
