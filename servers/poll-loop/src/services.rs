//! The eight services: their paths, the lengths of their pages, and their costs.
//!
//! All of it is in this table. A page's bytes are exact (every number has a fixed width), so that an instrument may
//! rely on them; its cost is its formatting, some µs to some 100 µs, plus the planted processor time given here. The
//! root page has no planted cost, so that measurements against it show the loop alone. A short page goes out in one
//! chunk of 1,460 bytes, the size of a TCP segment on Ethernet; a long one in several, each after its share of the
//! cost.

use super::pages;
use super::world::{FORCE_MAX, OBJECTS, World};
use servers_shared::http::request::Request;

/// What goes out at once.
pub(super) const CHUNK_BYTES: usize = 1_460;

/// One row of the table.
pub struct Service {
    /// How a user calls it, on the command line and in results.
    pub name: &'static str,
    /// Without the query that some understand: `force` (−1000 to 1000), `id` (0 to 400) and `fact` (one of `FACTS`).
    pub path: &'static str,
    /// Of a page with status 200.
    pub content_type: &'static str,
    /// Planted processor time, µs, when nothing is near.
    pub cost_us: u64,
    /// What each object that is near adds to it, µs.
    pub cost_per_object_us: u64,
    /// The body's length in bytes when nothing is near.
    pub bytes: usize,
    /// What each object that is near adds to it.
    pub bytes_per_object: usize,
    page: fn(&World, Argument, &mut Vec<u8>),
}

/// The facts of an object that `property` tells one by one, in the names of its query. The page of `object` holds all of
/// them, and its parts and contacts besides. An instrument that compares the two relies on their number
/// (`OBJECT_FACTS` of its sweep).
pub const FACTS: [&str; 9] = [
    "heading",
    "hull",
    "class",
    "position-x",
    "position-y",
    "position-z",
    "velocity-x",
    "velocity-y",
    "velocity-z",
];

/// The argument of a query, as a number: an object's, a force, or an object's and a fact's (`object * FACTS.len() +
/// fact`).
pub(super) type Argument = i32;

const HTML: &str = "text/html";
const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

/// All of them, short ones and long ones.
#[rustfmt::skip]
pub const SERVICES: [Service; 8] = [
    Service { name: "root",        path: "/",               content_type: HTML, cost_us:     0, cost_per_object_us: 0, bytes:   381, bytes_per_object:  0, page: pages::root },
    Service { name: "pilot",       path: "/pilot",          content_type: TEXT, cost_us:    60, cost_per_object_us: 0, bytes:   153, bytes_per_object:  0, page: pages::pilot },
    Service { name: "force-field", path: "/force-field",    content_type: TEXT, cost_us:   100, cost_per_object_us: 0, bytes:    12, bytes_per_object:  0, page: pages::force_field },
    Service { name: "ihost",       path: "/ihost",          content_type: HTML, cost_us:    80, cost_per_object_us: 0, bytes:   205, bytes_per_object:  0, page: pages::ihost },
    Service { name: "objects",     path: "/objects",        content_type: HTML, cost_us:   100, cost_per_object_us: 5, bytes:    93, bytes_per_object: 88, page: pages::objects },
    Service { name: "object",      path: "/object",         content_type: HTML, cost_us: 1_200, cost_per_object_us: 7, bytes: 4_701, bytes_per_object: 61, page: pages::object },
    Service { name: "script",      path: "/script/objects", content_type: JSON, cost_us:   150, cost_per_object_us: 6, bytes:    47, bytes_per_object: 95, page: pages::script },
    Service { name: "property",    path: "/property",       content_type: TEXT, cost_us:    60, cost_per_object_us: 0, bytes:    25, bytes_per_object:  0, page: pages::property },
];

const FORCE_FIELD: usize = 2;
const OBJECT: usize = 5;
const PROPERTY: usize = 7;

/// A request, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) what: What,
    /// HEAD: the page is made, and its head goes out alone.
    pub(super) head_only: bool,
    pub(super) keep_alive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A service by its place in the table, and the number that was given, if one was.
    Page(usize, Option<Argument>),
    /// None of them: this status. It waits for its tick like any other request.
    Not(u16),
}

