//! Collectors that receive a run's totals (`--otlp`).

use crate::place::Place;

#[cfg(not(feature = "otlp"))]
#[test]
fn a_build_without_it_says_how_to_get_it() {
    let place = Place::new();
    place
        .run(["climb", "arena", "--rungs", "2", "--otlp", "http://127.0.0.1:4318"])
        .refused(3, &["--otlp", "--features otlp", "--metrics"]);
}

#[cfg(feature = "otlp")]
mod built_in {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::{Duration, Instant};

    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
    use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, Metric};
    use prost::Message as _;

    use super::*;
    use crate::place::Ran;

    const OPTIONS: [&str; 9] =
        ["climb", "arena", "--rungs", "2,4", "--hold", "3s", "--settle", "200ms", "--no-calibration"];

    struct Export {
        head: String,
        request: ExportMetricsServiceRequest,
    }

    /// Answers every export with `answer`. Its URL, and what came.
    fn collector(answer: &'static str) -> (String, Receiver<Export>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let (tell, told) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.expect("a connection"));
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).expect("a head") > 0 {}
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("content-length").then(|| value.parse().expect("a length"))
                });
                let mut body = vec![0; length.expect("its length")];
                stream.read_exact(&mut body).expect("a body");
                let request = ExportMetricsServiceRequest::decode(&*body).expect("protobuf");
                let _ = tell.send(Export { head, request });
                stream.get_mut().write_all(answer.as_bytes()).expect("an answer");
            }
        });
        (url, told)
    }

    const TAKEN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

    fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
        let found = attributes.iter().find(|attribute| attribute.key == key)?;
        match found.value.as_ref()?.value.as_ref()? {
            any_value::Value::StringValue(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn metrics(export: &Export) -> &[Metric] {
        &export.request.resource_metrics[0].scope_metrics[0].metrics
    }

    /// Messages of holds that were sent.
    fn sent(export: &Export) -> i64 {
        let messages = metrics(export).iter().find(|metric| metric.name == "stepladder.messages");
        let Some(Data::Sum(sum)) = messages.and_then(|metric| metric.data.as_ref()) else { return 0 };
        assert!(sum.is_monotonic);
        assert_eq!(sum.aggregation_temporality(), AggregationTemporality::Cumulative);
        let of_hold = sum.data_points.iter().filter(|point| {
            assert!(point.start_time_unix_nano > 0 && point.start_time_unix_nano <= point.time_unix_nano);
            text(&point.attributes, "phase").as_deref() == Some("hold")
                && text(&point.attributes, "state").as_deref() == Some("sent")
        });
        of_hold
            .map(|point| match point.value {
                Some(Value::AsInt(count)) => count,
                other => panic!("{other:?}"),
            })
            .sum()
    }

    fn sent_by(results: &serde_json::Value) -> u64 {
        results["rungs"].as_array().expect("rungs").iter().filter_map(|rung| rung["sent"].as_u64()).sum()
    }

    #[test]
    fn the_last_export_has_everything_that_the_results_have() {
        let place = Place::new();
        let (url, exports) = collector(TAKEN);
        let mut command = place.command([&OPTIONS[..], &["--otlp", &url, "--json", "run.json"]].concat());
        command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20planted-secret");
        let ran = place.start_command(command).finish();
        assert!(!ran.err.contains("--otlp"), "{ran:#?}");
        assert!(!format!("{ran:?}").contains("planted-secret"), "{ran:#?}");
        let exports: Vec<Export> = exports.try_iter().collect();
        assert!(exports.len() >= 2, "{} exports in more than 6 s", exports.len());
        for export in &exports {
            assert!(export.head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{}", export.head);
            let head = export.head.to_lowercase();
            assert!(head.contains("content-type: application/x-protobuf"), "{head}");
            assert!(export.head.contains("Bearer planted-secret"), "{}", export.head);
            let resource = export.request.resource_metrics[0].resource.as_ref().expect("a resource");
            assert_eq!(text(&resource.attributes, "service.name").as_deref(), Some("stepladder"));
            assert!(text(&resource.attributes, "service.instance.id").is_some());
        }
        assert!(exports.windows(2).all(|two| sent(&two[0]) <= sent(&two[1])));
        let last = exports.last().expect("exports");
        assert_eq!(sent(last) as u64, sent_by(&place.json("run.json")));
        assert!(sent(last) > 0);
        let lag = metrics(last).iter().find(|metric| metric.name == "stepladder.send_lag").expect("send lag");
        assert_eq!(lag.unit, "s");
        let Some(Data::Histogram(histogram)) = &lag.data else { panic!("{lag:?}") };
        for point in &histogram.data_points {
            assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
            assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
        }
        let memory = metrics(last).iter().find(|metric| metric.name == "stepladder.subject_rss");
        assert_eq!(memory.map(|metric| &*metric.unit), Some("By"));
    }

    /// The same climb with a collector that takes nothing.
    fn with_trouble(url: &str, expected: &str) {
        let place = Place::new();
        let began = Instant::now();
        let ran: Ran = place.run([&OPTIONS[..], &["--otlp", url, "--json", "run.json"]].concat());
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(ran.err.contains("--otlp http://127.0.0.1:") && ran.err.contains(expected), "{ran:#?}");
        assert!(sent_by(&place.json("run.json")) > 0);
    }

    #[test]
    fn a_collector_that_takes_nothing_changes_no_result() {
        with_trouble(
            &collector(BUSY).0,
            "exports failed, the last one: the collector answers with status 503",
        );
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        with_trouble(&format!("http://{}", silent.local_addr().expect("its address")), "timeout");
        drop(silent);
        with_trouble(&format!("http://127.0.0.1:{}", crate::place::free_port()), "exports failed");
    }

    #[test]
    fn an_address_that_cannot_be_is_refused_before_anything_is_started() {
        let place = Place::new();
        let with = |address: &str| place.run(["climb", "arena", "--rungs", "2", "--otlp", address]);
        with("4318").refused(3, &["--otlp", "is no address of a collector", "http://127.0.0.1:4318"]);
        let told = with("http://me:planted-secret@127.0.0.1:4318");
        assert!(!told.err.contains("planted-secret"), "{told:#?}");
        told.refused(3, &["OTEL_EXPORTER_OTLP_HEADERS"]);
    }
}
