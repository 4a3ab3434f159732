//! Forms: how a column stores a value, in SQL, for writing and for reading.
//!
//! SQLite would silently change some values despite the checksum (NaN becomes NULL, −0 becomes 0), so the forms do it
//! first.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use measure::{Distribution, LoadUnit, Measure, MetricNames, Phase, Purpose};
use rusqlite::types::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;
use strum::{IntoStaticStr, VariantArray};

use crate::run::{LineSource, Outcome, RunKind};

/// How a column is shown outside the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// a number or a text
    Plain,
    /// 0 or 1
    Flag,
    /// JSON text
    Json,
    /// an HDR histogram in V2 bytes
    Histogram,
    /// any bytes
    Bytes,
}

/// A form as SQL.
pub(crate) trait Form {
    /// `INTEGER NOT NULL`
    const TYPE: &'static str;
    const KIND: Kind;

    /// What SQLite checks of a column, as a condition; empty: nothing.
    fn check(_column: &str) -> String {
        String::new()
    }
}

/// Columns of this form keep such a value.
pub(crate) trait Stores<T>: Form {
    /// Errors: why it cannot be kept.
    fn store(value: &T) -> Result<Value, String>;
}

/// Columns of this form give such a value back.
pub(crate) trait Loads<T>: Form {
    /// Errors: it is nothing that was stored, and where more than that is known, what is wrong with it.
    fn load(value: &Value) -> Result<T, Option<String>>;
}

macro_rules! forms {
    ($($(#[doc = $about:literal])* $form:ident $type:literal $kind:ident $(|$column:ident| $check:literal)?;)*) => {
        $($(#[doc = $about])*
        pub(crate) struct $form;

        impl Form for $form {
            const TYPE: &'static str = $type;
            const KIND: Kind = Kind::$kind;
            $(fn check($column: &str) -> String { format!($check) })?
        })*
    };
}

forms! {
    /// how many, or when: SQLite's integers end at 2^63 − 1
    Count "INTEGER NOT NULL" Plain |column| "{column} >= 0";
    /// a whole number that may be negative
    Whole "INTEGER NOT NULL" Plain;
    /// 0 or 1
    Flag "INTEGER NOT NULL" Flag |column| "{column} IN (0, 1)";
    /// a number; NaN is NULL
    Real "REAL" Plain;
    /// a number that is never NaN
    Number "REAL NOT NULL" Plain;
    Text "TEXT NOT NULL" Plain;
    /// JSON text, as its owner wrote it
    Json "TEXT NOT NULL" Json |column| "json_valid({column})";
    /// a value as JSON text
    Encoded "TEXT NOT NULL" Json |column| "json_valid({column})";
    /// decimal text, because u64 does not fit an INTEGER
    Digits "TEXT NOT NULL" Json |column| "{column} GLOB '[0-9]*'";
    /// a distribution as HdrHistogram V2, not compressed
    V2 "BLOB NOT NULL" Histogram;
    Bytes "BLOB NOT NULL" Bytes;
}

/// One of the names of `N`, none other.
pub(crate) struct OneOf<N>(PhantomData<N>);

impl<N: Named> Form for OneOf<N> {
    const TYPE: &'static str = "TEXT NOT NULL";
    const KIND: Kind = Kind::Plain;

    fn check(column: &str) -> String {
        let names: Vec<String> = N::VARIANTS.iter().map(|&one| format!("'{}'", one.into())).collect();
        format!("{column} IN ({})", names.join(", "))
    }
}

/// What `F` holds, or NULL.
pub(crate) struct Maybe<F>(PhantomData<F>);

impl<F: Form> Form for Maybe<F> {
    const TYPE: &'static str = match F::TYPE.as_bytes() {
        b"INTEGER NOT NULL" => "INTEGER",
        b"TEXT NOT NULL" => "TEXT",
        b"BLOB NOT NULL" => "BLOB",
        _ => "REAL",
    };
    const KIND: Kind = F::KIND;

    // A CHECK that evaluates to NULL passes.
    fn check(column: &str) -> String {
        F::check(column)
    }
}

/// Something with a fixed list of names. A marker of ours: `String` could implement strum's traits some day.
pub(crate) trait Named: VariantArray + Copy + Into<&'static str> {}

impl Named for LineSource {}
impl Named for LoadUnit {}
impl Named for Measure {}
impl Named for Outcome {}
impl Named for Phase {}
impl Named for Purpose {}
impl Named for RunKind {}
impl Named for Tally {}

/// What a row of `tally` counts, and so which of the metric names it follows.
#[derive(Clone, Copy, Debug, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Tally {
    Error,
    Counter,
    ConnectFailure,
}

/// A count as the store holds it.
fn count(value: u64) -> Result<Value, String> {
    i64::try_from(value).map(Value::Integer).map_err(|_| format!("{value} is larger than 2^63 - 1"))
}

fn natural(value: &Value) -> Result<u64, Option<String>> {
    match value {
        Value::Integer(integer) => u64::try_from(*integer).map_err(|_| None),
        _ => Err(None),
    }
}

fn words(value: &Value) -> Result<&str, Option<String>> {
    match value {
        Value::Text(text) => Ok(text),
        _ => Err(None),
    }
}

/// What is stored of a value in a form, and what is read back.
macro_rules! holds {
    ($($form:ty: $type:ty, |$value:ident| $store:expr, |$stored:ident| $load:expr;)*) => {
        $(impl Stores<$type> for $form {
            fn store($value: &$type) -> Result<Value, String> {
                $store
            }
        }

        impl Loads<$type> for $form {
            fn load($stored: &Value) -> Result<$type, Option<String>> {
                $load
            }
        })*
    };
}

holds! {
    Count: u64, |value| count(*value), |stored| natural(stored);
    Count: u32, |value| Ok(Value::Integer(i64::from(*value))),
        |stored| natural(stored).and_then(|wide| u32::try_from(wide).map_err(|_| None));
    Whole: i64, |value| Ok(Value::Integer(*value)),
        |stored| if let Value::Integer(integer) = stored { Ok(*integer) } else { Err(None) };
    Flag: bool, |value| Ok(Value::Integer(i64::from(*value))),
        |stored| match stored {
            Value::Integer(0) => Ok(false),
            Value::Integer(1) => Ok(true),
            _ => Err(None),
        };
    Real: f64, |value| Ok(if value.is_nan() { Value::Null } else { Value::Real(value + 0.0) }),
        |stored| match stored {
            Value::Real(real) => Ok(*real),
            Value::Null => Ok(f64::NAN),
            _ => Err(None),
        };
    Number: f64, |value| Real::store(value),
        |stored| if let Value::Real(real) = stored { Ok(*real) } else { Err(None) };
    Text: String, |value| Ok(Value::Text(value.clone())), |stored| words(stored).map(str::to_owned);
    Json: String, |value| Text::store(value), |stored| Text::load(stored);
    Digits: u64, |value| Ok(Value::Text(value.to_string())),
        |stored| words(stored)?.parse().map_err(|_| None);
    V2: Distribution, |value| Ok(Value::Blob(value.to_v2())),
        |stored| match stored {
            Value::Blob(bytes) => Distribution::from_v2(bytes).map_err(|error| Some(error.to_string())),
            _ => Err(None),
        };
    Bytes: Vec<u8>, |value| Ok(Value::Blob(value.clone())),
        |stored| if let Value::Blob(bytes) = stored { Ok(bytes.clone()) } else { Err(None) };
    Encoded: Vec<(String, u64)>, |value| encoded(value), |stored| decoded(stored);
    Encoded: BTreeMap<String, String>, |value| encoded(value), |stored| decoded(stored);
    Encoded: Arc<MetricNames>, |value| encoded(&**value), |stored| decoded(stored).map(Arc::new);
}

fn encoded(value: &impl Serialize) -> Result<Value, String> {
    serde_json::to_string(value).map(Value::Text).map_err(|error| error.to_string())
}

fn decoded<T: DeserializeOwned>(stored: &Value) -> Result<T, Option<String>> {
    serde_json::from_str(words(stored)?).map_err(|_| None)
}

/// What is borrowed while it is stored.
macro_rules! stores {
    ($($form:ty: $type:ty, |$value:ident| $store:expr;)*) => {
        $(impl Stores<$type> for $form {
            fn store($value: &$type) -> Result<Value, String> {
                $store
            }
        })*
    };
}

stores! {
    Text: &str, |value| Ok(Value::Text((*value).to_owned()));
    Bytes: &[u8], |value| Ok(Value::Blob(value.to_vec()));
    V2: &Distribution, |value| V2::store(*value);
}

/// What a distribution is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// all messages
    Of(Measure),
    /// the response times of one operation
    ResponseOf(String),
    /// a distribution of the bots' own
    ValueOf(String),
}

