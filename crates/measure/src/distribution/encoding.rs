//! A distribution within an encoded second: its V2 bytes, none where nothing was recorded.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Distribution;

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.is_empty() { to.serialize_bytes(&[]) } else { to.serialize_bytes(&self.to_v2()) }
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct V2;
        impl Visitor<'_> for V2 {
            type Value = Distribution;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a histogram")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Distribution, E> {
                if bytes.is_empty() {
                    Ok(Distribution::new())
                } else {
                    Distribution::from_v2(bytes).map_err(E::custom)
                }
            }
        }
        from.deserialize_bytes(V2)
    }
}