impl Ask {
    pub(super) fn of(request: &Request<'_>) -> Ask {
        let what = match request.method {
            "GET" | "HEAD" | "POST" => what(request),
            _ => What::Not(405),
        };
        Ask { what, head_only: request.method == "HEAD", keep_alive: request.keep_alive }
    }
}

fn what(request: &Request<'_>) -> What {
    let path = request.path();
    let Some(place) = SERVICES.iter().position(|service| service.path == path) else {
        return What::Not(404);
    };
    if place == PROPERTY {
        return property(request);
    }
    let text = match place {
        FORCE_FIELD => request.query("force").or_else(|| form_value(request.body, "force")),
        OBJECT => request.query("id"),
        _ => None,
    };
    match text.map(str::parse::<Argument>) {
        None => What::Page(place, None),
        Some(Ok(number)) if place == OBJECT && !(0..OBJECTS as i32).contains(&number) => What::Not(404),
        Some(Ok(number)) if place == FORCE_FIELD && !(-FORCE_MAX..=FORCE_MAX).contains(&number) => {
            What::Not(400)
        }
        Some(Ok(number)) => What::Page(place, Some(number)),
        Some(Err(_)) => What::Not(400),
    }
}

/// One fact of one object; the heading of our own craft if nothing else was requested.
fn property(request: &Request<'_>) -> What {
    let Ok(object) = request.query("id").unwrap_or("0").parse::<Argument>() else { return What::Not(400) };
    let name = request.query("fact").unwrap_or(FACTS[0]);
    match FACTS.iter().position(|fact| *fact == name) {
        Some(fact) if (0..OBJECTS as Argument).contains(&object) => {
            What::Page(PROPERTY, Some(object * FACTS.len() as Argument + fact as Argument))
        }
        _ => What::Not(404),
    }
}

/// A value of a form that was posted.
fn form_value<'b>(body: &'b [u8], name: &str) -> Option<&'b str> {
    let pairs = std::str::from_utf8(body).ok()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.trim()).next()
}

/// What was made of a request.
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    /// Planted processor time, ns, before any scaling.
    pub(super) cost_ns: u64,
}

