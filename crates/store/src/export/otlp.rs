//! The totals of a run as a request of the OpenTelemetry Protocol, to be pushed to collectors.
//!
//! Names are those of OpenMetrics with a dot after `stepladder` and without the unit, which is a separate field: a
//! collector that forwards them to Prometheus restores the OpenMetrics names. The run is described by the resource.
//! Source: OTLP 1.x, <https://opentelemetry.io/docs/specs/otlp/>, and its data model of metrics.
//! Not here: connections (`stepladder`).

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use super::sums::{Family, Kind, Point, Value};

const NAME: &str = "stepladder";

/// When the figures were counted, ns since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// the sums began at 0
    pub from_unix_ns: u64,
    /// they stood so
    pub until_unix_ns: u64,
}

/// An `ExportMetricsServiceRequest` in protobuf.
pub fn otlp(families: &[Family], counted: Counted) -> Vec<u8> {
    let described = families.iter().filter(|family| family.kind == Kind::Info);
    let of_run = described.flat_map(|family| &family.points).flat_map(|point| &point.labels);
    let name = ("service.name".to_owned(), NAME.to_owned());
    let attributes = of_run.map(|(label, value)| match *label {
        "version" => ("service.version".to_owned(), value.clone()),
        "run" => ("service.instance.id".to_owned(), value.clone()),
        other => (format!("{NAME}.{other}"), value.clone()),
    });
    let attributes =
        [name].into_iter().chain(attributes).map(|(key, value)| attribute(&key, &value)).collect();
    let scope = InstrumentationScope {
        name: NAME.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let metrics = families
        .iter()
        .filter(|family| family.kind != Kind::Info && !family.points.is_empty())
        .map(|family| metric(family, counted))
        .collect();
    let of_scope = ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() };
    let of_resource = ResourceMetrics {
        resource: Some(Resource { attributes, ..Resource::default() }),
        scope_metrics: vec![of_scope],
        ..ResourceMetrics::default()
    };
    ExportMetricsServiceRequest { resource_metrics: vec![of_resource] }.encode_to_vec()
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = any_value::Value::StringValue(value.to_owned());
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn metric(family: &Family, counted: Counted) -> Metric {
    let stem = family.name.strip_suffix(family.unit).map_or(&*family.name, |stem| stem.trim_end_matches('_'));
    let temporality = AggregationTemporality::Cumulative.into();
    let data = match family.kind {
        Kind::Counter => Data::Sum(Sum {
            data_points: numbers(family, counted),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: family.points.iter().filter_map(|point| durations(point, counted)).collect(),
            aggregation_temporality: temporality,
        }),
        Kind::Gauge | Kind::StateSet | Kind::Info => {
            Data::Gauge(Gauge { data_points: numbers(family, counted) })
        }
    };
    Metric {
        name: stem.replacen('_', ".", 1),
        description: family.help.to_owned(),
        unit: in_ucum(family.unit).to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

/// As the Unified Code for Units of Measure writes it.
fn in_ucum(unit: &str) -> &str {
    match unit {
        "seconds" => "s",
        "bytes" => "By",
        "hertz" => "Hz",
        "celsius" => "Cel",
        other => other,
    }
}

fn attributes(point: &Point) -> Vec<KeyValue> {
    point.labels.iter().map(|(label, value)| attribute(label, value)).collect()
}

/// What is no number was not measured, and is left out.
fn numbers(family: &Family, counted: Counted) -> Vec<NumberDataPoint> {
    let point = |point: &Point| {
        let value = match point.value {
            Value::Count(count) => number_data_point::Value::AsInt(i64::try_from(count).unwrap_or(i64::MAX)),
            Value::Number(number) if number.is_finite() => number_data_point::Value::AsDouble(number),
            Value::Number(_) | Value::Durations { .. } => return None,
        };
        Some(NumberDataPoint {
            attributes: attributes(point),
            start_time_unix_nano: counted.from_unix_ns,
            time_unix_nano: counted.until_unix_ns,
            value: Some(value),
            ..NumberDataPoint::default()
        })
    };
    family.points.iter().filter_map(point).collect()
}

fn durations(point: &Point, counted: Counted) -> Option<HistogramDataPoint> {
    let Value::Durations { up_to, count, sum_s } = &point.value else { return None };
    // There the buckets are behind each other, here beside each other.
    let mut below = 0;
    let mut beside = |up_to: u64| u64::saturating_sub(up_to, std::mem::replace(&mut below, up_to));
    let bucket_counts = up_to.iter().map(|(_, up_to)| *up_to).chain([*count]).map(&mut beside).collect();
    Some(HistogramDataPoint {
        attributes: attributes(point),
        start_time_unix_nano: counted.from_unix_ns,
        time_unix_nano: counted.until_unix_ns,
        count: *count,
        sum: Some(*sum_s),
        bucket_counts,
        explicit_bounds: up_to.iter().map(|(bound_s, _)| *bound_s).collect(),
        ..HistogramDataPoint::default()
    })
}
