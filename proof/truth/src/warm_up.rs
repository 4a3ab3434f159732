//! WARM: planted warm-ups, found by MSER-5 with its guard.

use ladder::steady::{batch_length, warm_up};

use crate::{Form, Row, normal};

/// Seconds of noise around 10 with a deviation of 1; neighbours resemble each other by `correlation`.
fn stationary(random: &mut fastrand::Rng, length: usize, correlation: f64) -> Vec<f64> {
    let mut last = normal(random);
    let mut next = || {
        last = correlation * last + (1.0 - correlation * correlation).sqrt() * normal(random);
        10.0 + last
    };
    (0..length).map(|_| next()).collect()
}

pub(crate) fn rows(form: Form) -> Vec<Row> {
    let series = form.of(2_500, 10_000);
    let mut rows = Vec::new();
    for (shape, correlation) in [("step", 0.0), ("step", 0.4), ("decay", 0.0), ("low step", 0.0)] {
        let (mut found, mut strictly, mut long) = (0u64, 0u64, 0u64);
        for seed in 0..series {
            let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed);
            let length = random.usize(30..300);
            let planted = random.usize(length / 20 + 1..length * 2 / 5);
            let height = 5.0 + 15.0 * random.f64();
            let mut values = stationary(&mut random, length, correlation);
            for (at, value) in values.iter_mut().take(planted).enumerate() {
                let share = at as f64 / planted as f64;
                *value += match shape {
                    "step" => height,
                    "decay" => 2.0 * height * (1.0 - share.powi(4)),
                    _ => -height,
                };
            }
            let error = (warm_up(&values, 0.1) as f64 - planted as f64).abs();
            let (tenth, batch) = (planted as f64 * 0.1, batch_length(length) as f64);
            found += u64::from(error <= tenth.max(batch));
            if tenth >= batch {
                long += 1;
                strictly += u64::from(error <= tenth);
            }
        }
        let what =
            format!("{shape}, correlation {correlation}, {series} series, found within 10 % or a batch");
        rows.push(Row::share(("WARM", what), "100 %", found as f64 / series as f64, (0.95, 1.0)));
        if long >= 100 {
            let what =
                format!("{shape}, correlation {correlation}, {long} of ten batches or more, within 10 %");
            rows.push(Row::share(("WARM", what), "100 %", strictly as f64 / long as f64, (0.95, 1.0)));
        }
    }
    rows
}
