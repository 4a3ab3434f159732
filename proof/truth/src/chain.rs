//! The exact answers of a loop that serves ten requests at each of its 30 ticks a second, by its Markov chain.
//!
//! The number left waiting after a tick is a chain with Poisson arrivals between ticks. A request that arrives at a
//! share u of the way between two ticks waits for the next one, and for one more per ten requests ahead of it.

/// Ticks per second.
pub const TICKS_PER_S: f64 = 30.0;
/// Requests served by a tick.
pub const SLOTS: usize = 10;
/// So many moments between two ticks stand for all.
const MOMENTS: usize = 1_000;
/// More wait than this with a probability below 10⁻¹² up to 290 per second.
const WAITING_MOST: usize = 900;

/// Probabilities of 0, 1, 2 … arrivals.
fn poisson(mean: f64) -> Vec<f64> {
    let mut all = vec![(-mean).exp()];
    while all.len() < 40 || all[all.len() - 1] > 1e-18 {
        all.push(all[all.len() - 1] * mean / all.len() as f64);
    }
    all
}

fn sum_of(waiting: &[f64], arrived: &[f64], most: usize) -> Vec<f64> {
    let mut sum = vec![0.0; most + 1];
    for (one, p) in waiting.iter().enumerate() {
        for (other, q) in arrived.iter().enumerate() {
            sum[(one + other).min(most)] += p * q;
        }
    }
    sum
}

/// The loop under Poisson arrivals, in its stationary state.
pub struct PollLoop {
    /// by moment between two ticks, for each number of requests ahead its probability
    ahead: Vec<Vec<f64>>,
    queue: usize,
}

impl PollLoop {
    /// `queue`: a request that finds so many waiting is refused; `None`: none is.
    pub fn new(rate_per_s: f64, queue: Option<usize>) -> PollLoop {
        let mean = rate_per_s / TICKS_PER_S;
        let most = queue.unwrap_or(WAITING_MOST);
        let arrived = poisson(mean);
        let mut left = vec![1.0];
        loop {
            let waiting = sum_of(&left, &arrived, most);
            let mut next = vec![0.0; most.saturating_sub(SLOTS) + 1];
            for (count, p) in waiting.iter().enumerate() {
                next[count.saturating_sub(SLOTS)] += p;
            }
            let change: f64 = (0..next.len()).map(|at| (next[at] - left.get(at).unwrap_or(&0.0)).abs()).sum();
            left = next;
            if change < 1e-13 {
                break;
            }
        }
        let moment = |at: usize| sum_of(&left, &poisson(mean * (at as f64 + 0.5) / MOMENTS as f64), most);
        PollLoop { ahead: (0..MOMENTS).map(moment).collect(), queue: most }
    }

    /// Share of the requests that are refused.
    pub fn refused_share(&self) -> f64 {
        self.ahead.iter().map(|ahead| ahead[self.queue]).sum::<f64>() / MOMENTS as f64
    }

    /// Mean response of those that are answered, ms.
    pub fn mean_ms(&self) -> f64 {
        let (mut sum, mut share) = (0.0, 0.0);
        for (at, ahead) in self.ahead.iter().enumerate() {
            let until_tick = 1.0 - (at as f64 + 0.5) / MOMENTS as f64;
            for (count, p) in ahead[..self.queue].iter().enumerate() {
                sum += p * (until_tick + (count / SLOTS) as f64);
                share += p;
            }
        }
        sum / share / TICKS_PER_S * 1e3
    }

    /// Share of all requests that are answered within so many ms.
    pub fn share_within(&self, ms: f64) -> f64 {
        let ticks = ms / 1e3 * TICKS_PER_S;
        let mut share = 0.0;
        for (at, ahead) in self.ahead.iter().enumerate() {
            let until_tick = 1.0 - (at as f64 + 0.5) / MOMENTS as f64;
            if ticks >= until_tick {
                let served = (((ticks - until_tick).floor() as usize + 1) * SLOTS).min(self.queue);
                share += ahead[..served].iter().sum::<f64>();
            }
        }
        share / MOMENTS as f64
    }

    /// The percentile of all requests, refused ones counted as infinite, ms.
    pub fn quantile_ms(&self, q: f64) -> f64 {
        if 1.0 - self.refused_share() < q {
            return f64::INFINITY;
        }
        let (mut low, mut high) = (0.0, 2_000.0);
        while high - low > 1e-3 {
            let middle = (low + high) / 2.0;
            if self.share_within(middle) >= q { high = middle } else { low = middle }
        }
        high
    }
}

/// The largest rate at which `holds` is true, to a tenth of a request per second.
pub fn largest_rate(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (100.0, 290.0);
    while high - low > 0.1 {
        let middle = (low + high) / 2.0;
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_gives_what_is_known_of_a_loop_that_is_never_full() {
        // At 30/s two requests hardly ever share a tick's ten places: the wait is even between 0 and one tick.
        let calm = PollLoop::new(30.0, None);
        assert!((calm.mean_ms() - 1e3 / 60.0).abs() < 0.01, "{}", calm.mean_ms());
        assert!((calm.quantile_ms(0.99) - 33.0).abs() < 0.05, "{}", calm.quantile_ms(0.99));
        assert!(calm.refused_share() < 1e-9);
    }

    #[test]
    fn little_gets_through_a_loop_beyond_its_places() {
        let full = PollLoop::new(600.0, Some(14));
        assert!((full.refused_share() - 0.5).abs() < 0.01, "{}", full.refused_share());
    }
}
