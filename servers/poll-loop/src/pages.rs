//! The pages. Every number has a fixed width, so that a page's length depends only on what is near.

use std::io::Write;

use super::services::{Argument, FACTS};
use super::world::{SUBSYSTEMS, World};

/// Writing to memory does not fail.
macro_rules! put {
    ($out:expr, $($what:tt)*) => { write!($out, $($what)*).unwrap_or_default() };
}

pub(super) fn root(world: &World, _: Argument, out: &mut Vec<u8>) {
    let [x, y, z] = world.own().position_m;
    put!(
        out,
        "<!doctype html><title>simulation</title><h1>Tick {:>12}</h1>\n\
         <p>Craft at {x:>9.1} {y:>9.1} {z:>9.1} m, {:>4} objects near.</p>\n\
         <ul>\n<li><a href=\"/pilot\">pilot</a>\n<li><a href=\"/force-field\">force field</a>\n\
         <li><a href=\"/ihost\">host</a>\n<li><a href=\"/objects\">objects</a>\n\
         <li><a href=\"/object?id=0\">this craft</a>\n<li><a href=\"/script/objects\">objects for scripts</a>\n</ul>\n",
        world.tick,
        world.near
    );
}

pub(super) fn pilot(world: &World, _: Argument, out: &mut Vec<u8>) {
    let own = world.own();
    let ([x, y, z], [u, v, w]) = (own.position_m, own.velocity_m_per_s);
    put!(
        out,
        "pilot 1\ntick {:>12}\nposition {x:>9.1} {y:>9.1} {z:>9.1} m\nvelocity {u:>7.2} {v:>7.2} {w:>7.2} m/s\n\
         heading {:>5.1} deg\nhull {:>5.1} percent\nforce {:>5}\n",
        world.tick,
        own.heading_deg,
        own.hull_percent,
        world.force
    );
}

pub(super) fn force_field(world: &World, _: Argument, out: &mut Vec<u8>) {
    put!(out, "force {:>5}\n", world.force);
}

pub(super) fn ihost(world: &World, _: Argument, out: &mut Vec<u8>) {
    let own = world.own();
    put!(
        out,
        "<!doctype html><title>host</title><h1>Host</h1>\n<table>\n<tr><td>tick<td>{:>12}\n\
         <tr><td>objects simulated<td>{:>4}\n<tr><td>objects near<td>{:>4}\n<tr><td>force<td>{:>5}\n\
         <tr><td>heading<td>{:>5.1}\n</table>\n",
        world.tick,
        super::world::OBJECTS,
        world.near,
        world.force,
        own.heading_deg
    );
}

pub(super) fn objects(world: &World, _: Argument, out: &mut Vec<u8>) {
    put!(
        out,
        "<!doctype html><title>objects</title><h1>{:>4} objects at tick {:>12}</h1>\n<pre>\n",
        world.near,
        world.tick
    );
    for (i, object) in world.near() {
        let [x, y, z] = object.position_m;
        let distance_m = object.distance_m(world.own());
        put!(
            out,
            "<a href=\"/object?id={i:03}\">{i:03}</a> {} {x:>9.1} {y:>9.1} {z:>9.1} {distance_m:>9.1} m {:>5.1}\n",
            object.class,
            object.heading_deg
        );
    }
    put!(out, "</pre>\n");
}

pub(super) fn object(world: &World, id: Argument, out: &mut Vec<u8>) {
    let Some(object) = world.object(id as usize) else { return };
    let ([x, y, z], [u, v, w]) = (object.position_m, object.velocity_m_per_s);
    put!(
        out,
        "<!doctype html><title>object {id:03}</title><h1>Object {id:03} at tick {:>12}</h1>\n<pre>\n\
         class {}\nposition {x:>9.1} {y:>9.1} {z:>9.1} m\nvelocity {u:>7.2} {v:>7.2} {w:>7.2} m/s\n\
         heading {:>5.1} deg\nhull {:>5.1} percent\n</pre>\n<h2>Parts</h2>\n<table>\n",
        world.tick,
        object.class,
        object.heading_deg,
        object.hull_percent
    );
    for part in 0..SUBSYSTEMS {
        let percent = object.subsystem_percent(part);
        let (state, load) = (if percent < 10.0 { "failing" } else { "working" }, 100.0 - percent);
        put!(
            out,
            "<tr><td>part {part:02}<td>condition {percent:>6.2} percent<td>{state}<td>load {load:>6.2} percent<td>of {:>4} kW\n",
            120 + 7 * part
        );
    }
    put!(out, "</table>\n<h2>Contacts</h2>\n<pre>\n");
    for (i, other) in world.near() {
        let [u, v, w] = other.velocity_m_per_s;
        let distance_m = object.distance_m(other);
        put!(
            out,
            "{i:03} {} {distance_m:>9.1} m {u:>7.2} {v:>7.2} {w:>7.2} m/s {:>5.1} deg\n",
            other.class,
            other.heading_deg
        );
    }
    put!(out, "</pre>\n");
}

pub(super) fn script(world: &World, _: Argument, out: &mut Vec<u8>) {
    put!(out, "{{\"tick\":{:>12},\"near\":{:>4},\"objects\":[", world.tick, world.near);
    for (i, object) in world.near() {
        let [x, y, z] = object.position_m;
        let comma = if i == 1 { " " } else { "," };
        put!(
            out,
            "{comma}{{\"id\":{i:>3},\"class\":\"{}\",\"at\":[{x:>9.1},{y:>9.1},{z:>9.1}],\"heading\":{:>5.1},\"hull\":{:>5.1}}}\n",
            object.class,
            object.heading_deg,
            object.hull_percent
        );
    }
    put!(out, "]}}\n");
}

/// One of `FACTS` of one object, with its name.
pub(super) fn property(world: &World, which: Argument, out: &mut Vec<u8>) {
    let (object, fact) = (which as usize / FACTS.len(), which as usize % FACTS.len());
    let Some(object) = world.object(object) else { return };
    let name = FACTS[fact];
    match fact {
        0 => put!(out, "{name:<12}{:>12.1}\n", object.heading_deg),
        1 => put!(out, "{name:<12}{:>12.1}\n", object.hull_percent),
        2 => put!(out, "{name:<12}{:>12}\n", object.class.trim_end()),
        3..=5 => put!(out, "{name:<12}{:>12.1}\n", object.position_m[fact - 3]),
        _ => put!(out, "{name:<12}{:>12.2}\n", object.velocity_m_per_s[fact - 6]),
    }
}
