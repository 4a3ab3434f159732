use proptest::prelude::*;

use super::*;
use crate::wire::Key;

/// What the Java member's own serialisation (5.5.0) gives: bytes, partition hash, and the partition among 271. The Node.js
/// client 5.6.0 gives the same for the types it has.
#[test]
fn bytes_hashes_and_partitions_are_those_of_the_official_clients() {
    fn check<V>(value: V, hex: &str, hash: i32, partition: u32)
    where
        V: Serialize + Deserialize + PartialEq + std::fmt::Debug,
    {
        let key = Key::of(&value);
        let bytes: String = key.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            (bytes.as_str(), key.partition_hash(), key.partition(271)),
            (hex, hash, partition),
            "{value:?}"
        );
        assert_eq!(read::<V>(key.bytes()), Ok(value));
    }
    check(-2i8, "00000000fffffffdfe", 2097847177, 134);
    check(true, "00000000fffffffc01", 535970202, 223);
    check(-300i16, "00000000fffffffafed4", -1845079356, 246);
    check(42i32, "00000000fffffff90000002a", 2076340387, 175);
    check(i64::MIN, "00000000fffffff88000000000000000", -40697186, 32);
    check(1.5f32, "00000000fffffff73fc00000", -1193377410, 184);
    check(-3.5f64, "00000000fffffff6c00c000000000000", 1796191844, 50);
    check("k0".to_owned(), "00000000fffffff5000000026b30", 2137047323, 130);
    check(String::new(), "00000000fffffff500000000", 923237662, 11);
    check(
        "The quick brown fox".to_owned(),
        "00000000fffffff50000001354686520717569636b2062726f776e20666f78",
        720107611,
        178,
    );
    check("grün € 🦀".to_owned(), "00000000fffffff50000000e6772c3bc6e20e282ac20f09fa680", -2029632538, 260);
    check(vec![1u8, 2, 3, 255], "00000000fffffff400000004010203ff", -1608619934, 248);
    check(vec![true, false], "00000000fffffff3000000020100", -1189097226, 174);
    check(vec![1i16, -1], "00000000fffffff1000000020001ffff", 982833951, 148);
    check(vec![1i32, -1], "00000000fffffff00000000200000001ffffffff", 141026452, 220);
    check(vec![1i64, -1], "00000000ffffffef000000020000000000000001ffffffffffffffff", 2092921794, 176);
    check(vec![1.5f32], "00000000ffffffee000000013fc00000", 777747298, 62);
    check(vec![1.5f64, -2.0], "00000000ffffffed000000023ff8000000000000c000000000000000", -334999806, 175);
    let strings = ["a", "bc", ""].map(str::to_owned).to_vec();
    check(strings, "00000000ffffffec00000003000000016100000002626300000000", 1019460160, 165);
    check((), "0000000000000000", -1585187909, 238);
}

#[test]
fn a_key_with_a_partition_hash_of_its_own_keeps_it() {
    let mut bytes = Data::of("k0").bytes().to_vec();
    bytes[..4].copy_from_slice(&7i32.to_be_bytes());
    assert_eq!(Key::from(Data::from_bytes(bytes).unwrap()).partition(271), 7);
    assert_eq!(Data::from_bytes(vec![0; 7]), Err(DataError::TooShort(7)));
}

#[test]
fn another_type_or_null_is_named() {
    let text = Data::of("text");
    assert_eq!(text.read::<i64>(), Err(DataError::Type { found: -11, wanted: "a long" }));
    assert_eq!(Data::of(&()).read::<String>(), Err(DataError::Null("a string")));
    assert_eq!(Data::of(&None::<i32>).read::<Option<i32>>(), Ok(None));
    assert_eq!(Data::of(&Some(5i32)).read::<Option<i32>>(), Ok(Some(5)));
    assert_eq!(text.read::<Data>(), Ok(text));
}

fn object() -> impl Strategy<Value = Object> {
    let finite = prop::num::f64::NORMAL | prop::num::f64::ZERO;
    prop_oneof![
        Just(Object::Null),
        any::<i8>().prop_map(Object::Byte),
        any::<bool>().prop_map(Object::Boolean),
        any::<i16>().prop_map(Object::Short),
        any::<i32>().prop_map(Object::Integer),
        any::<i64>().prop_map(Object::Long),
        finite.prop_map(Object::Double),
        ".*".prop_map(Object::String),
        prop::collection::vec(any::<u8>(), 0..50).prop_map(Object::ByteArray),
        prop::collection::vec(any::<bool>(), 0..50).prop_map(Object::BooleanArray),
        prop::collection::vec(any::<i16>(), 0..50).prop_map(Object::ShortArray),
        prop::collection::vec(any::<i32>(), 0..50).prop_map(Object::IntegerArray),
        prop::collection::vec(any::<i64>(), 0..50).prop_map(Object::LongArray),
        prop::collection::vec(finite, 0..50).prop_map(Object::DoubleArray),
        prop::collection::vec(".*", 0..5).prop_map(Object::StringArray),
    ]
}

proptest! {
    #[test]
    fn every_object_comes_back_and_no_shortened_one_does(object in object()) {
        let data = Data::of(&object);
        prop_assert_eq!(data.read::<Object>(), Ok(object));
        for end in 0..data.bytes().len() {
            prop_assert!(read::<Object>(&data.bytes()[..end]).is_err());
        }
        let longer = [&data.bytes()[..], &[0]].concat();
        prop_assert!(read::<Object>(&longer).is_err());
    }

    /// Any bytes at all: no panic, and nothing is reserved for counts that cannot be true.
    #[test]
    fn arbitrary_bytes_are_read_or_refused(type_id in -25i32..2, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = Object::read(type_id, &bytes);
        let _ = Vec::<String>::read(type_id, &bytes);
    }
}

#[test]
fn only_a_whole_string_is_read_as_one() {
    let data = Data::of("abc");
    assert_eq!(text(data.bytes()), Some(&b"abc"[..]));
    assert_eq!(text(&data.bytes()[..data.bytes().len() - 1]), None);
    assert_eq!(text(Data::of(&5i32).bytes()), None);
    assert_eq!(text(b""), None);
}
