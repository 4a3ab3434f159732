//! The table of routes. The router and the OpenAPI document both come from it.

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Increment,
    Replace,
    Member,
    DeleteMember,
    Metadata,
    SetMetadata,
    DeleteMetadata,
    Bulk,
    Ranks,
    Top,
    Range,
    Around,
    Board,
    CreateBoard,
    Boards,
    DeleteBoard,
    Seasons,
    EndSeason,
    Season,
    SeasonMember,
    DeleteSeason,
    Schedule,
    SetSchedule,
    DeleteSchedule,
    Health,
    Metrics,
    Document,
}

/// A parameter of the query.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) is_required: bool,
    /// JSON schema.
    pub(super) schema: &'static str,
    pub(super) says: &'static str,
}

pub(super) struct Route {
    pub(super) operation: Operation,
    pub(super) method: &'static str,
    /// Between the slashes; text in braces is a placeholder for a name.
    pub(super) segments: &'static [&'static str],
    pub(super) says: &'static str,
    pub(super) query: &'static [Parameter],
    /// The schema of the body that is expected.
    pub(super) body: Option<&'static str>,
    /// The status when all is well, and the schema of its body.
    pub(super) answer: (u16, Option<&'static str>),
    /// What else it may be answered with, besides what is possible everywhere.
    pub(super) refusals: &'static [u16],
}

impl Route {
    /// As in the document: `/leaderboards/{board}`.
    pub(super) fn path(&self) -> String {
        self.segments.iter().flat_map(|segment| ["/", segment]).collect()
    }

    /// Whether it changes anything.
    pub(super) fn changes(&self) -> bool {
        self.method != "GET" && self.operation != Operation::Ranks
    }

    /// Whether it can be answered without the boards, and so without the disk.
    pub(super) fn is_about_the_service(&self) -> bool {
        matches!(self.operation, Operation::Health | Operation::Metrics | Operation::Document)
    }

    /// Whether these segments are this route's.
    fn matches(&self, segments: &[&str]) -> bool {
        let fits = |(own, given): (&&str, &&str)| own.starts_with('{') || own == given;
        self.segments.len() == segments.len() && self.segments.iter().zip(segments).all(fits)
    }
}

/// Segments of the longest path.
const SEGMENTS_MAX: usize = 6;

/// What a method and a path lead to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// The number of a row of the table, and up to three names from the path, as they were sent.
    Route(usize, [&'a str; 3]),
    WrongMethod,
    Nothing,
}

/// Looks a request's method and path up. HEAD counts as GET.
pub(super) fn find<'a>(method: &str, path: &'a str) -> Found<'a> {
    let method = if method == "HEAD" { "GET" } else { method };
    let mut segments = [""; SEGMENTS_MAX];
    let mut count = 0;
    for segment in path.strip_prefix('/').unwrap_or(path).split('/') {
        if count == SEGMENTS_MAX {
            return Found::Nothing;
        }
        segments[count] = segment;
        count += 1;
    }
    let segments = &segments[..count];
    let mut found = Found::Nothing;
    for (number, route) in ROUTES.iter().enumerate() {
        if !route.matches(segments) {
            continue;
        }
        if route.method == method {
            let name = |at: usize| segments.get(at).copied().unwrap_or("");
            return Found::Route(number, [name(1), name(3), name(5)]);
        }
        found = Found::WrongMethod;
    }
    found
}

/// The methods that a path has, for `Allow`.
pub(super) fn methods(path: &str) -> String {
    let has = |method: &&&str| matches!(find(method, path), Found::Route(..));
    let methods: Vec<&str> =
        ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].iter().filter(has).copied().collect();
    methods.join(", ")
}

const RANK: &str = r#"{"type":"integer","minimum":0,"maximum":9223372036854775807}"#;

/// As `ROWS_MAX` and `EACH_SIDE_MAX` of the responder say.
const ROWS: &str = r#"{"type":"integer","minimum":0,"maximum":1000}"#;
const NEIGHBOURS: &str = r#"{"type":"integer","minimum":0,"maximum":500}"#;

const SCORE: Parameter = Parameter {
    name: "score",
    is_required: true,
    schema: r#"{"type":"string","pattern":"^[+-]?[0-9]{1,1000}$"}"#,
    says: "A whole decimal number; negative ones are allowed",
};

const MODE: Parameter = Parameter {
    name: "mode",
    is_required: false,
    schema: r#"{"type":"string","enum":["replace","increment","decrement","best"]}"#,
    says: "What is done with the score, instead of what the method says",
};