/// Makes the page at the world's present tick and appends it. An edit changes the world.
pub(super) fn make(what: What, world: &mut World, body: &mut Vec<u8>) -> Page {
    match what {
        What::Not(status) => {
            body.extend_from_slice(match status {
                400 => b"that number is out of range, or none\n",
                404 => b"nothing is here\n".as_slice(),
                _ => b"GET, HEAD and POST only\n",
            });
            Page { status, content_type: TEXT, cost_ns: 0 }
        }
        What::Page(place, number) => {
            let service = &SERVICES[place];
            if let (FORCE_FIELD, Some(force)) = (place, number) {
                world.force = force;
            }
            (service.page)(world, number.unwrap_or(0), body);
            let cost_us = service.cost_us + service.cost_per_object_us * world.near as u64;
            Page { status: 200, content_type: service.content_type, cost_ns: cost_us * 1_000 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use servers_shared::http::request::{Front, Limits, front};

    fn ask(head: &str, body: &str) -> Ask {
        let bytes = format!("{head} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        match front(bytes.as_bytes(), &Limits::default()) {
            Front::Whole { request, .. } => Ask::of(&request),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_page_has_at_every_tick_exactly_the_bytes_of_the_table() {
        for near in [0, 40, 400] {
            let mut world = World::new(near);
            for tick in 0..200 {
                world.step(1.7);
                world.force = if tick % 2 == 0 { FORCE_MAX } else { -FORCE_MAX };
                for (place, service) in SERVICES.iter().enumerate() {
                    let mut body = Vec::new();
                    let number = match place {
                        OBJECT => Some(tick * 2),
                        PROPERTY => Some(tick),
                        _ => None,
                    };
                    let page = make(What::Page(place, number), &mut world, &mut body);
                    assert_eq!(page.status, 200);
                    let expected = service.bytes + service.bytes_per_object * near;
                    assert_eq!(body.len(), expected, "{}: {}", service.name, String::from_utf8_lossy(&body));
                    assert!(body.is_ascii());
                }
            }
        }
    }

    #[test]
    fn numbers_change_from_tick_to_tick_on_every_page_but_the_edit() {
        let mut world = World::new(40);
        for (place, service) in SERVICES.iter().enumerate().filter(|(place, _)| *place != FORCE_FIELD) {
            let [mut before, mut after] = [Vec::new(), Vec::new()];
            make(What::Page(place, None), &mut world, &mut before);
            world.step(1.0 / 30.0);
            make(What::Page(place, None), &mut world, &mut after);
            assert_ne!(before, after, "{}", service.name);
        }
    }

    #[test]
    fn short_pages_fit_one_chunk_with_their_head_and_cost_little_and_long_ones_do_not() {
        const HEAD_BYTES: usize = 200;
        for service in &SERVICES {
            let is_long = ["objects", "object", "script"].contains(&service.name);
            let bytes = |near: usize| HEAD_BYTES + service.bytes + service.bytes_per_object * near;
            assert_eq!(bytes(40) > 2 * CHUNK_BYTES, is_long, "{}", service.name);
            assert_eq!(service.bytes_per_object > 0 && service.cost_per_object_us > 0, is_long);
            assert!(is_long || service.cost_us <= 100);
        }
        assert_eq!(SERVICES[0].cost_us, 0);
        assert_eq!((SERVICES[FORCE_FIELD].name, SERVICES[OBJECT].name), ("force-field", "object"));
        assert_eq!(SERVICES[PROPERTY].name, "property");
    }

    #[test]
    fn requests_find_their_service_and_their_number() {
        let check = |head, body, what| assert_eq!(ask(head, body).what, what, "{head}");
        check("GET /", "", What::Page(0, None));
        check("GET /?force=3", "", What::Page(0, None));
        check("GET /force-field", "", What::Page(FORCE_FIELD, None));
        check("GET /force-field?force=-25", "", What::Page(FORCE_FIELD, Some(-25)));
        check("POST /force-field", "name=x&force=25\n", What::Page(FORCE_FIELD, Some(25)));
        check("POST /force-field?force=1", "force=25", What::Page(FORCE_FIELD, Some(1)));
        check("POST /force-field", "\u{00ff}", What::Page(FORCE_FIELD, None));
        check("GET /force-field?force=1001", "", What::Not(400));
        check("GET /force-field?force=1e9", "", What::Not(400));
        check("GET /object?id=400", "", What::Page(OBJECT, Some(400)));
        check("GET /object?id=401", "", What::Not(404));
        check("GET /object?id=-1", "", What::Not(404));
        check("GET /script/objects", "", What::Page(6, None));
        check("GET /property", "", What::Page(PROPERTY, Some(0)));
        check("GET /property?id=2&fact=velocity-z", "", What::Page(PROPERTY, Some(26)));
        check("GET /property?fact=hull&id=400", "", What::Page(PROPERTY, Some(3_601)));
        check("GET /property?id=401", "", What::Not(404));
        check("GET /property?id=-1", "", What::Not(404));
        check("GET /property?id=x", "", What::Not(400));
        check("GET /property?fact=mass", "", What::Not(404));
        check("GET /script", "", What::Not(404));
        check("DELETE /", "", What::Not(405));
        assert!(ask("HEAD /pilot", "").head_only);
    }

    #[test]
    fn every_single_fact_of_an_object_stands_on_its_full_page_too() {
        let mut world = World::new(0);
        world.step(1.0 / 30.0);
        let mut text = |place, argument| {
            let mut body = Vec::new();
            make(What::Page(place, Some(argument)), &mut world, &mut body);
            String::from_utf8(body).unwrap()
        };
        for object in [0, 3, 400] {
            let page = text(OBJECT, object);
            for (fact, name) in FACTS.iter().enumerate() {
                let single = text(PROPERTY, object * FACTS.len() as i32 + fact as i32);
                let value = single.strip_prefix(name).map(str::trim);
                let label = name.split('-').next().unwrap();
                let line = page.lines().find(|line| line.starts_with(label)).unwrap();
                let is_on_page = line.split_whitespace().any(|word| Some(word) == value);
                assert!(is_on_page, "{name} {single:?} is not in {line:?}");
            }
        }
    }

    #[test]
    fn an_edit_changes_the_world_and_answers_the_new_value() {
        let mut world = World::new(0);
        let mut body = Vec::new();
        make(What::Page(FORCE_FIELD, Some(-250)), &mut world, &mut body);
        assert_eq!((world.force, body.as_slice()), (-250, b"force  -250\n".as_slice()));
    }
}