const RESPONSE_OF: &str = "response of ";
const VALUE_OF: &str = "value of ";

impl Stores<Recorded> for Text {
    fn store(value: &Recorded) -> Result<Value, String> {
        match value {
            Recorded::Of(measure) => Text::store(measure),
            Recorded::ResponseOf(op) => Ok(Value::Text(format!("{RESPONSE_OF}{op}"))),
            Recorded::ValueOf(name) => Ok(Value::Text(format!("{VALUE_OF}{name}"))),
        }
    }
}

impl Loads<Recorded> for Text {
    fn load(value: &Value) -> Result<Recorded, Option<String>> {
        let name = words(value)?;
        match (name.strip_prefix(RESPONSE_OF), name.strip_prefix(VALUE_OF)) {
            (Some(op), _) => Ok(Recorded::ResponseOf(op.to_owned())),
            (_, Some(name)) => Ok(Recorded::ValueOf(name.to_owned())),
            _ => Text::load(value).map(Recorded::Of),
        }
    }
}

/// A name without a list in SQL, so that a later version may know more of them.
impl<N: Named> Stores<N> for Text {
    fn store(value: &N) -> Result<Value, String> {
        Ok(Value::Text(Into::<&str>::into(*value).to_owned()))
    }
}

impl<N: Named> Loads<N> for Text {
    fn load(value: &Value) -> Result<N, Option<String>> {
        let name = words(value)?;
        N::VARIANTS.iter().copied().find(|&known| known.into() == name).ok_or(None)
    }
}

impl<N: Named> Stores<N> for OneOf<N> {
    fn store(value: &N) -> Result<Value, String> {
        Text::store(value)
    }
}

impl<N: Named> Loads<N> for OneOf<N> {
    fn load(value: &Value) -> Result<N, Option<String>> {
        Text::load(value)
    }
}

impl<F: Stores<T>, T> Stores<Option<T>> for Maybe<F> {
    fn store(value: &Option<T>) -> Result<Value, String> {
        value.as_ref().map_or(Ok(Value::Null), F::store)
    }
}

impl<F: Loads<T>, T> Loads<Option<T>> for Maybe<F> {
    fn load(value: &Value) -> Result<Option<T>, Option<String>> {
        if *value == Value::Null { Ok(None) } else { F::load(value).map(Some) }
    }
}
