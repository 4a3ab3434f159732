//! The small simulated world: one craft of our own and what flies around it.
//!
//! It exists so that answers contain numbers that change from tick to tick, as in a real simulation. Positions in
//! metres, speeds in metres per second, angles in degrees; all bounded, so that a page has the same length at every
//! tick. Deterministic: the same tick shows the same world, except for the force that a client may have set.

/// Our own craft is number 0; the others can be requested individually even if they are not near.
pub(super) const OBJECTS: usize = 401;

/// Nothing flies farther away; what would comes in again on the other side.
const EDGE_M: f64 = 50_000.0;
const SPEED_MAX_M_PER_S: f64 = 900.0;

/// The force that a client may set, either way.
pub(super) const FORCE_MAX: i32 = 1_000;

pub(super) const CLASSES: [&str; 4] = ["craft ", "rock  ", "buoy  ", "debris"];
pub(super) const SUBSYSTEMS: usize = 48;

pub(super) struct World {
    pub(super) tick: u64,
    /// How many objects are near, and in the lists.
    pub(super) near: usize,
    pub(super) force: i32,
    objects: Vec<Object>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) class: &'static str,
    pub(super) position_m: [f64; 3],
    pub(super) velocity_m_per_s: [f64; 3],
    /// [0, 360)
    pub(super) heading_deg: f64,
    /// [0, 100)
    pub(super) hull_percent: f64,
}

impl World {
    /// `near` is at most `OBJECTS` − 1.
    pub(super) fn new(near: usize) -> World {
        let mut random = 0x5EED_u64;
        let mut between = |from: f64, to: f64| {
            // SplitMix64 (Steele, Lea and Flood 2014): good enough for places in the sky.
            random = random.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut bits = (random ^ (random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            from + (to - from) * ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        };
        let object = |i: usize| Object {
            class: CLASSES[i % CLASSES.len()],
            position_m: [(); 3].map(|()| between(-EDGE_M, EDGE_M)),
            velocity_m_per_s: [(); 3].map(|()| between(-300.0, 300.0)),
            heading_deg: between(0.0, 360.0),
            hull_percent: between(20.0, 100.0),
        };
        World { tick: 0, near, force: 0, objects: (0..OBJECTS).map(object).collect() }
    }

    /// Lets so much time pass.
    pub(super) fn step(&mut self, seconds: f64) {
        self.tick += 1;
        let centre_m = self.objects[0].position_m;
        let pull = f64::from(self.force) * 1e-6 * seconds;
        for object in &mut self.objects {
            for (axis, centre_m) in centre_m.iter().enumerate() {
                let (at_m, speed) = (&mut object.position_m[axis], &mut object.velocity_m_per_s[axis]);
                *speed = (*speed - (*at_m - centre_m) * pull).clamp(-SPEED_MAX_M_PER_S, SPEED_MAX_M_PER_S);
                *at_m += *speed * seconds;
                if at_m.abs() >= EDGE_M {
                    *at_m -= EDGE_M.copysign(*at_m) * 2.0;
                }
            }
            object.heading_deg = (object.heading_deg + 7.0 * seconds) % 360.0;
            object.hull_percent = (object.hull_percent + 0.3 * seconds) % 100.0;
        }
    }

    pub(super) fn object(&self, i: usize) -> Option<&Object> {
        self.objects.get(i)
    }

    pub(super) fn own(&self) -> &Object {
        &self.objects[0]
    }

    /// What is near, with its number.
    pub(super) fn near(&self) -> impl Iterator<Item = (usize, &Object)> {
        self.objects.iter().enumerate().skip(1).take(self.near)
    }
}

impl Object {
    pub(super) fn distance_m(&self, other: &Object) -> f64 {
        let square = |axis: usize| (self.position_m[axis] - other.position_m[axis]).powi(2);
        (square(0) + square(1) + square(2)).sqrt()
    }

    /// The state of one of the craft's parts, [0, 100).
    pub(super) fn subsystem_percent(&self, part: usize) -> f64 {
        (self.hull_percent + self.heading_deg * (part + 1) as f64) % 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_ticks_keeps_everything_within_bounds_whatever_the_force() {
        let mut world = World::new(400);
        for tick in 0..30_000 {
            world.force = if tick % 2_000 < 1_000 { FORCE_MAX } else { -FORCE_MAX };
            world.step(3.0);
        }
        assert_eq!(world.tick, 30_000);
        for (_, object) in world.near() {
            assert!(object.position_m.iter().all(|at_m| at_m.abs() <= EDGE_M), "{object:?}");
            assert!(object.velocity_m_per_s.iter().all(|speed| speed.abs() <= SPEED_MAX_M_PER_S));
            assert!(
                (0.0..360.0).contains(&object.heading_deg) && (0.0..100.0).contains(&object.hull_percent)
            );
        }
    }

    #[test]
    fn a_force_changes_where_things_fly() {
        let (mut calm, mut pulled) = (World::new(40), World::new(40));
        pulled.force = 500;
        (0..30).for_each(|_| calm.step(1.0 / 30.0));
        (0..30).for_each(|_| pulled.step(1.0 / 30.0));
        assert_eq!(calm.own().position_m, World::new(0).after(30).own().position_m);
        let far = |world: &World| world.near().map(|(_, object)| object.distance_m(world.own())).sum::<f64>();
        assert!(far(&pulled) < far(&calm));
    }

    impl World {
        fn after(mut self, ticks: u32) -> World {
            (0..ticks).for_each(|_| self.step(1.0 / 30.0));
            self
        }
    }
}
