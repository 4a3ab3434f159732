//! Distributions for HdrHistogram's own tools: an interval log per trial, percentile tables beside it.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use measure::{Distribution, Entry, Interval, Measure};

use super::files::{NewFile, create, failed};
use super::hgrm;
use crate::entries::visit;
use crate::error::StoreError;
use crate::run::{RunId, TrialRecord};
use crate::store::Store;

/// The largest value of a line is in ms, as HdrHistogram's own writer does it; the histograms count ns.
const MAX_VALUE_DIVISOR: f64 = 1e6;

/// Writes the distributions of a run into the folder `dir`, which is made if need be; each file is whole or not
/// there, and none that exists is overwritten.
///
/// Shape: per trial `trial-N.hlog`, HdrHistogram's interval log (version 1.3): `StartTime` and `BaseTime` are the start of the
/// trial, then one line per second and measure, `Tag=NAME,start,length,max,histogram`, the histogram in the compressed V2
/// encoding in base64; seconds in which nothing was measured have no line. Beside it `trial-N-NAME.hgrm`, the percentile table
/// of the same lines added up. Of messages those that were planned in the hold, no warm-up cut off; handshakes of the whole
/// trial.
/// Units: times of the log are s, values of its histograms ns, its maxima and the percentile tables ms.
/// Errors: `UnknownRun`, `Damaged` before anything is written, `Output` with the path that failed.
pub fn hdr(store: &Store, run: &RunId, dir: &Path) -> Result<(), StoreError> {
    store.check_run(run)?;
    std::fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    for trial in store.trials(run)? {
        interval_log(store, run, &trial, &dir.join(format!("trial-{}.hlog", trial.head.seq)))?;
    }
    hgrm::of_run(store, run, dir)
}

fn interval_log(store: &Store, run: &RunId, trial: &TrialRecord, path: &Path) -> Result<(), StoreError> {
    let mut log = Log { out: BufWriter::new(create(path)?), serializer: V2DeflateSerializer::new() };
    let mut written = log.head(trial.started_unix_ms);
    let moment = store.moment()?;
    let read = visit(&moment, run, &trial.head, |_, entry| {
        if let Entry::Interval(second) = &entry
            && written.is_ok()
        {
            written = log.second(second);
        }
    });
    read.map_err(|error| store.read(error))?;
    written.map_err(|error| failed(path, error))?;
    log.out.into_inner().map_err(|error| failed(path, error))?.finish()
}

struct Log {
    out: BufWriter<NewFile>,
    serializer: V2DeflateSerializer,
}

impl Log {
    fn head(&mut self, started_unix_ms: u64) -> io::Result<()> {
        let start_s = started_unix_ms as f64 / 1e3;
        writeln!(self.out, "#[Histogram log format version 1.3]")?;
        writeln!(self.out, "#[StartTime: {start_s:.3} (seconds since epoch)]")?;
        writeln!(self.out, "#[BaseTime: {start_s:.3} (seconds since epoch)]")?;
        writeln!(self.out, "#[MaxValueDivisor: {MAX_VALUE_DIVISOR:.3}]")?;
        writeln!(
            self.out,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
        )
    }

    fn second(&mut self, second: &Interval) -> io::Result<()> {
        for &measure in Measure::ALL {
            let mut distribution = second.distribution(measure, true).clone();
            if measure.is_of_whole_trial() {
                distribution.add(second.distribution(measure, false));
            }
            if distribution.is_empty() {
                continue;
            }
            let max = distribution.max_ns().unwrap_or(0) as f64 / MAX_VALUE_DIVISOR;
            let histogram = STANDARD.encode(self.compressed(&distribution)?);
            writeln!(
                self.out,
                "Tag={},{:.3},1.000,{max:.3},{histogram}",
                measure.name(),
                f64::from(second.index)
            )?;
        }
        Ok(())
    }

    fn compressed(&mut self, distribution: &Distribution) -> io::Result<Vec<u8>> {
        let counts: Histogram<u64> = Deserializer::new()
            .deserialize(&mut distribution.to_v2().as_slice())
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
        let mut bytes = Vec::new();
        self.serializer.serialize(&counts, &mut bytes).map_err(io::Error::other)?;
        Ok(bytes)
    }
}
