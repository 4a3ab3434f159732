//! Clients of an echo server: how often they send, and how much.

use crate::layers::bots::BotsKind;
use crate::layers::reader::Reader;
use crate::settings::{Setting, Shape};
use crate::units;
use crate::workloads::EchoBots;

/// How a plan selects these bots.
pub(crate) const KIND: BotsKind = BotsKind {
    name: "echo",
    speaks: |scheme| scheme.protocol().has_echo,
    settings: &[SETTINGS],
    read: |reader, _, _| read(reader).into(),
};

const ECHO: Setting = Setting::of("", &["echo"]);

settings! { SETTINGS;
    RATE = ECHO.key("bots.rate", Shape::Number, "10")
        .about("echo: messages per second and client; 0 means that each answer starts the next.").default("10");
    PAYLOAD = ECHO.key("bots.payload_bytes", Shape::Whole("uint32"), "64").about("echo: size of each message.")
        .default("64");
}

/// The largest frame that our servers take.
const PAYLOAD_BYTES_MAX: u64 = 64 * 1024;

fn read(reader: &mut Reader) -> EchoBots {
    let rate_per_s = reader.value_or_default(&RATE, |text| units::amount_within(text, 0.0, 1e6));
    let payload = reader.value_or_default(&PAYLOAD, |text| units::whole_within(text, 1, PAYLOAD_BYTES_MAX));
    // At most 64 KiB by the line above.
    EchoBots { rate_per_s, payload_bytes: payload as usize }
}