const LIMIT: Parameter = Parameter { name: "limit", is_required: false, schema: ROWS, says: "Rows at most" };

const FIRST: Parameter =
    Parameter { name: "first", is_required: false, schema: RANK, says: "The first rank, from 1" };

const METADATA: &[&str] = &["leaderboards", "{board}", "members", "{member}", "metadata"];
const SEASONS: &[&str] = &["leaderboards", "{board}", "seasons"];
const SEASON: &[&str] = &["leaderboards", "{board}", "seasons", "{season}"];
const SCHEDULE: &[&str] = &["leaderboards", "{board}", "schedule"];
const MEMBER: &[&str] = &["leaderboards", "{board}", "members", "{member}"];
const BOARD: &[&str] = &["leaderboards", "{board}"];

/// Row for row what the service offers; the busiest come first, since they are looked up in this order.
#[rustfmt::skip]
pub(super) const ROUTES: &[Route] = &[
    Route { operation: Operation::Increment, method: "PATCH", segments: MEMBER,
        says: "Add to a member's score; a new member starts from 0",
        query: &[SCORE, MODE], body: None, answer: (200, Some("Update")), refusals: &[404, 422] },
    Route { operation: Operation::Replace, method: "PUT", segments: MEMBER,
        says: "Set a member's score",
        query: &[SCORE, MODE], body: None, answer: (200, Some("Update")), refusals: &[404, 422] },
    Route { operation: Operation::Member, method: "GET", segments: MEMBER,
        says: "A member's score and rank",
        query: &[], body: None, answer: (200, Some("Update")), refusals: &[404] },
    Route { operation: Operation::DeleteMember, method: "DELETE", segments: MEMBER,
        says: "Remove a member; the answer has the score it had",
        query: &[], body: None, answer: (200, Some("Deleted")), refusals: &[404] },
    Route { operation: Operation::Bulk, method: "POST", segments: &["bulk"],
        says: "Update many members of one or several leaderboards, all or none",
        query: &[], body: Some("Bulk"), answer: (200, Some("BulkDone")), refusals: &[404, 413, 415, 422] },
    Route { operation: Operation::Ranks, method: "POST", segments: &["leaderboards", "{board}", "ranks"],
        says: "Scores and ranks of several members at one moment; null for who is not there",
        query: &[], body: Some("Members"), answer: (200, Some("Standings")), refusals: &[404, 413, 415, 422] },
    Route { operation: Operation::Top, method: "GET", segments: &["leaderboards", "{board}", "top"],
        says: "The first members",
        query: &[LIMIT], body: None, answer: (200, Some("Page")), refusals: &[404, 422] },
    Route { operation: Operation::Range, method: "GET", segments: &["leaderboards", "{board}", "range"],
        says: "Members from a rank on",
        query: &[FIRST, LIMIT, Parameter { name: "from", is_required: false,
            schema: r#"{"type":"string","enum":["first","last"]}"#,
            says: "last: from the last rank towards the first; `first` and `next` count from the end then" }],
        body: None, answer: (200, Some("Page")), refusals: &[404, 422] },
    Route { operation: Operation::Around, method: "GET",
        segments: &["leaderboards", "{board}", "around", "{member}"],
        says: "A member and its neighbours",
        query: &[Parameter { name: "each_side", is_required: false, schema: NEIGHBOURS,
            says: "Neighbours before and after it at most" }],
        body: None, answer: (200, Some("Page")), refusals: &[404, 422] },
    Route { operation: Operation::Board, method: "GET", segments: BOARD,
        says: "How many members a leaderboard has, and how it orders them",
        query: &[], body: None, answer: (200, Some("Leaderboard")), refusals: &[404] },
    Route { operation: Operation::CreateBoard, method: "POST", segments: &["leaderboards"],
        says: "Create a leaderboard; without a name it gets one",
        query: &[], body: Some("NewLeaderboard"), answer: (201, Some("Leaderboard")),
        refusals: &[409, 413, 415, 422] },
    Route { operation: Operation::Boards, method: "GET", segments: &["leaderboards"],
        says: "The leaderboards in the order of their names",
        query: &[Parameter { name: "after", is_required: false, schema: r#"{"type":"string"}"#,
            says: "List those behind this name" }, LIMIT],
        body: None, answer: (200, Some("Leaderboards")), refusals: &[422] },
    Route { operation: Operation::DeleteBoard, method: "DELETE", segments: BOARD,
        says: "Delete a leaderboard and its members",
        query: &[], body: None, answer: (204, None), refusals: &[404] },
    Route { operation: Operation::Metadata, method: "GET", segments: METADATA,
        says: "The text that is attached to a member",
        query: &[], body: None, answer: (200, Some("MemberMetadata")), refusals: &[404] },
    Route { operation: Operation::SetMetadata, method: "PUT", segments: METADATA,
        says: "Attach a text to a member: a colour, a country; it stays until the season ends",
        query: &[], body: Some("Metadata"), answer: (200, Some("MemberMetadata")),
        refusals: &[404, 413, 415, 422] },
    Route { operation: Operation::DeleteMetadata, method: "DELETE", segments: METADATA,
        says: "Take the text off a member",
        query: &[], body: None, answer: (204, None), refusals: &[404] },
    Route { operation: Operation::Seasons, method: "GET", segments: SEASONS,
        says: "The archived seasons, oldest first",
        query: &[], body: None, answer: (200, Some("Seasons")), refusals: &[404] },
    Route { operation: Operation::EndSeason, method: "POST", segments: SEASONS,
        says: "End the season: the standings are archived under a name, and the leaderboard is empty",
        query: &[], body: Some("NewSeason"), answer: (201, Some("Season")),
        refusals: &[404, 409, 413, 415, 422] },
    Route { operation: Operation::Season, method: "GET", segments: SEASON,
        says: "Members of an archived season from a rank on",
        query: &[FIRST, LIMIT], body: None, answer: (200, Some("Page")), refusals: &[404, 422] },
    Route { operation: Operation::SeasonMember, method: "GET",
        segments: &["leaderboards", "{board}", "seasons", "{season}", "members", "{member}"],
        says: "A member's score and rank at the end of a season",
        query: &[], body: None, answer: (200, Some("Ranked")), refusals: &[404] },
    Route { operation: Operation::DeleteSeason, method: "DELETE", segments: SEASON,
        says: "Delete the archive of a season",
        query: &[], body: None, answer: (204, None), refusals: &[404] },
    Route { operation: Operation::Schedule, method: "GET", segments: SCHEDULE,
        says: "When seasons end by themselves",
        query: &[], body: None, answer: (200, Some("Schedule")), refusals: &[404] },
    Route { operation: Operation::SetSchedule, method: "PUT", segments: SCHEDULE,
        says: "Let seasons end by themselves; each is called by the second in which it was to end",
        query: &[], body: Some("Schedule"), answer: (200, Some("Schedule")), refusals: &[404, 413, 415, 422] },
    Route { operation: Operation::DeleteSchedule, method: "DELETE", segments: SCHEDULE,
        says: "Let seasons end by themselves no more",
        query: &[], body: None, answer: (204, None), refusals: &[404] },
    Route { operation: Operation::Health, method: "GET", segments: &["healthz"],
        says: "Whether the service is up",
        query: &[], body: None, answer: (200, Some("Health")), refusals: &[] },
    Route { operation: Operation::Metrics, method: "GET", segments: &["metrics"],
        says: "Counters, as OpenMetrics text",
        query: &[], body: None, answer: (200, None), refusals: &[] },
    Route { operation: Operation::Document, method: "GET", segments: &["openapi.json"],
        says: "This document",
        query: &[], body: None, answer: (200, Some("Document")), refusals: &[] },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_found_by_its_method_and_path_with_its_names() {
        for (number, route) in ROUTES.iter().enumerate() {
            let path = route.path().replace("{board}", "a");
            let path = path.replace("{season}", "b").replace("{member}", "b");
            let Found::Route(found, names) = find(route.method, &path) else { panic!("{path}") };
            assert_eq!(found, number);
            for (at, name) in [(1, "a"), (3, "b"), (5, "b")] {
                let is_named = route.segments.get(at).is_some_and(|segment| segment.starts_with('{'));
                assert!(!is_named || names[at / 2] == name, "{path}: {names:?}");
            }
            assert_eq!(find("TRACE", &path), Found::WrongMethod);
            assert!(methods(&path).contains(route.method));
        }
    }

    #[test]
    fn other_paths_lead_nowhere() {
        for path in ["/", "", "/leaderboards/", "/leaderboards/a/b", "/leaderboards/a/members/b/c", "/bulk/"]
        {
            let found = find("GET", path);
            let is_a_board = path == "/leaderboards/";
            assert_eq!(found == Found::Nothing, !is_a_board, "{path}: {found:?}");
        }
        assert_eq!(methods("/leaderboards"), "GET, HEAD, POST");
    }
}
