use proptest::prelude::*;

use super::*;

/// The fault, or why it is none.
#[track_caller]
fn check(text: &str, expected: Result<(FaultKind, f64, u64), &str>) {
    let read = text.parse::<FaultSpec>().map(|read| (read.kind, read.share, read.period_ns));
    let read = read.map_err(|error| error.to_string());
    assert_eq!(read, expected.map_err(str::to_owned), "{text}");
}

#[test]
fn fault_has_a_share_and_storms_come_every_so_often() {
    const S: u64 = 1_000_000_000;
    check("slow-reader=5%", Ok((FaultKind::SlowReader, 0.05, 0)));
    check(" stalled = 0.1 ", Ok((FaultKind::Stalled, 0.1, 0)));
    check("half-open=100%", Ok((FaultKind::HalfOpen, 1.0, 0)));
    check("malformed=0.5%", Ok((FaultKind::Malformed, 0.005, 0)));
    check("reconnect-storm=30s", Ok((FaultKind::ReconnectStorm, 0.1, 30 * S)));
    check("reconnect-storm=20%@2m", Ok((FaultKind::ReconnectStorm, 0.2, 120 * S)));
    check("reconnect-storm=0.5 @ 1s", Ok((FaultKind::ReconnectStorm, 0.5, S)));
}

#[test]
fn fault_that_means_nothing_is_refused_with_its_reason() {
    let known = "known: slow-reader, stalled, half-open, malformed, reconnect-storm";
    check("", Err("nothing is written"));
    check("=5%", Err("nothing is written"));
    check("lazy=5%", Err(&format!("\"lazy\" is unknown; {known}")));
    check("Stalled=5%", Err(&format!("\"Stalled\" is unknown; {known}")));
    check("stalled", Err("stalled does not say how many misbehave; write stalled=5%"));
    check("stalled=", Err("stalled does not say how many misbehave; write stalled=5%"));
    check(
        "reconnect-storm",
        Err("reconnect-storm does not say how many misbehave; write reconnect-storm=20%@30s"),
    );
    check(
        "reconnect-storm=20%",
        Err("reconnect-storm=20% does not say how often; write a time behind the share: 20%@30s"),
    );
    check(
        "reconnect-storm=30",
        Err("reconnect-storm=30 does not say how often; write a time behind the share: 20%@30s"),
    );
    check("reconnect-storm=1ms", Err("must be between 1s and 3600s, got 1ms"));
    check("reconnect-storm=20%@30", Err("\"30\" has no unit; say 30s or 30ms"));
    check("reconnect-storm=5@30s", Err("a share is between 0 and 1, or 0% and 100%; got 5"));
    check("reconnect-storm=@30s", Err("nothing is written"));
    check(
        "stalled=5%@30s",
        Err("stalled bots misbehave all the time; only a reconnect-storm comes every so often (@)"),
    );
    check("stalled=0", Err("\"0\" is zero: no bot would misbehave; leave it out"));
    check("stalled=-5%", Err("\"-5%\" is negative"));
    check("stalled=120%", Err("a share is between 0 and 1, or 0% and 100%; got 120%"));
    check("stalled=many", Err("\"many\" is not a number"));
    check("stalled=nan", Err("\"nan\" is not a number"));
}

#[test]
fn gaps_and_lines_are_ranges_or_one_value() {
    const MS: u64 = 1_000_000;
    assert_eq!(gap_ns("500ms..1s"), Ok((500 * MS, 1000 * MS)));
    assert_eq!(gap_ns(" 0.5s .. 0.5s "), Ok((500 * MS, 500 * MS)));
    assert_eq!(gap_ns("1ms"), Ok((MS, MS)));
    assert_eq!(line_bytes("15..58"), Ok((15, 58)));
    assert_eq!(line_bytes("4096"), Ok((4096, 4096)));
    let gap = |text: &str| gap_ns(text).expect_err(text).to_string();
    assert_eq!(gap(""), "nothing is written");
    assert_eq!(gap("500ms.."), "nothing is written");
    assert_eq!(gap("1s..500ms"), "the range 1s..500ms is empty; write the smaller end first");
    assert_eq!(gap("500..1s"), "\"500\" has no unit; say 500s or 500ms");
    assert_eq!(gap("0s..1s"), "\"0s\" is zero: a bot would never stop talking");
    assert_eq!(
        gap("250us"),
        "250us asks each bot for 4000 lines/s, but one keeps at most 1000/s; take more bots"
    );
    assert_eq!(gap("1s..2h"), "must be between 1ms and 3600s, got 2h");
    let line = |text: &str| line_bytes(text).expect_err(text).to_string();
    assert_eq!(line("14"), "must be between 15 and 4096, got 14");
    assert_eq!(line("15..5000"), "must be between 15 and 4096, got 5000");
    assert_eq!(line("15-58"), "\"15-58\" is not a number");
    assert_eq!(line("58..15"), "the range 58..15 is empty; write the smaller end first");
}

#[test]
fn rooms_have_letters_that_every_dialect_allows() {
    for name in ["lobby", "a", "7", "Side_room-2", &"x".repeat(32)] {
        assert_eq!(room(name).as_deref(), Ok(name));
    }
    assert_eq!(room(" lobby ").as_deref(), Ok("lobby"));
    assert_eq!(room(" "), Err(UnitError::Empty));
    for name in ["#lobby", "a.b", "a b", "a,b", ">", "*", "-a", "raum-ä", "a\nb", &"x".repeat(33)] {
        assert_eq!(room(name), Err(UnitError::NotARoom(name.into())));
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_readers_panic(text in "[0-9a-zµ.%@= -]{0,20}|.{0,20}") {
        let _ = (gap_ns(&text), line_bytes(&text), room(&text), text.parse::<FaultSpec>());
    }
}
